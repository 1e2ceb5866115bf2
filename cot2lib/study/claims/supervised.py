"""Which of our measurements stands beside each number and claim of the paper.

A *sample* gives, for a profile and seeds, rows by seed that hold what is measured; it reads shipped
records alone. `SUPERVISED` maps claims (`data/claims.csv`) of supervised runs to a `Number`, a
`Direction`, a `NoGain`, `Reaches` or a `Fact`, `cot2lib.study.claims.policies` those of policy gradients; the verdict
rules for each are in `cot2lib.study.claims.ledger`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import torch

from cot2lib import runs
from cot2lib.runs import records
from cot2lib.specs.profiles import spec
from cot2lib.study.analysis.contents import COLUMNS
from cot2lib.study.analysis.experts import FEEDS, RATES
from cot2lib.study.analysis.passk import MOST, TEMPERATURES, TOP_K
from cot2lib.study.sweeps import SWITCH
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS

PERCENT = 100.0
WIDEST = 5.0  # points
WIDEST_ENTROPY = 0.05  # nat
SECONDS_AN_HOUR = 3600.0

Sample = Callable[[str, Sequence[int]], pd.DataFrame]
Cell = tuple[Sample, str, Sample, str]


@dataclass(frozen=True)
class Number:
    """A number of the paper.

    Attributes:
        chapter: whose runs measure it.
        sample: rows by seed, and with `best` and `split_half` where epochs can be chosen.
        paper_runs: of how many runs the paper's number is a mean.
        column: what of the rows is compared.
        scale: our value times this is in the claim's unit.
        top: largest possible value, in the claim's unit.
        widest: half-width of our prediction interval from which there is no verdict.
        other_hardware: whether the number depends on the machine, so that there is no verdict either.
    """

    chapter: str
    sample: Sample
    paper_runs: int
    column: str = "last"
    scale: float = PERCENT
    top: float = 100.0
    widest: float = WIDEST
    other_hardware: bool = False


@dataclass(frozen=True)
class Direction:
    """A claim that one thing is above another: in each cell (sample, column) pairs, above first.

    `waiting` names tasks of the claim that have no runs yet; it can then hold partly at most. `given` says under which
    reading the verdict is meant, where the claim leaves it open.
    """

    chapter: str
    cells: Sequence[Cell]
    scale: float = PERCENT
    widest: float = WIDEST
    waiting: str = ""
    given: str = ""


@dataclass(frozen=True)
class NoGain:
    """A claim that one thing does not better another: cells as in `Direction`, the one without gain first."""

    chapter: str
    cells: Sequence[Cell]
    scale: float = PERCENT
    widest: float = WIDEST


@dataclass(frozen=True)
class Reaches:
    """A claim that something reaches a value: every run does, in one of the ways (`samples`) the claim can be read."""

    chapter: str
    samples: Sequence[Sample]
    value: float
    scale: float = PERCENT
    top: float = 100.0


@dataclass(frozen=True)
class Fact:
    """A claim about the data that counting settles: its value in the claim's unit, and whether the claim holds."""

    value: Callable[[], float]
    holds: Callable[[float], bool]


# Samples


@cache
def run_sample(method: str, **options) -> Sample:
    """Recorded runs of `profiles.spec(method, profile, **options)`; `hours` are those of one core or GPU."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows = runs.recorded([spec(method, profile, seed=seed, **options) for seed in seeds])
        if rows.empty:
            return rows
        units = rows["threads"].where(rows["device"].str.startswith("cpu"), 1)
        return rows.assign(hours=rows["seconds"] * units / SECONDS_AN_HOUR).set_index("seed")

    return sample


@cache
def entropy_sample(**options) -> Sample:
    """Step entropies (nat) of CoT2 runs at their last evaluation, in the columns `entropy_t`."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        known = run_sample("cot2", **options)(profile, seeds)
        if known.empty:
            return known
        have = [spec("cot2", profile, seed=seed, **options) for seed in known.index]
        return runs.curves(have).groupby("seed").last()

    return sample


