"""Runs that separate labels from fed mixtures: controls of CSFT at equal examples, updates and passes.

A control is CSFT with other targets (`cot2lib.targets`), or a method of the paper. Seeds were fixed before their runs,
with the predictions (`predictions.csv`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cot2lib.runs import Taught
from cot2lib.specs import Run, RunSpec
from cot2lib.specs.profiles import grpo, spec
from cot2lib.study.graph_runs import placed
from cot2lib.targets import (
    Apart,
    Arrow,
    DrawnState,
    FreshPath,
    Frontier,
    Geometric,
    Renamed,
    Rotated,
    Shuffled,
    Smoothed,
    Targets,
    Uniform,
    WrongStates,
)
from cot2lib.tasks import MNNS, MNNSLengths
from cot2lib.thoughts import Always, Discrete, Rule

NUMBERS, GRAPHS = "MNNS", "ProsQA"
SEEDS = tuple(range(62, 72))  # on numbers
FIVE = SEEDS[:5]  # on graphs, and by the authors' recipe
PATH = Frontier(budget=1, ties="plus-first")  # of discrete CoT


class Control(NamedTuple):
    """A way to train.

    `labels` and `fed` say in words what is scored and what is fed. Without `targets` these are the method's own.
    `scoring` is that of `cot2lib.specs.Supervision`. With `self_fed` a model is fed its own mixtures in training. The
    `teacher` is a control whose run of the same seed makes labels and feed. If `rewarded`, policy gradients follow,
    with thoughts of sampled tokens: 3 on numbers, 8 on graphs.
    """

    labels: str
    fed: str
    targets: Targets | None = None
    method: str = "cot2"
    layers: int = 2
    task: MNNS = MNNS()
    scoring: str = "shares"
    self_fed: bool = False
    teacher: str | None = None
    rewarded: bool = False


CONTROLS: Mapping[str, Control] = {
    "csft": Control("frontier", "frontier"),
    "drawn-label": Control("a drawn state", "frontier", Apart(DrawnState(), Frontier())),
    "path-fed": Control("frontier", "a fresh path", Apart(Frontier(), FreshPath())),
    "paths-fed": Control("frontier", "eight fresh paths", Apart(Frontier(), FreshPath(8))),
    "fresh-path": Control("a fresh path", "that path", FreshPath()),
    "drawn-state": Control("a drawn state", "that state", DrawnState()),
    "nothing-fed": Control("frontier", "arrows", Apart(Frontier(), Arrow())),
    "deep-nothing-fed": Control("frontier", "arrows, four layers", Apart(Frontier(), Arrow()), layers=4),
    "deepest-nothing-fed": Control("frontier", "arrows, six layers", Apart(Frontier(), Arrow()), layers=6),
    "self-fed": Control("frontier", "its own mixtures", self_fed=True),
    "set-fed": Control("any state of the frontier", "frontier", scoring="set"),
    "set-self-fed": Control("any state of the frontier", "its own mixtures", scoring="set", self_fed=True),
    "other-step": Control("another step's frontier", "the same", Rotated()),
    "renamed": Control("renamed frontier", "the same", Renamed()),
    "other-input": Control("another input's frontier", "the same", Shuffled()),
    "wrong-states": Control("wrong states", "the same", WrongStates()),
    "uniform": Control("all states alike", "the same", Uniform()),
    "geometric": Control("halving weights", "the same", Geometric()),
    "discrete": Control("discrete path", "that path", method="discrete"),
    "smoothed-path": Control("smoothed path", "the path", Apart(Smoothed(), PATH)),
    "own-teacher": Control("a discrete model's path", "that path", teacher="discrete"),
    "reward": Control("reward, after a discrete path", "sampled tokens", method="discrete", rewarded=True),
    "csft-reward": Control("reward, after the frontier", "sampled tokens", rewarded=True),
    "coconut": Control("path, by stages", "hidden states", method="coconut"),
    "no-cot": Control("answer", "nothing", method="no-cot"),
    "pause": Control("answer", "arrows", method="pause"),
    "lengths": Control("frontier, 2 to 4 digits", "frontier", task=MNNSLengths()),
    "lengths-fresh-path": Control("a fresh path, 2 to 4 digits", "that path", FreshPath(), task=MNNSLengths()),
}  # fmt: skip
MAIN = ("csft", "path-fed", "fresh-path", "nothing-fed", "other-input", "discrete")  # by the authors' recipe too
ON_GRAPHS = (*MAIN, "reward", "csft-reward")
GROWING = ("csft", "fresh-path", "discrete", "no-cot")  # with more digits, too
DIGITS = (3, 4, 5, 6, 7, 8)
INPUTS = 9**4  # of any number of digits: as many as there are of four


def name(control: str) -> str:
    """Name a control as axes and tables do: its labels, and its feed."""
    told = CONTROLS[control]
    return f"{told.labels} | {told.fed}"


def trained(profile: str) -> Mapping[tuple[str, str], Sequence[Run]]:
    """Return runs by task and control; by the authors' recipe, `MAIN` on numbers with five seeds."""
    if profile == "paper":
        return {(NUMBERS, name): numbers(CONTROLS[name], FIVE, profile) for name in MAIN}
    found = {(NUMBERS, name): numbers(control) for name, control in CONTROLS.items()}
    return found | {(GRAPHS, name): graphs(CONTROLS[name]) for name in ON_GRAPHS}


