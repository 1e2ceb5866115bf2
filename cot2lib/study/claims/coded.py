"""Claims that need code: the paper's statements, facts about its data and tables, and comparisons of a single shape.

Every entry checks its claim anew, by the functions that the chapters call; nothing is looked up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd

from cot2lib.study import judge as rules
from cot2lib.study import overhead, targets
from cot2lib.study.budget import simple_optimum
from cot2lib.study.claims.comparisons import Case, Cell, Direction, Parts, Value
from cot2lib.study.claims.kinds import Fact, Kind, Statement, command, unmeasured
from cot2lib.study.claims.queries import Read
from cot2lib.study.gsm8k_runs import PAPER_LIMITS
from cot2lib.study.printed import GAINS, claims, gains, paper_value
from cot2lib.study.report import PERCENT, describe
from cot2lib.study.sweeps import D_MODELS, KS
from cot2lib.tasks import MNNS
from cot2lib.theory import claims as sampled
from cot2lib.theory import packing, propositions
from cot2lib.theory.claims import Verdict

CONSTRUCTION, PACKING = "tests/theory/test_construction.py", "tests/theory/test_packing.py"
ESTIMATORS = "tests/theory/test_estimators.py"
NEARLY_ALL = 95.0  # %
FOUR_DIGITS, FIVE_DIGITS = MNNS(), MNNS(11, 19, 5)


# The bound on what a thought holds


def packing_bound() -> Verdict:
    at_possible = packing.bound_holds_at_possible_margins()
    return Verdict(packing.fixed_margin_is_possible(), at_possible, "the margin exists: delta < sqrt(2v/(v-1)) / (2B)")


def thresholds() -> Verdict:
    """Consistent: the bound allows the dimensions at which the full budget works."""
    return Verdict(not packing.rules_out([d for d in D_MODELS if d > min(D_MODELS)]))


def excludes_nothing() -> str:
    return "" if packing.rules_out(D_MODELS) else "the bound excludes no dimension that was tried"


def decode_overhead() -> Verdict:
    extra, large = overhead.equals_projection(), overhead.is_dominated()
    return Verdict(extra and large and overhead.is_dominated(overhead.SMALL), extra and large, "v < 12 L d + 2 L N")


# The entropies of the thoughts of a trained model


def uniform(step: int) -> Case:
    """The step entropy less t ln 2, and less the exact one."""
    query = "one_layer: method == 'CoT2' and d_model == 32"
    return Case(query, f"entropy_{step}", lambda seed: step * np.log(2), partial(target_entropy, step))


@cache
def target_entropy(step: int, seed: int) -> float:
    """Exact mean entropy (nat) of the full-budget targets of a step over the validation inputs of a seed."""
    return float(targets.input_entropies(FOUR_DIGITS)[~FOUR_DIGITS.split(seed), step - 1].mean())


def papers_own() -> str:
    """A reservation where the paper's own entropy contradicts its claim; it was measured on the split of seed 42."""
    printed, exact = paper_value("entropy-3"), target_entropy(3, 42)
    fails = abs(printed - exact) < abs(printed - 3 * np.log(2))
    return f"the paper's own {printed} at step 3 is nearer to the exact entropy" if fails else ""


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
    return f"by the paper's own tables, where {cells}" if cells else "by the paper's own tables"


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
    return f"by its own table, which prints {values} for it, which depends on the prompt alone and not on K"


# Word problems


@dataclass(frozen=True)
class Most(Kind):
    """That MTS is right more often than discrete chain of thought at most limits, and shorter at half of them.

    The paper says "three out of four" and "often".
    """

    ahead: int = 3
    shorter: int = 2

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The smallest gap in points, and at how many limits MTS is ahead and shorter."""
        cells = list(product(PAPER_LIMITS, (True, False)))
        found = {
            cell: read(f"gsm8k: longest == {cell[0]} and continuous {'>' if cell[1] else '=='} 0", profile)
            for cell in cells
        }
        if any(rows.empty for rows in found.values()):
            return unmeasured("gsm8k", profile)
        means = pd.DataFrame({cell: rows[["accuracy", "length"]].mean() for cell, rows in found.items()}).T.unstack()
        gaps = PERCENT * (means["accuracy", True] - means["accuracy", False])
        ahead, short = (gaps > 0).sum(), (means["length", True] < means["length", False]).sum()
        seeds = min(map(len, found.values()))
        verdict = rules.REPRODUCED if ahead >= self.ahead and short >= self.shorter else rules.NOT
        verdict = f"{verdict}: " if seeds >= rules.FEWEST_SEEDS else f"{rules.TOO_FEW}, "
        said = f"{verdict}right more often at {ahead} of {len(gaps)} limits, shorter at {short}"
        return {"seeds": seeds, "last": gaps.min(), "verdict": said} | command("gsm8k", profile)

    def ours(self, row) -> str:
        return f"gap {describe(row.last, np.nan, np.nan)}"


def mts(pairs: Sequence[tuple[int, int]], column: str) -> Direction:
    """So many tokens above so many, at both dimensions."""
    query = "mts: k == {} and d_model == {}".format
    return Direction(
        "grpo_mts", [Cell(query(more, d), column, query(less, d), column) for d in (24, 32) for more, less in pairs]
    )


CODED: dict[str, Kind] = {
    **{claim: Statement(check, CONSTRUCTION) for claim, check in propositions.CLAIMS.items()},
    "packing": Statement(packing_bound, PACKING),
    "threshold-packing": Statement(thresholds, PACKING, excludes_nothing),
    "decode-overhead": Statement(decode_overhead, "tests/study/test_overhead.py"),
    "consistency": Statement(sampled.consistency, ESTIMATORS),
    "k-infinity": Statement(sampled.k_infinity, ESTIMATORS),
    "sample-complexity-ratio": Statement(sampled.sample_complexity_ratio, ESTIMATORS),
    "sample-complexity-rate": Statement(sampled.sample_complexity_rate, ESTIMATORS),
    "assumption-1": Statement(sampled.assumption_1, ESTIMATORS),
    "gamma-direction": Statement(sampled.gamma_direction, "tests/thoughts/test_dirichlet.py"),
    "optimum-min3-max2": Fact(partial(simple_optimum, FIVE_DIGITS), NEARLY_ALL),
    "rl-consistent": Fact(smallest_gain, 0.0, falls),
    "rl-mnns-smaller": Fact(gain_beside_mnns, 0.0, lambda: "by the paper's own tables"),
    "entropy-uniform": Value("csft", {f"step {t}": uniform(t) for t in (2, 3)}, "the exact entropy", but=papers_own),
    "grpo-k-moderate": Parts(
        "grpo_mts", {"accuracy": mts(((3, 1), (3, 6)), "best"), "entropy left": mts(((3, 1), (6, 3)), "entropy")}
    ),
    "gsm8k-3-of-4": Most(),
}
REFUTED = {first_before(k, d): partial(printed_often, d) for d in (24, 32) for k in KS}  # by the paper's own tables
