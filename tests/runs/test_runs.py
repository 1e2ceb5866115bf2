import gc
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import weakref
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from builders import SPECS, short

from cot2lib import cli, runs
from cot2lib.errors import DeviceError, RecordError, SpecError
from cot2lib.kit import identity, timing
from cot2lib.kit.files import load_tensors
from cot2lib.runs import finished, lookup, records, train
from cot2lib.runs import store as stores
from cot2lib.runs.collect import collect as merge
from cot2lib.runs.train import stacks_of_shard
from cot2lib.study import sweeps
from cot2lib.study.book import all_runs
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Base
from cot2lib.training.supervised import SupervisedTrainer

pytestmark = pytest.mark.usefixtures("unchecked")

TIMED = ["seconds", "date"]


# run, curves, load


def test_run_gives_one_row_per_spec_in_order(store, nothing_shipped):
    rows = runs.run(SPECS)
    assert rows["id"].tolist() == [s.id for s in SPECS]
    assert rows["method"].tolist() == ["CoT2", "discrete CoT", "CoT2"] and rows["seed"].tolist() == [43, 42, 42]
    assert rows["stacked"].tolist() == [2, 1, 2] and (rows["device"].str.startswith("cpu")).all()
    assert len(list(store.glob("*.safetensors"))) == 2 and not list(store.glob("*.checkpoint.safetensors"))
    trained = [path.stat().st_mtime_ns for path in sorted(store.glob("*"))]
    again = runs.run(SPECS)
    pd.testing.assert_frame_equal(rows, again)
    assert trained == [path.stat().st_mtime_ns for path in sorted(store.glob("*"))], "nothing was trained again"


def test_curves_and_rows_agree(store, nothing_shipped):
    rows, curves = runs.run(SPECS), runs.curves(SPECS)
    assert len(curves) == 3 * len(SPECS)
    last = curves[curves["step"] == 60].set_index("id").loc[rows["id"]]
    assert last["accuracy"].tolist() == pytest.approx(rows["last"].tolist())
    assert curves.groupby("id")["accuracy"].max().loc[rows["id"]].tolist() == pytest.approx(rows["best"].tolist())
    assert (curves["epoch"] > 0).all() and curves["entropy_3"].notna().all()


def test_by_profile_leaves_out_what_is_not_recorded(store, nothing_shipped):
    with pytest.raises(RecordError, match="no record of run"):
        runs.by_profile({"quick": SPECS, "paper": SPECS})
    runs.run(SPECS[:2])
    with pytest.raises(RecordError, match="no record of run"):
        runs.by_profile({"quick": SPECS, "paper": SPECS})
    requests = {"quick": SPECS, "paper": [SPECS[2]]}
    retrained = runs.by_profile(requests, retrained="quick")
    records.ship("tiny.quick", finished.tables(), {}, nothing_shipped)
    for rows, curves in (retrained, runs.by_profile(requests)):
        assert rows["id"].tolist() == [SPECS[0].id, SPECS[1].id] and set(rows["profile"]) == {"quick"}
        assert set(curves["id"]) == {SPECS[0].id, SPECS[1].id} and len(curves) == 6


@pytest.mark.parametrize(
    "ask", [runs.run, runs.curves, runs.load_stack, lambda specs: runs.by_profile({"quick": specs})]
)
def test_asking_for_nothing_is_named(ask):
    with pytest.raises(SpecError, match="no runs were asked for"):
        ask([])


def test_the_store_is_read_only_for_what_is_not_shipped(store, nothing_shipped, monkeypatch):
    runs.run(SPECS)
    records.ship("tiny.quick", finished.tables(), {}, nothing_shipped)
    monkeypatch.setattr(stores, "finished_files", lambda: pytest.fail("the store was read"))
    assert len(runs.run(SPECS)) == 3 and len(runs.curves(SPECS)) == 9
    assert len(runs.by_profile({"quick": SPECS})[0]) == 3


