import hashlib
import itertools
import json
import lzma
import os
import re
import shutil
import time

import pandas as pd
import pytest
import torch
from builders import SPECS, short

from cot2lib import runs
from cot2lib.errors import RecordError, SpecError
from cot2lib.kit.files import TEMPORARY, load_meta, write_atomic
from cot2lib.runs import finished, manifest, records
from cot2lib.runs import store as stores
from cot2lib.study import samples
from cot2lib.study.book import all_runs
from cot2lib.study.book.collect import collect
from cot2lib.training.supervised import SupervisedTrainer

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A store in which three runs are finished; each test gets a copy."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COT2_STORE", str(folder))
        runs.run(SPECS, retrain=True)
    return folder


@pytest.fixture
def store(store, trained):
    shutil.copytree(trained, store)
    return store


@pytest.fixture
def shipped(store, nothing_shipped, monkeypatch):
    """Three collected runs, the store empty."""
    monkeypatch.setitem(all_runs.SWEEPS, "tiny", lambda profile: SPECS)
    monkeypatch.setattr(all_runs, "ships_weights", lambda chapter, run: run == SPECS[0])
    collect("tiny", "quick", folder=nothing_shipped)
    monkeypatch.setenv("COT2_STORE", str(store / "empty"))
    return nothing_shipped


def test_collected_records_equal_the_store_to_the_bit(shipped, store, monkeypatch):
    rows, curves = runs.run(SPECS, "error"), runs.curves(SPECS)
    monkeypatch.setenv("COT2_STORE", str(store))
    pd.testing.assert_frame_equal(rows, runs.recorded(SPECS, retrain=True), check_exact=True, check_dtype=False)
    key = ["id", "step"]
    theirs = runs.curves(SPECS, retrain=True).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(curves.sort_values(key, ignore_index=True), theirs, check_exact=True)


def test_shipped_weights_load(shipped, store, monkeypatch):
    model = runs.load(SPECS[0], missing="error")
    monkeypatch.setenv("COT2_STORE", str(store))
    for mine, theirs in zip(model.parameters(), runs.load(SPECS[0]).parameters()):
        assert torch.equal(mine, theirs)
    monkeypatch.setenv("COT2_STORE", str(store / "empty"))
    with pytest.raises(RecordError, match="no trained weights of run"):
        runs.load(SPECS[1], missing="error")


def test_collecting_again_changes_nothing(shipped):
    before = {path.name: path.read_bytes() for path in shipped.iterdir()}
    collect("tiny", "quick", folder=shipped)
    assert before == {path.name: path.read_bytes() for path in shipped.iterdir()}


def test_collect_merges_other_folders(shipped, store, tmp_path, monkeypatch):
    """As from another machine: its folder of records joins what is here."""
    extra = short("cot2", 50)
    monkeypatch.setitem(all_runs.SWEEPS, "tiny", lambda profile: [*SPECS, extra])
    runs.run([extra])
    far = tmp_path / "far"
    collect("tiny", "quick", folder=far)
    monkeypatch.setenv("COT2_STORE", str(store / "nothing"))
    assert len(runs.recorded([*SPECS, extra])) == 3
    collect("tiny", "quick", sources=[far], folder=shipped)
    assert runs.recorded([*SPECS, extra])["seed"].tolist() == [43, 42, 42, 50]


@pytest.fixture
def trained_again(shipped, store, monkeypatch):
    """The shipped runs trained once more, with other results, into a store of their own."""
    monkeypatch.setenv("COT2_STORE", str(store / "again"))
    longer = [SupervisedTrainer([s]) for s in SPECS]
    for trainer in longer:
        trainer.train()
        with torch.no_grad():
            for parameter in trainer.stack.parameters():
                parameter.add_(1.0)
        trainer.progress.curves[-1]["loss"] = [7.0]
        stores.save_finished(trainer, {"device": "another", "threads": 1, "commit": "newer", "date": "2026-01-01"})
    return shipped


