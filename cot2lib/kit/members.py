"""Checks of what a class from outside the package gives: each of its members answers, and gives what it should.

A fault is one SpecError that names the class, the member, what it gave and what it should give.
"""

from collections.abc import Callable
from typing import NoReturn, TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor

from cot2lib.errors import CoT2Error, SpecError, brief

Given = TypeVar("Given")
Shape = tuple[int | None, ...]  # None for any number


def refuse(owner: str, name: str, fault: str) -> NoReturn:
    raise SpecError(f"{owner}: {name} {fault}.")


def shown(value: object) -> str:
    return " ".join(repr(value).split())[:60]


def answer(owner: str, name: str, give: Callable[[], Given]) -> Given:
    """The value that a member gives; whatever it raises becomes a SpecError."""
    try:
        return give()
    except CoT2Error:
        raise
    except Exception as error:
        raise SpecError(f"{owner}: {name} fails ({brief(error)}).") from error


def tensor(owner: str, name: str, value: object, dtype: torch.dtype, shape: Shape) -> Shaped[Tensor, "..."]:
    """A CPU tensor of a type and shape; raises SpecError for anything else."""
    axes = ", ".join("any" if size is None else str(size) for size in shape)
    wanted = f"give a {str(dtype).removeprefix('torch.')} tensor of shape ({axes})"
    if not isinstance(value, Tensor):
        refuse(owner, name, f"is of type {type(value).__name__}; {wanted}")
    told = f"is a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    fits = value.ndim == len(shape) and all(size in (None, got) for size, got in zip(shape, value.shape))
    if value.dtype != dtype or not fits:
        refuse(owner, name, f"{told}; {wanted}")
    if value.device.type != "cpu" or value.layout != torch.strided:
        refuse(owner, name, f"is on {value.device} in layout {value.layout}; {wanted} on the CPU")
    return value


def between(owner: str, name: str, value: Shaped[Tensor, "..."], least: int, most: int) -> None:
    """Raise SpecError for a tensor with an entry out of range."""
    if value.numel() and not (least <= value.min() and value.max() <= most):
        refuse(owner, name, f"holds {value.min()}..{value.max()}; give numbers of {least}..{most}")
