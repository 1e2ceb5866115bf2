"""Whether a task, a thought rule or a targets rule of your own gives what it must, before anything is trained.

Call `check_task`, `check_rule` or `check_targets` where you define a class; `run` calls them for classes from outside
the package. A fault is one SpecError that names the class, the member, what it gave and what it should give.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NoReturn, TypeVar, get_args

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from cot2lib.errors import CoT2Error, SpecError, brief
from cot2lib.kit import random
from cot2lib.kit.frozen import as_int
from cot2lib.kit.random import Site
from cot2lib.supervision import hindsight_targets, steps_of
from cot2lib.targets import Shown, Targets, Visits
from cot2lib.tasks.task import Frontier, Task
from cot2lib.thoughts.rule import Rule, Sampled, State, Thought

Given = TypeVar("Given")
NEAR = 1e-3  # the most that rounding takes from a sum of one
MOST = {"size": 10**9, "vocab_size": 10**7, "steps": 10**4, "positions": 10**6, "states": 10**7}
MOST_SCORE, MOST_CLASS = 10**6, 10**7  # tables as long are made of them
MOST_TRAJECTORIES = 2**1000  # a float counts no further
CHUNK = 512  # inputs whose children are looked at together
RUNS, BATCH = 2, 3
SCALES = (0.02, 1.0, 10.0)  # of a made-up state's logits, from flat to peaked: one for each of the batch


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

    Looks at the type, shape and range of each member that `cot2lib.tasks.task` lists, and whether members agree.

    Args:
        task: an instance.
        arrow, pauses, ending: of the prompts and outputs, as in `Supervision`; `ending` is 1 with an end token.
        seed: of the split.
        budget, ties: of the targets.
    """
    owner = f"task {type(task).__name__}"
    check_sizes(task)
    _check_kinds(owner, task)
    _check_prompt(owner, task, arrow, pauses, ending)
    _check_graph(owner, task)
    _check_scores(owner, task)
    _check_answers(owner, task)
    _check_split(owner, task, seed)
    _check_graph_targets(owner, task, budget, ties)


@lru_cache(maxsize=64)
def check_sizes(task: Task) -> None:
    """The numbers of a task that a run needs before it is planned; raises as `check_task`."""
    owner = f"task {type(task).__name__}"
    sizes = {name: _number(owner, task, name, 1, most) for name, most in MOST.items()}
    _number(owner, task, "eos_id", 0, sizes["vocab_size"] - 1)


def _number(owner: str, task: Task, name: str, least: int, most: int) -> int:
    value = answer(owner, name, lambda: as_int(f"{owner}: {name}", getattr(task, name)))
    if not least <= value <= most:
        refuse(owner, name, f"is {value}; give a whole number of {least}..{most}")
    return value


def _column(owner: str, task: Task, name: str, least: int, most: int) -> Int[Tensor, " input"]:
    value = tensor(owner, name, answer(owner, name, partial(getattr, task, name)), torch.int64, (task.size,))
    between(owner, name, value, least, most)
    return value


def _check_column(owner: str, task: Task, name: str, least: int, most: int) -> None:
    if answer(owner, name, partial(getattr, task, name)) is not None:
        _column(owner, task, name, least, most)


def _check_kinds(owner: str, task: Task) -> None:
    if not isinstance(name := answer(owner, "name", lambda: task.name), str) or not name:
        refuse(owner, "name", "is no text; give what tables call the task")
    for flag in ("padding_counts", "pairs"):
        if not isinstance(answer(owner, flag, partial(getattr, task, flag)), bool):
            refuse(owner, flag, "is neither True nor False")
    if answer(owner, "frontier", lambda: task.frontier) not in get_args(Frontier):
        refuse(owner, "frontier", f"is {shown(task.frontier)}; choose one of {', '.join(get_args(Frontier))}")
    if not isinstance(answer(owner, "full_budget", lambda: task.full_budget), int | float):
        refuse(owner, "full_budget", "is no number; give what tables call all trajectories")
    _check_column(owner, task, "lengths", 1, task.steps)


def _check_prompt(owner: str, task: Task, arrow: bool, pauses: int, ending: int) -> None:
    prompt, again = (answer(owner, "prompt()", lambda: task.prompt(arrow, pauses)) for _ in range(2))
    prompt = tensor(owner, "prompt()", prompt, torch.int64, (task.size, None))
    most = task.vocab_size * (task.vocab_size + 1) if task.pairs else task.vocab_size
    between(owner, "prompt()", prompt, 0, most - 1)
    if not isinstance(again, Tensor) or not torch.equal(prompt, again):
        refuse(owner, "prompt()", "differs from call to call; make it of the task's fields alone")
    needed = prompt.shape[1] + task.steps - 1 + ending
    if not prompt.shape[1] or needed > task.positions:
        refuse(owner, "positions", f"is {task.positions}, but prompt and outputs take {needed}")
    _check_column(owner, task, "padding", 0, prompt.shape[1] - 1)


