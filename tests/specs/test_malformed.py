"""Rules and tasks of a stranger with one wrong member: each ends in one sentence that names it, or trains to numbers.

What only a training meets keeps its error.

`MANY` of them are drawn by a seed, in `PARTS`: the first is tried by `make test`, all by `make thorough`.
"""

import math
import random
from dataclasses import dataclass, replace

import jaxtyping
import pytest
import torch
from builders import registered, some
from ragged import Ragged

from cot2lib import MTS, Base, Discrete, GRPOSpec, Rule, RunSpec, Sampled, Thought, runs
from cot2lib.errors import CoT2Error
from cot2lib.runs import store
from cot2lib.specs import Model, Recipe, Supervision
from cot2lib.specs import Supervision as Shown
from cot2lib.tasks import MNNS, ProntoQA, ProsQA
from cot2lib.testing import check_rule, check_task
from cot2lib.thoughts import Always, Dirichlet, Gaussian, Gumbel, Hidden, Systematic, ZeroSlot

MANY, PARTS = 2000, 20
TASK = MNNS(1, 3, 3)
RECIPE = Recipe(steps=2, batch=4, lr=1e-3, evaluate_every=1)
NAN, INF = float("nan"), float("inf")
ODD = (None, -1, 0, 1, 3, 10**12, 2.5, NAN, INF, "many", [], [1, 2], {}, True, Thought)
RULE_PARTS = (
    "weights", "action", "latent", "whole", "log_densities", "parameters", "columns", "samples"
)  # fmt: skip
TASK_MEMBERS = (
    "name", "size", "vocab_size", "eos_id", "steps", "positions", "prompt", "padding", "lengths", "answer_ids",
    "right", "states", "state_ids", "start", "children", "trajectories", "full_budget", "frontier", "renamed", "pairs",
    "score", "preference", "classes", "split", "train_size", "padding_counts", "mirror", "reads",
)  # fmt: skip


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """`make thorough` checks shapes, which would refuse in place of us."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@dataclass(frozen=True)
class Mine(Sampled):
    """A token that is drawn, in a way that is right."""

    def __call__(self, state):
        log_weights = state.logits.log_softmax(-1)
        token = (log_weights.exp().cumsum(-1) < state.draws(1)).sum(-1, keepdim=True)
        weights = torch.zeros_like(log_weights).scatter(-1, token, 1.0)
        return Thought(weights, token)

    def log_densities(self, parameters, action):
        return parameters.log_softmax(-1).gather(-1, action)


def fails(*_, **__):
    raise KeyError("a stranger's own mistake")


def bent(value, draw):
    """A value with one fault, or another value: as a stranger might return it."""
    if isinstance(value, torch.Tensor):
        return bent_tensor(value, draw)
    odd = [*ODD[:-1], torch.tensor(3), torch.rand(2, 2), Thought]
    return draw.choice(odd)


def bent_tensor(value, draw):
    filled = lambda number: torch.full_like(value, number)
    wide = value.double() if value.is_floating_point() else value.int()
    ways = [
        lambda: None, lambda: value.tolist(), lambda: value.numpy(), lambda: value[..., None], lambda: value[None],
        lambda: value[:0], lambda: value[..., :-1] if value.ndim else value, lambda: wide, lambda: value.float() * NAN,
        lambda: value.float() * INF, lambda: value - 5 if value.dtype != torch.bool else ~value, lambda: value.float(),
        lambda: filled(7) if value.dtype != torch.bool else filled(True), lambda: filled(0), lambda: value * 1000,
        lambda: torch.rand(value.shape), lambda: "tensor", lambda: value.bool(), lambda: value.cfloat(),
        lambda: value.to_sparse(), lambda: filled(0) - 1 if value.dtype != torch.bool else filled(False),
        lambda: value.flip(0), lambda: 2 * value if value.dtype != torch.bool else value,
    ]  # fmt: skip
    return draw.choice(ways)()


def wrong_task(draw):
    """A task with one member that fails or gives a bent value, at once or from a later call on."""
    member, fault = draw.choice(TASK_MEMBERS), draw.random()
    right = getattr(Ragged, member)
    called, later = callable(right) and not hasattr(right, "func"), draw.random() < 0.1
    count, state = [0], draw.getstate()

    def give(self, *args, **kwargs):
        whole = right(self, *args, **kwargs) if called else getattr(super(kind, self), member)
        count[0] += 1
        if later and count[0] < 20:
            return whole
        if fault < 0.15:
            fails()
        again = random.Random()
        again.setstate(state)
        return bent(whole, again)

    kind = type("Wrong", (Ragged,), {member: give if called else property(give)})
    kind = dataclass(frozen=True)(kind)
    kind.__module__ = __name__
    return member, kind()


def wrong_rule(draw):
    """A rule with one fault in its thought, its density or another member."""
    state = draw.getstate()
    part = draw.choice(RULE_PARTS)

    def think(self, given):
        thought, again = Mine.__call__(self, given), random.Random()
        again.setstate(state)
        if part == "whole":
            return again.choice([None, thought.weights, fails, thought.weights.sum(), (thought,), given.logits * NAN])
        if part == "latent":
            return replace(thought, latent=bent(given.hidden, again))
        return replace(thought, **{part: bent(getattr(thought, part), again)}) if hasattr(thought, part) else thought

    def density(self, parameters, action):
        again = random.Random()
        again.setstate(state)
        return bent(Mine.log_densities(self, parameters, action), again)

    def other(self, *_):
        again = random.Random()
        again.setstate(state)
        return fails() if again.random() < 0.2 else bent(1, again)

    made = {"__call__": think}
    if part == "log_densities":
        made[part] = density
    elif part in ("parameters", "columns"):
        made[part] = other
    elif part == "samples":
        made[part] = property(other)
    kind = dataclass(frozen=True)(type("Wrong", (Mine,), made))
    kind.__module__ = __name__
    return part, kind()


def runs_of(thing, draw):
    """A run that needs the thing: by supervision, on its own thoughts, or by reward."""
    on_task = not isinstance(thing, Rule)
    task, model = thing if on_task else TASK, Model(8, 1, 1)
    start = RunSpec(RECIPE, task, model, Supervision(budget=1), Discrete())
    rule = MTS(2) if on_task else thing
    if draw.random() < (0.2 if on_task else 0.7):
        return GRPOSpec(RECIPE, start, rule, group=2)
    shown = Shown(feeding="self") if draw.random() < 0.3 and on_task else Shown(eos=draw.random() < 0.3)
    return RunSpec(RECIPE, task, model, shown, Base() if on_task else rule)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Nothing is shipped."""
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path / "records"))
    return tmp_path


