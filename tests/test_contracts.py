"""What every kind of run is asked (`kinds.py`): a rule that is named there is asked too. Shapes are checked here."""

import dataclasses
import json
from dataclasses import dataclass, replace

import jaxtyping
import pandas as pd
import pytest
import torch
from builders import ALPHA, drawn, mixed, noted, registered, weights_of
from kinds import KINDS, supervised
from parity import assert_same_step, both, by_torch, stop_at_a_checkpoint
from torch.utils._python_dispatch import TorchDispatchMode

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.runs import store as stores
from cot2lib.runs import taught
from cot2lib.runs.collect import collect
from cot2lib.specs import GRPOSpec, Model, Recipe, Run, Supervision, from_data, outsiders, to_data
from cot2lib.targets import Targets
from cot2lib.tasks import Task
from cot2lib.testing import samples
from cot2lib.thoughts import Rule
from cot2lib.training.fused import preferred
from cot2lib.training.grpo import densities
from cot2lib.training.trainer import learning_rates

META, CPU = torch.device("meta"), torch.device("cpu")
FUSED = [name for name, kind in KINDS.items() if kind.engine == "fused"]
REWARDED = [name for name, (run, *_) in KINDS.items() if isinstance(run, GRPOSpec) and not run.recipe.dropout]
FIELDS = {Rule: "thought", Task: "task", Model: "model", Recipe: "recipe", Supervision: "supervision"}
VARIANTS = ("Blocked", "Distracted", "Rewritten")  # nothing trains on them
OURS = sorted(
    (kind for kind in registered("specs", "tasks", "thoughts", "targets") if kind.__name__ not in VARIANTS), key=str
)


def parts(data):
    """Frozen data and all that it is made of."""
    return [data, *(part for value in vars(data).values() if dataclasses.is_dataclass(value) for part in parts(value))]


PARTS = {type(part): part for kind in KINDS.values() for part in parts(kind.run)}
SAMPLED = {run.thought.label: run.thought for run, *_ in KINDS.values() if samples(run.thought)}

every_kind = pytest.mark.parametrize("name", KINDS)
every_sampler = pytest.mark.parametrize("label", SAMPLED)