def test_stored_tables_are_made_once_per_file(store, nothing_shipped, monkeypatch):
    runs.run(SPECS)
    first = finished.tables()
    monkeypatch.setattr(stores, "load_meta", lambda path: pytest.fail("read again"))
    monkeypatch.setattr(finished, "accuracies", lambda *args: pytest.fail("made again"))
    pd.testing.assert_frame_equal(first[0], finished.tables()[0])


@pytest.mark.parametrize("device", ["abacus", "cuda:1", "mps", "meta", "cpu:0", ""])
def test_only_cpu_and_cuda_are_devices(store, nothing_shipped, device):
    """Also where nothing is left to train."""
    with pytest.raises(DeviceError, match=f"device='{device}' is unknown; choose auto, cpu or cuda"):
        runs.run(SPECS, missing="error", device=device)


def test_load_gives_the_trained_model(store, nothing_shipped):
    runs.run(SPECS)
    for chosen in (SPECS[0], SPECS[2]):  # the first and the second of their stack
        model = runs.load(chosen, missing="error")
        trainer = SupervisedTrainer([chosen])
        trainer.train()
        for mine, theirs in zip(model.parameters(), trainer.stack.parameters()):
            assert torch.allclose(mine, theirs, rtol=0, atol=1e-4)


def test_load_trains_what_is_missing(store, nothing_shipped):
    assert runs.load(SPECS[1]).runs == 1
    with pytest.raises(RecordError, match="no trained weights of run"):
        runs.load(SPECS[0], missing="error")


def test_missing_record_is_named(store, nothing_shipped):
    with pytest.raises(
        RecordError, match=rf"{SPECS[0].id} \(CoT2, d=16, seed 43\) and 2 more; ask with missing='train'"
    ):
        runs.run(SPECS, missing="error")
    with pytest.raises(RecordError, match="no record"):
        runs.curves(SPECS)
    with pytest.raises(SpecError, match="missing='maybe'"):
        runs.run(SPECS, missing="maybe")


@pytest.mark.parametrize("chapter", all_runs.SWEEPS)
def test_the_message_of_a_missing_record_names_one_run(chapter):
    for wanted in all_runs.sweep(chapter, "quick")[::7]:
        assert all_runs.where(*_listed(lookup.absent_message([wanted]))) == [wanted]


def _listed(message):
    """Runs of the chapter and profile that a message's command names, and its conditions."""
    _, _, chapter, _, profile, _, *conditions = shlex.split(message.split("`")[1])
    return all_runs.sweep(chapter, profile), conditions


def _told(ask):
    """The command that an error's sentence names, if it names one."""
    with pytest.raises(RecordError) as raised:
        ask()
    assert str(raised.value).count("\n") == 0
    _, *command = str(raised.value).split("`")[:2]
    return shlex.split(command[0])[1:] if command else None


def test_what_a_missing_record_advises_helps(store, nothing_shipped, monkeypatch):
    """A command is named where a chapter lists the run; it makes rows, and weights where rows alone are shipped."""
    monkeypatch.setattr(all_runs, "SWEEPS", {"tiny": lambda profile: SPECS[:1]})
    assert cli.main(_told(lambda: runs.run(SPECS[:1], missing="error"))) == 0
    records.ship("tiny.quick", finished.tables(), {}, nothing_shipped)
    for path in store.iterdir():
        path.unlink()
    assert len(runs.run(SPECS[:1], missing="error")) == 1
    for ask in (
        lambda: runs.load(SPECS[0], missing="error"),
        lambda: runs.run(SPECS[:1], missing="error", retrain=True),
        lambda: runs.curves(SPECS[:1], retrain=True),
    ):
        told = _told(ask)
        assert cli.main(told) == 0 and ask() is not None
        for path in store.iterdir():
            path.unlink()


def test_no_command_is_named_for_a_run_that_no_chapter_lists(store, nothing_shipped):
    other = sweeps.small("quick", [99])[:1]
    assert _told(lambda: runs.load_stack(other, missing="error")) is None
    assert _told(lambda: runs.run(other, missing="error")) is None


