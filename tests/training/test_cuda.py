"""What only a GPU can show: `pytest -m cuda`."""

from functools import partial

import pytest
import torch
from builders import short as of_sixty

from cot2lib import runs
from cot2lib.decode import PROMPTS_AT_ONCE, rules
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.thoughts import MTS, Base, Dirichlet, Gaussian, Gumbel
from cot2lib.training.supervised import SupervisedTrainer, build_stack
from cot2lib.training.trainer import WARM_UP

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
short = partial(of_sixty, profile="paper", evaluate_every=30)


def on_both(specs):
    """Trainers of the same runs on a CPU and on a GPU."""
    return [SupervisedTrainer(specs, device) for device in ("cpu", "cuda")]


def weights(trainer):
    return torch.cat([p.detach().flatten(1).cpu() for p in trainer.stack.parameters()], dim=1)


def apart(one, other):
    """How far the weights of two trainers lie apart."""
    return (weights(one) - weights(other)).abs().max()


def test_the_same_bits_as_on_the_cpu():
    cpu, gpu = (random.run_keys([1, 2], Site.DROPOUT, 3, device=device) for device in ("cpu", "cuda"))
    assert torch.equal(random.bits(cpu, 1000), random.bits(gpu, 1000).cpu())
    assert torch.equal(random.uniform(cpu, 1000), random.uniform(gpu, 1000).cpu())
    scales = [random.dropout_scales(k, random.counters(1000, k.device), 0.1).cpu() for k in (cpu, gpu)]
    assert torch.equal(*scales)


FROZEN, FRESH = dict(embedding="cosine, frozen", lr=1e-4), dict(task=ProsQA(inputs=100, naming="fresh"), lr=1e-4)


@pytest.mark.parametrize("options", [{}, dict(method="discrete"), dict(method="no-cot"), FROZEN, FRESH], ids=str)
def test_captured_training_equals_training_on_the_cpu(options):
    cpu, gpu = on_both([short(**options), short(**dict(lr=1e-3) | options, seed=43)])
    before = gpu.stack.transformer.wte.weight.clone()
    for trainer in (cpu, gpu):
        trainer.advance(WARM_UP + 20)
        trainer.advance(10)
    assert gpu.engine.repeated["step"].graph is not None
    assert (cpu.losses[:, :10] - gpu.losses[:, :10].cpu()).abs().max() < 1e-2
    assert apart(cpu, gpu) < 1e-3
    assert torch.equal(before, gpu.stack.transformer.wte.weight) == (options == FROZEN)


@pytest.mark.parametrize("method", ["coconut", "coconut-slot"])
def test_captured_stages_equal_those_on_the_cpu(method):
    """Each stage takes other steps, so each is captured anew."""
    cpu, gpu = on_both([short(method, 42), short(method, 43)])
    for trainer in (cpu, gpu):
        trainer.train()
    assert apart(cpu, gpu) < 1e-3


def test_a_captured_switch_to_own_thoughts_equals_that_on_the_cpu():
    """The step before the switch and the step after it are other graphs; the switch is in the middle of a segment."""
    cpu, gpu = on_both([short(seed=seed, self_fed_from=0.4) for seed in (42, 43)])
    graphs = []
    for trainer in (cpu, gpu):
        seen = lambda _, one=trainer: graphs.append((one.phase[0], one.engine.repeated.get("step")))
        trainer.train(seen)
    assert [own for own, _ in graphs] == [0, 2, 2] * 2, "segments end at the switch, step 24, and at both evaluations"
    (_, before), (_, after), (_, last) = graphs[3:]
    assert before is not after and after is last
    assert apart(cpu, gpu) < 1e-3


def test_short_segments_before_the_capture():
    """Fewer steps than the warm-up takes must not be lost or taken twice."""
    one, two = SupervisedTrainer([short()], "cuda"), SupervisedTrainer([short()], "cuda")
    one.advance(12)
    for steps in (1, 1, 10):
        two.advance(steps)
    assert apart(one, two) < 1e-5
    assert int(one.step) == int(two.step) == 12


def test_a_run_in_a_stack_equals_the_run_alone_on_the_gpu():
    together, alone = (
        SupervisedTrainer([short(seed=s) for s in (42, 43, 44)], "cuda"),
        SupervisedTrainer([short(seed=43)], "cuda"),
    )
    for trainer in (together, alone):
        trainer.advance(23)
    assert (weights(together)[1] - weights(alone)[0]).abs().max() < 1e-4


@pytest.mark.parametrize("rule", [Base(), MTS(2), Dirichlet(20.0)])
def test_a_replayed_evaluation_equals_the_one_on_the_cpu(rule):
    """As the weights go on, whatever the rule draws; a GPU decodes in one chunk what a CPU decodes in several."""
    specs = [short(seed=seed, task=MNNS(1, 9, 3)) for seed in (42, 43)]
    cpu, gpu = on_both(specs)
    assert gpu.data.held_out.index.shape[1] > PROMPTS_AT_ONCE
    found = []
    for _ in range(WARM_UP + 2):
        gpu.advance(20)
        cpu.stack.load_state_dict({name: value.cpu() for name, value in gpu.stack.state_dict().items()})
        steps = rules(rule, specs[0].outputs)
        found.append(gpu.engine.decoded(steps))
        for name, values in cpu.engine.decoded(steps).items():
            near = 2 if name.startswith("correct") else 1e-2
            assert found[-1][name] == pytest.approx(values, abs=near), name
    assert gpu.engine.repeated[tuple(steps)].graph is not None and found[-1] != found[-2]


def test_resumed_on_the_gpu_equals_uninterrupted(store, nothing_shipped, monkeypatch):
    specs = [short(seed=42), short(seed=43)]
    whole = SupervisedTrainer(specs, "cuda")
    whole.train()
    broken = SupervisedTrainer(specs, "cuda")
    broken.advance(13)
    copy = lambda tensors: {name: value.clone() for name, value in tensors.items()}
    resumed = SupervisedTrainer(specs, "cuda")
    resumed.restore(copy(broken.stack.state_dict()), copy(broken.optimizer_tensors()), broken.progress)
    resumed.train()
    assert apart(whole, resumed) < 1e-5
    assert runs.run(specs, device="cuda")["device"].str.contains("cpu").sum() == 0


@pytest.mark.parametrize(
    "thought, options",
    [
        (MTS(2), {}),
        (MTS(2), dict(kl=0.1, updates=2)),
        (MTS(3), dict(first_k=1)),
        (Dirichlet(20.0), {}),
        (Gumbel(0.5), {}),
        (Gaussian(0.1), {}),
        (Base(), dict(mask=0.1)),
    ],
)
def test_captured_policy_gradients_equal_those_on_the_cpu(thought, options):
    recipe = Recipe(steps=24, batch=8, lr=1e-4, evaluate_every=12)
    specs = [GRPOSpec(recipe, short("discrete", seed), thought, **options) for seed in (42, 43)]
    start = build_stack([one.start for one in specs])
    cpu, gpu = (specs[0].trainer(specs, lambda _: start, torch.device(device)) for device in ("cpu", "cuda"))
    for trainer in (cpu, gpu):
        trainer.train()
    assert gpu.engine.repeated["step"].graph is not None
    assert apart(cpu, gpu) < 1e-3
    for here, there in zip(cpu.progress.curves, gpu.progress.curves):
        assert there["entropy_2"] == pytest.approx(here["entropy_2"], abs=1e-2)
