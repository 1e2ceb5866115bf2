"""The packing bound, what must be told apart, and what a softmax head can show."""

import itertools
import math
from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.tasks import MNNS
from cot2lib.theory import margins

V = 73
SUMS = torch.arange(-36, 37, dtype=torch.float64)


# The bound


@given(st.integers(1, 300).flatmap(lambda v: st.tuples(st.just(v), st.integers(1, v))))
def test_log_subsets_is_never_below_the_papers(sizes):
    """In integers: C(v, B) B^B >= v^B; and the factors of its proof."""
    v, b = sizes
    assert math.comb(v, b) * b**b >= v**b
    assert all(Fraction(v - i, b - i) >= Fraction(v, b) for i in range(b))
    assert margins.log_subsets(v, b) >= margins.log_subsets_below(v, b) - 1e-9


@pytest.mark.parametrize(
    "budget, count, below, largest, fixed, at_largest, at_half, at_tenth",
    [
        (1, 4.290, 4.290, 0.712, (1.43, 1.79, 1.34), (4.15, 4.89, 3.29), (2.49, 3.21, 2.24), (1.29, 1.58, 1.20)),
        (4, 13.900, 11.617, 0.178, (3.88, 5.80, 6.61), (4.80, 7.36, 8.76), (3.73, 5.55, 6.28), (2.46, 3.44, 3.61)),
        (16, 36.201, 24.286, 0.045, None, (6.38, 11.47, 18.47), (5.40, 9.46, 13.88), (3.98, 6.68, 8.56)),
    ],
)
def test_dimension_reference_values(budget, count, below, largest, fixed, at_largest, at_half, at_tenth):
    assert margins.log_subsets(V, budget) == pytest.approx(count, abs=5e-4)
    assert margins.log_subsets_below(V, budget) == pytest.approx(below, abs=5e-4)
    top = margins.largest_margin(V, budget)
    assert top == pytest.approx(largest, abs=6e-4)
    wanted = {top: at_largest, top / 2: at_half, top / 10: at_tenth, 0.1: fixed or (math.inf,) * 3}
    for margin, dimensions in wanted.items():
        least = [dimension(V, budget, margin) for dimension in margins.DIMENSIONS.values()]
        assert least == pytest.approx(dimensions, abs=6e-3)


def test_centred_dimension_has_the_best_tau():
    fine = lambda v, b, m: max(
        (margins.log_subsets(v, b) + math.log1p(-1 / t)) / math.log1p(math.sqrt(t * (v - b) / (b * (v - 1))) / m)
        for t in (1 + 10 ** (k / 5000) for k in range(-15000, 15000))
    )
    assert margins.centred_dimension(V, 4, 0.1) == pytest.approx(fine(V, 4, 0.1), abs=1e-4)


def subsets_margin(embeddings, budget):
    """Half the least distance between equal-weight superpositions, by listing them all."""
    chosen = torch.tensor(list(itertools.combinations(range(len(embeddings)), budget)))
    return float(margins.least_distance(embeddings[chosen].mean(1))) / 2


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 9), st.integers(1, 8), st.integers(1, 9), st.integers(0, 10**6))
def test_dimension_is_beaten_by_no_embeddings(vocab, budget, d, seed):
    """The margin that embeddings of the unit ball really have: below the largest, and each bound allows their d."""
    budget = min(budget, vocab - 1)
    generator = torch.Generator().manual_seed(seed)
    embeddings = F.normalize(torch.randn(vocab, d, generator=generator, dtype=torch.float64), dim=-1)
    margin = subsets_margin(embeddings, budget)
    if margin < 1e-6:
        return
    assert margin <= margins.largest_margin(vocab, budget) + 1e-12
    assert all(dimension(vocab, budget, margin) <= d + 1e-9 for dimension in margins.DIMENSIONS.values())


def test_largest_margin_is_that_of_a_simplex():
    centred = torch.eye(6, dtype=torch.float64) - 1 / 6
    assert subsets_margin(F.normalize(centred, dim=-1), 2) == pytest.approx(margins.largest_margin(6, 2))


def test_convex_weights_leave_no_margin():
    """As the paper writes it, with any convex weights: two sets that share all but a little weight come together."""
    embeddings = torch.eye(5, dtype=torch.float64)
    share = 1e-9
    one, other = (torch.tensor([1 - share, *w], dtype=torch.float64) for w in ([share, 0, 0, 0], [0, share, 0, 0]))
    assert float(((one - other) @ embeddings).norm()) < 1e-8


