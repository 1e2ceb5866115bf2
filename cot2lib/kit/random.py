"""Random numbers of a run: a pure function of its seed, a path of integers and an index.

A run must not notice what it was stacked with, where it runs, or that it was interrupted. So no generator carries
state. A *key* is a 64-bit integer per run. It is folded from the seed, the site that draws (`Site`), and whatever else
tells draws apart, such as the step. The i-th draw of a key is the SplitMix64 finaliser of the key xor the finalised
counter i. Only integer operations touch the bits, so CPU, CUDA, eager and captured code draw the same ones.

Difference from the authors' code: it seeds torch's global generator once per script. A run there depends on everything
that drew before it.
"""

import math
from collections.abc import Sequence
from enum import IntEnum

import torch
from jaxtyping import Float, Int
from torch import Tensor

GOLDEN = -7046029254386353131  # 2^64 / golden ratio, odd, as a signed 64-bit integer
LANES = 4  # 16-bit dropout draws that one 64-bit draw holds


class Site(IntEnum):
    """The place in the code that draws. It is the first element of every key's path."""

    INIT = 1
    ORDER = 2
    DROPOUT = 3
    DECODE = 4
    CHAIN = 5
    PROBE = 6
    ROLLOUT = 7
    NAMES = 8
    TARGETS = 9


def _shift_right(x: Int[Tensor, "*shape"], bits: int) -> Int[Tensor, "*shape"]:
    """Logical right shift; torch's `>>` keeps the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def splitmix64(x: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """The SplitMix64 finaliser: a bijection of 64-bit integers. Every input bit moves all output bits."""
    x = (x ^ _shift_right(x, 30)) * -4658895280553007687
    x = (x ^ _shift_right(x, 27)) * -7723592293110705685
    return x ^ _shift_right(x, 31)


def fold(keys: Int[Tensor, " #key"], *path: int | Int[Tensor, "*#key"]) -> Int[Tensor, " key"]:
    """Keys one level deeper for each element of `path`: ints, or tensors on the keys' device, 0-d or one for a key."""
    for part in path:
        keys = splitmix64(splitmix64(keys + GOLDEN) + part)
    return keys


def run_keys(
    seeds: Sequence[int] | Int[Tensor, " run"], *path: int, device: torch.device | str | None = None
) -> Int[Tensor, " run"]:
    """One key per run, from its seed and a path that starts with a `Site`."""
    seeds = torch.as_tensor(seeds, dtype=torch.int64, device=device)
    return fold(seeds * GOLDEN, *path)


def bits(keys: Int[Tensor, " run"], count: int) -> Int[Tensor, "run count"]:
    """`count` independent 64-bit draws for every key."""
    return splitmix64(counters(count, keys.device)[None] ^ keys[:, None])


def counters(count: int, device: torch.device | str | None = None) -> Int[Tensor, " count"]:
    """The finalised counters 1..count that `bits` combines with a key."""
    return splitmix64(torch.arange(1, count + 1, device=device) * GOLDEN)


def uniform(keys: Int[Tensor, " run"], count: int) -> Float[Tensor, "run count"]:
    """Uniform float32 draws in (0, 1): 23 bits plus a half, so no draw is 0 or 1."""
    return (_shift_right(bits(keys, count), 41).to(torch.float32) + 0.5) * 2.0**-23


def normal(keys: Int[Tensor, " run"], count: int) -> Float[Tensor, "run count"]:
    """Standard normal float64 draws, by Box-Muller on two 52-bit uniforms each."""
    draws = (_shift_right(bits(keys, 2 * count), 12).to(torch.float64) + 0.5) * 2.0**-52  # (run, 2 count)
    radius, angle = draws[:, :count], draws[:, count:]
    return (-2 * radius.log()).sqrt() * (2 * math.pi * angle).cos()


def normals(uniforms: Float[Tensor, "*lead even"]) -> Float[Tensor, "*lead even"]:
    """Standard normal draws from as many uniform ones, an even number, by Box-Muller."""
    first, second = uniforms.chunk(2, dim=-1)
    radius, angle = (-2 * first.log()).sqrt(), 2 * math.pi * second
    return torch.cat([radius * angle.cos(), radius * angle.sin()], dim=-1)


def permutations(keys: Int[Tensor, " run"], count: int) -> Int[Tensor, "run count"]:
    return bits(keys, count).argsort(dim=1)


def stream(key: Int[Tensor, " one"], items: Int[Tensor, " item"], start: int, count: int) -> Int[Tensor, " count"]:
    """Elements start..start+count-1 of an endless stream: one shuffle of `items` after another."""
    size = len(items)
    passes = range(start // size, -(-(start + count) // size))
    shuffled = [items[permutations(fold(key, p), size)[0]] for p in passes]
    return torch.cat(shuffled)[start % size :][:count]


def dropout_scales(
    keys: Int[Tensor, " run"], counter: Int[Tensor, " draw"], probability: float
) -> Float[Tensor, "run lane"]:
    """Dropout multipliers, 0 or 1 / (1 - probability). Each 64-bit draw gives four.

    `counter` is `counters(ceil(lanes / 4))`, made once and reused; the share of zeros is met to 2^-16.
    """
    draws = splitmix64(counter[None] ^ keys[:, None])  # (run, draw)
    # Shifts take the lanes. A view as int16 is shorter, but torch 2.13 compiles it to code that corrupts memory.
    lanes = torch.stack([((draws >> 16 * lane) & 0xFFFF) ^ 0x8000 for lane in range(LANES)], dim=-1)  # (run, draw, 4)
    return (lanes.flatten(1) >= round(probability * 2**16)).to(torch.float32) * (1 / (1 - probability))
