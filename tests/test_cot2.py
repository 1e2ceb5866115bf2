"""`cot2.py` is the library, shorter: equal targets, splits, logits, gradients, losses, thoughts, ratios, surrogate."""

import sys

import pytest
import torch
from builders import ROOT

import cot2
from cot2lib import losses
from cot2lib.decode import Rollout, decode, rules
from cot2lib.model import GPT2Stack
from cot2lib.specs.profiles import spec
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Base, Discrete
from cot2lib.training.data import Batch
from cot2lib.training.grpo import objective, replayed
from cot2lib.training.supervised import batch_loss

TASK, SUMS = MNNS(), cot2.Sums()
ROWS = torch.arange(0, TASK.size, 400)
NAMES = {"attn_in": "attn.c_attn", "attn_out": "attn.c_proj", "mlp_in": "mlp.c_fc", "mlp_out": "mlp.c_proj"}


def in_library(stack, name):
    """The weight of the stack's one run that has this name in `cot2.py`, and its gradient, laid out as there."""
    whole = "transformer." + name.replace("blocks.", "h.")
    for ours, theirs in NAMES.items():
        whole = whole.replace(ours, theirs)
    weight = dict(stack.named_parameters())[whole]
    turned = weight.ndim == 3 and any(part in name for part in NAMES)
    return [value[0].T if turned else value[0] for value in (weight.data, weight.grad) if value is not None]


@pytest.fixture
def both():
    """A stack of one run and the model of `cot2.py`, with the same weights, none of them small."""
    torch.manual_seed(0)
    stack, model = GPT2Stack(1, TASK.vocab_size, TASK.positions, 16, 2, 2), cot2.GPT2(SUMS.vocab, SUMS.positions, 16)
    for name, weight in model.named_parameters():
        torch.nn.init.normal_(weight, std=0.3)
        in_library(stack, name)[0].copy_(weight.data)
    return stack, model


def assert_same_gradients(stack, model):
    for name, weight in model.named_parameters():
        assert torch.allclose(weight.grad, in_library(stack, name)[1], atol=1e-5), name


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_targets_of_every_budget(digits):
    task, sums = MNNS(length=digits), cot2.Sums(digits)
    rows = torch.arange(0, task.size, 1 if digits < 4 else 41)
    for budget in range(1, 2**digits + 1):
        ties = "plus-first" if budget == 1 else "minus-first"  # as the library's methods have them
        assert torch.allclose(sums.targets(budget)[rows], hindsight_targets(task, budget, ties, rows).float())
    assert torch.equal(sums.prompts, task.prompts) and torch.equal(sums.answers, task.answer_ids)


def test_split():
    for seed in (42, 43):
        rows, held_out = SUMS.split(seed)
        assert torch.equal(rows, TASK.split(seed).nonzero()[:, 0])
        assert sorted(torch.cat([rows, held_out]).tolist()) == list(range(TASK.size))


def test_initialisation_is_gpt2s():
    weights = dict(cot2.GPT2(SUMS.vocab, SUMS.positions, d=64).named_parameters())
    for name, std in {"wte": 0.02, "blocks.1.mlp_in": 0.02, "blocks.1.mlp_out": 0.01}.items():
        assert abs(weights[f"{name}.weight"].std() - std) < 0.1 * std
    assert all((weight == 0).all() for name, weight in weights.items() if name.endswith("bias"))


def test_logits(both):
    stack, model = both
    assert torch.allclose(model(model.wte(SUMS.prompts[ROWS])), stack(stack.embed(TASK.prompts[ROWS]))[0], atol=1e-5)


@pytest.mark.parametrize("budget", [1, 4, 16])
def test_csft_loss_and_its_gradients(both, budget):
    stack, model = both
    targets = SUMS.targets(budget)[ROWS]
    ours = -cot2.log_likelihood(model, SUMS.prompts[ROWS], targets).sum(1).mean()
    theirs = batch_loss(stack, spec("cot2"), Batch(TASK.prompts[ROWS][None], targets[None]))
    assert torch.allclose(ours, theirs[0], atol=1e-5)
    ours.backward(), theirs.sum().backward()
    assert_same_gradients(stack, model)


@pytest.mark.parametrize("rule, thought", [("base", Base()), ("discrete", Discrete())])
def test_thoughts_and_answers(both, rule, thought):
    stack, model = both
    ours = cot2.think(model, SUMS.prompts[ROWS], SUMS.m, rule)
    theirs = decode(stack, TASK.prompts[ROWS][None], rules(thought, TASK.steps))
    assert torch.allclose(ours, theirs.weights[0], atol=1e-5)
    assert torch.equal(ours[:, -1].argmax(-1), theirs.answers[0])


