"""The chapter `grpo_mts`: figures and tables on policy gradients over sampled tokens, beside the paper's numbers.

`rows` are of `cot2lib.study.policies.outcomes`, a row for each run.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from cot2lib.specs.profiles import POLICIES
from cot2lib.study import look, policies, series, show
from cot2lib.study.frame import at, called, ordered
from cot2lib.study.look import SETTINGS, Shown
from cot2lib.study.printed import GAINS, gains, paper_value, stated
from cot2lib.study.report import describe, ends, recipe
from cot2lib.study.sweeps import KS, STEPS, USUAL

SEEDS = {"all": "all", "kept": "not collapsed"}  # of a comparison
RATIOS = {"geometric": "root", "product": "product"}
PANELS = {f"d = {d}, {when}": (d, when) for d in (24, 32) for when in ("before", "after")}
TOLD_BY = ["d_model", "dropout", "lr"]  # what an explanation fixes
WORDS = {
    "best": "best epoch (%)",
    "gain": "best epoch less the start (points)",
    "entropy_4": "entropy of the answer (nat)",
}
PARTS = {"accuracies": ["best"], "gains": ["gain"], "entropies": [f"entropy_{token}" for token in STEPS]}


def stem(k: int, d_model: int = 24, **_) -> str:
    """The paper's claim about a run."""
    return f"grpo-mts-d{d_model}-k{k}"


def start(d_model: int = 24, **_) -> str:
    """The paper's claim about what such a run starts from."""
    return f"grpo-mts-d{d_model}-sft"


# Figures and tables of our runs


