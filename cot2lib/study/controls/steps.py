"""Runs that ask what each step reads: masks on attention in training, small dimensions and budgets, the path ahead.

Seeds were fixed before their runs, with the predictions (`steps_predicted.csv`). A cell is named by its method and
what is not usual about it: "csft strict B=8 d=16".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from cot2lib.locality import Sees
from cot2lib.specs import Run, RunSpec
from cot2lib.specs.profiles import grpo, spec
from cot2lib.study.controls.runs import GRAPHS, INPUTS, NUMBERS
from cot2lib.study.graph_runs import placed
from cot2lib.targets import FreshPath, PathAhead, Targets
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Discrete

SEEDS = tuple(range(72, 82))  # on numbers
FIVE = SEEDS[:5]  # on other lengths, and by the authors' recipe
ON_GRAPHS = tuple(range(67, 72))
FORMS: tuple[Sees, ...] = ("all", "local", "strict")
D_MODELS = (8, 16, 24, 32)
BUDGETS = (2, 4, 8, 16)
DIGITS = (3, 5, 6)  # besides four
TARGETS: Mapping[str, Targets] = {"fresh-path": FreshPath(), "mux": PathAhead()}
ARROW = "csft-arrow"  # whose prompt ends in the arrow by the authors' recipe, too
EDITED = ("csft", "fresh-path", "discrete", "coconut", "csft-reward")  # with everything in sight


class Cell(NamedTuple):
    """Runs that differ by seed alone: a method, what its steps see, and its size."""

    method: str
    sees: Sees = "all"
    d_model: int = 32
    budget: int = 16
    digits: int = 4

    def __str__(self) -> str:
        sizes = (("B", self.budget, 16), ("d", self.d_model, 32), ("m", self.digits, 4))
        words = [f"{letter}={size}" for letter, size, usual in sizes if size != usual]
        return " ".join([self.method, *([] if self.sees == "all" else [self.sees]), *words])


def cells() -> Iterator[Cell]:
    """All cells on numbers: forms of the mask; budgets by dimension; lengths; what is edited; the path ahead."""
    yield from (Cell(method, sees) for sees, method in product(FORMS, ("csft", "discrete", "fresh-path")))
    for d_model, sees in product(D_MODELS, ("all", "strict")):
        yield Cell("discrete", sees, d_model)
        yield from (Cell("csft", sees, d_model, budget) for budget in BUDGETS[::-1])
    yield from (Cell(*each) for each in (("mux",), ("coconut",), ("csft-reward",)))
    for digits, sees, method in product(DIGITS, ("all", "strict"), ("csft", "discrete")):
        yield Cell(method, sees, digits=digits)


def numbers(cell: Cell, profile: str = "quick") -> list[Run]:
    """Return the runs of a cell, ten seeds by the quick recipe at four digits, else five."""
    task = MNNS() if cell.digits == 4 else MNNS(length=cell.digits, inputs=min(INPUTS, 9**cell.digits))
    seeds = SEEDS if profile == "quick" and cell.digits == 4 else FIVE
    made = [_number(cell, profile, seed) for seed in seeds]
    if cell.digits != 4:
        made = [replace(run, task=task) for run in made]  # as many steps as for four digits
    return [grpo(run, profile) for run in made] if cell.method == "csft-reward" else made


def _number(cell: Cell, profile: str, seed: int) -> RunSpec:
    method = cell.method if cell.method in ("discrete", "coconut") else "cot2"
    budget = cell.budget if method == "cot2" and cell.budget < 16 else None
    arrow = True if cell.method == ARROW else None
    run = spec(method, profile, d_model=cell.d_model, budget=budget, sees=cell.sees, arrow=arrow, seed=seed)
    return _taught(run, cell.method)


def _taught(run: RunSpec, method: str) -> RunSpec:
    """Give a run the targets of a control; what was fed single tokens feeds itself its likeliest one."""
    if method not in TARGETS:
        return run
    thought = Discrete() if method == "fresh-path" else run.thought
    return replace(run, thought=thought, supervision=replace(run.supervision, targets=TARGETS[method]))


def graphs(method: str, **shown) -> list[RunSpec]:
    """Return the runs of a method on graphs of at most 19 names, drawn anew at every visit: d = 32."""
    kind = "discrete" if method == "discrete" else "cot2"
    return [_taught(placed(kind, seed, **shown), method) for seed in ON_GRAPHS]


def hops() -> Mapping[str, Sequence[RunSpec]]:
    """Return the runs on graphs by what their steps see, by cell; all prompts have the arrow."""
    cells = [Cell(method, sees) for sees, method in product(FORMS, ("csft", "discrete", "fresh-path"))]
    return {str(cell): graphs(cell.method, sees=cell.sees, arrow=True) for cell in cells}


def trained(profile: str) -> Mapping[tuple[str, str], Sequence[Run]]:
    """Return runs by task and cell; by the authors' recipe, both methods without and under the strict mask.

    The authors' CoT2 has no arrow, which a mask needs. So two controls have the arrow and see everything.
    """
    if profile == "paper":
        asked = [Cell(method, sees) for method in ("csft", "discrete") for sees in ("all", "strict")]
        asked += [Cell("csft", "all", 16), Cell(ARROW, "all", 16), Cell(ARROW, "all", 16, 8)]
        asked.append(Cell("csft", "strict", 16))
        return {(NUMBERS, str(cell)): numbers(cell, profile) for cell in asked}
    found = {(NUMBERS, str(cell)): numbers(cell) for cell in cells()}
    return found | {(GRAPHS, method): graphs(method) for method in ("csft", "discrete", "mux")}


def asked(profile: str) -> list[Run]:
    """Return the runs whose steps are asked what they read."""
    forms = [Cell(method, sees) for sees in ("local", "strict") for method in ("csft", "discrete", "fresh-path")]
    cells = [Cell(method) for method in EDITED] + forms if profile == "quick" else []
    graph = [run for method in ("csft", "discrete") for run in graphs(method)] if profile == "quick" else []
    return [run for cell in cells for run in numbers(cell)] + graph


def every(profile: str) -> list[Run]:
    """Return all runs of `trained`."""
    return [run for some in trained(profile).values() for run in some]


def every_hop(profile: str) -> list[Run]:
    """Return all runs of `hops`; the authors' recipe has none."""
    return [run for some in hops().values() for run in some] if profile == "quick" else []
