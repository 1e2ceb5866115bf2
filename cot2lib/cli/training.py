"""Commands that train a chapter's runs here, in shards elsewhere, or say what that takes."""

import argparse
import os
import shlex
import subprocess
import sys
import threading
from datetime import datetime

from cot2lib.cli.options import FAILED, check_choice, check_counts, command, profile_option
from cot2lib.errors import CoT2Error, SpecError
from cot2lib.kit import array

THIS = (sys.executable, "-m", "cot2lib")  # this command in another process


def add_training(commands) -> None:
    """Commands that train runs here or on a cluster."""
    resumes = "goes on from the last checkpoint, about a minute back"
    run = command(commands, "run", "train a chapter's missing runs into the local store", _run, resumes)
    _run_options(run)
    run.add_argument("--workers", type=int, default=1, help="processes that share the stacks (default: 1)")
    run.add_argument(
        "--shard",
        default="1/1",
        metavar="K/N|auto",
        help="train every N-th stack, starting with the K-th (workers share it); auto: as the scheduler's array says",
    )
    run.add_argument("--watched", action="store_true", help=argparse.SUPPRESS)  # end when stdin does: see `_spread`

    shards = command(commands, "shards", "print the commands that train a chapter in shards, one a line", _shards)
    _run_options(shards)
    shards.add_argument("--shards", type=int, default=8, help="how many (default: 8)")

    plan = command(commands, "plan", "say what a chapter's missing runs take: hours, bytes, cost, shards", _plan)
    _run_options(plan)
    plan.add_argument(
        "--rates", default="records", help="records, or here: time each kind of stack (default: records)"
    )
    plan.add_argument("--price", type=float, metavar="P", help="of an hour of one core, or of one GPU")
    plan.add_argument("--by", metavar="TIME", help="how many shards end by then, say 18:30 or 2026-12-01T08:00")

    slurm = command(
        commands, "slurm", "queue a chapter's missing runs on a Slurm cluster, as an array of shards", _slurm
    )
    _run_options(slurm)
    slurm.add_argument("--shards", type=int, default=8, help="tasks of the array (default: 8)")
    slurm.add_argument(
        "--slurm",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="options of submitit, say timeout_min=120 gpus_per_node=1 slurm_partition=short",
    )


