"""The strict chapter runner: papermill, one fresh kernel per chapter, no half results.

papermill itself injects unknown parameters with a remark, keeps failed outputs where good ones were,
and calls a dead kernel a success. Here an unknown or ill-typed parameter is an error before anything
runs, a chapter is executed into a temporary file that takes its place only if every cell finished,
all chapters run whatever happens to one, and a table at the end says what happened.
Parameters are checked here, and once more by the chapter itself (`check`), which may be run by other means. Those that
every chapter has are checked for what they mean: a profile, a device, some seeds. Numbers are finite and fit 64 bits,
and no list names a value twice: seeds counted twice would look like agreement.
"""

import ast
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

from cot2lib.errors import SpecError
from cot2lib.kit import paths
from cot2lib.kit.frozen import as_int, distinct
from cot2lib.kit.machine import end_with_parent
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.specs.profiles import SEEDS, TEN, TWENTY, profile

KERNEL = "python3"
UNBORN = "Kernel didn't respond"  # of one whose port another process took before it did
REPEATING = {"digits", "others", "live_digits"}  # lists in which a value may stand twice: the digits of one input
SHOWN = 60  # characters of a value that a message repeats
MEANINGS: dict[str, Callable] = {"profile": profile, "device": resolve_device}  # what refuses a value, by name
EVERYWHERE = {"profile": "quick", "device": "auto", "seeds": [*SEEDS], "retrain": False}
LIVE = {"live_epochs": 40, "live_low": 1, "live_high": 9, "live_length": 4}
PARAMETERS: dict[str, dict[str, object]] = {  # by chapter, as shipped
    "method": {"seeds": [42], "budget": 16, "d_model": 32, "live_steps": 2000},
    "tasks": {"digits": [2, 1, 4], "budgets": [1, 2, 8], "ties": "minus-first"},
    "csft": LIVE | {"seeds": [*TWENTY], "d_models": [16, 24, 32], "live_d_model": 32, "live_budget": 16},
    "budget": LIVE
    | {"seeds": [*TWENTY], "d_models": [16, 24, 32], "budgets": [1, 2, 4, 8, 16]}
    | {"live_d_model": 24, "live_budgets": [1, 4, 16]},
    "sampling": {"top_k": 0, "ks": [1, 5, 14]}
    | {"temperatures": [0.5, 0.75, 1.0, 1.25, 1.5, 2.0], "thresholds": [0.0, 0.02, 0.05, 0.1, 0.2]}
    | {"tops": [1, 2, 4, 8, 16], "sampled": [1, 4, 16, 64, 256, 1024]},
    "construction": {"live_digits": [2, 1, 4, 3], "live_sharpness": None, "length": 4, "lengths": [1, 2, 3, 4, 5]},
    "sample_complexity": {"ks": [1, 2, 3, 4, 6, 8, 16], "steps": 6, "inputs": 100}
    | {"gap_ks": [1, 2, 4, 8, 16, 64], "rollouts": 16},
    "capacity": {"seeds": [*TWENTY], "live_vocab": 73, "live_budgets": [1, 4, 8, 16], "live_share": 0.5}
    | {"live_dimensions": [4, 8, 16, 32], "live_steps": 120},
    "prosqa": {"seeds": [*SEEDS[:3]], "whole_seeds": [*SEEDS], "age_seeds": [*TEN], "question": 3}
    | {"live_inputs": 3000, "live_steps": 2000, "live_hops": 4},
    "prontoqa": {"seeds": [*TEN]},
    "controls": {"seeds": [*range(62, 72)], "digits": [1, 1, 1, 4], "others": [8, 3, 9, 2]}
    | {"live_steps": 2000, "live_sees": "strict"},
    "grpo_mts": {"seeds": [*TWENTY], "split_seeds": [*TWENTY], "live_k": 3, "live_steps": 2000, "live_lr": 0.0006},
    "policy_ratio": {"seeds": [*SEEDS[:3]], "start_epochs": 160, "exact_ks": [1, 2, 3, 6, 12], "lanes": 160}
    | {"example_ks": [1, 2, 6, 12], "dropout": 0.1, "dropout_ks": [1, 3, 6]},
    "grpo_dirichlet": {"seeds": [*TWENTY], "split_seeds": [*TWENTY]}
    | {"drawn_gammas": [0.5, 1.0, 3.0, 10.0, 20.0, 40.0, 200.0]}
    | {"drawn_samples": 4000, "live_gamma": 20.0, "live_steps": 2000, "live_lr": 0.0002},
    "gsm8k": {"seeds": [*SEEDS[:3]], "live_k": 4, "live_thoughts": 3, "live_sums": 3},
    "speed": {"seeds": [42], "live_sizes": [1, 16]},
    "extend": {"live_steps": 1500, "live_powers": [2.0, 8.0], "live_reward_steps": 100, "live_hours": 12},
    "ledger": {"profile": "paper", "seeds": [*TWENTY]},
}


