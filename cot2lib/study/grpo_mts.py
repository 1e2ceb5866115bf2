"""The chapter `grpo_mts`: multi-token sampling beside the paper's numbers, and what explains its Table 1.

`rows` are of `cot2lib.study.policies.outcomes`, a row for each run.
"""

from pathlib import Path

import pandas as pd

from cot2lib.specs.profiles import POLICIES
from cot2lib.study import policies
from cot2lib.study.frame import at, ordered
from cot2lib.study.look import Shown
from cot2lib.study.printed import GAINS, gains, paper_value
from cot2lib.study.report import ends, recipe
from cot2lib.study.sweeps import KS, RATES, STEPS

MEASURES = {  # of an explanation: the part of the paper's table, and its name where something is predicted of it
    "best": ("accuracies", "best epoch (%)"),
    "gain": ("gains", "gain over greedy decoding (points)"),
    **{f"entropy_{token}": ("entropies", "") for token in STEPS[:-1]},
    f"entropy_{STEPS[-1]}": ("entropies", "entropy of the answer (nat)"),
}


def claimed(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the paper's claims about them, as `policies.claimed`."""
    dimension = "grpo-mts-d" + rows["d_model"].astype(str)
    return policies.claimed(rows, dimension + "-k" + rows["k"].astype(str), dimension + "-sft")


def entropies(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Entropy of each step's distribution, a row of panels per recipe, before and after apart."""
    long = policies.by_token(rows)
    panel = long["d_model"].map("d = {}, ".format) + long["when"].astype(str)
    known = tuple(f"d = {d}, {when}" for d in sorted(rows["d_model"].unique()) for when in ("before", "after"))
    return policies.entropies(long.assign(panel=ordered(panel, known)), "k", "panel", finding, height=2.1)


# Explanations of the paper's Table 1: what each predicts of runs on the paper's split, and what came out


def predicted() -> pd.DataFrame:
    """A row for each explanation, dimension and measure: between which values every run is to lie that stands.

    The file was committed before the runs that it speaks of, but for those of seed 42 at d = 32 as stated.
    """
    return pd.read_csv(Path(__file__).with_name("grpo_mts_predicted.csv"))


def standing(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each explained run and measure in `value`, and the paper's in `paper`.

    Runs that collapse are left out: they answer one thing to everything. The paper's start is decoded greedily.
    """
    kept = rows[~rows["collapsed"].astype(bool)]
    kept = kept.assign(best=kept["own_best"], gain=kept["own_best"] - kept["discrete_before"])
    named = kept.merge(predicted()[["explanation", "dropout", "lr"]].drop_duplicates())
    long = named.melt(["explanation", "d_model", "k", "seed"], [*MEASURES], "measure")
    return long.assign(paper=[paper_measure(*place) for place in zip(long["measure"], long["d_model"], long["k"])])


def paper_measure(measure: str, d_model: int, k: int) -> float:
    """The paper's value of a measure."""
    claim = f"grpo-mts-d{d_model}-k{k}"
    if measure.startswith("entropy"):
        return paper_value(f"{claim}-{measure.replace('_', '')}")
    return paper_value(claim) - (paper_value(f"grpo-mts-d{d_model}-sft") if measure == "gain" else 0)


def fits(long: pd.DataFrame) -> pd.DataFrame:
    """Counts of the paper's accuracies, gains and entropies after training that lie among the runs of `standing`.

    A row for each explanation and dimension, those too of which nothing was predicted.
    """
    by = ["explanation", "d_model"]
    cells = long.groupby([*by, "measure", "k"]).agg(
        low=("value", "min"), high=("value", "max"), paper=("paper", "first")
    )
    cells = cells.assign(among=cells["paper"].between(cells["low"], cells["high"])).reset_index()
    part = cells["measure"].map(lambda measure: MEASURES[measure][0])
    counts = cells.groupby([*by, part])["among"].agg(policies.how_many).unstack()
    counts.insert(0, "runs", at(long, measure="best").groupby(by).size())
    return counts[["runs", "accuracies", "gains", "entropies"]]


def predictions_table(long: pd.DataFrame) -> pd.DataFrame:
    """Each prediction, the range of the runs of every K that has some, how many keep to it, and the paper's values."""
    told = []
    for one in predicted().itertuples():
        part = at(long, explanation=one.explanation, d_model=one.d_model, measure=one.measure)
        digits = 2 if one.measure.startswith("entropy") else 1
        row = {"explanation": one.explanation, "d": one.d_model, "measure": MEASURES[one.measure][1]}
        row |= {"predicted": f"{one.low:g} to {one.high:g}"}
        row |= {f"K = {k}": ends(at(part, k=k)["value"], digits) for k in KS}
        row |= {"as predicted": policies.how_many(part["value"].between(one.low, one.high))}
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
    of = lambda field, profile: RATES[field][profile] if field in RATES else getattr(POLICIES[profile], field)
    chosen = lambda field: " / ".join(f"{of(field, profile):g}".replace("e-0", "e-") for profile in POLICIES)
    here = [chosen(field) if field else said for field, said in zip(table.pop("field"), table.pop("here"))]
    return table.assign(**{f"here ({' / '.join(map(recipe, POLICIES))})": here})