def test_mts_draws_from_the_distribution():
    """A thought weighs k tokens evenly, and on average each as its probability; of one token it is one-hot."""
    torch.manual_seed(0)
    logits = torch.tensor([0.0, 1.0, 2.0]).expand(20_000, 3)
    thoughts = cot2.next_thought(logits, 3)
    assert set((3 * thoughts).round(decimals=4).unique().tolist()) == {0.0, 1.0, 2.0, 3.0}
    assert torch.allclose(thoughts.mean(0), logits[0].softmax(-1), atol=0.01)
    variance = logits[0].softmax(-1) * (1 - logits[0].softmax(-1)) / 3
    assert torch.allclose(thoughts.var(0), variance, rtol=0.05)
    assert cot2.next_thought(logits, 1).max(-1).values.eq(1).all()


def test_ratio_surrogate_and_its_gradients(both):
    """On the same draws, of a policy that has moved since it drew them."""
    stack, model = both
    group, prompts = 8, SUMS.prompts[ROWS[:4]]
    each = prompts.repeat_interleave(group, 0)
    torch.manual_seed(1)
    thoughts = cot2.think(model, each, SUMS.m, rule=3, answer=1)  # (trace, step, token)
    counts = (3 * thoughts[:, :-1]).round().long()
    drawn = torch.repeat_interleave(torch.arange(SUMS.vocab).expand_as(counts).flatten(), counts.flatten())
    actions = list(drawn.view(len(each), SUMS.m - 1, 3).unbind(1))
    steps = thoughts.shape[1]
    rollout = Rollout(
        logits=torch.zeros(1, *thoughts.shape),
        weights=thoughts[None],
        answers=thoughts[None, :, -1].argmax(-1),
        actions=[*(action[None] for action in actions), None],
        latents=[None] * steps,
    )
    rewards = (torch.arange(len(each)) % 3 == 0).float().view(-1, group)
    old = cot2.log_likelihood(model, each, thoughts).detach()
    before = [part.detach() for part in replayed(stack, MTS(3), prompts[None], None, rollout)]
    for name, weight in model.named_parameters():
        weight.data.add_(0.02 * torch.randn_like(weight))
        in_library(stack, name)[0].copy_(weight.data)
    new = cot2.log_likelihood(model, each, thoughts)
    after = replayed(stack, MTS(3), prompts[None], None, rollout)
    ratios = [losses.log_ratios(*pair, "geometric")[..., 0] for pair in zip(after, before)]
    assert torch.allclose(new - old, torch.cat(ratios, 2)[0], atol=1e-5) and (new - old).abs().max() > 0.1
    ours = cot2.grpo_loss(new, old, rewards)
    advantages = losses.advantages(rewards[None]).flatten(1)
    theirs = objective(after, before, advantages)
    assert torch.allclose(ours, theirs[0], atol=1e-5)
    ours.backward(), theirs.sum().backward()
    assert_same_gradients(stack, model)


def test_training_learns(capsys):
    """Two digits, learnt from all inputs: far beyond what the commonest answer gives."""
    torch.manual_seed(0)
    sums = cot2.Sums(2)
    every = torch.arange(len(sums.digits))
    model, curve = cot2.train(sums, 4, every, every, steps=600, lr=5e-3)
    assert len(curve) == 20 and curve[-1] == (600, cot2.accuracy(model, sums, every, "base"))
    assert curve[-1][1] > 30 + 100 * sums.answers.bincount().max() / len(every)
    assert "step 600: loss" in capsys.readouterr().out


def test_reward_raises_a_weak_start(capsys):
    torch.manual_seed(1)
    sums = cot2.Sums(2)
    every = torch.arange(len(sums.digits))
    model, _ = cot2.train(sums, 1, every, every, steps=250, lr=1e-2, d=16, layers=1, heads=1)
    before = cot2.accuracy(model, sums, every.repeat(8), 3)
    cot2.reward(model, sums, every, steps=400, batch=32, lr=1e-3)
    assert cot2.accuracy(model, sums, every.repeat(8), 3) > before + 10


def run(monkeypatch, *given):
    monkeypatch.setattr(sys, "argv", ["cot2.py", *given])
    cot2.main()


def test_the_command_compares_both_methods_and_rewards(monkeypatch, capsys):
    train, reward = cot2.train, cot2.reward
    monkeypatch.setattr(cot2, "train", lambda *given, **shape: train(*given, steps=20, **shape))
    monkeypatch.setattr(cot2, "reward", lambda *given: reward(*given, steps=2))
    run(monkeypatch, "--digits", "2", "--d", "16", "--budget", "2")
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert first.startswith("CoT2: ") and second.startswith("discrete: ") and "55.27" in first and "55.48" in second
    run(monkeypatch, "--digits", "2", "--reward")
    assert "after reward" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    "given, named",
    [
        (["--budget", "0"], "choose 1 to 16"),
        (["--budget", "17"], "choose 1 to 16"),
        (["--digits", "6"], "--digits"),
        (["--d", "33"], "even"),
        (["--tokens", "3"], "--tokens"),
    ],
)
def test_bad_input_ends_in_one_sentence(monkeypatch, capsys, given, named):
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, *given)
    assert ended.value.code == 2
    said = capsys.readouterr().err.strip()
    assert named in said and "\n" not in said


def test_it_is_one_short_page():
    source = (ROOT / "cot2.py").read_text()
    assert len(source.splitlines()) <= 200 and "cot2lib" not in source
