import itertools
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.study.claims import theorems
from cot2lib.supervision import forward_counts, hindsight_targets
from cot2lib.tasks import MNNS
from cot2lib.theory import chains, enumeration, estimators
from cot2lib.theory.estimators import mse_ratio

KS = (1, 2, 3, 4, 6, 8, 16)


@pytest.fixture(scope="module")
def four():
    return MNNS().digits


def tenths(rows):
    return torch.tensor(rows, dtype=torch.float64) / 10


def sigma(alpha):
    """The covariance of one token's one-hot vector."""
    return alpha.diag_embed() - alpha[..., :, None] * alpha[..., None, :]


def covariance(start, transitions, k):
    """C_m, the covariance of q_m over traces of K tokens, by the recursion."""
    alphas = estimators.marginals(start, transitions)
    c = sigma(start) / k
    for alpha, moves in zip(alphas[1:], transitions):
        c = sigma(alpha) / k + (1 - 1 / k) * moves.mT @ c @ moves
    return c


def small_chains(steps):
    """Eight chains with probabilities that are short fractions."""
    again = lambda start, rows: chains.Chain(tenths(start), [tenths(rows)] * (steps - 1))
    return {
        "identity 2": chains.identity(2, steps),
        "identity 3": chains.identity(3, steps),
        "lazy": chains.lazy_walk(2, steps, 0.2),
        "forgets": again([2, 5, 3], [[1, 2, 7]] * 3),
        "merges": again([2, 5, 3], [[0, 10, 0], [0, 10, 0], [0, 0, 10]]),
        "permutes": again([2, 5, 3], [[0, 10, 0], [0, 0, 10], [10, 0, 0]]),
        "example": again([2, 5, 3], [[5, 3, 2], [1, 4, 5], [0, 6, 4]]),
        "sticky": again([6, 3, 1], [[9, 1, 0], [0, 9, 1], [1, 0, 9]]),
    }


# The recursion, the closed form and enumeration


def test_mse_ratio_of_the_smallest_counterexample():
    """Two tokens that never change, K = 2, m = 3: 7/16 against 1/4, above 3/2."""
    law = [*enumeration.count_distributions(*chains.identity(2, 3), 2)][-1]
    assert enumeration.error(law, 2) == Fraction(7, 16)
    assert mse_ratio(*chains.identity(2, 3), 2) == 7 / 4 > estimators.printed_bound(2)


def test_count_distributions_are_the_recursion():
    violations = []
    for name, k in itertools.product(small_chains(2), (1, 2, 3, 4)):
        chain = small_chains(5)[name]
        for steps, law in enumerate(enumeration.count_distributions(*chain, k), start=1):
            start, moves = chain.start, chain.transitions[: steps - 1]
            exact = enumeration.error(law, k)
            assert float(covariance(start, moves, k).trace()) == pytest.approx(float(exact), abs=1e-13)
            assert [float(p) for p in enumeration.mean(law, k)] == pytest.approx(
                estimators.marginals(start, moves)[-1].tolist(), abs=1e-13
            )
            found = mse_ratio(start, moves, k)
            assert 1 - 1e-12 <= found <= estimators.tight_bound(k, steps) + 1e-12 <= min(steps, k) + 2e-12
            if found > estimators.printed_bound(k) + 1e-12:
                violations.append((name, k, steps))
            if name in ("identity 2", "identity 3", "merges", "permutes"):
                assert found == pytest.approx(estimators.tight_bound(k, steps)), "attained"
            if name == "forgets":
                assert found == pytest.approx(1), "attained"
    assert len(violations) > 30 and min(steps for *_, steps in violations) == 3


@given(
    st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 6), st.integers(1, 20), st.sampled_from([0.05, 0.5, 2.0])
)
@settings(deadline=None, max_examples=60)
def test_mse_ratio_by_recursion_and_its_bounds(seed, v, steps, k, concentration):
    chain = chains.random_rows(v, steps, concentration, seed)
    parts = estimators.explained(*chain)
    assert (parts.diff() >= -1e-12).all() and parts[0] >= -1e-12
    if parts[-1] < 1e-6:
        return
    spread, law = covariance(*chain, k), estimators.marginals(*chain)[-1]
    found = mse_ratio(*chain, k)
    assert found == pytest.approx(float(spread.trace() / estimators.independent_error(parts, k)), rel=1e-8)
    assert 1 - 1e-9 <= found <= estimators.tight_bound(k, steps) + 1e-9
    if steps <= 2 or float(estimators.contraction(parts)) <= 1 / estimators.printed_bound(k):
        assert found <= estimators.printed_bound(k) + 1e-9
    rate = float(estimators.contraction(parts))
    assert found <= 1 / (1 - rate * (1 - 1 / k)) + 1e-9, "the bound of contractive chains"
    least, most = sigma(law) / k, (1 - (1 - 1 / k) ** steps) * sigma(law)
    for gap in (spread - least, most - spread):
        assert torch.linalg.eigvalsh(gap).min() > -1e-10, "the bounds hold for the matrices, so per token too"


