"""Sphinx extension: shipped weights for the page that runs them in a browser (`book/explorer.md`).

Writes `_static/explorer-data.js` into the built book, from the package's records, so that it cannot go stale. A script
and no JSON: a page that is opened from a folder may load the one and not the other.
"""

import base64
import json
from pathlib import Path

import numpy as np
from sphinx.application import Sphinx

import cot2lib
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.tasks.mnns import ARROW, BOS, SPECIALS

NAMES = {"cot2": "CoT2: continuous supervision", "discrete": "discrete chain of thought"}
SHOWN: dict[str, RunSpec] = {name: spec(name, "paper", layers=2, heads=2, d_model=32) for name in NAMES}


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True}


def write(app: Sphinx, exception: Exception | None) -> None:
    """The data beside the page's script, unless the build failed or makes no HTML."""
    if exception is None and app.builder.format == "html":
        path = Path(app.outdir) / "_static" / "explorer-data.js"
        path.write_text(f"window.COT2_MODELS = {json.dumps([packed(name) for name in SHOWN])};\n")


def packed(name: str) -> dict:
    """A model for the page: its shape, the layout of its vocabulary, and all weights as base64 of float32."""
    run = SHOWN[name]
    task, stack = run.task, cot2lib.load(run, missing="error")
    weights = {key: value[0].numpy().astype("<f4") for key, value in stack.state_dict().items()}
    tensors, offset = {}, 0
    for key, value in weights.items():
        tensors[key] = [offset, *value.shape]
        offset += value.size
    flat = np.concatenate([value.ravel() for value in weights.values()])
    return {
        "label": NAMES[name],
        "layers": run.model.layers,
        "heads": run.model.heads,
        "d": run.model.d_model,
        "vocab": task.vocab_size,
        "bound": task.bound,
        "steps": task.steps,
        "low": task.low,
        "high": task.high,
        "bos": BOS,
        "tail": [ARROW] if run.supervision.arrow else [],
        "digit0": len(SPECIALS),
        "zero": task.state_id(0),
        "tensors": tensors,
        "data": base64.b64encode(flat.tobytes()).decode(),
    }
