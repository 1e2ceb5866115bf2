"""What training takes before it begins: hours, bytes, cost, shards."""

from datetime import datetime

import pytest
import torch
from builders import SPECS, short

from cot2lib import cli, runs
from cot2lib.errors import SpecError
from cot2lib.study.book import all_runs, forecast, rates
from cot2lib.study.book.draw import costs
from cot2lib.study.book.forecast import Forecast

CPU, NOON = torch.device("cpu"), datetime(2026, 11, 25, 12)


def test_shards_are_the_fewest_that_end_in_time():
    """Stacks of 3, 1, 1, 1, 2 hours: two shards take 3 + 1 + 2 and 1 + 1."""
    found = Forecast([4] * 5, [3.0, 1.0, 1.0, 1.0, 2.0])
    assert found.total == 8 and [found.slowest(n) for n in (1, 2, 3, 5)] == [8, 6, 4, 3]
    assert [found.shards(hours) for hours in (9, 8, 6, 5, 3)] == [1, 1, 2, 3, 5] and found.shards(2.9) is None


@pytest.mark.parametrize(
    "text, hours", [("18:30", 6.5), ("11:00", 23), ("12:00", 24), ("2026-11-27", 36), ("2026-11-25T12:06", 0.1)]
)
def test_a_time_is_so_many_hours_ahead(text, hours):
    assert forecast.hours_until(text, NOON) == pytest.approx(hours)


@pytest.mark.parametrize("text", ["25:00", "noon", "2026-11-24", "2026-13-01", ""])
def test_a_time_that_is_none_is_refused(text):
    with pytest.raises(SpecError, match=f"--by {text}: "):
        forecast.hours_until(text, NOON)


def test_bytes_are_about_those_of_the_store(store, nothing_shipped, monkeypatch):
    specs = [short(seed=seed, steps=120, evaluate_every=2) for seed in (42, 43, 44)]
    monkeypatch.setattr(forecast, "_recorded", lambda *_: {spec: 2.0 for spec in specs}.__getitem__)
    found = forecast.forecast(specs, "csft", CPU)
    assert found.runs == [3] and found.total == 6.0
    runs.run(specs, device="cpu", engine="torch")
    written = sum(path.stat().st_size for path in store.glob("*.safetensors"))
    assert found.stored == pytest.approx(written, rel=0.2)
    assert forecast.forecast(specs, "csft", CPU).runs == [0], "what is stored is not trained again"


def test_shards_with_nothing_to_train_take_no_time(store, nothing_shipped, monkeypatch):
    """Recorded runs keep their place, so that the shares of others do not move."""
    monkeypatch.setattr(forecast, "_recorded", lambda *_: lambda run: 1.0)
    runs.run(SPECS[1:2], device="cpu", engine="torch")
    assert forecast.forecast(SPECS, "csft", CPU, stack=1).hours == [1.0, 1.0, 0.0]


def test_a_rate_measured_here_is_that_of_training(store, nothing_shipped):
    """Within a factor, since the machine is shared: the clock of a whole training against the forecast of it."""
    spec = short(steps=120, evaluate_every=40)
    told = 3600 * rates.measured([spec], CPU, "torch")
    runs.run([spec], device="cpu", engine="torch")
    taken = runs.recorded([spec], retrain=True)["seconds"].iloc[0]
    assert 0.2 * taken < told < 5 * taken


def planned(*options):
    return cli.main(["plan", "csft", *options])


def test_the_command_says_hours_bytes_cost_and_shards(capsys, monkeypatch):
    monkeypatch.setattr(
        forecast, "forecast", lambda *_, **options: Forecast([16, 0, 4], [2.0, 0.0, 1.0], 2**20, 2**21)
    )
    monkeypatch.setattr(forecast, "hours_until", lambda text, now: 2.5)
    assert planned("--price", "0.5", "--by", "18:30") == 0
    assert [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()] == [
        ["runs", "to train  20 in 2 stacks on cpu"],
        ["core-hours", "3.00 at rates of records"],
        ["bytes", "1.0 MiB in stores, and while it trains 2.0 MiB for each shard"],
        ["cost", "1.50 at 0.5 for an hour of one core"],
        ["shards", "3 of one core each end within 2.5 h, the slowest after 2.0 h"],
    ]
    monkeypatch.setattr(forecast, "hours_until", lambda text, now: 1.0)
    planned("--by", "18:30")
    assert "no number ends within 1.0 h: one stack takes 2.0 h; a smaller --stack" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, says",
    [
        (["--rates", "there"], "--rates there: choose one of records, here"),
        (["--price", "-1"], "--price -1.0: give what an hour"),
        (["--by", "soon"], "--by soon: write a time"),
        (["--device", "cuda", "--retrain"], "no run like these was recorded on cuda; measure there with --rates here"),
        (["--device", "tpu"], "device='tpu' is unknown"),
        (["--stack", "0"], "--stack 0: need at least one"),
    ],
)
def test_a_bad_request_is_one_sentence(options, says, capsys):
    assert planned("--where", "seed=42", *options) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and says in said.err


def test_many_runs_cost_as_many_times_one():
    table = forecast.scale()
    assert list(table["run"].unique()) == list(forecast.KINDS.values()) and len(table) == 6
    each = table["core-minutes"] / 60
    assert (table["10 runs"] / 10 - each).abs().max() < 1e-9 and (
        table["100,000 runs"] / 1e5 - each
    ).abs().max() < 1e-6
    first = table.iloc[0]
    assert forecast.many(100_000, each[0]).slowest(first["shards for a day"]) <= 24
    assert forecast.many(100_000, each[0]).slowest(first["shards for a day"] - 1) > 24
    known = runs.recorded(all_runs.sweep("csft", "quick"))
    known = known[known["engine"] == "fused"]  # which trains all of them today
    minutes = (known["seconds"] * known["threads"]).median() / 60
    told = table.set_index(["run", "recipe"]).loc[("supervised", "quick recipe"), "core-minutes"]
    assert told == pytest.approx(minutes)


def test_the_figure_goes_on_to_a_hundred_thousand_runs():
    shown = costs(forecast.costs())
    assert shown.numbers["runs"].max() == 100_000 and len(shown.figure.axes[0].lines) == 6
    assert (shown.numbers["cost"] / shown.numbers["core-hours"] - forecast.PRICE).abs().max() < 1e-9
    assert shown.finding.startswith("100,000 runs take at most ")
