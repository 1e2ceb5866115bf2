"""`cot2`: list, run, slurm, llm, collect, chapters, ledger, prosqa.

Every command prints one sentence and exits with 2 when it is asked for something that cannot be.
`list` counts shipped records and stored results apart; `ledger` reads the shipped records alone.
papermill, transformers and the book's tools are imported only by the commands that need them.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cot2lib.cli.options import FAILED, Parser, command, count, device_option, profile_option
from cot2lib.cli.training import add_training
from cot2lib.errors import CoT2Error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    again = "begins anew"
    try:
        options = _parser().parse_args(arguments)
        again = options.again
        status = options.command(options) or 0
        sys.stdout.flush()
        return status
    except CoT2Error as error:
        print(f"cot2: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"cot2: {_named(error)}; choose a path that can be read and written.", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"cot2: interrupted; the same command {again}.", file=sys.stderr)
        return 130


def _named(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="cot2", description="Runs, records and chapters of the CoT2 companion.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command(commands, "list", "which runs each chapter stands on, and which are recorded", _list)
    for add in (add_training, _add_language, _add_study):
        add(commands)
    return parser


def _add_language(commands) -> None:
    language = commands.add_parser("llm", help="train language models").add_subparsers(
        required=True, metavar="COMMAND"
    )
    text = "train a profile's language models by reward, those that are missing"
    train = command(language, "train", text, _train, "goes on from the last checkpoint")
    profile_option(train)
    train.add_argument("--where", nargs="+", default=[], metavar="FIELD=VALUE", help="only runs with, say, longest=16")
    device_option(train)
    train.add_argument("--model", help="folder with the weights, where the hub cannot be reached")
    train.add_argument("--data", help="folder with GSM8K's files, where they cannot be downloaded")


def _add_study(commands) -> None:
    collect = command(commands, "collect", "merge the local store into the shipped records", _collect)
    collect.add_argument("chapter", help="chapter whose runs to collect")
    profile_option(collect)
    collect.add_argument(
        "--source", type=Path, nargs="+", default=[], help="stores, or folders of records, made elsewhere"
    )
    collect.add_argument("--out", type=Path, help="folder to write to (default: the package's records)")
    collect.add_argument("--replace", action="store_true", help="prefer newer results to shipped ones")

    measure = command(commands, "measure", "measure a shipped table anew on trained models", _measure)
    measure.add_argument("name", help="the table (CONTRIBUTING.md)")
    profile_option(measure)
    measure.add_argument("--out", type=Path, help="folder to write to (default: the package's records)")

    chapters = command(commands, "chapters", "execute chapters with papermill for the book", _chapters)
    chapters.add_argument("names", nargs="*", metavar="CHAPTER", help="chapters (default: all)")
    chapters.add_argument("-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"))
    chapters.add_argument("--out", type=Path, help="folder for executed copies (default: build/executed)")
    chapters.add_argument("--workers", type=count, default=1, help="chapters executed side by side (default: 1)")

    ledger = command(commands, "ledger", "every number of the paper beside our records, with a verdict", _ledger)
    ledger.add_argument("--csv", type=Path, metavar="FILE", help="write the whole ledger as CSV")

    prosqa = command(commands, "prosqa", "let the shipped models answer the questions of a ProsQA file", _prosqa)
    prosqa.add_argument("file", type=Path, help="JSON file as COCONUT publishes them")
    prosqa.add_argument("--naming", default="fresh", help="fresh: drawn names; age: node numbers (default: fresh)")
    prosqa.add_argument("--csv", type=Path, metavar="OUT", help="write a row for each method, seed and question")


def _list(options: argparse.Namespace) -> None:
    from cot2lib import runs
    from cot2lib.llm.runs import is_finished
    from cot2lib.runs import store
    from cot2lib.specs.profiles import PROFILES
    from cot2lib.study import sweeps
    from cot2lib.study.gsm8k_runs import shipped, word_problems

    stored = set(store.tables()[0]["id"])
    print(f"{'chapter':<16}{'profile':<10}{'runs':>6}{'recorded':>10}{'stored':>8}")
    for chapter in sweeps.CHAPTERS:
        for profile in PROFILES:
            specs = sweeps.of_chapter(chapter, profile)
            here = sum(spec.id in stored for spec in specs)
            print(f"{chapter:<16}{profile:<10}{len(specs):>6}{len(runs.recorded(specs)):>10}{here:>8}")
    for profile in PROFILES:
        language = word_problems(profile)
        here, known = sum(map(is_finished, language)), shipped(profile)["id"].nunique()
        print(f"{'gsm8k':<16}{profile:<10}{len(language):>6}{known:>10}{here:>8}")


def _train(options: argparse.Namespace) -> None:
    from cot2lib.llm import runs
    from cot2lib.llm.settings import GSM8K
    from cot2lib.study import sweeps
    from cot2lib.study.gsm8k_runs import QWEN, word_problems

    places = {name: place for name, place in ((QWEN, options.model), (GSM8K, options.data)) if place}
    for run in sweeps.where(word_problems(options.profile), options.where):
        last = runs.train(run, options.device, places).iloc[-1]
        said = f"{last['accuracy']:.1%} by {last['decoding']}, {last['length']:.1f} tokens"
        print(f"{run.label}: {said}", flush=True)


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


def _refuse_unwritable(path: Path | None) -> None:
    """Raise OSError for a path that cannot be written, before the work; an absent file stays absent."""
    if path:
        there = path.exists()
        path.open("a").close()
        if not there:
            path.unlink()


def _ledger(options: argparse.Namespace) -> None:
    from cot2lib.study.book.ledger import is_measured, of_records
    from cot2lib.study.judge import Words

    _refuse_unwritable(options.csv)
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

    _refuse_unwritable(options.csv)
    rows = questions.of_file(options.file, options.naming)
    print("right answers (%), means over seeds")
    print((PERCENT * questions.by_hops(rows)).round(1).to_string(), flush=True)
    if options.csv:
        rows.to_csv(options.csv, index=False, lineterminator="\n")
