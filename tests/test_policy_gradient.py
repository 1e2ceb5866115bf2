"""Which policy ratio is right: exact gradients of a small task, and how far ratios go."""

import math
from collections import Counter
from dataclasses import replace
from itertools import permutations, product

import pytest
import torch
import torch.nn.functional as F
from builders import moved

from cot2lib import losses, policy_gradient, runs
from cot2lib.decode import replay
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.study import policy_ratio, sweeps
from cot2lib.study.policy_ratio import climb, entropies
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS
from cot2lib.training import grpo

TASK = MNNS(1, 3, 2)
RATIOS = ("geometric", "product", "per-draw")


@pytest.fixture(scope="module")
def trained():
    """Two half-trained models, and their stack in double precision."""
    specs, stack = policy_ratio.starts([42, 43], 40)
    return specs, stack, stack.select([0, 1]).double()


def close(a, b, tolerance=1e-10):
    return (a - b).abs().max() < tolerance


def detached(law):
    """The same law without gradients: that of the old policy."""
    return replace(law, log_thought=law.log_thought.detach(), log_answer=law.log_answer.detach())


def expected_surrogate(new, old, ratio, clip=0.1):
    """Expectation, over the old policy's traces, of `cot2lib.losses.surrogate` summed over both steps.

    The advantage is the reward less the old policy's expected reward for that prompt. Mean over prompts.
    """
    gain = F.one_hot(old.answers, old.log_answer.shape[-1]) - old.success[..., None]
    traces = old.log_answer.shape
    spread = lambda x: x[:, :, :, None].expand(*traces, x.shape[-1]).flatten(1, 3)[:, :, None]
    gain = gain[:, :, None].expand(traces).flatten(1)
    thought = losses.surrogate(spread(new.log_thought), spread(old.log_thought), gain, ratio, clip)
    answer = losses.surrogate(*(x.log_answer.flatten(1)[..., None, None] for x in (new, old)), gain, ratio, clip)
    chance = (old.chance[..., None] * old.log_answer.exp()).flatten(1)
    return (chance * (thought + answer)[..., 0]).sum(1) / traces[1]


# Enumeration


def test_multisets_count_ordered_tuples():
    tokens, orders = policy_gradient.multisets(4, 3)
    counted = Counter(tuple(sorted(drawn)) for drawn in product(range(4), repeat=3))
    assert dict(zip(map(tuple, tokens.tolist()), orders.tolist())) == counted


@pytest.mark.parametrize("k", [1, 2])
def test_law_has_the_reward_of_ordered_tuples(trained, k):
    """J once more from every ordered tuple, in one replay of its own."""
    _, _, stack = trained
    found = policy_gradient.law(stack, TASK, MTS(k))
    assert close(found.chance.sum(-1), 1.0) and close(found.log_answer.exp().sum(-1), 1.0)
    tuples = torch.cartesian_prod(*[torch.arange(TASK.vocab_size)] * k).view(-1, k)
    fed = F.one_hot(tuples, TASK.vocab_size).double().mean(1)
    for row in (0, 5):
        shared = stack.mix(fed[None, :, None].expand(2, -1, -1, -1))
        logits = replay(stack, TASK.prompt()[None, row : row + 1], shared).log_softmax(-1)
        drawn = logits[:, :, 0].gather(-1, tuples[None].expand(2, -1, -1)).sum(-1)
        right = logits[:, :, 1, TASK.answer_ids[row]].exp()
        assert close((drawn.exp() * right).sum(1), found.success[:, row])


# Expected gradients


@pytest.mark.parametrize("k", [1, 2])
def test_gradient_of_the_product_is_the_policys_and_of_the_geometric_mean_is_not(trained, k):
    """Summed over all traces with `losses.surrogate`, against the gradient of J itself."""
    _, _, stack = trained
    law = policy_gradient.law(stack, TASK, MTS(k))
    goal = policy_gradient.gradient(law.success.mean(1), stack)
    thought, answer = (policy_gradient.gradient(part.mean(1), stack) for part in policy_gradient.parts(law))
    found = {ratio: policy_gradient.gradient(expected_surrogate(law, detached(law), ratio), stack) for ratio in RATIOS}
    assert goal.norm() > 1e-2 and close(thought + answer, goal)
    assert close(found["product"], goal) and close(found["per-draw"], goal)
    assert close(found["geometric"], thought / k + answer)
    if k > 1:
        assert not close(found["geometric"], goal, 1e-2)
        assert torch.cosine_similarity(found["geometric"], goal).max() < 0.999


