"""The numbers that solutions of exercises state."""

import itertools
import json
import re
from math import comb

import numpy as np
import pytest
import torch
from builders import ROOT

import cot2lib
from cot2lib import losses
from cot2lib.locality import seen
from cot2lib.metrics import pass_at_k
from cot2lib.supervision import trajectory_shares
from cot2lib.tasks import ProntoQA
from cot2lib.theory import chains, estimators
from cot2lib.theory.construction import TrigMNNS


def solved(chapter, exercise, cells=(), **blanks):
    """Run some cells of a chapter, then the code of its exercise with the blanks filled in."""
    source = json.loads((ROOT / f"notebooks/{chapter}.ipynb").read_text())["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in source}
    (code,) = re.findall(rf":label: {exercise}\n.*?```python\n(.*?)```", sources["exercise"], re.DOTALL)
    space = dict(blanks)
    for part in (*map(sources.get, ("parameters", "imports", *cells)), code):
        exec(part, space)
    return space


def test_sums_have_one_parity_and_the_answer_is_at_most_the_largest_digit():
    task = cot2lib.MNNS()
    assert ((task.signed_sums()[:, :, -1] - task.digits.sum(1)[:, None]) % 2 == 0).all()
    assert (task.answers <= task.digits.amax(1)).all()


@pytest.mark.parametrize("digits, entropy", [((3, 1), 2 * np.log(2)), ((1, 1), 1.5 * np.log(2))])
def test_the_entropy_of_a_second_target(digits, entropy):
    task = cot2lib.MNNS(1, 9, 3)
    row = int((task.digits == torch.tensor([*digits, 1])).all(1).nonzero())
    target = cot2lib.hindsight_targets(task, rows=torch.tensor([row]))[0, 1]
    assert float(torch.special.entr(target).sum()) == pytest.approx(entropy)


def test_small_budgets_keep_right_trajectories_alone():
    """How many of those kept of 1, 1, 1, 1 end at 0."""
    task = cot2lib.MNNS(1, 1, 4)
    ends = lambda budget, ties: trajectory_shares(task, budget, ties, torch.tensor([0]))[0, -1]  # (state,)
    for ties in ("minus-first", "plus-first"):
        right = {budget: budget * float(ends(budget, ties)[task.start]) for budget in (1, 2, 4, 8, 16)}
        assert right == pytest.approx({1: 1, 2: 2, 4: 4, 8: comb(4, 2), 16: 6})


def test_pass_at_k_of_two_answers():
    chances = {tuple(draw): 0.25 for draw in itertools.product((0, 1), repeat=2)}
    plain = sum(chance * (1 - (1 - sum(draw) / 2) ** 2) for draw, chance in chances.items())
    unbiased = sum(chance * float(pass_at_k(sum(draw), 2, 2)) for draw, chance in chances.items())
    assert (plain, unbiased) == (5 / 8, 3 / 4)


def test_where_the_printed_construction_is_wrong_on_three_digits():
    digits = list(itertools.product(range(1, 10), repeat=3))
    answers = TrigMNNS(3, 27, "as-written").solve(digits).tolist()
    wrong = [row for row, said, right in zip(digits, answers, cot2lib.MNNS(1, 9, 3).answers.tolist()) if said != right]
    assert wrong == [row for row in digits if 2 * max(row) == sum(row)]
    assert answers[digits.index((1, 1, 2))] == 2


def test_one_dimension_shows_no_token_of_three():
    logits = torch.tensor([[0.0], [0.4], [1.0]]) @ torch.linspace(-50, 50, 101)[None]  # (token, hidden state)
    assert logits.softmax(0)[1].max() <= 0.5


def test_steps_that_see_one_digit():
    """The mask that the solution fills in is the library's, and replaces an argument that `cot2.py` has."""
    sees = torch.eye(9, dtype=torch.bool)
    for step in range(4):
        sees[5 + step, 1 + step] = True
    assert torch.equal(sees, seen(cot2lib.MNNS(), "strict", 6)[:9, :9])
    assert (ROOT / "cot2.py").read_text().count("is_causal=True") == 1


def filled(chapter, **names):
    """What the code of a chapter's exercise makes of names, its blank filled in with the beginning of the solution."""
    cells = json.loads((ROOT / "notebooks" / f"{chapter}.ipynb").read_text())["cells"]
    (text,) = ("".join(cell["source"]) for cell in cells if cell["id"] == "exercise")
    code, answer = re.search(r"```python\n(.*?)```.*:class: dropdown\n\n`(.+?)`", text, re.DOTALL).groups()
    assert code.count("blank") == 1
    exec(code.replace("blank", answer), space := {"torch": torch} | names)
    return space


def test_a_group_teaches_nothing_least_often_where_half_of_the_traces_are_right(capsys):
    space = filled("grpo_mts")
    p, silent = space["p"], space["silent"]
    assert p[silent.argmin()] == 0.5 and silent.min() == 2**-7 and silent[0] == silent[-1] == 1
    rewards = torch.tensor(list(itertools.product((0.0, 1.0), repeat=8)))  # every group, all as likely at p = 1/2
    teaches = losses.advantages(rewards[None])[0].any(-1)
    assert int((~teaches).sum()) / len(rewards) == silent.min()


def test_the_mean_of_a_root_is_a_power_of_one_draws_mean(capsys):
    old, new = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.7, 0.2, 0.1])  # as in the chapter
    filled("policy_ratio", old=old, new=new)
    for line in capsys.readouterr().out.splitlines():
        k, mean = int(line.split()[0]), float(line.split()[1])
        draws = torch.cartesian_prod(*[torch.arange(3)] * k).view(-1, k)
        tokens = [policy.log()[draws][None, :, None] for policy in (new, old)]
        listed = (old[draws].prod(-1) * losses.log_ratio(*tokens, "geometric").exp().flatten()).sum()
        assert mean == pytest.approx(float(listed), abs=1e-3) and (mean == 1) == (k == 1)


