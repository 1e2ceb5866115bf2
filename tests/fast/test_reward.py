"""The fused engine on reward: actions, gradients and losses are torch's, for each rule and objective."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import REWARDED, TWO, reward_trainer, rewarded, some, start, weights_of
from parity import assert_company_changes_nothing, moved, stop_at_a_checkpoint
from ragged import Ragged

from cot2lib import runs
from cot2lib.runs import store as stores
from cot2lib.runs import train
from cot2lib.specs import GRPOSpec
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Gaussian
from cot2lib.training import engines
from cot2lib.training.engines import preferred
from cot2lib.training.fused_grpo import FusedGRPOTrainer
from cot2lib.training.supervised import build_stack

pytestmark = pytest.mark.usefixtures("unchecked")

RECIPE = replace(REWARDED, steps=200, batch=32, lr=1e-3, weight_decay=0.01, evaluate_every=200)
DEEP = replace(start(), task=MNNS(1, 3, 4), model=replace(start().model, layers=2, heads=2))
RAGGED = replace(start(), task=Ragged(3), model=replace(start().model, heads=2))
DROPOUT = replace(RECIPE, dropout=0.1)
FOUR = Dirichlet(4.0)
CASES = {
    "two tokens": dict(thought=TWO),
    "a temperature": dict(thought=MTS(3, 0.7)),
    "one token": dict(thought=Discrete(1.0)),
    "divergence": dict(thought=MTS(3), kl=0.3),
    "product, three updates": dict(thought=MTS(3), ratio="product", updates=3),
    "each draw clipped, divergence": dict(thought=MTS(3), ratio="per-draw", updates=2, kl=0.1),
    "dropout": dict(thought=MTS(3), recipe=DROPOUT),
    "dropout, two updates": dict(thought=MTS(3), recipe=DROPOUT, updates=2, kl=0.1),
    "not scaled": dict(thought=TWO, scaled=False, group=5),
    "points": dict(thought=FOUR),
    "points, divergence": dict(thought=FOUR, kl=0.3, updates=2),
    "points, masked": dict(thought=Dirichlet(4.0, floor=0.05, masked=True), updates=2),
    "points, all tokens": dict(thought=Dirichlet(8.0, 0.0, most=None), updates=2),
    "points, few tokens": dict(thought=Dirichlet(2.0, 1e-2, most=3), recipe=DROPOUT),
}


def run(thought=TWO, recipe=RECIPE, before=DEEP, **options):
    return GRPOSpec(recipe, before, thought, **options)


def both(*specs, threads=1):
    """A torch trainer and a fused one of the same runs."""
    stack = build_stack([spec.start for spec in specs])
    made = preferred(reward_trainer(*specs, stack=stack), threads)
    assert type(made) is FusedGRPOTrainer
    return reward_trainer(*specs, stack=stack), made


def assert_same_step(spec):
    """Rewards of a step, the last update's clipped share and all of its gradients.

    A point's density has logarithms of gamma functions, which torch computes in single precision.
    """
    near = 3e-4 if isinstance(spec.thought, Dirichlet) else 1e-5
    torch_, fused_ = map(moved, both(spec))
    torch_.advance(1), fused_.advance(1)
    assert torch.equal(fused_.losses[0, :1], torch_.losses[0, :1]) and 0 < fused_.losses[0, 0] < 1
    assert fused_.clip_fraction[0] == pytest.approx(torch_.clip_fraction[0].item(), abs=1e-6)
    assert fused_.optimizer_tensors()["0.step"] == torch_.optimizer_tensors()["0.step"] == spec.updates
    largest = max(gradient.abs().max() for gradient in torch_.gradients)
    for (name, _), expected, made in zip(torch_.stack.named_parameters(), torch_.gradients, fused_.gradients):
        assert (made - expected).abs().max() < near * max(expected.abs().max(), 0.01 * largest), name


@pytest.mark.parametrize("case", CASES)
def test_every_gradient_is_torchs(case):
    assert_same_step(run(**CASES[case]))


@pytest.mark.parametrize("thought, kl", [(TWO, 0.1), (FOUR, 0.0)], ids=["tokens", "points"])
def test_every_gradient_where_inputs_differ_in_length(thought, kl):
    """No divergence for points: the start is far here, and its exponential would show torch's single precision."""
    assert_same_step(run(thought, before=RAGGED, kl=kl))


@pytest.mark.parametrize("thought", [TWO, FOUR], ids=["tokens", "points"])
def test_every_gradient_where_names_are_drawn_anew(thought):
    graphs = ProsQA(inputs=100, hops=None, naming="fresh", padding_counts=True)
    assert_same_step(run(thought, replace(RECIPE, batch=80), before=replace(DEEP, task=graphs), kl=0.1))


def test_losses_where_names_are_drawn_anew():
    """Other visits have other names: steps are not asked under those of the first."""
    run_ = run(before=replace(DEEP, task=ProsQA(inputs=100, naming="fresh")), recipe=replace(RECIPE, steps=30))
    torch_, fused_ = both(run_, replace(run_, start=replace(run_.start, seed=43)))
    torch_.advance(30), fused_.advance(30)
    assert torch.equal(torch_.losses, fused_.losses) and len(set(torch_.losses[0, :30].tolist())) > 5


