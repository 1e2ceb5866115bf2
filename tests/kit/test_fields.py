from dataclasses import dataclass

import numpy as np

from cot2lib.kit.fields import typed


@dataclass(frozen=True)
class Data:
    count: int = 1
    rate: float = 0.5
    steps: int | None = 3
    names: tuple[str, ...] = ()

    def __post_init__(self):
        typed(self)


def test_typed_gives_numbers_the_declared_type():
    data = Data(count=np.int64(4), rate=1, steps=None, names=["a", "b"])
    assert type(data.count) is int and data.count == 4
    assert type(data.rate) is float and data.rate == 1.0
    assert data.steps is None and data.names == ("a", "b")
