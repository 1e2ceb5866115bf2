import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.supervision import hindsight_targets, trajectory_shares
from cot2lib.tasks import MNNS
from cot2lib.theory.variants import CosineMNNS

from cot2lib.study.construction_layer import (  # isort: skip
    attention_mass, partial_sum_error, read_off, smallest_non_negative, smallest_sharpness, sum_sets,
)  # fmt: skip
from cot2lib.theory.construction import (  # isort: skip
    VARIANTS, Layout, NextToken, TrigMNNS, multisets, optima, signed_sums,
)  # fmt: skip

FOUR = MNNS()
DTYPES = (torch.float64, torch.float32)
SOLVING = [name for name in VARIANTS if name != "as-written"]
rows = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 12), min_size=n, max_size=n), min_size=1, max_size=4)
)


# Exact match


@pytest.mark.parametrize("dtype", DTYPES)
def test_as_written_fails_where_the_optimum_is_zero(dtype):
    answers = TrigMNNS(4, 36, dtype=dtype).solve(FOUR.digits)
    wrong = answers != FOUR.answers
    assert int((~wrong).sum()) == 4992 and torch.equal(wrong, FOUR.answers == 0)
    sums = signed_sums(FOUR.digits)
    assert torch.equal(answers[wrong], sums.masked_fill(sums <= 0, 99).amin(1)[wrong]), "the next positive sum"
    assert int(answers[wrong].max()) == 18


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", SOLVING)
def test_solve_of_all_four_digits(variant, dtype):
    assert torch.equal(TrigMNNS(4, 36, variant, dtype=dtype).solve(FOUR.digits), FOUR.answers)


def test_solve_of_five_digits():
    digits = multisets(5)
    assert torch.equal(TrigMNNS(5, 45).solve(digits) != optima(digits), optima(digits) == 0)
    for repaired, c in (("repaired", None), ("fused", 1e6), ("residual", 1e6), ("mirrored", 1e6)):
        assert torch.equal(TrigMNNS(5, 45, repaired, c).solve(digits), optima(digits)), repaired


@settings(deadline=None, max_examples=40)
@given(rows, st.sampled_from(SOLVING), st.integers(0, 5))
def test_solve_of_any_digits(digits, variant, slack):
    digits = torch.tensor(digits)
    model = TrigMNNS(digits.shape[1], max(1, int(digits.sum(1).max())) + slack, variant)
    assert torch.equal(model.solve(digits), optima(digits))


def test_states_hold_every_partial_sum():
    for variant, gain in (("as-written", 2.0), ("residual", 2.0)):
        model = TrigMNNS(4, 36, variant)
        states = model.states(FOUR.digits[::50])
        assert states.shape == (len(FOUR.digits[::50]), 5, model.layout.width)
        for step in range(1, 5):
            angles = model.omega * signed_sums(FOUR.digits[::50, :step]).double()
            pairs = gain**step * states[:, step - 1, : 2 ** (step + 1)].unflatten(1, (-1, 2))
            assert (pairs - torch.stack([angles.cos(), angles.sin()], -1)).abs().max() < 1e-12
            assert not states[:, step - 1, 2 ** (step + 1) : model.layout.content].any()


def test_optima_and_multisets_of_four_digits():
    assert torch.equal(optima(FOUR.digits), FOUR.answers)
    assert torch.equal(multisets(4), FOUR.digits.sort(1).values.unique(dim=0))


# Sharpness


@pytest.mark.parametrize(
    ("length", "variant", "smallest"),
    [(4, "biased", 6742), (5, "biased", 29468), (4, "repaired", 421.4), (5, "repaired", 921)],
)
def test_smallest_sharpness(length, variant, smallest):
    c = smallest_sharpness(length, variant)
    assert c == pytest.approx(smallest, rel=2e-4)
    digits, bound = multisets(length), 9 * length
    solves = lambda c: torch.equal(TrigMNNS(length, bound, variant, c).solve(digits), optima(digits))
    assert solves(c) and not solves(c * 0.999)


# The propositions


def test_attention_mass():
    """One against the others, until an output shares the position."""
    for c, step in itertools.product((0.0, 1.0, 5.0), (1, 2, 6)):
        assert attention_mass(4, c, step) == pytest.approx(math.exp(c) / (math.exp(c) + 4 + step))
    assert [round(attention_mass(4, 60.0, step), 9) for step in range(1, 9)] == [1] * 6 + [0.5] * 2
    assert attention_mass(4, 60.0, 1, outputs=6) == pytest.approx(0.5), "no causal mask"


def test_next_token_ignores_the_content():
    layout = Layout(3)
    tokens = torch.randn(2, 5, layout.width, dtype=torch.float64)
    tokens[..., layout.positions] = torch.eye(5, dtype=torch.float64)
    attention = NextToken(layout, 800.0, torch.float64)
    for i in range(5):
        assert torch.equal(attention(tokens[:, i], tokens), tokens[:, (i + 1) % 5])


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_partial_sum_error_vanishes(digits):
    assert partial_sum_error(torch.tensor([digits])) < 1e-12


def test_read_off_is_wrong_iff_zero_meets_a_positive_sum_with_cosine_above_one_half():
    sums = sum_sets()
    wrong = read_off(sums, 5) != smallest_non_negative(sums)
    rival = ((sums > 0) & (sums < 10 / (3 * 0.99))).any(1)
    assert torch.equal(wrong, (sums == 0).any(1) & rival) and wrong.any()
    assert torch.equal(read_off(sums, 5, "biased"), smallest_non_negative(sums))


# One embedding per |sum|


@pytest.mark.parametrize(("length", "inputs"), [(4, None), (5, 4000), (6, 4000), (10, 500)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cosine_solve(length, inputs, dtype):
    digits = MNNS(length=length, inputs=inputs).digits
    model = CosineMNNS(length, 9 * length, dtype)
    assert torch.equal(model.solve(digits), optima(digits)) and model.embedding.shape[1] == 9 * length + 1


def test_cosine_states_are_the_full_budget_targets():
    """Other budgets have other states: the identity would not survive hindsight."""
    model = CosineMNNS(4, 36)
    signed = model.embedding[torch.arange(-36, 37).abs()]
    states = model.states(FOUR.digits)
    targets = hindsight_targets(FOUR)[:, :3][..., FOUR.state_ids]
    assert (targets @ signed - states[:, :3]).abs().max() < 4e-15
    last = trajectory_shares(FOUR, None, "shared")[:, -1]
    assert (last @ signed - states[:, -1]).abs().max() < 4e-15
    folded = last[:, 36:].clone()
    folded[:, 1:] += last[:, :36].flip(1)
    assert (model.shares(states[:, -1]) - folded).abs().max() < 1e-14
    others = hindsight_targets(FOUR, 8)[:, :3][..., FOUR.state_ids]
    assert (others @ signed - states[:, :3]).abs().max() > 0.1