def test_only_runs_of_one_shape_stack(store, nothing_shipped):
    for other in (short("cot2", 42, budget=2), short("cot2", 44, lr=1e-3)):
        with pytest.raises(RecordError, match="no trained weights of run"):
            runs.load_stack([SPECS[0], other], missing="error")
    for other in (SPECS[1], short("cot2", 42, layers=1)):
        with pytest.raises(SpecError, match="only runs of one shape stack"):
            runs.load_stack([SPECS[0], other])
    assert not store.exists(), "nothing was trained"


@dataclass(frozen=True)
class Readers(Base):
    """A rule as a reader writes it."""


def test_runs_of_a_readers_rule_stay_in_the_store(store, nothing_shipped, monkeypatch):
    """A process that has not defined the rule reads what else is there; `collect` takes no such run."""
    own = replace(SPECS[0], thought=Readers())
    runs.run([own, SPECS[1]])
    assert len(runs.run([own], "error")) == 1
    with pytest.raises(SpecError, match="Readers is defined outside the package: runs with it stay"):
        merge("tiny.quick", [own, SPECS[1]])
    stores.read.cache_clear()
    finished._stack_tables.cache_clear()
    monkeypatch.setattr(identity, "OUTSIDE", {})
    assert runs.run(SPECS[1:2], "error")["id"].tolist() == [SPECS[1].id]
    assert set(stores.finished()) == {SPECS[1].id}
    merge("tiny.quick", SPECS)
    assert records.shipped()[0]["id"].tolist() == [SPECS[1].id]


def test_a_checkpoint_of_a_readers_rule_is_left_alone(interrupted, store, monkeypatch):
    checkpoint = interrupted([replace(SPECS[0], thought=Readers())])
    monkeypatch.setattr(identity, "OUTSIDE", {})
    runs.run(SPECS[1:2])
    assert checkpoint.exists()


def test_plan_stacks_runs_of_one_shape():
    device = torch.device("cpu")
    many = [short("cot2", seed, lr=lr) for seed in range(20) for lr in (1e-3, 2e-3)] + [short("discrete", 1)]
    stacks = runs.plan([*many, many[0]], device)
    assert sorted(len(stack) for stack in stacks) == [1, 12, 14, 14]
    assert {s.id for stack in stacks for s in stack} == {s.id for s in many}
    assert sum(len({s.recipe.lr for s in stack}) for stack in stacks) == 5, "learning rates keep together"


def test_shards_share_the_stacks(store, nothing_shipped, monkeypatch):
    """Each trains its own stacks, however far the other is; together they give what one process gives."""
    first = runs.run(SPECS, shard=(0, 2))
    assert first["method"].tolist() == ["CoT2", "CoT2"]
    assert len(runs.run(SPECS, shard=(0, 2))) == 2, "the other shard's stack stays"
    assert len(runs.run(SPECS, shard=(1, 2))) == 3
    shared = runs.run(SPECS, "error").drop(columns=TIMED)
    monkeypatch.setenv("COT2_STORE", str(store / "alone"))
    pd.testing.assert_frame_equal(shared, runs.run(SPECS).drop(columns=TIMED))


def test_retrain_ignores_shipped_records(store, nothing_shipped, monkeypatch):
    runs.run(SPECS)
    records.ship("tiny.quick", finished.tables(), {}, nothing_shipped)
    monkeypatch.setenv("COT2_STORE", str(store / "other"))
    assert len(runs.run(SPECS, missing="error")) == 3
    with pytest.raises(RecordError):
        runs.run(SPECS, missing="error", retrain=True)
    assert len(runs.run(SPECS, retrain=True)) == 3


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """Train with standard output in a file; gives what has reached it at every evaluation, and at the end."""
    path, seen, evaluate = tmp_path / "log", [], SupervisedTrainer.evaluate
    path.touch()
    monkeypatch.setattr(SupervisedTrainer, "evaluate", lambda made: seen.append(path.read_text()) or evaluate(made))
    monkeypatch.setattr(timing, "TOLD_SECONDS", 0)
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)

    def trained(specs):
        with path.open("w") as file, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", file)
            runs.run(specs, device="cpu", engine="torch")
        return [*seen, path.read_text()]

    return trained


