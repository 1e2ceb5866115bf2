"""Provenance of a result: device, versions, commit, date."""

import datetime
import os
import platform
import subprocess
from functools import cache

import torch

import cot2lib
from cot2lib.errors import DeviceError
from cot2lib.kit.paths import checkout


def resolve_device(name: str = "auto") -> torch.device:
    """The torch device of a name: "cpu", "cuda", or "auto" for CUDA where there is one and else the CPU.

    Raises DeviceError for "cuda" where torch sees no CUDA device, and for any other name.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise DeviceError(f"device={name!r} is unknown; choose auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise DeviceError(f"device={name!r}: torch sees no CUDA device here; choose device='cpu'.")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        with open("/proc/cpuinfo") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"cpu ({model})"


def provenance(device: torch.device) -> dict[str, str | int]:
    """One flat row: device, threads, versions, commit and date (UTC)."""
    return {
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cot2lib": cot2lib.__version__,
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    }


@cache
def commit() -> str:
    """The commit: $COT2_COMMIT, else git's HEAD, else "unknown".

    HEAD gets "-dirty" if the library's files differ from it. The answer is cached, so git is asked once a process.
    """
    if given := os.environ.get("COT2_COMMIT"):
        return given
    root = checkout()
    if root is None or not (root / ".git").exists():
        return "unknown"
    git = lambda *args: subprocess.run(["git", "-C", root, *args], capture_output=True, text=True).stdout.strip()
    try:
        dirty = git("status", "--porcelain", "--", "cot2lib/*.py", "cot2lib/*.cpp")
        return (git("rev-parse", "HEAD") or "unknown") + ("-dirty" if dirty else "")
    except FileNotFoundError:
        return "unknown"
