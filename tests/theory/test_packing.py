"""The packing bound, what must be told apart, and what a softmax head can show."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.study import capacity
from cot2lib.tasks import MNNS
from cot2lib.theory import margins

V = 73
SUMS = torch.arange(-36, 37, dtype=torch.float64)


# The bound


def test_centred_dimension_has_the_best_tau():
    fine = lambda v, b, m: max(
        (margins.log_subsets(v, b) + math.log1p(-1 / t)) / math.log1p(math.sqrt(t * (v - b) / (b * (v - 1))) / m)
        for t in (1 + 10 ** (k / 5000) for k in range(-15000, 15000))
    )
    assert margins.centred_dimension(V, 4, 0.1) == pytest.approx(fine(V, 4, 0.1), abs=1e-4)


def subsets_margin(embeddings, budget):
    """Half the least distance between equal-weight superpositions, by listing them all."""
    chosen = torch.tensor(list(itertools.combinations(range(len(embeddings)), budget)))
    return float(F.pdist(embeddings[chosen].mean(1)).min()) / 2


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
    assert all(dimension(vocab, budget, margin) <= d + 1e-9 for dimension in capacity.BOUNDS.values())


def test_largest_margin_is_that_of_a_simplex():
    centred = torch.eye(6, dtype=torch.float64) - 1 / 6
    assert subsets_margin(F.normalize(centred, dim=-1), 2) == pytest.approx(margins.largest_margin(6, 2))


def test_packing_claims():
    assert not margins.fixed_margin_is_possible(0.1), "the paper's fixed margin: not from B = 8 on"
    assert margins.fixed_margin_is_possible(0.04)
    assert margins.bound_holds_at_possible_margins()
    assert margins.most_asked_for() == pytest.approx(6.38, abs=6e-3)
    order = [margins.paper_dimension(10**9, 2**k, margins.largest_margin(10**9, 2**k)) / (2**k) for k in (2, 8, 14)]
    assert order[0] > 2 * order[1] > 2 * order[2], "per state of the budget it falls: a factor log B is lost"


# What must be told apart


@pytest.fixture(scope="module")
def targets():
    """Distinct targets of thoughts, ties broken plus-first."""
    return {b: margins.distinct_targets(MNNS(), b, "plus-first") for b in (1, 4, 8, 16)}


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
