import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

from cot2lib import records, runs, sweeps
from cot2lib import store as stores
from cot2lib.collect import collect
from cot2lib.errors import RecordError, SpecError
from cot2lib.profiles import spec
from cot2lib.specs import from_data
from cot2lib.supervised import StackTrainer
from cot2lib.tasks import MNNS

TASK = MNNS(1, 5, 3)
RECIPE = dict(steps=60, evaluate_every=20, batch=16)


def short(method="cot2", seed=42, **options):
    return spec(method, "quick", task=TASK, d_model=16, seed=seed, **RECIPE | options)


SPECS = [short("cot2", 43), short("discrete", 42), short("cot2", 42)]
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
    rows, curves = runs.by_profile({"quick": SPECS, "paper": [SPECS[2]]})
    assert rows["id"].tolist() == [SPECS[0].id, SPECS[1].id] and set(rows["profile"]) == {"quick"}
    assert set(curves["id"]) == {SPECS[0].id, SPECS[1].id} and len(curves) == 6


def test_load_gives_the_trained_model(store, nothing_shipped):
    runs.run(SPECS)
    model = runs.load(SPECS[0], missing="error")
    trainer = StackTrainer([SPECS[0]])
    trainer.train()
    for mine, theirs in zip(model.parameters(), trainer.stack.parameters()):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-4)


def test_load_trains_what_is_missing(store, nothing_shipped):
    assert runs.load(SPECS[1]).runs == 1
    with pytest.raises(RecordError, match="no record of run"):
        runs.load(SPECS[0], missing="error")


def test_missing_record_is_named(store, nothing_shipped):
    with pytest.raises(RecordError, match=rf"{SPECS[0].id} \(CoT2, d=16, seed 43\) and 2 more.*cot2 run"):
        runs.run(SPECS, missing="error")
    with pytest.raises(RecordError, match="no record"):
        runs.curves(SPECS)
    with pytest.raises(SpecError, match="missing='maybe'"):
        runs.run(SPECS, missing="maybe")


def test_bad_budget_is_refused_before_training(store, nothing_shipped):
    with pytest.raises(SpecError, match="budget B=9"):
        runs.run([short("cot2", budget=9)])
    assert not store.exists()


def test_plan_stacks_runs_of_one_shape():
    device = torch.device("cpu")
    many = [short("cot2", seed, lr=lr) for seed in range(20) for lr in (1e-3, 2e-3)] + [short("discrete", 1)]
    stacks = runs.plan([*many, many[0]], device)
    assert sorted(len(stack) for stack in stacks) == [1, 12, 14, 14]
    assert {s.id for stack in stacks for s in stack} == {s.id for s in many}
    assert sum(len({s.recipe.lr for s in stack}) for stack in stacks) == 5, "learning rates keep together"


def test_shards_share_the_stacks(store, nothing_shipped):
    first = runs.run(SPECS, shard=(0, 2))
    assert first["method"].tolist() == ["CoT2", "CoT2"]
    assert len(runs.run(SPECS, shard=(1, 2))) == 3
    pd.testing.assert_frame_equal(runs.run(SPECS, "error"), runs.run(SPECS, "error"))


def test_retrain_ignores_shipped_records(store, nothing_shipped, monkeypatch):
    runs.run(SPECS)
    records.ship("tiny.quick", records.stored(), {}, nothing_shipped)
    monkeypatch.setenv("COT2_STORE", str(store / "other"))
    assert len(runs.run(SPECS, missing="error")) == 3
    with pytest.raises(RecordError):
        runs.run(SPECS, missing="error", retrain=True)
    assert len(runs.run(SPECS, retrain=True)) == 3


def test_forecast_and_announcement(store, nothing_shipped, capsys, monkeypatch):
    monkeypatch.setattr(runs, "forecast", lambda stacks, device: 7200.0)
    runs.run(SPECS[:1])
    assert "training 1 runs in 1 stacks on cpu: about 2.0 h" in capsys.readouterr().out


# A killed sweep

KILLED = """
import torch
from cot2lib import runs
from cot2lib.profiles import spec
from cot2lib.tasks import MNNS
torch.set_num_threads(1)
runs.CHECKPOINT_SECONDS = 0
recipe = dict(steps=1500, evaluate_every=100, batch=16, dropout=0.1)
specs = [spec("cot2", "quick", task=MNNS(1, 5, 3), d_model=16, seed=s, **recipe) for s in (42, 43)]
runs.run(specs, device="cpu").drop(columns=["seconds", "date"]).to_json(TABLE)
runs.curves(specs).to_json(CURVES)
"""


def _sweep(folder: Path) -> subprocess.Popen:
    code = KILLED.replace("TABLE", repr(str(folder / "rows"))).replace("CURVES", repr(str(folder / "curves")))
    return subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"COT2_STORE": str(folder / "store"), "COT2_COMMIT": "test"}
    )


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
    assert 0 < stores.load_meta(checkpoint)["progress"]["step"] < 1500, "it was killed on the way"
    assert not (broken / "rows").exists()
    assert _sweep(broken).wait() == 0
    for name in ("rows", "curves"):
        assert json.loads((whole / name).read_text()) == json.loads((broken / name).read_text())


# Damaged files


