"""GRPO on language models, and what it starts from."""

import pytest
import torch

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site

pytest.importorskip("transformers")
from cot2lib.llm import models, policy, warm_start
from cot2lib.llm.policy import Asked, PolicyTrainer, Reward
from cot2lib.llm.responses import Prompts, respond
from cot2lib.llm.stories import PARTS, stories
from cot2lib.thoughts import Base, Discrete

RECIPE = dict(steps=10, prompts=3, group=4, lr=1e-3, limit=8)
STORIES = stories(40, 1)


@pytest.fixture(scope="module")
def tokenizer():
    return models.word_tokenizer()


def small(tokenizer, seed=0):
    return models.small_qwen3(len(tokenizer), seed, width=32, layers=2)


def trainer(tokenizer, model=None, **options):
    recipe = Reward(**RECIPE | options)
    return PolicyTrainer(model or small(tokenizer), tokenizer, Asked.of(STORIES), recipe, seed=42)


def test_every_word_of_a_story_is_known(tokenizer):
    for part in PARTS:
        for story in stories(200, 3, part):
            ids = tokenizer(f"{story.text} {story.chain}")["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(tokenizer(story.chain)["input_ids"]) == story.chain


def test_thoughts_enter_at_half_and_are_all_there_by_four_fifths():
    reward = Reward(**RECIPE | dict(steps=1000, thoughts=32))
    assert [reward.thoughts_at(step) for step in (0, 499, 500, 650, 800, 999)] == [0, 0, 0, 16, 32, 32]
    assert Reward(**RECIPE).thoughts_at(9) == 0


def test_every_problem_comes_once_a_round(tokenizer):
    made = trainer(tokenizer, prompts=4)
    rounds = []
    for step in range(20):
        made.taken = step
        rounds += made.rows()
    assert sorted(rounds[:40]) == sorted(rounds[40:]) == list(range(40)) and rounds[:40] != rounds[40:]


def test_the_mean_is_over_each_responses_steps():
    values = torch.tensor([[1.0, 2.0, 9.0, 9.0], [4.0, 0.0, 2.0, 9.0]])
    written = torch.tensor([[True, False, False], [True, True, False]])
    assert policy.mean_of_steps(values, written) == pytest.approx((1.5 + 2.0) / 2)


def test_a_step_goes_up_the_advantage_weighted_log_density(tokenizer):
    """At equal weights the surrogate's gradient is that of advantage times log-density, over K for a thought."""
    made = trainer(tokenizer, thoughts=2, k=2, enter=0.0, full=0.1)
    plan, prompts = made.reward.plan(9, made.ends), Prompts.of(tokenizer, made.asked.texts[:2])
    assert plan.thoughts == 2
    responses = respond(made.model, prompts, plan, random.run_keys([1], Site.ROLLOUT), 2)
    advantages = torch.tensor([[1.0, -1.0, 0.5, 0.0]])
    gradient = lambda value: torch.autograd.grad(value, made.model.get_input_embeddings().weight)[0]
    found = gradient(made.objective(prompts, plan, responses, advantages))
    thoughts, tokens = policy.replay(made.model, prompts, plan, responses)
    weighed = [thoughts[0].mean(-1), tokens[0, ..., 0].where(responses.written, 0.0)]
    steps = responses.lengths + 2
    expected = gradient(-((torch.cat(weighed, 1).sum(1) / steps) * advantages[0]).mean())
    assert torch.allclose(found, expected, atol=1e-6) and found.abs().max() > 1e-4


def test_alike_rewards_teach_nothing(tokenizer):
    """An untrained model fails everywhere: no advantage, no gradient."""
    made = trainer(tokenizer)
    before = [parameter.clone() for parameter in made.model.parameters()]
    logged = made.step()
    assert logged["reward"] == 0 and logged["thoughts"] == 0 and 0 < logged["length"] <= 8
    assert all(torch.equal(one, other) for one, other in zip(before, made.model.parameters()))


def test_frozen_weights_stay(tokenizer):
    model = small(tokenizer)
    model.requires_grad_(False)
    model.model.layers[-1].requires_grad_(True)
    made = trainer(tokenizer, model)
    assert sum(p.numel() for g in made.optimizer.param_groups for p in g["params"]) == sum(
        p.numel() for p in model.model.layers[-1].parameters()
    )


def test_labels_are_the_chain_and_the_end(tokenizer):
    ids, labels = warm_start.labelled(tokenizer, STORIES[:3])
    for row, story in enumerate(STORIES[:3]):
        scored = labels[row] != warm_start.IGNORED
        assert tokenizer.decode(ids[row][scored]) == f"{story.chain} <end>"
        assert torch.equal(ids[row][scored], labels[row][scored])


def test_a_model_learns_to_answer_and_reward_makes_it_better(tokenizer):
    """Few numbers and steps: supervised training brings some right answers, policy gradients more of them."""
    model, some = small(tokenizer), [story for story in stories(3000, 1) if story.answer < 10][:200]
    found = warm_start.train(model, tokenizer, some, steps=250, batch=16, lr=5e-3, seed=0)
    assert found[-20:].mean() < 0.3 * found[:5].mean()
    asked, keys = Asked.of(some), random.run_keys([7], Site.DECODE)
    made = PolicyTrainer(model, tokenizer, asked, Reward(60, 8, 8, 1e-3, limit=12), seed=1)
    plan = made.reward.plan(0, made.ends)
    before, told = policy.evaluate(model, tokenizer, asked, plan, keys)
    assert told["cut"] < 0.5
    made.train()
    after, _ = policy.evaluate(model, tokenizer, asked, plan, keys)
    assert 0.05 < before.double().mean() < 0.9 and after.double().mean() > before.double().mean() + 0.05
    assert len(made.log) == 60 and made.log[-1]["step"] == 60


def test_chunks_of_an_evaluation_are_one(tokenizer, monkeypatch):
    """Greedy answers do not depend on what is asked beside them."""
    model, asked = small(tokenizer), Asked.of(STORIES[:10])
    plan = policy.greedy(Base(), 2, 5, (tokenizer.eos_token_id,))
    whole = policy.evaluate(model, tokenizer, asked, plan)
    monkeypatch.setattr(policy, "AT_ONCE", 3)
    parts = policy.evaluate(model, tokenizer, asked, plan)
    assert torch.equal(whole[0], parts[0]) and whole[1] == pytest.approx(parts[1])
    assert whole[0].shape == (10, 1) and policy.greedy(Base(), 0, 5, ()).token == Discrete()


@pytest.mark.parametrize(
    "options, says",
    [(dict(group=1), "group=1"), (dict(limit=0), "limit=0"), (dict(enter=0.9), "enter=0.9, full=0.8")],
)
def test_bad_recipes_are_named(options, says):
    with pytest.raises(SpecError, match=says):
        Reward(**RECIPE | options)


def test_too_few_problems_are_named(tokenizer):
    with pytest.raises(SpecError, match="40 problems for 50 prompts"):
        trainer(tokenizer, prompts=50)


def test_a_model_that_is_nowhere_says_where_to_put_it(monkeypatch, tmp_path):
    with pytest.raises(SpecError, match="copy FOLDER here"):
        models.pretrained(str(tmp_path / "nothing"))
