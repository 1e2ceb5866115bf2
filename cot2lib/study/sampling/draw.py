"""Figures and tables of the chapter `sampling`: Pass@k, Maj@k and their costs, and other ways to feed one trace."""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from cot2lib.passk import MOST
from cot2lib.study import look, show
from cot2lib.study.frame import at, called, ordered
from cot2lib.study.look import PAPER, Shown, panels
from cot2lib.study.printed import paper_value
from cot2lib.study.report import RECIPES
from cot2lib.study.sampling.measure import sampled, varied
from cot2lib.study.series import LOOKS, told_apart

POINT = ["recipe", "temperature", "tries"]  # columns of a point of a Pass@k curve
AS_OFTEN, ONE_TRACE = "CoT2 sampled as often", "one greedy CoT2 trace"
COSTS = {"positions": "positions computed per prompt", "ratio": "time (one CoT2 trace = 1)"}
COUNTED = {"pass_at_k": "discrete CoT, Pass@k", "maj_at_k": "discrete CoT, Maj@k"}


def stated(temperature: float, tries: int) -> float:
    """The paper's discrete Pass@k (%)."""
    return paper_value(f"passk-discrete-t{temperature:.1f}-k{tries}")


# Many samples


def greedy(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one greedy CoT2 trace."""
    return at(rows, method="CoT2", temperature=0.0, tries=1)


def above(rows: pd.DataFrame, base: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """How far each group of rows is above the base rows of its models, paired by seed (`show.gaps`).

    The first column of `by` tells models apart, whose rows the base has once for each seed.
    """
    names = [by[0], "seed"]
    beside = rows.drop(columns=value).merge(base[[*names, value]], on=names)
    both = pd.concat([rows.assign(side="own"), beside.assign(side="base")], ignore_index=True)
    return show.gaps(both, by, "side", "own", "base", value)


def beside_one_trace(rows: pd.DataFrame) -> pd.DataFrame:
    """How far discrete Pass@k is above one greedy CoT2 trace, at each `POINT`."""
    return above(at(rows, method="discrete CoT"), greedy(rows), POINT, "pass_at_k")


def pass_at_k(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Pass@k by k, a row of panels per recipe and one per temperature: thin lines are models, thick ones their mean.

    Short marks are the paper's discrete values, a dotted line its one CoT2 accuracy.
    """
    line = lambda method, temperature: paper_value("passk-cot2") if method == "CoT2" else None
    labels = ("k", "Pass@k (%)")
    shown = look.curves(rows, "method", "temperature", line, finding, "tries", "pass_at_k", labels)
    temperatures, ks = sorted(rows["temperature"].unique()), range(1, MOST + 1)
    for place, axis in enumerate(shown.figure.axes):
        said = [stated(temperatures[place % len(temperatures)], k) for k in ks]
        axis.scatter(ks, said, s=60, **PAPER | {"linewidths": 1.4, "color": "#8a3b00"})
        axis.axhline(paper_value("passk-cot2"), color="#00406b", linewidth=1.2, linestyle=":")
        axis.set_xticks([1, 5, 10, 14])
    return shown


def pass_table(rows: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """Pass@k (%) by recipe, method, temperature and sampling, and discrete Maj@k for the last k, with intervals."""
    parts = [at(rows, tries=k).assign(counted=f"Pass@{k}", share=lambda part: part["pass_at_k"]) for k in ks]
    parts.append(at(rows, tries=ks[-1]).assign(counted=f"Maj@{ks[-1]}", share=lambda part: part["maj_at_k"]))
    long = pd.concat(parts).dropna(subset="share")
    long["counted"] = ordered(long["counted"])
    table = show.cells(long, ["recipe", "method", "temperature", "top_k"], "counted", "share", show.mean_of)
    return table.rename(columns={"top_k": "sampled from"})


def overtaking(rows: pd.DataFrame, one: pd.DataFrame) -> pd.DataFrame:
    """From which k on mean discrete Pass@k is above CoT2: the paper's, and ours above one trace or as many.

    Args:
        rows: the Pass@k rows.
        one: `beside_one_trace` of them.
    """
    often = show.gaps(rows, POINT, "method", "discrete CoT", "CoT2", "pass_at_k")
    places = one[["temperature", "tries"]].drop_duplicates()
    lead = [stated(*place) - paper_value("passk-cot2") for place in places.itertuples(index=False)]
    paper = places.assign(recipe="paper", against="its level CoT2 line", mean=lead)
    leads = pd.concat([paper, one.assign(against=ONE_TRACE), often.assign(against=AS_OFTEN)])
    leads["recipe"] = ordered(leads["recipe"], ("paper", *RECIPES.values()))
    leads["against"] = ordered(leads["against"])
    table = show.cells(leads.set_index("tries"), ["recipe", "against"], "temperature", "mean", first)
    return table.rename(columns={"recipe": "numbers", "against": "discrete samples against"})


def first(leads: pd.Series) -> str:
    """The k from which on all leads, by k, are above 0, or "never"."""
    behind = leads.index[leads <= 0]
    start = 1 if behind.empty else int(behind.max()) + 1
    return str(start) if start <= leads.index.max() else "never"


# Costs


def cost_curves(rows: pd.DataFrame, spent: pd.DataFrame, temperature: float, finding: str = "") -> Shown:
    """Accuracy against positions computed per prompt, and against measured time in units of one CoT2 trace.

    Args:
        rows: Pass@k rows of one recipe.
        spent: `rollout_costs`.
        temperature: of the discrete samples.
        finding: what the figure shows.
    """
    discrete = at(rows, method="discrete CoT", temperature=temperature).rename(columns=COUNTED)
    names = ["method", "tries", "seed"]
    long = discrete.melt(names, [*COUNTED.values()], "counted", "accuracy")
    one = greedy(rows).assign(counted="CoT2, one trace", accuracy=lambda part: part["pass_at_k"])
    data = pd.concat([long, one[long.columns]]).merge(spent, on=["method", "tries"])
    figure, axes = panels(1, 2, width=8.4, height=3.1, sharey=True)
    for axis, (column, label) in zip(axes[0], COSTS.items()):
        seeds_and_means(axis, data, column, "counted", legend=axis is axes[0, 1])
        axis.axhline(one["accuracy"].mean(), color=LOOKS["counted"]["CoT2, one trace"][0], linewidth=1.0)
        axis.set(xlabel=label, ylabel=f"validation accuracy (%), T = {temperature:g}")
    return Shown(figure, data[["counted", "tries", "seed", *COSTS, "accuracy"]], finding)


def seeds_and_means(axis: Axes, data: pd.DataFrame, x: str, hue: str, legend: bool = False) -> None:
    """Accuracies as dots, one a run, and a line through the means of each value of `hue`."""
    data, apart = told_apart(data, hue)
    options = {"x": x, "y": "accuracy", "ax": axis} | {name: apart[name] for name in ("hue", "palette", "hue_order")}
    sns.scatterplot(data, s=12, alpha=0.5, linewidth=0, legend=False, **options)
    looks = {"style": "series", "style_order": apart["hue_order"], "dashes": apart["dashes"]}
    sns.lineplot(data, errorbar=None, markers=apart["markers"], markersize=5, legend=legend, **looks, **options)
    axis.set_ylim(0, 102)
    if legend:
        axis.legend(loc="lower right", frameon=False)


def crossing_costs(one: pd.DataFrame, spent: pd.DataFrame) -> pd.DataFrame:
    """Costs of discrete samples where their mean Pass@k passes one greedy CoT2 trace, else of the most samples.

    Args:
        one: `beside_one_trace` of one recipe.
        spent: `rollout_costs`.

    Rows of `one`, a temperature above 0 each, with `dearer` (positions beside one trace) and `ratio` (of the time).
    """
    warm = one[one["temperature"] > 0].set_index("tries")
    passed = warm.groupby("temperature")["mean"].agg(first).replace("never", str(warm.index.max()))
    rows = warm.reset_index().merge(passed.astype(int).rename("tries").reset_index(), on=["temperature", "tries"])
    known = at(spent, method="discrete CoT").drop(columns="method")
    trace = at(spent, method="CoT2")["positions"].iloc[0]
    return rows.merge(known.assign(dearer=known["positions"] / trace), on="tries").sort_values("temperature")


# One trace, fed in other ways

SHARPER = {  # fields of a base thought, in words
    "temperature": "temperature of the thoughts",
    "threshold": "threshold of the thoughts",
    "top": "tokens that are kept",
}


def other_thoughts(rows: pd.DataFrame) -> pd.DataFrame:
    """How far models are above their trained thoughts with each other temperature, threshold or `top`, by layers."""
    others = rows[rows["temperature"].ne(1) | rows["threshold"].ne(0) | rows["top"].ne(0)]
    return above(others, varied(rows), ["layers", "temperature", "threshold", "top"], "accuracy")


def told(gaps: pd.DataFrame, template: str) -> str:
    """`show.finding` with the kind of model in words."""
    return show.finding(gaps.assign(layers=[called("layers", layers) for layers in gaps["layers"]]), template)


def sharpened(rows: pd.DataFrame, gained: pd.DataFrame) -> Shown:
    """Accuracy over temperature, threshold and number of tokens of the thoughts, a line per kind of model; dots are
    seeds.

    `gained` is `other_thoughts` of the rows.
    """
    asked = [field for field in SHARPER if varied(rows, field)[field].nunique() > 1]
    figure, axes = panels(1, len(asked), width=3.3 * len(asked), height=3.0, sharey=True)
    for axis, field in zip(axes[0], asked):
        drawn = varied(rows, field)
        seeds_and_means(
            axis, drawn[drawn[field] > 0] if field == "top" else drawn, field, "layers", axis is axes[0, 0]
        )
        axis.set(xlabel=SHARPER[field], ylabel="validation accuracy (%)")
        if field == "top":
            axis.set_xscale("log", base=2)
            axis.set_xticks(counts := sorted(set(drawn[field]) - {0}), [f"{count:g}" for count in counts])
    best = gained.sort_values("mean").groupby("layers").tail(1).sort_values("layers")
    best = best.assign(kept=best["top"].map("the {:g} likeliest tokens".format).mask(best["top"] == 0, "all tokens"))
    others = "the best other thoughts (temperature {temperature:g}, threshold {threshold:g}, {kept})"
    finding = told(best, f"With {{layers}} {others} are {{told}} the trained ones.")
    return Shown(figure, rows[["layers", "d_model", *SHARPER, "seed", "accuracy"]], finding)


def fewer_tokens(rows: pd.DataFrame) -> pd.DataFrame:
    """How far models that are fed K sampled tokens are above the same models fed their whole mixtures."""
    return above(sampled(rows), varied(rows), ["layers", "k"], "accuracy")


def sampled_thoughts(rows: pd.DataFrame, few: pd.DataFrame) -> Shown:
    """Accuracy over K if thoughts are means of K sampled tokens; level lines are models fed their whole mixtures.

    `few` is `fewer_tokens` of the rows.
    """
    figure, axes = panels(1, 1, width=6.0, height=3.0)
    axis, drawn = axes[0, 0], sampled(rows)
    seeds_and_means(axis, drawn, "k", "layers", legend=True)
    for layers, mean in varied(rows).groupby("layers")["accuracy"].mean().items():
        axis.axhline(mean, color=LOOKS["layers"][layers][0], linestyle="--", linewidth=0.8)
    ks = sorted(drawn["k"].unique())
    axis.set_xscale("log", base=2)
    axis.set_xticks(ks, [str(k) for k in ks])
    axis.set(xlabel="tokens K sampled per thought", ylabel="validation accuracy (%)")
    finding = told(at(few, k=ks[0]), "With {layers}, thoughts of K = {k} are {told} whole distributions.")
    return Shown(figure, rows[["layers", "d_model", "sampler", "k", "seed", "accuracy"]], finding)
