"""The one list of kinds of runs: each way to train, each thought rule, task and rule of targets, as a small run.

`tests/test_contracts.py` asks all of them the same questions. A new rule of the package needs one line here: a run
that uses it, the run's id, and which engine trains it on a CPU where that is not the fused one.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from outside import Doubted, Pair, Sharpened
from ragged import Ragged

from cot2lib.runs import Taught
from cot2lib.specs import GRPOSpec, Model, Recipe, Run, RunSpec, Supervision
from cot2lib.specs.profiles import spec
from cot2lib.targets import (
    Apart,
    Arrow,
    DrawnState,
    FreshPath,
    Frontier,
    Geometric,
    PathAhead,
    Renamed,
    Rotated,
    Shuffled,
    Smoothed,
    Uniform,
    WrongStates,
)
from cot2lib.tasks import MNNS, MNNSLengths, ProntoQA, ProsQA
from cot2lib.tasks.prosqa import published
from cot2lib.thoughts import (
    MTS,
    Always,
    Base,
    Dirichlet,
    Discrete,
    Gaussian,
    Gumbel,
    Hidden,
    Rule,
    Systematic,
    Thought,
    ZeroSlot,
)


class Kind(NamedTuple):
    run: Run
    id: str | None  # None where a class is outside the package: its source counts, and that is in these tests
    engine: str = "fused"


SUMS, MODEL = MNNS(1, 3, 3), Model(16, 2, 2)
RECIPE = Recipe(steps=4, batch=8, lr=1e-3, evaluate_every=2, weight_decay=0.01)
DROPOUT = replace(RECIPE, dropout=0.1)
QUESTIONS = published(Path(__file__).parent / "data" / "prosqa_valid.json")
FRESH = ProsQA(inputs=40, hops=None, naming="fresh", padding_counts=True)


def supervised(thought=Base(), task=SUMS, recipe=DROPOUT, model=MODEL, **supervision):
    return RunSpec(recipe, task, model, Supervision(**supervision), thought)


def method(name, **options):
    """A method of the paper, as the authors train it."""
    return spec(name, "paper", task=SUMS, d_model=16, steps=4, batch=8, evaluate_every=2, **options)


def shown(targets, task=SUMS, **supervision):
    return supervised(task=task, recipe=RECIPE, targets=targets, **supervision)


def reward(thought, task=SUMS, dropout=0.0, **options):
    """From weights that nothing trained; of so many rollouts some are right."""
    start = RunSpec(RECIPE, task, MODEL, Supervision(budget=1), Discrete())
    return GRPOSpec(replace(RECIPE, batch=16, dropout=dropout), start, thought, **options)


@dataclass(frozen=True)
class Even(Rule):
    """All tokens alike as the second thought."""

    def __call__(self, state):
        weights = state.logits.softmax(-1)
        return Thought(weights * 0 + 1 / weights.shape[-1] if state.step == 1 else weights)


FIXED, DRAWN = Apart(Rotated(), Shuffled()), Apart(DrawnState(), FreshPath(2))

KINDS = {
    # methods and what supervision can say
    "CSFT": Kind(method("cot2"), "921759e97b6a"),
    "discrete": Kind(method("discrete"), "895beaee7c9c"),
    "no-CoT": Kind(method("no-cot"), "7353620725bf"),
    "pauses": Kind(method("pause"), "03c3d1b3f614"),
    "COCONUT": Kind(method("coconut"), "c56743d28bf2"),
    "COCONUT, zero slot": Kind(method("coconut-slot"), "6fff0fe4def0"),
    "B = 2": Kind(supervised(budget=2, ties="shared"), "f705d610a1c5"),
    "every other output": Kind(supervised(every=2, arrow=False, eos=True, reduction="mean"), "e479a553bcf4"),
    "first output first": Kind(supervised(curriculum="first"), "7732bebd73bb"),
    "growing": Kind(supervised(curriculum="growing", reduction="mean"), "a7fb83002e8a"),
    "local": Kind(supervised(sees="local", eos=True, reduction="mean"), "c4de0e498de4"),
    "strict": Kind(supervised(Hidden(), sees="strict", feeding="stages"), "34052953843b"),
    "strict, drawn": Kind(shown(DRAWN, sees="strict"), "ca719f58586d"),
    "strict, graphs": Kind(supervised(task=replace(FRESH, hops=3), sees="strict"), "8cfb391b5923"),
    "sets": Kind(supervised(scoring="set"), "23b088351e69", "torch"),
    "teacher, then self": Kind(supervised(feeding="self", switch=2), "9d707e4984b2"),
    "cosine schedule": Kind(
        supervised(recipe=Recipe(4, 8, 1e-2, 2, "cosine", 1, cycles=2, beta2=0.9)), "a69e5b0ecdca"
    ),
    "split of its own": Kind(replace(supervised(), split=7), "94787f1cf960"),
    "cosine table": Kind(supervised(model=replace(MODEL, embedding="cosine", embedding_sd=0.1)), "2ff3a7dcc9b4"),
    "frozen table": Kind(supervised(model=replace(MODEL, embedding="cosine, frozen")), "a56001fa5328"),
    # thought rules, in training where they need no draws
    "Always": Kind(supervised(Always(3), feeding="self"), "b3a7d3456f83", "torch"),
    "Base": Kind(supervised(Base(), feeding="self"), "9341590c4914"),
    "Base, warm": Kind(supervised(Base(2.0, 0.05, 5), feeding="self"), "1c80e2aa71a2", "torch"),
    "Discrete": Kind(supervised(Discrete(), feeding="self"), "6d395093c4ec", "torch"),
    "a rule that reads the step": Kind(supervised(Even(), feeding="self"), None, "torch"),
    "Hidden": Kind(supervised(Hidden(), feeding="self"), "123227267cd8"),
    "Systematic": Kind(supervised(Systematic(3)), "5e7a3da3d549"),
    "ZeroSlot": Kind(supervised(ZeroSlot(), feeding="self"), "c5cb04b5fd66"),
    "a rule from outside": Kind(supervised(Sharpened(), feeding="self"), None, "torch"),
    # tasks
    "lengths": Kind(supervised(task=MNNSLengths(1, 3, 3)), "e50a7727c459"),
    "ProsQA": Kind(supervised(task=FRESH), "1fa731af35ab"),
    "ProntoQA": Kind(supervised(task=ProntoQA(inputs=40)), "647e45b19a8c"),
    "published ProsQA": Kind(supervised(task=QUESTIONS), "8566ec87cb78"),
    "a task from outside": Kind(supervised(task=Ragged()), None),
    "own, inputs differ": Kind(supervised(ZeroSlot(), MNNSLengths(1, 3, 3), feeding="stages"), "52699b673cb5"),
    "own, names drawn anew": Kind(supervised(Hidden(), FRESH, feeding="self"), "11fc925b04c0"),
    # targets
    "Frontier": Kind(shown(Frontier(2)), "4e49fbd92207"),
    "Arrow": Kind(shown(Apart(Frontier(), Arrow())), "12f866a3bbd0"),
    "DrawnState": Kind(shown(DrawnState()), "d27b9ada0179"),
    "FreshPath": Kind(shown(FreshPath()), "dba5d6829d4d"),
    "Geometric": Kind(shown(Geometric()), "c2b46d659388"),
    "PathAhead": Kind(shown(PathAhead()), "425a9a5f5368"),
    "Renamed": Kind(shown(Renamed()), "9207e41837c9"),
    "Smoothed": Kind(shown(Apart(Smoothed(), Frontier(1, "plus-first"))), "d3ad9820d283"),
    "Uniform": Kind(shown(Uniform()), "5d8189590004"),
    "WrongStates": Kind(shown(WrongStates()), "dfc6b7ce408d"),
    "Taught": Kind(shown(Taught(method("discrete"))), "ef70800762c9"),
    "fixed": Kind(shown(FIXED, every=2, reduction="mean"), "faf5bf2f62a6"),
    "fixed, whole sequence": Kind(shown(FIXED, loss_on="sequence"), "407647be03d0"),
    "fixed, inputs differ": Kind(shown(FIXED, MNNSLengths(1, 3, 3), arrow=False), "0bf68718a526"),
    "drawn": Kind(shown(DRAWN, curriculum="growing", eos=True), "9fa3829604a9"),
    "drawn, names drawn anew": Kind(shown(DRAWN, FRESH), "45b683d51477"),
    "targets from outside": Kind(shown(Doubted()), None),
    # reward
    "MTS": Kind(reward(MTS(3)), "7bbef27785cc"),
    "MTS, warm": Kind(reward(MTS(2, 0.7), scaled=False, group=9), "0802bf5d5979"),
    "MTS, divergence": Kind(reward(MTS(3), kl=0.3), "2a7a7fa2b086"),
    "MTS, one-sided dropout": Kind(reward(MTS(3), dropout=0.1, updates=2, kl=0.1), "501658553504"),
    "MTS, product": Kind(reward(MTS(3), ratio="product", updates=3), "6b7d124829a1"),
    "MTS, each draw clipped": Kind(reward(MTS(3), ratio="per-draw", updates=2, kl=0.1), "f9b27ec2366e"),
    "MTS, rising K": Kind(reward(MTS(3), first_k=1), "e12a36721e8f"),
    "MTS, inputs differ": Kind(reward(MTS(2), MNNSLengths(1, 3, 3), kl=0.1), "90cf0c0e90cb"),
    "MTS, names drawn anew": Kind(reward(MTS(2), FRESH, kl=0.1), "fef4351134b4"),
    "one token": Kind(reward(Discrete(1.0)), "c3238fd744b1"),
    "one of the top tokens": Kind(reward(Discrete(1.0, top_k=3)), "93b0a27438e7", "torch"),
    "Dirichlet": Kind(reward(Dirichlet(4.0), ratio="product"), "f942be0bcff9"),
    "Dirichlet, divergence": Kind(reward(Dirichlet(4.0), kl=0.3, updates=2), "ce8934f0c4ef"),
    "Dirichlet, masked": Kind(reward(Dirichlet(4.0, floor=0.04, masked=True), updates=2), "03e18cc25de2"),
    "Dirichlet, all tokens": Kind(reward(Dirichlet(8.0, 0.0, most=None)), "ee1e21ae3aff"),
    "Dirichlet, few tokens": Kind(reward(Dirichlet(2.0, 1e-2, most=3), dropout=0.1), "cff898729f0a"),
    "Gaussian": Kind(reward(Gaussian(0.2), ratio="product"), "307b44228fd2", "torch"),
    "Gumbel": Kind(reward(Gumbel(0.5), ratio="product"), "14692a97fc4c", "torch"),
    "a mask per rollout": Kind(reward(Base(), mask=0.1), "5c06b6c4bc28", "torch"),
    "a mask, inputs differ": Kind(reward(Base(), MNNSLengths(1, 3, 3), mask=0.1), "8f0f282c0f61", "torch"),
    "a sampler from outside": Kind(reward(Pair()), None, "torch"),
}
