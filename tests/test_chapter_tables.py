"""Tables and sentences of the chapter csft, by small hand-made frames; the input that the chapter tasks draws."""

import pandas as pd
import pytest
import torch

from cot2lib.errors import SpecError
from cot2lib.study.analysis import guessing, live, trees
from cot2lib.study.figures import csft, tasks
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS


def runs(method, shares, d_model=32, profile="paper", seeds=None, **columns):
    """One row per share; other columns are made from it, each in its own way."""
    shares = pd.Series(shares)
    made = {"last": shares, "closing_mean": shares - 0.01, "best": shares + 0.02, "split_half": shares + 0.01}
    named = dict(method=method, d_model=d_model, profile=profile, seed=seeds or range(42, 42 + len(shares)))
    return pd.DataFrame(made | named | columns)


ROWS = pd.concat(
    [
        runs("CoT2", [0.90, 0.92, 0.94]),
        runs("discrete CoT", [0.80, 0.95, 0.70, 0.10], seeds=[44, 43, 42, 45]),
        runs("CoT2", [0.50, 0.60], profile="quick"),
        runs("CoT2", [0.30], d_model=20),
    ],
    ignore_index=True,
)


def test_advantage_pairs_by_seed():
    ours, theirs = csft.advantage(ROWS, "paper", 32)
    assert ours.tolist() == pytest.approx([90, 92, 94]) and theirs[ours.index].tolist() == pytest.approx([70, 95, 80])
    assert csft.advantage(ROWS, "quick", 32) is None


def test_findings_count_the_seeds_ahead():
    (sentence,) = csft.findings(ROWS)
    assert sentence.startswith(
        "**authors' recipe, d = 32**: CoT2 92.0 %, discrete CoT 81.7 %. CoT2 is 10.3\N{NO-BREAK SPACE}["
    )
    assert sentence.endswith("points above discrete CoT, and ahead on 2 of 3 seeds.")


def test_a_cell_of_two_outcomes_is_told():
    apart = runs("no-CoT", [0.31, 0.70, 0.16, 0.42, 0.71])
    (sentence,) = csft.two_outcomes(pd.concat([ROWS, apart], ignore_index=True))
    assert (
        sentence
        == "**authors' recipe, no-CoT, d = 32**: 2 of 5 runs end at 70 to 71 %, 3 of 5 runs end at 16 to 42 %."
    )
    alone = runs("no-CoT", [0.5, 0.5, 0.704, 0.5, 0.5])
    assert csft.two_outcomes(alone)[0].endswith("1 of 5 runs ends at 70 %, 4 of 5 runs end at 50 %.")
    assert csft.two_outcomes(alone.assign(last=alone["last"].clip(upper=0.69))) == [], "not far enough apart"
    assert csft.two_outcomes(alone[1:]) == [], "too few runs to speak of groups"


def test_selection_table_has_the_mean_of_each_choice():
    table = csft.selection_table(ROWS).set_index(["recipe", "method", "d"])
    row = table.loc[("authors' recipe", "CoT2", 32)]
    assert row.to_dict() == pytest.approx({"last": 92.0, "last ten": 91.0, "best": 94.0, "split half": 93.0})
    assert len(table) == 4


def test_final_table_leaves_empty_what_nobody_gives():
    table = csft.final_table(ROWS).set_index(["method", "d"])
    assert table.loc[("CoT2", 32), "paper"] == 98.94 and pd.isna(table.loc[("CoT2", 20), "paper"])
    assert (
        table.loc[("CoT2", 32), "ours, quick recipe"].endswith("n=2")
        and table.loc[("CoT2", 20), "ours, quick recipe"] == ""
    )


def test_epochs_to_is_the_first_time_and_counts_the_runs():
    curve = lambda seed, accuracy: pd.DataFrame(
        {
            "seed": seed,
            "accuracy": accuracy,
            "epoch": [2.0, 4.0, 6.0],
            "method": "CoT2",
            "d_model": 32,
            "profile": "quick",
        }
    )
    curves = pd.concat([curve(42, [0.1, 0.6, 0.5]), curve(43, [0.5, 0.6, 0.8]), curve(44, [0.1, 0.2, 0.95])])
    row = csft.epochs_to(curves, (0.5, 0.7, 0.9)).iloc[0]
    assert (row["50%"], row["70%"], row["90%"]) == ("4 (3/3)", "6 (2/3)", "not by half (1/3)")


