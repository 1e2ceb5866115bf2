"""The explorer's models in plain JavaScript are the library's: all cases in one process of node."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from cot2lib.decode import decode, replay
from cot2lib.theory.construction import Design, TrigMNNS
from cot2lib.thoughts import Base, Discrete, Rule, State, Thought

NODE = shutil.which("node")
INPUTS = [(3, 1, 8, 4), (9, 9, 9, 9), (1, 1, 1, 4), (2, 5, 7, 1)]
THINKS = {"base": Base(), "greedy": Discrete()}
CHAINS = list(product(("mnns", "prosqa"), THINKS, (False, True)))  # and whether the first thought lacks a token
DESIGNS = {
    "sigmoid": Design("sigmoid", masked=True),
    "biased": Design("biased", masked=True),
    "repaired": Design("biased", rescaled=True, masked=True),
}
CIRCLES = list(product((3.0, 300.0, 30_000.0), DESIGNS))
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node (Debian's package nodejs)")


@pytest.fixture(scope="module")
def computed(site, shown, explorer):
    """What the scripts give, by case."""
    mnns = shown["mnns"]
    tokens = lambda digits: [mnns["bos"], *(mnns["digit0"] + digit for digit in digits)]
    sums = [{"tokens": tokens(digits), "thoughts": 3} for digits in INPUTS]
    asked = {"mnns": sums, "prosqa": shown["prosqa"]["questions"]}
    digits = explorer.SHOWN["mnns"]["cot2"].task.digits.tolist()
    cases = {
        **{
            (task, rule, lacking): ("thoughts", dict(task=task, questions=asked[task], rule=rule, lacking=lacking))
            for task, rule, lacking in CHAINS
        },
        **{(c, read): ("circle", dict(inputs=INPUTS, c=c, read=read)) for c, read in CIRCLES},
        **{
            rule: ("sampled", dict(question=sums[3], rule=rule, k=20, gamma=19, draws=1500))
            for rule in ("mts", "dirichlet")
        },
        "exchanged": ("exchanged", dict(questions=sums)),
        "marked": ("marked", dict(inputs=["".join(map(str, one)) for one in digits])),
    }
    command = [NODE, str(Path(__file__).with_name("explorer.js")), str(site / "_static")]
    ran = subprocess.run(command, input=json.dumps(list(cases.values())), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return dict(zip(cases, json.loads(ran.stdout), strict=True))


def rows_of(explorer, name, shown):
    """The library's task of a component, and the rows of the questions."""
    task = next(iter(explorer.SHOWN[name].values())).task
    if name == "mnns":
        return task, [int((task.digits == torch.tensor(digits)).all(1).nonzero()) for digits in INPUTS]
    return explorer.unseen(task), [question["row"] for question in shown[name]["questions"]]


@dataclass(frozen=True)
class WithoutBest(Rule):
    """A thought that must do without its likeliest token."""

    single: bool

    def __call__(self, state: State) -> Thought:
        best = state.logits.argmax(-1, keepdim=True)
        left = state.logits.scatter(-1, best, -torch.inf)
        weights = torch.nn.functional.one_hot(left.argmax(-1), left.shape[-1]).to(left) if self.single else None
        return Thought(left.softmax(-1) if weights is None else weights)


@torch.no_grad()
def logits_of(mind, task, rows, steps):
    """Logits of the library, (question, step, vocab)."""
    padding = None if task.padding is None else task.padding[None, rows]
    prompts = task.prompt(mind.run.supervision.arrow)[None, rows]
    return decode(mind.stack, prompts, steps, padding=padding).logits[0].numpy()


@pytest.mark.parametrize("case", CHAINS, ids=str)
def test_respond_gives_the_logits_of_decode(computed, explorer, shown, case):
    name, rule, lacking = case
    task, rows = rows_of(explorer, name, shown)
    steps = [*[THINKS[rule]] * (task.steps - 1), Discrete()]
    if lacking:
        steps[0] = WithoutBest(rule == "greedy")
    expected = np.stack([logits_of(mind, task, rows, steps) for mind in explorer.minds(name)])
    found = np.array(computed[case])
    assert found.shape == expected.shape and np.abs(found - expected).max() < 1e-3


@torch.no_grad()
def test_respond_feeds_another_inputs_last_thought_as_replay_does(computed, explorer, shown):
    task, rows = rows_of(explorer, "mnns", shown)
    for mind, logits in zip(explorer.minds("mnns"), computed["exchanged"], strict=True):
        prompts = task.prompt(mind.run.supervision.arrow)[None, rows]
        fed = decode(mind.stack, prompts, [*[Base()] * 3, Discrete()]).weights[:, :, :-1].clone()
        fed[:, :, -1] = fed[:, :, -1].roll(-1, 1)
        expected = replay(mind.stack, prompts, mind.stack.mix(fed))[0, :, -1].numpy()
        assert np.abs(logits - expected).max() < 1e-3


@pytest.mark.parametrize("rule", ["mts", "dirichlet"])
def test_sampled_rules_have_the_mean_and_spread_of_the_paper(computed, rule):
    """Mean alpha, and variance alpha (1 - alpha) over K, or over gamma + 1."""
    alpha, weights = np.array(computed[rule]).T
    assert abs(weights.mean() - alpha[0]) < 0.02
    assert abs(weights.var() / (alpha[0] * (1 - alpha[0]) / 20) - 1) < 0.15


def test_the_mark_of_held_out_inputs_is_the_split(computed, explorer):
    run = explorer.SHOWN["mnns"]["cot2"]
    assert computed["marked"] == (~run.task.split(run.seed)).tolist()


@pytest.mark.parametrize("c, read", CIRCLES)
def test_the_circle_is_the_construction(computed, c, read):
    model = TrigMNNS(4, 36, DESIGNS[read], c)
    model.attention.score *= 1e6 / c  # the drawing selects exactly
    model.router.score *= 1e6 / c
    *pairs, answers = np.array(computed[c, read]).T
    assert np.allclose(np.stack(pairs, 1), model.states(INPUTS)[:, -1, :2].numpy(), rtol=0, atol=1e-9)
    assert answers.tolist() == model.solve(INPUTS).tolist()
