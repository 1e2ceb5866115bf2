"""Commands that train a chapter's runs here, or in shards elsewhere."""

import argparse
import multiprocessing
import sys

from cot2lib.cli.options import command, count, device_option, profile_option
from cot2lib.errors import CoT2Error

THIS = (sys.executable, "-m", "cot2lib")  # this command in another process


def add_training(commands) -> None:
    resumes = "goes on from the last checkpoint, about a minute back"
    run = command(commands, "run", "train a chapter's missing runs into the local store", _run, resumes)
    _run_options(run)
    run.add_argument("--workers", type=count, default=1, help="processes that share the stacks (default: 1)")
    run.add_argument(
        "--shard",
        type=shard,
        default=(0, 1),
        metavar="K/N",
        help="train every N-th stack, starting with the K-th (workers share it)",
    )

    slurm = command(
        commands, "slurm", "queue a chapter's missing runs on a Slurm cluster, as an array of shards", _slurm
    )
    _run_options(slurm)
    slurm.add_argument("--shards", type=count, default=8, help="tasks of the array (default: 8)")
    slurm.add_argument(
        "--slurm",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="options of submitit, say timeout_min=120 gpus_per_node=1 slurm_partition=short",
    )


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapter", help="chapter whose runs to train")
    profile_option(parser)
    parser.add_argument(
        "--where", nargs="+", default=[], metavar="FIELD=VALUE", help="only runs with, say, d_model=32"
    )
    device_option(parser)
    parser.add_argument(
        "--threads", type=count, help="CPU threads of each worker (default: all; torch's own steps: 1)"
    )
    engines = ("auto", "torch")
    parser.add_argument("--engine", default="auto", choices=engines, help="auto: the fused one where it applies")
    parser.add_argument("--stack", type=count, help="most trainings side by side (default: 16 on a CPU, 64 on a GPU)")
    parser.add_argument("--retrain", action="store_true", help="also train runs that have a shipped record")


def asked_for(options: argparse.Namespace) -> list:
    """The runs that a command names; refuses what is unknown."""
    from cot2lib.study import sweeps

    return sweeps.where(sweeps.of_chapter(options.chapter, options.profile), options.where)


def _run(options: argparse.Namespace) -> None:
    from cot2lib import runs
    from cot2lib.kit.machine import check_count
    from cot2lib.kit.provenance import resolve_device

    specs = asked_for(options)
    check_count("--workers", options.workers)
    check_count("--threads", options.threads or 1)
    resolve_device(options.device)
    if options.workers > 1:
        _spread(options, *options.shard)
        return
    how = {name: getattr(options, name) for name in ("device", "retrain", "threads", "engine", "stack")}
    done = runs.run(specs, **how, shard=options.shard)
    print(f"{len(done)} of {len(specs)} runs of {options.chapter} under {options.profile} are recorded or stored.")


def _spread(options: argparse.Namespace, shard: int, of: int) -> None:
    """The same command in several processes, each with its share of this shard's stacks. They end when this one does.

    They are no pool, which would end all of them when one dies.
    """
    base, workers = _same_runs(options, options.threads or 1), []
    try:
        for k in range(options.workers):
            share = f"{shard * options.workers + k + 1}/{of * options.workers}"
            worker = multiprocessing.get_context("spawn").Process(target=_work, args=([*base, "--shard", share],))
            worker.start()
            workers.append(worker)
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.terminate()
    ends = [worker.exitcode for worker in workers]
    ending = lambda end: f"was killed (signal {-end})" if end < 0 else f"ended with status {end}"
    died = [f"worker {k} of {len(ends)} {ending(end)}" for k, end in enumerate(ends, start=1) if end]
    if died:
        raise CoT2Error(f"{', '.join(died)}; the same command goes on from the last checkpoints.")


def _work(arguments: list[str]) -> None:
    """A worker: the command, in a process that `_spread` started."""
    from cot2lib.cli import main
    from cot2lib.kit.machine import end_with_parent

    end_with_parent()
    sys.exit(main(arguments))


def _same_runs(options: argparse.Namespace, threads: int | None) -> list[str]:
    """The arguments that train the same runs in a process of its own; its shard is to follow."""
    base = ["run", options.chapter, "--profile", options.profile]
    base += ["--device", options.device, "--engine", options.engine, *(["--threads", str(threads)] if threads else [])]
    base += [] if options.stack is None else ["--stack", str(options.stack)]
    base += ["--retrain"] if options.retrain else []
    return base + (["--where", *options.where] if options.where else [])


def _slurm(options: argparse.Namespace) -> None:
    from cot2lib.kit import paths
    from cot2lib.study.book import cluster

    asked_for(options)  # here, for what no node could run
    folder, base = paths.store() / "slurm", [*THIS, *_same_runs(options, options.threads)]
    commands = [[*base, "--shard", f"{k}/{options.shards}"] for k in range(1, options.shards + 1)]
    jobs = cluster.submit(commands, folder, cluster.parsed(options.slurm), f"cot2-{options.chapter}")
    print(f"{len(jobs)} tasks queued as {jobs[0].job_id.partition('_')[0]}; their logs are in {folder}.", flush=True)
    print(f"`cot2 list` counts what is stored; then: cot2 collect {options.chapter} --profile {options.profile}")


def shard(text: str) -> tuple[int, int]:
    """An option's K/N, K counted from 0."""
    first, of = map(int, text.split("/"))
    if not 1 <= first <= of:
        raise argparse.ArgumentTypeError(f"{text}: write K/N with 1 <= K <= N, say 1/2")
    return first - 1, of