@cache
def pass_sample(method: str, temperature: float, k: int, top_k: int) -> Sample:
    """Pass@k of the models of the chapter `sampling`, by seed, in the column `pass_at_k`."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        table = passed(profile)
        wanted = {spec(method, profile, d_model=24, layers=1, heads=1, seed=seed).id: seed for seed in seeds}
        at = np.isclose(table["temperature"], temperature) & (table["k"] == k) & (table["top_k"] == top_k)
        rows = table[at & table["id"].isin(wanted)]
        return rows.assign(seed=rows["id"].map(wanted)).set_index("seed").sort_index()

    return sample


def passed(profile: str) -> pd.DataFrame:
    """The shipped Pass@k table of a profile, empty if there is none."""
    table = records.shipped_table(f"sampling.{profile}.passk")
    return pd.DataFrame(columns=["id", "temperature", "top_k", "k", "pass_at_k"]) if table is None else table


def contents(profile: str) -> pd.DataFrame:
    """The shipped table of what thoughts hold (`analysis.contents`) under a profile, empty if there is none."""
    table = records.shipped_table(f"thoughts.{profile}.contents")
    return pd.DataFrame(columns=["id", "when", "step", *COLUMNS]) if table is None else table


def expert_sample(feed: str, lr: float) -> Sample:
    """The construction's block, trained from random weights: share of right answers after training, in `last`."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        table = expert_blocks(profile)
        rows = table[(table["feed"] == feed) & np.isclose(table["lr"], lr) & table["seed"].isin(seeds)]
        return rows.sort_values("step").groupby("seed").tail(1).assign(last=lambda r: r["accuracy"]).set_index("seed")

    return sample


def expert_blocks(profile: str) -> pd.DataFrame:
    """The shipped training curves of the construction's block under a profile, empty if there are none."""
    table = records.shipped_table(f"experts.{profile}.training")
    return pd.DataFrame(columns=["feed", "lr", "seed", "step", "loss", "accuracy", "seen"]) if table is None else table


def nearness(step: int, to: Callable[[int], float], **options) -> Sample:
    """Closeness, as minus the distance in nats, of a CoT2 run's step entropy to a reference value of its seed."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows = entropy_sample(**options)(profile, seeds)
        if rows.empty:
            return rows
        reference = np.array([to(seed) for seed in rows.index])
        return rows.assign(nearness=-(rows[f"entropy_{step}"] - reference).abs())

    return sample


@cache
def target_entropy(step: int, seed: int) -> float:
    """Exact mean entropy (nat) of the full-budget targets of a step over the validation inputs of a seed."""
    return float(_target_entropies()[~MNNS().split(seed), step - 1].mean())


@cache
def _target_entropies() -> torch.Tensor:
    """Entropy (nat) of the full-budget targets, (input, step)."""
    return torch.special.entr(hindsight_targets(MNNS())).sum(-1)


def simple_optimum(task: MNNS) -> float:
    """Share (%) of the inputs whose answer is the sum of the smaller half of the digits (one more of an odd
    number) minus that of the larger: for five digits the three smallest minus the two largest."""
    ordered = task.digits.sort(dim=1).values
    split = task.length - task.length // 2
    guess = ordered[:, :split].sum(1) - ordered[:, split:].sum(1)
    return float(PERCENT * (guess == task.answers).double().mean())


@cache
def three_smallest_minus_two_largest() -> float:
    """`simple_optimum` of five digits 11-19."""
    return simple_optimum(MNNS(11, 19, 5))


# Cells


def above(one: Sample, other: Sample, column: str = "last") -> Cell:
    """The cell that says `one` is above `other` in a column."""
    return one, column, other, column


def budget(b: int, d_model: int) -> Sample:
    """Runs of budget b; b = 1 is discrete CoT."""
    return run_sample("discrete", d_model=d_model) if b == 1 else run_sample("cot2", budget=b, d_model=d_model)


def _convergence(layers: int) -> list[Cell]:
    """CoT2 above discrete CoT at the end and on average over the training, d in {24, 32}."""
    shape = dict(layers=layers, heads=layers)
    sides = [(run_sample("cot2", d_model=d, **shape), run_sample("discrete", d_model=d, **shape)) for d in (24, 32)]
    return [above(*pair, column) for pair in sides for column in ("last", "curve_mean")]


def _fed(start: float | None) -> list[Sample]:
    return [run_sample("cot2", d_model=d, layers=4, heads=4, self_fed_from=start) for d in (16, 24, 32)]


def _tokens(low: int, high: int) -> dict[int, Sample]:
    """Five digits, discrete CoT shown 5, 3 or 1 tokens of the path."""
    task = MNNS(low, high, 5)
    full, half = run_sample("discrete", task=task), run_sample("discrete", task=task, every=2)
    return {5: full, 3: half, 1: run_sample("no-cot", task=task)}


def _trigonometric() -> list[Sample]:
    """What training with trigonometric embeddings can mean: in a small GPT-2, or the construction's own block."""
    models = [
        run_sample("cot2", d_model=d, layers=1, heads=1, embedding=embedding)
        for d in (24, 32)
        for embedding in ("cosine", "cosine, frozen")
    ]
    return [*models, *(expert_sample(feed, lr) for feed in FEEDS for lr in RATES)]


