"""`pytest --nbval-lax notebooks` executes the chapters with short live trainings, and compares what mechanisms print.

`make book` executes them whole, and there their checks are of what the live trainings came to.
"""

import os

from cot2lib.study import chapters

# Figures are drawn here and not saved as pictures, which nothing here looks at; `make book` saves them.
UNSEEN = """
from cot2lib.study import look
look.Shown._repr_mimebundle_ = lambda shown, **_: {"text/plain": shown.csv()}
"""
WHOLE = ["capacity"]  # whose checks are of what its steps come to
LENGTHS = {"live_epochs": 1, "live_steps": 5, "live_reward_steps": 5}

if "PYTEST_XDIST_WORKER" in os.environ:  # kernels side by side: their threads would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_modifyitems(config, items):
    """Cut live trainings short once `begin` has seen the shipped parameters; what checks them is for `make book`."""
    left_out = []
    for item in items:
        if item.path.suffix != ".ipynb":
            continue
        source, tags = item.cell.source, item.cell.metadata.get("tags", [])
        if "begin(" in source:
            known = chapters.PARAMETERS[item.path.stem] if item.path.stem not in WHOLE else ()
            short = [f"{name} = {length}" for name, length in LENGTHS.items() if name in known]
            item.cell.source = "\n".join([source, UNSEEN, *short])
        if "live" in tags and "check(" in source:
            left_out.append(item)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
