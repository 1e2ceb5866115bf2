"""Benchmarks are run small: what they print must be whole; how fast it is, no test says."""

import sys
from functools import partial

import pytest
import torch

from cot2lib.decode import ANSWER, decode, rules
from cot2lib.errors import SpecError
from cot2lib.losses import soft_nll
from cot2lib.study import costs, passk
from cot2lib.study.speed import bench, peers, reward, training
from cot2lib.study.speed.plain_grpo import PlainGRPO
from cot2lib.study.speed.variants import BASELINE
from cot2lib.training import grpo
from cot2lib.training.supervised import SupervisedTrainer

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(costs, "STACK", 2)
    for module in (costs, training, reward):
        monkeypatch.setattr(module, "STEPS", 1)
    for module in (training, reward):
        monkeypatch.setattr(module, "SIZES", (1, 2))
    monkeypatch.setattr(training, "MOST", 2)
    for module in (training, reward):
        monkeypatch.setattr(module, "FUSED_STEPS", 2)


def test_ways_are_timed_beside_the_first(monkeypatch):
    """A rate is of one run; a slow round counts neither for it nor for the ratio."""
    spent = {"loop": [2.0, 2.0, 8.0], "stack": [1.0, 1.0, 4.0]}
    monkeypatch.setattr(costs, "in_turns", lambda turns, rounds: spent)
    ways = [costs.Variant("loop", 1, int, 6), costs.Variant("stack", 4, int, 6, memory=0.5)]
    table = costs.timed(ways, rounds=3)
    assert table["rate"].tolist() == [3.0, 24.0] and table["times"].tolist() == [1.0, 8.0]
    assert table["runs"].tolist() == [1, 4] and table["memory"].isna().tolist() == [True, False]


def test_feeding_table():
    table = costs.feeding_table(rounds=2).set_index("fed")
    assert table.loc["teacher forcing", "times teacher forcing"] == 1
    assert list(table.index)[1:] == ["self-feeding", "COCONUT, last stage", "COCONUT with zero slots, last stage"]
    assert (table["ms per run-step"] > 0).all()


def test_stages_are_timed_in_their_last_stage(monkeypatch):
    seen = []
    monkeypatch.setattr(costs, "steps_of", lambda trainer, steps: seen.append(trainer.phase[0]) or (lambda: None))
    monkeypatch.setattr(costs, "in_turns", lambda turns, rounds: {name: [1.0] for name in turns})
    costs.feeding_table(rounds=1)
    assert seen == [0, 3, 3, 3], "all thoughts are the model's own but for teacher forcing"