def test_swap_mean_square():
    """E |z_S - mean|^2 = (v-B)/(B(v-1)) times the embeddings' variance, by listing all subsets."""
    embeddings = margins.random_embeddings(1, 7, 3)[0]
    chosen = torch.tensor(list(itertools.combinations(range(7), 3)))
    spread = (embeddings[chosen].mean(1) - embeddings.mean(0)).square().sum(1).mean()
    variance = (embeddings - embeddings.mean(0)).square().sum(1).mean()
    assert float(spread) == pytest.approx(float(4 / (3 * 6) * variance))


def test_packing_claims():
    assert not margins.fixed_margin_is_possible(0.1), "the paper's fixed margin: not from B = 8 on"
    assert margins.fixed_margin_is_possible(0.1, budgets=(1, 4))
    assert margins.bound_holds_at_possible_margins()
    assert margins.most_asked_for() == pytest.approx(6.38, abs=6e-3)
    order = [margins.paper_dimension(10**9, 2**k, margins.largest_margin(10**9, 2**k)) / (2**k) for k in (2, 8, 14)]
    assert order[0] > 2 * order[1] > 2 * order[2], "per state of the budget it falls: a factor log B is lost"


# What must be told apart


@pytest.fixture(scope="module")
def targets():
    """Distinct targets of steps 2 and 3, ties broken plus-first."""
    return {b: margins.distinct_targets(MNNS(), b, "plus-first", slice(1, 3)) for b in (1, 4, 8, 16)}


def test_affine_rank_of_distinct_targets():
    points = margins.distinct_targets(MNNS(), 8, "plus-first")
    assert (len(points), margins.affine_rank(points)) == (697, 51)
    torch.testing.assert_close(points.sum(1), torch.ones(697, dtype=torch.float64))


def test_distinct_targets_by_listing():
    """A second way: Python sets of exact shares from every signed sum of a small task."""
    task = MNNS(1, 4, 3)
    sums = task.signed_sums()
    order = (2 * sums[..., -1].abs() + (sums[..., -1] < 0)).flip(1).argsort(dim=1, stable=True)
    best = sums.flip(1).gather(1, order[:, :4, None].expand(-1, -1, 3))
    listed = {tuple(sorted(row)) for step in (0, 1) for row in best[:, :, step].tolist()}
    points = margins.distinct_targets(task, 4, "plus-first")
    counts = {tuple(s - 12 for s, c in enumerate((4 * p).round().int().tolist()) for _ in range(c)) for p in points}
    assert counts == listed


def test_margins_of_random_embeddings(targets):
    """Means over ten draws: of torch's generator to the digit given, of ours within their standard errors."""
    generators = [torch.Generator().manual_seed(seed) for seed in range(10)]
    normal = [torch.randn(V, 32, generator=generator, dtype=torch.float64) for generator in generators]
    reference, ours = F.normalize(torch.stack(normal), dim=-1), margins.random_embeddings(10, V, 32)
    for (budget, points), wanted in zip(targets.items(), (0.497, 0.128, 0.063, 0.092)):
        found, drawn = margins.margins(points, reference), margins.margins(points, ours)
        assert float(found.mean()) == pytest.approx(wanted, abs=1.5e-3), budget
        error = (found.var() / 10 + drawn.var() / 10).sqrt()
        assert abs(float(drawn.mean()) - wanted) < 4 * float(error) + 1e-3, budget


def test_margins_of_one_hot_embeddings(targets):
    found = [float(margins.margins(points, torch.eye(V, dtype=torch.float64))) for points in targets.values()]
    assert found == pytest.approx([math.sqrt(2) / 2, math.sqrt(2) / 8, math.sqrt(2) / 16, 1 / 8])


@pytest.mark.parametrize("d, budget, wanted", [(4, 16, 0.085), (8, 1, 0.604), (16, 8, 0.092)])
def test_spread_embeddings_widen_margins(targets, d, budget, wanted):
    """Gradient ascent finds at least nine tenths of what was found before, and more than chance."""
    start = margins.random_embeddings(1, V, d)[0]
    spread = margins.spread_embeddings(targets[budget], start)
    torch.testing.assert_close(spread.norm(dim=1), torch.ones(V, dtype=torch.float64))
    assert float(margins.margins(targets[budget], spread)) > max(
        0.9 * wanted, 1.3 * float(margins.margins(targets[budget], start))
    )


