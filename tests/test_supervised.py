import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cot2lib import random
from cot2lib.data import stack_data
from cot2lib.profiles import shortened, spec
from cot2lib.random import Site
from cot2lib.supervised import StackTrainer, batch_loss, build_stack, evaluate, learning_rates
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS

TASK = MNNS(1, 5, 3)


def short(method="cot2", profile="paper", seed=42, **options):
    recipe = dict(steps=40, evaluate_every=20, batch=16) | options.pop("recipe", {})
    return spec(method, profile, task=TASK, d_model=16, seed=seed, **recipe, **options)


def weights(trainer, run):
    return torch.cat([parameter[run].detach().flatten() for parameter in trainer.stack.parameters()])


# Data


def test_each_run_has_its_own_split_and_targets():
    specs = [short(seed=42), short(seed=43, budget=2), short(seed=44, budget=2)]
    data = stack_data(specs, "cpu")
    assert data.outputs.shape[0] == 2 and data.variant.tolist() == [0, 1, 1]
    for place, run in enumerate(specs):
        mask = TASK.split(run.seed)
        assert torch.equal(data.train[place], mask.nonzero()[:, 0])
        rows = data.held_out.index[place][data.held_out.real[place]]
        assert torch.equal(rows, (~mask).nonzero()[:, 0])
        targets = hindsight_targets(TASK, run.supervision.budget).float()
        index = torch.arange(5)[None].expand(3, -1)
        assert torch.equal(data.batch(index)[1][place], targets[:5])


def test_validation_halves_divide_classes():
    data = stack_data([short(seed=42)], "cpu").held_out
    classes = TASK.classes[data.index[0][data.real[0]]]
    halves = data.half[0][data.real[0]]
    assert not set(classes[halves].tolist()) & set(classes[~halves].tolist())
    assert data.sizes[0] == [int((~halves).sum()), int(halves.sum())] and min(data.sizes[0]) > 0


def test_batches_walk_the_training_inputs():
    data = stack_data([short(seed=42), short(seed=43)], "cpu")
    order = data.order([42, 43], 0, 30, 16)
    for place, items in enumerate(data.train):
        first_pass = order[place].flatten()[: len(items)]
        assert torch.equal(first_pass.sort().values, items)
    assert torch.equal(order[:, 10:20], data.order([42, 43], 10, 10, 16))
    assert torch.equal(order[1:], stack_data([short(seed=43)], "cpu").order([43], 0, 30, 16))


def test_formats():
    cot2, discrete, answer = (stack_data([short(m)], "cpu") for m in ("cot2", "discrete", "no-cot"))
    assert cot2.prompts.shape[1] == 4 and discrete.prompts.shape[1] == 5, "the public CoT2 prompt has no arrow"
    assert cot2.outputs.shape[2] == 3 and discrete.outputs.shape[2] == 4, "discrete outputs end in EOS"
    assert torch.equal(discrete.outputs[0, :, -1].argmax(-1), torch.full((125,), TASK.eos_id))
    assert answer.outputs.shape[2] == 2
    assert torch.equal(answer.outputs[0, :, 0].argmax(-1), TASK.answer_ids)


# Losses


def test_discrete_paper_loss_is_hugging_faces():
    """The public discrete code calls the model with labels = input_ids."""
    pytest.importorskip("transformers")
    run = short("discrete")
    stack, data = build_stack([run]), stack_data([run], "cpu")
    prompts, outputs = data.batch(torch.arange(8)[None])
    ids = torch.cat([prompts, outputs.argmax(-1)], dim=2)[0]
    expected = stack.to_hf(0)(input_ids=ids, labels=ids).loss
    assert batch_loss(stack, run.supervision, prompts, outputs)[0].item() == pytest.approx(expected.item(), abs=1e-5)


def test_csft_loss_by_hand():
    run = short("cot2")
    stack, data = build_stack([run]), stack_data([run], "cpu")
    prompts, outputs = data.batch(torch.arange(8)[None])
    total = 0.0
    for step in range(3):
        fed = torch.cat([stack.embed(prompts), stack.mix(outputs[:, :, :step])], dim=2)
        log_weights = stack(fed)[:, :, -1].log_softmax(-1)
        total -= (outputs[:, :, step] * log_weights).sum(-1).mean()
    assert batch_loss(stack, run.supervision, prompts, outputs)[0].item() == pytest.approx(total.item(), abs=1e-4)


