"""Checkpoints of the store, and its files after damage."""

from functools import partial

import pytest
import torch
from builders import SPECS, short
from safetensors.torch import save_file

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.kit.files import load_tensors, save_tensors
from cot2lib.runs import store as stores
from cot2lib.runs.collect import collect
from cot2lib.training.supervised import SupervisedTrainer

MANY = [short("cot2", seed) for seed in (42, 43, 44, 45)]


# Checkpoints


def test_a_checkpoint_goes_on_under_the_same_request(interrupted, starts):
    """It keeps the commit that it began with; other stacks of the request are trained as ever."""
    asked = [*MANY[:3], short("discrete", 42)]
    checkpoint = interrupted(asked)
    starts.clear()
    assert runs.run(asked)["commit"].eq("before").tolist() == [True, True, True, False]
    assert starts == [([42, 43, 44], 20), ([42], 0)] and not checkpoint.exists()
    runs.run(MANY)
    assert starts[2:] == [([45], 0)], "what is finished is not trained again, though it would stack"


def test_resume_refuses_a_checkpoint_of_other_runs(interrupted):
    checkpoint = interrupted(MANY[:1])
    trainer, entry = SupervisedTrainer([MANY[1]]), stores.Entry([MANY[1].id])
    checkpoint.rename(entry.checkpoint)
    with pytest.raises(RecordError, match=r"does not fit its runs .*; delete it"):
        entry.resume(partial(stores.restore, trainer))


def test_a_store_that_cannot_be_written_is_named_before_training(tmp_path, nothing_shipped, monkeypatch, starts):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COT2_STORE", str(tmp_path / "file" / "store"))
    with pytest.raises(RecordError, match=r"file/store cannot be written to.*set COT2_STORE"):
        runs.run(SPECS)
    assert not starts


# Damage


def refused(path, use, says):
    """A file is refused in one sentence that names it."""
    with pytest.raises(RecordError) as raised:
        use()
    said = str(raised.value)
    assert path.name in said and says in said and "\n" not in said


@pytest.fixture
def stack_file(kept):
    """The file of the second run, alone in its stack, beside that of the others."""
    return stores.Entry([SPECS[1].id]).finished


def uses(spec):
    return (
        lambda: runs.load(spec, "error"),
        lambda: runs.run([spec]),
        lambda: collect("x.y", [spec]),
    )


def test_a_stack_file_that_is_cut_anywhere_is_named(stack_file):
    """In its length, its header, at its first tensor, at its last byte; then it is trained again."""
    whole = stack_file.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    for length in (0, 3, 8, 9, header // 2, header + 7, header + 8, header + 9, len(whole) - 200, len(whole) - 1):
        stack_file.write_bytes(whole[:length])
        for use in uses(SPECS[1]):
            refused(stack_file, use, "is truncated")
    stack_file.unlink()
    assert len(runs.run(SPECS[1:2])) == 1


def test_a_file_of_another_version_is_named(interrupted, stack_file):
    """Finished or in training."""
    for path, spec in ((interrupted(MANY[3:]), MANY[3]), (stack_file, SPECS[1])):
        tensors, meta = load_tensors(path)
        save_tensors(path, tensors, meta | {"format": 2})
        refused(
            path,
            lambda spec=spec: runs.run([spec]),
            "by another version of cot2lib; collect it with that one",
        )
        path.unlink()


def test_a_checkpoint_with_other_weights_is_named(interrupted):
    checkpoint = interrupted(MANY[:1])
    tensors, meta = load_tensors(checkpoint)
    strange = torch.zeros(1, 2, 3)
    for spoilt in (
        {},
        tensors | {"weights.transformer.wte.weight": strange},
        tensors | {"optimizer.999.exp_avg": strange},
    ):
        save_tensors(checkpoint, spoilt, meta)
        refused(checkpoint, lambda: runs.run(MANY[:1]), "does not fit its runs")


def test_a_file_of_another_program_is_named(kept):
    save_file({"x": torch.zeros(2)}, kept / "foreign.safetensors")
    refused(kept / "foreign.safetensors", uses(SPECS[1])[1], "not written by cot2lib")