def _parts(spec):
    """Where a run's row, curve and weights come from: the commit, whether the loss is the newer one, a weight."""
    loss = runs.curves([spec])["loss"].iloc[-1]
    weight = runs.load(spec, missing="error").transformer.ln_f.weight.detach().mean().item()
    return runs.run([spec], "error")["commit"].iloc[0] == "newer", loss == 7.0, weight > 1.5


def test_rows_curves_and_weights_of_a_run_are_of_one_training(trained_again, capsys):
    assert _parts(SPECS[0]) == (False, False, False)
    collect("tiny", "quick", folder=trained_again)
    assert _parts(SPECS[0]) == (False, False, False), "what is shipped stays"
    assert "replaced" not in capsys.readouterr().out
    collect("tiny", "quick", folder=trained_again, replace=True)
    assert _parts(SPECS[0]) == (True, True, True)
    assert "3 runs replaced in the records of tiny.quick" in capsys.readouterr().out


def test_a_source_counts_whole_too(trained_again, store, tmp_path, monkeypatch):
    collect("tiny", "quick", folder=tmp_path / "far")
    monkeypatch.setenv("COT2_STORE", str(store / "nothing"))
    collect("tiny", "quick", sources=[tmp_path / "far"], folder=trained_again)
    assert _parts(SPECS[0]) == (False, False, False)
    collect("tiny", "quick", sources=[tmp_path / "far"], folder=trained_again, replace=True)
    assert _parts(SPECS[0]) == (True, True, True)


def test_weights_fall_back_to_the_store(trained_again, capsys, monkeypatch):
    assert runs.load(SPECS[0], retrain=True).transformer.ln_f.weight.mean() > 1.5, "as rows do under retrain"
    assert runs.load(SPECS[1], missing="error").transformer.ln_f.weight.mean() > 1.5, "these are not shipped"
    monkeypatch.setattr(all_runs, "ships_weights", lambda chapter, run: True)
    collect("tiny", "quick", folder=trained_again)
    assert "2 runs without weights where they were taken from" in capsys.readouterr().out
    assert SPECS[1].id not in load_meta(trained_again / "tiny.quick.weights.safetensors")["runs"]


def test_collect_says_what_it_leaves_out(shipped, store, monkeypatch, capsys):
    extra = [short("cot2", 50), short("cot2", 51, steps=40)]
    runs.run(extra)
    monkeypatch.setitem(all_runs.SWEEPS, "tiny", lambda profile: SPECS[:2])
    collect("tiny", "quick", folder=shipped)
    said = capsys.readouterr().out
    assert "1 runs dropped from the records: no longer in the sweep of tiny.quick" in said
    assert "1 runs left in the store: like runs of tiny.quick, but not in its sweep" in said
    assert len(records.shipped(shipped)[0]) == 2


def test_weights_that_ship_no_more_leave_no_file(shipped, monkeypatch):
    monkeypatch.setattr(all_runs, "ships_weights", lambda chapter, run: False)
    collect("tiny", "quick", folder=shipped)
    assert not (shipped / "tiny.quick.weights.safetensors").exists()


def test_sources_without_records_are_named(shipped, tmp_path):
    (tmp_path / "empty").mkdir()
    for source in (tmp_path / "typo", tmp_path / "empty"):
        with pytest.raises(RecordError, match=rf"{source} holds no manifest\.json and no finished stack; name"):
            collect("tiny", "quick", sources=[source], folder=shipped)


def _foreign(folder, name, content):
    """A folder of records whose checksums are right and whose contents are not."""
    listed = manifest.listed(folder) | {name: hashlib.sha256(content).hexdigest()}
    (folder / name).write_bytes(content)
    _write_manifest(folder, listed)


