"""A trigonometric embedding table: every token is a number, turned on circles at several frequencies.

The paper's construction for MNNS stores a number n as (cos wn, sin wn) at one frequency w, each partial sum in a pair
of coordinates of its own. A language model has one embedding for each token and mixes them, and one frequency is too
few for that: a mixture of sums that lie symmetrically around 0 keeps nothing but the product of the cosines of the
digits. So each number is turned at several frequencies. The paper does not say how its trained model embeds numbers.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.errors import SpecError

SCALE = 0.1  # root mean square of the entries: GPT-2's .02 leaves a table that is not trained too small scores


def trigonometric_table(
    numbers: Int[Tensor, " token"], kinds: Int[Tensor, " token"], d_model: int
) -> Float[Tensor, "token d"]:
    """Rows of cosines and sines, all of one length, that differ wherever number or kind does.

    A number n gives the angles 2 pi f n / P at d/2 - 1 frequencies f (`frequencies`), where P counts the integers
    from the least number to the largest. One more angle tells the kinds apart, so that a tied head does not tie a
    digit to the sum of the same value. The first half of the coordinates are cosines, the second sines.
    """
    period = int(numbers.max() - numbers.min()) + 1
    turns = numbers[:, None] * frequencies(d_model // 2 - 1, period) / period
    kind = kinds[:, None] / (kinds.max() + 1)
    return (SCALE * math.sqrt(2) * circles(torch.cat([turns, kind], dim=1))).float()


def check_width(d_model: int) -> None:
    """Raise SpecError for a width that does not hold pairs of a cosine and a sine, one for the kind."""
    if d_model % 2 or d_model < 4:
        raise SpecError(f"d_model={d_model}: a trigonometric embedding needs an even one of at least 4.")


def frequencies(count: int, period: int) -> Float[Tensor, " frequency"]:
    """`count` whole frequencies from 1 to half the period, as evenly as whole numbers allow.

    The high ones distinguish neighbouring numbers, the low ones near and far.
    """
    return torch.linspace(1, period // 2, count, dtype=torch.float64).round()


def circles(turns: Float[Tensor, "*token frequency"]) -> Float[Tensor, "*token twice"]:
    """Cosines, then sines, of angles given in turns."""
    angles = 2 * math.pi * turns
    return torch.cat([angles.cos(), angles.sin()], dim=-1)