def _check_graph(owner: str, task: Task) -> None:
    ids = tensor(owner, "state_ids", answer(owner, "state_ids", lambda: task.state_ids), torch.int64, (task.states,))
    between(owner, "state_ids", ids, 0, task.vocab_size - 1)
    if len(ids.unique()) < len(ids):
        refuse(owner, "state_ids", "gives one token to several states; give each its own")
    if task.eos_id in ids.tolist():
        refuse(owner, "eos_id", f"is {task.eos_id}, which is the token of a state; give the end a token of its own")
    if (mirror := answer(owner, "mirror", partial(getattr, task, "mirror"))) is not None:
        between(owner, "mirror", tensor(owner, "mirror", mirror, torch.int64, (task.states,)), 0, task.states - 1)
    for name, least, most in (("start", 0, task.states - 1), ("trajectories", 1, MOST_TRAJECTORIES)):
        if isinstance(answer(owner, name, partial(getattr, task, name)), Tensor):
            _column(owner, task, name, least, min(most, 2**63 - 1))
        else:
            _count(owner, task, name, least, most)
    for step in range(task.steps):
        for rows in torch.arange(task.size).split(CHUNK):
            _check_children(owner, task, step, rows)


def _count(owner: str, task: Task, name: str, least: int, most: int) -> None:
    """A whole number that may have more than 64 bits."""
    value = getattr(task, name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        refuse(owner, name, f"is {shown(value)}; give a whole number of {least}..{most:.3g}, or one for each input")


def _check_children(owner: str, task: Task, step: int, rows: Int[Tensor, " input"]) -> None:
    found = answer(owner, "children()", lambda: task.children(step, rows))
    found = tensor(owner, "children()", found, torch.int64, (len(rows), task.states, None))
    between(owner, "children()", found, -1, task.states - 1)
    one = answer(owner, "children()", lambda: task.children(step, rows[-1:]))
    if not isinstance(one, Tensor) or not torch.equal(one, found[-1:]):
        refuse(owner, "children()", "gives an input other states if it is asked for alone; mind the rows")


def _check_scores(owner: str, task: Task) -> None:
    for name in ("score", "preference"):
        value = answer(owner, name, partial(getattr, task, name))
        lead = (task.size,) if isinstance(value, Tensor) and value.ndim == 2 else ()
        between(owner, name, tensor(owner, name, value, torch.int64, (*lead, task.states)), 0, MOST_SCORE)


def _check_answers(owner: str, task: Task) -> None:
    ids, rows = _column(owner, task, "answer_ids", 0, task.vocab_size - 1), torch.arange(task.size)
    found = answer(owner, "right()", lambda: task.right(ids, rows))
    if not tensor(owner, "right()", found, torch.bool, (task.size,)).all():
        refuse(owner, "right()", "denies answers of answer_ids")
    wide = answer(owner, "right()", lambda: task.right(ids.expand(2, -1), rows.expand(2, -1)))
    tensor(owner, "right()", wide, torch.bool, (2, task.size))
    roles = answer(owner, "renamed", lambda: task.renamed)
    if roles is not None:
        between(owner, "renamed", tensor(owner, "renamed", roles, torch.int64, (None, None)), 0, task.vocab_size - 1)
        if len(roles.unique()) < roles.numel():
            refuse(owner, "renamed", "gives one token to several names or roles; give each its own")


def _check_split(owner: str, task: Task, seed: int) -> None:
    _number(owner, task, "train_size", 1, task.size)
    _column(owner, task, "classes", 0, MOST_CLASS)
    masks = [answer(owner, "split()", lambda: task.split(seed)) for _ in range(2)]
    one, again = (tensor(owner, "split()", mask, torch.bool, (task.size,)) for mask in masks)
    if not torch.equal(one, again):
        refuse(owner, "split()", "differs from call to call; make it of the seed alone")


def _check_graph_targets(owner: str, task: Task, budget: int | None, ties: str) -> None:
    targets = answer(owner, "its graph", lambda: hindsight_targets(task, budget, ties))  # (input, step, vocab)
    there = torch.arange(task.steps) < steps_of(task)[:, None]  # (input, step)
    wrong = there & ~((targets.sum(-1) - 1).abs() < 1e-6) | (targets < 0).any(-1)
    if wrong.any():
        row, step = wrong.nonzero()[0].tolist()
        fault = f"add up to {float(targets[row, step].sum()):.3g} for input {row} after step {step + 1}"
        refuse(owner, "targets", f"{fault}; start, children, trajectories and score contradict each other")


# Thought rules


@lru_cache(maxsize=64)
def check_rule(rule: Rule, vocab: int, d_model: int) -> None:
    """Raise SpecError, with the rule's name and one fault, for a rule that cannot be run.

    Lets it think for made-up logits, flat and peaked ones.
    """
    owner = f"rule {type(rule).__name__}"
    told = answer(owner, "columns()", rule.columns)
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told):
        refuse(owner, "columns()", "gives no dictionary by name; give one, or leave the member out")
    state = _state(vocab, d_model)
    thought = _first_thought(owner, rule, state)
    again = _first_thought(owner, rule, state)
    if not torch.equal(state.logits, _state(vocab, d_model).logits):
        refuse(owner, "its first thought", "changes the logits in place; work on a copy")
    if not all(torch.equal(*pair) for pair in zip(_drawn(thought), _drawn(again), strict=True)):
        refuse(owner, "its first thought", "differs for one state; draw from state.draws alone, and keep nothing")
    if samples(rule):
        _check_density(owner, rule, thought, state)


