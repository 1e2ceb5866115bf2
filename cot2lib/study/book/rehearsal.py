"""One command for a machine that someone lends: does everything work there, how fast is it, and some runs besides.

`cot2 rehearse` needs no network, no git, and no package but those of the core. Where pytest, transformers or papermill
is missing, the step that needs it is left out and says so. Each step says first about what it costs. What it found is
written at once, so that the same command goes on after a kill. A step that another commit, torch or device took is
taken again.
"""

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import torch

from cot2lib import runs
from cot2lib.errors import CoT2Error, DeviceError, SpecError, brief
from cot2lib.kit import paths
from cot2lib.kit.files import write_atomic
from cot2lib.kit.machine import GIB, memory, processors
from cot2lib.kit.provenance import device_name, provenance, resolve_device
from cot2lib.kit.timing import span, threads
from cot2lib.runs import collect, records
from cot2lib.specs import Run
from cot2lib.study import sweeps
from cot2lib.study.book import all_runs
from cot2lib.study.speed import rehearsed

OLDEST = (2, 11)  # torch
KINDS = {"cpu": "cpu", "cuda": "gpu"}  # of device, as files are called
ONE, MISSING = "one", "missing"  # sets of runs that are no chapter
CHAPTER = "sampling"  # that is executed unless all are
COSTS = {  # about how many seconds the steps take
    "cpu": {"machine": 1, "tests": 10, "training": 40, "reward": 15, "decoding": 10, "chapter": 120},
    "cuda": {"machine": 5, "tests": 90, "training": 60, "reward": 60, "decoding": 15, "chapter": 120},
}
Rows = list[dict]


@dataclass
class Rehearsal:
    """A rehearsal on one device, and its findings so far.

    Attributes:
        device: where.
        folder: of what it found, and of its runs.
        out: folder of the report and of what is collected.
        chosen: which runs are trained: `ONE`, `MISSING`, or a chapter's.
        every: whether every chapter is executed.
        found: rows of each step.
    """

    device: torch.device
    folder: Path
    out: Path
    chosen: str
    every: bool = False
    found: dict[str, Rows] = field(default_factory=dict)

    @property
    def steps(self) -> dict[str, Callable[["Rehearsal"], Rows]]:
        """The steps, in order."""
        chapters = {f"chapter {name}": lambda self, name=name: _chapter(self, name) for name in _chapters(self.every)}
        timed = {name: lambda self, name=name: _timed(self, name) for name in rehearsed.WAYS}
        return {"machine": _machine, "tests": _tests, **timed, **chapters, "runs": _runs}

    def cost(self, step: str) -> str:
        """About how long a step takes, as text."""
        if step == "runs":
            return _forecast(self)
        return f"about {span(COSTS[self.device.type][step.partition(' ')[0]])}"


def rehearse(device: str = "auto", out: Path | None = None, chosen: str | None = None, every: bool = False) -> int:
    """Take every step that is not yet taken, and write the report; returns the exit status.

    Args:
        device: "auto", "cpu" or "cuda".
        out: folder for the report, the table of what was measured, and the records of the runs; by default
            `build/rehearsal/<device>/out`.
        chosen: runs to train by the authors' recipe: "one", "missing" (whatever no record has), or a chapter; by
            default "missing" on a GPU.
        every: execute every chapter, not one.

    Raises:
        DeviceError: for a device that is not there, or a torch that is too old.
        SpecError: for an unknown set of runs.
    """
    where = resolve_device(device)
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
        raise DeviceError(f"torch {torch.__version__} is too old; install {'.'.join(map(str, OLDEST))} or later.")
    chosen = chosen or (MISSING if where.type == "cuda" else ONE)
    chosen_runs(chosen)
    folder = paths.store().parent / "rehearsal" / where.type
    rehearsal = Rehearsal(where, folder, out or folder / "out", chosen, every)
    with paths.storing(folder / "runs"):
        for place, (name, step) in enumerate(rehearsal.steps.items(), start=1):
            print(f"{place} of {len(rehearsal.steps)}, {name}: ", end="", flush=True)
            rehearsal.found[name] = _known(rehearsal, name) or _taken(rehearsal, name, step)
            print(*(_told(row) for row in rehearsal.found[name]), sep="\n", flush=True)
            written = _written(rehearsal)
    print(*written, sep="\n")
    return int(any(row.get("verdict", "ok") not in ("ok", "left out") for row in _rows(rehearsal)))


def chosen_runs(name: str) -> list[Run]:
    """Runs by the authors' recipe, of a set or chapter.

    Raises:
        SpecError: for a name that is neither.
    """
    if name == ONE:
        return sweeps.methods("paper", (42,), (16,), ("cot2",), layers=1)
    if name == MISSING:
        listed = [run for chapter in all_runs.SWEEPS for run in all_runs.sweep(chapter, "paper")]
        known = set(runs.recorded(listed)["id"])
        return list(dict.fromkeys(run for run in listed if run.id not in known))
    if name not in all_runs.SWEEPS:
        raise SpecError(f"runs {name!r}: choose {ONE}, {MISSING}, or a chapter of {', '.join(all_runs.SWEEPS)}.")
    return all_runs.sweep(name, "paper")


