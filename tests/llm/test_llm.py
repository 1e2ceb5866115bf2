"""Responses of language models, on tiny random ones of three architectures."""

import copy
from dataclasses import dataclass

import pytest
import torch

from cot2lib import losses
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Gaussian, Gumbel, Sampled, Thought, ZeroSlot
from cot2lib.training import grpo

transformers = pytest.importorskip("transformers")
from cot2lib.llm import responses  # noqa: E402
from cot2lib.llm.responses import Plan, Prompts, replay, respond  # noqa: E402

VOCAB, END = 23, 5
SIZES = dict(vocab_size=VOCAB, bos_token_id=1, eos_token_id=END, pad_token_id=0)
WIDE = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1)
CONFIGS = {
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, **WIDE, head_dim=8, tie_word_embeddings=True),
    "llama": lambda: transformers.LlamaConfig(**SIZES, **WIDE),
    "gpt2": lambda: transformers.GPT2Config(**SIZES, n_embd=16, n_layer=2, n_head=2, n_positions=64),
}
TEXTS = [[3, 7, 9, 11], [4, 8], [2, 2, 6]]


@pytest.fixture(scope="module", params=CONFIGS)
def model(request):
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(CONFIGS[request.param]()).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn_like(parameter)  # far from the start, where all tokens are alike
    return made


@pytest.fixture
def prompts():
    return Prompts.of(lambda ids: {"input_ids": ids}, TEXTS)


def keys(seed=42):
    return random.run_keys([seed], Site.ROLLOUT)


@torch.no_grad()
def test_respond_of_one_hot_thoughts_is_greedy_generation(model, prompts):
    """Thoughts that are single tokens, then tokens: what `generate` writes, token by token."""
    made = respond(model, prompts, Plan(Discrete(), 3, 6, Discrete()), keys())
    options = dict(do_sample=False, max_new_tokens=9, eos_token_id=None, pad_token_id=0)
    expected = model.generate(prompts.ids, attention_mask=prompts.mask, **options)[:, prompts.ids.shape[1] :]
    table = model.get_input_embeddings().weight
    assert torch.allclose(made.thoughts, table[expected[:, :3]], atol=1e-6)
    assert torch.equal(made.tokens, expected[:, 3:]) and not made.ended.any()


@torch.no_grad()
@pytest.mark.parametrize("thought", [Base(), MTS(4)])
def test_respond_to_a_padded_prompt_as_alone(model, thought):
    plan = Plan(thought, 3, 4, token=Discrete())
    prompts = Prompts.of(lambda ids: {"input_ids": ids}, TEXTS[:2])
    together = respond(model, prompts, plan, keys())
    alone = respond(model, Prompts.of(lambda ids: {"input_ids": ids}, TEXTS[:1]), plan, keys())
    assert torch.allclose(together.thoughts[0], alone.thoughts[0], atol=1e-4)
    assert torch.equal(together.tokens[0], alone.tokens[0])
    wide = Prompts.of(lambda ids: {"input_ids": ids}, [TEXTS[1], TEXTS[0]])
    if thought == Base():
        assert torch.equal(respond(model, wide, plan, keys()).tokens[0], together.tokens[1])


@torch.no_grad()
def test_respond_shares_the_prompt_of_samples(model, prompts):
    """Responses to a prompt given twice are those of two samples of it."""
    twice = Prompts(prompts.ids.repeat_interleave(2, 0), prompts.mask.repeat_interleave(2, 0))
    plan = Plan(MTS(3), 2, 5, ends=(END,))
    one, other = respond(model, prompts, plan, keys(), samples=2), respond(model, twice, plan, keys())
    assert torch.equal(one.tokens, other.tokens) and torch.equal(one.actions, other.actions)
    assert not torch.equal(one.actions[0], one.actions[1])


@torch.no_grad()
def test_respond_whatever_ends_before(model, prompts):
    """Rows leave the batch as they end; the others go on as if they had not."""
    plan, endless = (Plan(MTS(2), 1, 12, ends=ends) for ends in (tuple(range(8)), ()))
    made, whole = (respond(model, prompts, p, keys(), samples=8) for p in (plan, endless))
    assert made.ended.any() and made.lengths.unique().numel() > 2
    for row, length in enumerate(made.lengths.tolist()):
        assert torch.equal(made.tokens[row, :length], whole.tokens[row, :length])
        assert (made.tokens[row, length:] == 0).all()
        last = int(made.tokens[row, length - 1])
        assert made.ended[row] == (last < 8) and (made.ended[row] or length == 12)
    assert torch.equal(made.there[0].sum(1), 1 + made.lengths)


