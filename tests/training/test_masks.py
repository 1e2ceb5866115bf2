"""Rollouts with masks of their own: the same mask everywhere, and gradients through the thoughts."""

import pytest
import torch
from builders import noted, rewarded

from cot2lib.decode import ANSWER, decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.thoughts import Base
from cot2lib.training.grpo import MaskedTrainer, SequenceMasks
from cot2lib.training.supervised import build_stack

PROMPTS = torch.randint(0, 11, (1, 6, 4), generator=torch.Generator().manual_seed(0))
KEYS = torch.tensor([3, 4])


@pytest.fixture
def stack():
    return GPT2Stack(2, vocab_size=11, positions=9, d_model=8, layers=2, heads=2)


def masks(keys=KEYS, batch=6, probability=0.25):
    return SequenceMasks(keys, batch, 8, probability)


def masked(seed=42, **options):
    return rewarded(seed, Base(), **{"mask": 0.2} | options)


def masked_trainer(*specs):
    return MaskedTrainer(specs, build_stack([one.start for one in specs]))


def test_a_mask_is_one_per_sequence_and_site(stack):
    lanes = stack.dropout_lanes(6, 5, 5)
    scales = masks().scales(lanes)
    assert [scale is None for scale in scales] == [False, True, False, False, True, False, False]
    shown = [scale.view(2, 6, 5, 8) for scale in scales if scale is not None]
    assert all(torch.equal(one, one[:, :, :1].expand_as(one)) for one in shown)
    assert all(one.unique().tolist() == pytest.approx([0, 4 / 3]) for one in shown)
    first = torch.stack([one[:, :, 0] for one in shown])
    assert len({tuple(row) for row in first.flatten(0, 2).tolist()}) > 30, "sites, runs and sequences differ"


@torch.no_grad()
def test_masked_decoding_is_one_masked_forward(stack):
    """Position by position with a cache, or all at once: the same masks."""
    rollout = decode(stack, PROMPTS, rules(Base(), 4), dropout=masks())
    inputs = torch.cat([stack.embed(PROMPTS).expand(2, -1, -1, -1), rollout.thoughts(stack)], 2)
    assert torch.allclose(stack(inputs, outputs=4, dropout=masks()), rollout.logits, atol=1e-6)
    plain = decode(stack, PROMPTS, rules(Base(), 4))
    assert (plain.logits - rollout.logits).abs().max() > 1e-3


def test_gradients_run_through_the_thoughts():
    """Of the answer's density by finite differences, with the whole chain of thoughts moving."""
    stack = GPT2Stack(1, vocab_size=11, positions=9, d_model=8, layers=1, heads=2).double()
    stack.load_state_dict({name: 20 * value for name, value in stack.state_dict().items()})
    answers = torch.zeros(1, 6, 1, 1, dtype=torch.int64)

    def value():
        rollout = decode(stack, PROMPTS, rules(Base(), 4, ANSWER), KEYS[:1], dropout=masks(KEYS[:1]))
        return ANSWER.log_densities(rollout.logits[:, :, -1:], answers).sum()

    parameter = stack.transformer.wpe.weight
    (gradient,) = torch.autograd.grad(value(), [parameter])
    for place in ((0, 2, 1), (0, 5, 3)):
        with torch.no_grad():
            values = []
            for step in (1e-5, -2e-5, 1e-5):
                parameter[place] += step
                values.append(value().item())
        assert gradient[place].item() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4, abs=1e-7)


def test_several_updates_think_again(monkeypatch):
    """The second update scores the first's answers after thoughts that the new weights think under the old masks."""
    seen, one = noted(monkeypatch), masked_trainer(masked(updates=2))
    drawn = []

    def written(*given, **options):
        assert options["dropout"].probability == one.spec.mask
        drawn.append(decode(*given, **options))
        return drawn[-1]

    monkeypatch.setattr(one, "decode", written)
    one.advance(1)
    assert seen[0][0][0].unflatten(1, (-1, 8)).std(2).min() > 0, "rollouts of a prompt differ"
    assert not torch.equal(drawn[0].weights[:, :, 0], drawn[1].weights[:, :, 0])
    found = ANSWER.log_densities(drawn[1].logits[:, :, -1:], drawn[0].answers[:, :, None, None])
    assert torch.equal(seen[1][0][0], found)