def samples(rule: Rule) -> bool:
    """Whether a rule says that it samples; raises SpecError if it does not say."""
    return answer(f"rule {type(rule).__name__}", "samples", lambda: bool(rule.samples))


def _drawn(thought: Thought) -> list[Shaped[Tensor, "run batch _"]]:
    return [value for value in (thought.weights, thought.latent, thought.action) if value is not None]


def _state(vocab: int, d_model: int) -> State:
    made = torch.Generator().manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, generator=made)
    table, hidden, beyond = normal(vocab, d_model), normal(RUNS, BATCH, d_model), normal(RUNS, BATCH, d_model)
    logits = normal(RUNS, BATCH, vocab) * torch.tensor(SCALES)[:, None]

    def draws(count: int) -> Float[Tensor, "run batch draw"]:
        uniform = torch.rand(RUNS, BATCH, count, generator=torch.Generator().manual_seed(count))
        return uniform.clamp(min=torch.finfo(uniform.dtype).tiny)

    return State(logits, hidden, draws, lambda: beyond, lambda weights: weights @ table)


def _first_thought(owner: str, rule: Rule, state: State) -> Thought:
    thought = answer(owner, "its first thought", lambda: rule(state))
    if not isinstance(thought, Thought):
        refuse(owner, "its first thought", f"is of type {type(thought).__name__}; give a cot2lib.Thought")
    tensor(owner, "weights", thought.weights, torch.float32, tuple(state.logits.shape))
    if thought.latent is not None:
        tensor(owner, "latent", thought.latent, torch.float32, tuple(state.hidden.shape))
    if isinstance(thought.action, Tensor):
        kind = torch.float32 if thought.action.is_floating_point() else torch.int64
        tensor(owner, "action", thought.action, kind, (RUNS, BATCH, None))
    elif thought.action is not None:
        refuse(owner, "action", f"is of type {type(thought.action).__name__}; give a tensor (run, batch, draw)")
    _check_mixtures(owner, thought.weights, thought.latent)
    return thought


def _check_mixtures(
    owner: str, weights: Float[Tensor, "run batch *step vocab"], latent: Float[Tensor, "... dim"] | None
) -> None:
    _check_shares(owner, "weights", weights)
    if latent is not None:
        _check_finite(owner, "latent", latent)
    if ((total := weights.sum(-1)) - 1).abs().max() > NEAR:
        refuse(owner, "weights", f"add up to {float(total.min()):.3g}..{float(total.max()):.3g}; a mixture's to 1")


@torch.enable_grad()
def _check_density(owner: str, rule: Rule, thought: Thought, state: State) -> None:
    if not isinstance(rule, Sampled):
        refuse(owner, "samples", "is true; a rule that samples subclasses cot2lib.Sampled")
    action = thought.action
    if action is None:
        refuse(owner, "action", "is missing; a rule that samples gives what it drew")
    logits = state.logits.clone().requires_grad_()
    parameters = answer(owner, "parameters()", lambda: rule.parameters(logits, state.mix))
    if not isinstance(parameters, Tensor):
        refuse(owner, "parameters()", f"is of type {type(parameters).__name__}; give a tensor")
    density = answer(owner, "log_densities()", lambda: rule.log_densities(parameters, action))
    tensor(owner, "log_densities()", density, torch.float32, (RUNS, BATCH, None))
    _check_finite(owner, "log_densities()", density)
    if not density.requires_grad:
        refuse(owner, "log_densities()", "carry no gradient to the logits, so that nothing could be learnt")


def check_thoughts(
    rule: Rule, weights: Float[Tensor, "run batch step vocab"], latents: Sequence[Shaped[Tensor, "..."] | None]
) -> None:
    """Raise SpecError if what a rule thought as a run was evaluated is no mixture, or not finite."""
    fed = [latent for latent in latents if latent is not None]
    _check_mixtures(f"rule {type(rule).__name__}", weights, torch.stack(fed) if fed else None)


