"""What a user can get wrong ends in one sentence that says how to mend it.

All calls are made in one process without the type checker, as a user has it: under pytest that is asked first.
"""

import json
import subprocess
import sys

import pytest

BEGIN = """
import json, sys
from dataclasses import replace
import numpy as np
import torch
from cot2lib import grpo, runs, spec
from cot2lib.errors import CoT2Error
from cot2lib.metrics import maj_at_k
from cot2lib.model import GPT2Stack
from cot2lib.specs import from_data
from cot2lib.study import live
from cot2lib.study.book.all_runs import sweep
from cot2lib.study.book.collect import collect
from cot2lib.study.policy_ratio.measure import example_climbs, sampled_gradients
from cot2lib.supervision import hindsight_targets
from cot2lib.targets import Frontier
from cot2lib.tasks import MNNS, MNNSLengths, ProsQA
from cot2lib.theory.estimators import mse_ratio
from cot2lib.thoughts import Base
from cot2lib.training.data import check_run
from cot2lib.training.settings import Supervision
nan, inf = float("nan"), float("inf")
stack = GPT2Stack(2, 9, 5, 4, 1, 1)
start, moves = torch.tensor([0.5, 0.5]), [torch.tensor([[0.9, 0.1], [0.2, 0.8]])]
said = {}
for call in json.load(sys.stdin):
    try:
        said[call] = ["gave", str(eval(call))]
    except CoT2Error as error:
        said[call] = ["said", str(error)]
    except Exception as error:
        said[call] = [type(error).__name__, str(error)]
print(json.dumps(said))
"""

SENTENCES = {
    # budgets
    "hindsight_targets(MNNS(1, 3, 2), 2.5)": "budget=2.5: give a whole number",
    "hindsight_targets(MNNS(1, 3, 2), nan)": "budget=nan: give a whole number",
    "hindsight_targets(MNNS(1, 3, 2), True)": "budget=True: give a whole number",
    "hindsight_targets(MNNS(1, 3, 2), '2')": "budget='2': give a whole number",
    # chains
    "mse_ratio(start, moves, 2.5)": "k=2.5: give a whole number",
    "mse_ratio(start, moves, inf)": "k=inf: give a whole number",
    "mse_ratio(start, moves, 0)": "k=0: a thought needs at least one token",
    "mse_ratio(start * nan, moves, 2)": "start is no distribution",
    "mse_ratio(start, [moves[0] * nan], 2)": "transitions[0] is no distribution",
    "mse_ratio(start, [torch.eye(3)], 2)": "transitions[0] is of shape (3, 3); a start of 2 tokens needs a square",
    "mse_ratio(start, [start], 2)": "transitions[0] is of shape (2,)",
    # votes, digits, sums
    "maj_at_k([[3, 2]], 1.5)": "k=1.5: give a whole number",
    "maj_at_k([[515, 515]], 515)": "k=515 votes of 1030 samples: too many ways to draw them",
    "MNNSLengths(1, 1, length=70)": "length=70: inputs of several lengths have at most 62 digits",
    "MNNS().digit_id(2.5)": "digit=2.5: give a whole number",
    "MNNS().state_id(nan)": "sum=nan: give a whole number",
    # models
    "GPT2Stack(0, 9, 5, 4, 1, 1)": "runs=0: must be at least 1",
    "GPT2Stack(1, -9, 5, 4, 1, 1)": "vocab_size=-9: must be at least 1",
    "GPT2Stack(1, 9, 5, 4, 0, 1)": "layers=0: must be at least 1",
    "GPT2Stack(1, 9, 5, 4, 1, 0)": "heads=0: must be at least 1",
    "GPT2Stack(1, 9, 5.0, 4, 1, 1)": "positions=5.0: give a whole number",
    "GPT2Stack(1, 9, 5, 4, 1, 1, seeds=[2**63])": "seed has 64 bits",
    "GPT2Stack(1, 9, 5, 4, 1, 1, seeds=[0.5])": "seed=0.5: give a whole number",
    "stack.embed(torch.tensor([[3, -1]]))": "ids -1..3: the vocabulary is 0..8",
    "stack.embed(torch.tensor([[3, 9]]))": "ids 3..9: the vocabulary is 0..8",
    # specs
    "spec(seed=2**63)": "seed has 64 bits: give a whole number between -2^63 and 2^63",
    "spec(seed=1.5)": "seed=1.5: give a whole number.",
    "spec(seed=np.array([1, 2]))": "seed=array([1, 2]): give a whole number",
    "spec(seed=torch.tensor(1.5))": "seed=tensor(1.5000): give a whole number",
    "spec(self_fed_from='a')": "self_fed_from='a': a share from 0 to below 1",
    "check_run(replace(spec(), supervision=Supervision(pauses=5)))": "prompt and outputs take 14 positions",
    "check_run(spec(task=ProsQA(inputs=20), embedding='cosine'))": "are no numbers; learn them",
    "grpo(spec('discrete', embedding='cosine, frozen'))": "take a start whose embedding table is not frozen",
    "runs.run(spec())": "RunSpec: give a list of runs",
    "runs.run([spec(), 'a'])": "'a' is no run; give what cot2lib.spec or cot2lib.grpo returns",
    "runs.load([spec()])": "[RunSpec(recipe=Recipe(",
    "runs.curves([Base()])": "Base(temperature=1.0, threshold=0.0, top=0) is no run",
    "spec(budget=4, targets=Frontier())": "budget=4, ties='minus-first': targets name their own",
    "spec('no-cot', targets=Frontier())": "targets are for thoughts that a teacher feeds",
    "spec('coconut', targets=Frontier())": "targets are for thoughts that a teacher feeds",
    "spec(targets=4)": "targets=4: give one of Targets",
    # chapters
    "sweep('controls', 'typo')": "profile 'typo' is unknown; choose one of paper, quick",
    "collect('questions', 'paper')": "questions.paper.tested: no runs of this profile are asked",
    "live.task(1, 9, 10**8)": "length=100000000: trajectories can be counted for up to 1000 digits",
    "example_climbs([2, 0], 3)": "example_ks[1]=0: must be at least 1",
    "sampled_gradients(None, [1], 8)": "lanes=8: standard errors need at least 16",
    "MNNS(1, 9, 4.0)": "length=4.0: give a whole number.",
    "spec(layers='2')": "layers='2': give a whole number.",
    "spec(lr=10**400)": "give a finite number",
    "from_data([1, 2])": "'[1, 2]' describes no spec; give a kind and its fields",
    "from_data({'kind': 'RunSpec'})": "RunSpec has other fields in this version of cot2lib",
    "from_data({'kind': 'RunSpec', 'recipe': 3})": "recipe=3: give one of Recipe",
}

