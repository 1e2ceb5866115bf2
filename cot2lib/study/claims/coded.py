"""Claims that need code: the paper's statements, facts about its data and tables, and comparisons of a single shape.

Every entry checks its claim anew, by the functions that the chapters call; nothing is looked up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from cot2lib.study import judge as rules
from cot2lib.study import overhead, targets
from cot2lib.study.claims import theorems
from cot2lib.study.claims.comparisons import Cell, Direction, Parts
from cot2lib.study.claims.kinds import (
    Drawn,
    Fact,
    Kind,
    OfRuns,
    Statement,
    measured,
    noted,
    span,
)
from cot2lib.study.claims.queries import Read
from cot2lib.study.judge import NAT, statement_verdict
from cot2lib.study.printed import GAINS, claims, gains, paper_value
from cot2lib.study.sweeps import D_MODELS, KS
from cot2lib.study.targets import simple_optimum
from cot2lib.tasks import MNNS
from cot2lib.theory import margins

CONSTRUCTION, PACKING = "tests/theory/test_construction.py", "tests/theory/test_packing.py"
ESTIMATORS = "tests/theory/test_estimators.py"
NEARLY_ALL = 95.0  # %
BY_MEANS = "by the mean gains of the paper's own tables"
BESIDE_MNNS = "discrete CoT's gain on graphs less that on MNNS {} points"
FOUR_DIGITS, FIVE_DIGITS = MNNS(), MNNS(11, 19, 5)


# The bound on what a thought holds


def packing_bound() -> str:
    at_possible = margins.bound_holds_at_possible_margins()
    condition = "the margin delta can exist: delta < sqrt(2v/(v-1)) / (2B)"
    return statement_verdict(margins.fixed_margin_is_possible(), at_possible, condition)


def thresholds() -> str:
    """Consistent: the bound allows the dimensions at which the full budget works."""
    asked = margins.most_asked_for()
    empty = "" if min(D_MODELS) < asked else "the bound excludes no dimension that was tried"
    return statement_verdict(sorted(D_MODELS)[1] >= asked, vacuous=empty)


def decode_overhead() -> str:
    large = overhead.is_dominated()
    condition = "v < 12 L d + 2 L N, with v tokens in the vocabulary, L layers and N positions"
    return statement_verdict(large and overhead.is_dominated(overhead.SMALL), large, condition)


# The entropies of the thoughts of a trained model


@dataclass(frozen=True)
class Uniform(OfRuns):
    """That step entropies are t ln 2, as of 2^t states alike.

    The row shows the difference of the step whose mean is farthest from it.
    """

    query: str
    steps: tuple[int, ...]

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        rows = read(self.query, profile)
        if rows.empty:
            return []
        return [
            Drawn(f"step {t}: entropy minus {t} ln 2", rows[f"entropy_{t}"] - t * np.log(2), 0.0, NAT, (rows,))
            for t in self.steps
        ]

    def found(self, claim: str, profile: str, read: Read) -> dict:
        """The difference that is largest, and the verdict on all steps."""
        if not (gaps := [line.values for line in self.drawn(claim, profile, read)]):
            return {}
        farthest = max(gaps, key=lambda gap: abs(gap.mean()))
        verdict = noted(rules.value_verdict(gaps, NAT), papers_own())
        return {"seeds": min(map(len, gaps)), **span(farthest), "verdict": verdict}

    def ours(self, row) -> str:
        return f"difference {measured(row, NAT)} nat from t ln 2, at the step farthest from it"


@cache
def papers_own() -> str:
    """A reservation where the paper's own entropy contradicts its claim; it was measured on the split of seed 42."""
    held_out = targets.input_entropies(FOUR_DIGITS)[~FOUR_DIGITS.split(42)]  # (input, step)
    printed, exact = paper_value("entropy-3"), held_out[:, 2].mean()
    fails = abs(printed - exact) < abs(printed - 3 * np.log(2))
    nearer = "nearer to the exact entropy of the targets than to 3 ln 2"
    return f"but the paper's own {printed} at step 3 is {nearer}" if fails else ""


# What the paper's own tables say


