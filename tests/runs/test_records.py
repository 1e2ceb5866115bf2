import itertools
import os
import re
import shutil
import time

import pandas as pd
import pytest
import torch
from builders import SPECS

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.kit.files import load_meta, write_atomic
from cot2lib.runs import records
from cot2lib.runs import store as stores
from cot2lib.study import frame, sweeps
from cot2lib.study.measured import collect
from cot2lib.training.supervised import SupervisedTrainer

ROWS, CURVES, WEIGHTS = (f"tiny.quick.{part}" for part in records.PARTS)


@pytest.fixture
def shipped(kept, nothing_shipped, monkeypatch):
    """Three collected runs, of which one has its weights; the store is empty."""
    monkeypatch.setitem(sweeps.CHAPTERS, "tiny", sweeps.Chapter((lambda profile: SPECS,)))
    monkeypatch.setattr(sweeps, "ships_weights", lambda chapter, run: run == SPECS[0])
    collect("tiny", "quick", folder=nothing_shipped)
    monkeypatch.setenv("COT2_STORE", str(kept / "empty"))
    return nothing_shipped


def test_collected_records_equal_the_store_to_the_bit(shipped, kept, monkeypatch):
    rows, curves, model = runs.run(SPECS, "error"), runs.curves(SPECS), runs.load(SPECS[0], "error")
    with pytest.raises(RecordError, match="no trained weights of run"):
        runs.load(SPECS[1], "error")
    monkeypatch.setenv("COT2_STORE", str(kept))
    pd.testing.assert_frame_equal(rows, runs.recorded(SPECS, retrain=True), check_exact=True, check_dtype=False)
    key = ["id", "step"]
    theirs = runs.curves(SPECS, retrain=True).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(curves.sort_values(key, ignore_index=True), theirs, check_exact=True)
    for mine, theirs in zip(model.parameters(), runs.load(SPECS[0], retrain=True).parameters()):
        assert torch.equal(mine, theirs)


@pytest.fixture
def trained_again(shipped, trained, monkeypatch):
    """The shipped runs trained once more, with other results, are in the store."""
    monkeypatch.setenv("COT2_STORE", str(trained[1]))
    return shipped


def training_of(spec):
    """Where a run's row, curve and weights come from: the commit, whether the loss is the newer one, a weight."""
    loss = runs.curves([spec])["loss"].iloc[-1]
    weight = runs.load(spec, missing="error").transformer.ln_f.weight.detach().mean().item()
    return runs.run([spec], "error")["commit"].iloc[0] == "newer", loss == 7.0, weight > 1.5


@pytest.mark.parametrize("source", ["the local store", "records", "another store"])
def test_rows_curves_and_weights_of_a_run_are_of_one_training(
    trained_again, trained, tmp_path, monkeypatch, capsys, source
):
    collect("tiny", "quick", folder=tmp_path / "far")
    sources = {"the local store": [], "records": [tmp_path / "far"], "another store": [trained[1]]}[source]
    if sources:
        monkeypatch.setenv("COT2_STORE", str(tmp_path / "nothing"))
    collect("tiny", "quick", sources=sources, folder=trained_again)
    assert training_of(SPECS[0]) == (False, False, False), "what is shipped stays"
    assert "3 other results left out of runs that are shipped" in capsys.readouterr().out
    collect("tiny", "quick", sources=sources, folder=trained_again, replace=True)
    assert training_of(SPECS[0]) == (True, True, True)


def test_of_two_trainings_that_nobody_ships_none_is_kept_out(trained_again, kept, tmp_path, capsys):
    capsys.readouterr()
    collect("tiny", "quick", sources=[kept], folder=tmp_path / "new")
    assert "left out" not in capsys.readouterr().out


def test_weights_fall_back_to_the_store(trained_again, capsys, monkeypatch):
    assert runs.load(SPECS[0], retrain=True).transformer.ln_f.weight.mean() > 1.5, "as rows do under retrain"
    assert runs.load(SPECS[1], missing="error").transformer.ln_f.weight.mean() > 1.5, "these are not shipped"
    monkeypatch.setattr(sweeps, "ships_weights", lambda chapter, run: True)
    collect("tiny", "quick", folder=trained_again)
    assert "2 runs without weights where they come from" in capsys.readouterr().out
    assert SPECS[1].id not in load_meta(trained_again / WEIGHTS)["runs"]