def test_truncated_stack_file_is_named(store, nothing_shipped):
    runs.run(SPECS)
    path = sorted(store.glob("*.safetensors"))[0]
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RecordError, match=f"{path.name} is truncated.*delete it"):
        runs.run(SPECS)
    path.unlink()
    assert len(runs.run(SPECS)) == 3, "the other stack is untouched, this one is trained again"


def test_foreign_stack_files_are_named(store, nothing_shipped):
    from safetensors.torch import save_file

    store.mkdir()
    save_file({"x": torch.zeros(2)}, store / "foreign.safetensors")
    with pytest.raises(RecordError, match=r"foreign\.safetensors.*not written by cot2lib"):
        runs.run(SPECS, missing="error")
    stores.save_tensors(store / "foreign.safetensors", {}, {"format": 99})
    with pytest.raises(RecordError, match="format 99"):
        runs.run(SPECS, missing="error")
    stores.save_tensors(store / "foreign.safetensors", {}, {"format": 1, "specs": [{"kind": "Later"}]})
    with pytest.raises(RecordError, match=r"foreign\.safetensors.*'Later'"):
        runs.run(SPECS, missing="error")


@pytest.fixture
def shipped(store, nothing_shipped, monkeypatch):
    """Three collected runs, the store empty."""
    monkeypatch.setitem(sweeps.SWEEPS, "tiny", lambda profile: SPECS)
    monkeypatch.setattr(sweeps, "ships_weights", lambda chapter, run: run == SPECS[0])
    runs.run(SPECS)
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
    with pytest.raises(RecordError, match="weights are not shipped"):
        runs.load(SPECS[1], missing="error")


def test_collecting_again_changes_nothing(shipped):
    before = {path.name: path.read_bytes() for path in shipped.iterdir()}
    collect("tiny", "quick", folder=shipped)
    assert before == {path.name: path.read_bytes() for path in shipped.iterdir()}


def test_collect_merges_other_folders(shipped, store, tmp_path, monkeypatch):
    """As from another machine: its folder of records joins what is here."""
    extra = short("cot2", 50)
    monkeypatch.setitem(sweeps.SWEEPS, "tiny", lambda profile: [*SPECS, extra])
    runs.run([extra])
    far = tmp_path / "far"
    collect("tiny", "quick", folder=far)
    monkeypatch.setenv("COT2_STORE", str(store / "nothing"))
    assert len(runs.recorded([*SPECS, extra])) == 3
    collect("tiny", "quick", sources=[far], folder=shipped)
    assert runs.recorded([*SPECS, extra])["seed"].tolist() == [43, 42, 42, 50]


def test_nothing_to_collect_is_named(store, nothing_shipped):
    with pytest.raises(RecordError, match="no finished run of csft under paper"):
        collect("csft", "paper", folder=nothing_shipped)
    with pytest.raises(SpecError, match="chapter 'nowhere' has no runs"):
        collect("nowhere", "paper", folder=nothing_shipped)


@pytest.mark.parametrize("name", ["tiny.quick.runs.csv", "tiny.quick.curves.csv.gz"])
def test_truncated_record_is_named(shipped, name):
    path = shipped / name
    path.write_bytes(path.read_bytes()[:-40])
    records._shipped.cache_clear()
    with pytest.raises(RecordError, match=f"{name} is truncated or changed.*git"):
        runs.run(SPECS, "error")


def test_truncated_weights_are_named(shipped):
    path = shipped / "tiny.quick.weights.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RecordError, match=r"weights\.safetensors is truncated or changed"):
        runs.load(SPECS[0], missing="error")


def test_lost_record_and_broken_manifest_are_named(shipped):
    (shipped / "tiny.quick.runs.csv").unlink()
    records._shipped.cache_clear()
    with pytest.raises(RecordError, match=r"tiny\.quick\.runs\.csv is missing"):
        runs.run(SPECS, "error")
    (shipped / "manifest.json").write_text("{")
    with pytest.raises(RecordError, match=r"manifest\.json is not valid JSON"):
        runs.run(SPECS, "error")


def test_record_of_another_version_is_named(shipped):
    path = shipped / "tiny.quick.runs.csv"
    rows = pd.read_csv(path, dtype=str)
    rows.loc[0, "spec"] = rows.loc[1, "spec"]
    curves = records.shipped(shipped)[1]
    records.ship("tiny.quick", (rows, curves), {}, shipped)
    with pytest.raises(RecordError, match=f"run {SPECS[0].id} was made by another version"):
        records.shipped(shipped)


# The records that ship


def kinds():
    """The first shipped run of every profile and method."""
    rows = records.shipped()[0]
    if rows.empty:
        return []
    specs = [from_data(json.loads(text)) for text in rows["spec"]]
    first = {}
    for run in specs:
        first.setdefault((run.recipe.batch, run.method), run)
    return list(first.values())


@pytest.mark.parametrize("run", kinds(), ids=lambda run: f"{run.method}-batch{run.recipe.batch}")
def test_shipped_records_replay(run):
    """The first twenty losses, trained again: a mismatch means the code has drifted from its records."""
    rows = records.shipped()[0].set_index("id")
    trainer = StackTrainer([run])
    trainer.advance(20)
    expected = torch.tensor(records.first_losses(rows.loc[run.id]))
    assert (trainer.losses[0, :20].double() - expected).abs().max() < 1e-3


def test_records_stay_small():
    files = list(Path(records.paths.RECORDS).iterdir())
    assert sum(path.stat().st_size for path in files) < 15 * 2**20