def _run_options(parser: argparse.ArgumentParser) -> None:
    """Options that `run`, `shards`, `slurm` and `plan` share."""
    parser.add_argument("chapter", help="chapter whose runs to train")
    profile_option(parser)
    parser.add_argument(
        "--where", nargs="+", default=[], metavar="FIELD=VALUE", help="only runs with, say, d_model=32"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--threads", type=int, help="CPU threads of each worker (default: all, torch's own steps one)")
    parser.add_argument("--engine", default="auto", help="auto: the fused CPU engine where it applies; or torch")
    parser.add_argument("--stack", type=int, help="most trainings side by side (default: 16 on a CPU, 64 on a GPU)")
    parser.add_argument("--retrain", action="store_true", help="also train runs that have a shipped record")


def asked_for(options: argparse.Namespace) -> list:
    """The runs that a command names; refuses what is unknown."""
    from cot2lib.study.book import all_runs

    return all_runs.where(all_runs.sweep(options.chapter, options.profile), options.where)


def _run(options: argparse.Namespace) -> None:
    from cot2lib import runs
    from cot2lib.kit import machine
    from cot2lib.kit.provenance import resolve_device
    from cot2lib.runs.train import ENGINES

    if options.watched:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    specs = asked_for(options)
    check_counts(options, machine.check_count, "workers", "threads")
    check_counts(options, machine.check_some, "stack")
    check_choice(options, "engine", ENGINES)
    resolve_device(options.device)
    shard = _shard(options.shard)
    if options.workers > 1:
        _spread(options, *shard)
        return
    how = {name: getattr(options, name) for name in ("device", "retrain", "threads", "engine", "stack")}
    done = runs.run(specs, **how, shard=shard)
    print(f"{len(done)} of {len(specs)} runs of {options.chapter} under {options.profile} are recorded or stored.")


def _spread(options: argparse.Namespace, shard: int, of: int) -> None:
    """The same command in several processes, each with its share of this shard's stacks.

    Each reads from a pipe that nobody writes to. However this process ends, the pipe ends with it, and so do they.
    """
    base = [*THIS, *_same_runs(options, options.threads or 1), "--watched"]
    shares = [f"{shard * options.workers + k + 1}/{of * options.workers}" for k in range(options.workers)]
    workers = [subprocess.Popen([*base, "--shard", share], stdin=subprocess.PIPE) for share in shares]
    try:
        ends = [worker.wait() for worker in workers]
    finally:
        for worker in workers:
            worker.terminate()
    died = [f"worker {k} of {len(ends)} {_ending(end)}" for k, end in enumerate(ends, start=1) if end]
    if died:
        raise CoT2Error(f"{', '.join(died)}; the same command goes on from the last checkpoints.")


def _same_runs(options: argparse.Namespace, threads: int | None) -> list[str]:
    """The arguments that train the same runs in a process of its own; its shard is to follow."""
    base = ["run", options.chapter, "--profile", options.profile]
    base += ["--device", options.device, "--engine", options.engine, *(["--threads", str(threads)] if threads else [])]
    base += [] if options.stack is None else ["--stack", str(options.stack)]
    base += ["--retrain"] if options.retrain else []
    return base + (["--where", *options.where] if options.where else [])


def _shares(options: argparse.Namespace) -> list[list[str]]:
    """The arguments of each shard. Those that a node is to judge, say its threads, are not checked here.

    Raises:
        SpecError: for what no machine could run.
    """
    from cot2lib.kit.machine import check_some
    from cot2lib.kit.provenance import DEVICES
    from cot2lib.runs.train import ENGINES

    check_counts(options, check_some, "shards", "threads", "stack")
    check_choice(options, "device", DEVICES)
    check_choice(options, "engine", ENGINES)
    asked_for(options)
    base = _same_runs(options, options.threads)
    return [[*base, "--shard", f"{k}/{options.shards}"] for k in range(1, options.shards + 1)]


def _shards(options: argparse.Namespace) -> None:
    for share in _shares(options):
        print(shlex.join(["cot2", *share]))


def _plan(options: argparse.Namespace) -> None:
    from cot2lib.kit.machine import check_some
    from cot2lib.kit.provenance import resolve_device
    from cot2lib.runs.train import ENGINES
    from cot2lib.study.book import forecast

    check_counts(options, check_some, "stack")
    check_choice(options, "engine", ENGINES)
    forecast.check_price(options.price)
    within = forecast.hours_until(options.by, datetime.now()) if options.by else None
    specs = asked_for(options)
    where = resolve_device if options.rates == "here" else forecast.device_of_records
    device = where(options.device)
    how = {name: getattr(options, name) for name in ("retrain", "stack", "engine")}
    found = forecast.forecast(specs, options.chapter, device, options.rates, **how)
    print(*forecast.told(found, device, options.rates, options.price, within), sep="\n")


def _slurm(options: argparse.Namespace) -> None:
    from cot2lib.kit import paths
    from cot2lib.study.book import cluster

    folder = paths.store() / "slurm"
    commands = [[*THIS, *share] for share in _shares(options)]
    jobs = cluster.submit(commands, folder, cluster.parsed(options.slurm), f"cot2-{options.chapter}")
    print(f"{len(jobs)} tasks queued as {jobs[0].job_id.partition('_')[0]}; their logs are in {folder}.", flush=True)
    print(f"`cot2 list` counts what is stored; then: cot2 collect {options.chapter} --profile {options.profile}")


def _end_with_parent() -> None:
    """Wait for the end of the parent's pipe, then end this process, whatever it does."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(FAILED)  # the last checkpoint is kept; files are whole or absent


def _ending(status: int) -> str:
    return f"was killed (signal {-status})" if status < 0 else f"ended with status {status}"


def _shard(text: str) -> tuple[int, int]:
    if text == "auto":
        return array.place(os.environ)
    try:
        first, of = map(int, text.split("/"))
    except ValueError:
        first, of = 0, 0
    if not 1 <= first <= of:
        raise SpecError(f"--shard {text}: write K/N with 1 <= K <= N, say 1/2, or auto.")
    return first - 1, of