def test_collect_says_what_goes(shipped, monkeypatch, capsys):
    monkeypatch.setitem(sweeps.CHAPTERS, "tiny", sweeps.Chapter((lambda profile: SPECS[:2],)))
    monkeypatch.setattr(sweeps, "ships_weights", lambda chapter, run: False)
    collect("tiny", "quick", folder=shipped)
    assert "1 runs dropped from the records: no longer in the sweep of tiny.quick" in capsys.readouterr().out
    assert len(records.shipped(shipped)[0]) == 2 and not (shipped / WEIGHTS).exists()


FOREIGN = [  # what a file holds, and what then is said
    *((name, b"whole but for its end", f"{name} is truncated or changed") for name in (ROWS, CURVES, WEIGHTS)),
    *((name, None, f"{name} is missing; put it back from git") for name in (ROWS, CURVES, WEIGHTS)),
    ("manifest.json", b"[1, 2]", "is not a list of checksums"),
    ("manifest.json", b"{", "is not a list of checksums"),
]


@pytest.mark.parametrize("name, content, says", FOREIGN)
def test_shipped_names_a_foreign_file(shipped, name, content, says):
    (shipped / name).unlink() if content is None else (shipped / name).write_bytes(content)
    with pytest.raises(RecordError, match=re.escape(says)) as raised:
        runs.load(SPECS[0], "error") if name == WEIGHTS else runs.curves(SPECS)
    assert str(shipped) in str(raised.value)


def test_any_changed_byte_of_a_manifest_is_noticed(shipped):
    """A letter of a name too, without which a chapter's runs would be gone without a word."""
    path = shipped / "manifest.json"
    whole, known = path.read_bytes(), reads_as(shipped)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert reads_as(shipped) == known, "a space is none of its contents"
            assert whole[place : place + 1].isspace()
        except RecordError as error:
            assert re.search(r"put .* back|was not written by|collect", str(error)) and "\n" not in str(error)


def test_a_record_that_the_manifest_leaves_out_is_named(shipped):
    (shipped / "ledger.csv").write_text("a reader's own table")
    assert len(runs.recorded(SPECS)) == 3
    for ending in ("runs.csv", "curve.xz", "x.csv.xz", "more.safetensors", "x.csv"):
        path = shipped / f"tiny.paper.{ending}"
        path.write_text("")
        with pytest.raises(RecordError, match=rf"{path.name} is not listed by the manifest\.json .* move the file"):
            runs.recorded(SPECS)
        path.unlink()
    (shipped / "manifest.json").unlink()
    with pytest.raises(RecordError, match=r"tiny\.quick\.curves\.xz is not listed"):
        runs.recorded(SPECS)


def test_weights_that_are_no_numbers_do_not_ship(shipped, kept, monkeypatch):
    """A run may diverge; its row is a result, its weights are none."""
    monkeypatch.setenv("COT2_STORE", str(kept / "diverged"))
    trainer = SupervisedTrainer(SPECS[:1])
    trainer.train()
    with torch.no_grad():
        trainer.stack.transformer.ln_f.bias[0, 3] = float("nan")
    made = {"device": "cpu", "threads": 1, "commit": "newer", "date": "2026-01-01"}
    stores.Entry([SPECS[0].id]).finish(*stores.results(trainer, made))
    assert len(runs.run(SPECS[:1], "error", retrain=True)) == 1
    for use in (
        lambda: collect("tiny", "quick", folder=shipped, replace=True),
        lambda: runs.load(SPECS[0], "error", retrain=True),
    ):
        with pytest.raises(RecordError, match=rf"run {SPECS[0].id} has weights that are no numbers"):
            use()


# Accuracies of a curve


def curve(correct_a, correct_b):
    steps = range(10, 10 * len(correct_a) + 10, 10)
    return pd.DataFrame({"step": steps, "correct_a": correct_a, "correct_b": correct_b})


def test_accuracies_by_hand():
    """Six inputs in one half, four in the other; half a is best at the second evaluation, half b at the third."""
    found = stores.accuracies(curve([1, 6, 2, 3], [0, 1, 4, 2]), 6, 4)
    assert found["inputs_a"] == 6 and found["inputs_b"] == 4
    assert found["last"] == 0.5 and found["best"] == 0.7 and found["best_step"] == 20
    assert found["curve_mean"] == pytest.approx((0.1 + 0.7 + 0.6 + 0.5) / 4)
    assert found["split_half"] == pytest.approx((1 + 2) / 10), "b where a is best, a where b is best"
    assert found["closing_mean"] == found["curve_mean"], "there are fewer than ten evaluations"


def test_hours_are_of_one_core_or_one_gpu():
    """Threads multiply the hours of a CPU; those that drive a GPU do not."""
    made = {"seconds": [3600, 3600], "threads": [4, 8], "device": ["cpu (Some)", "NVIDIA H100"]}
    assert frame.hours(pd.DataFrame(made)).tolist() == [4.0, 1.0]