def test_a_scale_of_five_is_as_noisy_as_six_tokens(capsys):
    torch.manual_seed(0)
    points, means = (filled("grpo_dirichlet")[name].var(0) for name in ("points", "means"))
    assert torch.allclose(points, means, rtol=0.02)


def test_how_often_a_thought_is_a_word(capsys):
    chances = filled("gsm8k")["chances"]
    for line in capsys.readouterr().out.splitlines():
        k, share = int(line.split()[0]), float(line.split()[1])
        draws = torch.cartesian_prod(*[torch.arange(3)] * k).view(-1, k)
        same = (draws == draws[:, :1]).all(-1)
        assert share == pytest.approx(float(chances[draws[same]].prod(-1).sum()), abs=1e-3)


def test_walks_along_edges_are_the_targets_of_prontoqa(capsys):
    task = ProntoQA(inputs=100, reading="reachable", naming="once")  # as in the chapter
    filled("prontoqa", task=task)
    for line, target in zip(capsys.readouterr().out.splitlines(), cot2lib.hindsight_targets(task)[0], strict=False):
        weights = [float(number) for number in re.findall(r"0\.\d+", line)]
        assert weights == pytest.approx(target[target > 0].tolist(), abs=1e-4)
    assert len(weights) == 4 and line.startswith("6")


@pytest.mark.parametrize("which, answer", [((3, -3), "S3"), ((3,), "S1")])
def test_a_thought_without_the_sums_that_lead_to_the_answer(which, answer, capsys):
    solved("controls", "ex-controls-removed", ["live"], which=which)
    assert capsys.readouterr().out.split()[-1] == answer


def test_the_ratio_of_two_copied_tokens(capsys):
    solved("sample_complexity", "ex-copies", shares=[1, 1, 1])
    ratio = estimators.mse_ratio(*chains.identity(2, 3), 2)
    assert float(capsys.readouterr().out.split()[-1]) == pytest.approx(ratio) == 7 / 4
    assert estimators.mse_ratio(*chains.identity(2, 200), 2) == pytest.approx(2)