def test_a_log_says_how_far_a_training_is_while_it_trains(store, nothing_shipped, logged):
    *during, whole = logged(SPECS[:1])
    begun = "training 1 runs in 1 stacks on cpu\nCoT2 d=16 x1: step 0 of 60\n"
    assert during[0] == begun and during[2].startswith(during[1])
    assert re.fullmatch(begun + r"CoT2 d=16 x1: step 20 of 60, about \d+ s left\n", during[1])
    assert whole.splitlines()[-2].startswith("CoT2 d=16 x1: step 40 of 60, about ")
    assert whole.splitlines()[-1].startswith("trained 1 runs in ")


def test_a_log_of_a_resumed_training_begins_where_it_goes_on(interrupted, logged):
    interrupted(MANY[:1])
    assert logged(MANY[:1])[-2].splitlines()[-1] == "CoT2 d=16 x1: step 40 of 60"


def test_a_log_gets_a_line_a_minute(store, nothing_shipped, logged, monkeypatch):
    monkeypatch.setattr(timing, "TOLD_SECONDS", 60)
    assert len(logged(SPECS[:1])[-1].splitlines()) == 3, "how much, a start and the end"


def test_a_notebook_gets_the_summary_alone(store, nothing_shipped, logged, monkeypatch):
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert re.fullmatch(r"trained 1 runs in .* on cpu\n", logged(SPECS[:1])[-1])


def test_a_clock_that_is_set_back_is_no_negative_time(store, nothing_shipped, monkeypatch, capsys):
    """Of a machine that is put to sleep or moved, say; the clock goes back by hours at every look."""
    back = itertools.count(10**6, -3600)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(back)))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(back)))
    assert runs.run(SPECS[:1], device="cpu", engine="torch")["seconds"].tolist() == [0.0]
    assert "trained 1 runs in 0 s" in capsys.readouterr().out


REFUSED = [
    *((dict(threads=count), f"threads={count!r}: (give a whole number|must be at least 1)")
      for count in (0, -1, 1.5, "2", True)),
    *((dict(shard=shard), r"shard=.*: give \(k, n\) with 0 <= k < n")
      for shard in [(5, 2), (2, 2), (-1, 2), (0, 0), None, 1, "1/2", (0,), (0, 1, 2), (0.0, 1), (None, 2)]),
    (dict(more=short("cot2", budget=9)), "budget B=9"),
    (dict(more=replace(short("cot2"), task=MNNS(1, 1, 3))), "MNNS 3 x 1-1 has too few kinds of input"),
    (dict(more=replace(short("cot2"), task=MNNS(length=1000, inputs=10**5))), "targets of 100000 inputs take .* GiB"),
]  # fmt: skip


@pytest.mark.parametrize("options, says", REFUSED)
def test_what_cannot_be_trained_is_refused_before_anything_is(store, nothing_shipped, options, says):
    """Also a run beside good ones: one kind of input leaves nothing to shuffle, or nothing to hold out."""
    more = [options["more"]] if "more" in options else []
    with pytest.raises(SpecError, match=says):
        runs.run([*SPECS, *more], **{name: value for name, value in options.items() if name != "more"})
    assert not store.exists(), "nothing was trained"


# A killed sweep

KILLED = """
import torch
from cot2lib import runs
from cot2lib.runs import train
from cot2lib.specs.profiles import spec
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.tasks import MNNS
torch.set_num_threads(1)
to_the_end = SupervisedTrainer.train
def noted(trainer, after_segment):
    open(START, "w").write(str(trainer.progress.step))
    return to_the_end(trainer, after_segment)
SupervisedTrainer.train = noted
train.CHECKPOINT_SECONDS = 0
recipe = dict(steps=600, evaluate_every=50, batch=16, dropout=0.1)
specs = [spec("cot2", "quick", task=MNNS(1, 5, 3), d_model=16, seed=s, **recipe) for s in (42, 43)]
runs.run(specs, device="cpu").drop(columns=["seconds", "date"]).to_json(TABLE)
runs.curves(specs).to_json(CURVES)
"""


