import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cot2lib.supervision import TIES, hindsight_targets, trajectory_shares
from cot2lib.tasks import MNNS


def enumerated(task, budget, ties):
    """The same shares from a list of all trajectories, sorted as the tie rule says."""
    sums = task.signed_sums()
    if ties == "plus-first":
        sums = sums.flip(1)
    final = sums[:, :, -1]
    if ties == "shared":
        worse = (final.abs()[:, :, None] > final.abs()[:, None]).sum(-1)
        equal = (final.abs()[:, :, None] == final.abs()[:, None]).sum(-1)
        weight = ((budget - worse.double()) / equal).clamp(0, 1)
    else:
        order = (2 * final.abs() + (final < 0)).sort(dim=1, stable=True).indices[:, :budget]
        weight = torch.zeros(final.shape, dtype=torch.float64).scatter(1, order, 1.0)
    shares = torch.zeros(len(sums), task.steps, task.states, dtype=torch.float64)
    for step in range(task.steps):
        shares[:, step].scatter_add_(1, sums[:, :, step] + task.bound, weight / budget)
    return shares


@given(st.data(), st.integers(0, 9), st.integers(0, 2), st.integers(1, 5), st.sampled_from(TIES))
@settings(deadline=None, max_examples=120)
def test_targets_equal_enumeration(data, low, span, length, ties):
    task = MNNS(low, low + span, length)
    budget = data.draw(st.integers(1, task.trajectories))
    assert torch.allclose(trajectory_shares(task, budget, ties), enumerated(task, budget, ties), rtol=0, atol=1e-12)


def test_the_papers_example():
    """Digits 2, 1, 4: the path of B=1 and the pair of B=2 in the paper's Figure 1."""
    task = MNNS(1, 4, 3)
    row = int((task.digits == torch.tensor([2, 1, 4])).all(1).nonzero()[0, 0])
    shown = lambda b: (
        trajectory_shares(task, b, "minus-first", slice(row, row + 1))[0].nonzero() - torch.tensor([0, 12])
    )
    assert shown(1).tolist() == [[0, -2], [1, -3], [2, 1]]
    assert shown(2).tolist() == [[0, -2], [0, 2], [1, -3], [1, 3], [2, -1], [2, 1]]


def test_exact_entropies():
    """THEORY 5: mean target entropies at full budget over all inputs, and on the seed-42 validation inputs."""
    task = MNNS()
    entropy = torch.special.entr(hindsight_targets(task)).sum(-1)
    assert entropy.mean(0).tolist() == pytest.approx([0.69315, 1.34779, 1.94091, 0.0], abs=1e-5)
    assert entropy[~task.split(42)].mean(0)[:3].tolist() == pytest.approx([0.6931, 1.3455, 1.9313], abs=1e-4)


def test_lexicographic_cut_of_a_long_input_is_a_prefix():
    """Twelve digits still can be listed: the counted cut equals the sorted list."""
    task = MNNS(3, 9, 12, inputs=4)
    for ties in TIES:
        assert torch.allclose(trajectory_shares(task, 37, ties), enumerated(task, 37, ties), rtol=0, atol=1e-12)


def test_rows_and_chunks_agree(monkeypatch):
    task = MNNS()
    whole = hindsight_targets(task, 3)
    assert torch.equal(whole[100:230], hindsight_targets(task, 3, rows=slice(100, 230)))
    monkeypatch.setattr("cot2lib.supervision.CHUNK", 1000)
    assert torch.equal(whole, hindsight_targets(task, 3))
