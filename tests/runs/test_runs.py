"""Rows, curves and models of runs: from the store, from what is shipped, or trained."""

import gc
import re
import shlex
import sys
import weakref

import pandas as pd
import pytest
import torch
from builders import SPECS, short

from cot2lib import cli, runs
from cot2lib.errors import RecordError
from cot2lib.kit import timing
from cot2lib.runs import lookup, records, store
from cot2lib.runs.train import plan
from cot2lib.specs.profiles import spec
from cot2lib.study import sweeps
from cot2lib.training.supervised import SupervisedTrainer

TIMED = ["seconds", "date"]


def ship(folder):
    """Ship the runs of the store, without weights."""
    records.ship("tiny.quick", store.tables(), {}, folder)


def test_run_gives_one_row_per_spec_in_order(kept):
    trained = [path.stat().st_mtime_ns for path in sorted(kept.glob("*"))]
    rows = runs.run(SPECS)
    assert rows["id"].tolist() == [s.id for s in SPECS]
    assert rows["method"].tolist() == ["CoT2", "discrete CoT", "CoT2"] and rows["seed"].tolist() == [43, 42, 42]
    assert rows["stacked"].tolist() == [2, 1, 2] and (rows["device"].str.startswith("cpu")).all()
    assert len(list(kept.glob("*.safetensors"))) == 2 and not list(kept.glob("*.checkpoint.safetensors"))
    assert trained == [path.stat().st_mtime_ns for path in sorted(kept.glob("*"))], "nothing was trained again"


def test_curves_and_rows_agree(kept):
    rows, curves = runs.run(SPECS), runs.curves(SPECS)
    assert len(curves) == 3 * len(SPECS)
    last = curves[curves["step"] == 60].set_index("id").loc[rows["id"]]
    assert last["accuracy"].tolist() == pytest.approx(rows["last"].tolist())
    assert curves.groupby("id")["accuracy"].max().loc[rows["id"]].tolist() == pytest.approx(rows["best"].tolist())
    assert (curves["epoch"] > 0).all() and curves["entropy_3"].notna().all()


def test_by_profile_leaves_out_what_is_not_recorded(kept, nothing_shipped):
    with pytest.raises(RecordError, match="no record of run"):
        runs.by_profile({"quick": SPECS, "paper": SPECS})
    requests = {"quick": [*SPECS, SPECS[0]], "paper": [short("cot2", 50)]}  # one twice, as lists of chapters have it
    retrained = runs.by_profile(requests, retrained="quick")
    ship(nothing_shipped)
    for rows, curves in (retrained, runs.by_profile(requests)):
        assert rows["id"].tolist() == [spec.id for spec in SPECS] and set(rows["profile"]) == {"quick"}
        assert set(curves["id"]) == set(rows["id"]) and len(curves) == 9


def test_run_reads_the_store_only_for_what_is_not_shipped(kept, nothing_shipped, monkeypatch):
    ship(nothing_shipped)
    monkeypatch.setattr(store, "tables", lambda: pytest.fail("the store was read"))
    assert len(runs.run(SPECS)) == 3 and len(runs.curves(SPECS)) == 9
    assert len(runs.by_profile({"quick": SPECS})[0]) == 3


def test_a_finished_stack_is_read_once(kept, monkeypatch):
    first = store.tables()
    monkeypatch.setattr(store, "load_meta", lambda path: pytest.fail("read again"))
    pd.testing.assert_frame_equal(first[0], store.tables()[0])


def test_run_ignores_shipped_records_under_retrain(kept, nothing_shipped, monkeypatch):
    ship(nothing_shipped)
    monkeypatch.setenv("COT2_STORE", str(kept / "other"))
    assert len(runs.run(SPECS[1:2], missing="error")) == 1
    with pytest.raises(RecordError):
        runs.run(SPECS[1:2], missing="error", retrain=True)
    assert len(runs.run(SPECS[1:2], retrain=True)) == 1


def test_load_gives_the_trained_models_as_they_are_asked_for(kept):
    for pair in (SPECS[::2], SPECS[::-2]):  # the two of a stack
        model = runs.load_stack(pair, missing="error")
        trainer = SupervisedTrainer(pair[:1])
        trainer.train()
        for mine, theirs in zip(model.parameters(), trainer.stack.parameters()):
            assert torch.allclose(mine[0], theirs[0], rtol=0, atol=1e-4)
    assert runs.load(short("discrete", 43)).runs == 1, "which was missing"


def test_load_stack_takes_models_of_one_shape(kept):
    """Weights of another training are none, however alike the two are."""
    for other in (short("cot2", 42, budget=2), short("cot2", 44, lr=1e-3)):
        with pytest.raises(RecordError, match="no trained weights of run"):
            runs.load_stack([SPECS[0], other], missing="error")


