"""The fused CPU engine: whole training steps and evaluations of small models as single compiled functions.

The torch stack is what readers read, and what runs on a GPU. This package computes the same with everything in the
core's cache, several times faster; parity tests bind the two. `entries` says how functions are compiled, `kernels`
has small products and what is computed element by element, `rows` those of a softmax, `attention` that of a layer,
`forward` the model and decoding, `step` the training step with its gradients by hand, `own` that through the model's
own thoughts, `reward` a step of policy gradients by the `rules` that sample. They know arrays alone;
`cot2lib.training.flat` has what their trainers share. Needs Numba (the extra `fast`).

Numba looks at one source file alone, so compiled code is kept in a folder that is named after the sources of all.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from numba import config

if config.DISABLE_JIT:
    raise OSError("Numba is switched off; unset NUMBA_DISABLE_JIT")


def _folder(here: Path) -> Path:
    """The cache of code that is compiled from the sources in a folder.

    That is in $NUMBA_CACHE_DIR, beside the sources, or else in the user's cache.
    """
    name = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.glob("*.py")))).hexdigest()[:12]
    given = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(given)] if given else [here / "__pycache__", Path.home() / ".cache" / "cot2lib"]
    for place in places:
        folder = place / f"fused-{name}"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise OSError(f"compiled code cannot be kept in {places[-1]}; set NUMBA_CACHE_DIR to a folder that can be written")


_before, config.CACHE_DIR = config.CACHE_DIR, str(_folder(Path(__file__).parent))
from cot2lib.fast import attention, entries, forward, kernels, own, reward, rows, rules, step  # noqa: E402, F401

config.CACHE_DIR = _before
