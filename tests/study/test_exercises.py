"""The numbers that solutions of exercises state."""

import itertools
import json
import re
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import pandas as pd
import pytest
import torch
from builders import ROOT

import cot2
import cot2lib
from cot2lib import Rule, Thought, losses
from cot2lib.locality import seen
from cot2lib.metrics import pass_at_k
from cot2lib.study import judge
from cot2lib.study.targets import baselines
from cot2lib.supervision import trajectory_shares
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.testing import check_rule
from cot2lib.theory import chains, estimators
from cot2lib.theory.construction import TrigMNNS
from cot2lib.thoughts import State


def solved(chapter, *cells, fill=None, label="", **names):
    """Run some cells of a chapter, or take names instead, then its exercise, filled in as the solution begins.

    The first one, unless a `label` names another.
    """
    source = json.loads((ROOT / f"notebooks/{chapter}.ipynb").read_text())["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in source}
    text = sources["exercise"].partition(f":label: {label}")[2]
    code, answer = re.search(r"```python\n(.*?)```.*?:class: dropdown\n\n`(.+?)`", text, re.DOTALL).groups()
    assert code.count("blank") == 1
    space = dict(names)
    before = () if names else map(sources.get, ("parameters", "imports", *cells))
    for part in (*before, code.replace("blank", fill or answer)):
        exec(part, space)
    return space


def printed(capsys):
    """The numbers of each line that was printed."""
    return [[float(word) for word in line.split()] for line in capsys.readouterr().out.splitlines()]


def test_sums_have_one_parity_and_the_answer_is_at_most_the_largest_digit(capsys):
    task = cot2lib.MNNS()
    sums, total = task.signed_sums()[:, :, -1], solved("tasks", mnns=task)["total"]
    assert ((sums - task.digits.sum(1)[:, None]) % 2 == 0).all()
    assert (task.answers <= task.digits.amax(1)).all()
    bounded, found = capsys.readouterr().out.split()
    rules = baselines(task)["all inputs (%)"]
    assert (sums == total[:, None]).any(1).all() and bounded == "True"
    assert rules[0] < 100 * float(found) < rules[1]


@pytest.mark.parametrize("digits, entropy", [((3, 1), 2 * np.log(2)), ((1, 1), 1.5 * np.log(2))])
def test_the_entropy_of_a_second_target(digits, entropy, capsys):
    task = cot2lib.MNNS(1, 9, 3)
    row = int((task.digits == torch.tensor([*digits, 1])).all(1).nonzero())
    target = cot2lib.hindsight_targets(task, rows=torch.tensor([row]))[0, 1]
    assert float(torch.special.entr(target).sum()) == pytest.approx(entropy)
    solved("csft", np=np)
    assert [*digits, pytest.approx(entropy / np.log(2))] in printed(capsys)


def test_small_budgets_keep_right_trajectories_alone(capsys):
    """How many of those kept of 1, 1, 1, 1 end at 0."""
    task = cot2lib.MNNS(1, 1, 4)
    ends = lambda budget, ties: trajectory_shares(task, budget, ties, torch.tensor([0]))[0, -1]  # (state,)
    for ties in ("minus-first", "plus-first"):
        right = {budget: budget * float(ends(budget, ties)[task.start]) for budget in (1, 2, 4, 8, 16)}
        assert right == pytest.approx({1: 1, 2: 2, 4: 4, 8: comb(4, 2), 16: 6})
    solved("budget")
    assert {budget: budget * share for budget, share in printed(capsys)} == pytest.approx(right)


def test_pass_at_k_of_two_answers(capsys):
    chances = {tuple(draw): 0.25 for draw in itertools.product((0, 1), repeat=2)}
    plain = sum(chance * (1 - (1 - sum(draw) / 2) ** 2) for draw, chance in chances.items())
    unbiased = sum(chance * float(pass_at_k(sum(draw), 2, 2)) for draw, chance in chances.items())
    assert (plain, unbiased) == (5 / 8, 3 / 4)
    solved("sampling")
    assert printed(capsys) == [[plain, unbiased, unbiased]]


def test_where_the_printed_construction_is_wrong_on_three_digits(capsys):
    digits = list(itertools.product(range(1, 10), repeat=3))
    answers = TrigMNNS(3, 27, "as-written").solve(digits).tolist()
    wrong = [row for row, said, right in zip(digits, answers, cot2lib.MNNS(1, 9, 3).answers.tolist()) if said != right]
    assert wrong == [row for row in digits if 2 * max(row) == sum(row)]
    assert answers[digits.index((1, 1, 2))] == 2
    filled = solved("construction")["wrong"].tolist()
    assert wrong == list(itertools.compress(digits, filled)) and capsys.readouterr().out == "True tensor([2])\n"


def test_one_dimension_shows_no_token_of_three():
    most = {}  # probability of each token, by dimension
    for d, fill in ((1, "0 * x"), (2, None)):
        space = solved("capacity", torch=torch, fill=fill)
        most[d] = (space["hidden"] @ space["embeddings"].T).softmax(1).amax(0)
    assert most[1][1] <= 0.5 and most[2].min() > 0.99


def test_the_distance_of_a_thought_to_its_distribution(capsys):
    torch.manual_seed(0)
    solved("method", label="ex-method-mts", torch=torch, cot2=cot2)
    for k, measured, expected in printed(capsys):
        assert measured == pytest.approx(expected, rel=0.05) and expected == pytest.approx(0.62 / k)


def test_steps_that_see_one_digit():
    """The mask that the solution fills in is the library's, and replaces an argument that `cot2.py` has."""
    sees = solved("method", label="ex-method-local", torch=torch)["sees"]
    assert torch.equal(sees, seen(cot2lib.MNNS(), "strict", 6)[:9, :9])
    assert (ROOT / "cot2.py").read_text().count("is_causal=True") == 1


def test_a_group_teaches_nothing_least_often_where_half_of_the_traces_are_right(capsys):
    space = solved("grpo_mts", torch=torch)
    p, silent = space["p"], space["silent"]
    assert p[silent.argmin()] == 0.5 and silent.min() == 2**-7 and silent[0] == silent[-1] == 1
    rewards = torch.tensor(list(itertools.product((0.0, 1.0), repeat=8)))  # every group, all as likely at p = 1/2
    teaches = losses.advantages(rewards[None])[0].any(-1)
    assert int((~teaches).sum()) / len(rewards) == silent.min()


def test_the_mean_of_a_root_is_a_power_of_one_draws_mean(capsys):
    old, new = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.7, 0.2, 0.1])  # as in the chapter
    solved("policy_ratio", old=old, new=new)
    for k, mean in printed(capsys):
        draws = torch.cartesian_prod(*[torch.arange(3)] * int(k)).view(-1, int(k))
        tokens = [policy.log()[draws][None, :, None] for policy in (new, old)]
        listed = (old[draws].prod(-1) * losses.log_ratios(*tokens, "geometric").exp().flatten()).sum()
        assert mean == pytest.approx(float(listed), abs=1e-3) and (mean == 1) == (k == 1)


