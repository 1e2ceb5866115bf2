"""The core of the CoT2 companion: continuous chain of thought on tiny GPT-2 models."""

__version__ = "0.1.0"
