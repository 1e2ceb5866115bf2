import math

import pytest
import torch
from builders import moved
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.decode import decode, rules
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.thoughts import (
    MTS,
    Base,
    Discrete,
    Gaussian,
    Hidden,
    State,
    Systematic,
    ZeroSlot,
    inverse_cdf,
    systematic_counts,
)

LOGITS = torch.randn(2, 3, 11, generator=torch.Generator().manual_seed(0)) * 3


HIDDEN = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))


def no_draws(count):
    raise AssertionError("a deterministic rule must not draw")


def no_peek():
    raise AssertionError("only ZeroSlot looks ahead")


def no_mix(weights):
    raise AssertionError("only Gaussian needs the embedding table")


def state(logits=LOGITS, draws=no_draws, peek=no_peek, mix=no_mix):
    return State(logits, HIDDEN[:1, :1].expand(*logits.shape[:2], 4), draws, peek, mix)


@given(st.floats(0, 0.99), st.floats(0.2, 5))
@settings(deadline=None)
def test_threshold_drops_and_renormalises(threshold, temperature):
    weights = Base(temperature, threshold)(state()).weights
    full = (LOGITS / temperature).softmax(-1)
    kept = weights > 0
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3))
    assert torch.equal(weights.argmax(-1), full.argmax(-1))
    top = torch.nn.functional.one_hot(full.argmax(-1), 11).bool()
    assert torch.equal(kept, (full >= threshold) | top)
    assert torch.allclose(weights[kept] / full[kept], (1 / (full * kept).sum(-1))[..., None].expand_as(full)[kept])


def test_inverse_cdf_at_its_edges():
    weights = torch.tensor([[[0.0, 0.25, 0.0, 0.75, 0.0]]])
    uniforms = torch.tensor([[[1e-7, 0.2499, 0.2501, 1 - 1e-7]]])
    assert inverse_cdf(weights, uniforms).tolist() == [[[1, 1, 3, 3]]]


def test_top_k_samples_among_the_largest_logits_only():
    uniforms = torch.rand(2, 3, 1, generator=torch.Generator().manual_seed(1))
    rule = Discrete(temperature=1.0, top_k=2)
    thought = rule(state(LOGITS, lambda n: uniforms))
    best = LOGITS.topk(2).indices
    assert ((thought.weights.argmax(-1)[..., None] == best).any(-1)).all()
    kept = LOGITS.gather(-1, best).log_softmax(-1)
    chosen = (thought.weights.argmax(-1)[..., None] == best).int().argmax(-1, keepdim=True)
    assert torch.allclose(rule.log_densities(LOGITS, thought.action), kept.gather(-1, chosen), atol=1e-5)
    assert Discrete(1.0, top_k=11)(state(LOGITS, lambda n: uniforms)).weights.equal(
        Discrete(1.0)(state(LOGITS, lambda n: uniforms)).weights
    )


@pytest.mark.parametrize("rule", [Discrete(2.0), MTS(3), MTS(2, 0.5)], ids=lambda rule: rule.label)
def test_sampled_tokens_follow_their_density(rule):
    """K draws: the mean is unbiased, and its variance falls as 1/K."""
    count, k = 20_000, getattr(rule, "k", 1)
    logits = LOGITS[:1, :1].expand(1, count, 11)
    uniforms = torch.rand(1, count, k, generator=torch.Generator().manual_seed(3))
    thought = rule(state(logits, lambda n: uniforms))
    expected, weights = (LOGITS[0, 0] / rule.temperature).softmax(-1), thought.weights[0]
    counts = (weights * k).round()
    assert (weights * k - counts).abs().max() < 1e-5 and (counts.sum(-1) == k).all()
    assert (weights.mean(0) - expected).abs().max() < 4 * math.sqrt(0.25 / (k * count))
    assert torch.allclose(weights.var(0), expected * (1 - expected) / k, rtol=0.1, atol=1e-4)
    found = rule.log_densities(logits, thought.action).sum(-1)
    assert torch.allclose(found[0], counts @ expected.log(), atol=1e-4)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 20), st.floats(0, 1 - 2**-24))
@settings(deadline=None)
def test_systematic_counts_are_next_to_their_mean(weights, k, offset):
    law = torch.tensor(weights, dtype=torch.float64) + 1e-9
    expected = k * law / law.sum()
    counts = systematic_counts(expected, torch.tensor(offset, dtype=torch.float64))
    assert counts.sum() == k and torch.equal(counts, counts.round())
    assert (counts >= (expected - 1e-9).floor()).all() and (counts <= (expected + 1e-9).ceil()).all()
    grid = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    every = systematic_counts(expected.expand(4000, -1), grid)
    assert (every.mean(0) - expected).abs().max() <= 1 / 4000 + 1e-9, "every offset equally often: unbiased"


