"""Thoughts drawn from the simplex: Dirichlet points against scipy and their moments, and relaxed tokens."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
import torch
from builders import ALPHA, drawn, draws_of, rewarded
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.kit import dirichlet
from cot2lib.study.claims import theorems
from cot2lib.thoughts import MTS, Dirichlet, Gumbel, State

PLAIN = dict(floor=0.0, most=None)
SAME_LAW = 1e-3  # least p-value of a Kolmogorov-Smirnov test; draws are keyed, so no test is lost by chance


def entries(thought):
    """Tokens, logarithms of their weights and of the shared entry of Dirichlet thoughts."""
    tokens, log_point = thought.action.tensor_split([thought.action.shape[-1] // 2], dim=-1)
    return tokens.long(), log_point


# Draws and densities in logarithms


def test_rounds_hardly_ever_all_refuse():
    z = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
    chance = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    shapes = torch.logspace(0, 4, 41, dtype=torch.float64)[:, None]
    refused = 1 - torch.trapezoid(chance * dirichlet.acceptance(shapes, z[None]), z)
    assert (refused**dirichlet.PROPOSALS).max() < 1e-5 and refused.argmax() == 0
    assert (refused ** (dirichlet.PROPOSALS - 1)).max() > 1e-5, "one proposal fewer would not do"


@pytest.mark.parametrize("shape", [1e-6, 1e-3, 0.02, 0.4, 1.0, 7.0, 300.0])
def test_log_gammas_follow_their_law(shape):
    uniforms = draws_of(1, 60_000 * dirichlet.UNIFORMS).view(60_000, -1)
    found = dirichlet.log_gammas(torch.full((60_000,), shape), uniforms)
    assert found.isfinite().all()
    assert scipy.stats.kstest(found.double().numpy(), scipy.stats.loggamma(shape).cdf).pvalue > SAME_LAW


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.05, 40.0), min_size=2, max_size=6), st.integers(0, 99))
def test_log_density_is_scipys_on_log_ratios(concentration, key):
    a = torch.tensor(concentration, dtype=torch.float64)
    log_point = dirichlet.log_point(a, draws_of(key, len(a) * dirichlet.UNIFORMS)[0, 0].view(len(a), -1))
    if log_point.min() < -30:
        return  # scipy takes points, which round
    point = log_point.exp().numpy() / log_point.exp().numpy().sum()
    expected = scipy.stats.dirichlet.logpdf(point, a.numpy()) + np.log(point).sum()
    assert dirichlet.log_density(a, log_point).item() == pytest.approx(expected, rel=1e-9, abs=1e-8)


# The thought: its law


@pytest.mark.parametrize("rule", [Dirichlet(20.0, **PLAIN), Dirichlet(20.0), Dirichlet(2.0, most=3), Dirichlet(0.5)])
def test_marginals_are_beta(rule):
    """Of tokens that are apart, and of the shared entry: the sum of the others."""
    thought = drawn(rule)
    tokens, log_point = entries(thought)
    apart = log_point[0, 0].isfinite()
    shares = torch.cat([ALPHA[tokens[0, 0]], 1 - ALPHA[tokens[0, 0][apart[:-1]]].sum()[None]])
    for place in apart.nonzero().flatten().tolist():
        share = shares[place].item()
        law = scipy.stats.beta(rule.gamma * share, rule.gamma * (1 - share))
        values = log_point[0, :, place].double().exp().clamp(max=1 - 1e-16).numpy()
        if rule.gamma * share > 0.1:
            assert scipy.stats.kstest(values, law.cdf).pvalue > SAME_LAW


@pytest.mark.parametrize("options", [PLAIN, {}, dict(most=2), dict(floor=0.1)])
def test_mean_is_alpha_in_every_treatment(options):
    """Kept apart or shared; the covariance of what is apart is that of MTS(gamma + 1)."""
    weights = drawn(Dirichlet(20.0, **options), count=60_000).weights[0].double()
    assert torch.allclose(weights.sum(-1), torch.ones(()).double(), atol=1e-5) and (weights >= 0).all()
    error = 5 * (ALPHA * (1 - ALPHA) / 21 / 60_000).sqrt()
    assert ((weights.mean(0) - ALPHA).abs() < error).all()
    apart = ALPHA[:2].diag() - ALPHA[:2].outer(ALPHA[:2])
    tokens = drawn(MTS(21)).weights[0].double()
    for sample in (weights, tokens):
        assert torch.allclose(sample.T.cov()[:2, :2], apart / 21, atol=0.01 / 21)


def test_moments_of_points_follow_their_formulas():
    weights = drawn(Dirichlet(4.0, **PLAIN)).weights[0].double()
    assert torch.allclose(weights.var(0)[:4], dirichlet.variance(ALPHA, 4.0)[:4], rtol=0.05)
    entropy = torch.special.entr(weights).sum(-1).mean().item()
    assert entropy == pytest.approx(dirichlet.mean_entropy(ALPHA, 4.0).item(), abs=0.01)


def test_shared_entry_is_split_as_alpha_and_is_no_smaller_than_the_floor():
    """The three tokens below the floor add up to less than it, and take in the fourth."""
    thought = drawn(Dirichlet(20.0), count=500)
    tokens, log_point = entries(thought)
    assert torch.equal(tokens[0, 0, :3], torch.tensor([0, 1, 2]))
    assert log_point.isfinite()[0, 0].tolist() == [True, True, True, False, False, False, False, True]
    shared = thought.weights[0, :, 3:].double()
    assert torch.allclose(shared / shared.sum(-1, keepdim=True), ALPHA[3:] / ALPHA[3:].sum(), rtol=1e-4)
    assert torch.allclose(thought.weights[0, :, :3], log_point[0, :, :3].exp())


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.floats(1e-6, 0.4), st.floats(0.1, 12.0), st.integers(1, 12))
def test_no_concentration_is_below_gamma_floor(seed, floor, spread, most):
    logits = spread * torch.randn(1, 40, 10, generator=torch.Generator().manual_seed(seed))
    rule = Dirichlet(3.0, floor=floor, most=most)
    hidden = torch.zeros(1, 40, 1)
    thought = rule(State(logits, hidden, lambda n: draws_of(seed, n, 40), lambda: hidden, lambda weights: hidden))
    tokens, log_point = entries(thought)
    alpha = logits.softmax(-1)
    own = alpha.gather(-1, tokens) * log_point[..., :-1].isfinite()
    shared = 1 - own.sum(-1)
    assert tokens.shape[-1] == min(most, 10)
    assert (own[own > 0] >= floor).all() and (shared >= floor - 1e-6).all()
    alone = log_point[..., :-1].isinf().all(-1)
    assert torch.allclose(thought.weights[alone], alpha[alone]), "a thought that is sure is the base thought"


def test_the_public_codes_mask():
    """Tokens below the floor get nothing, the others' concentrations add up to gamma: the mean moves."""
    rule = Dirichlet(20.0, floor=0.1, masked=True)
    weights = drawn(rule).weights[0].double()
    kept = ALPHA * (ALPHA >= 0.1)
    mean = kept / kept.sum()
    assert (weights[:, 3:] == 0).all()
    assert torch.allclose(weights.mean(0), mean, atol=2e-3) and (mean - ALPHA).abs().max() > 0.02
    assert weights[:, 0].var().item() == pytest.approx((mean * (1 - mean))[0].item() / 21, rel=0.04)
    even = drawn(replace(rule, floor=0.4), torch.full((4,), 0.25, dtype=torch.float64), count=9)
    assert even.weights.isfinite().all(), "the likeliest always stay"


