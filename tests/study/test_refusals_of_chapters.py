"""What a chapter or a language model cannot run with ends in one sentence that names it."""

import pandas as pd
import pytest
from builders import QUESTIONS, small_specs

from cot2lib import passk, policy_gradient, spec
from cot2lib.errors import CoT2Error
from cot2lib.llm import gsm8k, models
from cot2lib.llm.policy import PolicyRecipe
from cot2lib.llm.settings import LanguageRun
from cot2lib.model import GPT2Stack
from cot2lib.study import (
    capacity,
    check,
    construction,
    grpo_dirichlet,
    live,
    measured,
    policies,
    policy_ratio,
    probes,
    sample_complexity,
    sampling,
    speed,
    tasks,
)
from cot2lib.study.controls import outcomes
from cot2lib.study.gsm8k_runs import word_problems
from cot2lib.study.measured import collect
from cot2lib.study.prosqa import questions
from cot2lib.study.sweeps import of_chapter
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.thoughts import MTS, Base, Discrete
from cot2lib.training.supervised import build_stack

pytestmark = pytest.mark.usefixtures("store", "nothing_shipped")

QUICK = dict(steps=10, prompts=3, group=4, lr=1e-3, limit=8)
KS, GRAPHS = [1, 2, 8], ProsQA(inputs=60)


def law(task, k):
    return policy_gradient.law(GPT2Stack(1, task.vocab_size, task.positions, 8, 1, 1).double(), task, MTS(k))


def probed(method, inputs):
    specs = small_specs(method)
    return probes.probed(build_stack(specs), specs, inputs)


REFUSALS = [
    # commands
    ("profile 'typo' is unknown; choose one of paper, quick", lambda: of_chapter("controls", "typo")),
    ("nothing is measured for questions under 'paper'", lambda: measured.measure("questions", "paper")),
    ("no finished run of csft.paper is in", lambda: collect("csft", "paper")),
    ("chapter 'nowhere' has no runs", lambda: collect("nowhere", "paper")),
    ("'nowhere' is not measured; choose one of sampling", lambda: measured.measure("nowhere")),
    ("profile 'typo' is unknown", lambda: measured.measure("experts", "typo")),
    ("sampling is measured on models: `cot2 measure sampling`", lambda: collect("sampling", "quick")),
    ("budget: parameter 'profile' is missing", lambda: check.begin("budget", {})),
    ("cot2 run prosqa", lambda: questions.of_file(QUESTIONS)),
    ("cannot be read", lambda: questions.of_file("none.json")),
    ("naming='old'", lambda: questions.of_file(QUESTIONS, "old")),
    ("`python benchmarks/record.py`", lambda: speed.timed("none")),
    # tasks, sums, trajectories
    ("length=100000000: must be at most 1000", lambda: live.task(1, 9, 10**8)),
    ("fewer than 5 different multisets", lambda: live.task(5, 5, 4)),
    ("live_steps=1", lambda: live.rewards([], MTS(2), 1, 1e-3)),
    ("budget B=5: an input has 4 trajectories", lambda: tasks.trajectories([1, 2], [5])),
    ("ties='random'", lambda: tasks.trajectories([1, 2], [1], "random")),
    ("choose 1 to 12 digits", lambda: tasks.one_input([1] * 13)),
    ("digits -1..2: need 0 <= low <= high", lambda: tasks.one_input([-1, 2])),
    # capacity and construction
    ("dimensions are whole numbers from 1 on", lambda: capacity.checked(73, [4], 0.5, [8, 0])),
    ("live_vocab=10: the sweep's budgets go to 16", lambda: capacity.checked(10, [4], 0.5, [8])),
    ("budget=74", lambda: capacity.checked(73, [74], 0.5, [8])),
    ("live_share=0.0", lambda: capacity.checked(73, [4], 0.0, [8])),
    ("choose 1 to 6 digits", lambda: construction.on_the_circle([1] * 7)),
    ("lengths[0]=0: must be at least 1", lambda: construction.smallest([0])),
    # estimates, sampling, policy ratios
    ("ks=[0]", lambda: sample_complexity.checked([0], 4)),
    ("steps=1", lambda: sample_complexity.checked(KS, 1)),
    ("steps=9", lambda: sample_complexity.checked(KS, 9)),
    ("inputs=1: choose 2 to", lambda: probed("cot2", 1)),
    ("inputs=1000000: choose 2 to", lambda: probed("cot2", 10**6)),
    ("no-CoT has no mixtures", lambda: probed("no-cot", 4)),
    ("rollouts=1: give two or more", lambda: probes.consistency(None, [2], 1)),
    ("top_k=10", lambda: sampling.checked(10, [1])),
    ("ks=[20]", lambda: sampling.checked(0, [20])),
    ("samples=13: Pass@k up to k = 14 needs at least 14 samples", lambda: passk.measure(None, [], 13)),
    ("dropout=1.5", lambda: policy_ratio.dropout({}, [1], 1.5)),
    ("exact_ks=[6]", lambda: policy_ratio.exact_gradients(([], None), [6])),
    ("drawn_samples=0: must be at least 1", lambda: grpo_dirichlet.scales(None, [20.0], 0)),
    ("example_ks[1]=0: must be at least 1", lambda: policy_ratio.example_climbs([2, 0], 3)),
    ("lanes=8: standard errors need at least 16", lambda: policy_ratio.sampled_gradients(None, [1], 8)),
    ("has 3 thoughts a trace", lambda: law(MNNS(1, 2, 4), 1)),
    ("each are too many to list; lower k", lambda: law(MNNS(1, 3, 2), 6)),
    # graphs, controls
    ("question=60: the test has questions 0..59", lambda: questions.thoughts(spec(task=GRAPHS), GRAPHS, 60)),
    ("no run of these seeds", lambda: outcomes.read([1])),
    ("none of these runs is recorded", lambda: policies.of_one(pd.DataFrame({"profile": []}), "quick")),
    # language models
    ("profile 'x'", lambda: word_problems("x")),
    ("group=1", lambda: PolicyRecipe(**QUICK | dict(group=1))),
    ("limit=0", lambda: PolicyRecipe(**QUICK | dict(limit=0))),
    ("enter=0.9, full=0.8", lambda: PolicyRecipe(**QUICK | dict(enter=0.9))),
    ("k=0", lambda: PolicyRecipe(**QUICK | dict(k=0))),
    ("thoughts=-1", lambda: PolicyRecipe(**QUICK | dict(thoughts=-1))),
    ("thought=Base", lambda: PolicyRecipe(**QUICK | dict(thoughts=2), thought=Base())),
    ("a rule that samples and has a density", lambda: PolicyRecipe(**QUICK | dict(thoughts=2), thought=Discrete())),
    ("the small model knows the words of stories alone", lambda: LanguageRun(PolicyRecipe(**QUICK), data="gsm8k")),
    ("train.jsonl: No such file", lambda: gsm8k.load("training", "nowhere")),
    ("copy FOLDER here", lambda: models.pretrained("nowhere")),
]


@pytest.mark.parametrize("named, call", REFUSALS, ids=[named for named, _ in REFUSALS])
def test_refusals_of_chapters_are_one_sentence(named, call):
    with pytest.raises(CoT2Error) as refused:
        call()
    assert named in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 700
