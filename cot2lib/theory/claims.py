"""The paper's claims about sampled thoughts (Sections 4.2 and 5.2), decided by computation.

Each function without arguments takes well under a second. Both verdicts, as printed and as
corrected, come from the other modules of `cot2lib.theory`. `cot2lib.theory.propositions` has the claims about the
construction.
"""

from fractions import Fraction
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib.kit import random
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS
from cot2lib.theory import chains, enumeration, estimators
from cot2lib.theory.simulation import answer_mass

TOKENS_PER_STEP = (1, 2, 3, 4, 8, 16)
LENGTHS = range(1, 7)
ROUNDING = 1e-6
GAMMAS = (0.5, 1.0, 3.0, 10.0, 20.0, 40.0, 200.0)
MEANS = 64  # random alphas on which the claim is checked
TOKENS = 12
LOGIT_SCALE = 3.0


class Verdict(NamedTuple):
    """Whether a statement holds as printed, and whether it holds as corrected.

    `condition` says what the correction assumes. It is read after "holds if".
    """

    printed: bool
    corrected: bool = False
    condition: str = ""

    @property
    def text(self) -> str:
        """The verdict in words: `holds`, `holds if ...` or `refuted`."""
        if self.printed:
            return "holds"
        return f"holds if {self.condition}" if self.corrected else "refuted"


def consistency() -> Verdict:
    """Base CoT2, MTS and discrete CoT have the same expected output (Prop. equiv-discrete-continuous).

    The corrected statement covers any unbiased sampler; systematic draws are the example.
    """
    start, transitions = chains.example()
    rows = [[enumeration.rational(row) for row in moves] for moves in transitions]
    centre = enumeration.rational(start)
    for moves in rows:
        centre = tuple(sum(p * q for p, q in zip(centre, column)) for column in zip(*moves))
    same = lambda k, sampler: (
        enumeration.mean([*enumeration.count_distributions(start, transitions, k, sampler)][-1], k) == centre
    )
    printed = same(1, "multinomial") and same(3, "multinomial")
    return Verdict(printed, printed and same(3, "systematic"))


def k_infinity() -> Verdict:
    """MTS converges to base CoT2 as K grows.

    The listed errors are at most m / K. They have the form whose K-fold tends to the sum of the D_s.
    """
    holds = True
    for chain in (chains.example(), chains.identity(2, 3), chains.identity(2, 4)):
        parts = estimators.explained(*chain)
        for k in (1, 2, 4, 8, 16):
            listed = float(enumeration.error([*enumeration.count_distributions(*chain, k)][-1], k))
            read = float(estimators.read_outs(parts, k).tokens)
            holds &= listed * k <= len(parts) and abs(listed - read) < ROUNDING
    return Verdict(holds)


def sample_complexity_ratio() -> Verdict:
    """The mean squared error of MTS is at most 2 - 1/K times that of K discrete traces (Prop. sample-complexity, ii).

    This holds for m <= 2, and for chains that contract fast enough.
    """
    never = chains.identity(2, 3)
    listed = enumeration.error([*enumeration.count_distributions(*never, 2)][-1], 2)
    printed, corrected = listed <= Fraction(3, 8), True  # of two discrete traces it is 1/4
    for steps in LENGTHS:
        for chain in _test_chains(steps):
            parts = estimators.explained(*chain)
            rate = float(estimators.contraction(parts))
            for k in TOKENS_PER_STEP:
                found = float(estimators.ratio(parts, k)) - ROUNDING
                kept = found <= estimators.printed_bound(k)
                assured = steps <= 2 or rate <= 1 / estimators.printed_bound(k)
                printed &= kept
                corrected &= (kept or not assured) and 1 - 2 * ROUNDING <= found <= estimators.tight_bound(k, steps)
    return Verdict(printed, corrected, "m <= 2, or contractive chains")


def sample_complexity_rate() -> Verdict:
    """N = Theta(1 / (K eps^2)) traces are enough (Prop. sample-complexity, i).

    The printed N fails on long chains. The N from a variance that grows with m does not.
    """
    printed, corrected, epsilon, delta = True, True, 0.1, 0.1
    for k, steps in ((8, 2), (16, 100), (64, 200)):
        variance = estimators.largest_variance(k, steps, diversity=0.5)
        size = estimators.chebyshev_size(epsilon, delta, variance)
        enough = estimators.printed_size(epsilon, delta, k)
        printed &= estimators.failure(epsilon, enough, k, steps) <= delta
        corrected &= estimators.failure(epsilon, size, k, steps) <= delta
    return Verdict(printed, corrected, "fixed m, or contractive chains")


def assumption_1() -> Verdict:
    """MNNS satisfies Assumption 1 (appendix "Justification for Assumption 1").

    The partial sums satisfy it. The answer step does not. If that step were linear in the state, the answer would be
    right only where every single reachable trace already has it. A linear step that adds or subtracts the last digit
    gives the answer only the share of trajectories that end there.
    """
    task = MNNS()
    share = answer_mass(task)
    rows = slice(0, None, 81)
    chain = chains.mnns(task.digits[rows], task.bound)
    targets = hindsight_targets(task, None, rows=rows)[:, :-1, task.state_ids]
    before = torch.stack(estimators.marginals(*chain)[:-1], 1)
    corrected = torch.equal(before, targets) and bool((share < 1).all())
    return Verdict(bool((share == 1).all()), corrected, "only the steps before the answer are meant")


def _test_chains(steps: int) -> list[chains.Chain]:
    digits = torch.tensor([1, 2, 4, 4, 4, 8])
    return [
        chains.identity(2, steps),
        *(chains.lazy_walk(8, steps, move) for move in (0.1, 0.3)),
        *(chains.random_rows(8, steps, concentration) for concentration in (1.0, 0.02)),
        chains.rank_one(8, steps),
        chains.mnns(digits[:steps]),
    ]


# Dirichlet thoughts, of mean alpha and concentrations gamma alpha


def point_variance(alpha: Float[Tensor, "*lead token"], gamma: float) -> Float[Tensor, "*lead token"]:
    """Variance of each weight of a Dirichlet point of mean alpha: alpha_i (1 - alpha_i) / (gamma + 1)."""
    return alpha * (1 - alpha) / (gamma + 1)


def point_entropy(alpha: Float[Tensor, "*lead token"], gamma: float) -> Float[Tensor, "*lead"]:
    """Mean entropy (nat) of a point: psi(gamma + 1) - sum_i alpha_i psi(gamma alpha_i + 1)."""
    whole = torch.digamma(torch.as_tensor(gamma + 1.0, dtype=alpha.dtype))
    return whole - (alpha * torch.digamma(gamma * alpha + 1)).sum(-1)


def gamma_direction() -> Verdict:
    """The paper's claim about gamma: a larger gamma gives more uniform points, and explores more.

    Single points do get more uniform, though never more so than alpha. But the spread among points shrinks.
    """
    alpha = (LOGIT_SCALE * random.normal(random.run_keys(range(MEANS)), TOKENS)).softmax(-1)
    shapes = torch.stack([point_entropy(alpha, gamma) for gamma in GAMMAS])  # (gamma, mean)
    spreads = torch.stack([point_variance(alpha, gamma).sum(-1) for gamma in GAMMAS])  # (gamma, mean)
    more_uniform = bool((shapes.diff(dim=0) > 0).all() and (shapes < torch.special.entr(alpha).sum(-1)).all())
    explores_more = bool((spreads.diff(dim=0) > 0).all())
    return Verdict(
        more_uniform and explores_more, more_uniform, "single samples are meant; among samples spread falls"
    )