@pytest.mark.parametrize("thought", [MTS(3), Dirichlet(4.0, floor=0.03)], ids=lambda rule: rule.label)
def test_actions_and_points_are_torchs(thought, monkeypatch):
    torch_, fused_ = map(moved, both(run(thought)))
    rollouts, traces = [], []
    original, made = torch_.decode, fused_._traces
    monkeypatch.setattr(torch_, "decode", lambda *a, **o: rollouts.append(original(*a, **o)) or rollouts[-1])
    monkeypatch.setattr(fused_, "_traces", lambda policy: traces.append(made(policy)) or traces[-1])
    torch_.advance(1), fused_.advance(1)
    (rollout,), (trace,) = rollouts, traces
    assert np.array_equal(trace.answers, rollout.answers[0].numpy())
    for step, action in enumerate(rollout.actions[:-1]):
        if isinstance(thought, MTS):
            assert np.array_equal(trace.tokens[step], action[0].numpy())
            continue
        most = trace.tokens.shape[-1]
        there = torch.from_numpy(np.arange(most) < trace.apart[step][:, None])
        drawn = torch.from_numpy(trace.points[step]).exp().float()
        assert torch.equal(there, action[0, :, most:-1].isfinite()) and 0 < there.float().mean() < 1
        assert torch.equal(torch.from_numpy(trace.tokens[step])[there], action[0, :, :most].long()[there])
        assert (drawn - action[0, :, most:].exp()).abs().max() < 1e-4


@pytest.mark.parametrize(
    "options",
    some([dict(thought=MTS(3), recipe=DROPOUT, kl=0.1), dict(thought=MTS(3))], 1),
    ids=["dropout and divergence", "tokens"],
)
def test_losses_of_two_hundred_steps_are_torchs(options):
    """A rewarded answer more or less is 1/64 of a loss; rounding may turn a draw near the edge of two tokens."""
    options = options | {"recipe": replace(options.get("recipe", RECIPE), lr=1e-4, batch=8)}
    torch_, fused_ = both(run(**options), run(before=replace(DEEP, seed=43), **options))
    torch_.advance(200), fused_.advance(200)
    apart = (torch_.losses - fused_.losses)[:, :200].abs()
    assert (apart > 0).float().mean() < 0.05 and apart.max() < 0.02
    assert torch_.losses[:, :200].std(1).min() > 0.003
    assert (weights_of(torch_, 1) - weights_of(fused_, 1)).abs().mean() < 1e-4


def test_points_from_the_weights_of_each_of_forty_steps_are_torchs():
    """One step at a time: rounding may swap two tokens of nearly one weight, and with them draws of a point."""
    torch_, fused_ = map(moved, both(run(FOUR, recipe=replace(RECIPE, batch=8))))
    alike = 0
    for _ in range(40):
        fused_.stack.load_state_dict(torch_.stack.state_dict())
        torch_.advance(1), fused_.advance(1)
        expected, made = (torch.cat([g.flatten() for g in trainer.gradients]) for trainer in (torch_, fused_))
        near = (made - expected).abs().max() <= 1e-4 * expected.abs().max()
        alike += bool(near and torch_.losses[0, 0] == fused_.losses[0, 0])
    assert alike >= 36


def test_a_rising_k():
    torch_, fused_ = both(run(MTS(3), recipe=replace(RECIPE, steps=12, evaluate_every=12), first_k=1))
    torch_.train(), fused_.train()
    assert torch_.progress.first_losses == fused_.progress.first_losses
    assert (weights_of(torch_) - weights_of(fused_)).abs().mean() < 1e-4


def test_threads_and_company_change_nothing():
    assert_company_changes_nothing([run(MTS(3), before=replace(DEEP, seed=seed)) for seed in (42, 43, 44)], both)


def test_what_is_logged_and_evaluated_is_torchs():
    torch_, fused_ = both(run(MTS(3), recipe=replace(RECIPE, steps=8, evaluate_every=4)))
    torch_.train(), fused_.train()
    for expected, made in zip(torch_.progress.curves, fused_.progress.curves, strict=True):
        assert set(expected) == set(made)
        for name in set(expected) - {"step", "loss"}:
            assert made[name] == pytest.approx(expected[name], rel=1e-3, abs=1.01 if name[-2] == "_" else 1e-3), name


def test_a_stopped_run_goes_on_to_the_bit(store, nothing_shipped, monkeypatch):
    """Killed after its first segment and resumed, a run equals one that was left alone."""
    spec = rewarded(thought=MTS(3), recipe=replace(REWARDED, steps=40, evaluate_every=10))
    load = train.make_trainer
    whole = load([spec], train.How(torch.device("cpu")))
    whole.train()
    stop_at_a_checkpoint(monkeypatch, spec)
    runs.run([spec], device="cpu")
    file, _ = stores.finished()[spec.id]
    assert file.provenance["engine"] == whole.engine == "fused"
    for name, value in file.weights(0).items():
        assert torch.equal(value, whole.stack.state_dict()[name][0]), name


@pytest.mark.parametrize(
    "spec, says",
    [
        (run(Gaussian(0.2)), "does not sample Gaussian"),
        (run(Discrete(1.0, top_k=3)), "does not sample Discrete"),
        (run(Base(), mask=0.1), "has no MaskedTrainer"),
    ],
    ids=["another rule", "top tokens", "masks"],
)
def test_other_rules_are_left_to_torch_and_a_line_says_so(spec, says, capsys):
    engines._say.cache_clear()
    trainer = spec.trainer([spec], build_stack, torch.device("cpu"))
    assert preferred(trainer) is trainer and says in capsys.readouterr().err