# What is known of a step


def _identity(rehearsal: Rehearsal, step: str) -> dict:
    """The device, torch and commit that findings are of."""
    made = provenance(rehearsal.device)
    known = {name: made[name] for name in ("device", "torch", "commit")}
    return known | ({"chosen": rehearsal.chosen} if step == "runs" else {})


def _path(rehearsal: Rehearsal, step: str) -> Path:
    return rehearsal.folder / f"{step.replace(' ', '-')}.json"


def _known(rehearsal: Rehearsal, step: str) -> Rows | None:
    """The findings of an earlier call of the same device, torch and commit, if it did not fail."""
    try:
        said = json.loads(_path(rehearsal, step).read_text())
        if said["of"] == _identity(rehearsal, step) and said["rows"]:
            print("known", flush=True)
            return said["rows"]
    except (OSError, ValueError, LookupError, TypeError):
        pass
    return None


def _taken(rehearsal: Rehearsal, name: str, step: Callable[[Rehearsal], Rows]) -> Rows:
    """Take a step and keep what it found; an error is a finding, which the next call tries again."""
    print(rehearsal.cost(name), flush=True)
    began = time.monotonic()
    try:
        rows = step(rehearsal)
    except (CoT2Error, OSError, RuntimeError, ImportError) as error:
        told = str(error) if isinstance(error, CoT2Error) else brief(error)
        return [{"step": name, "verdict": "failed", "said": told}]
    spent = round(time.monotonic() - began, 1)
    rows = [{"step": name, "verdict": "ok", "seconds": spent} | row for row in rows]
    if all(row["verdict"] == "ok" for row in rows):
        text = json.dumps({"of": _identity(rehearsal, name), "rows": rows}, indent=1)
        write_atomic(_path(rehearsal, name), lambda path: path.write_text(text))
    return rows


def _left_out(*modules: str) -> Rows:
    """A row that says which packages are not there, if some are not."""
    gone = [module for module in modules if find_spec(module) is None]
    return [{"verdict": "left out", "said": f"{', '.join(gone)} not installed here"}] if gone else []


# Steps


def _machine(rehearsal: Rehearsal) -> Rows:
    """Driver, torch, memory, and the rate of a matrix product."""
    said = {"name": device_name(rehearsal.device), "torch": torch.__version__, "python": platform.python_version()}
    if rehearsal.device.type == "cuda":
        free, whole = torch.cuda.mem_get_info()
        said |= {"driver": _driver(), "cuda": torch.version.cuda, "GiB": round(whole / GIB, 1)}
        said |= {"free GiB": round(free / GIB, 1)}
    else:
        said |= {"processors": processors(), "GiB": round(memory() / GIB, 1)}
    rate = runs.sgemm_rate(rehearsal.device, 4096 if rehearsal.device.type == "cuda" else 1024)
    return [{"said": ", ".join(f"{name} {value}" for name, value in said.items()), "rate": rate / 1e9}]


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip() or "unknown"
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _tests(rehearsal: Rehearsal) -> Rows:
    """Tests that only a GPU can run; on a CPU all of them are skipped."""
    folder = (paths.checkout() or Path()) / "tests"
    if left := _left_out("pytest"):
        return left
    if not folder.is_dir():
        return [{"verdict": "left out", "said": "the tests are not here"}]
    report = rehearsal.folder / "tests.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    plain = ["-p", "no:cacheprovider", "-o", "addopts=", "-q", f"--junitxml={report}"]
    done = _run([sys.executable, "-m", "pytest", str(folder / "training" / "test_cuda.py"), "-m", "cuda", *plain])
    suite = ElementTree.parse(report).getroot().find("testsuite").attrib
    total, skipped = int(suite["tests"]), int(suite["skipped"])
    bad = int(suite["failures"]) + int(suite["errors"])
    said = f"{total - skipped - bad} passed, {skipped} skipped, {bad} failed"
    if done.status not in (0, 5) or bad:
        return [{"verdict": "failed", "said": f"{said}: {done.last}"}]
    return [{"said": said}]


def _timed(rehearsal: Rehearsal, name: str) -> Rows:
    if left := _left_out("transformers"):
        return left
    with threads(1):
        table = rehearsed.measure(name, rehearsal.device)
    return [{key: value for key, value in row.items() if value == value} for row in table.to_dict("records")]


def _chapters(every: bool) -> list[str]:
    from cot2lib.study import chapters

    if paths.checkout() is None:
        return []
    return [path.stem for path in chapters.all_chapters()] if every else [CHAPTER]


