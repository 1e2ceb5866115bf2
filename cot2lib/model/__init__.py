"""The models: R GPT-2s of one shape as one set of tensors.

`stack` is the model, `dropout` its keyed multipliers, `branches` the layout of rollouts that share a prompt,
`trigonometric` an embedding table for numbers, `huggingface` the way to and from `transformers`.
"""

from cot2lib.model.branches import Branches
from cot2lib.model.dropout import Dropout
from cot2lib.model.stack import Cache, GPT2Stack

__all__ = ["Branches", "Cache", "Dropout", "GPT2Stack"]
