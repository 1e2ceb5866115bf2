"""Runs as frozen data, which says everything that a trained model depends on, and nothing else.

The device and what a run was stacked with are no part of a spec: they do not change
what is trained. `supervised` and `policy` are the paper's two objectives, `table` has their recipes, `profiles` builds
runs by them.
"""

from cot2lib.kit.frozen import KINDS, NUMERICS, UndefinedError, from_data, outsiders, to_data
from cot2lib.specs.policy import GRPOSpec
from cot2lib.specs.supervised import RunSpec
from cot2lib.training.settings import Model, Recipe, Run, Supervision, by_shape

__all__ = [
    "KINDS", "NUMERICS", "GRPOSpec", "Model", "Recipe", "Run", "RunSpec", "Supervision", "UndefinedError", "by_shape",
    "from_data", "outsiders", "to_data",
]  # fmt: skip
