import pytest
import torch
from builders import moved

from cot2lib.decode import decode, replay, rules
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.thoughts import MTS, Base, Discrete, Hidden


@pytest.fixture
def stack():
    return moved(GPT2Stack(3, 40, 12, 16, 2, 2), 0.3)


PROMPTS = torch.randint(0, 40, (3, 5, 6), generator=torch.Generator().manual_seed(1))


def test_greedy_decoding_equals_hugging_face(stack):
    answers = decode(stack, PROMPTS, rules(Discrete(), 4))
    for run in range(3):
        model = stack.to_hf(run)
        ids = PROMPTS[run]
        for _ in range(4):
            ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], dim=1)
        assert torch.equal(answers.answers[run], ids[:, -1])
        assert torch.equal(answers.weights[run].argmax(-1), ids[:, -4:])


@torch.no_grad()
def test_base_decoding_equals_feeding_mixtures_by_hand(stack):
    rollout = decode(stack, PROMPTS, rules(Base(), 4))
    inputs = stack.embed(PROMPTS)
    for step in range(4):
        logits = stack(inputs)[:, :, -1]
        assert torch.allclose(rollout.logits[:, :, step], logits, rtol=0, atol=1e-5)
        thought = stack.mix(logits.softmax(-1)[:, :, None])
        inputs = torch.cat([inputs, thought], dim=2)
    assert torch.equal(rollout.answers, logits.argmax(-1))


def test_samples_share_the_prompt_and_draw_apart(stack):
    """Three samples of every prompt are the rollouts of the prompt repeated three times."""
    rule, keys = Discrete(temperature=1.0), random.run_keys([7, 8, 9], Site.DECODE)
    padding = torch.tensor([[0, 2, 0, 1, 0]])
    shared = decode(stack, PROMPTS, rules(rule, 4, rule), keys, padding, samples=3)
    repeated = PROMPTS.repeat_interleave(3, 1)
    alone = decode(stack, repeated, rules(rule, 4, rule), keys, padding.repeat_interleave(3, 1))
    assert torch.equal(shared.answers, alone.answers)
    assert torch.allclose(shared.logits, alone.logits, rtol=0, atol=1e-5)
    tokens = shared.weights.argmax(-1).view(3, 5, 3, 4)
    assert not torch.equal(tokens[:, :, 0], tokens[:, :, 1])


def test_a_rule_for_every_step(stack):
    """As in a stage of COCONUT: a hidden state, then a token, then the answer."""
    rollout = decode(stack, PROMPTS, [Hidden(), Discrete(), Discrete()])
    assert [latent is None for latent in rollout.latents] == [False, True, True]
    assert torch.equal(rollout.weights[:, :, 1].argmax(-1), rollout.logits[:, :, 1].argmax(-1))


@pytest.mark.parametrize("padded", [False, True])
def test_replay_gives_the_rollouts_logits_with_the_gradients_of_a_plain_forward(stack, padded):
    """Sharing a prompt's keys and values among its rollouts changes neither values nor gradients."""
    keys, rule, group = random.run_keys([7, 8, 9], Site.DECODE), MTS(3), 4
    padding = torch.randint(0, 3, (3, 5), generator=torch.Generator().manual_seed(2)) if padded else None
    with torch.no_grad():
        rollout = decode(stack, PROMPTS, rules(rule, 4, Discrete(1.0)), keys, padding, group)
    logits = replay(stack, PROMPTS, rollout.thoughts(stack), padding)
    assert torch.allclose(logits, rollout.logits, rtol=0, atol=1e-5)
    found = torch.autograd.grad(logits.logsumexp(-1).sum() + logits[..., 3].sum(), list(stack.parameters()))
    wide = lambda x: None if x is None else x.repeat_interleave(group, 1)
    inputs = torch.cat([stack.embed(wide(PROMPTS)), stack.mix(rollout.weights[:, :, :-1])], dim=2)
    plain = stack(inputs, outputs=4, padding=wide(padding))
    expected = torch.autograd.grad(plain.logsumexp(-1).sum() + plain[..., 3].sum(), list(stack.parameters()))
    for one, other in zip(found, expected):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-3)
