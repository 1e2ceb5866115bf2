"""`cot2`: list, run, slurm, llm, collect, measure, chapters, ledger, prosqa.

Every command prints one sentence and exits with 2 when it is asked for something that cannot be. papermill,
transformers and the book's tools are imported only by the commands that need them.
"""

import argparse
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from cot2lib.errors import CoT2Error, SpecError

FAILED, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    try:
        options = _parser().parse_args(arguments)
        status = options.command(options) or 0
        sys.stdout.flush()
        return status
    except CoT2Error as error:
        print(f"cot2: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"cot2: {what}; choose a path that can be read and written.", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("cot2: interrupted; what is finished, and the last checkpoints, are kept.", file=sys.stderr)
        return INTERRUPTED


# Options


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all others."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(f"{message}.")


def count(text: str) -> int:
    """An option's whole number of at least 1."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: need a whole number, at least one")
    return number


def shard(text: str) -> tuple[int, int]:
    """An option's K/N, K counted from 0."""
    first, of = map(int, text.split("/")) if re.fullmatch(r"\d+/\d+", text) else (0, 0)
    if not 1 <= first <= of:
        raise argparse.ArgumentTypeError(f"{text}: write K/N with 1 <= K <= N, say 1/2")
    return first - 1, of


def file(text: str) -> Path:
    """An option's file, made if it is absent; raises OSError before the work if it cannot be."""
    path = Path(text)
    path.open("a").close()
    return path


def folder(text: str) -> Path:
    """An option's folder, made if it is absent; raises OSError before the work if it cannot be."""
    path = Path(text)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="cot2", description="Runs, records and chapters of the CoT2 companion.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Callable, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        made.set_defaults(command=function)
        return made

    command("list", _list, "how many runs each chapter stands on, and how many are recorded")
    _add_training(command)
    _add_study(command)
    return parser


def _profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="quick", help="quick or paper (default: quick)")


def _training(parser: argparse.ArgumentParser) -> None:
    _profile(parser)
    parser.add_argument(
        "--where", nargs="+", default=[], metavar="FIELD=VALUE", help="only runs with, say, d_model=32"
    )
    devices = ("auto", "cpu", "cuda")
    parser.add_argument("--device", default="auto", choices=devices, help="(default: auto, CUDA where there is one)")


def _add_training(command: Callable) -> None:
    run = command("run", _run, "train a chapter's missing runs into the local store")
    slurm = command("slurm", _slurm, "queue a chapter's missing runs on a Slurm cluster, as an array of shards")
    for parser in (run, slurm):
        parser.add_argument("chapter", help="chapter whose runs to train")
        _training(parser)
        threads = "CPU threads of each process (default: all; with several workers or torch's own steps: 1)"
        parser.add_argument("--threads", type=count, help=threads)
        engine = "auto: the fused one where it applies"
        parser.add_argument("--engine", default="auto", choices=("auto", "torch"), help=engine)
        most = "most trainings side by side (default: 16 on a CPU, what half of a GPU's memory holds)"
        parser.add_argument("--stack", type=count, help=most)
        parser.add_argument("--retrain", action="store_true", help="also train runs that have a shipped record")
    run.add_argument("--workers", type=count, default=1, help="processes that share the stacks (default: 1)")
    share = "train every N-th stack, starting with the K-th (workers share it)"
    run.add_argument("--shard", type=shard, default=(0, 1), metavar="K/N", help=share)
    slurm.add_argument("--shards", type=count, default=8, help="tasks of the array (default: 8)")
    submitit = "options of submitit, say timeout_min=120 gpus_per_node=1 slurm_partition=short"
    slurm.add_argument("--slurm", nargs="+", default=[], metavar="NAME=VALUE", help=submitit)

    language = command("llm", _train, "train a profile's language models by reward, those that are missing")
    language.add_argument("what", metavar="train", choices=["train"], help="the one thing to do")
    _training(language)
    language.add_argument("--model", help="paper: folder with the weights, where the hub cannot be reached")
    language.add_argument("--data", help="paper: folder with GSM8K's files, where they cannot be downloaded")


