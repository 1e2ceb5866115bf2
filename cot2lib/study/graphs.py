"""What both chapters on graphs, `prosqa` and `prontoqa`, read, draw and tabulate."""

from collections.abc import Mapping, Sequence

import pandas as pd

from cot2lib import runs
from cot2lib.runs.records import Tables
from cot2lib.specs import Run, RunSpec
from cot2lib.study import frame, graph_runs, look, measured, policies, show, sweeps
from cot2lib.study.printed import paper_value
from cot2lib.study.report import PERCENT, RECIPES
from cot2lib.tasks.prontoqa import TWINS

BARE = "authors' recipe, no dropout or decay"  # the text states neither for graphs
OURS, THEIRS = RECIPES["quick"], RECIPES["paper"]
CLAIMED = {"CoT2": "cot2", "COCONUT": "coconut", "discrete CoT": "discrete", "no-CoT": "nocot"}
SIDES = ("CoT2", "discrete CoT")
Requests = dict[str, Sequence[RunSpec]]  # runs by profile


def stated(task: str, method: str, asked: str = "") -> float | None:
    """Return the paper's accuracy (%) of a method on a task, or None; the control (`asked`) is not in the paper."""
    known = method in CLAIMED and asked != TWINS
    return paper_value(f"main-{task.lower()}-{CLAIMED[method]}") if known else None


def read(requests: Mapping[str, Sequence[RunSpec]], retrained: str | None = None) -> Tables:
    """Read tidy rows and curves with columns that describe their graphs; arguments and errors as `frame.read`."""
    specs = [run for part in requests.values() for run in part]
    rows, curves = frame.read(requests, retrained)
    return described(rows, specs), described(curves, specs)


def recorded(specs: Sequence[RunSpec], retrain: bool = False) -> pd.DataFrame:
    """Return tidy rows of the recorded runs among `specs`, with columns that describe their graphs."""
    return described(frame.tidy(runs.recorded(specs, retrain)), specs)


def described(rows: pd.DataFrame, specs: Sequence[Run]) -> pd.DataFrame:
    """Return the rows of some runs, by id, with columns that describe runs and graphs."""
    known = pd.DataFrame([
        {"id": spec.id, "naming": spec.task.naming, "reading": getattr(spec.task, "reading", None)}
        | {name: value for name, value in spec.columns().items() if name in ("method", "d_model", "heads", "seed")}
        for spec in dict.fromkeys(specs)
    ])  # fmt: skip
    found = rows.drop(columns=[*set(rows) & set(known) - {"id"}]).merge(known, on="id")
    return found.assign(
        **{name: frame.ordered(found[name], frame.ORDER[name]) for name in ("method", "naming", "reading")}
    )


def tested(name: str, specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Return the shipped rows (%) of `cot2 measure NAME` for some runs, with columns that describe their graphs."""
    table = measured.read(name)
    shares = [column for column in table if column in ("strict", "pair") or column[-1].isdigit()]
    return described(table.assign(**PERCENT * table[shares]), specs)


def gaps(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return CoT2 minus discrete CoT, paired by seed, as `show.gaps`."""
    return show.gaps(rows, by, "method", *SIDES)


# Methods, and dimensions


def methods(rows: pd.DataFrame, x: str, task: str) -> look.Shown:
    """Draw the accuracy of each method by recipe and by naming or reading; black bars are the paper's."""
    first = gaps(frame.at(rows, recipe=OURS), [x]).iloc[0]
    words = frame.called(x, first[x])
    finding = "CoT2 is {told} discrete CoT by our recipe: {above:.0f} against {below:.0f} % ({where})."
    finding = finding.format(where=f'"{words}"' if words.endswith("?") else words, **first)
    return look.ends(rows, x=x, paper=lambda method, place: stated(task, method, place), finding=finding)


def dimensions(rows: pd.DataFrame, curves: pd.DataFrame) -> look.Shown:
    """Draw learning curves of both methods over dimensions; the finding has CoT2's lead at the largest, by OURS."""
    widest = gaps(frame.at(rows, recipe=OURS), ["d_model"]).tail(1)
    finding = show.finding(widest, "CoT2 ends {told} discrete CoT at d = {d_model} by our recipe.")
    return look.curves(curves, finding=finding)


# Votes


def votes(task: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Return right majorities (%) of k samples on a task, in `right`: a row for each run, temperature and k.

    CoT2 answers once, at temperature 0. A line of the figure is named in `answers`. ProsQA has runs on all hops, too.
    """
    asked = [(name, RECIPES[name], graph_runs.voting(task, name, seeds)) for name in RECIPES]
    if task == "ProsQA":
        whole = [graph_runs.whole(method, seed) for method in graph_runs.BOTH for seed in seeds]
        asked.append(("quick", f"{OURS} on all hops", whole))
    parts = [described(measured.read("votes", name), specs).assign(recipe=words) for name, words, specs in asked]
    rows = pd.concat(parts, ignore_index=True)
    once = rows["method"] == SIDES[0]
    drawn = rows["temperature"].map("discrete CoT, T = {:g}".format).mask(once, "CoT2, one answer")
    rows = rows.assign(right=rows["maj_at_k"].mask(once, rows["pass_at_k"]), answers=drawn)
    rows = rows.assign(recipe=frame.ordered(rows["recipe"], frame.ORDER["recipe"]))
    return rows[~once | (rows["temperature"] == 0)]


def vote_curves(rows: pd.DataFrame) -> look.Shown:
    """Draw `votes` over the number of samples, a panel for each recipe."""
    most = frame.at(rows, recipe=OURS, k=rows["k"].max())
    best = show.groups(most, ["method", "temperature"])["right"].mean().groupby("method", observed=True).max()
    finding = (
        f"Votes of {rows['k'].max()} chains are right on at most {best['discrete CoT']:.0f} % of questions, "
        f"CoT2 on {best['CoT2']:.0f} % ({OURS}, means)."
    )
    labels = ("samples k", "right majorities (%)")
    return look.curves(rows, hue="answers", col="recipe", x="k", y="right", labels=labels, finding=finding)


# Reward


def rewarded(task: str, seeds: Sequence[int]) -> pd.DataFrame:
    """Return `policies.outcomes` of the runs of policy gradients on a task."""
    requests = {name: sweeps.sweep(f"{task.lower()}_mts", name, seeds) for name in RECIPES}
    return policies.outcomes(policies.evaluations(requests))


def rewards_table(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """Tabulate accuracy (%) before and after reward by start, K and recipe: the paper's, and ours by sampled thoughts;
    gains of the last evaluation by each decoder, paired by seed. The paper prints the best epoch."""
    by, means = ["started", "k", "recipe"], {"own_before": "ours before", "own_best": "best"}
    gains = {f"{name}_gain": f"gain, {name}" for name in policies.DECODERS}
    table = show.groups(rows, by)[[*means]].agg(show.mean_of).rename(columns=means)
    table = table.join(show.groups(rows, by)[[*gains]].agg(policies.differences).rename(columns=gains))
    claimed = lambda start, after: paper_value(f"grpo-{task.lower()}-{CLAIMED[start]}-{after}")
    pairs = [(claimed(start, "sft"), claimed(start, f"k{k:g}")) for start, k, _ in table.index]
    table.insert(0, "the paper", [f"{one:.2f} \N{RIGHTWARDS ARROW} {other:.2f}" for one, other in pairs])
    return show.headed(table)