def numbers(
    control: Control, seeds: Sequence[int] = SEEDS, profile: str = "quick", digits: int = 4, **options
) -> list[Run]:
    """Return the runs of a control on digits from 1 to 9; `options` are those of `cot2lib.spec`, d = 32 without them.

    Every number of digits takes the same number of steps, on all inputs or `INPUTS` of them.
    """
    options |= dict(task=control.task, layers=control.layers, heads=min(control.layers, 4))
    options |= dict(self_fed_from=0.0) if control.self_fed else {}
    made = [_with(control, spec(control.method, profile, seed=seed, **options), profile) for seed in seeds]
    if digits != 4:
        task = MNNS(length=digits, inputs=min(INPUTS, 9**digits))
        made = [replace(run, task=task) for run in made]
    return [grpo(run, profile) for run in made] if control.rewarded else made


def graphs(control: Control, seeds: Sequence[int] = FIVE, **options) -> list[Run]:
    """Return the runs of a control on graphs of at most 19 names, drawn anew at every visit: d = 32."""
    made = [_with(control, placed(control.method, seed, **options)) for seed in seeds]
    return [grpo(run) for run in made] if control.rewarded else made


def own_rule(run: Run) -> Rule:
    """Return the rule that a control is judged by: it feeds itself what it was fed in training.

    This is arrows, its likeliest tokens, or mixtures.
    """
    targets = run.supervision.targets
    fed = targets.fed if isinstance(targets, Apart) else targets
    if fed == Arrow():
        return Always(int(replace(run.task, inputs=10).prompt()[0, -1]))  # graphs take their time
    return Discrete() if fed in (PATH, FreshPath(), DrawnState()) or isinstance(fed, Taught) else run.thought


def by_own_rule(some: Sequence[Run]) -> list[Run]:
    """Return the same runs, evaluated by their `own_rule`."""
    return [replace(run, thought=own_rule(run)) for run in some]


def _with(control: Control, run: RunSpec, profile: str = "quick") -> RunSpec:
    teachers = [] if control.teacher is None else numbers(CONTROLS[control.teacher], [run.seed], profile)
    targets = Taught(*teachers) if teachers else control.targets
    return replace(run, supervision=replace(run.supervision, targets=targets, scoring=control.scoring))


def grown(seeds: Sequence[int] = FIVE) -> Mapping[tuple[int, str], Sequence[Run]]:
    """Return runs by number of digits and control, each evaluated by its `own_rule`."""
    places = [(digits, name) for digits in DIGITS for name in GROWING]
    return {(digits, name): by_own_rule(numbers(CONTROLS[name], seeds, digits=digits)) for digits, name in places}


def every(profile: str) -> list[Run]:
    """Return all these runs."""
    known = [*trained(profile).values(), *(grown().values() if profile == "quick" else ())]
    return [run for some in known for run in some]


def thinking(profile: str) -> list[Run]:
    """Return the runs of `trained` that have thoughts to edit."""
    return [run for some in trained(profile).values() for run in some if run.supervision.every is not None]