@pytest.mark.parametrize(
    "k, distinct, means, ends",
    [
        (1, [1, 1], [1, 1, 1, 1], [1, 1]),
        (3, [1.4198, 1.4783], [1, 1.2123, 1.3328, 1.3994], [1.2803, 1.4674]),
        (16, [1.6682, 1.8104], [1, 1.2986, 1.5018, 1.6341], [1.4171, 1.7783]),
    ],
)
def test_ratio_of_mnns_chains(four, k, distinct, means, ends):
    digits = [torch.tensor([2**place for place in range(m)]) for m in (4, 6)]
    assert [mse_ratio(*chains.mnns(d), k) for d in digits] == pytest.approx(distinct, abs=6e-5)
    ratios = [estimators.ratio(estimators.mnns_explained(four[:, :m]), k) for m in (1, 2, 3, 4)]
    assert [float(r.mean()) for r in ratios] == pytest.approx(means, abs=6e-5)
    assert [float(ratios[-1].min()), float(ratios[-1].max())] == pytest.approx(ends, abs=6e-5)
    assert ratios[-1].max() <= estimators.printed_bound(k) + 1e-12, "the paper's constant holds for four digits"


def test_mnns_explained_is_the_chain(four):
    rows = four[::97]
    chain = chains.mnns(rows, 36)
    parts = estimators.explained(*chain)
    assert torch.allclose(parts, estimators.mnns_explained(rows), atol=1e-12)
    assert torch.allclose(estimators.explained(*chains.mnns(rows[3])), parts[3], atol=1e-12)
    laws = torch.stack(estimators.marginals(*chain), 1)
    targets = hindsight_targets(MNNS(), None, rows=slice(0, None, 97))[..., MNNS().state_ids]
    assert torch.equal(laws[:, :3], targets[:, :3]), "base CoT2's thoughts are the full-budget targets"
    assert all(torch.allclose(moves.sum(-1), torch.ones(73, dtype=torch.float64)) for moves in chain.transitions)


def test_contraction():
    """Of distinct sums by hand; and where a chain ends nearly certain, rounding gives no rate."""
    parts = estimators.explained(*chains.random_rows(2, 5, 0.05, seed=2))
    assert 0 < parts[-1] < 1e-4 and parts[:-1].abs().max() < 1e-12
    assert float(estimators.contraction(parts)) < 1e-6
    parts = estimators.mnns_explained(torch.tensor([[1, 2, 4, 8, 16]]))[0]
    assert torch.allclose(parts / parts[-1], torch.tensor([(2**s - 1) / 31 for s in range(1, 6)]).double())
    assert float(estimators.contraction(parts)) < 0.5
    assert all(estimators.ratio(parts, k) <= 2 * k / (k + 1) for k in KS)


def test_read_outs_by_the_recursion():
    chain = chains.random_rows(5, 4, 0.3, seed=3)
    found = estimators.read_outs(estimators.explained(*chain), 3)
    before = covariance(chain.start, chain.transitions[:-1], 3)
    last = chain.transitions[-1]
    assert float(found.tokens) == pytest.approx(float(covariance(*chain, 3).trace()))
    assert float(found.law) == pytest.approx(float((last.T @ before @ last).trace()))
    assert float(found.token) == pytest.approx(float(sigma(estimators.marginals(*chain)[-1]).trace()))


# Sample size


@pytest.mark.parametrize(
    "k, steps, delta, printed, failed, enough, kept",
    [
        (64, 200, 0.5, 7, 0.889, 96, 0.156),
        (16, 100, 0.1, 122, 0.121, 500, 0.0004),
        (8, 4, 0.1, 235, 0.0005, 207, 0.001),
    ],
)
def test_printed_size_fails(k, steps, delta, printed, failed, enough, kept):
    """Against a simulation's values, which carry its noise; here they are exact."""
    variance = estimators.largest_variance(k, steps, 0.5)
    assert estimators.printed_size(0.1, delta, k) == printed
    assert estimators.chebyshev_size(0.1, delta, variance) == enough
    exact = [estimators.failure(0.1, n, k, steps) for n in (printed, enough)]
    assert exact == pytest.approx([failed, kept], abs=4e-3)
    assert exact[1] <= delta and (exact[0] > delta) == (steps > 4)
    assert estimators.failure(0.1, estimators.bernstein_size(0.1, delta, variance), k, steps) <= delta