def _add_study(command: Callable) -> None:
    collect = command("collect", _collect, "merge the local store into the shipped records")
    collect.add_argument("chapter", help="chapter whose runs to collect")
    measure = command("measure", _measure, "measure a shipped table anew")
    measure.add_argument("name", help="the table (CONTRIBUTING.md)")
    for parser in (collect, measure):
        _profile(parser)
        parser.add_argument("--out", type=folder, help="folder to write to (default: the records)")
    sources = "stores, or folders of records, made elsewhere"
    collect.add_argument("--source", type=Path, nargs="+", default=[], help=sources)
    collect.add_argument("--replace", action="store_true", help="prefer newer results to shipped ones")

    chapters = command("chapters", _chapters, "execute chapters with papermill for the book")
    chapters.add_argument("names", nargs="*", metavar="CHAPTER", help="chapters (default: all)")
    chapters.add_argument("-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"))
    chapters.add_argument("--out", type=folder, help="folder for executed copies (default: build/executed)")
    chapters.add_argument("--workers", type=count, default=1, help="chapters executed side by side (default: 1)")

    ledger = command("ledger", _ledger, "the paper's claims next to our measurements, with verdicts")
    whole = "write all rows, also of what was not measured, as CSV"
    ledger.add_argument("--csv", type=file, metavar="FILE", help=whole)

    prosqa = command("prosqa", _prosqa, "let the shipped models answer the questions of a ProsQA file")
    prosqa.add_argument("file", type=Path, help="JSON file as COCONUT publishes them")
    naming = "fresh, once: drawn names; age: node numbers (default: fresh)"
    prosqa.add_argument("--naming", default="fresh", help=naming)
    prosqa.add_argument("--csv", type=file, metavar="OUT", help="write a row for each method, seed and question")


# Training


def _asked(options: argparse.Namespace) -> list:
    from cot2lib.study import sweeps

    return sweeps.where(sweeps.of_chapter(options.chapter, options.profile), options.where)


def _run(options: argparse.Namespace) -> None:
    from cot2lib import runs
    from cot2lib.kit.provenance import resolve_device

    specs = _asked(options)
    resolve_device(options.device)
    if options.workers > 1:
        _spread(options)
        return
    how = {name: getattr(options, name) for name in ("device", "retrain", "threads", "engine", "stack", "shard")}
    done = runs.run(specs, **how)
    print(f"{len(done)} of {len(specs)} runs of {options.chapter} under {options.profile} are recorded or stored.")


def _spread(options: argparse.Namespace) -> None:
    """The same command in several processes, each with its share of this shard's stacks. They end when this one does.

    They are no pool, which would end all of them when one dies.
    """
    (first, of), count, workers = options.shard, options.workers, []
    options.threads = options.threads or 1
    try:
        for k in range(first * count + 1, (first + 1) * count + 1):
            arguments = [*_same_runs(options), "--shard", f"{k}/{of * count}"]
            workers.append(multiprocessing.get_context("spawn").Process(target=_work, args=(arguments,)))
            workers[-1].start()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.terminate()
    ending = lambda end: f"was killed (signal {-end})" if end < 0 else f"ended with status {end}"
    ends = [worker.exitcode for worker in workers]
    died = [f"worker {k} of {count} {ending(end)}" for k, end in enumerate(ends, start=1) if end]
    if died:
        raise CoT2Error(f"{', '.join(died)}; the same command goes on from the last checkpoints.")


def _work(arguments: list[str]) -> None:
    """A worker: the command, in a process that `_spread` started."""
    from cot2lib.kit.machine import end_with_parent

    end_with_parent()
    sys.exit(main(arguments))


def _same_runs(options: argparse.Namespace) -> list[str]:
    """The arguments that train the same runs in a process of its own; its shard is to follow."""
    names = ("profile", "device", "engine", "threads", "stack")
    given = {f"--{name}": getattr(options, name) for name in names}
    same = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    where = ["--where", *options.where] if options.where else []
    return ["run", options.chapter, *same, *["--retrain"] * options.retrain, *where]