def test_masked_density_under_another_policy_lifts_what_falls_below_the_floor():
    rule = Dirichlet(5.0, floor=0.05, masked=True)
    thought = drawn(rule, torch.tensor([0.6, 0.3, 0.08, 0.02]), count=50, dtype=torch.float64)
    other = torch.tensor([0.7, 0.28, 0.01, 0.01], dtype=torch.float64)
    found = rule.log_densities(other.log().expand(1, 50, -1), thought.action)[0, :, 0]
    lifted = torch.tensor([0.7, 0.28, 0.05], dtype=torch.float64)
    a = 5 * lifted / lifted.sum()
    point = thought.weights[0, :, :3].double().numpy()
    expected = scipy.stats.dirichlet.logpdf((point / point.sum(-1, keepdims=True)).T, a.numpy()) + np.log(point).sum(
        -1
    )
    assert torch.allclose(found, torch.from_numpy(expected), atol=1e-4)


# The thought: its score


def score(rule, thought, alpha=ALPHA, dtype=torch.float64):
    """Gradient of each thought's log-density by the logits."""
    logits = alpha.log().to(dtype).expand(*thought.weights.shape[:2], -1).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(rule.log_densities(logits, thought.action.to(dtype)).sum(), logits)
    return gradient[0]


@pytest.mark.parametrize("least", [1e-2, 1e-6, 1e-12])
def test_float32_is_enough(least):
    alpha = torch.cat([torch.tensor([0.7, 0.3 - 4 * least]), torch.full((4,), least)]).double()
    for rule in (Dirichlet(20.0, **PLAIN), Dirichlet(20.0)):
        thought = drawn(rule, alpha, count=2000)
        logits = alpha.log().expand(1, 2000, -1)
        exact = rule.log_densities(logits, thought.action.double())
        assert (rule.log_densities(logits.float(), thought.action) - exact).abs().max() < 3e-4
        assert torch.allclose(
            score(rule, thought, alpha, torch.float32).double(), score(rule, thought, alpha), atol=1e-3
        )