def _write_manifest(folder, listed):
    (folder / "manifest.json").write_text(json.dumps(listed))


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("tiny.quick.runs.csv", b"", "is not a table"),
        ("tiny.quick.runs.csv", b"a,b\n1,2\n", "is not a table of runs"),
        ("tiny.quick.curves.xz", b"no xz", "is not a table"),
        ("tiny.quick.curves.xz", lzma.compress(b"a,b\n1,2\n"), "is not a table"),
        ("tiny.quick.curves.xz", lzma.compress(b"{}\n"), "is not a table .*no packed table"),
        ("manifest.json", b"[1, 2]", "is not a list of checksums"),
        ("manifest.json", b"[" * 100_000, "is not valid JSON"),
    ],
)
def test_foreign_records_are_named(shipped, name, content, says):
    if name == "manifest.json":
        (shipped / name).write_bytes(content)
    else:
        _foreign(shipped, name, content)
    with pytest.raises(RecordError, match=f"{says}") as raised:
        records.shipped(shipped)
    assert str(shipped) in str(raised.value)


@pytest.mark.parametrize(
    "name", ["../kept.txt", "tiny.quick.x/../../../kept.txt", "tiny.quick.\\kept", "..", ".kept", ""]
)
def test_a_manifest_reaches_no_file_outside_its_folder(shipped, name):
    kept = shipped.parent / "kept.txt"
    kept.write_text("mine")
    _write_manifest(shipped, manifest.listed(shipped) | {name: "0"})
    with pytest.raises(RecordError, match=r"manifest\.json lists .*no plain file name"):
        collect("tiny", "quick", folder=shipped)
    assert kept.read_text() == "mine"
    with pytest.raises(RecordError, match="no plain file name"):
        records.ship_table("../kept", pd.DataFrame({"x": [1]}), shipped.parent / "empty")
    assert kept.read_text() == "mine"


def test_any_changed_byte_of_a_manifest_is_noticed(shipped):
    """A letter of a name too, without which a chapter's runs would be gone without a word."""
    path = shipped / "manifest.json"
    whole, known = path.read_bytes(), reads_as(shipped)
    path.write_text(json.dumps({"checksum": "0" * 64} | manifest.listed(shipped)))
    assert reads_as(shipped) == known, "older versions wrote a checksum of the manifest itself"
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
    for name in (
        "tiny.paper.runs.csv",
        "tiny.quick.curve.xz",
        "tiny.quick.x.csv.xz",
        "tiny.quick.more.safetensors",
        "tiny.quick.x.csv",
    ):
        (shipped / name).write_text("")
        with pytest.raises(
            RecordError, match=rf"{name} is not listed by the manifest\.json beside it; .* move the file"
        ):
            runs.recorded(SPECS)
        (shipped / name).rename(shipped.parent / name)
    (shipped / "manifest.json").unlink()
    with pytest.raises(RecordError, match=r"tiny\.quick\.curves\.xz is not listed"):
        runs.recorded(SPECS)


def test_a_reader_does_not_stumble_over_a_writer(shipped, monkeypatch):
    """Who has read the manifest and then finds a file that was written since."""
    listdir, table = os.listdir, pd.DataFrame({"x": [1]})

    def after_a_writer(folder):
        monkeypatch.setattr(os, "listdir", listdir)
        records.ship_table("tiny.quick.other", table, shipped)
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", after_a_writer)
    assert "tiny.quick.other.csv" in manifest.listed(shipped)


def test_weights_that_are_no_numbers_do_not_ship(shipped, store, monkeypatch):
    """A run may diverge; its row is a result, its weights are none."""
    monkeypatch.setenv("COT2_STORE", str(store / "diverged"))
    trainer = SupervisedTrainer(SPECS[:1])
    trainer.train()
    with torch.no_grad():
        trainer.stack.transformer.ln_f.bias[0, 3] = float("nan")
    stores.save_finished(trainer, {"device": "cpu", "threads": 1, "commit": "newer", "date": "2026-01-01"})
    assert len(runs.run(SPECS[:1], "error", retrain=True)) == 1
    for use in (
        lambda: collect("tiny", "quick", folder=shipped, replace=True),
        lambda: runs.load(SPECS[0], "error", retrain=True),
    ):
        with pytest.raises(RecordError, match=rf"run {SPECS[0].id} has weights that are no numbers"):
            use()