@pytest.mark.parametrize("group", [2, 5])
def test_advantages_of_every_group(group):
    """A sample's share in its own baseline takes 1/G of the gradient: every group of a policy of three actions."""
    logits = torch.tensor([0.3, -0.4, 0.9], dtype=torch.float64, requires_grad=True)
    log_law = logits.log_softmax(0)
    groups = torch.cartesian_prod(*[torch.arange(3)] * group)
    gain = losses.advantages((groups == 0).double()[None], scaled=False)[0]
    chance = log_law.detach()[groups].sum(-1).exp()
    value = (chance[:, None] * gain * log_law[groups]).sum() / group
    (found,) = torch.autograd.grad(value, [logits], retain_graph=True)
    (goal,) = torch.autograd.grad(log_law[0].exp(), [logits])
    assert close(found, (1 - 1 / group) * goal, 1e-12)


@pytest.mark.parametrize("ratio", RATIOS)
def test_sampled_gradients_are_the_trainers(trained, monkeypatch, ratio):
    """A lane's gradient is what a trainer's step would take, summed over steps instead of averaged."""
    specs, stack, _ = trained
    recipe = Recipe(steps=1, batch=9, lr=1e-3, evaluate_every=1)
    one = GRPOSpec(recipe, specs[0], MTS(2), group=4, ratio=ratio, scaled=False)
    trainer = grpo.GRPOTrainer([one], stack.select([0]))
    keys = policy_gradient.random.run_keys([0], policy_gradient.Site.ROLLOUT, 5)
    monkeypatch.setattr(grpo.random, "fold", lambda *_: keys)
    trainer.update(torch.arange(9)[None])
    taken = torch.cat([part.flatten(1) for part in trainer.gradients], 1)
    found = policy_gradient.sampled_gradients(stack.select([0]), TASK, MTS(2), RATIOS, group=4, lanes=1, seed=5)
    assert torch.allclose(-2 * taken, found[ratio].sum(0), atol=1e-5)


def test_inner_of_expectations():
    one, other = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0)).double()
    brute = [one[i] @ other[j] for i, j in permutations(range(6), 2)]
    assert float(policy_gradient.inner(one, other)) == pytest.approx(float(sum(brute)) / 30)


# Off-policy


def test_surrogate_replaces_each_steps_law_and_the_geometric_weights_sum_to_less_than_one(trained):
    _, _, stack = trained
    old = detached(policy_gradient.law(stack, TASK, MTS(2)))
    new = detached(policy_gradient.law(moved(stack.select([0, 1]).double(), 0.05), TASK, MTS(2)))
    for ratio, below in (("product", False), ("geometric", True)):
        mean = (old.chance * losses.log_ratios(new.log_thought, old.log_thought, ratio)[..., 0].exp()).sum(-1)
        assert (mean < 1 - 1e-6).all() if below else close(mean, 1.0)
    unclipped = expected_surrogate(new, old, "product", clip=1e9)
    thought = new.chance * (old.right - old.success[..., None])
    answer = old.chance * (new.right - old.success[..., None])
    assert close(unclipped, (thought + answer).sum(-1).mean(1))


# One parameter


def test_climb_of_the_shared_parameter():
    ends = {ratio: climb([1, 2, 6], ratio, 4000)[-1].tolist() for ratio in ("product", "geometric")}
    assert float(climb([1], "product", 1)[0, 0]) == pytest.approx(0.4)
    assert [round(x, 3) for x in ends["product"]] == [0.5, 0.5, 0.5]
    assert [round(x, 3) for x in ends["geometric"]] == [0.5, 0.301, 0.3]
    assert (climb([2], "geometric", 200)[:, 0].diff() < 0).all(), "it falls all the way"