def _sweep(folder: Path) -> subprocess.Popen:
    code = KILLED
    for name in ("rows", "curves", "start"):
        code = code.replace({"rows": "TABLE"}.get(name, name.upper()), repr(str(folder / name)))
    return subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"COT2_STORE": str(folder / "store"), "COT2_COMMIT": "test"}
    )


@pytest.mark.thorough
def test_a_killed_sweep_resumes_to_the_same_table(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    assert _sweep(whole).wait() == 0
    worker = _sweep(broken)
    for _ in range(600):
        if list((broken / "store").glob("*.checkpoint.safetensors")):
            break
        time.sleep(0.1)
    worker.send_signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    checkpoint = next((broken / "store").glob("*.checkpoint.safetensors"))
    step = stores.load_meta(checkpoint)["progress"]["step"]
    assert 0 < step < 600, "it was killed on the way"
    assert not (broken / "rows").exists() and (broken / "start").read_text() == "0"
    assert _sweep(broken).wait() == 0
    assert int((broken / "start").read_text()) == step, "it went on from there"
    for name in ("rows", "curves"):
        assert json.loads((whole / name).read_text()) == json.loads((broken / name).read_text())


class Interrupt(BaseException):
    """Raised in the middle of training."""


@pytest.fixture
def interrupted(store, nothing_shipped, monkeypatch):
    """Interrupt training of some runs right after a checkpoint at step 40 of 60; returns the checkpoint."""

    def interrupt(specs):
        save = stores.save_checkpoint

        def stop(trainer, provenance):
            if trainer.progress.step == 40:
                save(trainer, provenance | {"commit": "before"})
                raise Interrupt

        with monkeypatch.context() as patched, pytest.raises(Interrupt):
            patched.setattr(train, "CHECKPOINT_SECONDS", -1)
            patched.setattr(stores, "save_checkpoint", stop)
            runs.run(specs)
        return next(store.glob("*.checkpoint.safetensors"))

    return interrupt


@pytest.fixture
def starts(monkeypatch):
    """Seeds and first step of every stack that is trained."""
    seen, train = [], SupervisedTrainer.train

    def noted(trainer, after_segment):
        seen.append(([s.seed for s in trainer.specs], trainer.progress.step))
        return train(trainer, after_segment)

    monkeypatch.setattr(SupervisedTrainer, "train", noted)
    return seen


MANY = [short("cot2", seed) for seed in (42, 43, 44, 45)]


def test_a_checkpoint_is_found_by_the_runs_in_it(interrupted, starts):
    """Whatever else is asked for: fewer runs, more runs."""
    checkpoint = interrupted(MANY[:3])
    starts.clear()
    assert len(runs.run(MANY[1:])) == 3
    assert starts == [([42, 43, 44], 40), ([45], 0)] and not checkpoint.exists()
    assert len(runs.run(MANY, missing="error")) == 4, "the fourth run of the checkpoint is finished too"


def test_a_checkpoint_outlives_the_recording_of_one_of_its_runs(interrupted, starts, store, nothing_shipped):
    runs.run(MANY[:1])
    records.ship("tiny.quick", finished.tables(), {}, nothing_shipped)
    for path in store.glob("*"):
        path.unlink()
    records.shipped()
    checkpoint = interrupted(MANY[1:3])
    starts.clear()
    runs.run(MANY[:3])
    assert starts == [([43, 44], 40)] and not checkpoint.exists()


def test_a_checkpoint_of_finished_runs_is_removed(interrupted, store, starts):
    checkpoint = interrupted(MANY[:2])
    aside = store.parent / checkpoint.name
    checkpoint.rename(aside)
    runs.run(MANY[:2])
    aside.rename(checkpoint)
    starts.clear()
    runs.run(MANY[:3])
    assert starts == [([44], 0)] and not checkpoint.exists()


def test_half_recorded_stack_trains_the_other_half(store, nothing_shipped, starts):
    runs.run(MANY[:2])
    starts.clear()
    rows = runs.run(MANY)
    assert starts == [([44, 45], 0)] and rows["seed"].tolist() == [42, 43, 44, 45]


def test_shards_do_not_train_a_checkpoint_twice(interrupted, starts):
    specs = [short("discrete", 42), *MANY[:2], short("discrete", 43)]
    interrupted(MANY[:2])
    for order in ((0, 1), (1, 0)):
        shares = [stacks_of_shard(specs, {s.id for s in specs}, torch.device("cpu"), (k, 2)) for k in order]
        trained = [s.id for share in shares for stack in share for s in stack]
        assert sorted(trained) == sorted(s.id for s in specs)


def test_a_resumed_stack_keeps_the_commit_it_began_with(interrupted):
    interrupted(MANY[:1])
    assert runs.run(MANY[:1])["commit"].tolist() == ["before"]


def test_a_trained_stack_is_let_go(store, nothing_shipped, monkeypatch):
    """Without waiting for the garbage collector: on CUDA it holds the memory of its graphs.

    Building the first optimiser of a process imports parts of torch, and one of them keeps the frames it came from.
    """
    SupervisedTrainer(MANY[:1])
    trained, train = [], SupervisedTrainer.train

    def noted(trainer, after_segment):
        trained.append(weakref.ref(trainer))
        return train(trainer, after_segment)

    monkeypatch.setattr(SupervisedTrainer, "train", noted)
    gc.disable()
    try:
        runs.run(SPECS)
        assert len(trained) == 2 and all(trainer() is None for trainer in trained)
    finally:
        gc.enable()


def refusals(file, changes, use):
    """What a use says of a file after each change of its contents."""
    whole, said = file.read_bytes(), {}
    for name, change in changes.items():
        file.write_bytes(whole)
        tensors, meta = load_tensors(file)
        change(tensors, meta)
        stores.save_tensors(file, tensors, meta)
        with pytest.raises(RecordError) as raised:
            use()
        said[name] = str(raised.value)
    file.write_bytes(whole)
    return said


SPOILT = {
    "format": lambda tensors, meta: meta.update(format=99),
    "no specs": lambda tensors, meta: meta.pop("specs"),
    "unknown field": lambda tensors, meta: meta["progress"].update(mood="good"),
    "weights of another shape": lambda tensors, meta: tensors.update(
        {"weights.transformer.wte.weight": torch.zeros(1, 2, 3)}
    ),
    "no weights": lambda tensors, meta: tensors.clear(),
    "more moments": lambda tensors, meta: tensors.update({"optimizer.999.exp_avg": torch.zeros(3)}),
}


def test_spoilt_checkpoints_are_named(interrupted):
    checkpoint = interrupted(MANY[:1])
    for name, said in refusals(checkpoint, SPOILT, lambda: runs.run(MANY[:1])).items():
        assert re.search(f"{checkpoint.name}.*delete it", said), name
    assert len(runs.run(MANY[:1])) == 1


def test_a_checkpoint_of_other_runs_under_this_name_is_named(interrupted):
    checkpoint = interrupted(MANY[:1])
    trainer = SupervisedTrainer([MANY[1]])
    checkpoint.rename(stores.stack_path(trainer.specs, checkpoint=True))
    with pytest.raises(RecordError, match=r"does not fit its runs .*; delete it"):
        stores.resume(trainer)


def test_a_store_that_cannot_be_written_is_named_before_training(tmp_path, nothing_shipped, monkeypatch, starts):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COT2_STORE", str(tmp_path / "file" / "store"))
    with pytest.raises(RecordError, match=r"file/store cannot be written to.*set COT2_STORE"):
        runs.run(SPECS)
    assert not starts


# Damaged files


@pytest.fixture
def stack_file(store, nothing_shipped):
    runs.run(SPECS[1:2])
    return next(store.glob("*.safetensors"))


def test_a_stack_file_that_is_cut_anywhere_is_named(stack_file):
    """In its length, its header, at its first tensor, at its last byte; then it is trained again."""
    whole = stack_file.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    for length in (0, 3, 8, 9, header // 2, header + 7, header + 8, header + 9, len(whole) - 200, len(whole) - 1):
        stack_file.write_bytes(whole[:length])
        for use in (lambda: runs.load(SPECS[1], "error"), lambda: runs.run(SPECS[1:2]), lambda: merge("x.y", SPECS)):
            with pytest.raises(RecordError, match=f"{stack_file.name} is truncated.*delete it"):
                use()
    stack_file.unlink()
    assert len(runs.run(SPECS[1:2])) == 1


def test_a_flipped_bit_of_a_finished_stack_is_noticed(stack_file):
    """In its length, its header, its results, its checksum, its tensors, its last byte."""
    whole = stack_file.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    results = [whole.index(name) + 12 for name in (b"curves", b"seconds", b"sha256")]
    for place, position in enumerate([0, 9, *results, 8 + header, *range(8 + header, len(whole), 19973), -1]):
        spoilt = bytearray(whole)
        spoilt[position] ^= 1 << place % 8
        stack_file.write_bytes(bytes(spoilt))
        for use in (lambda: runs.load(SPECS[1], "error"), lambda: runs.run(SPECS[1:2], "error")):
            with pytest.raises(RecordError, match=f"{stack_file.name}.*elete it"):
                use()
    stack_file.write_bytes(whole)
    assert len(runs.run(SPECS[1:2], "error")) == 1


def test_a_link_to_nothing_is_named(store, nothing_shipped):
    runs.run(SPECS)
    (store / "elsewhere.safetensors").symlink_to(store.parent / "gone.safetensors")
    for ask in (lambda: runs.run(SPECS, missing="error"), lambda: merge("tiny.quick", SPECS)):
        with pytest.raises(RecordError, match=r"elsewhere\.safetensors cannot be read \(No such file.*delete it"):
            ask()
    (store / "elsewhere.safetensors").unlink()
    assert len(runs.run(SPECS, missing="error")) == 3


def test_foreign_stack_files_are_named(store, nothing_shipped):
    from safetensors.torch import save_file

    store.mkdir()
    save_file({"x": torch.zeros(2)}, store / "foreign.safetensors")
    with pytest.raises(RecordError, match=r"foreign\.safetensors.*not written by cot2lib"):
        runs.run(SPECS, missing="error")
    stores.save_tensors(store / "foreign.safetensors", {}, {"format": 99})
    with pytest.raises(RecordError, match="format 99"):
        runs.run(SPECS, missing="error")
    for known in (1, 2):
        stores.save_tensors(store / "foreign.safetensors", {}, {"format": known, "specs": [{"kind": "Later"}]})
        with pytest.raises(RecordError, match=r"foreign\.safetensors.*'Later'"):
            runs.run(SPECS, missing="error")


FOREIGN = {
    "no specs": lambda tensors, meta: meta.pop("specs"),
    "specs that are none": lambda tensors, meta: meta.update(specs=3),
    "a spec without a recipe": lambda tensors, meta: meta.update(specs=[{"kind": "RunSpec"}]),
    "unknown field": lambda tensors, meta: meta["progress"].update(mood="good"),
    "no curves": lambda tensors, meta: meta["progress"].update(curves=[]),
    "no held-out counts": lambda tensors, meta: meta.update(held_out=[]),
}


def test_contents_that_cannot_be_are_named(stack_file):
    for name, said in refusals(stack_file, FOREIGN, lambda: runs.run(SPECS[1:2], "error")).items():
        assert re.search(stack_file.name + ".*(elete it|move the file away)", said) and "\n" not in said, name
