"""The chapter `speed`: its ladder and its table, from what was timed."""

import pandas as pd
import pytest

from cot2lib.errors import RecordError
from cot2lib.study.frame import at
from cot2lib.study.speed import draw, record
from cot2lib.study.speed.record import OWN, REWARD, STEPS

ROWS = pd.DataFrame(
    [
        (STEPS, "Hugging Face loop", 100.0, 1.0),
        (STEPS, "stack of 1", 110.0, 1.1),
        (STEPS, "stack of 16", 500.0, 5.0),
        (STEPS, "stack of 16, compiled", 700.0, 7.0),
        (STEPS, "fused, 1 runs", 1500.0, 15.0),
        (REWARD, "Hugging Face loop", 1000.0, 1.0),
        (REWARD, "stack of 16", 5000.0, 5.0),
    ],
    columns=["what", "variant", "rate", "times"],
).pipe(record.with_way)


def test_the_shipped_records_have_what_is_drawn():
    rows, on_gpu = record.shipped(), record.on_gpu()
    assert {STEPS, OWN, REWARD} <= set(rows["what"]) and (rows[["rate", "times", "share"]] > 0).any().all()
    assert set(on_gpu["what"]) == {"training", "reward", "decoding"} and on_gpu["device"].nunique() == 1


def test_ways_are_told_by_a_column():
    assert ROWS["way"].value_counts().to_dict() == {"stack": 4, "others": 2, "fused": 1}
    with pytest.raises(RecordError, match=r"no speed is recorded here; `python benchmarks/train\.py`"):
        record.with_way(None)


def test_ladders_name_every_way_and_how_many_times_the_loop():
    shown = draw.ladders(at(ROWS, what=[STEPS, REWARD]))
    above, below = shown.figure.axes
    names = [label.get_text() for label in above.get_yticklabels()]
    assert names[0] == "Hugging Face loop" and names[-1] == "fused, 1 runs" and above.yaxis_inverted()
    assert [text.get_text() for text in above.texts] == ["", "1.1 x", "5.0 x", "7.0 x", "15.0 x"]
    assert sorted(float(x) for dots in below.collections for x in dots.get_offsets()[:, 0]) == [1000.0, 5000.0]
    assert sorted(shown.numbers["rate"]) == sorted(at(ROWS, what=[STEPS, REWARD])["rate"])


def test_the_table_has_whole_rates():
    table = draw.table(ROWS.assign(memory=0.5))
    assert list(table) == ["what", "variant", "a second", "times the loop", "GPU memory (GiB)"]
    assert table["a second"].dtype == int