@pytest.mark.parametrize(
    "measure, one, least, others",
    [
        (training.steps, training.one_step, 1e6, ["torch.func.vmap, 2 runs", "fused, 1 runs", "fused, 2 runs"]),
        pytest.param(
            *(training.own_steps, partial(training.one_step, training.OWN), 1e6, ["fused, 1 runs", "fused, 2 runs"]),
            marks=pytest.mark.thorough,
        ),
        (reward.prompts, reward.one_prompt, 1e5, ["fused, 1 runs", "fused, 2 runs"]),
    ],
    ids=["train", "own thoughts", "grpo"],
)
def test_stacks_are_timed_beside_the_loop_and_the_limit(measure, one, least, others, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setitem(sys.modules, "jax", None)
    table = measure(rounds=1, compiled=False)
    assert list(table["variant"]) == [BASELINE, "stack of 1", "stack of 2", *others]
    assert table["times"].iloc[0] == 1 and one() > least and (table["sgemm"] > 0.1).all() and (table["rate"] > 0).all()
    assert table["share"].to_numpy() == pytest.approx((one() * table["rate"] / table["sgemm"] / 1e7).to_numpy())


def test_growth_holds_the_engine_against_the_stack():
    table = training.growth(rounds=1, names=["main", "one layer"], sgemm=100.0)
    assert list(table["variant"]) == ["main", "one layer"] and (table[["stack", "rate", "times"]] > 0).all(axis=None)
    assert table["share"][0] == pytest.approx(100 * training.one_step() * table["rate"][0] / 1e11, rel=0.02)


def test_an_opponent_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    said = training.left_out(training.PEERS)
    assert any("jax is not installed; pip install 'cot2lib[peers]'" in reason for reason in said)


def test_the_opponent_is_fed_as_we_are():
    """Taught or on its own thoughts, its scores give our loss."""
    pytest.importorskip("transformers")
    for model, scores in ((training.MAIN, peers.taught_logits), (training.OWN, peers.own_logits)):
        trainer = SupervisedTrainer([model(dropout=0.0)])
        batch = trainer.data.batch(trainer.data.order([42], 0, 1, 16)[:, 0])
        logits = scores(trainer.stack.to_hf(0), batch.prompts[0], batch.outputs[0])
        loss = soft_nll(logits[None], batch.outputs).sum(-1).mean()
        ours = trainer.loss(trainer.stack, trainer.spec, batch, *trainer.phase)
        assert loss.item() == pytest.approx(ours.item(), rel=1e-5) and trainer.phase[0] == (
            3 * (model is training.OWN)
        )


def test_own_thoughts_are_for_training_alone():
    with pytest.raises(SpecError, match="fed='self': only the benchmark 'train'"):
        bench.measure("grpo", quick=True, fed="self")


@pytest.fixture
def policies():
    """Our trainer, and the opponent with its weights."""
    pytest.importorskip("transformers")
    trainer = reward.policy_trainer(1)
    return trainer, PlainGRPO(trainer.spec, trainer.stack.to_hf(0))


def test_the_opponent_samples_from_the_same_chances(policies):
    """Given our draws it computes our chances at every step, so that it draws from our distribution."""
    trainer, plain = policies
    prompts, rollout = rolled_out(trainer)
    given, seen = iter(rollout.actions), []
    draw = lambda chances, count: seen.append(chances) or next(given)[0]
    thoughts, answered = plain.roll_out(prompts[0].repeat_interleave(trainer.group, 0), draw)
    assert torch.allclose(torch.stack(seen, 1), rollout.logits[0].softmax(-1), rtol=0, atol=1e-4)
    assert torch.equal(thoughts, torch.stack(rollout.actions[:-1], 2)[0])
    assert torch.equal(answered, rollout.actions[-1][0])


@pytest.mark.parametrize("moved", [0.0, 0.3])
def test_the_opponent_has_the_same_loss_and_gradients(policies, moved):
    """At ratio one, and where ratios are apart from one and some are clipped."""
    trainer, plain = policies
    prompts, rollout = rolled_out(trainer)
    gain = torch.randn(1, rollout.answers.shape[1], generator=torch.Generator().manual_seed(1))
    mine = grpo.replayed(trainer.stack, trainer.spec.thought, prompts, None, rollout)
    away = [moved * torch.randn(part.shape, generator=torch.Generator().manual_seed(2)) for part in mine]
    old = [part.detach() + shift for part, shift in zip(mine, away)]
    ours = grpo.objective(trainer.spec, mine, old, gain).sum()
    drawn = torch.stack(rollout.actions[:-1], 2)[0], rollout.actions[-1][0]
    new = plain.log_densities(prompts[0].repeat_interleave(trainer.group, 0), *drawn)
    before = new[0].detach() + away[0][0], new[1].detach() + away[1][0, :, 0]
    theirs = plain.objective(new, before, gain[0])
    assert theirs.item() == pytest.approx(ours.item(), abs=1e-4)
    parameters = dict(plain.model.named_parameters())
    expected = torch.autograd.grad(theirs, list(parameters.values()))
    stacked = dict(trainer.stack.named_parameters())
    found = torch.autograd.grad(ours, [stacked[name] for name in parameters])
    largest = max(gradient.abs().max() for gradient in expected)
    assert largest > 1e-2
    for name, one, other in zip(parameters, found, expected):
        assert torch.allclose(one[0], other, rtol=1e-4, atol=1e-4 * float(largest)), name


def test_the_opponents_step_is_ours(policies, monkeypatch):
    """The same draws move the weights alike, the reward and AdamW included."""
    trainer, plain = policies
    index = trainer.data.order([42], 0, 1, trainer.recipe.batch)[:, 0]
    kept = []
    monkeypatch.setattr(trainer, "decode", lambda *given, **named: kept.append(decode(*given, **named)) or kept[-1])
    start = trainer.stack.transformer.wte.weight.detach().clone()
    trainer.update(index)
    given = iter(kept[0].actions)
    roll_out = plain.roll_out
    monkeypatch.setattr(plain, "roll_out", lambda prompts: roll_out(prompts, lambda chances, count: next(given)[0]))
    plain.step(trainer.data.prompts[index[0]], trainer.data.answers[index[0]])
    moved, theirs = (
        table - start[0] for table in (trainer.stack.transformer.wte.weight[0], plain.model.transformer.wte.weight)
    )
    assert (moved - theirs).abs().max() < 1e-6 and moved.abs().max() > 1e-5


def rolled_out(trainer):
    """Prompts of one batch and our rollouts of them."""
    prompts = trainer.data.prompts[:16][None]
    with torch.no_grad():
        return prompts, decode(
            trainer.stack, prompts, rules(trainer.thought, 4, ANSWER), trainer.keys, samples=trainer.group
        )


@pytest.mark.thorough
def test_pass_at_k_is_timed_on_a_shipped_model(monkeypatch):
    monkeypatch.setattr(passk, "TEMPERATURES", (0.4,))
    assert bench.pass_at_k_seconds(samples=14) > 0


def test_a_page_times_what_is_installed():
    table = training.here((2,), rounds=1)
    assert {"stack of 2", "fused, 2 runs"} <= set(table["variant"]) and table["times"].iloc[0] == 1
    assert training.is_whole(table, (2,)) and not training.is_whole(table[1:], (2,))
    assert not training.left_out(training.LOOP)


def test_what_a_page_cannot_time_is_named(monkeypatch):
    monkeypatch.setattr(training, "find_spec", lambda name: None)
    monkeypatch.setattr(training, "unfit", lambda run: "no engine.")
    missing = "transformers is not installed; pip install 'cot2lib[llm]'."
    assert training.left_out(training.LOOP) == ["no engine.", missing]