def _chapter(rehearsal: Rehearsal, name: str) -> Rows:
    """A chapter by papermill, retrained on the device; on a CPU for one seed, and only if it is the only one."""
    if left := _left_out("papermill", "ipykernel"):
        return left
    gpu = rehearsal.device.type == "cuda"
    given = {"device": rehearsal.device.type, "retrain": gpu or not rehearsal.every}
    given |= {} if gpu else {"seeds": [42]}
    options = [part for key, value in given.items() for part in ("-p", key, str(value))]
    with _gpu_peak(rehearsal.device) as peak:
        done = _run([sys.executable, "-m", "cot2lib", "chapters", name, *options, "--out", str(rehearsal.folder)])
    said = {"chapter": name, "memory": done.gib, **({"gpu memory": peak[0] / GIB} if gpu else {})}
    return [said | ({} if done.status == 0 else {"verdict": "failed", "said": done.last})]


@contextmanager
def _gpu_peak(device: torch.device) -> Iterator[list[int]]:
    """The most bytes of a GPU that are in use inside the block, whoever uses them, looked at twice a second."""
    peak, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            free, whole = torch.cuda.mem_get_info()
            peak[0] = max(peak[0], whole - free)

    watcher = threading.Thread(target=look, daemon=True)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        if watcher.is_alive():
            watcher.join()


@dataclass(frozen=True)
class Done:
    """How a process ended: its status, the last line it said, and its peak memory (GiB)."""

    status: int
    last: str
    gib: float


def _run(command: Sequence[str]) -> Done:
    """Run a process to its end; what it says is shown if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with process.stdout:
        said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print(said, file=sys.stderr)
    lines = [line for line in said.splitlines() if line.strip()]
    return Done(process.returncode, lines[-1] if lines else "", usage.ru_maxrss / 2**20)


def _stack(rehearsal: Rehearsal) -> int | None:
    """Runs side by side that this device trained fastest; None where that was not timed."""
    timed = pd.DataFrame(rehearsal.found.get("training", []))
    return rehearsed.best_stack(timed) if "variant" in timed and rehearsal.device.type == "cuda" else None


def _forecast(rehearsal: Rehearsal) -> str:
    asked = chosen_runs(rehearsal.chosen)
    if not asked:
        return "none is missing"
    stacks = runs.plan(asked, rehearsal.device, _stack(rehearsal))
    spent = span(runs.forecast(stacks, rehearsal.device))
    return f"{len(asked)} runs by the authors' recipe in {len(stacks)} stacks, about {spent}"


def _runs(rehearsal: Rehearsal) -> Rows:
    """Train the chosen runs, whatever is shipped, and collect them stack by stack."""
    asked = chosen_runs(rehearsal.chosen)
    if not asked:
        return [{"verdict": "left out", "said": "no run is missing"}]
    weights = {run for chapter in all_runs.SWEEPS for run in asked if all_runs.ships_weights(chapter, run)}
    for stack in runs.plan(asked, rehearsal.device, _stack(rehearsal)):
        runs.run(stack, device=rehearsal.device.type, retrain=True, stack=len(stack))
        collect.collect("rehearsal.paper", asked, with_weights=weights, folder=rehearsal.out, replace=True)
    rows = runs.recorded(asked, retrain=True)
    shipped = runs.recorded(asked).set_index("id")["last"]
    both = rows[rows["id"].isin(shipped.index)]
    apart = (both["last"] - both["id"].map(shipped)).abs().max()
    beside = f"; at most {100 * apart:.1f} points from the shipped records" if len(both) else ""
    return [{"runs": len(rows), "seconds each": rows["seconds"].mean(), "said": f"{len(rows)} runs{beside}"}]


# The report


def _rows(rehearsal: Rehearsal) -> Rows:
    return [row for rows in rehearsal.found.values() for row in rows]


def _told(row: dict) -> str:
    """A row in one line."""
    shown = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in row.items()}
    return "    " + ", ".join(f"{name} {value}" for name, value in shown.items() if name not in ("step", "what"))


def _written(rehearsal: Rehearsal) -> list[str]:
    """Write the report and the table of all rows; where they are."""
    kind = KINDS[rehearsal.device.type]
    table = pd.DataFrame(_rows(rehearsal)).assign(**provenance(rehearsal.device))
    shipped = records.ship_table(f"rehearsal.{kind}.measured", table, rehearsal.out)
    report = rehearsal.out / f"{kind}.md"
    write_atomic(report, lambda path: path.write_text(_report(rehearsal, table)))
    return [str(shipped), str(report)]


def _report(rehearsal: Rehearsal, table: pd.DataFrame) -> str:
    """Everything in Markdown, a section a step."""
    made = table.iloc[0]
    lines = [
        f"# Rehearsal on {made['device']}",
        "",
        f"Commit {made['commit']}, torch {made['torch']}, {made['date']}.",
    ]
    for name, rows in rehearsal.found.items():
        shown = pd.DataFrame(rows).drop(columns=["step", "what"], errors="ignore").dropna(axis=1, how="all")
        cells = shown.map(lambda value: f"{value:.3g}" if isinstance(value, float) else str(value))
        lines += ["", f"## {name.capitalize()}", "", _line(shown.columns), _line(["---"] * len(shown.columns))]
        lines += [_line(row) for row in cells.to_numpy()]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
