"""The paper's propositions, decided by computation as printed and as corrected.

The mathematics is in `cot2lib.theory`, the parts of the construction in `cot2lib.study.construction_layer`.
"""

from fractions import Fraction

import torch

from cot2lib.kit import dirichlet, random
from cot2lib.study import construction_layer as layer
from cot2lib.study.judge import statement_verdict
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS
from cot2lib.theory import chains, enumeration, estimators
from cot2lib.theory.construction import TrigMNNS, multisets, optima
from cot2lib.theory.estimators import answer_mass

TOKENS_PER_STEP = (1, 2, 3, 4, 8, 16)
LENGTHS = range(1, 7)
ROUNDING, TINY = 1e-6, 1e-12
GAMMAS = (0.5, 1.0, 3.0, 10.0, 20.0, 40.0, 200.0)
MEANS = 64  # random alphas on which the claim on gamma is checked
TOKENS = 12
LOGIT_SCALE = 3.0
SATURATION = (1.0, 4.0, 16.0, 64.0)  # growing sharpness, at whose end a softmax is saturated
THRESHOLD = "is given a threshold between the sums -1 and 0"


# Sampled thoughts (Sections 4.2 and 5.2)


def consistency() -> str:
    """Base CoT2, MTS and discrete CoT have the same expected output (Prop. equiv-discrete-continuous)."""
    start, transitions = chains.example()
    rows = [[enumeration.rational(row) for row in moves] for moves in transitions]
    centre = enumeration.rational(start)
    for moves in rows:
        centre = tuple(sum(p * q for p, q in zip(centre, column)) for column in zip(*moves))
    listed = lambda k: enumeration.mean([*enumeration.count_distributions(start, transitions, k)][-1], k)
    return statement_verdict(listed(1) == centre and listed(3) == centre)


def k_infinity() -> str:
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
    return statement_verdict(holds)


def sample_complexity_ratio() -> str:
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
    return statement_verdict(printed, corrected, "traces have m <= 2 steps, or chains contract fast enough")


def sample_complexity_rate() -> str:
    """N = Theta(1 / (K eps^2)) traces are enough (Prop. sample-complexity, i).

    The printed N fails for many tokens on long chains. The N from a variance that grows with m does not.
    """
    printed, corrected, epsilon, delta = True, True, 0.1, 0.1
    for k, steps in ((8, 2), (16, 100), (64, 200)):
        variance = estimators.largest_variance(k, steps, diversity=0.5)
        size = estimators.chebyshev_size(epsilon, delta, variance)
        enough = estimators.printed_size(epsilon, delta, k)
        printed &= estimators.failure(epsilon, enough, k, steps) <= delta
        corrected &= estimators.failure(epsilon, size, k, steps) <= delta
    return statement_verdict(printed, corrected, "the number of steps is fixed, or chains are contractive")


def assumption_1() -> str:
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
    return statement_verdict(bool((share == 1).all()), corrected, "only the steps before the answer are meant")


def _test_chains(steps: int) -> list[chains.Chain]:
    digits = torch.tensor([1, 2, 4, 4, 4, 8])
    return [
        chains.identity(2, steps),
        *(chains.lazy_walk(8, steps, move) for move in (0.1, 0.3, 1.0)),
        *(chains.random_rows(8, steps, concentration) for concentration in (1.0, 0.02)),
        chains.mnns(digits[:steps]),
    ]


def gamma_direction() -> str:
    """The paper's claim about gamma: a larger gamma gives more uniform points, and explores more.

    Single points do get more uniform, though never more so than alpha. But the spread among points shrinks.
    """
    alpha = (LOGIT_SCALE * random.normal(random.run_keys(range(MEANS)), TOKENS)).softmax(-1)
    shapes = torch.stack([dirichlet.mean_entropy(alpha, gamma) for gamma in GAMMAS])  # (gamma, mean)
    spreads = torch.stack([dirichlet.variance(alpha, gamma).sum(-1) for gamma in GAMMAS])  # (gamma, mean)
    more_uniform = bool((shapes.diff(dim=0) > 0).all() and (shapes < torch.special.entr(alpha).sum(-1)).all())
    explores_more = bool((spreads.diff(dim=0) > 0).all())
    return statement_verdict(
        more_uniform and explores_more, more_uniform, "single samples are meant, not how far samples lie apart"
    )


# The construction (Section 4.1)


def construction() -> str:
    """A one-layer transformer of fixed weights solves MNNS (Prop. construction)."""
    digits = multisets(4)
    solves = lambda variant: torch.equal(TrigMNNS(4, 36, variant).solve(digits), optima(digits))
    return statement_verdict(solves("as-written"), solves("repaired"), f"its printed read-off {THRESHOLD}")


def attention_selects() -> str:
    """A query attends to the next token alone as c grows (Prop. RotationSingleAttn)."""
    passes = [(n, step) for n in (2, 3, 4, 5) for step in range(1, n + 3)]
    growing = [[layer.attention_mass(n, c, step, 0) for c in SATURATION] for n, step in passes]
    return statement_verdict(all(mass == sorted(mass) and mass[-1] > 1 - TINY for mass in growing))


def router_selects() -> str:
    """z_i goes to expert i alone as c grows (Prop. moe-onehot)."""
    masses = torch.stack([layer.routing(4, c).diagonal() for c in SATURATION])
    return statement_verdict(bool((masses.diff(dim=0) >= 0).all() and (masses[-1] > 1 - TINY).all()))


def partial_sums() -> str:
    """Each expert writes the pairs of all sums with and without its digit (Prop. partial-sum-experts)."""
    return statement_verdict(layer.partial_sum_error(multisets(4)) < TINY)


def read_off() -> str:
    """The last expert writes the smallest non-negative sum (Prop. read-off-expert)."""
    sums = layer.sum_sets()
    right = lambda read: bool((layer.read_off(sums, 5, read) == layer.smallest_non_negative(sums)).all())
    return statement_verdict(right("sigmoid"), right("biased"), f"its gate {THRESHOLD}")
