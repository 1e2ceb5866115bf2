"""The models: R GPT-2s of one shape as one set of tensors.

`GPT2Stack` is the model, `Branches` the layout of rollouts that share a prompt; `trigonometric` has an embedding table
for numbers, `huggingface` the way to and from `transformers`.
"""

from cot2lib.model.branches import Branches
from cot2lib.model.stack import Cache, Dropout, GPT2Stack

__all__ = ["Branches", "Cache", "Dropout", "GPT2Stack"]
