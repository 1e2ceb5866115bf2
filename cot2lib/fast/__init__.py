"""The fused CPU engine: whole training steps and evaluations of small models as single compiled functions.

The torch stack is what readers read, and what runs on a GPU. This package computes the same with everything in the
core's cache, several times faster; parity tests bind the two. `kernels` has small products and what is computed
element by element, `step` the training step with its gradients by hand, `evaluation` decoding. They know arrays
alone; `cot2lib.training.fused` is the trainer. Needs Numba (the extra `fast`).
"""
