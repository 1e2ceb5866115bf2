"""Packed curves come back as they were."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.errors import RecordError
from cot2lib.runs import packed

WHOLE = st.integers(-(2**50), 2**50)
POINTS = st.lists(st.tuples(st.sampled_from(["a", "b", "a1"]), WHOLE, st.none() | WHOLE), max_size=20)


def table(points):
    ids, whole, decimals = zip(*points) if points else ((), (), ())
    values = [np.nan if value is None else value / 10**5 for value in decimals]
    numbers = {"step": np.array(whole, np.int64), "loss": np.array(values, float)}
    return pd.DataFrame({"id": pd.Series(ids, dtype="str"), **numbers})


@settings(max_examples=30)
@given(POINTS)
def test_a_table_comes_back_to_the_bit(points):
    made = table(points)
    pd.testing.assert_frame_equal(packed.unpack(packed.pack(made)), made, check_exact=True)


def test_pack_refuses_values_that_do_not_fit():
    for value in (1.000001, 2.0**70, np.inf):
        with pytest.raises(RecordError, match="loss of a curve has more than 5 decimals or is too large"):
            packed.pack(pd.DataFrame({"id": ["a"], "loss": [value]}))
