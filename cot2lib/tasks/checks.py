"""Whether a task from outside the package has the members that `cot2lib.tasks.task` says, before anything is trained.

A check looks at each member's type, shape and range of numbers, and whether members agree where one is useless
without another.
"""

from functools import lru_cache, partial
from typing import get_args

import torch
from jaxtyping import Int
from torch import Tensor

from cot2lib.kit.fields import whole
from cot2lib.kit.identity import is_outside
from cot2lib.kit.members import answer, between, refuse, shown, tensor
from cot2lib.tasks.task import Frontier, Task

MOST = {"size": 10**9, "vocab_size": 10**7, "steps": 10**4, "positions": 10**6, "states": 10**7}
MOST_SCORE, MOST_CLASS = 10**6, 10**7  # tables as long are made of them
MOST_TRAJECTORIES = 2**1000  # a float counts no further
CHUNK = 512  # inputs whose children are looked at together


@lru_cache(maxsize=64)
def check_task(task: Task, arrow: bool = True, pauses: int = 0, ending: int = 1, seed: int = 42) -> None:
    """Look at a task's members, before anything is trained; tasks of the package are not looked at."""
    if is_outside(type(task)):
        owner = f"task {type(task).__name__}"
        check_sizes(task)
        _check_kinds(owner, task)
        _check_prompt(owner, task, arrow, pauses, ending)
        _check_graph(owner, task)
        _check_scores(owner, task)
        _check_answers(owner, task)
        _check_split(owner, task, seed)


@lru_cache(maxsize=64)
def check_sizes(task: Task) -> None:
    """The numbers of a task from outside the package that a run needs before it is planned; raises as `check_task`."""
    if is_outside(type(task)):
        owner = f"task {type(task).__name__}"
        sizes = {name: _number(owner, task, name, 1, most) for name, most in MOST.items()}
        _number(owner, task, "eos_id", 0, sizes["vocab_size"] - 1)


def _number(owner: str, task: Task, name: str, least: int, most: int) -> int:
    value = answer(owner, name, lambda: whole(f"{owner}: {name}", getattr(task, name)))
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
