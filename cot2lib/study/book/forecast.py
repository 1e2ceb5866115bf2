"""Forecasts of training before it begins: core-hours or GPU-hours, bytes, cost, and how many shards end by an hour."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import torch

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.kit import timing
from cot2lib.kit.provenance import resolve_device
from cot2lib.runs.lookup import absent
from cot2lib.runs.plan import RUNS_PER_STACK, parameters
from cot2lib.specs import Run
from cot2lib.study.book import all_runs, rates
from cot2lib.study.graph_runs import SWEEP
from cot2lib.study.report import RECIPES
from cot2lib.training.settings import trained_once

KINDS = {"csft": "supervised", "grpo_mts": "by reward, sampled tokens", SWEEP: "supervised, on graphs"}
MANY = (10, 100, 1_000, 10_000, 100_000)  # runs
PRICE = 0.04  # of a core-hour, for the book's figure: an example
DAY = 24.0  # hours
RATES = ("records", "here")
WEIGHT, COPIES = 4, 3  # bytes of a weight; a checkpoint has AdamW's two moments too
POINT, REST = 150, 2_000  # about the bytes of an evaluation in a stored stack, and of whatever else a run has there


@dataclass(frozen=True)
class Forecast:
    """Stacks that are to be trained, in the order that shards take them.

    Attributes:
        runs: of each stack.
        hours: of one core or one GPU, of each stack.
        stored: bytes of all finished stacks.
        checkpoint: bytes of the largest checkpoint; each shard has one.
    """

    runs: Sequence[int]
    hours: Sequence[float]
    stored: int = 0
    checkpoint: int = 0

    @property
    def total(self) -> float:
        """Hours of one core or GPU."""
        return float(sum(self.hours))

    def slowest(self, shards: int) -> float:
        """Hours until the last of some shards ends. Each has one core or GPU, and trains every so-manieth stack."""
        padded = np.zeros(-(-len(self.hours) // shards) * shards)
        padded[: len(self.hours)] = self.hours
        return float(padded.reshape(-1, shards).sum(0).max())

    def shards(self, within: float) -> int | None:
        """Fewest shards that all end within some hours; None where one stack alone takes longer."""
        fewest = max(1, math.ceil(self.total / within - 1e-9))
        return next((n for n in range(fewest, len(self.hours) + 1) if self.slowest(n) <= within), None)


def forecast(
    specs: Sequence[Run],
    chapter: str,
    device: torch.device,
    taken: str = "records",
    *,
    retrain: bool = False,
    stack: int | None = None,
    engine: str = "auto",
) -> Forecast:
    """Hours and bytes that the missing runs of a request take.

    Args:
        specs: the runs.
        chapter: whose runs they are.
        device: where they are trained.
        taken: where rates are from, "records" or "here".
        retrain, stack, engine: as in `cot2lib.runs.run`.

    Raises:
        SpecError: for other rates, or where nothing like the runs was recorded on such a device.
    """
    if taken not in RATES:
        raise SpecError(f"--rates {taken}: choose one of {', '.join(RATES)}.")
    left = set(absent(specs, retrain))
    planned = runs.plan(specs, device, stack)
    missing = [[run for run in one if run in left] for one in planned]
    each = _recorded(specs, chapter, device) if taken == "records" else _measured(planned, device, engine)
    hours = [sum(each(run) for run in trained_once(some)) if some else 0.0 for some in missing]
    stored = sum(_stored(run) for some in missing for run in some)
    most = max((sum(map(parameters, trained_once(some))) for some in missing), default=0)
    return Forecast([len(some) for some in missing], hours, stored, COPIES * WEIGHT * most)


def device_of_records(name: str) -> torch.device:
    """The kind of device that records are asked about, be there one here or not; "auto" is a CPU.

    Raises:
        DeviceError: for another name.
    """
    return torch.device("cuda") if name == "cuda" else resolve_device("cpu" if name == "auto" else name)


def _recorded(specs: Sequence[Run], chapter: str, device: torch.device) -> Callable[[Run], float]:
    """Hours of a run at the rates of records of all chapters."""
    known = rates.of_chapters(device)
    hours = {run: rates.hours(run, chapter, known, device) for run in dict.fromkeys(specs)}
    if any(map(math.isnan, hours.values())):
        raise SpecError(f"no run like these was recorded on {device.type}; measure there with --rates here.")
    return hours.__getitem__


def _measured(planned: Sequence[Sequence[Run]], device: torch.device, engine: str) -> Callable[[Run], float]:
    """Hours of a run as measured on this machine, on the first stack of each shape and method."""
    firsts = {(some[0].shape(), some[0].method): some for some in reversed(planned)}
    print(f"timing {len(firsts)} stacks on {device}", flush=True)
    found = {kind: rates.measured(some, device, engine) for kind, some in firsts.items()}

    def hours(run: Run) -> float:
        return found[run.shape(), run.method]

    return hours


def _stored(run: Run) -> int:
    """About the bytes of a run in a store."""
    return WEIGHT * parameters(run) + POINT * (run.recipe.steps // run.recipe.evaluate_every) + REST


def hours_until(text: str, now: datetime) -> float:
    """Hours from now until a time of day, or of a date.

    Raises:
        SpecError: for what is no such time, or one that is past.
    """
    try:
        clock = re.fullmatch(r"(\d{1,2}):(\d{2})", text)
        end = (
            now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0) if clock else datetime.fromisoformat(text)
        )
        end += timedelta(days=1) if clock and end <= now else timedelta()
        left = (end - now).total_seconds() / 3600
    except (TypeError, ValueError):
        raise SpecError(f"--by {text}: write a time such as 18:30 or 2026-12-01T08:00.") from None
    if left <= 0:
        raise SpecError(f"--by {text}: that is past; name a time to come.")
    return left


def told(found: Forecast, device: torch.device, taken: str, price: float | None, within: float | None) -> list[str]:
    """A forecast in lines of a name and a value; `price` is of an hour, `within` so many hours shards are to end."""
    unit = "core" if device.type == "cpu" else "GPU"
    left = [count for count in found.runs if count]
    lines = {"runs to train": f"{sum(left)} in {len(left)} stacks on {device.type}"}
    lines[f"{unit}-hours"] = f"{found.total:.2f} at rates {'of records' if taken == 'records' else 'measured here'}"
    lines["bytes"] = f"{_mib(found.stored)} in stores, and while it trains {_mib(found.checkpoint)} for each shard"
    if price is not None:
        lines["cost"] = f"{found.total * price:.2f} at {price:g} for an hour of one {unit}"
    if within is not None:
        lines["shards"] = _shards(found, within, unit)
    return [f"{name:<15}{value}" for name, value in lines.items()]


def check_price(price: float | None) -> None:
    """Raise SpecError for a price that is none."""
    if price is not None and not 0 <= price < math.inf:
        raise SpecError(f"--price {price}: give what an hour of one core or GPU costs, 0 or more.")


def _shards(found: Forecast, within: float, unit: str) -> str:
    if not found.total:
        return "none is needed"
    count, left = found.shards(within), timing.span(3600 * within)
    if count is None:
        longest = timing.span(3600 * max(found.hours))
        return f"no number ends within {left}: one stack takes {longest}; a smaller --stack makes shorter ones"
    return (
        f"{count} of one {unit} each end within {left}, the slowest after {timing.span(3600 * found.slowest(count))}"
    )


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def scale() -> pd.DataFrame:
    """Core-minutes of a run at the median of recorded ones, by kind and recipe; core-hours of 100,000; shards.

    Those are shares of stacks as they were recorded, by the engine that trains such runs today if it has trained any;
    the models that rewarded runs start from are not counted.
    """
    return pd.DataFrame([_row(kind, name, each) for kind, name, each in medians()])


def _row(kind: str, recipe: str, each: float) -> dict:
    most = many(MANY[-1], each)
    row = {"run": kind, "recipe": recipe, "core-minutes": 60 * each}
    row |= {f"{count:,} runs": many(count, each).total for count in (10, 1_000, MANY[-1])}
    return row | {"shards for a day": most.shards(DAY) or "-"}


def costs() -> pd.DataFrame:
    """Core-hours and cost at `PRICE` of many runs, by kind and recipe: columns run, recipe, runs, core-hours, cost."""
    totals = [(kind, name, count, many(count, each).total) for kind, name, each in medians() for count in MANY]
    table = pd.DataFrame(totals, columns=["run", "recipe", "runs", "core-hours"])
    return table.assign(cost=PRICE * table["core-hours"])


def many(count: int, each: float) -> Forecast:
    """Runs that take some hours each, in full stacks on a CPU."""
    full = RUNS_PER_STACK["cpu"]
    sizes = [full] * (count // full) + [count % full] * bool(count % full)
    return Forecast(sizes, [size * each for size in sizes])


def medians() -> list[tuple[str, str, float]]:
    """Kind and recipe of runs, and the core-hours of a recorded one in the median."""
    found = []
    for chapter, kind in KINDS.items():
        for profile, name in RECIPES.items():
            known = rates.recorded(all_runs.sweep(chapter, profile))
            rewarded = known["kind"].str.contains("GRPO") == chapter.startswith("grpo")
            found.append((kind, name, float(known.loc[rewarded, "hours"].median())))
    return found