@pytest.fixture
def checked():
    """Shapes and types are checked, where beartype is installed; elsewhere in `make thorough` alone."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", False)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(autouse=True)
def empty(store, nothing_shipped):
    """A teacher is of one store."""
    taught._outputs.cache_clear()


def sibling(run, seed, lr):
    """The same run of another seed and learning rate."""
    alone = lambda one: replace(one, seed=seed)
    of_seed = replace(run, start=alone(run.start)) if isinstance(run, GRPOSpec) else alone(run)
    return replace(of_seed, recipe=replace(run.recipe, lr=lr * run.recipe.lr))


def test_every_rule_task_and_targets_has_a_kind():
    assert set(OURS) <= set(PARTS), "name it in tests/kinds.py"


@every_kind
def test_alone_as_in_company(name):
    """Beside another seed and learning rate; by the engine to the bit, on two threads."""
    run = KINDS[name].run
    company = sibling(run, 43, 2), run
    assert company[0].shape() == run.shape()
    for make in (by_torch, lambda *specs: preferred(by_torch(*specs), 2)):
        together, alone = make(*company), make(run)
        near = 1e-5 if together.engine.name == "torch" else 0
        assert together.engine.name == "torch" or together.engine.threads == 2
        for trainer in (together, alone):
            trainer.train()
        assert (weights_of(together, 1) - weights_of(alone)).abs().max() <= near
        assert (weights_of(together, 0) - weights_of(alone)).abs().max() > 0.01
        for here, there in zip(together.progress.curves, alone.progress.curves, strict=True):
            assert {key: value[1] for key, value in here.items() if key != "step"} == pytest.approx(
                {key: value[0] for key, value in there.items() if key != "step"}, abs=10 * near, nan_ok=True
            )


@every_kind
def test_stopped_and_resumed_as_uninterrupted(name, monkeypatch, checked):
    """Through the store, by the engine that trains it; what it starts from is trained first."""
    run = KINDS[name].run
    whole = runs.make_trainer([run], CPU)
    whole.train()
    assert whole.engine.name == KINDS[name].engine
    stop_at_a_checkpoint(monkeypatch, run)
    runs.run([run], device="cpu")
    assert runs.recorded([run], retrain=True)["engine"].tolist() == [whole.engine.name]
    points, stored = pd.DataFrame(stores.results(whole, {})[1]["curves"]), stores.tables()[1]
    stored = stored[stored["id"] == run.id].reset_index(drop=True)[[*points]]
    pd.testing.assert_frame_equal(stored, points, check_dtype=False)
    made = stores.weights(run.id)
    assert all(torch.equal(made[part], value[0]) for part, value in whole.stack.state_dict().items())


@pytest.mark.parametrize("name", FUSED)
def test_the_other_engine_alike(name):
    """Gradients of the first step and of the last; losses, weights and curves of the whole."""
    run = KINDS[name].run
    assert_same_step(run)
    if getattr(run, "updates", 1) == 1:  # a second one follows AdamW, which counts from the first step
        assert_same_step(run, run.recipe.steps - 1)
    torch_, fused_ = both(run)
    torch_.train(), fused_.train()
    assert fused_.progress.first_losses[0] == pytest.approx(torch_.progress.first_losses[0], rel=1e-4)
    assert (weights_of(torch_) - weights_of(fused_)).abs().max() < 1e-3
    for expected, made in zip(torch_.progress.curves, fused_.progress.curves, strict=True):
        assert set(expected) == set(made)
        for key, value in expected.items():
            near = 1 if key.endswith(("_a", "_b")) else 1e-3  # a right answer more or less
            assert made[key] == pytest.approx(value, rel=1e-3, abs=near, nan_ok=True), key


@every_kind
def test_gradients_are_autograds(name):
    """Of what is minimised, whatever stands in one stack; and AdamW is torch's, run by run."""
    run = KINDS[name].run
    company = run, sibling(run, 43, 2), sibling(run, 44, 2)
    trainer = by_torch(*company)
    trained = [parameter for parameter in trainer.stack.parameters() if parameter.requires_grad]
    alone = [[torch.nn.Parameter(part[place].detach().clone()) for part in trained] for place in range(3)]
    made = lambda one: dict(lr=one.lr, betas=(0.9, one.beta2), weight_decay=one.weight_decay)
    optimizers = [torch.optim.AdamW(parts, **made(one.recipe)) for parts, one in zip(alone, company)]
    descend = trainer.descend

    def followed(objective):
        expected = torch.autograd.grad(objective.sum(), trained, retain_graph=True)
        descend(objective)
        assert all(torch.equal(*pair) for pair in zip(expected, trainer.gradients))
        rate = learning_rates(run.recipe, int(trainer.step), 1).item()
        for place, (optimizer, parts) in enumerate(zip(optimizers, alone)):
            optimizer.param_groups[0]["lr"] = company[place].recipe.lr * rate
            for part, gradient in zip(parts, expected):
                part.grad = gradient[place].clone()
            optimizer.step()

    trainer.descend = followed
    trainer.advance(trainer.ahead())
    for place, parts in enumerate(alone):
        apart = [(part[place] - expected).abs().max() for part, expected in zip(trained, parts)]
        assert max(apart) < 1e-6


@pytest.mark.parametrize("name", REWARDED)
def test_the_first_ratio_is_one(name, monkeypatch):
    """What a batch drew has the same density replayed and under the start; not so at a second update."""
    run, seen, drawn = KINDS[name].run, noted(monkeypatch), []
    trainer = by_torch(run)

    def written(*given, decode=trainer.decode, **named):
        rollout = decode(*given, **named)
        drawn.append((rollout, run.mask or densities(trainer.stack, run.thought_at(0), rollout.logits, rollout)))
        return rollout

    trainer.decode = written
    trainer.advance(1)
    same = lambda one, other: all(map(torch.equal, one, other))
    assert [same(new, old) for new, old, *_ in seen] == [True, *[False] * (run.updates - 1)]
    assert not run.kl or same(seen[0][0], seen[0][6])
    if not run.mask:
        (rollout, (thoughts, _)), there = drawn[0], slice(None)
        if rollout.there is not None:
            there = rollout.there[:, :, :-1]
        assert torch.allclose(seen[0][0][0][there], thoughts[there], atol=1e-4), "fed again, they are what was drawn"


