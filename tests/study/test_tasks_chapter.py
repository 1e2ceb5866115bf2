"""The inputs that the chapter tasks draws, and the targets that its tables hold."""

import pytest
import torch

from cot2lib.errors import SpecError
from cot2lib.study import live
from cot2lib.study.tasks import draw as tasks
from cot2lib.study.tasks import measure
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS


@pytest.mark.parametrize("ties", ["minus-first", "plus-first", "shared"])
@pytest.mark.parametrize("budget", [1, 3, 8])
def test_the_drawn_input_is_the_one_of_the_full_task(budget, ties):
    whole, digits = MNNS(1, 4, 3), torch.tensor([2, 1, 4])
    row = int((whole.digits == digits).all(1).nonzero()[0, 0])
    one = measure.one_input([2, 1, 4])
    assert torch.equal(hindsight_targets(one, budget, ties)[0], hindsight_targets(whole, budget, ties)[row])
    assert torch.equal(one.prompts[0], whole.prompts[row]) and one.answers.tolist() == [1]


def test_digits_of_any_range_are_drawn_without_listing_others():
    task = measure.one_input([3, 5000, 2])
    assert task.digits.tolist() == [[3, 5000, 2]] and task.answers.tolist() == [4995]
    shown = tasks.trajectories(range(1, 13), [5], "plus-first")
    assert len(shown.figure.axes) == 1 and shown.numbers.groupby("step")["share"].sum().tolist() == pytest.approx(
        [1] * 12
    )


def test_kept_trajectories_follow_the_tie_rule():
    task = measure.one_input([1, 1])
    kept = lambda budget, ties: measure.kept_trajectories(task, budget, ties)[:, 1:].tolist()
    assert kept(1, "minus-first") == [[-1, 0]] and kept(1, "plus-first") == [[1, 0]]
    assert kept(1, "shared") == [[-1, 0], [1, 0]], "both are tied at the cut"
    assert len(kept(3, "minus-first")) == 3 and len(kept(3, "shared")) == 4


def test_every_branch_is_drawn_once():
    paths = measure.kept_trajectories(measure.one_input([1, 1]), 4, "minus-first")
    ends = sorted(map(tuple, tasks._branches(paths).reshape(-1, 4).tolist()))
    assert ends == [(0, 0, 1, -1), (0, 0, 1, 1), (1, -1, 2, -2), (1, -1, 2, 0), (1, 1, 2, 0), (1, 1, 2, 2)]


def test_shares_of_a_long_input_agree_with_its_targets():
    task = measure.one_input([1, 1, 1, 1, 2, 4])
    shares = measure.target_shares(task, [64, 1], "shared")
    wanted = hindsight_targets(task, 1, "shared", slice(0, 1))[0]
    mine = shares[(shares["budget"] == 1) & (shares["step"] == 2)].set_index("sum")["share"]
    assert all(wanted[1, task.state_id(total)] == share for total, share in mine.items()) and mine.sum() == 1
    assert tasks.heatmap(task, shares).finding.startswith("After 4 of 6 digits the targets hold ")


@pytest.mark.parametrize(
    "ask, names",
    [
        (lambda: measure.one_input([]), "digits=.*choose 1 to 12 digits"),
        (lambda: measure.one_input([1] * 13), "choose 1 to 12 digits"),
        (lambda: measure.one_input([-1, 2]), "need 0 <= low <= high"),
        (lambda: tasks.trajectories([1, 2], []), "at least one budget"),
        (lambda: tasks.trajectories([1, 2], [5]), "budget B=5: an input has 4 trajectories"),
        (lambda: tasks.trajectories([1, 2], [1], "random"), "ties='random'"),
        (lambda: measure.splits(MNNS(), []), "at least one seed"),
        (lambda: live.task(5, 5, 4), "fewer than 5 different multisets"),
        (lambda: live.task(9, 1, 4), "digits 9..1"),
        (lambda: live.specs(MNNS(), "quick", [], 16, 1, 42), "no live budget"),
    ],
)
def test_what_cannot_be_drawn_or_trained_is_named(ask, names):
    with pytest.raises(SpecError, match=names):
        ask()


def test_formats_show_what_each_method_reads_and_writes():
    """SETTINGS of the public code: no arrow for CoT2, as many arrows as steps for pauses."""
    lines = dict(line.split(": ", 1) for line in tasks.formats(MNNS(1, 2, 3), "paper"))
    assert lines["cot2"] == "`<BOS> D1 D1 D1` then `S? S? S?`, loss on the outputs"
    assert lines["discrete"] == "`<BOS> D1 D1 D1 ->` then `S? S? S? <EOS>`, loss on the sequence"
    assert lines["pause"] == "`<BOS> D1 D1 D1 -> -> ->` then `S? <EOS>`, loss on the sequence"
    assert "->" in tasks.formats(MNNS(1, 2, 3), "quick")[0]