# What a missing record advises


@pytest.mark.parametrize("chapter", sweeps.CHAPTERS)
def test_absent_message_names_one_run(chapter):
    for wanted in sweeps.of_chapter(chapter, "quick")[::7]:
        _, _, named, _, profile, _, *conditions = shlex.split(lookup.absent_message([wanted]).split("`")[1])
        assert sweeps.where(sweeps.of_chapter(named, profile), conditions) == [wanted]


def command(ask):
    """The command that an error's sentence names, if it names one."""
    with pytest.raises(RecordError) as raised:
        ask()
    assert str(raised.value).count("\n") == 0
    _, *given = str(raised.value).split("`")[:2]
    return shlex.split(given[0])[1:] if given else None


def test_the_command_of_a_missing_record_helps(store, nothing_shipped, monkeypatch):
    """It is named where a chapter lists the run; it makes rows, and weights where rows alone are shipped."""
    monkeypatch.setattr(sweeps, "CHAPTERS", {"tiny": sweeps.Chapter((lambda profile: SPECS[:1],))})
    assert cli.main(command(lambda: runs.run(SPECS[:1], missing="error"))) == 0
    ship(nothing_shipped)
    for path in store.iterdir():
        path.unlink()
    assert len(runs.run(SPECS[:1], missing="error")) == 1
    ask = lambda: runs.load(SPECS[0], missing="error")
    weights = command(ask)
    for other in (
        lambda: runs.run(SPECS[:1], missing="error", retrain=True),
        lambda: runs.curves(SPECS[:1], retrain=True),
    ):
        assert command(other) == weights
    assert cli.main(weights) == 0 and ask() is not None
    unlisted = sweeps.small("quick", [99])[:1]
    assert command(lambda: runs.load_stack(unlisted, missing="error")) is None
    assert command(lambda: runs.run(unlisted, missing="error")) is None


# Stacks


def test_plan_stacks_runs_of_one_shape():
    many = [short("cot2", seed, lr=lr) for seed in range(20) for lr in (1e-3, 2e-3)] + [short("discrete", 1)]
    stacks = plan([*many, many[0]], {spec.id for spec in many}, torch.device("cpu"), (0, 1))
    assert sorted(len(stack) for stack in stacks) == [1, 12, 14, 14]
    assert {s.id for stack in stacks for s in stack} == {s.id for s in many}
    assert sum(len({s.recipe.lr for s in stack}) for stack in stacks) == 5, "learning rates keep together"


def test_a_stack_is_as_large_as_a_gpu_has_room_for(monkeypatch):
    many, gpu = [spec("cot2", "paper", seed=seed) for seed in range(90)], torch.device("cuda")
    for gib, sizes in ((80, [90]), (2, [45, 45])):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda gib=gib: (0, gib * 2**30))
        assert [len(stack) for stack in plan(many, {run.id for run in many}, gpu, (0, 1))] == sizes


def test_shards_share_the_stacks(kept, monkeypatch):
    """Each trains its own stacks, however far the other is; together they give what one process gives."""
    whole = runs.run(SPECS, "error").drop(columns=TIMED)
    monkeypatch.setenv("COT2_STORE", str(kept / "shared"))
    assert runs.run(SPECS, shard=(0, 2))["method"].tolist() == ["CoT2", "CoT2"]
    assert len(runs.run(SPECS, shard=(0, 2))) == 2, "the other shard's stack stays"
    pd.testing.assert_frame_equal(runs.run(SPECS, shard=(1, 2)).drop(columns=TIMED), whole)


def test_a_trained_stack_is_let_go(store, nothing_shipped, monkeypatch):
    """Without waiting for the garbage collector: on CUDA it holds the memory of its graphs.

    Building the first optimiser of a process imports parts of torch, and one of them keeps the frames it came from.
    """
    SupervisedTrainer(SPECS[:1])
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


# What is said while a stack trains


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
    interrupted(SPECS[:1])
    assert logged(SPECS[:1])[1].splitlines()[-1] == "CoT2 d=16 x1: step 20 of 60"


def test_a_log_gets_a_line_a_minute_and_a_notebook_the_summary_alone(store, nothing_shipped, logged, monkeypatch):
    monkeypatch.setattr(timing, "TOLD_SECONDS", 60)
    assert len(logged(SPECS[:1])[-1].splitlines()) == 3, "how much, a start and the end"
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    assert re.fullmatch(r"trained 1 runs in .* on cpu\n", logged(SPECS[1:2])[-1])