class Copies(TorchDispatchMode):
    """Notes sizes of what is copied from the host."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if function is torch.ops.aten._to_copy.default and (args[0].device, made.device) == (CPU, META):
            self.noted.append(made.shape)
        return made


@every_kind
def test_a_step_on_a_device_without_data(name, monkeypatch):
    """Nothing is left on the host or read back, and nothing copied from it twice, as a captured step needs."""
    run = KINDS[name].run
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: None)  # torch's own, whose fused form meta lacks
    trainer = by_torch(run, device=META)
    trainer.phase = trainer.phase_at(run.recipe.steps - 1)
    before = {tensor.device for tensor in trainer.stack.state_dict().values()}
    trainer.take_step()
    with Copies() as copies:
        copies.noted = []
        trainer.take_step()
    assert copies.noted == []
    assert before == {META} and {gradient.device for gradient in trainer.gradients} == {META}


@every_kind
def test_json_and_back_and_the_pinned_id(name):
    """Another id would lose what shipped under this one (CONTRIBUTING, "What must not move")."""
    run, pinned, _ = KINDS[name]
    if not outsiders(run):
        again = from_data(json.loads(json.dumps(to_data(run))))
        assert again == run and again.id == run.id
    assert (pinned is None) == bool(outsiders(run)) and pinned in (None, run.id)


def with_part(part):
    """A run that is, or has, a part."""
    if isinstance(part, Run):
        return part
    part = Supervision(targets=part) if isinstance(part, Targets) else part
    return replace(supervised(), **{field: part for base, field in FIELDS.items() if isinstance(part, base)})


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_a_foreign_class_is_not_collected(kind, tmp_path):
    """The same fields and the same code under another class have another id, and stay in the local store."""
    part = PARTS[kind]

    @dataclass(frozen=True)
    class Foreign(kind):
        """As its base."""

    run = with_part(Foreign(**{field.name: getattr(part, field.name) for field in dataclasses.fields(part)}))
    assert outsiders(run)[:1] == [Foreign] and run.id != with_part(part).id
    with pytest.raises(SpecError, match="Foreign is defined outside the package"):
        collect("mine.quick", [run], folder=tmp_path)


# Samplers


def density(rule, logits, action):
    return rule.log_densities(rule.parameters(logits, mixed), action).sum(-1)


@every_sampler
def test_the_density_has_the_gradient_of_finite_differences(label):
    rule = SAMPLED[label]
    action = drawn(rule, count=3, dtype=torch.float64).action
    logits = ALPHA.log().expand(1, 3, -1).clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda logits: density(rule, logits, action), (logits,), rtol=1e-4)


@every_sampler
def test_the_density_is_of_what_is_drawn(label, checked):
    """Its score has mean zero, and its ratio under a policy nearby mean one."""
    rule, count = SAMPLED[label], 40_000
    action = drawn(rule, count=count).action
    action = action.double() if action.is_floating_point() else action
    logits = ALPHA.log().expand(1, count, -1).clone().requires_grad_()
    old = density(rule, logits, action)
    (score,) = torch.autograd.grad(old.sum(), logits)
    mean, error = score[0].mean(0), score[0].std(0) / count**0.5
    assert (mean.abs() < 4.5 * error + 1e-4).all() and error.max() > 1e-4
    near = logits.detach() + 0.05 * torch.tensor([1, -1, 2, -2, 0, 1, -1])
    ratio = (density(rule, near, action) - old).detach().exp()
    error = ratio.std().item() / count**0.5
    assert error < 3e-3 and abs(ratio.mean().item() - 1) < 4.5 * error + 1e-5
