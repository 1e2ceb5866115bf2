"""Runs on graphs as the chapters `prosqa` and `prontoqa` read, draw and tabulate them.

A tested model answers graphs that are told apart by `test` (`cot2lib.study.graph_tests`).
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from cot2lib.runs.records import Tables
from cot2lib.specs import Run, RunSpec
from cot2lib.study import frame, graph_runs, graph_tests, look, measured, policies, show
from cot2lib.study.printed import paper_value
from cot2lib.study.report import PERCENT, RECIPES
from cot2lib.tasks.prontoqa import TWINS
from cot2lib.tasks.reachability import MOST_HOPS

BARE = "authors' recipe, no dropout or decay"  # the text states neither for graphs
CLAIMED = {"CoT2": "cot2", "COCONUT": "coconut", "discrete CoT": "discrete", "no-CoT": "nocot"}
SIDES = ("CoT2", "discrete CoT")
MASSES = ("in_time", "frontier", "unreached")


def stated(task: str, method: str, asked: str = "") -> float | None:
    """The paper's accuracy (%) of a method on a task, where it gives one; the control (`asked`) is not the paper's."""
    known = method in CLAIMED and asked != TWINS
    return paper_value(f"main-{task.lower()}-{CLAIMED[method]}") if known else None


def read(requests: Mapping[str, Sequence[RunSpec]], retrained: str | None = None) -> Tables:
    """Tidy rows and curves with what tells their graphs apart; arguments and errors as `frame.read`."""
    specs = [run for part in requests.values() for run in part]
    rows, curves = frame.read(requests, retrained)
    return described(rows, specs), described(curves, specs)


def described(rows: pd.DataFrame, specs: Sequence[Run]) -> pd.DataFrame:
    """The rows of some runs, by id, with the columns that tell runs and their graphs apart."""
    known = pd.DataFrame([_told(spec) for spec in dict.fromkeys(specs)])
    found = rows.drop(columns=[*set(rows) & set(known) - {"id"}]).merge(known, on="id")
    return found.assign(
        **{name: frame.ordered(found[name], frame.ORDER[name]) for name in ("method", "naming", "reading")}
    )


def _told(spec: Run) -> dict[str, object]:
    fields, task = spec.columns(), spec.task
    graphs = {"task": type(task).__name__, "names": task.names, "naming": task.naming}
    graphs["reading"] = getattr(task, "reading", None)
    return {"id": spec.id} | {name: fields[name] for name in ("method", "d_model", "heads", "seed")} | graphs


def tested(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Answers and thoughts of our recipe's runs on test graphs (%), a row for each run and test."""
    table = measured.read("searched")
    shares = [name for name in table if name in ("strict", "pair") or name.rpartition("_")[0] in MASSES]
    test = frame.ordered(table["test"], graph_tests.ORDER)
    return described(table.assign(**PERCENT * table[shares], test=test), specs)


def held(rows: pd.DataFrame) -> pd.DataFrame:
    """Share (%) of each thought on three kinds of nodes: a row for each of `tested`, kind and hop."""
    parts = [
        rows.assign(held=kind, hop=hop, share=rows[f"{kind}_{hop}"])
        for kind in MASSES
        for hop in range(1, MOST_HOPS + 1)
        if f"{kind}_{hop}" in rows
    ]
    return pd.concat(parts).dropna(subset="share").assign(recipe=RECIPES["quick"])


def hops(rows: pd.DataFrame) -> look.Shown:
    """Share of a thought on three kinds of nodes after each hop, a panel for each method; thin lines are seeds."""
    labels = ("hop", "share of the thought (%)")
    thinking = held(rows)
    thinking = thinking.assign(method=thinking["method"].cat.remove_unused_categories())
    shares = frame.at(thinking, held="frontier").groupby("method", observed=True)["share"].mean()
    told = ", ".join(f"of {name} {share:.0f} %" for name, share in shares.items())
    finding = f"Over all hops the frontier holds, of the thoughts {told}."
    return look.curves(thinking, hue="held", col="method", x="hop", y="share", labels=labels, finding=finding)


