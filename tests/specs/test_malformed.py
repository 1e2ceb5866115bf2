"""Rules and tasks of a stranger with one wrong member: each is refused in one sentence that names class and member."""

import inspect
from dataclasses import dataclass, replace

import jaxtyping
import pytest
import torch
from builders import registered
from outside import Pair
from ragged import Ragged
from torch import Tensor

from cot2lib import MTS, Base, Discrete, RunSpec, Thought, runs
from cot2lib.errors import SpecError
from cot2lib.specs import Model, Recipe
from cot2lib.tasks import MNNS, ProntoQA, ProsQA
from cot2lib.testing import check_rule, check_task
from cot2lib.thoughts import Always, Dirichlet, Gaussian, Gumbel, Hidden, Systematic, ZeroSlot

NAN = float("nan")


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """`make thorough` checks shapes, which would refuse in place of us."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def fails(_):
    raise KeyError("mine")


def drawn(value):
    return torch.randint_like(value, 1, 4)


def always(value):
    return lambda _: value


TASK_FAULTS = [  # a member, what becomes of its value, what is said
    ("name", always(3), "is no text"),
    ("name", fails, "fails (KeyError: 'mine')"),
    ("size", always(2.5), "size=2.5: give a whole number"),
    ("steps", always(0), "is 0; give a whole number of 1..10000"),
    ("eos_id", always(10**6), "is 1000000; give a whole number of 0..35"),
    ("eos_id", always(int(Ragged().state_ids[3])), "which is the token of a state"),
    ("padding_counts", always(1), "is neither True nor False"),
    ("frontier", always("all"), "is 'all'; choose one of walks"),
    ("prompt", Tensor.tolist, "is of type list; give a int64 tensor of shape (117, any)"),
    ("prompt", Tensor.int, "is a int32 tensor of shape (117, 6)"),
    ("prompt", lambda value: value - 5, "holds -5..1; give numbers of 0..35"),
    ("prompt", drawn, "differs from call to call"),
    ("positions", always(3), "is 3, but prompt and outputs take 10"),
    ("lengths", lambda value: 2 * value, "holds 4..8; give numbers of 1..4"),
    ("padding", lambda value: value - 1, "holds -1..1"),
    ("state_ids", torch.zeros_like, "gives one token to several states"),
    ("reads", always(torch.zeros(3, 6).bool()), "give a bool tensor of shape (4, any)"),
    ("mirror", always(torch.full((29,), 29)), "holds 29..29; give numbers of 0..28"),
    ("start", lambda value: value + 20, "holds 34..36"),
    ("start", always(-1), "is -1; give a whole number of 0..28"),
    ("trajectories", always(2.5), "is 2.5; give a whole number of 1.."),
    ("trajectories", lambda value: value + 1, "contradict each other"),
    ("score", Tensor.double, "is a float64 tensor"),
    ("preference", always(torch.zeros(28).long()), "give a int64 tensor of shape (29)"),
    ("children", lambda value: value + 9, "give numbers of -1..28"),
    ("children", lambda value: value.flip(0), "gives an input other states if it comes alone"),
    ("answer_ids", lambda value: value[:-1], "is a int64 tensor of shape (116,)"),
    ("right", torch.logical_not, "denies answers of answer_ids"),
    ("right", Tensor.flatten, "is a bool tensor of shape (234,)"),
    ("renamed", always(torch.zeros(2, 3).long()), "gives one token to several names or roles"),
    ("train_size", always(118), "is 118; give a whole number of 1..117"),
    ("classes", always(None), "is of type NoneType"),
    ("split", lambda value: drawn(value.long()) > 1, "differs from call to call"),
]


@dataclass(frozen=True)
class InPlace(Base):
    def __call__(self, state):
        return Thought(state.logits.exp_().div_(state.logits.sum(-1, keepdim=True)))


RULE_FAULTS = [  # of a rule, a member or a part of its thought, what becomes of it, and what is said
    (Pair, "__call__", fails, "its first thought fails (KeyError: 'mine')"),
    (Pair, "__call__", always(torch.ones(3)), "its first thought is of type Tensor; give a cot2lib.Thought"),
    (Pair, "weights", Tensor.double, "weights is a float64 tensor of shape (2, 3, 20)"),
    (Pair, "weights", lambda value: value[..., :-1], "weights is a float32 tensor of shape (2, 3, 19)"),
    (Pair, "weights", lambda value: value * NAN, "weights are not finite"),
    (Pair, "weights", torch.neg, "weights fall to -1"),
    (Pair, "weights", lambda value: 2 * value, "weights add up to 2..2"),
    (Pair, "weights", lambda value: torch.rand_like(value).softmax(-1), "its first thought differs for one state"),
    (Pair, "latent", always(torch.zeros(2, 3, 9)), "latent is a float32 tensor of shape (2, 3, 9)"),
    (Pair, "latent", always(torch.full((2, 3, 8), NAN)), "latent are not finite"),
    (Pair, "latent", lambda _: torch.rand(2, 3, 8), "its first thought differs for one state"),
    (Pair, "action", always(None), "action is missing"),
    (Pair, "action", Tensor.int, "action is a int32 tensor"),
    (Pair, "columns", always([]), "columns() gives no dictionary by name"),
    (Pair, "parameters", Tensor.tolist, "parameters() is of type list; give a tensor"),
    (Pair, "log_densities", fails, "log_densities() fails"),
    (Pair, "log_densities", lambda value: value[0], "log_densities() is a float32 tensor of shape (3, 1)"),
    (Pair, "log_densities", lambda value: value - float("inf"), "log_densities() are not finite"),
    (Pair, "log_densities", Tensor.detach, "log_densities() carry no gradient"),
    (Base, "samples", always(True), "is true; a rule that samples subclasses cot2lib.Sampled"),
    (InPlace, "samples", bool, "changes the logits in place"),
]


def wrong(base, member, bend):
    """What is right but for one member."""
    if member in ("weights", "latent", "action"):
        whole = lambda thought: replace(thought, **{member: bend(getattr(thought, member))})
        return wrong(base, "__call__", whole)
    right = getattr(base, member)
    method = inspect.isfunction(right)

    def give(self, *args, **kwargs):
        return bend(right(self, *args, **kwargs) if method else getattr(super(kind, self), member))

    kind = type("Wrong", (base,), {member: give if method else property(give), "__module__": __name__})
    return dataclass(frozen=True)(kind)()


def refused(check, says):
    with pytest.raises(SpecError) as error:
        check()
    said = str(error.value)
    assert " Wrong: " in said and says in said and "\n" not in said


@pytest.mark.parametrize("member, bend, says", TASK_FAULTS, ids=[f"{name} {says}" for name, _, says in TASK_FAULTS])
def test_a_wrong_member_of_a_task_is_named(member, bend, says):
    refused(lambda: check_task(wrong(Ragged, member, bend)), says)


@pytest.mark.parametrize("base, member, bend, says", RULE_FAULTS, ids=[says for *_, says in RULE_FAULTS])
def test_a_wrong_member_of_a_rule_is_named(base, member, bend, says):
    refused(lambda: check_rule(wrong(base, member, bend), 20, 8), says)


@pytest.mark.parametrize(
    "task, thought",
    [(wrong(Ragged, "right", fails), Base()), (MNNS(1, 3, 3), wrong(Pair, "__call__", fails))],
)
def test_a_run_is_refused_before_it_is_trained(task, thought, store, nothing_shipped, monkeypatch):
    monkeypatch.setattr("cot2lib.kit.frozen.source_hash", lambda kind: "0" * 16)  # of classes without one
    recipe = Recipe(steps=2, batch=4, lr=1e-3, evaluate_every=1)
    refused(lambda: runs.run([RunSpec(recipe, task, Model(8, 1, 1), thought=thought)]), "mine")
    assert not store.exists()


RIGHT = (
    Always(3), Base(), Discrete(), Discrete(1.0), MTS(3), Dirichlet(20.0), Gumbel(0.5), Gaussian(0.1), Hidden(),
    ZeroSlot(),
)  # fmt: skip


def test_what_is_right_is_not_refused():
    assert {type(rule) for rule in RIGHT} | {Systematic} == registered("thoughts")
    for rule in (Pair(), *RIGHT, Systematic(3), Dirichlet(20.0, 0.0, most=None)):
        check_rule(rule, 20, 8)
    for task in (Ragged(), MNNS(1, 4, 3), ProsQA(inputs=20), ProntoQA(inputs=20, grammar="sentences")):
        check_task(task)
