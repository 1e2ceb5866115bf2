
import pandas as pd
import pytest
import torch
from test_runs import SPECS, short

from cot2lib import records, runs, sweeps
from cot2lib.collect import collect
from cot2lib.errors import RecordError, SpecError


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