def test_a_scale_of_five_is_as_noisy_as_six_tokens(capsys):
    torch.manual_seed(0)
    points, means = (solved("grpo_dirichlet", torch=torch)[name].var(0) for name in ("points", "means"))
    assert torch.allclose(points, means, rtol=0.02)


def test_how_often_a_thought_is_a_word(capsys):
    chances = solved("gsm8k", torch=torch)["chances"]
    for k, share in printed(capsys):
        draws = torch.cartesian_prod(*[torch.arange(3)] * int(k)).view(-1, int(k))
        same = (draws == draws[:, :1]).all(-1)
        assert share == pytest.approx(float(chances[draws[same]].prod(-1).sum()), abs=1e-3)


def test_walks_along_edges_are_the_targets_of_prontoqa(capsys):
    task = ProntoQA(inputs=100, reading="reachable", naming="once")  # as in the chapter
    solved("prontoqa", task=task)
    for line, target in zip(capsys.readouterr().out.splitlines(), cot2lib.hindsight_targets(task)[0], strict=False):
        weights = [float(number) for number in re.findall(r"0\.\d+", line)]
        assert weights == pytest.approx(target[target > 0].tolist(), abs=1e-4)
    assert len(weights) == 4 and line.startswith("6")


@pytest.mark.parametrize("fill, answer", [(None, "S3"), ("(3,)", "S1")])
def test_a_thought_without_the_sums_that_lead_to_the_answer(fill, answer, capsys):
    solved("controls", "live", fill=fill)
    assert capsys.readouterr().out.split()[-1] == answer


