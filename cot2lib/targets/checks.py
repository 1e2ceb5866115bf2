"""Whether a targets rule gives what it should: looked at for all training inputs, before anything is trained."""

from dataclasses import replace
from functools import lru_cache, partial

import torch

from cot2lib.kit import random
from cot2lib.kit.members import answer, refuse, tensor
from cot2lib.kit.random import Site
from cot2lib.targets.rule import Shown, Targets, Visits, Weights
from cot2lib.tasks import Task

NEAR = 1e-3  # the most that rounding takes from a sum of one


@lru_cache(maxsize=64)
def check_targets(targets: Targets, task: Task, seed: int, split_seed: int) -> None:
    """Raise SpecError, with the rule's name and one fault, for targets that a run cannot be trained on."""
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
        _check_values(owner, name, value)
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


def _check_values(owner: str, name: str, value: Weights) -> None:
    if not value.isfinite().all():
        refuse(owner, name, "are not finite; mind logarithms of 0 and divisions by 0")
    if (value < 0).any():
        refuse(owner, name, f"fall to {float(value.min()):.3g}; a distribution has none below 0")
