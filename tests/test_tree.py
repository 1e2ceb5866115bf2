import torch
from hypothesis import given
from hypothesis import strategies as st

from cot2lib.model.branches import PLAIN, Tree

SMALL = st.integers(0, 4)


@given(SMALL, st.integers(1, 4), SMALL)
def test_places_by_hand(shared, branches, steps):
    """Every place has its branch and depth; it sees the shared places and its own branch, up to itself."""
    tree = Tree(shared, branches)
    places = [(depth, None) for depth in range(shared)]
    places += [(shared + step, branch) for step in range(steps) for branch in range(branches)]
    assert [tree.depth(place) for place in range(len(places))] == [depth for depth, _ in places]
    depths = torch.arange(shared + steps)[:, None]
    assert tree.laid_out(depths)[:, 0].tolist() == [depth for depth, _ in places]
    every = torch.arange(len(places))
    blocked = tree.blocked(every, every)
    for query, (reach, own) in enumerate(places):
        for key, (depth, branch) in enumerate(places):
            assert blocked[query, key] == (depth > reach or branch not in (None, own))


def test_one_branch_is_a_plain_sequence():
    every = torch.arange(6)
    causal = torch.ones(6, 6, dtype=torch.bool).triu(1)
    for tree in (PLAIN, Tree(3), Tree(9, 4)):
        assert torch.equal(tree.blocked(every, every), causal)
    assert torch.equal(Tree(3, 2).blocked(every[4:], every), Tree(3, 2).blocked(every, every)[4:])