def execute(
    names: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    out: Path | None = None,
    workers: int = 1,
) -> int:
    """Execute chapters (default: all), so many `workers` side by side, into a folder; returns the exit status.

    Every chapter gets the `parameters`, values as text: Python literals or bare strings. SpecError for an unknown
    chapter or parameter, or a value that `checked` refuses; DeviceError for a device that is not there.
    """
    sources = [chapter_path(name) for name in names] or all_chapters()
    values = [checked(source, parameters or {}) for source in sources]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the matrices are small, and chapters may run side by side
    out = out or _root() / "build" / "executed"
    out.mkdir(parents=True, exist_ok=True)
    jobs = sources, [out / source.name for source in sources], values
    failed = 0
    spawned = multiprocessing.get_context("spawn"), end_with_parent  # processes that end when this one does
    with ProcessPoolExecutor(min(workers, len(sources)), *spawned) if workers > 1 else nullcontext() as pool:
        results = (pool.map if pool else map)(_execute, *jobs)
        for source, (failure, seconds) in zip(sources, results):
            failed += failure is not None
            print(f"{source.stem:<22}{failure or 'ok':<60}{seconds:>7.1f} s", flush=True)
    print(f"{len(sources) - failed} of {len(sources)} chapters executed into {out}")
    return 1 if failed else 0


def all_chapters() -> list[Path]:
    return sorted((_root() / "notebooks").glob("*.ipynb"))


def chapter_path(name: str) -> Path:
    """The source of a chapter; SpecError if there is none of that name."""
    path = _root() / "notebooks" / f"{name.removesuffix('.ipynb')}.ipynb"
    if not path.exists():
        known = ", ".join(source.stem for source in all_chapters())
        raise SpecError(f"chapter {name!r} does not exist; chapters: {known}.")
    return path


def defaults(source: Path) -> dict[str, object]:
    """Names and literal values of a chapter's `parameters` cell."""
    cells = json.loads(source.read_text())["cells"]
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        raise SpecError(f"{source.name} has {len(tagged)} cells tagged 'parameters'; it needs one.")
    tree = ast.parse("".join(tagged[0]["source"]))
    return {node.targets[0].id: ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)}


def checked(source: Path, given: Mapping[str, str]) -> dict[str, object]:
    """The given parameters as values of the defaults' types; SpecError for a name the chapter lacks, and errors as
    `check`."""
    known = defaults(source)
    if (unknown := next((name for name in given if name not in known), None)) is not None:
        raise SpecError(f"{source.stem} has no parameter {unknown!r}; it has {', '.join(known)}.")
    values = {name: _literal(text) for name, text in given.items()}
    for name, value in values.items():
        _check(source.stem, name, value, known[name])
    return values