def test_gradient_reaches_the_embeddings_through_the_fed_thoughts():
    run = short("cot2")
    stack, data = build_stack([run]), stack_data([run], "cpu")
    prompts, outputs = data.batch(torch.arange(8)[None])
    loss = batch_loss(stack, run.supervision, prompts, outputs)[0]
    through = torch.autograd.grad(loss, stack.transformer.wte.weight)[0]
    frozen = stack.mix(outputs[:, :, :-1]).detach()
    stack.mix = lambda weights: frozen
    cut = torch.autograd.grad(batch_loss(stack, run.supervision, prompts, outputs)[0], stack.transformer.wte.weight)[0]
    assert not torch.allclose(through, cut, atol=1e-6)


def test_learning_rates():
    quick = spec("cot2", "quick").recipe
    rates = learning_rates(quick, 0, quick.steps)
    assert rates[0] == pytest.approx(1 / 101) and rates.argmax() in (100, 101) and rates[-1] < 1e-6
    middle = quick.warmup + (quick.steps - quick.warmup) // 2
    assert rates[middle].item() == pytest.approx(0.5, abs=1e-3)
    assert torch.equal(rates[300:310], learning_rates(quick, 300, 10))
    assert (learning_rates(spec("cot2", "paper").recipe, 1000, 5) == 1).all()


# Training


def trained(specs, steps=20):
    trainer = StackTrainer(specs)
    trainer.advance(steps)
    return trainer


@pytest.mark.parametrize("method", ["cot2", "discrete", "no-cot"])
def test_a_run_in_a_stack_equals_the_run_alone(method):
    """With dropout, other seeds, other learning rates and, for CoT2, other budgets beside it."""
    mine = short(method, seed=43)
    company = [short(method, seed=42), mine, short(method, seed=44, lr=1e-3)]
    if method == "cot2":
        company.append(short(method, seed=43, budget=2))
    together, alone = trained(company), trained([mine])
    assert (weights(together, 1) - weights(alone, 0)).abs().max() < 1e-5
    assert (together.losses[1, :20] - alone.losses[0, :20]).abs().max() < 1e-5
    assert not torch.allclose(weights(together, 0), weights(together, 1), atol=1e-3)


def test_stacked_adamw_equals_torchs_run_by_run():
    specs = [short(seed=42, lr=1e-3), short(seed=43, lr=1e-3), short(seed=44, lr=3e-3)]
    specs = [replace(s, recipe=replace(s.recipe, dropout=0.0, warmup=5, schedule="cosine")) for s in specs]
    together = trained(specs)
    for place, run in enumerate(specs):
        stack, data = build_stack([run]), stack_data([run], "cpu")
        optimizer = torch.optim.AdamW(stack.parameters(), lr=run.recipe.lr, weight_decay=run.recipe.weight_decay)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k, r=run: learning_rates(r.recipe, k, 1).item())
        for index in data.order([run.seed], 0, 20, 16)[0]:
            optimizer.zero_grad()
            batch_loss(stack, run.supervision, *data.batch(index[None])).sum().backward()
            optimizer.step()
            schedule.step()
        alone = torch.cat([parameter[0].detach().flatten() for parameter in stack.parameters()])
        assert (weights(together, place) - alone).abs().max() < 1e-5


def test_dropout_matters_and_is_the_runs_own():
    with_dropout, without = short(seed=42), short(seed=42, recipe=dict(dropout=0.0))
    a, b = trained([with_dropout]), trained([without])
    assert not torch.allclose(weights(a, 0), weights(b, 0), atol=1e-4)
    assert torch.equal(weights(a, 0), weights(trained([with_dropout]), 0))