def test_spread_embeddings_of_eight_dimensions_are_enough(targets):
    """The paper's threshold lies at 16 to 24; the full budget's targets are as far apart at 8 as at 73."""
    spread = margins.spread_embeddings(targets[16], margins.random_embeddings(1, V, 8)[0], steps=120)
    one_hot = margins.margins(targets[16], torch.eye(V, dtype=torch.float64))
    assert margins.margins(targets[16], spread) > one_hot


# The softmax head


@pytest.mark.parametrize("budget", [1, 2, 4, 8])
def test_polynomial_logits_show_any_weights(budget):
    generator = torch.Generator().manual_seed(budget)
    members = torch.rand(200, V, generator=generator).argsort(1)[:, :budget]
    weights = torch.rand(200, budget, generator=generator, dtype=torch.float64) + 0.01
    points = torch.zeros(200, V, dtype=torch.float64).scatter(1, members, weights / weights.sum(1, keepdim=True))
    assert float(margins.divergence(points, margins.polynomial_logits(SUMS, points)).max()) < 1e-12


def test_polynomial_logits_of_the_full_budget_are_of_degree_eight():
    points = margins.distinct_targets(MNNS(), 16, "minus-first")
    logits = margins.polynomial_logits(SUMS**2, points)
    assert float(margins.divergence(points, logits).max()) < 1e-12
    for degree, fits in ((8, True), (7, False)):
        basis = torch.linalg.qr(((SUMS**2 - 648) / 648)[:, None] ** torch.arange(degree + 1)).Q
        rest = (logits - (logits @ basis) @ basis.T).norm(dim=1) / logits.norm(dim=1)
        assert float(rest.max()) < 1e-12 if fits else float(rest.max()) > 1e-5


def test_answers_need_one_dimension_more():
    answers = MNNS().answers.unique().double()
    logits = -1e6 * (SUMS**2 - answers[:, None] ** 2).square() + 1e3 * SUMS
    assert torch.equal(SUMS[logits.argmax(1)], answers) and float(logits.softmax(1).amax(1).min()) > 1 - 1e-12


def radons_subset(embeddings, budget):
    """A subset that embeddings of fewer than 2B dimensions cannot show: one side of an affine dependence, and not all
    of the other."""
    some = embeddings[: embeddings.shape[1] + 2]
    dependence = torch.linalg.svd(torch.cat([some, torch.ones(len(some), 1)], 1).T).Vh[-1]
    inside, outside = sorted((side.nonzero()[:, 0] for side in (dependence > 0, dependence < 0)), key=len)
    spare = [i for i in range(len(embeddings)) if i != outside[0] and i not in inside]
    return [*inside.tolist(), *spare[: budget - len(inside)]]


def least_divergence(points, embeddings):
    """KL(alpha || softmax(E h)) at the best h; the problem is convex, and L-BFGS solves it."""
    hidden = torch.zeros(1, embeddings.shape[1], dtype=embeddings.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([hidden], max_iter=300, line_search_fn="strong_wolfe", tolerance_change=1e-14)

    def loss():
        optimizer.zero_grad()
        total = margins.divergence(points, hidden @ embeddings.T).sum()
        total.backward()
        return total

    optimizer.step(loss)
    return float(loss().detach())


@pytest.mark.parametrize("budget", [2, 3, 4])
def test_divergence_below_twice_the_budget(budget):
    """The bound is tight: 2B - 1 dimensions fail on Radon's subset, the best of all hidden states included."""
    embeddings = margins.random_embeddings(1, V, 2 * budget - 1)[0]
    subset = radons_subset(embeddings, budget)
    assert len(set(subset)) == budget
    points = torch.zeros(1, V, dtype=torch.float64)
    points[0, subset] = 1 / budget
    assert least_divergence(points, embeddings) > 0.1
    more = torch.eye(V, V - 1, dtype=torch.float64)
    assert least_divergence(points, more) < 1e-5, "the fit itself is not to blame"


def test_fitted_divergence(targets):
    """Mean KL of the full budget: small at d = 8 and no better at 16, but far from it at 6."""
    six, eight, sixteen = (margins.fitted_divergence(targets[16], d) for d in (6, 8, 16))
    assert eight < 1e-3 and six > 10 * eight and sixteen > eight / 10
    longer = margins.fitted_divergence(targets[16], 8, steps=1000, lr=0.1)
    assert longer < 1.5e-4, "7e-5 was found before"
