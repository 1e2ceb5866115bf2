"""The fused CPU engine: whole training steps and evaluations of small models as single compiled functions.

The torch stack is what readers read, and what runs on a GPU. `engine.cpp` computes the same with everything in the
core's cache, several times faster; parity tests bind the two. It knows arrays alone, which `cot2lib.training.fused`
gives it. The compiler that is there builds it at its first use, in seconds, for the processor that is there.
"""

import ctypes
import hashlib
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections import namedtuple
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from cot2lib.kit.timing import say

SOURCE = Path(__file__).with_name("engine.cpp")
COMPILERS = ("c++", "g++", "clang++")  # that are tried after $CXX
# Products may be fused. Sums are not reordered, and NaN and infinity keep their meaning: a run that diverges shows it.
FLAGS = ["-std=c++20", "-O3", "-shared", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]
TUNINGS: tuple[list[str], ...] = (["-march=native"], ["-mcpu=native"], [])  # the first that the compiler knows

PADDED = 16  # keys and vocabulary are padded to multiples of it
HIDDEN = -1e30  # is added to the score of a key that a query must not see

# The structures of `engine.cpp`, which says what they hold. Arrays are NumPy's, of the types that it names.
Shape = namedtuple("Shape", "vocab places width layers heads batch positions scored shared branches own")
Data = namedtuple("Data", "prompts padding shift outputs starts tokens weights steps ending mean sequence mask")
Thoughts = namedtuple("Thoughts", "passes own kind skipped")
Noise = namedtuple("Noise", "key threshold scale")
Optimiser = namedtuple("Optimiser", "mean square rates decay beta2 frozen")
Work = namedtuple("Work", "gradient draws scratch")
Policy = namedtuple("Policy", "kind draws most temperature gamma floor masked")
Terms = namedtuple("Terms", "ratio clip kl scaled updates")
Traces = namedtuple("Traces", "tokens apart points answers old now reference")


def work(shape: Shape, lanes: int) -> Work:
    """Arrays that a thread's steps of one shape fill, with so many dropout multipliers."""
    d = shape.width
    parameters = (shape.vocab + shape.places) * d + shape.layers * (12 * d * d + 13 * d) + 2 * d
    floats = lambda count: np.zeros(count, np.float32)
    draws = np.zeros(lanes // 4 + 5, np.uint64)  # vectors read beyond the last lane
    return Work(floats(parameters), draws, floats(call("scratch", shape)))


def call(function: str, *given) -> int:
    """Call a function of the engine. It may write into the arrays."""
    return getattr(library(), function)(*map(_packed, given))


def _packed(value) -> bytes:
    """A number in eight bytes, an array as its address and sizes, a tuple as what it holds."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return struct.pack(f"{1 + value.ndim}q", value.ctypes.data, *value.shape)
    if isinstance(value, tuple):
        return b"".join(map(_packed, value))
    return struct.pack("d" if isinstance(value, float) else "Q" if isinstance(value, np.uint64) else "q", value)


@cache
def library() -> ctypes.CDLL:
    """The compiled engine; OSError where no compiler can build it."""
    loaded = ctypes.CDLL(str(built(SOURCE)))
    loaded.scratch.restype = ctypes.c_int64
    return loaded


def built(source: Path) -> Path:
    """The library of a source, from the cache or built now."""
    found = map(shlex.split, (os.environ.get("CXX", ""), *COMPILERS))
    compiler = next((words for words in found if words and shutil.which(words[0])), None)
    if compiler is None:
        raise OSError("no C++ compiler is found; install one, or name it in $CXX")
    for tuning in TUNINGS:  # macros that a compiler defines tell its version, and what the processor has
        command = [*compiler, *FLAGS, *tuning]
        macros = subprocess.run([*command, "-dM", "-E", "-x", "c++", os.devnull], capture_output=True)
        if macros.returncode == 0:
            break
    name = hashlib.sha256(source.read_bytes() + repr(command).encode() + macros.stdout).hexdigest()[:16]
    file = _folder() / f"{source.stem}-{name}.so"
    if not file.exists():
        say("compiling the fused engine, once for this version: about five seconds")
        made = file.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*command, str(source), "-o", str(made)], capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{compiler[0]}: {' '.join(done.stderr.split())[:200]}")
        os.replace(made, file)  # a process that built it at the same time built the same
    return file


def _folder() -> Path:
    """Where the library is kept: beside its source, in the user's cache, or for this process alone."""
    for folder in (SOURCE.parent / "__pycache__", Path.home() / ".cache" / "cot2"):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.mkdtemp(prefix="cot2-"))
