import torch
from hypothesis import given
from hypothesis import strategies as st

from cot2lib.model.branches import Branches

SMALL = st.integers(0, 4)


@given(SMALL, st.integers(1, 4), SMALL)
def test_places_by_hand(shared, branches, steps):
    """Every place has its branch and depth; it sees the shared places and its own branch, up to itself."""
    layout = Branches(shared, branches)
    places = [(depth, None) for depth in range(shared)]
    places += [(shared + step, branch) for step in range(steps) for branch in range(branches)]
    assert [layout.depth(place) for place in range(len(places))] == [depth for depth, _ in places]
    depths = torch.arange(shared + steps)[:, None]
    assert layout.laid_out(depths)[:, 0].tolist() == [depth for depth, _ in places]
    every = torch.arange(len(places))
    blocked = layout.blocked(every, every)
    for query, (reach, own) in enumerate(places):
        for key, (depth, branch) in enumerate(places):
            assert blocked[query, key] == (depth > reach or branch not in (None, own))