# A killed collect


class Killed(BaseException):
    """What a kill looks like from inside: from one call on, nothing happens on disk any more."""


def kill_at(monkeypatch, count):
    """Let `count` replacements and removals of files happen and fail all later ones."""
    done = itertools.count()

    def guarded(function):
        def call(*args, **options):
            if next(done) >= count:
                raise Killed
            return function(*args, **options)

        return call

    for name in ("replace", "unlink"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))


def reads_as(folder):
    """Everything a reader gets from a folder."""
    rows, curves = records.shipped(folder)
    weights = {run.id: records.shipped_weights(run.id, folder) for run in SPECS}
    held = {run_id: float(part["transformer.ln_f.bias"].sum()) for run_id, part in weights.items() if part}
    return rows.to_csv(), curves.to_csv(), str(held)


@pytest.fixture
def collects(kept, monkeypatch, tmp_path):
    """A folder as it was before a collect and after it: one run more, weights of other runs."""

    def collected(folder, count, weighted):
        monkeypatch.setitem(sweeps.CHAPTERS, "tiny", sweeps.Chapter((lambda profile: SPECS[:count],)))
        monkeypatch.setattr(sweeps, "ships_weights", lambda chapter, run: run in weighted)
        collect("tiny", "quick", folder=folder)
        return folder

    def make(before, after):
        old = collected(tmp_path / "old", 2, before)
        records.ship_table("tiny.quick.other", pd.DataFrame({"x": [1]}), old)
        shutil.copytree(old, tmp_path / "new")
        return old, collected(tmp_path / "new", 3, after)

    return make


def test_a_collect_killed_anywhere_loses_nothing_unseen(collects, tmp_path, monkeypatch):
    """Readers get the old records, the new ones, or the name of the file that is neither."""
    old, new = collects(SPECS[:1], SPECS[::2])
    known, seen = [reads_as(old), reads_as(new)], []
    for count in range(20):
        folder = tmp_path / f"killed {count}"
        shutil.copytree(old, folder)
        with monkeypatch.context() as patched:
            kill_at(patched, count)
            try:
                collect("tiny", "quick", folder=folder)
                break
            except Killed:
                records._rows.cache_clear(), records._curves.cache_clear(), records._weighted.cache_clear()
        try:
            seen.append(known.index(reads_as(folder)))
        except RecordError as error:
            assert re.search(r"(truncated or changed|not listed by).*back from git", str(error))
            seen.append("named")
    assert seen == sorted(seen, key=[0, "named", 1].index) and len(set(seen)) == 3, seen


def test_damaged_records_stop_a_collect(collects):
    """Git has them whole; a collect that went on without them would lose runs."""
    old, new = collects(SPECS[:1], SPECS[:2])
    shutil.copy(new / CURVES, old / CURVES)
    damaged = {path: path.read_bytes() for path in old.iterdir()}
    for replace in (False, True):
        with pytest.raises(RecordError, match=r"curves\.xz is truncated or changed.*put it back from git"):
            collect("tiny", "quick", folder=old, replace=replace)
    assert {path: path.read_bytes() for path in old.iterdir()} == damaged


def test_of_a_run_that_two_chapters_ship_there_is_one_row(collects, monkeypatch):
    old, _ = collects([], [])
    monkeypatch.setitem(sweeps.CHAPTERS, "other", sweeps.Chapter((lambda profile: SPECS,)))
    collect("other", "quick", folder=old)
    assert len(records.shipped(old)[0]) == 3


def test_files_of_killed_writers_are_removed(tmp_path, monkeypatch):
    """By the next writer in the folder, an hour later; what others are writing, and what is not ours, stays."""
    for name in ("a.checkpoint.safetensors", "b.c.curves.xz", ".b.runs.csv", "manifest.json"):
        with monkeypatch.context() as patched, pytest.raises(Killed):
            kill_at(patched, 0)
            write_atomic(tmp_path / name, lambda path: path.write_text("half"))
    ours, others = {path.name for path in tmp_path.iterdir()}, {".ours.settings", "tiny.csv.part"}
    for name in others:
        (tmp_path / name).write_text("half")
    for age in (3500, 3700):
        for name in ours | others:
            os.utime(tmp_path / name, (time.time() - age,) * 2)
        write_atomic(tmp_path / "new.csv", lambda path: path.write_text("whole"))
        left = {path.name for path in tmp_path.iterdir()} - {"new.csv"}
        assert left == (others if age > 3600 else ours | others) and len(ours) == 4