def test_cost_tells_cores_from_graphics_processors():
    rows = pd.concat(
        [
            runs("CoT2", [0.9, 0.9], device="cpu (a)", seconds=60.0, threads=2),
            runs("CoT2", [0.9], device="NVIDIA H100", seconds=30.0, threads=16),
        ]
    )
    said = csft.cost(rows)
    assert "took 2.0 core-minutes on average (cpu (a))" in said
    assert "took 0.5 GPU-minutes on average (NVIDIA H100)" in said


# The input that is drawn


@pytest.mark.parametrize("ties", ["minus-first", "plus-first", "shared"])
@pytest.mark.parametrize("budget", [1, 3, 8])
def test_the_drawn_input_is_the_one_of_the_full_task(budget, ties):
    whole, digits = MNNS(1, 4, 3), torch.tensor([2, 1, 4])
    row = int((whole.digits == digits).all(1).nonzero()[0, 0])
    one = trees.one_input([2, 1, 4])
    assert torch.equal(hindsight_targets(one, budget, ties)[0], hindsight_targets(whole, budget, ties)[row])
    assert torch.equal(one.prompts[0], whole.prompts[row]) and one.answers.tolist() == [1]


def test_digits_of_any_range_are_drawn_without_listing_others():
    task = trees.one_input([3, 5000, 2])
    assert task.digits.tolist() == [[3, 5000, 2]] and task.answers.tolist() == [4995]
    tasks.trajectories(range(1, 13), [5], "plus-first")


def test_kept_trajectories_follow_the_tie_rule():
    task = trees.one_input([1, 1])
    kept = lambda budget, ties: trees.kept_trajectories(task, budget, ties)[:, 1:].tolist()
    assert kept(1, "minus-first") == [[-1, 0]] and kept(1, "plus-first") == [[1, 0]]
    assert kept(1, "shared") == [[-1, 0], [1, 0]], "both are tied at the cut"
    assert len(kept(3, "minus-first")) == 3 and len(kept(3, "shared")) == 4


def test_every_branch_is_drawn_once():
    paths = trees.kept_trajectories(trees.one_input([1, 1]), 4, "minus-first")
    ends = sorted(map(tuple, tasks._branches(paths).reshape(-1, 4).tolist()))
    assert ends == [(0, 0, 1, -1), (0, 0, 1, 1), (1, -1, 2, -2), (1, -1, 2, 0), (1, 1, 2, 0), (1, 1, 2, 2)]


@pytest.mark.parametrize(
    "ask, names",
    [
        (lambda: trees.one_input([]), "digits=.*choose 1 to 12 digits"),
        (lambda: trees.one_input([1] * 13), "choose 1 to 12 digits"),
        (lambda: trees.one_input([-1, 2]), "need 0 <= low <= high"),
        (lambda: tasks.trajectories([1, 2], []), "at least one budget"),
        (lambda: tasks.trajectories([1, 2], [5]), "budget B=5: an input has 4 trajectories"),
        (lambda: tasks.trajectories([1, 2], [1], "random"), "ties='random'"),
        (lambda: guessing.splits(MNNS(), []), "at least one seed"),
        (lambda: live.task(5, 5, 4), "fewer than 5 different multisets"),
        (lambda: live.task(9, 1, 4), "digits 9..1"),
        (lambda: live.specs(MNNS(), "quick", [], 16, 1, 42), "no live budget"),
    ],
)
def test_what_cannot_be_drawn_or_trained_is_named(ask, names):
    with pytest.raises(SpecError, match=names):
        ask()


def test_a_live_task_of_many_inputs_is_sampled():
    assert live.task(1, 9, 4).inputs is None and live.task(1, 9, 6).inputs == live.SAMPLED


def test_formats_show_what_each_method_reads_and_writes():
    """SETTINGS of the public code: no arrow for CoT2, as many arrows as steps for pauses."""
    lines = dict(line.split(": ", 1) for line in tasks.formats(MNNS(1, 2, 3), "paper"))
    assert lines["cot2"] == "`<BOS> D1 D1 D1` then `S? S? S?`, loss on the outputs"
    assert lines["discrete"] == "`<BOS> D1 D1 D1 ->` then `S? S? S? <EOS>`, loss on the sequence"
    assert lines["pause"] == "`<BOS> D1 D1 D1 -> -> ->` then `S? <EOS>`, loss on the sequence"
    assert "->" in tasks.formats(MNNS(1, 2, 3), "quick")[0]
