"""Runs that ask what each step reads: masks on attention in training, small dimensions and budgets, the path ahead.

Seeds were fixed before their runs, with the predictions (`steps_predicted.csv`). A cell is named by its method and
what is not usual about it: "csft strict B=8 d=16".
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from cot2lib.locality import Sees
from cot2lib.specs import Run
from cot2lib.study.controls import runs as controls
from cot2lib.study.controls.runs import CONTROLS, GRAPHS, NUMBERS, Control
from cot2lib.targets import PathAhead

SEEDS = tuple(range(72, 82))  # on numbers
FIVE = SEEDS[:5]  # on other lengths, and by the authors' recipe
ON_GRAPHS = tuple(range(67, 72))
FORMS: tuple[Sees, ...] = ("all", "local", "strict")
D_MODELS = (8, 16, 24, 32)
BUDGETS = (2, 4, 8, 16)
DIGITS = (3, 5, 6)  # besides four
ARROW = "csft-arrow"  # whose prompt ends in the arrow by the authors' recipe, too
METHODS = {**CONTROLS, ARROW: CONTROLS["csft"], "mux": Control("the path ahead", "the same", PathAhead())}
EDITED = ("csft", "fresh-path", "discrete", "coconut", "csft-reward")  # with everything in sight


class Cell(NamedTuple):
    """Runs that differ by seed alone: one of `METHODS`, what its steps see, and its size."""

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
    seeds = SEEDS if profile == "quick" and cell.digits == 4 else FIVE
    budget, arrow = cell.budget if cell.budget < 16 else None, True if cell.method == ARROW else None
    shown = dict(d_model=cell.d_model, sees=cell.sees, budget=budget, arrow=arrow)
    return controls.by_own_rule(controls.numbers(METHODS[cell.method], seeds, profile, cell.digits, **shown))


def graphs(method: str, **shown) -> list[Run]:
    """Return the runs of a method on graphs of at most 19 names, drawn anew at every visit: d = 32."""
    return controls.by_own_rule(controls.graphs(METHODS[method], ON_GRAPHS, **shown))


def hops() -> Mapping[str, Sequence[Run]]:
    """Return the runs on graphs by what their steps see, by cell; all prompts have the arrow."""
    cells = [Cell(method, sees) for sees, method in product(FORMS, ("csft", "discrete", "fresh-path"))]
    return {str(cell): graphs(cell.method, sees=cell.sees, arrow=True) for cell in cells}


def trained(profile: str) -> Mapping[tuple[str, str], Sequence[Run]]:
    """Return runs by task and cell; by the authors' recipe, both methods without and under the strict mask.

    The authors' CoT2 has no arrow, which a mask needs. So two controls have the arrow and see everything.
    """
    if profile == "paper":
        some = [Cell(method, sees) for method in ("csft", "discrete") for sees in ("all", "strict")]
        some += [Cell("csft", d_model=16), Cell("csft", "strict", d_model=16)]
        some += [Cell(ARROW, d_model=16), Cell(ARROW, d_model=16, budget=8)]
        return {(NUMBERS, str(cell)): numbers(cell, profile) for cell in some}
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