def _passk() -> list[Cell]:
    """CoT2 above discrete CoT at every k and temperature, both sampled alike."""
    return [
        above(pass_sample("cot2", t, k, 0), pass_sample("discrete", t, k, TOP_K if t else 0), "pass_at_k")
        for t in TEMPERATURES
        for k in range(1, MOST + 1)
    ]


SMALL = dict(d_model=24, layers=1, heads=1)
PROBE = dict(d_model=32, layers=1, heads=1)
WIDE, NARROW = _tokens(11, 19), _tokens(5, 13)

SUPERVISED: dict[str, Number | Direction | NoGain | Reaches | Fact] = {
    "main-mnns-cot2": Number("csft", run_sample("cot2"), 5),
    "main-mnns-coconut": Number("csft", run_sample("coconut-slot"), 1),  # as the authors' code: this variant, one seed
    "main-mnns-discrete": Number("csft", run_sample("discrete"), 5),
    "main-mnns-nocot": Number("csft", run_sample("no-cot"), 5),
    "csft-above-coconut": Direction(
        "csft",
        [above(run_sample("cot2"), run_sample(name)) for name in ("coconut", "coconut-slot")],
        waiting="ProsQA and ProntoQA",
    ),
    "convergence-2l2h": Direction("csft", _convergence(2)),
    "convergence-1l1h": Direction("csft", _convergence(1)),
    "small-cot2-beats-large-discrete": Direction(
        "csft",
        [above(run_sample("cot2", d_model=d, layers=1, heads=1), run_sample("discrete", d_model=d)) for d in (24, 32)],
    ),
    "teacher-forcing": Direction("csft", [above(*pair) for pair in zip(_fed(None), _fed(0.0))]),
    "curriculum-no-gain": NoGain("csft", [above(*pair) for pair in zip(_fed(SWITCH), _fed(None))]),
    "train-cost": Number("csft", run_sample("cot2"), 1, column="hours", scale=1.0, top=np.inf, other_hardware=True),
    **{
        f"entropy-{t}": Number("csft", entropy_sample(**PROBE), 1, f"entropy_{t}", 1.0, np.inf, WIDEST_ENTROPY)
        for t in (1, 2, 3, 4)
    },
    "entropy-uniform": Direction(
        "csft",
        [
            (
                nearness(t, lambda seed, t=t: t * np.log(2), **PROBE),
                "nearness",
                nearness(t, lambda seed, t=t: target_entropy(t, seed), **PROBE),
                "nearness",
            )
            for t in (2, 3)
        ],
        scale=1.0,
        widest=WIDEST_ENTROPY,
    ),
    **{f"budget-b{b}-d{d}": Number("csft", budget(b, d), 5) for b in (1, 16) for d in (16, 24, 32)},
    **{f"budget-b4-d{d}": Number("budget", budget(4, d), 5) for d in (16, 24, 32)},
    "budget-d16": Direction("budget", [above(budget(8, 16), budget(b, 16)) for b in (1, 4, 16)]),
    **{
        f"budget-d{d}": Direction("budget", [above(budget(b, d), budget(a, d)) for a, b in ((1, 4), (4, 8), (8, 16))])
        for d in (24, 32)
    },
    "sparse-5-13": Direction(
        "budget", [above(NARROW[5], NARROW[3]), above(NARROW[5], NARROW[1]), above(NARROW[3], NARROW[1])]
    ),
    "sparse-11-19": Direction("budget", [above(WIDE[1], WIDE[3]), above(WIDE[1], WIDE[5])]),
    "optimum-min3-max2": Fact(three_smallest_minus_two_largest, lambda share: share > 95),
    "construction-trained": Reaches("construction", _trigonometric(), 100.0),
    "passk-cot2": Number("sampling", run_sample("cot2", **SMALL), 1),
    "passk-mnns": Direction("sampling", _passk(), scale=1.0, given="CoT2 may try as often"),
    **{
        f"passk-discrete-t{t}-k{k}": Number(
            "sampling", pass_sample("discrete", t, k, TOP_K if t else 0), 1, "pass_at_k", scale=1.0
        )
        for t in TEMPERATURES
        for k in range(1, MOST + 1)
    },
}