def test_impossible_tokens_do_no_harm():
    """Probabilities that are no float at all have no entry, and no gradient."""
    logits = torch.tensor([0.0, -1.0, -200.0]).expand(1, 5, -1).clone().requires_grad_()
    hidden = torch.zeros(1, 5, 1)
    for rule in (Dirichlet(20.0, **PLAIN), Dirichlet(20.0), Dirichlet(20.0, masked=True)):
        thought = rule(
            State(logits.detach(), hidden, lambda n: draws_of(4, n, 5), lambda: hidden, lambda weights: hidden)
        )
        density = rule.log_densities(logits, thought.action)
        (gradient,) = torch.autograd.grad(density.sum(), logits)
        assert density.isfinite().all() and gradient.isfinite().all() and thought.weights.isfinite().all()


# Relaxed tokens


def test_gumbel_thoughts():
    alpha = ALPHA[:4] / ALPHA[:4].sum()
    thought = drawn(Gumbel(0.5), alpha, dtype=torch.float64)
    noise = thought.action[0] - alpha.log()
    assert all(scipy.stats.kstest(column.numpy(), "gumbel_r").pvalue > SAME_LAW for column in noise.T)
    expected = scipy.stats.gumbel_r.logpdf(noise.numpy()).sum(-1)
    found = Gumbel(0.5).log_densities(alpha.log().expand_as(thought.action[0]), thought.action[0])[:, 0]
    assert torch.allclose(found, torch.from_numpy(expected))
    assert torch.allclose(thought.weights, (2 * thought.action).softmax(-1))
    chosen = thought.weights.argmax(-1)[0].bincount() / 40_000
    assert torch.allclose(chosen.double(), alpha, atol=0.01), "the largest weight is a draw of a token"
    cold = drawn(Gumbel(0.01), alpha).weights[0].double().mean(0)
    warm = drawn(Gumbel(1.0), alpha).weights[0].double().mean(0)
    assert torch.allclose(cold, alpha, atol=0.01) and not torch.allclose(warm, alpha, atol=0.03)


# Training


def test_columns_of_the_rules():
    points, relaxed = (rewarded(thought=rule).columns() for rule in (Dirichlet(5.0), Gumbel(0.5)))
    told = lambda columns: [columns[name] for name in ("sampler", "gamma", "k", "temperature", "rule")]
    assert told(points) == ["Dirichlet", 5.0, None, 1.0, "Dirichlet(gamma=5.0)"]
    assert told(relaxed) == ["Gumbel", None, None, 0.5, "Gumbel(temperature=0.5)"]


def test_what_a_larger_gamma_does_is_decided(monkeypatch):
    """If spread rose with gamma the statement would hold as printed; if entropy fell, not at all."""
    falls = "holds if single samples are meant, not how far samples lie apart"
    assert theorems.gamma_direction() == falls
    monkeypatch.setattr(dirichlet, "variance", lambda alpha, gamma: -abs(gamma - 10.0) * alpha)
    assert theorems.gamma_direction() == falls, "a spread that rises only up to some gamma does not rise"
    monkeypatch.setattr(dirichlet, "variance", lambda alpha, gamma: gamma * alpha)
    assert theorems.gamma_direction() == "holds"
    monkeypatch.setattr(dirichlet, "mean_entropy", lambda alpha, gamma: -gamma * alpha.sum(-1))
    assert theorems.gamma_direction() == "refuted"