def test_the_ratio_of_two_copied_tokens(capsys):
    solved("sample_complexity")
    ratio = estimators.mse_ratio(*chains.identity(2, 3), 2)
    assert printed(capsys)[-1][-1] == pytest.approx(ratio) == 7 / 4
    assert estimators.mse_ratio(*chains.identity(2, 200), 2) == pytest.approx(2)


def test_a_fifth_of_the_likeliest_keeps_the_whole_set():
    nothing = lambda asked: [pd.DataFrame(columns=["rule", "last"])]  # in place of training
    names = dict(dataclass=dataclass, replace=replace, Rule=Rule, Thought=Thought, Sharpened=float, wanted=[])
    even = solved("extend", trained=nothing, **names)["Even"]
    check_rule(even(), 100, 8)
    targets = cot2lib.hindsight_targets(cot2lib.MNNS())[:, :-1].flatten(0, 1)[None].float()  # (run, thought, vocab)
    fed = lambda least: even(least)(State(targets.log(), *[None] * 4)).weights
    inside = (targets > 0).float()
    assert torch.allclose(fed(0.2), inside / inside.sum(-1, keepdim=True))
    assert (inside * targets.amax(-1, keepdim=True) / targets.where(targets > 0, 1)).max() == pytest.approx(3)
    assert ((fed(0.5) == 0) & (targets > 0)).any()


def test_one_chain_in_twelve_reaches_the_answer(capsys):
    task = ProsQA(inputs=100, hops=4)  # as in the chapter
    edges = task.edges[0][task.edges[0, :, 0] >= 0]
    space = solved("prosqa", task=task, edges=edges, torch=torch)
    answer = task.options[0, 0]

    def reached(node, hops):
        """The probability that a chain which takes some more hops from a node ends at the answer."""
        onward = [end for start, end in space["edges"].tolist() if start == node]
        return sum(reached(end, hops - 1) for end in onward) / max(len(onward), 1) if hops else float(node == answer)

    assert float(space["chance"][answer]) == pytest.approx(reached(int(task.root[0]), 4)) == pytest.approx(1 / 12)
    for line, target in zip(capsys.readouterr().out.splitlines(), cot2lib.hindsight_targets(task)[0], strict=False):
        nodes = target[task.state_ids].nonzero()[:, 0]
        assert [int(name) for name in re.findall(r"N(\d+) 0", line)] == nodes.tolist()


def test_work_and_launching_give_the_recorded_rates(capsys):
    space = solved("speed", "records")
    one, sixteen, work = (space[name] for name in ("one", "sixteen", "work"))
    assert (one - work) + 16 * work == pytest.approx(sixteen) and one - work > one / 2
    predicted, recorded = map(int, re.findall(r"(\d+)(?: steps a second|$)", capsys.readouterr().out.strip()))
    assert recorded < predicted < 1 / work


def test_nineteen_runs_are_needed(capsys):
    solved("ledger", pd=pd, judge=judge, stated=97.5)  # as in the chapter
    assert capsys.readouterr().out.splitlines() == ["18 0.053 undecided", "19 0.05 differs"]
