"""Inputs that the chapter tasks draws, targets of its tables, rules that do not search, and what is trained live."""

import pytest
import torch

from cot2lib.specs.profiles import TWENTY
from cot2lib.study import live, tasks
from cot2lib.study.targets import baselines
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS


@pytest.mark.parametrize("ties", ["minus-first", "plus-first", "shared"])
@pytest.mark.parametrize("budget", [1, 3, 8])
def test_one_input_is_the_one_of_the_full_task(budget, ties):
    whole, digits = MNNS(1, 4, 3), torch.tensor([2, 1, 4])
    row = int((whole.digits == digits).all(1).nonzero()[0, 0])
    one = tasks.one_input([2, 1, 4])
    assert torch.equal(hindsight_targets(one, budget, ties)[0], hindsight_targets(whole, budget, ties)[row])
    assert torch.equal(one.prompts[0], whole.prompts[row]) and one.answers.tolist() == [1]
    assert tasks.one_input([3, 5000, 2]).answers.tolist() == [4995], "of any range, without listing others"


def test_kept_trajectories_follow_the_tie_rule():
    task = tasks.one_input([1, 1])
    kept = lambda budget, ties: tasks.kept_trajectories(task, budget, ties)[:, 1:].tolist()
    assert kept(1, "minus-first") == [[-1, 0]] and kept(1, "plus-first") == [[1, 0]]
    assert kept(1, "shared") == [[-1, 0], [1, 0]], "both are tied at the cut"
    assert len(kept(3, "minus-first")) == 3 and len(kept(3, "shared")) == 4


def test_live_recorded_is_of_the_same_task_alone():
    band = live.recorded(live.specs(MNNS(), "quick", [1, 16], 24, 2, 42), "quick")
    assert set(band["budget"]) == {1, 16} and set(band["seed"]) == set(TWENTY) and set(band["d_model"]) == {24}
    assert live.recorded(live.specs(live.task(1, 5, 3), "quick", [1], 24, 2, 42), "quick") is None


def test_live_specs():
    task = live.task(1, 9, 4)
    asked = live.specs(task, "quick", [16, 1, 99, 4], 24, 3, 42)
    assert [(s.method, s.supervision.budget) for s in asked] == [("CoT2", None), ("discrete CoT", 1), ("CoT2", 4)]
    assert all(s.recipe.steps == 246 and s.recipe.evaluate_every == 9 for s in asked)
    assert 60 < baselines(MNNS())["all inputs (%)"].max() < 62, "a rule without a search knows the parity"
    assert task.inputs is None and live.task(1, 9, 6).inputs == live.SAMPLED