def votes(task: str, seeds: Sequence[int], more: Mapping[str, Sequence[RunSpec]] | None = None) -> pd.DataFrame:
    """Right majorities (%) of k samples on a task, in `right`: a row for each run, temperature and k.

    CoT2 answers once, at temperature 0. A line of the figure is named in `answers`.

    Args:
        task: which.
        seeds: of the runs.
        more: other runs by our recipe, by what stands in the place of the recipe.
    """
    asked = [(name, RECIPES[name], graph_runs.voting(name, seeds, tasks=(task,))) for name in RECIPES]
    asked += [("quick", told, specs) for told, specs in (more or {}).items()]
    parts = [described(measured.read("votes", name), specs).assign(recipe=told) for name, told, specs in asked]
    rows = pd.concat(parts, ignore_index=True)
    once = rows["method"] == SIDES[0]
    drawn = rows["temperature"].map("discrete CoT, T = {:g}".format).mask(once, "CoT2, one answer")
    rows = rows.assign(right=rows["maj_at_k"].mask(once, rows["pass_at_k"]), answers=drawn)
    rows = rows.assign(recipe=frame.ordered(rows["recipe"], frame.ORDER["recipe"]))
    return rows[~once | (rows["temperature"] == 0)]


def vote_curves(rows: pd.DataFrame, finding: str = "") -> look.Shown:
    """`votes` over the number of samples, a panel for each recipe."""
    labels = ("samples k", "right majorities (%)")
    return look.curves(rows, hue="answers", col="recipe", x="k", y="right", labels=labels, finding=finding)


def vote_gaps(rows: pd.DataFrame) -> pd.DataFrame:
    """How far CoT2's one answer is above the majority of most chains (means, %), by recipe and temperature."""
    most = show.groups(rows[rows["k"] == rows["k"].max()], ["recipe", "method", "temperature"])["right"].mean()
    once, voted = (most.xs(method, level="method") for method in SIDES)
    found = voted.rename("voted").reset_index()
    found["once"] = found["recipe"].map(once.droplevel("temperature")).astype(float)
    return found.assign(ahead=found["once"] - found["voted"])


def over_dimensions(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies (%) of both methods at the end by dimension and recipe, and by how much CoT2 is above: at the end,
    and on average over the training."""
    by = ["d_model", "recipe"]
    table = show.cells(rows, by, "method")
    for heading, value in (("CoT2 above by", "last"), ("on average over training", "curve_mean")):
        table = table.merge(show.gap_table(rows, by, "method", {heading: SIDES}, value), how="left")
    return table


def rewarded(task: str, seeds: Sequence[int]) -> tuple[dict[str, Sequence[Run]], pd.DataFrame]:
    """Runs of policy gradients on a task by profile, and their `policies.outcomes`."""
    requests = {name: graph_runs.rewarded(name, seeds, tasks=(task,)) for name in RECIPES}
    return requests, policies.outcomes(policies.evaluations(requests))


def gains_table(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Accuracy (%) before reward and at its best by the own sampler, and gains of the last evaluation by each decoder,
    of what columns tell apart."""
    told = {"own_before": "ours before", "own_best": "best"}
    gains = {f"{name}_gain": f"gain, {name}" for name in policies.DECODERS}
    cut = show.groups(rows, by)[[*told]].agg(show.mean_of).rename(columns=told)
    free = show.groups(rows, by)[[*gains]].agg(lambda values: show.mean_of(values, -PERCENT)).rename(columns=gains)
    return cut.join(free)


def rewards_table(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """Accuracy (%) before and after reward by start, K and recipe: the paper's, and ours by the own sampler; gains of
    the last evaluation by each decoder, paired by seed. The paper prints the best epoch."""
    table = gains_table(rows, ["started", "k", "recipe"])
    claimed = lambda start, after: f"grpo-{task.lower()}-{CLAIMED[start]}-{after}"
    pairs = [(claimed(start, "sft"), claimed(start, f"k{k:g}")) for start, k, _ in table.index]
    table.insert(
        0, "the paper", [f"{paper_value(one):g} \N{RIGHTWARDS ARROW} {paper_value(other):g}" for one, other in pairs]
    )
    return show.headed(table)
