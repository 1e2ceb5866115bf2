"""Ways in turns, and training steps by whose thoughts are fed; how fast anything is, no test says."""

from cot2lib.study import costs


def test_timed_rates_are_of_one_run(monkeypatch):
    """And a slow round counts neither for the rate nor for the ratio."""
    spent = {"loop": [2.0, 2.0, 8.0], "stack": [1.0, 1.0, 4.0]}
    monkeypatch.setattr(costs, "in_turns", lambda turns, rounds: spent)
    ways = [costs.Variant("loop", 1, int, 6), costs.Variant("stack", 4, int, 6)]
    table = costs.timed(ways, rounds=3)
    assert table["rate"].tolist() == [3.0, 24.0] and table["times"].tolist() == [1.0, 8.0]


def test_feeding_table_times_the_last_stage(monkeypatch):
    """All thoughts are the model's own there but for teacher forcing."""
    seen, steps_of = [], costs.steps_of
    monkeypatch.setattr(costs, "STACK", 1)
    monkeypatch.setattr(costs, "STEPS", 1)
    monkeypatch.setattr(costs, "steps_of", lambda made, steps: seen.append(made.phase[0]) or steps_of(made, steps))
    table = costs.feeding_table(rounds=1).set_index("fed")
    assert table.loc["teacher forcing", "times teacher forcing"] == 1 and seen == [0, 3, 3, 3]
    assert (table["ms per run-step"] > 0).all()
