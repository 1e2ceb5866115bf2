"""Time: fair measurements, with turns in alternation on a given number of threads, and how far a training is."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

import torch
from tqdm import tqdm

Name = TypeVar("Name")
TOLD_SECONDS = 60  # between two lines of a log


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch use `count` CPU threads inside the block, and as many as before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seconds(turn: Callable[[], object]) -> float:
    """Duration of one call in seconds, with all that it asked of a GPU."""
    wait = torch.cuda.synchronize if torch.cuda.is_initialized() else lambda: None
    wait()
    began = time.perf_counter()
    turn()
    wait()
    return time.perf_counter() - began


def in_turns(turns: Mapping[Name, Callable[[], object]], rounds: int) -> dict[Name, list[float]]:
    """Seconds of every turn in every round. One more round comes first; it warms up and is not counted.

    The turns alternate, so a machine that speeds up or slows down does so for all of them.
    """
    taken: dict[Name, list[float]] = {name: [] for name in turns}
    for round_ in range(rounds + 1):
        for name, turn in turns.items():
            spent = seconds(turn)
            if round_:
                taken[name].append(spent)
    return taken


def span(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def told(label: str, total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Tell how far something is, each time the function that the block gets is called with the steps taken.

    A terminal shows a bar, as does a notebook that a person runs. A log gets a line at the start and another about
    every minute, as `say` writes them.
    """
    in_notebook = _in_notebook()
    if _is_attended() if in_notebook else sys.stderr.isatty():
        with tqdm(total=total, initial=done, desc=label, leave=not in_notebook) as bar:
            yield lambda step: bar.update(step - bar.n)
        return
    began = last = time.monotonic()
    say(f"{label}: step {done} of {total}")

    def tell(step: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= TOLD_SECONDS and done < step < total:
            left = (now - began) * (total - step) / (step - done)
            say(f"{label}: step {step} of {total}, about {span(left)} left")
            last = now

    yield tell


def say(line: str) -> None:
    """Print a line on what goes on, past the outputs of a notebook that papermill or nbval runs, which are pages.

    There it goes to the terminal, or the log, of the command that began the kernel.
    """
    if not _in_notebook() or _is_attended():
        print(line, flush=True)
        return
    with suppress(OSError, ValueError):  # a kernel whose own stderr is closed, or none
        os.write(sys.stderr.fileno(), f"{line}\n".encode())  # ipykernel's stream gives the descriptor that it captures


def _in_notebook() -> bool:
    return "JPY_PARENT_PID" in os.environ


def _is_attended() -> bool:
    """Whether a person runs this notebook: only then could its code ask for input."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))