# Targets


@lru_cache(maxsize=64)
def check_targets(targets: Targets, task: Task, seed: int, split_seed: int) -> None:
    """Raise SpecError, with the rule's name and one fault, for targets that a run of these seeds cannot be trained on.

    Looks at them for all training inputs.
    """
    owner = f"targets {type(targets).__name__}"
    fresh = answer(owner, "fresh", partial(getattr, targets, "fresh"))
    if not isinstance(fresh, bool):
        refuse(owner, "fresh", "is neither True nor False")
    train = task.split(split_seed).nonzero()[:, 0]
    key, step = random.run_keys([seed], Site.TARGETS), torch.zeros_like(train) if fresh else None
    visits = Visits(task, train, train, key, step)
    last = replace(visits, rows=train[-1:], steps=step if step is None else step[-1:])
    shown, again, alone = (_shown(owner, targets, part) for part in (visits, visits, last))
    for name, value, second, one in zip(Shown._fields, shown, again, alone):
        _check_shares(owner, name, value)
        if not torch.equal(value, second):
            refuse(owner, name, "differ from call to call; draw by the keys of the visits alone, and keep nothing")
        if not torch.allclose(value[-1:], one):
            refuse(owner, name, "of an input change with those beside it; draw by the keys of the visits alone")
    total = shown.fed.sum(-1)  # (visit, step)
    if (((total - 1).abs() > NEAR) & (total != 0)).any():
        refuse(owner, "fed", f"add up to {float(total.min()):.3g}..{float(total.max()):.3g}; give mixtures, or zeros")
    if (most := float(shown.scored.sum(-1).max())) > 1 + NEAR:
        refuse(owner, "scored", f"add up to {most:.3g} at some step; give labels that add up to at most 1")
    if (shown.scored.sum((1, 2)) == 0).any():
        refuse(owner, "scored", "are all 0 for some input, so that nothing could be learnt from it")


def _shown(owner: str, targets: Targets, visits: Visits) -> Shown:
    shown = answer(owner, "its call", partial(targets, visits))
    if not isinstance(shown, Shown):
        refuse(owner, "its call", f"gives a {type(shown).__name__}; give cot2lib.targets.Shown(scored, fed)")
    task = visits.task
    for name, value in zip(Shown._fields, shown):
        dtype = torch.float32 if getattr(value, "dtype", None) == torch.float32 else torch.float64
        tensor(owner, name, value, dtype, (len(visits.rows), task.steps, task.vocab_size))
    return shown


# What a member gives


def refuse(owner: str, name: str, fault: str) -> NoReturn:
    raise SpecError(f"{owner}: {name} {fault}.")


def shown(value: object) -> str:
    return " ".join(repr(value).split())[:60]


def answer(owner: str, name: str, give: Callable[[], Given]) -> Given:
    """The value that a member gives; whatever it raises becomes a SpecError."""
    try:
        return give()
    except CoT2Error:
        raise
    except Exception as error:
        raise SpecError(f"{owner}: {name} fails ({brief(error)}).") from error


def tensor(
    owner: str, name: str, value: object, dtype: torch.dtype, shape: tuple[int | None, ...]
) -> Shaped[Tensor, "..."]:
    """A CPU tensor of a type and shape, None for any size; raises SpecError for anything else."""
    axes = ", ".join("any" if size is None else str(size) for size in shape)
    wanted = f"give a {str(dtype).removeprefix('torch.')} tensor of shape ({axes})"
    if not isinstance(value, Tensor):
        refuse(owner, name, f"is of type {type(value).__name__}; {wanted}")
    told = f"is a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    fits = value.ndim == len(shape) and all(size in (None, got) for size, got in zip(shape, value.shape))
    if value.dtype != dtype or not fits:
        refuse(owner, name, f"{told}; {wanted}")
    if value.device.type != "cpu" or value.layout != torch.strided:
        refuse(owner, name, f"is on {value.device} in layout {value.layout}; {wanted} on the CPU")
    return value


def _check_finite(owner: str, name: str, value: Float[Tensor, "..."]) -> None:
    if not value.isfinite().all():
        refuse(owner, name, "are not finite; mind logarithms of 0 and divisions by 0")


def _check_shares(owner: str, name: str, value: Float[Tensor, "..."]) -> None:
    _check_finite(owner, name, value)
    if (value < 0).any():
        refuse(owner, name, f"fall to {float(value.min()):.3g}; a distribution has none below 0")


def between(owner: str, name: str, value: Shaped[Tensor, "..."], least: int, most: int) -> None:
    """Raise SpecError for a tensor with an entry out of range."""
    if value.numel() and not (least <= value.min() and value.max() <= most):
        refuse(owner, name, f"holds {value.min()}..{value.max()}; give numbers of {least}..{most}")
