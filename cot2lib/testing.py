"""Check that a task, a thought rule or a targets rule of your own gives what it must, before anything is trained.

Call `check_task`, `check_rule` or `check_targets` where you define a class; `run` calls them for classes from outside
the package. A fault is one SpecError that names the class, the member, what it gave and what it should give.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NoReturn, get_args

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from cot2lib.errors import CoT2Error, SpecError, brief
from cot2lib.kit import random
from cot2lib.kit.frozen import as_instance, as_int
from cot2lib.kit.random import Site
from cot2lib.supervision import hindsight_targets, steps_of
from cot2lib.targets import Shown, Targets, Visits
from cot2lib.tasks.task import Averaged, Task
from cot2lib.thoughts import Rule, Sampled, State, Thought

NEAR = 1e-3  # the most that rounding takes from a sum of one
MOST = {"size": 10**9, "vocab_size": 10**7, "steps": 10**4, "positions": 10**6, "states": 10**7}
MOST_SCORE, MOST_CLASS = 10**6, 10**7  # tables as long are made of them
MOST_TRAJECTORIES = 2**1000  # a float counts no further
CHUNK = 512  # inputs whose children are checked together
RUNS, BATCH = 2, 3
SCALES = (0.02, 1.0, 10.0)  # of a made-up state's logits, from flat to peaked, one for each of the batch


class Checked:
    """What is checked, by the name that it has in sentences."""

    def __init__(self, kind: str, thing: object):
        self.owner, self.thing = f"{kind} {type(thing).__name__}", thing

    def refuse(self, name: str, fault: str) -> NoReturn:
        raise SpecError(f"{self.owner}: {name} {fault}.")

    def need(self, holds: object, name: str, fault: str) -> None:
        if not holds:
            self.refuse(name, fault)

    def call(self, name: str, give: Callable, *arguments) -> Any:
        """What a call gives; whatever it raises becomes a SpecError."""
        try:
            return give(*arguments)
        except CoT2Error:
            raise
        except Exception as error:
            raise SpecError(f"{self.owner}: {name} fails ({brief(error)}).") from error

    def get(self, name: str) -> Any:
        return self.call(name, getattr, self.thing, name)

    def instance(self, name: str, value: object, kind: type, wanted: str) -> None:
        self.need(isinstance(value, kind), name, f"is of type {type(value).__name__}; give {wanted}")

    def number(self, name: str, least: int, most: int) -> int:
        value = self.call(name, lambda: as_int(f"{self.owner}: {name}", getattr(self.thing, name)))
        self.need(least <= value <= most, name, f"is {value}; give a whole number of {least}..{most}")
        return value

    def tensor(self, name: str, value: object, shape: tuple[int | None, ...], dtype=torch.int64) -> Tensor:
        """A tensor of a type and shape, None for any size."""
        axes = ", ".join("any" if size is None else str(size) for size in shape)
        wanted = f"give a {str(dtype).removeprefix('torch.')} tensor of shape ({axes})"
        if not isinstance(value, Tensor):
            self.refuse(name, f"is of type {type(value).__name__}; {wanted}")
        fits = value.ndim == len(shape) and all(size in (None, got) for size, got in zip(shape, value.shape))
        given = f"{str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
        self.need(value.dtype == dtype and fits, name, f"is a {given}; {wanted}")
        return value

    def integers(self, name: str, value: object, shape: tuple[int | None, ...], least: int, most: int) -> Tensor:
        found = self.tensor(name, value, shape)
        if found.numel() and not (least <= found.min() and found.max() <= most):
            self.refuse(name, f"holds {found.min()}..{found.max()}; give numbers of {least}..{most}")
        return found

    def shares(self, name: str, value: Float[Tensor, "..."]) -> None:
        self.need(value.isfinite().all(), name, "are not finite; mind logarithms of 0 and divisions by 0")
        if (value < 0).any():
            self.refuse(name, f"fall to {float(value.min()):.3g}; a distribution has none below 0")

    def mixtures(self, weights: Float[Tensor, "... vocab"], latent: Float[Tensor, "..."] | None) -> None:
        self.shares("weights", weights)
        if latent is not None:
            self.need(latent.isfinite().all(), "latent", "are not finite; mind divisions by 0")
        if ((total := weights.sum(-1)) - 1).abs().max() > NEAR:
            self.refuse("weights", f"add up to {float(total.min()):.3g}..{float(total.max()):.3g}; a mixture's to 1")


def shown(value: object) -> str:
    return " ".join(repr(value).split())[:60]


# Tasks


@lru_cache(maxsize=64)
def check_task(
    task: Task,
    arrow: bool = True,
    pauses: int = 0,
    ending: int = 1,
    seed: int = 42,
    budget: int | None = None,
    ties: str = "minus-first",
) -> None:
    """Raise SpecError, with the task's name and one fault, for a task that cannot be trained on.

    Checks the type, shape and range of each member that `cot2lib.Task` lists, and whether members agree. `arrow` and
    `pauses` are as in `Supervision`, `ending` is 1 with an end token, else 0; `budget` and `ties` are of the targets,
    `seed` is of the split.
    """
    check_sizes(task)
    it, size, vocab = Checked("task", task), task.size, task.vocab_size
    name, frontier = it.get("name"), it.get("frontier")
    it.need(isinstance(name, str) and name, "name", "is no text; give what tables call the task")
    for flag in ("padding_counts", "pairs"):
        it.need(isinstance(it.get(flag), bool), flag, "is neither True nor False")
    choices = get_args(Averaged)
    it.need(frontier in choices, "frontier", f"is {shown(frontier)}; choose one of {', '.join(choices)}")

    prompt, again = (it.call("prompt()", task.prompt, arrow, pauses) for _ in range(2))
    prompt = it.integers("prompt()", prompt, (size, None), 0, vocab * (vocab * task.pairs + 1) - 1)
    same = isinstance(again, Tensor) and torch.equal(prompt, again)
    it.need(same, "prompt()", "differs from call to call; make it of the task's fields alone")
    needed, most = prompt.shape[1] + task.steps - 1 + ending, it.get("positions")
    it.need(prompt.shape[1] and needed <= most, "positions", f"is {most}, but prompt and outputs take {needed}")
    for name, least, most in (("lengths", 1, task.steps), ("padding", 0, prompt.shape[1] - 1)):
        if (value := it.get(name)) is not None:
            it.integers(name, value, (size,), least, most)

    _check_graph(it, task)

    rows, answers = torch.arange(size), it.integers("answer_ids", it.get("answer_ids"), (size,), 0, vocab - 1)
    right = it.tensor("right()", it.call("right()", task.right, answers, rows), (size,), torch.bool)
    it.need(right.all(), "right()", "denies answers of answer_ids")
    wide = it.call("right()", task.right, answers.expand(2, -1), rows.expand(2, -1))
    it.tensor("right()", wide, (2, size), torch.bool)
    if (renamed := it.get("renamed")) is not None:
        renamed = it.integers("renamed", renamed, (None, None), 0, vocab - 1)
        apart = len(renamed.unique()) == renamed.numel()
        it.need(apart, "renamed", "gives one token to several names or roles; give each its own")

    it.number("train_size", 1, size)
    it.integers("classes", it.get("classes"), (size,), 0, MOST_CLASS)
    one, other = (it.tensor("split()", it.call("split()", task.split, seed), (size,), torch.bool) for _ in "ab")
    it.need(torch.equal(one, other), "split()", "differs from call to call; make it of the seed alone")

    targets = it.call("its graph", hindsight_targets, task, budget, ties)  # (input, step, vocab)
    there = torch.arange(task.steps) < steps_of(task)[:, None]  # (input, step)
    wrong = there & ~((targets.sum(-1) - 1).abs() < 1e-6) | (targets < 0).any(-1)
    for row, step in wrong.nonzero()[:1].tolist():
        total = f"add up to {float(targets[row, step].sum()):.3g} for input {row} after step {step + 1}"
        it.refuse("targets", f"{total}; start, children, trajectories and score contradict each other")


@lru_cache(maxsize=64)
def check_sizes(task: Task) -> None:
    """The numbers of a task that a run needs before it is planned; raises as `check_task`."""
    as_instance("task", task, Task)
    it = Checked("task", task)
    sizes = {name: it.number(name, 1, most) for name, most in MOST.items()}
    it.number("eos_id", 0, sizes["vocab_size"] - 1)


def _check_graph(it: Checked, task: Task) -> None:
    size, states = task.size, task.states
    ids = it.integers("state_ids", it.get("state_ids"), (states,), 0, task.vocab_size - 1)
    it.need(len(ids.unique()) == states, "state_ids", "gives one token to several states; give each its own")
    end = f"is {task.eos_id}, which is the token of a state; give the end a token of its own"
    it.need(task.eos_id not in ids.tolist(), "eos_id", end)
    if (reads := it.get("reads")) is not None:
        it.tensor("reads", reads, (task.steps, None), torch.bool)
    if (mirror := it.get("mirror")) is not None:
        it.integers("mirror", mirror, (states,), 0, states - 1)
    for name, least, most in (("start", 0, states - 1), ("trajectories", 1, MOST_TRAJECTORIES)):
        if isinstance(value := it.get(name), Tensor):
            it.integers(name, value, (size,), least, min(most, 2**63 - 1))
        else:  # a number that may have more than 64 bits
            fault = f"is {shown(value)}; give a whole number of {least}..{most:.3g}, or one for each input"
            it.need(type(value) is int and least <= value <= most, name, fault)
    for name in ("score", "preference"):
        value = it.get(name)
        shape = (size, states) if isinstance(value, Tensor) and value.ndim == 2 else (states,)
        it.integers(name, value, shape, 0, MOST_SCORE)
    for step in range(task.steps):
        for rows in torch.arange(size).split(CHUNK):
            found, one = (it.call("children()", task.children, step, part) for part in (rows, rows[-1:]))
            found = it.integers("children()", found, (len(rows), states, None), -1, states - 1)
            same = isinstance(one, Tensor) and torch.equal(one, found[-1:])
            it.need(same, "children()", "gives an input other states if it comes alone; mind the rows")


# Thought rules


@lru_cache(maxsize=64)
def check_rule(rule: Rule, vocab: int, d_model: int) -> None:
    """Raise SpecError, with the rule's name and one fault, for a rule that cannot be run.

    Lets it think for made-up logits, flat and peaked ones.
    """
    as_instance("rule", rule, Rule)
    it, state = Checked("rule", rule), _state(vocab, d_model)
    columns = it.call("columns()", rule.columns)
    by_name = isinstance(columns, dict) and all(isinstance(name, str) for name in columns)
    it.need(by_name, "columns()", "gives no dictionary by name; give one, or leave the member out")
    thought, again = (_first_thought(it, rule, state) for _ in range(2))
    unchanged = torch.equal(state.logits, _state(vocab, d_model).logits)
    it.need(unchanged, "its first thought", "changes the logits in place; work on a copy")
    parts = [(getattr(thought, name), getattr(again, name)) for name in ("weights", "latent", "action")]
    same = all(one is other or (type(one) is type(other) and torch.equal(one, other)) for one, other in parts)
    it.need(same, "its first thought", "differs for one state; draw from state.draws alone, and keep nothing")
    if not samples(rule):
        return
    if not isinstance(rule, Sampled):
        it.refuse("samples", "is true; a rule that samples subclasses cot2lib.Sampled")
    if (action := thought.action) is None:
        it.refuse("action", "is missing; a rule that samples gives what it drew")
    with torch.enable_grad():
        logits = state.logits.clone().requires_grad_()
        parameters = it.call("parameters()", rule.parameters, logits, state.mix)
        it.instance("parameters()", parameters, Tensor, "a tensor")
        density = it.call("log_densities()", rule.log_densities, parameters, action)
    density = it.tensor("log_densities()", density, (RUNS, BATCH, None), torch.float32)
    it.need(density.isfinite().all(), "log_densities()", "are not finite; mind logarithms of 0 and divisions by 0")
    it.need(density.requires_grad, "log_densities()", "carry no gradient to the logits; nothing could be learnt")


def samples(rule: Rule) -> bool:
    """Whether a rule says that it samples; raises SpecError if it does not say."""
    return Checked("rule", rule).call("samples", lambda: bool(rule.samples))


def check_thoughts(
    rule: Rule, weights: Float[Tensor, "run batch step vocab"], latents: Sequence[Shaped[Tensor, "..."] | None]
) -> None:
    """Raise SpecError if what a rule thought as a run was evaluated is no mixture, or not finite."""
    fed = [latent for latent in latents if latent is not None]
    Checked("rule", rule).mixtures(weights, torch.stack(fed) if fed else None)


def _state(vocab: int, d_model: int) -> State:
    made = torch.Generator().manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, generator=made)
    table, hidden, beyond = normal(vocab, d_model), normal(RUNS, BATCH, d_model), normal(RUNS, BATCH, d_model)
    logits = normal(RUNS, BATCH, vocab) * torch.tensor(SCALES)[:, None]

    def draws(count: int) -> Float[Tensor, "run batch draw"]:
        uniform = torch.rand(RUNS, BATCH, count, generator=torch.Generator().manual_seed(count))
        return uniform.clamp(min=torch.finfo(uniform.dtype).tiny)

    return State(logits, hidden, draws, lambda: beyond, lambda weights: weights @ table)


def _first_thought(it: Checked, rule: Rule, state: State) -> Thought:
    thought = it.call("its first thought", rule, state)
    it.instance("its first thought", thought, Thought, "a cot2lib.Thought")
    it.tensor("weights", thought.weights, tuple(state.logits.shape), torch.float32)
    if thought.latent is not None:
        it.tensor("latent", thought.latent, tuple(state.hidden.shape), torch.float32)
    if (action := thought.action) is not None:
        floats = isinstance(action, Tensor) and action.is_floating_point()
        it.tensor("action", action, (RUNS, BATCH, None), torch.float32 if floats else torch.int64)
    it.mixtures(thought.weights, thought.latent)
    return thought


# Targets


@lru_cache(maxsize=64)
def check_targets(targets: Targets, task: Task, seed: int, split_seed: int) -> None:
    """Raise SpecError, with the rule's name and one fault, for targets that a run of these seeds cannot be trained on.

    Checks them for all training inputs.
    """
    as_instance("targets", targets, Targets)
    it, train = Checked("targets", targets), task.split(split_seed).nonzero()[:, 0]
    fresh = it.get("fresh")
    it.need(isinstance(fresh, bool), "fresh", "is neither True nor False")
    key, step = random.run_keys([seed], Site.TARGETS), torch.zeros_like(train) if fresh else None
    visits = Visits(task, train, train, key, step)
    last = replace(visits, rows=train[-1:], steps=None if step is None else step[-1:])
    first, again, alone = (_shown(it, targets, part) for part in (visits, visits, last))
    for name, value, second, one in zip(Shown._fields, first, again, alone):
        it.shares(name, value)
        same, near = torch.equal(value, second), torch.allclose(value[-1:], one)
        it.need(same, name, "differ from call to call; draw by the keys of the visits alone, and keep nothing")
        it.need(near, name, "of an input change with the others; draw by the keys of the visits alone")
    total, most = first.fed.sum(-1), float(first.scored.sum(-1).max())  # (visit, step)
    sums = f"{float(total.min()):.3g}..{float(total.max()):.3g}"
    mixtures = (((total - 1).abs() <= NEAR) | (total == 0)).all()
    it.need(mixtures, "fed", f"add up to {sums}; give mixtures, or zeros")
    it.need(most <= 1 + NEAR, "scored", f"add up to {most:.3g} at some step; give labels that add up to at most 1")
    some = first.scored.sum((1, 2)) > 0
    it.need(some.all(), "scored", "are all 0 for some input, so that nothing could be learnt from it")


def _shown(it: Checked, targets: Targets, visits: Visits) -> Shown:
    found = it.call("its call", targets, visits)
    it.instance("its result", found, Shown, "cot2lib.targets.Shown(scored, fed)")
    shape = len(visits.rows), visits.task.steps, visits.task.vocab_size
    for name, value in zip(Shown._fields, found):
        single = getattr(value, "dtype", None) == torch.float32
        it.tensor(name, value, shape, torch.float32 if single else torch.float64)
    return found
