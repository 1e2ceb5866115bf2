import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.thoughts import Base, Discrete, inverse_cdf

LOGITS = torch.randn(2, 3, 11, generator=torch.Generator().manual_seed(0)) * 3


def no_draws(count):
    raise AssertionError("a deterministic rule must not draw")


def test_base_is_the_softmax():
    thought = Base()(LOGITS, no_draws)
    assert torch.equal(thought.weights, LOGITS.softmax(-1)) and thought.log_density is None
    assert torch.allclose(Base(temperature=0.5)(LOGITS, no_draws).weights, (2 * LOGITS).softmax(-1))


@given(st.floats(0, 0.99), st.floats(0.2, 5))
@settings(deadline=None)
def test_threshold_drops_and_renormalises(threshold, temperature):
    weights = Base(temperature, threshold)(LOGITS, no_draws).weights
    full = (LOGITS / temperature).softmax(-1)
    kept = weights > 0
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3))
    assert torch.equal(weights.argmax(-1), full.argmax(-1))
    top = torch.nn.functional.one_hot(full.argmax(-1), 11).bool()
    assert torch.equal(kept, (full >= threshold) | top)
    assert torch.allclose(weights[kept] / full[kept], (1 / (full * kept).sum(-1))[..., None].expand_as(full)[kept])


def test_greedy_is_the_arg_max():
    thought = Discrete()(LOGITS, no_draws)
    assert torch.equal(thought.weights.argmax(-1), LOGITS.argmax(-1))
    assert torch.equal(thought.weights.sum(-1), torch.ones(2, 3)) and thought.log_density is None


def test_sampled_token_follows_its_density():
    count = 40_000
    logits = LOGITS[:1, :1].expand(1, count, 11)
    uniforms = torch.rand(1, count, 1, generator=torch.Generator().manual_seed(1))
    thought = Discrete(temperature=2.0)(logits, lambda n: uniforms)
    expected = (LOGITS[0, 0] / 2).softmax(-1)
    assert (thought.weights[0].mean(0) - expected).abs().max() < 4 * math.sqrt(0.25 / count)
    tokens = thought.weights[0].argmax(-1)
    assert torch.allclose(thought.log_density[0], expected.log()[tokens], atol=1e-5)


def test_inverse_cdf_at_its_edges():
    weights = torch.tensor([[[0.0, 0.25, 0.0, 0.75, 0.0]]])
    uniforms = torch.tensor([[[1e-7, 0.2499, 0.2501, 1 - 1e-7]]])
    assert inverse_cdf(weights, uniforms).tolist() == [[[1, 1, 3, 3]]]


@pytest.mark.parametrize(
    "make, names",
    [
        (lambda: Base(temperature=0.0), "temperature=0.0"),
        (lambda: Base(threshold=1.0), "threshold=1.0"),
        (lambda: Discrete(temperature=-1.0), "temperature=-1.0"),
    ],
)
def test_bad_rules_are_named(make, names):
    with pytest.raises(ValueError, match=names):
        make()