def test_dropout_scales_change_every_step():
    trainer = StackTrainer([short(seed=42), short(seed=43)])
    first = [part.clone() for part in trainer._scales()]
    assert not torch.equal(first[0][0], first[0][1]), "runs differ"
    trainer.step.fill_(1)
    assert not torch.equal(first[0], trainer._scales()[0]), "steps differ"
    keys = random.fold(random.run_keys([42, 43], Site.DROPOUT), 0)
    again = random.dropout_scales(keys, trainer.counter, 0.1)[:, : trainer.lanes[0]]
    assert torch.equal(first[0], again)


def test_first_losses_and_curves():
    trainer = StackTrainer([short(seed=42), short(seed=43)])
    progress = trainer.train()
    assert [point["step"] for point in progress.curves] == [20, 40]
    assert [len(part) for part in progress.first_losses] == [20, 20]
    means = torch.tensor([sum(part) / 20 for part in progress.first_losses])
    assert torch.allclose(torch.tensor(progress.curves[0]["loss"]), means, atol=1e-5)
    assert progress.first_losses[0][0] == pytest.approx(3 * math.log(TASK.vocab_size), rel=0.05)


def test_restored_training_equals_uninterrupted_training_to_the_bit():
    specs = [short(seed=42), short(seed=43, lr=1e-3)]
    whole = StackTrainer(specs)
    whole.train()
    broken = trained(specs, 13)
    resumed = StackTrainer(specs)
    state = {name: value.clone() for name, value in broken.stack.state_dict().items()}
    optimizer = {name: value.clone() for name, value in broken.optimizer_tensors().items()}
    resumed.restore(state, optimizer, broken.progress)
    resumed.train()
    assert torch.equal(weights(whole, 0), weights(resumed, 0)) and torch.equal(weights(whole, 1), weights(resumed, 1))
    assert whole.progress.curves == resumed.progress.curves
    assert whole.progress.first_losses == resumed.progress.first_losses


COMPILED = """
import sys
sys.path.insert(0, "tests")
import torch
from test_supervised import short, trained, weights
from cot2lib.supervised import StackTrainer
torch.set_num_threads(1)
specs = [short(seed=s, layers=1, heads=1) for s in (42, 43)]
eager, compiled = trained(specs), StackTrainer(specs, compile=True)
compiled.advance(20)
print((eager.losses[:, :20] - compiled.losses[:, :20]).abs().max().item())
print((weights(eager, 0) - weights(compiled, 0)).abs().max().item())
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="compiling needs a C++ compiler")
def test_compiled_training_equals_eager_training():
    """In a process of its own: the shape checks of the tests cannot be compiled."""
    root = Path(__file__).parent.parent
    out = subprocess.run([sys.executable, "-c", COMPILED], cwd=root, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert all(float(difference) < 1e-4 for difference in out.stdout.split())


def test_a_short_run_learns_to_search():
    """Fourteen epochs of the quick recipe: far above the parity rule (61 %), entropies near the targets'."""
    trainer = StackTrainer([shortened(spec("cot2", "quick", seed=42), 14)])
    point = trainer.train().curves[-1]
    accuracy = (point["correct_a"][0] + point["correct_b"][0]) / sum(trainer.data.held_out.sizes[0])
    assert accuracy > 0.8
    assert point["entropy_1"][0] == pytest.approx(math.log(2), abs=0.05)
    assert point["entropy_2"][0] == pytest.approx(1.3455, abs=0.2)


# Evaluation


def test_evaluation_counts_by_hand():
    specs = [short("cot2", seed=42), short("cot2", seed=43)]
    stack, data = build_stack(specs), stack_data(specs, "cpu")
    result = evaluate(stack, data, specs[0])
    for place, run in enumerate(specs):
        rows = (~TASK.split(run.seed)).nonzero()[:, 0]
        alone = stack.select([place])
        inputs, total = alone.embed(data.prompts[rows]), 0.0
        with torch.no_grad():
            for step in range(3):
                weights = alone(inputs)[:, :, -1].softmax(-1)
                entropy = torch.special.entr(weights).sum(-1).mean().item()
                assert result[f"entropy_{step + 1}"][place] == pytest.approx(entropy, abs=1e-4)
                inputs = torch.cat([inputs, alone.mix(weights[:, :, None])], dim=2)
        total = int((weights[0].argmax(-1) == TASK.answer_ids[rows]).sum())
        assert result["correct_a"][place] + result["correct_b"][place] == total