# Accuracies of a curve


def curve(correct_a, correct_b):
    return pd.DataFrame(
        {"step": range(10, 10 * len(correct_a) + 10, 10), "correct_a": correct_a, "correct_b": correct_b}
    )


def test_accuracies_by_hand():
    """Six inputs in one half, four in the other; half a is best at the second evaluation, half b at the third."""
    found = finished.accuracies(curve([1, 6, 2, 3], [0, 1, 4, 2]), 6, 4)
    assert found["inputs_a"] == 6 and found["inputs_b"] == 4
    assert found["last"] == 0.5 and found["best"] == 0.7 and found["best_step"] == 20
    assert found["curve_mean"] == pytest.approx((0.1 + 0.7 + 0.6 + 0.5) / 4)
    assert found["split_half"] == pytest.approx((1 + 2) / 10), "b where a is best, a where b is best"
    assert found["closing_mean"] == found["curve_mean"], "there are fewer than ten evaluations"


def test_closing_mean_is_of_the_last_ten():
    found = finished.accuracies(curve([9, 9, *range(10)], [0] * 12), 10, 0)
    assert found["closing_mean"] == pytest.approx(sum(range(10)) / 100)
    assert found["curve_mean"] == pytest.approx((18 + 45) / 120)


def test_hours_are_of_one_core_or_one_gpu(monkeypatch):
    """Threads multiply the hours of a CPU; those that drive a GPU do not."""
    made = {"seed": [42, 43], "seconds": [3600, 3600], "threads": [4, 8], "device": ["cpu (Some)", "NVIDIA H100"]}
    monkeypatch.setattr(samples.runs, "recorded", lambda specs: pd.DataFrame(made))
    assert samples.trained("cot2")("quick", (42, 43))["hours"].to_dict() == {42: 4.0, 43: 1.0}


def test_nothing_to_collect_is_named(store, nothing_shipped):
    with pytest.raises(RecordError, match=r"no finished run of csft\.paper is in"):
        collect("csft", "paper", folder=nothing_shipped)
    with pytest.raises(SpecError, match="chapter 'nowhere' has no runs"):
        collect("nowhere", "paper", folder=nothing_shipped)


PARTS = ("tiny.quick.runs.csv", "tiny.quick.curves.xz", "tiny.quick.weights.safetensors", "manifest.json")


@pytest.mark.parametrize("name", PARTS[:3])
def test_truncated_records_are_named(shipped, name):
    path = shipped / name
    path.write_bytes(path.read_bytes()[:-40])
    records._shipped.cache_clear()
    with pytest.raises(RecordError, match=f"{name} is truncated or changed.*git"):
        runs.load(SPECS[0], missing="error") if "weights" in name else runs.run(SPECS, "error")


def test_lost_record_and_broken_manifest_are_named(shipped):
    (shipped / "tiny.quick.runs.csv").unlink()
    records._shipped.cache_clear()
    with pytest.raises(RecordError, match=r"tiny\.quick\.runs\.csv is missing"):
        runs.run(SPECS, "error")
    (shipped / "manifest.json").write_text("{")
    with pytest.raises(RecordError, match=r"manifest\.json is not valid JSON"):
        runs.run(SPECS, "error")


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


def files(folder):
    """What lies in a folder but for the temporary files of the killed."""
    whole = [path for path in folder.iterdir() if not TEMPORARY.fullmatch(path.name)]
    return {path.name: path.read_bytes() for path in whole}


@pytest.fixture
def collects(store, nothing_shipped, monkeypatch, tmp_path):
    """A folder as it was before a collect and after it: one run more, weights of other runs."""

    def collected(folder, count, weighted):
        monkeypatch.setitem(all_runs.SWEEPS, "tiny", lambda profile: SPECS[:count])
        monkeypatch.setattr(all_runs, "ships_weights", lambda chapter, run: run in weighted)
        collect("tiny", "quick", folder=folder)
        return folder

    def make(before, after):
        old = collected(tmp_path / "old", 2, before)
        records.ship_table("tiny.quick.other", pd.DataFrame({"x": [1]}), old)
        shutil.copytree(old, tmp_path / "new")
        return old, collected(tmp_path / "new", 3, after)

    return make


