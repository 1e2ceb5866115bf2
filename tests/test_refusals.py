"""A wrong value ends in one sentence that names it."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest
import torch
from builders import QUESTIONS, REWARDED, SMALLER_SUMS, SPECS, reward_trainer, rewarded, short, start

from cot2lib import grpo, losses, runs, spec
from cot2lib.decode import decode, rules
from cot2lib.errors import CoT2Error
from cot2lib.kit.frozen import distinct
from cot2lib.metrics import maj_at_k, mean_interval, paired_interval, pass_at_k, prediction_interval
from cot2lib.model import GPT2Stack
from cot2lib.specs import GRPOSpec, Model, Supervision, from_data
from cot2lib.specs.profiles import shortened
from cot2lib.supervision import hindsight_targets
from cot2lib.targets import FreshPath, Frontier
from cot2lib.tasks import MNNS, MNNSLengths, ProntoQA, ProsQA
from cot2lib.tasks.prosqa import published
from cot2lib.testing import check_rule, check_targets, check_task
from cot2lib.theory import chains
from cot2lib.theory.construction import Design, TrigMNNS
from cot2lib.theory.estimators import mse_ratio
from cot2lib.theory.variants import CosineMNNS
from cot2lib.thoughts import MTS, Always, Base, Dirichlet, Discrete, Gaussian, Gumbel, Rule, Systematic, Thought
from cot2lib.training.data import check_run, stack_data
from cot2lib.training.supervised import build_stack

pytestmark = pytest.mark.usefixtures("store", "nothing_shipped")

NAN, INF = float("nan"), float("inf")
SUMS, GRAPHS = MNNS(1, 3, 2), ProsQA(inputs=200)
FAIR, MOVES = torch.tensor([0.5, 0.5]), [torch.tensor([[0.9, 0.1], [0.2, 0.8]])]
SEEDED = pd.Series([1.0], [42])
SHAPE = (1, 9, 5, 4, 1, 1)


class Bare(Rule):
    def __call__(self, state):
        return Thought(state.logits.softmax(-1))


def odd():
    """A rule with a field that no id can hold."""

    @dataclass(frozen=True)
    class Odd(Bare):
        table: dict = field(default_factory=dict)

    return Odd()


def stack(seeds=(1, 2)):
    return GPT2Stack(2, *SHAPE[1:], seeds=seeds)


def embed(*ids):
    return stack().embed(torch.tensor([ids]))


def construct(**options):
    return TrigMNNS(**dict(length=4, max_sum=36) | options)


def in_sequence(task):
    """The data of a run that is scored on its prompts too."""
    run = spec(task=task)
    return stack_data([replace(run, supervision=replace(run.supervision, loss_on="sequence"))], "cpu")


def thinks(rule, shape=(2, 1, 2)):
    """One thought by a rule, without keys, for prompts of a shape."""
    return decode(stack(), torch.zeros(shape, dtype=torch.int64), rules(rule, 2))


REFUSALS = [
    # numbers of any field
    ("budget=2.5: give a whole number", lambda: hindsight_targets(SUMS, 2.5)),
    ("budget=True: give a whole number", lambda: hindsight_targets(SUMS, True)),
    ("high=None: give a whole number", lambda: MNNS(high=None)),
    ("seed=array([1, 2]): give a whole number", lambda: spec(seed=np.array([1, 2]))),
    ("seed=tensor(1.5000): give a whole number", lambda: spec(seed=torch.tensor(1.5))),
    ("seed has 64 bits: give a whole number between -2^63 and 2^63", lambda: spec(seed=2**63)),
    ("seed has 71 bits", lambda: MNNS(seed=-(2**70))),
    ("lr='fast': give a finite number", lambda: spec(lr="fast")),
    ("lr=nan: give a finite number", lambda: spec(lr=NAN)),
    ("lr=inf: give a finite number", lambda: spec(lr=INF)),
    ("lr=True: give a finite number", lambda: spec(lr=True)),
    ("0: give a finite number", lambda: spec(lr=10**400)),
    ("arrow=1: give True or False", lambda: Supervision(arrow=1)),
    ("path=3: give a string", lambda: replace(published(QUESTIONS), path=3)),
    ("seeds=[42, 43, 42] names 42 twice; give each value once.", lambda: distinct("seeds", [42, 43, 42])),
    # tasks
    ("digits 5..4", lambda: MNNS(low=5, high=4)),
    ("digits -1..9", lambda: MNNS(low=-1)),
    ("length=0", lambda: MNNS(length=0)),
    ("; pass inputs=N to sample N distinct ones.", lambda: MNNS(length=7)),
    ("9^900 inputs", lambda: MNNS(length=900)),
    ("length=1001: must be at most 1000", lambda: MNNS(1, 1, 1001)),
    ("seed=-1: must be at least 0", lambda: MNNS(seed=-1)),
    ("inputs=0", lambda: MNNS(inputs=0)),
    ("inputs=9", lambda: MNNS(1, 2, 3, inputs=9)),
    ("reach 65; pass at least that or leave max_sum out.", lambda: MNNS(5, 13, 5, max_sum=40)),
    ("sum 37", lambda: MNNS().state_id(37)),
    ("shortest=0", lambda: MNNSLengths(shortest=0)),
    ("shortest=5: several lengths need", lambda: MNNSLengths(shortest=5)),
    ("low=0", lambda: MNNSLengths(low=0)),
    ("inputs=10", lambda: MNNSLengths(inputs=10)),
    ("places=-1", lambda: MNNSLengths(places=-1)),
    ("names=26: choose 19, 28, 60", lambda: ProsQA(names=26)),
    ("waiting=3: some questions have 4 hops; wait at least as long.", lambda: ProsQA(waiting=3)),
    ("mixture=(0.5, 0.5), hops=4: give shares that add up to 1, and hops=None", lambda: ProsQA(mixture=(0.5, 0.5))),
    ("mixture=(0.5, 0.4)", lambda: ProsQA(hops=None, mixture=(0.5, 0.4))),
    ("hops=2: choose 3 to 6, or None for all of them.", lambda: ProsQA(hops=2)),
    ("inputs=3: need at least 10 questions", lambda: ProsQA(inputs=3)),
    ("seed=-1: must be at least 0", lambda: ProntoQA(seed=-1)),
    ("deal=-1: must be at least 0", lambda: ProntoQA(deal=-1)),
    ("naming='best': choose one of age, once, fresh", lambda: ProsQA(naming="best")),
    ("grammar='prose': choose one of pairs, sentences", lambda: ProsQA(grammar="prose")),
    ("frontier='all': choose one of walks, nodes, complete", lambda: ProsQA(frontier="all")),
    ("have one shape; choose 'once' or 'fresh'.", lambda: ProntoQA(naming="age")),
    ("reading='both': choose one of reachable, sign", lambda: ProntoQA(reading="both")),
    ("of 32768 graphs of 19 names have a question of 6 hops", lambda: ProsQA(inputs=10, hops=6).graphs),
    # settings of runs
    ("method 'cot3'", lambda: spec("cot3")),
    ("method 'pause': on ProsQA choose one of cot2, discrete, no-cot, coconut", lambda: spec("pause", task=GRAPHS)),
    ("profile 'slow'", lambda: spec("cot2", "slow")),
    ("profile [1] is unknown", lambda: spec("cot2", [1])),
    ("task=3: give an instance of Task", lambda: spec(task=3)),
    ("MNNS'>: give an instance of Task", lambda: check_task(MNNS)),
    ("Base'>: give an instance of Rule", lambda: check_rule(Base, 9, 8)),
    ("Frontier'>: give an instance of Targets", lambda: check_targets(Frontier, MNNS(), 42, 42)),
    ("thought='Base': give an instance of Rule", lambda: spec(thought="Base")),
    ("targets=4: give an instance of Targets", lambda: spec(targets=4)),
    ("start='discrete': give an instance of RunSpec", lambda: grpo("discrete")),
    ("grpo takes no stpes; did you mean steps", lambda: grpo(spec("discrete"), stpes=3)),
    ("grpo takes no recipe; did you mean", lambda: grpo(spec("discrete"), recipe=3)),
    ("grpo takes no rato; did you mean ratio", lambda: grpo(spec("discrete", task=GRAPHS), rato="product")),
    ("heads=0: must be at least 1", lambda: spec(heads=0)),
    ("layers='2': give a whole number", lambda: spec(layers="2")),
    ("heads=3 does not divide d_model=32", lambda: spec(heads=3)),
    ("embedding='sine': choose one of learned, cosine", lambda: spec(embedding="sine")),
    ("sees='near': choose one of all, local, strict", lambda: Supervision(sees="near")),
    ("sees='local' masks each step of a chain;", lambda: Supervision(sees="local", arrow=False)),
    ("MNNS 2-4 x 1-9 does not say what its steps read", lambda: check_run(spec(task=MNNSLengths(), sees="strict"))),
    ("have no masks on attention; take a start with", lambda: grpo(spec("discrete", sees="strict"))),
    ("d_model=9: a trigonometric", lambda: Model(9, 1, 1, "cosine")),
    ("d_model=2: a trigonometric", lambda: Model(2, 1, 1, "cosine")),
    ("schedule='cosin'", lambda: spec(schedule="cosin")),
    ("dropout=1.0", lambda: spec(dropout=1.0)),
    ("beta2=1.0", lambda: spec(beta2=1.0)),
    ("batch=0", lambda: spec(batch=0)),
    ("epochs=0", lambda: shortened(spec(), 0)),
    ("cycles=4 of 3 steps: choose at most one for each step.", lambda: spec("coconut", steps=3, warmup=0)),
    ("budget=4", lambda: spec("discrete", budget=4)),
    ("budget=1: only method 'cot2' takes one, above 1; B=1 is method 'discrete'.", lambda: spec(budget=1)),
    ("every=2", lambda: spec("no-cot", every=2)),
    ("self_fed_from=0.5", lambda: spec("discrete", self_fed_from=0.5)),
    ("self_fed_from=1.0", lambda: spec(self_fed_from=1.0)),
    ("self_fed_from='a': give a share from 0 to below 1", lambda: spec(self_fed_from="a")),
    ("loss_on='prompt'", lambda: Supervision(loss_on="prompt")),
    ("feeding='none'", lambda: Supervision(feeding="none")),
    ("loss_on='sequence' needs feeding='teacher'", lambda: Supervision(feeding="self", loss_on="sequence")),
    ("pauses=1", lambda: Supervision(pauses=1, arrow=False)),
    ("switch=5", lambda: Supervision(switch=5)),
    ("curriculum='first'", lambda: Supervision(curriculum="first", loss_on="sequence")),
    ("curriculum='first'", lambda: Supervision(curriculum="first", feeding="self")),
    ("budget=2, ties='minus-first': targets name their own", lambda: Supervision(budget=2, targets=Frontier())),
    ("ties='shared': targets name their own", lambda: Supervision(ties="shared", targets=Frontier())),
    ("feeds: choose feeding='teacher' and every", lambda: Supervision(every=None, targets=Frontier())),
    ("feeds: choose feeding='teacher' and every >= 1.", lambda: Supervision(feeding="self", targets=Frontier())),
    ("budget=4, ties='minus-first': targets name their own", lambda: spec(budget=4, targets=Frontier())),
    ("targets are for thoughts that a teacher feeds", lambda: spec("no-cot", targets=Frontier())),
    (
        "every weight; take a start whose embedding table is not frozen.",
        lambda: grpo(spec("discrete", embedding="cosine, frozen")),
    ),
    ("group=1: must be at least 2", lambda: rewarded(group=1)),
    ("updates=0", lambda: rewarded(updates=0)),
    ("clip=-0.1", lambda: rewarded(clip=-0.1)),
    ("ratio='mean'", lambda: rewarded(ratio="mean")),
    ("thought=Base(temperature=1.0, threshold=0.0, top=0)", lambda: rewarded(thought=Base())),
    ("samples and has a density", lambda: rewarded(thought=Discrete())),
    ("first_k=2: a rising K", lambda: rewarded(first_k=2)),
    ("first_k=0", lambda: rewarded(first_k=0)),
    ("needs thought=MTS", lambda: rewarded(thought=Discrete(1.0), first_k=1)),
    ("mask=1.0: must be below 1", lambda: rewarded(thought=Base(), mask=1.0)),
    ("mask=0.2: masked rollouts need thought=Base(), dropout=0 and kl=0.", lambda: rewarded(mask=0.2)),
    ("kl=0", lambda: rewarded(thought=Base(), mask=0.2, kl=0.1)),
    ("dropout=0", lambda: rewarded(thought=Base(), mask=0.2, recipe=replace(REWARDED, dropout=0.1))),
    ("no thoughts that could be sampled", lambda: GRPOSpec(REWARDED, spec("no-cot", task=SMALLER_SUMS), MTS(2))),
    ("class Bare is no dataclass; write @dataclass(frozen=True) above it.", lambda: replace(SPECS[0], thought=Bare())),
    ("table: a field may be int, float, bool, str", odd),
    ("kind 'Retired'", lambda: from_data({"kind": "Retired"})),
    ("recipe=3: give an instance of Recipe", lambda: from_data({"kind": "RunSpec", "recipe": 3})),
    ("Recipe has other fields", lambda: from_data({"kind": "Recipe", "steps": 3, "lr": 0.1})),
    ("width", lambda: from_data({"kind": "Model", "width": 3})),
    ("spec of kind None", lambda: from_data({})),
    # rules, targets
    ("temperature=0.0", lambda: Base(temperature=0.0)),
    ("threshold=1.0", lambda: Base(threshold=1.0)),
    ("top=-1", lambda: Base(top=-1)),
    ("temperature=-1.0", lambda: Discrete(temperature=-1.0)),
    ("top_k=0", lambda: Discrete(top_k=0)),
    ("k=0", lambda: MTS(0)),
    ("k=0: must be at least 1", lambda: Systematic(0)),
    ("temperature=0.0: must be above 0", lambda: MTS(2, temperature=0.0)),
    ("gamma=0.0: must be above 0", lambda: Dirichlet(0.0)),
    ("gamma=-1.0", lambda: Dirichlet(-1.0)),
    ("floor=0.5: must be below 0.5", lambda: Dirichlet(20.0, floor=0.5)),
    ("floor=-0.1", lambda: Dirichlet(20.0, floor=-0.1)),
    ("most=0: must be at least 1", lambda: Dirichlet(20.0, most=0)),
    ("temperature=0.0: must be above 0", lambda: Gumbel(0.0)),
    ("sigma=0", lambda: Gaussian(0.0)),
    ("this rule samples: pass keys=random.run_keys(seeds, Site.DECODE).", lambda: thinks(Discrete(1.0))),
    ("prompts of shape (1, 2): give (run, prompt, token), one set for all runs", lambda: thinks(Base(), (1, 2))),
    ("prompts of shape (3, 1, 2): give", lambda: thinks(Base(), (3, 1, 2))),
    ("token=-1: must be at least 0", lambda: thinks(Always(-1))),
    ("token=9: the vocabulary has 9 tokens", lambda: thinks(Always(9))),
    ("rule: class Loose is no dataclass", lambda: check_rule(type("Loose", (Base,), {})(), 9, 8)),
    ("count=0: must be at least 1", lambda: FreshPath(0)),
    ("budget B=100", lambda: check_targets(Frontier(100), SMALLER_SUMS, 42, 42)),
    ("B=0", lambda: hindsight_targets(MNNS(), 0, "shared")),
    ("B=17", lambda: hindsight_targets(MNNS(), 17, "shared")),
    ("ties='best-first'", lambda: hindsight_targets(MNNS(), 2, "best-first")),
    ("more than 2^53 trajectories; use 'shared'.", lambda: hindsight_targets(MNNS(length=60, inputs=2), 10)),
    ("choose one of geometric, product, per-draw.", lambda: losses.log_ratios(*torch.ones(2, 1, 1, 1, 3), "mean")),
    # models
    ("runs=0: must be at least 1", lambda: GPT2Stack(0, *SHAPE[1:])),
    ("positions=5.0: give a whole number", lambda: GPT2Stack(1, 9, 5.0, 4, 1, 1)),
    ("heads=3 does not divide d_model=4", lambda: GPT2Stack(1, 9, 5, 4, 1, 3)),
    ("seed has 64 bits", lambda: stack([1, 2**63])),
    ("seed=0.5: give a whole number", lambda: stack([1, 0.5])),
    ("3 seeds for 2 runs", lambda: stack([1, 2, 3])),
    ("ids -1..3: the vocabulary is 0..8", lambda: embed(3, -1)),
    ("ids 3..9: the vocabulary is 0..8", lambda: embed(3, 9)),
    ("6 positions, but the model has 5", lambda: stack()(embed(*range(6)))),
    ("outputs=0: give at least one", lambda: stack()(embed(1, 2), outputs=0)),
    ("no models were given; a stack needs at least one.", lambda: GPT2Stack.from_hf([])),
    ("2 starting models for 1 runs", lambda: reward_trainer(rewarded(), stack=build_stack([start(), start(43)]))),
    (
        "start from their own task",
        lambda: reward_trainer(rewarded(), stack=build_stack([replace(start(), task=MNNS(1, 5, 2))])),
    ),
    # runs
    ("no runs were asked for", lambda: runs.run([])),
    ("no runs were asked for", lambda: runs.curves([])),
    ("no runs were asked for", lambda: runs.load_stack([])),
    ("no runs were asked for", lambda: runs.by_profile({"quick": []})),
    ("RunSpec: give a list of runs, say [run].", lambda: runs.run(spec())),
    ("'a' is no run; give what cot2lib.spec or cot2lib.grpo returns.", lambda: runs.run([spec(), "a"])),
    ("[RunSpec(recipe=Recipe(", lambda: runs.load([spec()])),
    ("Base(temperature=1.0, threshold=0.0, top=0) is no run", lambda: runs.curves([Base()])),
    (
        "(CoT2, d=16, seed 43) and 2 more; ask run or load with missing='train'",
        lambda: runs.run(SPECS, missing="error"),
    ),
    ("no record of run", lambda: runs.curves(SPECS)),
    ("no trained weights of run", lambda: runs.load(SPECS[0], missing="error")),
    ("no record of run", lambda: runs.by_profile({"quick": SPECS, "paper": SPECS})),
    ("missing='maybe': choose 'train' or 'error'.", lambda: runs.run(SPECS, missing="maybe")),
    ("one shape stack; load others one by one.", lambda: runs.load_stack([*SPECS, short(layers=1)])),
    ("device='abacus' is unknown; choose auto, cpu or cuda.", lambda: runs.run(SPECS, device="abacus")),
    ("device='cuda:1' is unknown", lambda: runs.run(SPECS, missing="error", device="cuda:1")),
    ("threads=0: must be at least 1", lambda: runs.run(SPECS, threads=0)),
    ("threads=1.5: give a whole number", lambda: runs.run(SPECS, threads=1.5)),
    ("shard=(2, 2): give (k, n) with 0 <= k < n.", lambda: runs.run(SPECS, shard=(2, 2))),
    ("shard=(-1, 2)", lambda: runs.run(SPECS, shard=(-1, 2))),
    ("budget B=9", lambda: runs.run([*SPECS, short("cot2", budget=9)])),
    (
        "to train on some and hold out others; widen it.",
        lambda: runs.run([*SPECS, replace(short(), task=MNNS(1, 1, 3))]),
    ),
    (
        "targets of 100000 inputs take",
        lambda: runs.run([*SPECS, replace(short(), task=MNNS(length=1000, inputs=10**5))]),
    ),
    ("are no numbers; learn them", lambda: check_run(spec(task=GRAPHS, embedding="cosine"))),
    ("loss_on='sequence' needs prompts of single tokens", lambda: in_sequence(GRAPHS)),
    ("loss_on='sequence' needs inputs of one length", lambda: in_sequence(replace(GRAPHS, grammar="sentences"))),
    # numbers over runs
    ("k=0 of 5 samples", lambda: pass_at_k(1, 5, 0)),
    ("k=6 of 5 samples", lambda: pass_at_k(1, 5, 6)),
    ("correct=6 of 5", lambda: pass_at_k(6, 5, 2)),
    ("correct=-1..0 of 5", lambda: pass_at_k([0, -1], 5, 2)),
    ("correct must be whole", lambda: pass_at_k(0.5, 5, 2)),
    ("correct must be whole", lambda: pass_at_k(NAN, 5, 2)),
    ("correct must be whole", lambda: pass_at_k(["one"], 5, 2)),
    ("total must be whole", lambda: pass_at_k(1, INF, 2)),
    ("k=0 votes", lambda: maj_at_k([[3, 2]], 0)),
    ("k=1.5: give a whole number", lambda: maj_at_k([[3, 2]], 1.5)),
    ("k=3 votes: the item with the fewest samples has 2", lambda: maj_at_k([[3, 2], [1, 1]], 3)),
    ("k=515 votes of 1030 samples: too many ways to draw them", lambda: maj_at_k([[515, 515]], 515)),
    ("table of counts", lambda: maj_at_k([3, 2], 1)),
    ("table of counts", lambda: maj_at_k([[3, -1]], 1)),
    ("counts must be whole", lambda: maj_at_k([[0.5, 1]], 1)),
    ("no runs to take a mean of", lambda: mean_interval([])),
    ("no runs to take a mean of", lambda: paired_interval(SEEDED, SEEDED.rename({42: 7}))),
    ("seeds=[42, 42] names 42 twice", lambda: paired_interval(pd.concat([SEEDED, SEEDED]), SEEDED)),
    ("no runs to take a mean of", lambda: prediction_interval([], 5)),
    # theory
    ("k=2.5: give a whole number", lambda: mse_ratio(FAIR, MOVES, 2.5)),
    ("k=0: must be at least 1", lambda: mse_ratio(FAIR, MOVES, 0)),
    ("exact values exist for multinomial and systematic", lambda: mse_ratio(FAIR, MOVES, 2, "dirichlet")),
    ("start is no distribution", lambda: mse_ratio(FAIR * 1.1, MOVES, 2)),
    ("start is no distribution", lambda: mse_ratio(FAIR * NAN, MOVES, 2)),
    ("transitions[0] is no distribution", lambda: mse_ratio(FAIR, [MOVES[0] * NAN], 2)),
    ("transitions[0] is no distribution", lambda: mse_ratio(FAIR, [torch.tensor([[0.5, 0.5], [1.1, -0.1]])], 2)),
    ("transitions[0] is of shape (3, 3); a start of 2 tokens", lambda: mse_ratio(FAIR, [torch.eye(3)], 2)),
    ("transitions[0] is of shape (2,)", lambda: mse_ratio(FAIR, [FAIR], 2)),
    ("no ratio", lambda: mse_ratio(torch.tensor([1.0, 0.0]), [], 2)),
    ("too many to go on listing", lambda: mse_ratio(*chains.random_rows(73, 6), 8, "systematic")),
    ("bound=8: these digits sum to 9", lambda: chains.mnns(torch.tensor([4, 5]), 8)),
    ("improved': choose one of as-written, ", lambda: construct(variant="improved")),
    ("length=0", lambda: construct(length=0)),
    ("max_sum=0", lambda: construct(max_sum=0)),
    ("sharpness=0.0: must be above 0", lambda: construct(sharpness=0.0)),
    ("read='max'", lambda: Design("max")),
    ("max_sum=30: some digits sum to 36; build it with at least that.", lambda: TrigMNNS(4, 30).solve([[9, 9, 9, 9]])),
    ("max_sum=30", lambda: CosineMNNS(4, 30).solve([[9, 9, 9, 9]])),
    ("digit -3", lambda: construct().solve([[1, 2, -3, 4]])),
    ("digits of shape (1, 3)", lambda: construct().solve([[1, 2, 3]])),
    ("digits of shape (4,)", lambda: construct().solve([1, 2, 3, 4])),
    ("whole numbers", lambda: construct().solve([[1.5, 2.0, 3.0, 4.0]])),
    ("at least one row", lambda: construct().solve(torch.zeros(0, 4, dtype=torch.int64))),
]


@pytest.mark.parametrize("named, call", REFUSALS, ids=[named for named, _ in REFUSALS])
def test_refusals_are_one_sentence(named, call, store):
    """The wording of a remedy counts: what ends in a full stop is how the sentence ends."""
    with pytest.raises(CoT2Error) as refused:
        call()
    said = str(refused.value)
    assert (said.endswith(named) if named.endswith(".") else named in said) and "\n" not in said and len(said) < 700
    assert not store.exists(), "nothing is trained before"


def test_numbers_of_other_libraries_are_taken():
    numpy = [matrix.numpy() for matrix in MOVES]
    assert mse_ratio(FAIR.numpy(), numpy, np.int64(2)) == mse_ratio(FAIR, MOVES, 2)
    assert hindsight_targets(SUMS, np.int64(2)).sum() == 18
    assert spec(lr=1).id == spec(lr=1.0).id and spec(lr=np.float32(0.5)).id == spec(lr=0.5).id
    assert GPT2Stack(np.int64(1), *SHAPE[1:], seeds=np.array([3])).embed(torch.tensor([[8]])).numel() == 4
    assert type(Base(temperature=1).temperature) is float and type(MNNS(length=np.int64(3)).length) is int
    assert MNNS(seed=2**63 - 1).seed == 2**63 - 1
    assert [stack().embed(torch.zeros(shape, dtype=torch.int64)).shape for shape in ((2, 3, 1), (0, 2))] == [
        (2, 3, 1, 4), (2, 0, 2, 4)
    ]  # fmt: skip
