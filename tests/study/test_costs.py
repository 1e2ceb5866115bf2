"""Ways in turns, and training steps by whose thoughts are fed; how fast anything is, no test says."""

import pytest

from cot2lib.errors import RecordError
from cot2lib.study import costs
from cot2lib.study.speed import record

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(costs, "STACK", 2)
    monkeypatch.setattr(costs, "STEPS", 1)


def test_ways_are_timed_beside_the_first(monkeypatch):
    """A rate is of one run; a slow round counts neither for it nor for the ratio."""
    spent = {"loop": [2.0, 2.0, 8.0], "stack": [1.0, 1.0, 4.0]}
    monkeypatch.setattr(costs, "in_turns", lambda turns, rounds: spent)
    ways = [costs.Variant("loop", 1, int, 6), costs.Variant("stack", 4, int, 6)]
    table = costs.timed(ways, rounds=3)
    assert table["rate"].tolist() == [3.0, 24.0] and table["times"].tolist() == [1.0, 8.0]
    assert table["runs"].tolist() == [1, 4]


def test_feeding_table():
    table = costs.feeding_table(rounds=2).set_index("fed")
    assert table.loc["teacher forcing", "times teacher forcing"] == 1
    assert (table["ms per run-step"] > 0).all()


def test_stages_are_timed_in_their_last_stage(monkeypatch):
    seen = []
    monkeypatch.setattr(costs, "steps_of", lambda trainer, steps: seen.append(trainer.phase[0]) or (lambda: None))
    monkeypatch.setattr(costs, "in_turns", lambda turns, rounds: {name: [1.0] for name in turns})
    costs.feeding_table(rounds=1)
    assert seen == [0, 3, 3, 3], "all thoughts are the model's own but for teacher forcing"


def test_speeds_that_are_not_recorded_are_named():
    with pytest.raises(RecordError, match=r"no speed is recorded here; `python benchmarks/train\.py`"):
        record.with_way(None)
