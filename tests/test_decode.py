import pytest
import torch

from cot2lib import random
from cot2lib.decode import decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.random import Site
from cot2lib.thoughts import Base, Discrete, Hidden


@pytest.fixture
def stack():
    torch.manual_seed(0)
    stack = GPT2Stack(3, 40, 12, 16, 2, 2)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return stack


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
    assert (rollout.log_density == 0).all()


def test_prompts_of_all_runs_at_once(stack):
    shared = decode(stack, PROMPTS[:1], rules(Base(), 3))
    assert torch.equal(shared.answers, decode(stack, PROMPTS[:1].expand(3, -1, -1), rules(Base(), 3)).answers)


def test_sampling_does_not_depend_on_the_company(stack):
    keys = random.run_keys([7, 8, 9], Site.DECODE)
    rule = Discrete(temperature=1.0)
    together = decode(stack, PROMPTS, rules(rule, 4, rule), keys)
    alone = decode(stack.select([1]), PROMPTS[1:2], rules(rule, 4, rule), keys[1:2])
    assert torch.equal(together.answers[1:2], alone.answers)
    assert torch.allclose(together.log_density[1:2], alone.log_density, atol=1e-5)
    again = decode(stack, PROMPTS, rules(rule, 4, rule), random.run_keys([7, 8, 10], Site.DECODE))
    assert not torch.equal(together.weights[2], again.weights[2])


def test_every_step_draws_anew():
    """A model of zeros samples uniformly: equal tokens at two steps are then a matter of chance (1 in 40)."""
    flat = GPT2Stack(1, 40, 12, 16, 1, 1)
    with torch.no_grad():
        for parameter in flat.parameters():
            parameter.zero_()
    rule = Discrete(temperature=1.0)
    rollout = decode(
        flat, torch.zeros(1, 400, 2, dtype=torch.int64), rules(rule, 2, rule), random.run_keys([1], Site.DECODE)
    )
    tokens = rollout.weights[0].argmax(-1)
    assert (tokens[:, 0] == tokens[:, 1]).double().mean() < 0.08
    assert len(torch.unique(tokens[:, 0])) == 40, "and inputs differ"


def test_log_density_is_that_of_the_sampled_tokens(stack):
    rule = Discrete(temperature=1.5)
    rollout = decode(stack, PROMPTS, rules(rule, 4), random.run_keys([7, 8, 9], Site.DECODE))
    log_weights = (rollout.logits / 1.5).log_softmax(-1)
    tokens = rollout.weights.argmax(-1)
    expected = log_weights.gather(-1, tokens[..., None])[..., 0]
    assert torch.allclose(rollout.log_density[:, :, :3], expected[:, :, :3], atol=1e-5)
    assert (rollout.log_density[:, :, 3] == 0).all(), "the answer was the arg max"


def test_sampling_without_keys_is_named(stack):
    with pytest.raises(ValueError, match="pass keys"):
        decode(stack, PROMPTS, rules(Discrete(temperature=1.0), 2))


def test_padded_prompts_decode_as_short_ones(stack):
    short = decode(stack, PROMPTS[:, :, 2:], rules(Base(), 3))
    padded = decode(stack, PROMPTS, rules(Base(), 3), padding=torch.full((1, 5), 2))
    assert torch.allclose(short.logits, padded.logits, rtol=0, atol=1e-5)


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


@torch.no_grad()
def test_a_rule_for_every_step(stack):
    """Mixed rules, as in a stage of COCONUT: a hidden state, then a token, then the answer."""
    rollout = decode(stack, PROMPTS, [Hidden(), Discrete(), Discrete()])
    inputs = stack.embed(PROMPTS)
    inputs = torch.cat([inputs, stack.hidden(inputs)[:, :, -1:]], dim=2)
    token = stack(inputs)[:, :, -1].argmax(-1)
    assert torch.equal(rollout.weights[:, :, 1].argmax(-1), token)
    inputs = torch.cat([inputs, stack.embed(token[:, :, None])], dim=2)
    assert torch.equal(rollout.answers, stack(inputs)[:, :, -1].argmax(-1))
