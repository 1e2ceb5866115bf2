"""The fused CPU engine: whole training steps and evaluations of small models as single compiled functions.

The torch stack is what readers read, and what runs on a GPU. `engine.cpp` computes the same with everything in the
core's cache, several times faster; parity tests bind the two. It knows arrays alone: `cot2lib.training.flat` has what
its trainers share. The compiler that is there builds it at its first use, in seconds, for the processor that is there.
"""

import ctypes
import hashlib
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt64

from cot2lib.kit.timing import say

SOURCE = Path(__file__).with_name("engine.cpp")
COMPILERS = ("c++", "g++", "clang++")  # that are tried after $CXX
# Products may be fused. Sums are not reordered, and NaN and infinity keep their meaning: a run that diverges shows it.
FLAGS = "-std=c++20 -O3 -shared -fPIC -ffp-contract=fast -fno-math-errno -fno-trapping-math".split()
TUNING = ("-march=native", "-mcpu=native", "")  # the first that the compiler knows


# What `engine.cpp` calls by the same names, field by field


class Shape(NamedTuple):
    """Sizes of a model and of what it computes on."""

    vocab: int
    places: int  # rows of the position table
    width: int
    layers: int
    heads: int
    batch: int
    positions: int
    scored: int  # the last positions, whose logits are needed
    shared: int = 0  # positions that all branches share
    branches: int = 1  # sequences that go on from those, laid out as `cot2lib.model.branches` has it
    own: int = 0  # positions that are fed with thoughts that the model makes itself


class Data(NamedTuple):
    """Inputs and sparse targets: entries starts[k]..starts[k + 1] belong to k = (variant, input, output)."""

    prompts: Int64[np.ndarray, "input token"]
    padding: Int64[np.ndarray, " input"]
    shift: Int64[np.ndarray, " input"]  # places before the first that is counted
    outputs: Int64[np.ndarray, " input"]  # how many are scored
    starts: Int64[np.ndarray, " k_and_one"]
    tokens: Int64[np.ndarray, " entry"]
    weights: Float32[np.ndarray, " entry"]
    steps: int  # outputs of the longest input
    ending: int  # outputs after the answer
    mean: bool  # whether a loss is the mean over positions, else their sum
    sequence: bool  # whether the prompt is scored too


class Thoughts(NamedTuple):
    """Passes of a step, and which thoughts the model makes itself."""

    passes: Int64[np.ndarray, "pass 5"]  # positions from and to, how many are scored, dropout lanes from and to
    own: int = 0  # how many thoughts are the model's
    kind: int = 0  # what is fed of them
    skipped: int = 0  # first outputs that are not scored


class Noise(NamedTuple):
    """Dropout of one run."""

    key: np.uint64
    counter: UInt64[np.ndarray, " draw"]
    threshold: int  # of a 16-bit lane, 0 for no dropout
    scale: float


class Optimiser(NamedTuple):
    """AdamW of one run."""

    mean: Float32[np.ndarray, " parameter"]
    square: Float32[np.ndarray, " parameter"]
    rates: Float32[np.ndarray, " step"]
    decay: float
    beta2: float
    frozen: int  # leading parameters that stay as they are


class Policy(NamedTuple):
    """A rule that samples thoughts."""

    kind: int  # 0: tokens, 1: a point of a simplex
    draws: int  # K tokens, or one point
    most: int  # tokens that an action holds: K, or the most that have entries of their own
    temperature: float = 1.0
    gamma: float = 0.0
    floor: float = 0.0
    masked: bool = False


class Terms(NamedTuple):
    """The objective of a batch of rollouts, and how often it is descended."""

    ratio: int  # place in `cot2lib.losses.RATIOS`
    clip: float
    kl: float
    scaled: bool
    updates: int


class Traces(NamedTuple):
    """Rollouts, each prompt's side by side."""

    tokens: Int64[np.ndarray, "thought rollout token"]
    apart: Int64[np.ndarray, "thought rollout"]  # how many tokens of a point have entries of their own
    points: Float64[np.ndarray, "thought rollout entry"]  # logarithms of a point's entries
    answers: Int64[np.ndarray, " rollout"]
    old: Float64[np.ndarray, "output rollout draw"]  # log-densities
    new: Float64[np.ndarray, "output rollout draw"]
    reference: Float64[np.ndarray, "output rollout draw"]


class Work(NamedTuple):
    """Arrays that steps of one shape fill on the way; one thread's."""

    gradient: Float32[np.ndarray, " parameter"]  # of the last step
    draws: UInt64[np.ndarray, " draw"]  # its dropout, four 16-bit lanes each
    scratch: Float32[np.ndarray, " float"]


def work(shape: Shape, lanes: int) -> Work:
    """Arrays for steps with so many dropout multipliers."""
    d = shape.width
    parameters = (shape.vocab + shape.places) * d + shape.layers * (12 * d * d + 13 * d) + 2 * d
    floats = lambda count: np.zeros(count, np.float32)
    draws = np.zeros(lanes // 4 + 5, np.uint64)  # vectors read beyond the last lane
    return Work(floats(parameters), draws, floats(call("scratch", shape)))


def call(function: str, *given) -> int:
    """Call a function of the engine. Arrays may be written to; the caller keeps them until it returns."""
    return getattr(library(), function)(*map(_packed, given))


def _packed(value) -> bytes:
    """A number in eight bytes, an array as its address and sizes, a tuple as what it holds."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return struct.pack(f"{1 + value.ndim}q", value.ctypes.data, *value.shape)
    if isinstance(value, tuple):
        return b"".join(map(_packed, value))
    return struct.pack("d" if isinstance(value, float) else "Q" if isinstance(value, np.uint64) else "q", value)


# Building


@cache
def library() -> ctypes.CDLL:
    """The compiled engine, from the cache or built now; OSError where there is no compiler, or it fails."""
    compiler = _compiler()
    for tuning in TUNING:
        options = [*FLAGS, *shlex.split(tuning)]
        # Macros that the compiler defines tell its version, and what the processor has.
        known = subprocess.run([*compiler, *options, "-dM", "-E", "-x", "c++", os.devnull], capture_output=True)
        if known.returncode == 0:
            break
    name = hashlib.sha256(SOURCE.read_bytes() + " ".join(options).encode() + known.stdout).hexdigest()[:16]
    file = _folder() / f"engine-{name}.so"
    if not file.exists():
        say("compiling the fused engine, once for this version: about ten seconds")
        made = file.with_suffix(f".{os.getpid()}")
        built = subprocess.run([*compiler, *options, str(SOURCE), "-o", str(made)], capture_output=True, text=True)
        if built.returncode:
            raise OSError(f"{compiler[0]}: {built.stderr.strip() or built.returncode}")
        os.replace(made, file)  # whoever built it at the same time built the same
    loaded = ctypes.CDLL(str(file))
    loaded.scratch.restype = ctypes.c_int64
    return loaded


def _compiler() -> list[str]:
    for command in (os.environ.get("CXX", ""), *COMPILERS):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return words
    raise OSError("no C++ compiler: install one, or name it in $CXX")


def _folder() -> Path:
    """Where the library is kept: beside the source, in the user's cache, or for this process alone."""
    for folder in (SOURCE.parent / "__pycache__", Path.home() / ".cache" / "cot2"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="cot2-"))
