"""A script outside the package: a thought rule, a sampling rule, targets and a ragged task, trained beside ours.

    python tests/outside.py [FOLDER [STEPS]]

It writes `curves.csv` and `curves.png` into the folder (default: the current one).
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from ragged import Ragged

import cot2lib
from cot2lib import (
    MTS,
    Base,
    Discrete,
    GRPOSpec,
    Rule,
    RunSpec,
    Sampled,
    Shown,
    State,
    Targets,
    Thought,
    Visits,
    hindsight_targets,
)
from cot2lib.kit import random
from cot2lib.specs import Model, Recipe, Supervision
from cot2lib.targets import FreshPath


@dataclass(frozen=True)
class Sharpened(Rule):
    """Softmax of the logits times a power."""

    power: float = 2.0

    def __call__(self, state: State) -> Thought:
        return Thought((self.power * state.logits).softmax(-1))


@dataclass(frozen=True)
class Pair(Sampled):
    """The likeliest token and one sampled token, half each."""

    def __call__(self, state: State) -> Thought:
        chances = state.logits.softmax(-1).cumsum(-1)
        token = (chances < state.draws(1)).sum(-1, keepdim=True).clamp(max=chances.shape[-1] - 1)
        best = state.logits.argmax(-1, keepdim=True)
        half = torch.full_like(chances[..., :2], 0.5)
        weights = torch.zeros_like(chances).scatter_add(-1, torch.cat([token, best], -1), half)
        return Thought(weights, token)

    def log_densities(self, parameters, action):
        return parameters.log_softmax(-1).gather(-1, action)


@dataclass(frozen=True)
class Doubted(Targets):
    """Labels that are a path drawn at each visit with some probability, else the frontier, which is always fed."""

    doubt: float = 0.3

    @property
    def fresh(self) -> bool:
        return True

    def __call__(self, visits: Visits) -> Shown:
        frontier, path = hindsight_targets(visits.task, rows=visits.rows), FreshPath()(visits.apart(0)).scored
        doubted = random.uniform(visits.visit_keys, 1)[:, :, None] < self.doubt
        return Shown(torch.where(doubted, path, frontier), frontier)


def runs_of(steps: int, seeds=(42, 43)) -> dict[str, list]:
    """Each rule by its name: CSFT with ours and with those above, then policy gradients with both samplers."""
    task, model = Ragged(), Model(16, 1, 2)
    recipe = Recipe(steps=steps, batch=32, lr=3e-3, evaluate_every=steps // 6)
    start = lambda seed: RunSpec(recipe, task, model, Supervision(budget=1), Discrete(), seed)
    reward = Recipe(steps=steps // 5, batch=16, lr=1e-3, evaluate_every=steps // 15)
    supervised = {"Base": Base(), "Sharpened": Sharpened()}
    shown = Supervision(targets=Doubted())
    sampled = {"MTS": MTS(2), "Pair": Pair()}
    return {
        **{n: [RunSpec(recipe, task, model, thought=rule, seed=s) for s in seeds] for n, rule in supervised.items()},
        "Doubted": [RunSpec(recipe, task, model, shown, seed=s) for s in seeds],
        **{n: [GRPOSpec(reward, start(s), rule, group=4) for s in seeds] for n, rule in sampled.items()},
    }


def main(folder: Path, steps: int) -> None:
    from cot2lib.study import frame, look  # what draws; the classes above do without

    parts = []
    for name, specs in runs_of(steps).items():
        cot2lib.run(specs, device="cpu")
        parts.append(cot2lib.curves(specs).assign(rule=name, profile="live"))
    table = pd.concat(parts, ignore_index=True)
    table.to_csv(folder / "curves.csv", index=False)
    shown = look.curves(frame.tidy(table.assign(profile="quick")), hue="rule", col="method")
    (folder / "curves.png").write_bytes(shown.png())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."), int(sys.argv[2]) if len(sys.argv) > 2 else 300)