def check(chapter: str, names: Mapping[str, object]) -> bool:
    """Refuse parameters that a chapter cannot run with, and tell whether they are as shipped, on any device.

    A chapter calls it with its `globals()` after the cell of parameters. So plain papermill, Jupyter and Colab refuse
    what `cot2 chapters` refuses.

    Raises:
        SpecError: for a value of another type, an empty list, a value given twice, a number that is too large, an
            unknown profile, or a parameter that is not there.
        DeviceError: for a device that is not there.
    """
    known = EVERYWHERE | PARAMETERS[chapter]
    if absent := next((name for name in known if name not in names), None):
        raise SpecError(f"{chapter}: parameter {absent!r} is missing; its default is {known[absent]!r}.")
    for name, default in known.items():
        _check(chapter, name, names[name], default)
    return all(names[name] == default for name, default in known.items() if name != "device")


def _check(chapter: str, name: str, value: object, default: object) -> None:
    """Raise SpecError or DeviceError for a value that a parameter of some default cannot have."""
    if not _same_type(value, default):
        if isinstance(value, str) and _same_type(_literal(value), default):  # as `-p` of papermill gives a list
            raise SpecError(f"{chapter}: {name} is text; give papermill -y '{name}: {value}' instead of -p.")
        raise SpecError(f"{chapter}: {name}={str(value)[:SHOWN]} should be like its default {default!r}.")
    if value == [] and default:
        raise SpecError(f"{chapter}: {name}=[] is empty; give at least one value.")
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, int) and not isinstance(item, bool):
            as_int(f"{chapter}: {name}", item)  # 64 bits
        elif isinstance(item, float) and not math.isfinite(item):
            raise SpecError(f"{chapter}: {name}={item}: give a finite number.")
    if isinstance(value, list) and name not in REPEATING:
        distinct(f"{chapter}: {name}", value)
    if name in MEANINGS:
        MEANINGS[name](value)


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # unhashable keys, deep nesting
        return text


def _same_type(value: object, default: object) -> bool:
    if isinstance(default, list):
        return isinstance(value, list) and all(_same_type(item, default[0]) for item in value if default)
    if default is None and value is None:
        return True
    if default is None or isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def _execute(source: Path, target: Path, values: Mapping[str, object], again: bool = True) -> tuple[str | None, float]:
    """Execute one chapter; what went wrong, or None, and the seconds. A kernel that does not begin has a second one.

    The target is replaced once the chapter is whole.
    """
    try:
        import papermill
    except ImportError:
        return "package 'papermill' is missing: install the extra with `pip install 'cot2lib[book]'`.", 0.0
    began = time.perf_counter()
    part, failure = target.with_name(f".{target.stem}.part.ipynb"), None
    try:
        papermill.execute_notebook(
            source,
            part,
            parameters=dict(values),
            kernel_name=KERNEL,
            cwd=source.parent,
            progress_bar=False,
            extra_arguments=["--IPKernelApp.log_level=40"],
        )
        _stamp(part, values, time.perf_counter() - began)
        os.replace(part, target)
    except Exception as error:  # a dead kernel, a timeout or a failed cell: each fails its chapter alone
        if again and UNBORN in str(error):
            return _execute(source, target, values, again=False)
        name, value = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", str(error))
        failure = f"{name}: {' '.join(value.split())}"[:400]
    finally:
        part.unlink(missing_ok=True)
    return failure, time.perf_counter() - began


def _stamp(path: Path, values: Mapping[str, object], seconds: float) -> None:
    """Replace papermill's metadata by what a reader wants to know of the run."""
    notebook = json.loads(path.read_text())
    notebook["metadata"].pop("papermill", None)
    notebook["metadata"].pop("widgets", None)
    made = provenance(resolve_device()) | {"seconds": round(seconds, 1)}
    notebook["metadata"]["cot2"] = made | {"parameters": defaults(path) | dict(values)}
    for cell in notebook["cells"]:
        cell["metadata"].pop("papermill", None)
        cell["metadata"].pop("execution", None)
    path.write_text(json.dumps(notebook, indent=1) + "\n")


def _root() -> Path:
    root = paths.checkout()
    if root is None:
        raise SpecError("chapters live in the repository: clone it and install with `pip install -e .`.")
    return root
