"""Train all of the paper's runs on one GPU and judge the ledger by them (`make gpu WHOLE=1`). Arguments: `workers=4`.

build/gpu/runs keeps finished stacks and checkpoints, so the same command goes on after a kill. What it trained becomes
a second set of records, build/gpu/records; the package's own are only read, to compare verdicts.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from cot2lib import runs
from cot2lib.errors import CoT2Error
from cot2lib.kit.machine import end_with_parent
from cot2lib.kit.provenance import resolve_device
from cot2lib.specs import GRPOSpec, Run
from cot2lib.specs.profiles import PROFILES
from cot2lib.study import measured, sweeps
from cot2lib.study.book import ledger
from cot2lib.study.claims.kinds import SETTLED

OUT = Path(__file__).resolve().parents[1] / "build" / "gpu"
TABLES = ("sampling", "thoughts", "votes")  # that the ledger reads, measured on models of the paper's recipe


def main(device: str = "cuda", workers: str = "1", chapters: str = ",".join(sweeps.CHAPTERS)) -> None:
    """Train the runs of some chapters in processes that share the device, collect, measure and judge."""
    resolve_device(device)
    count = int(workers)
    every = sweeps.distinct(*(sweeps.of_chapter(chapter, SETTLED) for chapter in chapters.split(",")))
    rewarded = [run for run in every if isinstance(run, GRPOSpec)]
    first = sweeps.distinct([run.start for run in rewarded], [run for run in every if not isinstance(run, GRPOSpec)])
    shipped = judged()
    os.environ |= {"COT2_STORE": str(OUT / "runs"), "COT2_RECORDS": str(OUT / "records")}
    spawned = get_context("spawn"), end_with_parent  # processes that end when this one does
    with ProcessPoolExecutor(count, *spawned) if count > 1 else nullcontext() as pool:
        for specs in filter(None, (first, rewarded)):
            list((pool.map if pool else map)(partial(train, specs, device), [(k, count) for k in range(count)]))
    collect({*first, *rewarded})
    compare(shipped, judged())


def train(specs: Sequence[Run], device: str, share: tuple[int, int]) -> None:
    runs.run(specs, device=device, shard=share)


def collect(trained: set[Run]) -> None:
    """Write the second set: runs of every chapter that has some, and what the ledger reads of their models."""
    for chapter in sweeps.CHAPTERS:
        for profile in PROFILES:  # some of the paper's runs by reward start from quick ones
            if trained & {*sweeps.of_chapter(chapter, profile)}:
                measured.collect(chapter, profile)
    for name in TABLES:
        asked = {*sweeps.function(measured.TABLES[name].runs)(SETTLED)}
        if asked <= trained and measured.read(name, SETTLED).empty:
            print(f"measuring {name}", flush=True)
            measured.measure(name, SETTLED)


def judged() -> pd.DataFrame:
    """The ledger's rows of claims that runs of the paper's recipe speak to, by the records at hand."""
    return ledger.ledger().query("profile == @SETTLED and seeds > 0").set_index("id")


def compare(shipped: pd.DataFrame, ours: pd.DataFrame) -> None:
    """Print how many verdicts differ between two sets of records, and which."""
    both = pd.concat({"shipped": shipped["group"], "gpu": ours["group"]}, axis=1, join="inner")
    moved = both[both["shipped"] != both["gpu"]]
    print(f"{len(both)} of {len(shipped)} verdicts are given by both sets of records; {len(moved)} of them differ.")
    print(moved.to_string() if len(moved) else "", f"\nsecond ledger: COT2_RECORDS={OUT / 'records'} cot2 ledger")


if __name__ == "__main__":
    try:
        given = dict(word.partition("=")[::2] for word in sys.argv[1:])
        if strange := [name for name in given if name not in ("device", "workers", "chapters")]:
            raise CoT2Error(f"{strange[0]}: choose device=cuda, workers=4 or chapters=csft,budget.")
        main(**given)
    except CoT2Error as error:
        sys.exit(f"gpu: {error}")