VALUES = {
    "mse_ratio(start.numpy(), [m.numpy() for m in moves], np.int64(2)) == mse_ratio(start, moves, 2)": "True",
    "tuple(stack.embed(torch.zeros(2, 3, 1, dtype=torch.long)).shape)": "(2, 3, 1, 4)",
    "tuple(stack.embed(torch.zeros(0, 2, dtype=torch.long)).shape)": "(2, 0, 2, 4)",
    "GPT2Stack(np.int64(1), 9, 5, 4, 1, 1, seeds=np.array([3])).embed(torch.tensor([[8]])).numel()": "4",
    "hindsight_targets(MNNS(1, 3, 2), np.int64(2)).sum().item()": "18.0",
    "spec('cot2', lr=1).id == spec('cot2', lr=1.0).id": "True",
    "spec(lr=np.float32(0.5)).id == spec(lr=0.5).id": "True",
    "type(Base(temperature=1).temperature)": "<class 'float'>",
}


@pytest.fixture(scope="module")
def said():
    """What each call ended in."""
    calls = json.dumps([*SENTENCES, *VALUES])
    out = subprocess.run([sys.executable, "-c", BEGIN], input=calls, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


@pytest.mark.parametrize("call", SENTENCES)
def test_a_wrong_value_ends_in_one_sentence(said, call):
    how, text = said[call]
    assert how == "said" and SENTENCES[call] in text and text.count("\n") == 0 and len(text) < 250, (how, text)


@pytest.mark.parametrize("call", VALUES)
def test_right_values_are_still_taken(said, call):
    assert said[call] == ["gave", VALUES[call]]