def surrogate_gradient(parameter, k, ratio):
    """By autograd from the package's surrogate: the sum over all draws and both answers is the expectation."""
    draws = torch.cartesian_prod(*[torch.arange(2)] * k).view(-1, k)  # (draws, k)
    thought = torch.stack([F.logsigmoid(-parameter), F.logsigmoid(parameter)])[draws]  # (draws, k)
    right = policy_ratio.A * (1 - draws.double().mean(-1)) + policy_ratio.B * parameter.sigmoid()
    baseline, value = policy_ratio.reward(parameter.detach()), 0.0
    for reward, chance in ((1.0, right), (0.0, 1 - right)):
        advantages = (reward - baseline).expand(1, len(draws))  # (1, draws)
        steps = (thought[None, :, None], chance.log()[None, :, None, None])  # (1, draws, 1, k or 1)
        surrogate = sum(losses.surrogate(new, new.detach(), advantages, ratio)[0, :, 0] for new in steps)
        value = value + (thought.sum(-1).exp() * chance).detach() @ surrogate
    return float(torch.autograd.grad(value, [parameter])[0])


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("k", [1, 2, 6])
def test_a_step_of_the_climb_is_the_gradient_of_the_surrogate(ratio, k):
    """The first step from 0, and from where it ends the second."""
    theta = torch.tensor(0.0, dtype=torch.float64)
    for reward in climb([k], ratio, 2)[1:, 0]:
        found = surrogate_gradient(theta.clone().requires_grad_(), k, ratio)
        slope = (policy_ratio.reward(theta + 1e-6) - policy_ratio.reward(theta - 1e-6)) / 2e-6
        assert (found == pytest.approx(float(slope), abs=1e-9)) == (ratio != "geometric" or k == 1)
        theta = theta + found
        assert float(reward) == pytest.approx(float(policy_ratio.reward(theta)), abs=1e-12)


def test_entropies_of_equal_updates():
    """At the time that gives K = 1 its reference value; with the geometric mean K tokens are K times slower."""
    time, start = 20.396, math.log(8)
    assert float(entropies([1], "product", 0.0)[0]) == pytest.approx(start)
    one, three = entropies([1, 3], "geometric", time).tolist()
    assert one == pytest.approx(0.545, abs=0.011) and three == pytest.approx(1.930, abs=0.011)
    assert entropies([3, 12], "product", time).tolist() == pytest.approx([0.562, 0.554], abs=0.026)
    assert float(entropies([3], "geometric", 3 * time)[0]) == pytest.approx(one, abs=1e-3)


# How far ratios go


@pytest.fixture(scope="module")
def shipped():
    specs = [spec for spec in sweeps.small("quick") if spec.method == "discrete CoT"][:2]
    return runs.load_stack(specs, missing="error"), specs


def test_one_sided_dropout_alone_moves_ratios(shipped):
    (stack, specs), k = shipped, 3
    for thought, asked in ((MTS(k), RATIOS), (MTS(k, float(k)), ("product",))):
        still = policy_ratio.one_sided_dropout(stack, specs, thought, asked, 0.0)
        assert (still[["thoughts", "answers"]] == 0).all(axis=None)
        found = policy_ratio.one_sided_dropout(stack, specs, thought, asked, 0.1)
        assert found["thoughts"].between(0.5, 1.0).all() and found["answers"].gt(0.4).all()


def test_outside_clip_and_lost_gradients_by_hand():
    log_ratio = torch.tensor([1.3, 1.3, 0.8, 0.8, 1.05]).log()[None, :, None, None]
    gain = torch.tensor([[1.0, -1.0, 1.0, -1.0, 1.0]])
    assert losses.outside_clip(log_ratio, 0.1).flatten().tolist() == [True, True, True, True, False]
    new = log_ratio.clone().requires_grad_()
    losses.surrogate(new, torch.zeros_like(new), gain, "product", 0.1).sum().backward()
    assert (new.grad == 0).flatten().tolist() == [True, False, False, True, False], "where the gradient is gone"
