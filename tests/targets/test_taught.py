"""Targets that a trained run gives."""

from dataclasses import replace

import pytest
import torch

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.errors import SpecError
from cot2lib.runs import Taught, taught
from cot2lib.runs.taught import _outputs
from cot2lib.specs.profiles import spec
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.training.data import check_run
from cot2lib.training.supervised import build_stack

TASK = MNNS(1, 3, 3)
RECIPE = dict(task=TASK, d_model=8, layers=1, heads=1, warmup=0, batch=9)
TEACHER = spec("discrete", steps=8, evaluate_every=8, **RECIPE)


def student(teacher=TEACHER, **options):
    run = spec("cot2", **RECIPE | dict(steps=300, evaluate_every=300, lr=1e-2) | options)
    return replace(run, supervision=replace(run.supervision, targets=Taught(teacher)))


@pytest.fixture(autouse=True)
def forgotten():
    """Another store has another teacher."""
    _outputs.cache_clear()


def test_a_student_says_what_its_teacher_says(store):
    """On the training inputs, right or wrong; this teacher is mostly wrong."""
    run = student()
    runs.run([run])
    train = TASK.split(42)
    prompts, steps = TASK.prompts[train][None], rules(TEACHER.thought, TASK.steps)
    teacher, learnt = (decode(runs.load(one), prompts, steps).logits[0].argmax(-1) for one in (TEACHER, run))
    assert (teacher[:, -1] == TASK.answer_ids[train]).double().mean() < 0.6
    assert (teacher == learnt).double().mean() > 0.95


@pytest.mark.parametrize(
    "teacher", [spec("discrete", task=ProsQA(inputs=12), d_model=8, layers=1, heads=1), spec("pause", **RECIPE)]
)
def test_a_teacher_reads_its_own_prompts(teacher, monkeypatch):
    """Without what is padding, and with its pauses."""
    model, steps = build_stack([teacher]), rules(teacher.thought, teacher.outputs)
    monkeypatch.setattr(taught, "load", lambda run: model)
    prompts = teacher.task.prompt(teacher.supervision.arrow, teacher.supervision.pauses)
    padding = [0] * len(prompts) if teacher.task.padding is None else teacher.task.padding.tolist()
    alone = [decode(model, row[left:][None, None], steps).logits[0, 0] for row, left in zip(prompts, padding)]
    assert torch.equal(_outputs(teacher), torch.stack(alone).argmax(-1))


def test_a_teacher_of_another_task_is_refused(store):
    with pytest.raises(SpecError, match="the task of its student"):
        check_run(student(task=MNNS(1, 4, 3)))


def test_a_teacher_is_named_by_its_method_and_seed():
    assert student().columns()["targets"] == "Taught(discrete CoT, seed=42)"
