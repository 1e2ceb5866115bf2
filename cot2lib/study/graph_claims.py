"""Measurements beside the claims on questions about graphs (chapters `prosqa` and `prontoqa`).

ProsQA is judged on graphs of at most 19 names that are ages: as many as the paper's vocabulary holds, named as the
published files name them. ProntoQA is judged as the paper reads it. The paper states half of its recipe for graphs: no
decay, and nothing of dropout. An accuracy answers two questions: does that half give it, and can the method reach it?
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pandas as pd

from cot2lib import runs
from cot2lib.specs import RunSpec
from cot2lib.study import graph_runs, measured
from cot2lib.study.comparisons import Cell, Direction, against
from cot2lib.study.graph_runs import D_MODELS, KS, SWEEP, TASKS
from cot2lib.study.kinds import SETTLED, Kind, Number, accuracy
from cot2lib.study.passk import TEMPERATURES
from cot2lib.study.readings import HalfStated
from cot2lib.study.samples import Sample, recorded, tabled, trained

METHODS = {"cot2": "cot2", "coconut": "coconut", "discrete": "discrete", "nocot": "no-cot"}
STARTS = ("cot2", "discrete")
FEW = 5  # samples that a majority of few has
UNSTATED = "our graphs and 50 passes stand for the paper's"
CODED = "our graphs, 50 passes and the decay and dropout of the code for numbers stand for the paper's"
CHANCE = 0.5  # of a guess between two options
OURS = "starts of our recipe stand for the paper's"
HALF = "the paper states half of the recipe"
MANY = f"many is more than {FEW}"


@cache
def prosqa(method: str, d_model: int = 32) -> Sample:
    """ProsQA with at most 19 names that are ages, as in the published files."""
    return recorded(lambda profile, seeds: graph_runs.dimension(profile, seeds, (d_model,), (method,)))


@cache
def stated(task: str, method: str) -> Sample:
    """The half of the recipe that the paper states: neither decay nor dropout; d = 32."""

    def sweep(profile: str, seeds: Sequence[int]) -> list[RunSpec]:
        if profile != SETTLED:
            return []
        if task == "ProntoQA":
            return graph_runs.bare_answering(seeds, (method,))
        return graph_runs.bare(seeds, ("age",), (method,))

    return recorded(sweep)


@cache
def prontoqa(method: str, d_model: int = 32) -> Sample:
    """ProntoQA as the paper reads it: whether a property is reached."""
    return recorded(
        lambda profile, seeds: graph_runs.dimension(profile, seeds, (d_model,), (method,), graph_runs.REACHED)
    )


@cache
def _policy(task: str, method: str, k: int) -> Sample:
    """MTS of K tokens from our recipe's CoT2 or discrete CoT; by the own sampler `gain` is the last evaluation less
    the first."""
    asked = lambda profile, seeds: graph_runs.rewarded(profile, seeds, (method,), (k,), (task,))

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows = recorded(asked)(profile, seeds)
        if rows.empty:
            return rows
        points = runs.curves([run for run in asked(profile, seeds) if run.id in set(rows["id"])])
        return rows.assign(gain=rows["last"] - points.sort_values("step").groupby("seed")["accuracy"].first())

    return sample


@cache
def _start(task: str, method: str) -> Sample:
    """The starts of those, under every profile."""
    return recorded(lambda profile, seeds: graph_runs.starts(task, seeds, (method,)))


@cache
def _votes(task: str, method: str, temperature: float, k: int) -> Sample:
    """Maj@k and Pass@k (%) on graphs."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        models = graph_runs.voting(profile, seeds, (method,), (task,))
        return tabled(measured.read("votes", profile), models, temperature, k)

    return sample


def _above(cot2: Sample, discrete: Sample) -> list[Cell]:
    """CoT2 above discrete CoT at the end, and on average over the training."""
    return [against(cot2, discrete, column) for column in ("last", "curve_mean")]


def _answered(task: str, method: str, sample: Sample) -> HalfStated:
    """Accuracy by the half of the recipe that is stated, and by ours."""
    number = lambda measured: replace(accuracy(measured, 5, SWEEP), given=UNSTATED, chance=CHANCE)
    return HalfStated(number(stated(task, method)), replace(number(sample), given=""))


def _before(task: str, start: str) -> Number:
    """Accuracy of what policy gradients start from."""
    return Number(SWEEP, _start(task, start), 1, untested=HALF)


def _after(task: str, start: str, k: int) -> Number:
    """Accuracy after policy gradients by the own sampler; the paper takes the best epoch."""
    columns = dict(best="best", split_half="split_half", judged="best")
    return Number(SWEEP, _policy(task, start, k), 1, **columns, untested=HALF)


def _beats_votes(task: str) -> Direction:
    """CoT2's one answer is right more often than the majority of few answers of discrete CoT."""
    few = {t: _votes(task, "discrete", t, FEW if t else 1) for t in TEMPERATURES}
    single = _votes(task, "cot2", 0.0, 1)
    return Direction(
        SWEEP, [Cell(single, "pass_at_k", few[t], "maj_at_k") for t in TEMPERATURES], scale=1.0, given=MANY
    )


LARGE = D_MODELS[1:]  # at least one of them is above a threshold that the paper's figure can show
LARGER = [
    against(_policy(task, start, more), _policy(task, start, less), "best")
    for task in TASKS
    for start in STARTS
    for less, more in pairwise(KS)
]


SEARCHING: dict[str, Kind] = {
    "csft-above-coconut": Direction(
        f"csft {SWEEP}",
        [
            against(trained("cot2"), trained("coconut-slot")),  # on MNNS, as `main-mnns-coconut`
            *(against(stated(task, "cot2"), stated(task, "coconut")) for task in TASKS),
        ],
        given=UNSTATED,
    ),
    **{f"main-prosqa-{name}": _answered("ProsQA", method, prosqa(method)) for name, method in METHODS.items()},
    **{f"main-prontoqa-{name}": _answered("ProntoQA", method, prontoqa(method)) for name, method in METHODS.items()},
    "convergence-prosqa": Direction(
        SWEEP,
        [cell for d in D_MODELS for cell in _above(prosqa("cot2", d), prosqa("discrete", d))],
        given=CODED,
    ),
    "convergence-prontoqa": Direction(
        SWEEP,
        [cell for d in LARGE for cell in _above(prontoqa("cot2", d), prontoqa("discrete", d))],
        given=f"d = 32 and 40 are above the threshold, and {CODED}",
    ),
    **{f"grpo-{task.lower()}-{start}-sft": _before(task, start) for task in TASKS for start in STARTS},
    **{f"grpo-{task.lower()}-{start}-k{k}": _after(task, start, k) for task in TASKS for start in STARTS for k in KS},
    "k-larger-better-qa": Direction(SWEEP, LARGER, given=OURS),
    "rl-helps-discrete-more": Direction(
        SWEEP,
        [against(_policy(task, "discrete", k), _policy(task, "cot2", k), "gain") for task in TASKS for k in KS],
        given=f"{OURS}, and gains are by the own sampler",
    ),
    **{f"majk-{task.lower()}": _beats_votes(task) for task in TASKS},
}
