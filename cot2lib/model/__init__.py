"""The models: R GPT-2s of one shape as one set of tensors."""

from cot2lib.model.stack import Attention, Block, Cache, Dropout, GPT2Stack, LayerNorm, Linear, drop

__all__ = ["Attention", "Block", "Cache", "Dropout", "GPT2Stack", "LayerNorm", "Linear", "drop"]
