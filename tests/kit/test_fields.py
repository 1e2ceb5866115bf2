from dataclasses import dataclass

import numpy as np
import pytest

from cot2lib.errors import SpecError
from cot2lib.kit.fields import distinct, typed


@dataclass(frozen=True)
class Part:
    steps: int | None = 3

    def __post_init__(self):
        typed(self)


@dataclass(frozen=True)
class Data:
    count: int = 1
    rate: float = 0.5
    flag: bool = True
    name: str = "x"
    part: Part = Part()

    def __post_init__(self):
        typed(self)


def test_numbers_get_the_declared_type():
    data = Data(count=np.int64(4), rate=1)
    assert type(data.count) is int and data.count == 4
    assert type(data.rate) is float and data.rate == 1.0
    assert Part(None).steps is None


@pytest.mark.parametrize(
    "values, says",
    [
        (dict(count=1.0), "count=1.0: give a whole number"),
        (dict(count=True), "count=True: give a whole number"),
        (dict(count="1"), "count='1': give a whole number"),
        (dict(count=None), "count=None: give a whole number"),
        (dict(rate="fast"), "rate='fast': give a finite number"),
        (dict(rate=float("nan")), "rate=nan: give a finite number"),
        (dict(rate=True), "rate=True: give a finite number"),
        (dict(flag=1), "flag=1: give True or False"),
        (dict(name=3), "name=3: give a string"),
        (dict(part="all"), "part='all': give one of Part"),
    ],
)
def test_another_type_is_named(values, says):
    with pytest.raises(ValueError, match=says):
        Data(**values)


@pytest.mark.parametrize(
    "values, says",
    [
        (dict(count=2**63), "count has 64 bits: give a whole number between"),
        (dict(count=-(2**70)), "count has 71 bits"),
        (dict(rate=10**400), "give a finite number"),
    ],
)
def test_numbers_that_no_tensor_holds_are_named(values, says):
    with pytest.raises(SpecError, match=says):
        Data(**values)
    assert Data(count=2**63 - 1).count == 2**63 - 1


def test_a_value_that_stands_twice_is_named():
    distinct("seeds", [42, 43])
    with pytest.raises(SpecError, match=r"seeds=\[42, 43, 42\] names 42 twice; give each value once"):
        distinct("seeds", [42, 43, 42])