def test_drift_and_failure_are_enumerated():
    law = [*enumeration.count_distributions(*chains.identity(2, 4), 3)][-1]
    exact = torch.tensor([float(law[n, 3 - n]) for n in range(4)], dtype=torch.float64)
    assert torch.allclose(estimators.drift(3, 4), exact, atol=1e-14)
    two = [p * q for (a, p), (b, q) in itertools.product(enumerate(exact), enumerate(exact)) if abs(a + b - 3) > 1.5]
    assert estimators.failure(0.3, 2, 3, 4) == pytest.approx(float(sum(two)))
    shares = torch.arange(33) / 32 - 0.5
    variance = 2 * float(estimators.drift(32, 9) @ shares.double().square())
    assert variance == pytest.approx(estimators.largest_variance(32, 9, 0.5))


@given(st.integers(2, 40), st.integers(1, 30), st.floats(0.02, 0.3))
@settings(deadline=None, max_examples=40)
def test_largest_variance_and_failure_are_bounded(k, steps, epsilon):
    variance = estimators.largest_variance(k, steps)
    least = min(1, steps / k)
    assert (1 - 1 / 2.718281828) * least <= variance + 1e-12 and variance <= least + 1e-12
    variance /= 2
    few = int(variance / (2 * epsilon**2))
    if few >= 1:
        total = few * variance
        assert estimators.failure(epsilon, few, k, steps) >= total / (12 * total + 8), "Paley and Zygmund"
    for size in (estimators.chebyshev_size, estimators.bernstein_size):
        assert estimators.failure(epsilon, size(epsilon, 0.2, variance), k, steps) <= 0.2


# Consistency


def test_both_tokens_are_dependent():
    """The printed proof's product: true at the first step, false at the second."""
    laws = [*enumeration.count_distributions(*chains.example(), 2)]
    shares = [enumeration.mean(law, 2)[0] ** 2 for law in laws]
    assert enumeration.both_tokens(laws[0], 0) == shares[0]
    assert (enumeration.both_tokens(laws[1], 0), shares[1]) == (Fraction(31, 800), Fraction(9, 400))


@pytest.mark.parametrize("sampler", ["multinomial", "systematic"])
def test_mean_of_count_distributions_is_base_cot2(sampler):
    for chain in small_chains(4).values():
        for steps, law in enumerate(enumeration.count_distributions(*chain, 3, sampler), start=1):
            centre = [enumeration.rational(chain.start)]
            for moves in chain.transitions[: steps - 1]:
                columns = zip(*map(enumeration.rational, moves))
                centre.append(tuple(sum(p * q for p, q in zip(centre[-1], column)) for column in columns))
            assert enumeration.mean(law, 3) == centre[-1]


def test_mse_ratio_of_systematic_draws():
    """K draws of one uniform number for the sums of 2, 1, 4 and 7, and for long fractions."""
    sums = chains.mnns(torch.tensor([2, 1, 4, 7]))
    assert [mse_ratio(*sums, k, "systematic") for k in (1, 4, 8)] == pytest.approx([1, 0.773109, 0.470588], abs=1e-6)
    assert mse_ratio(*chains.identity(8, 6), 8, "systematic") == 0, "each token is drawn once"
    assert mse_ratio(*chains.random_rows(8, 4), 4, "systematic") == pytest.approx(0.542725, abs=1e-6)


def test_answer_mass_is_the_share_of_trajectories():
    share = estimators.answer_mass(MNNS())
    assert float(share.mean()) == pytest.approx(0.1074, abs=6e-5) and float(share.max()) == 6 / 16
    task = MNNS()
    graph = [task.children(step) for step in range(task.length)]
    ways = forward_counts(graph, task.states, task.start)[-1].gather(1, (task.answers + task.start)[:, None])[:, 0]
    assert torch.equal(share, ways.double() / 16)


def test_k_infinity_notices_a_wrong_form(monkeypatch):
    """Explained variances taken in another order are not what listing gives."""
    explained = estimators.explained
    monkeypatch.setattr(estimators, "explained", lambda *chain: explained(*chain) ** 2)
    assert theorems.k_infinity() == "refuted"
