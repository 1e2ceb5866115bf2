"""The chapter `speed`: figures, tables and sentences from the benchmarks' record."""

import numpy as np
import pandas as pd
import pytest

from cot2lib.errors import RecordError, SpecError
from cot2lib.study.frame import at
from cot2lib.study.speed import draw, record, training
from cot2lib.study.speed.record import GROWS, OWN, REWARD, STEPS

NONE = np.nan
ROWS = pd.DataFrame(
    [
        (STEPS, "Hugging Face loop", 100.0, 1.0, 4.0, 60.0, 90.0),
        (STEPS, "stack of 1", 110.0, 1.1, 4.4, 55.0, 90.0),
        (STEPS, "stack of 16", 500.0, 5.0, 20.0, 12.0, 90.0),
        (STEPS, "stack of 16, compiled", 700.0, 7.0, 28.0, 8.6, 90.0),
        (STEPS, "fused, 1 runs", 1500.0, 15.0, 60.0, 4.0, 90.0),
        (GROWS, "main", 1500.0, 3.0, 60.0, NONE, 90.0),
        (GROWS, "d = 16", 3000.0, 4.0, 30.0, NONE, 90.0),
        (GROWS, "batch 64", 400.0, 2.5, 65.0, NONE, 90.0),
        (GROWS, "d = 64", 400.0, 2.0, 75.0, NONE, 90.0),
        (GROWS, "graphs, pairs", 60.0, 3.0, 40.0, NONE, 90.0),
        (GROWS, "graphs, one head", 90.0, 3.0, 50.0, NONE, 90.0),
        (GROWS, "graphs, no dropout", 70.0, 3.0, 45.0, NONE, 90.0),
        (REWARD, "Hugging Face loop", 1000.0, 1.0, 4.0, NONE, 90.0),
        (REWARD, "stack of 16", 5000.0, 5.0, 20.0, NONE, 90.0),
    ],
    columns=record.COLUMNS,
).pipe(record.with_way)


def test_the_shipped_record_has_every_benchmark():
    rows = record.shipped()
    assert {*record.COLUMNS, "way"} <= set(rows) and set(rows["what"]) == {STEPS, OWN, GROWS, REWARD}
    assert (rows[["rate", "times", "share"]] > 0).any().all() and rows["sgemm"].nunique() == 1


def test_ways_are_told_by_a_column():
    assert ROWS["way"].value_counts().to_dict() == {"others": 9, "stack": 4, "fused": 1}
    with pytest.raises(RecordError, match="no speed is recorded; `cot2 collect speed`"):
        record.with_way(None)


def test_ladders_name_every_way_and_how_many_times_the_loop():
    shown = draw.ladders(at(ROWS, what=[STEPS, REWARD]))
    above, below = shown.figure.axes
    names = [label.get_text() for label in above.get_yticklabels()]
    assert names[0] == "Hugging Face loop" and names[-1] == "fused, 1 runs" and above.yaxis_inverted()
    assert [text.get_text() for text in above.texts] == ["", "1.1 x", "5.0 x", "7.0 x", "15.0 x"]
    assert sorted(float(x) for dots in below.collections for x in dots.get_offsets()[:, 0]) == [1000.0, 5000.0]
    assert sorted(shown.numbers["rate"]) == sorted(at(ROWS, what=[STEPS, REWARD])["rate"])


def test_growth_draws_lead_and_share():
    left, right = draw.growth(ROWS).figure.axes
    assert left.collections[0].get_offsets()[:, 0].tolist() == [3.0, 4.0, 2.5, 2.0, 3.0, 3.0, 3.0]
    assert right.collections[0].get_offsets()[:, 0].tolist() == [60.0, 30.0, 65.0, 75.0, 40.0, 50.0, 45.0]


def test_tables_leave_out_what_was_not_measured():
    table = draw.table(at(ROWS, what=GROWS).drop(columns="what"), variant="model", times="times the stack")
    assert list(table) == ["model", "a second", "times the stack", "share of sgemm (%)"]
    assert "minutes of a paper run" in draw.table(at(ROWS, what=STEPS)) and table["a second"].dtype == int


def test_the_summary_is_of_the_fastest_way_the_loop_and_the_best_stacks():
    said = draw.summary(ROWS).iloc[0]
    assert (said["variant"], said["rate"], said["minutes"]) == ("fused, 1 runs", 1500, 4)
    assert (said["loop_minutes"], said["loop_share"], said["eager"], said["compiled"]) == (60, 4, 5, 7)
    assert said["mflop"] == pytest.approx(36)


def test_a_record_without_every_way_is_refused(monkeypatch):
    monkeypatch.setattr(training, "left_out", lambda needed: ["jax is not installed."])
    with pytest.raises(SpecError, match=r"every way to train\. jax is not installed"):
        record.measure("quick")


def test_a_record_has_the_columns_that_ship(monkeypatch):
    part = ROWS.drop(columns=["what", "sgemm", "way"])
    monkeypatch.setattr(training, "left_out", lambda needed: [])
    monkeypatch.setattr(training, "steps", lambda rounds, compiled: part.assign(sgemm=90.0))
    monkeypatch.setattr(training, "own_steps", lambda rounds, compiled: part.drop(columns="minutes"))
    monkeypatch.setattr(
        training, "growth", lambda rounds, names, sgemm: part.drop(columns="minutes").assign(stack=1.0)
    )
    monkeypatch.setattr(record.reward, "prompts", lambda rounds, compiled: part.drop(columns="minutes"))
    rows = record.measure("quick")
    assert list(rows) == record.COLUMNS and (rows["sgemm"] == 90).all()
    known = rows["minutes"].notna().groupby(rows["what"]).any().to_dict()
    assert known == {STEPS: True, OWN: False, GROWS: False, REWARD: False}


def test_speed_is_measured_once():
    with pytest.raises(SpecError, match="does not depend on the profile"):
        record.measure("paper")