def end_of(number, monkeypatch, folder):
    """How one wrong thing ends: "refused" in a sentence that names it, "raised", "trained" to numbers, or else."""
    monkeypatch.setenv("COT2_STORE", str(folder / str(number)))
    monkeypatch.setattr("cot2lib.kit.frozen.source_hash", lambda kind: f"{number:016x}")
    draw = random.Random(number)
    member, thing = (wrong_rule if number % 3 == 0 else wrong_task)(draw)
    try:
        rows = runs.run([runs_of(thing, draw)], device="cpu", engine="torch")
    except CoT2Error as error:
        text = str(error)
        named = ("Wrong" in text or "ragged" in text) and "\n" not in text
        return "refused" if named else f"{number}, {member}: not named in {text}"
    except Exception:
        return "raised"
    points = store.tables()[1]["loss"].dropna()
    finite = bool(points.map(math.isfinite).all() and rows[["last", "best"]].map(math.isfinite).all(axis=None))
    return "trained" if finite else f"{number}, {member}: trained to no numbers"


@pytest.mark.parametrize("part", some(range(PARTS), 1))
def test_nothing_wrong_ends_raw(part, monkeypatch, quick):
    ends = [end_of(number, monkeypatch, quick) for number in range(part, MANY, PARTS)]
    bad = [end for end in ends if end not in ("refused", "raised", "trained")]
    assert not bad, "\n".join(bad)
    assert ends.count("raised") < 0.1 * len(ends), "nearly all are seen before a training begins"
    assert len(ends) == MANY // PARTS and ends.count("refused") > 0.6 * len(ends), "most faults are faults"


RIGHT = (
    Always(3), Base(), Discrete(), Discrete(1.0), MTS(3), Dirichlet(20.0), Gumbel(0.5), Gaussian(0.1), Hidden(),
    ZeroSlot(),
)  # fmt: skip


def test_what_is_right_is_not_refused():
    assert {type(rule) for rule in RIGHT} | {Systematic} == registered("thoughts")
    for rule in (Mine(), *RIGHT, Systematic(3), Dirichlet(20.0, 0.0, most=None)):
        check_rule(rule, 20, 8)
    for task in (Ragged(), MNNS(1, 4, 3), ProsQA(inputs=20), ProntoQA(inputs=20, grammar="sentences")):
        check_task(task)