def test_systematic_thought_takes_no_token_of_weight_zero():
    expected = torch.tensor([0.0, 1.5, 0.0, 0.5, 0.0], dtype=torch.float64)
    for offset in (0.0, 0.25, 0.499, 0.5, 0.75, 1 - 2**-24):
        assert systematic_counts(expected, torch.tensor(offset)).tolist() in ([0, 1, 0, 1, 0], [0, 2, 0, 0, 0])


@torch.no_grad()
def test_systematic_decodes():
    """Through the loop: thoughts of k-ths, all weight on even laws, the same for the same keys, one draw a thought."""
    stack, prompts = GPT2Stack(2, 8, 9, 16, 1, 1), torch.randint(0, 8, (2, 5, 4))
    stack.transformer.wte.weight.zero_()
    keys = random.run_keys([1, 2], Site.DECODE)
    made = decode(stack, prompts, rules(Systematic(8), 3), keys)
    assert torch.allclose(made.weights[:, :, :2], torch.full((2, 5, 2, 8), 1 / 8)), "equal logits: every token once"
    assert made.actions == [None] * 3
    stack = moved(GPT2Stack(2, 8, 9, 16, 1, 1), 0.5)
    first, again = (decode(stack, prompts, rules(Systematic(4), 3), keys) for _ in range(2))
    other = decode(stack, prompts, rules(Systematic(4), 3), random.run_keys([3, 4], Site.DECODE))
    assert torch.equal(first.weights, again.weights) and not torch.equal(first.weights, other.weights)
    thoughts, laws = first.weights[:, :, :2], first.logits[:, :, :2].softmax(-1)
    assert (4 * (thoughts - laws)).abs().max() < 1 + 1e-5


@pytest.mark.parametrize("top", [1, 3, 100])
def test_the_likeliest_tokens_alone_stay(top):
    full, weights = Base()(state()).weights, Base(top=top)(state()).weights
    order = full.argsort(-1, descending=True)[..., :top]
    kept = torch.zeros_like(full, dtype=torch.bool).scatter(-1, order, True)
    assert torch.equal(weights > 0, kept & (full > 0))
    assert torch.allclose(weights, full * kept / (full * kept).sum(-1, keepdim=True))
    ties = state(torch.zeros_like(LOGITS[:1, :1]))
    assert (Base(top=top)(ties).weights > 0).sum() == min(top, LOGITS.shape[-1])
    both = Base(threshold=0.2, top=top)(state()).weights
    assert torch.equal(both > 0, kept & (Base(threshold=0.2)(state()).weights > 0))


@pytest.mark.parametrize("rule", [Hidden(), ZeroSlot()])
@torch.no_grad()
def test_latent_thoughts(rule):
    """Decoded without a cache: what is fed is the hidden state before the slot, or the slot's own over zeros."""
    torch.manual_seed(0)
    stack, prompts = moved(GPT2Stack(2, 11, 8, 16, 2, 2), 0.3), torch.randint(0, 11, (2, 3, 4))
    rollout = decode(stack, prompts, rules(rule, 3))
    assert torch.equal(rollout.weights[:, :, 0], rollout.logits[:, :, 0].softmax(-1)), "for the record"
    inputs = stack.embed(prompts)
    for step in range(3):
        assert torch.allclose(rollout.logits[:, :, step], stack(inputs)[:, :, -1], rtol=0, atol=1e-5)
        zeros = torch.zeros(2, 3, 1, 16)
        seen = inputs if rule == Hidden() else torch.cat([inputs, zeros], dim=2)
        inputs = torch.cat([inputs, stack.hidden(seen)[:, :, -1:]], dim=2)


def test_gaussian_thoughts_are_normal_around_the_base_thought():
    count, sigma = 20_000, 0.3
    logits = LOGITS[:1, :1].expand(1, count, 11)
    table = torch.randn(11, 5, generator=torch.Generator().manual_seed(3))
    uniforms = lambda draws: torch.rand(1, count, draws, generator=torch.Generator().manual_seed(4))
    thought = Gaussian(sigma)(state(logits, uniforms, mix=lambda weights: weights @ table))
    mean = logits[0, 0].softmax(-1) @ table
    assert thought.latent is thought.action and torch.equal(thought.weights, logits.softmax(-1))
    assert torch.allclose(thought.latent[0].mean(0), mean, atol=5 * sigma / count**0.5)
    assert torch.allclose(thought.latent[0].T.cov(), sigma**2 * torch.eye(5), atol=0.005)
    expected = torch.distributions.Normal(mean, sigma).log_prob(thought.latent).sum(-1)
    found = Gaussian(sigma).log_densities(mean.expand(1, count, -1), thought.action)[..., 0]
    assert torch.allclose(found, expected, atol=1e-4)
