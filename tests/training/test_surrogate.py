import math

import pytest
import torch

from cot2lib import losses


def draws(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def test_advantages_of_a_group():
    rewards = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]])
    found = losses.advantages(rewards)
    assert found[0, 0].tolist() == pytest.approx([math.sqrt(3), *[-1 / math.sqrt(3)] * 3])
    assert (found[0, 1] == 0).all(), "a group without spread teaches nothing"
    assert losses.advantages(rewards, scaled=False)[0, 0].tolist() == pytest.approx([0.75, -0.25, -0.25, -0.25])


@pytest.mark.parametrize("ratio", losses.RATIOS)
def test_value_is_zero_and_the_clip_silent_at_equal_weights(ratio):
    """With one update per batch old is current: the surrogate's value is the advantage, whatever was rewarded."""
    old = draws(2, 8, 3, 4)
    new = old.clone().requires_grad_()
    gain = losses.advantages(draws(2, 1, 8, seed=1))[:, 0]
    value = losses.surrogate(new, old, gain, ratio, 0.1)
    scale = 4 if ratio == "per-draw" else 1
    assert torch.allclose(value, scale * gain[..., None].expand_as(value))
    assert value.sum(1).abs().max() < 1e-9
    value.sum().backward()
    share = 1 / 4 if ratio == "geometric" else 1.0
    assert torch.allclose(new.grad, share * gain[..., None, None].expand_as(new)), "clipping never binds"


def test_per_draw_clips_each():
    new = torch.tensor([[[[0.5, 0.0]]]], dtype=torch.float64)
    value = losses.surrogate(new, torch.zeros_like(new), torch.ones(1, 1, dtype=torch.float64), "per-draw", 0.1)
    assert float(value) == pytest.approx(1.1 + 1.0)


def enumerate_tokens(p, k):
    """All ordered draws of k tokens with their log-densities under p."""
    tokens = torch.cartesian_prod(*[torch.arange(len(p))] * k).view(-1, k)
    return tokens, p.log()[tokens]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_kl_estimate_against_the_exact_divergence(k):
    new, reference = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.2, 0.6]).double()
    tokens, mine = enumerate_tokens(new, k)
    theirs = reference.log()[tokens]
    as_steps = lambda x: x[None, :, None]
    chance = mine.sum(-1).exp()
    exact = float((new * (new / reference).log()).sum())
    found = losses.kl_estimate(as_steps(mine), as_steps(theirs), "product")[0, :, 0]
    assert float(chance @ found) == pytest.approx(k * exact), "of the whole thought"
    geometric = losses.kl_estimate(as_steps(mine), as_steps(theirs), "geometric")[0, :, 0]
    if k > 1:
        assert float(chance @ geometric) < 0.9 * exact