def smallest_gain() -> float:
    """The smallest gain (points) by policy gradients on ProsQA and ProntoQA."""
    return float(min(gains(model).min() for model in GAINS if not model.startswith("MNNS")))


def falls() -> str:
    """The cells of those tasks where accuracy does not rise by policy gradients, with both values."""
    printed = claims()["paper_value"]
    cells = "; ".join(
        f"{model}, K = {k} falls by {-gained:.2f} points, from {printed[f'{stem}-sft']} to {printed[f'{stem}-k{k}']}"
        for model, (stem, _) in GAINS.items()
        if not model.startswith("MNNS")
        for k, gained in gains(model).items()
        if gained <= 0
    )
    return f"by the paper's own tables, where {cells}"


def gain_beside_mnns() -> float:
    """Mean gain (points) on ProsQA and ProntoQA of the kind of start that gains more, less that on MNNS."""
    signed_sums = np.mean([gains(model) for model in GAINS if model.startswith("MNNS")])
    elsewhere = [
        np.mean([gains(f"{task}, {start}") for task in ("ProsQA", "ProntoQA")]) for start in ("CoT2", "discrete CoT")
    ]
    return float(max(elsewhere) - signed_sums)


def first_before(k: int, d_model: int) -> str:
    """The claim on the first thought's entropy before training: K tokens are sampled after it."""
    return f"grpo-mts-d{d_model}-k{k}-entropy1-sft"


def printed_often(d_model: int) -> str:
    """How the paper's table contradicts those claims: at most one of its values is right."""
    values = ", ".join(f"{paper_value(first_before(k, d_model)):g}" for k in KS)
    return f"by the paper's own table: K has no part in this entropy, so at most one of {values} can be right"


def mts(pairs: Sequence[tuple[int, int]], column: str) -> Direction:
    """So many tokens above so many, at both dimensions."""
    query = "mts: k == {} and d_model == {}".format
    return Direction(
        "grpo_mts", [Cell(query(more, d), column, query(less, d), column) for d in (24, 32) for more, less in pairs]
    )


CODED: dict[str, Kind] = {
    "construction": Statement(theorems.construction, CONSTRUCTION),
    "attention-selects": Statement(theorems.attention_selects, CONSTRUCTION),
    "moe-routes": Statement(theorems.router_selects, CONSTRUCTION),
    "partial-sums": Statement(theorems.partial_sums, CONSTRUCTION),
    "read-off": Statement(theorems.read_off, CONSTRUCTION),
    "packing": Statement(packing_bound, PACKING),
    "threshold-packing": Statement(thresholds, PACKING),
    "decode-overhead": Statement(decode_overhead, "tests/study/test_overhead.py"),
    "consistency": Statement(theorems.consistency, ESTIMATORS),
    "k-infinity": Statement(theorems.k_infinity, ESTIMATORS),
    "sample-complexity-ratio": Statement(theorems.sample_complexity_ratio, ESTIMATORS),
    "sample-complexity-rate": Statement(theorems.sample_complexity_rate, ESTIMATORS),
    "assumption-1": Statement(theorems.assumption_1, ESTIMATORS),
    "gamma-direction": Statement(theorems.gamma_direction, "tests/thoughts/test_dirichlet.py"),
    "optimum-min3-max2": Fact(partial(simple_optimum, FIVE_DIGITS), NEARLY_ALL, said="{} % of inputs"),
    "rl-consistent": Fact(smallest_gain, 0.0, falls, "smallest gain {} points"),
    "rl-mnns-smaller": Fact(gain_beside_mnns, 0.0, lambda: BY_MEANS, BESIDE_MNNS),
    "entropy-uniform": Uniform("csft", "one_layer: method == 'CoT2' and d_model == 32", (2, 3)),
    "grpo-k-moderate": Parts(
        "grpo_mts",
        {"accuracy": mts(((3, 1), (3, 6)), "best"), "entropy after reward": mts(((3, 1), (6, 3)), "entropy")},
    ),
}
REFUTED = {first_before(k, d): partial(printed_often, d) for d in (24, 32) for k in KS}  # by the paper's own tables