def entropies(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Entropy of each step's distribution, a row of panels per recipe, before and after apart."""
    long = policies.by_token(rows)
    panel = long["d_model"].map("d = {}, ".format) + long["when"].astype(str)

    def printed(k: int, token: int, panel: str) -> float | None:
        d_model, when = PANELS[panel]
        return policies.stated_entropy(stem(k, d_model), token, when)

    return policies.entropies(long.assign(panel=ordered(panel, tuple(PANELS))), "k", "panel", printed, finding)


def entropies_apart(rows: pd.DataFrame, few: int, many: int) -> pd.DataFrame:
    """Entropy (nat) that `many` tokens per thought leave more than `few`, by recipe, seeds, ratio and token.

    `rows` are of variants. For K = 1 both ratios are the same, so that those runs serve either. The seeds `kept` are
    those of which no such run collapsed.
    """
    alike = at(rows, k=[few, many], change=[USUAL, "product"])
    both = pd.concat([alike, at(alike, k=few).assign(ratio="product")])
    fallen = both.groupby(["recipe", "seed"], observed=True)["collapsed"].transform("any")
    chosen = pd.concat([both.assign(seeds="all"), both[~fallen].assign(seeds="kept")])
    long = pd.concat([chosen.assign(token=step, value=chosen[f"entropy_{step}"]) for step in STEPS])
    return show.gaps(long, ["recipe", "seeds", "ratio", "token"], "k", many, few, value="value")


def apart_table(found: pd.DataFrame) -> pd.DataFrame:
    """The intervals of `entropies_apart`, a column per token."""
    told = [describe(*ends, 2) for ends in zip(found["mean"], found["low"], found["high"])]
    found = found.assign(told=told, ratio=found["ratio"].map(RATIOS), seeds=found["seeds"].map(SEEDS))
    wide = found.pivot(index=["recipe", "seeds", "ratio"], columns="token", values="told")
    return wide.rename(columns="token {}".format).sort_index(ascending=[True, True, False]).reset_index()


def gain_against_start(rows: pd.DataFrame) -> Shown:
    """Gain in accuracy (points) over the accuracy at the start, both by own sampler, a dot per run.

    `rows` are of K = 3; those of the change "better start" are told apart from the others.
    """
    better = rows["change"].eq("better start").map({True: ", better start", False: ""})
    begun = rows["d_model"].map(lambda d: called("d_model", d)) + better
    data, apart = series.told_apart(rows.assign(begun=begun), "begun")
    with plt.rc_context(SETTINGS):
        grid = look.Grid(data, col="recipe", height=2.9, aspect=1.4, despine=False)
        grid.map_dataframe(
            sns.scatterplot, "own_before", "own_gain", hue="series", style="series", legend=False, s=36,
            palette=apart["palette"], markers=apart["markers"], hue_order=apart["hue_order"],
            style_order=apart["hue_order"],
        )  # fmt: skip
        grid.refline(y=0, color="black", linestyle="-", linewidth=0.8)
        grid.set_axis_labels("accuracy at the start (%), own sampler", "gain (points)")
        look.panel_titles(grid, "recipe")
        look.legend(grid.figure, apart, lines=False)
        look.finished(grid.figure)
    numbers = data[["recipe", "begun", "seed", "own_before", "own_gain"]].reset_index(drop=True)  # parts share labels
    told = []
    for (name,), part in show.groups(numbers, ["recipe"]):
        least, most = part.loc[part["own_gain"].idxmin()], part.loc[part["own_gain"].idxmax()]
        low, high = (show.in_points(end.own_gain, policies.GAIN) for end in (least, most))
        told.append(
            f"By the {name} the start of {least.own_before:.1f} % ends with {low}, the least; "
            f"that of {most.own_before:.1f} % with {high}, the most."
        )
    return Shown(grid.figure, numbers, " ".join(told))


def from_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with points that the best epoch, and its gain, are above the paper's; d = 24.

    A gain is that over greedy discrete decoding before, from which the paper's start is printed.
    """
    paper = rows["k"].map(lambda k: stated(stem(k)))
    gain = paper - stated(start())
    return rows.assign(beyond=rows["own_best"] - paper, beyond_gain=rows["own_best"] - rows["discrete_before"] - gain)


# Explanations of the paper's Table 1: what each predicts of runs on the paper's split, and what came out


def predicted() -> pd.DataFrame:
    """A row for each explanation, dimension and measure: between which values every run is to lie that stands.

    The file was committed before the runs that it speaks of, but for those of seed 42 at d = 32 as stated.
    """
    return pd.read_csv(Path(__file__).with_name("grpo_mts_predicted.csv"))


def standing(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs that stand, with `best` and `gain`; a collapsed one answers one thing to everything.

    Args:
        rows: `policies.outcomes` of runs on the paper's split.
    """
    kept = rows[~rows["collapsed"].astype(bool)]
    gain = kept["own_best"] - kept["discrete_before"]  # the paper's start is decoded greedily
    return kept.assign(best=kept["own_best"], gain=gain)


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each of `standing` and every measure that was predicted; `inside` where the prediction is right."""
    long = standing(rows).melt([*TOLD_BY, "k", "seed"], list(WORDS), var_name="measure")
    joined = long.merge(predicted(), on=[*TOLD_BY, "measure"])
    return joined.assign(inside=joined["value"].between(joined["low"], joined["high"]))


def paper_measure(measure: str, d_model: int, k: int) -> float:
    """The paper's value of a measure."""
    if measure.startswith("entropy"):
        return paper_value(f"{stem(k, d_model)}-{measure.replace('_', '')}")
    return paper_value(stem(k, d_model)) - (paper_value(start(d_model)) if measure == "gain" else 0)


def fits(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts of the paper's accuracies, gains and entropies after training that lie among the runs that stand.

    A row for each explanation and dimension, those too of which nothing was predicted.
    """
    names = predicted().drop_duplicates(["dropout", "lr"]).set_index(["dropout", "lr"])["explanation"]
    told = []
    for (d_model, dropout, lr), part in standing(rows).groupby(TOLD_BY):
        row = {"explanation": names[dropout, lr], "d": d_model, "runs": len(part)}
        for kind, measures in PARTS.items():
            among = [
                own[measure].min() <= paper_measure(measure, d_model, k) <= own[measure].max()
                for k, own in part.groupby("k")
                for measure in measures
            ]
            row[kind] = f"{sum(among)} of {len(among)}"
        told.append(row)
    return pd.DataFrame(told).sort_values(["explanation", "d"])


def predictions_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Each prediction, the range of the runs of every K that has some, how many keep to it, and the paper's values."""
    told, runs = [], compared(rows)
    for one in predicted().itertuples():
        part = at(runs, explanation=one.explanation, d_model=one.d_model, measure=one.measure)
        digits = 2 if one.measure == "entropy_4" else 1
        row = {"explanation": one.explanation, "d": one.d_model, "measure": WORDS[one.measure]}
        row |= {"predicted": f"{one.low:g} to {one.high:g}"}
        row |= {f"K = {k}": ends(at(part, k=k)["value"], digits) for k in KS}
        row |= {"as predicted": f"{part['inside'].sum()} of {len(part)}" if len(part) else "not run"}
        paper = ", ".join(f"{paper_measure(one.measure, one.d_model, k):.{digits}f}" for k in KS)
        told.append(row | {"the paper": paper})
    return pd.DataFrame(told)


# What the paper and its code print


def paper_gains() -> pd.DataFrame:
    """Gains (points) by policy gradients over each start in the paper's tables, for every K and on average."""
    rows = []
    for model, (stem, _) in GAINS.items():
        gained = gains(model)
        each = ", ".join(f"{gain:.2f} (K = {k})".replace("-", "\N{MINUS SIGN}") for k, gain in gained.items())
        before = paper_value(f"{stem}-sft")
        rows.append({"model": model, "before (%)": before, "gains (points)": each, "mean gain": gained.mean()})
    return pd.DataFrame(rows)


def policy_recipes() -> pd.DataFrame:
    """Recipes of policy gradients: the paper's text, its public code, and both recipes of this book.

    Where the file names a field of our recipes, the last column is read from them.
    """
    table = pd.read_csv(Path(__file__).with_name("grpo_mts_recipes.csv"), dtype=str, keep_default_na=False)
    chosen = lambda field: " / ".join(f"{getattr(own, field):g}" for own in POLICIES.values())
    here = [chosen(field) if field else said for field, said in zip(table.pop("field"), table.pop("here"))]
    return table.assign(**{f"here ({' / '.join(map(recipe, POLICIES))})": here})