@dataclass(frozen=True)
class Coin(Sampled):
    """A rule from outside: the likeliest token or an even mixture of all, by a coin that scores bend."""

    def __call__(self, state):
        heads = (state.draws(1) < self.odds(state.logits)).long()  # (run, batch, 1)
        alone = torch.zeros_like(state.logits).scatter(-1, state.logits.argmax(-1, keepdim=True), 1.0)
        weights = torch.where(heads.bool(), alone, torch.full_like(alone, 1 / alone.shape[-1]))
        return Thought(weights, heads)

    def odds(self, logits):
        return logits.softmax(-1).amax(-1, keepdim=True).clamp(0.1, 0.9)

    def log_densities(self, parameters, action):
        odds = self.odds(parameters)
        return torch.where(action.bool(), odds, 1 - odds).log()


RULES = (MTS(3), Discrete(1.0), Dirichlet(20.0), Gumbel(0.5), Gaussian(0.1), Coin())
EACH = pytest.mark.parametrize(  # architecture with one rule, each rule with one architecture
    "model, rule",
    [*((name, RULES[0]) for name in CONFIGS), *(("qwen3", rule) for rule in RULES[1:])],
    indirect=["model"],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)


@EACH
def test_replay_has_the_densities_of_the_rollout(model, prompts, rule, monkeypatch):
    """One forward over what was drawn equals the cached steps."""
    step, drawn_with = responses._Reader.step, []

    def noted(reader, rule, hidden, draws):
        thought = step(reader, rule, hidden, draws)
        parameters = rule.parameters(reader.logits(hidden)[None], reader.mix)
        drawn_with.append(rule.log_densities(parameters, thought.action)[0].sum(-1))
        return thought

    monkeypatch.setattr(responses._Reader, "step", noted)
    plan, draws = Plan(rule, 2, 5, ends=(END, 7)), getattr(rule, "k", 1)
    made = respond(model, prompts, plan, keys(), samples=4)
    thoughts, tokens = replay(model, prompts, plan, made)
    assert thoughts.shape == (1, 12, 2, draws) and tokens.shape == (1, 12, int(made.lengths.max()), 1)
    drawn = torch.cat([thoughts[0].sum(-1), tokens[0, ..., 0]], 1)
    there = made.there[0].T
    assert len(drawn_with) == len(there) and drawn[:, :2].std() > 0.01
    for found, expected, rows in zip(drawn.T, drawn_with, there):
        assert torch.allclose(found[rows], expected, atol=1e-3)


@EACH
def test_replay_has_ratios_of_one_at_equal_weights_alone(model, prompts, rule):
    plan, model = Plan(rule, 2, 5, ends=(END, 7)), copy.deepcopy(model)
    made = respond(model, prompts, plan, keys(), samples=4)
    optimizer, seen = torch.optim.SGD(model.parameters(), lr=0.1), []
    gains = torch.randn(1, 12, generator=torch.Generator().manual_seed(0))
    old = None
    for _ in range(2):
        new = replay(model, prompts, plan, made)
        old = old or [part.detach() for part in new]
        seen.append([losses.log_ratios(*pair, "geometric").detach() for pair in zip(new, old)])
        grpo.objective(new, old, gains, there=made.there).sum().backward()
        optimizer.step()
    assert not any(part.any() for part in seen[0]) and all(part.abs().max() > 1e-3 for part in seen[1])


def test_replay_sends_gradients_to_the_embeddings_of_thoughts(model, prompts):
    plan = Plan(MTS(2), 2, 1)
    made = respond(model, prompts, plan, keys())
    model.zero_grad()
    replay(model, prompts, plan, made)[1].sum().backward()
    gradient = model.get_input_embeddings().weight.grad
    with torch.no_grad():
        outside = [t for t in made.actions.unique().tolist() if t not in {x for ids in TEXTS for x in ids}]
    assert outside and (gradient[outside].abs().sum(1) > 0).all()


@pytest.mark.parametrize("model", ["qwen3"], indirect=True)
def test_respond_refuses_to_look_ahead(model, prompts):
    with pytest.raises(SpecError, match="cannot look at the next"):
        respond(model, prompts, Plan(ZeroSlot(), 1, 1), keys())