@pytest.mark.parametrize("before, after", [(SPECS[:1], SPECS[::2]), (SPECS[:1], []), ([], SPECS[2:])])
@pytest.mark.parametrize("replace", [False, True])
def test_a_collect_killed_anywhere_leaves_old_or_new_records(collects, tmp_path, monkeypatch, before, after, replace):
    old, new = collects(before, after)
    known, seen = [reads_as(old), reads_as(new)], []
    assert known[0] != known[1]
    for count in range(100):
        folder = tmp_path / f"killed {count}"
        shutil.copytree(old, folder)
        with monkeypatch.context() as patched:
            kill_at(patched, count)
            try:
                collect("tiny", "quick", folder=folder)
                break
            except Killed:
                pass
        seen.append(known.index(reads_as(folder)))
        collect("tiny", "quick", folder=folder, replace=replace)
        assert files(folder) == files(new), "the next collect leaves nothing behind"
    assert seen == sorted(seen) and set(seen) == {0, 1} and len(seen) > 6, seen


def test_another_chapters_collect_clears_up_too(collects, tmp_path, monkeypatch):
    old, _ = collects(SPECS[:1], [])
    with monkeypatch.context() as patched, pytest.raises(Killed):
        kill_at(patched, 4)
        collect("tiny", "quick", folder=old)
    assert any(path.name.endswith(".staged") for path in old.iterdir())
    records.ship_table("tiny.quick.other", pd.DataFrame({"x": [1]}), old)
    assert not any(path.name.endswith(".staged") for path in old.iterdir())


def test_damaged_records_stop_a_collect(collects):
    """Git has them whole; a collect that went on without them would lose runs."""
    old, new = collects(SPECS[:1], SPECS[:2])
    shutil.copy(new / PARTS[1], old / PARTS[1])
    damaged = files(old)
    for replace in (False, True):
        with pytest.raises(RecordError, match=r"curves\.xz is truncated or changed.*put it back from git"):
            collect("tiny", "quick", folder=old, replace=replace)
    assert files(old) == damaged


def test_of_a_run_that_two_chapters_ship_there_is_one_row(collects, monkeypatch):
    old, _ = collects([], [])
    monkeypatch.setitem(all_runs.SWEEPS, "other", lambda profile: SPECS)
    collect("other", "quick", folder=old)
    assert len(records.shipped(old)[0]) == 3


def test_files_of_killed_writers_are_removed(tmp_path):
    """By the next writer in the folder, an hour later; what others are writing, and what is not ours, stays."""
    names = [
        ".ab12.safetensors.k3j_x9qa",
        ".tiny.quick.runs.csv.abcdefgh",
        ".manifest.json.abcdefgh",
        ".ours.settings",
    ]
    names += ["tiny.csv.abcdefgh", ".tiny.csv.short"]
    for age in (3500, 3700):
        for name in names:
            (tmp_path / name).write_text("half")
            os.utime(tmp_path / name, (time.time() - age,) * 2)
        write_atomic(tmp_path / "new.csv", lambda path: path.write_text("whole"))
        left = {path.name for path in tmp_path.iterdir()} - {"new.csv"}
        assert left == set(names if age < 3600 else names[3:])


def test_the_killed_leave_files_of_the_pattern_that_is_cleared(tmp_path, monkeypatch):
    for name in ("a.checkpoint.safetensors", "b.c.curves.xz", ".b.runs.csv.staged", "manifest.json"):
        with monkeypatch.context() as patched, pytest.raises(Killed):
            kill_at(patched, 0)
            write_atomic(tmp_path / name, lambda path: path.write_text("half"))
        (left,) = tmp_path.iterdir()
        assert TEMPORARY.fullmatch(left.name)
        left.unlink()