def _slurm(options: argparse.Namespace) -> None:
    from cot2lib.kit import paths
    from cot2lib.study.book import cluster

    _asked(options)  # here, for what no node could run
    folder, base = paths.store() / "slurm", [sys.executable, "-m", "cot2lib", *_same_runs(options)]
    commands = [[*base, "--shard", f"{k}/{options.shards}"] for k in range(1, options.shards + 1)]
    jobs = cluster.submit(commands, folder, cluster.parsed(options.slurm), f"cot2-{options.chapter}")
    print(f"{len(jobs)} tasks queued as {jobs[0].job_id.partition('_')[0]}; their logs are in {folder}.", flush=True)
    print(f"`cot2 list` counts what is stored; then: cot2 collect {options.chapter} --profile {options.profile}")


def _train(options: argparse.Namespace) -> None:
    from cot2lib.llm import runs
    from cot2lib.llm.settings import GSM8K
    from cot2lib.study import sweeps
    from cot2lib.study.gsm8k_runs import QWEN, word_problems

    places = {name: place for name, place in ((QWEN, options.model), (GSM8K, options.data)) if place}
    if places and options.profile != "paper":
        raise SpecError("--model and --data are for the models of --profile paper; leave them out.")
    for run in sweeps.where(word_problems(options.profile), options.where):
        last = runs.train(run, options.device, places).iloc[-1]
        said = f"{last['accuracy']:.1%} by {last['decoding']}, {last['length']:.1f} tokens"
        print(f"{run.label}: {said}", flush=True)


# Records and chapters


def _list(options: argparse.Namespace) -> None:
    from cot2lib.llm.runs import is_finished
    from cot2lib.runs import records, store
    from cot2lib.specs.profiles import PROFILES
    from cot2lib.study import sweeps
    from cot2lib.study.gsm8k_runs import shipped, word_problems

    recorded, stored = (set(rows["id"]) for rows in (records.shipped_runs(), store.tables()[0]))
    print(f"{'chapter':<16}{'profile':<10}{'runs':>6}{'recorded':>10}{'stored':>8}")
    for chapter in sweeps.CHAPTERS:
        for profile in PROFILES:
            specs = sweeps.of_chapter(chapter, profile)
            known, here = (sum(spec.id in ids for spec in specs) for ids in (recorded, stored))
            print(f"{chapter:<16}{profile:<10}{len(specs):>6}{known:>10}{here:>8}")
    for profile in PROFILES:
        language = word_problems(profile)
        here, known = sum(map(is_finished, language)), shipped(profile)["id"].nunique()
        print(f"{'gsm8k':<16}{profile:<10}{len(language):>6}{known:>10}{here:>8}")


def _collect(options: argparse.Namespace) -> None:
    from cot2lib.study.measured import collect

    for path in collect(options.chapter, options.profile, options.source, options.out, options.replace):
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")


def _measure(options: argparse.Namespace) -> None:
    from cot2lib.study.measured import measure

    print(measure(options.name, options.profile, options.out))


def _chapters(options: argparse.Namespace) -> int:
    from cot2lib.study import chapters

    return chapters.execute(options.names, dict(options.parameter), options.out, options.workers)


def _ledger(options: argparse.Namespace) -> None:
    from cot2lib.kit import paths
    from cot2lib.study.book.ledger import is_measured, of_records
    from cot2lib.study.judge import Words

    if not paths.records().exists():
        raise SpecError(f"$COT2_RECORDS names {paths.records()}, where no records are; choose another folder.")
    rows = of_records()
    if options.csv:
        rows.to_csv(options.csv, index=False)
        print(f"{len(rows)} rows written to {options.csv}")
    shown = ["id", "paper_value", "profile", "seeds", "last", "last_low", "last_high", *Words._fields]
    measured = rows.loc[is_measured(rows), shown].round(2)
    print(measured.to_string(index=False, na_rep=""))


def _prosqa(options: argparse.Namespace) -> None:
    from cot2lib.study.prosqa import questions
    from cot2lib.study.report import PERCENT

    rows = questions.of_file(options.file, options.naming)
    print("right answers (%), means over seeds")
    print((PERCENT * questions.by_hops(rows)).round(1).to_string(), flush=True)
    if options.csv:
        rows.to_csv(options.csv, index=False, lineterminator="\n")
