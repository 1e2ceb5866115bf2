"""What tests of several rooms build: small runs, and the walks of a question."""

import inspect
from pathlib import Path

import networkx
import pytest
import torch

from cot2lib import supervision
from cot2lib.kit import frozen, random
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import shortened, spec
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, State
from cot2lib.training import evaluation, grpo
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.supervised import build_stack, evaluation_rules

ROOT = Path(__file__).parents[1]
QUESTIONS = ROOT / "tests" / "data" / "prosqa_valid.json"
SUMS, SMALLER_SUMS = MNNS(1, 5, 3), MNNS(1, 4, 2)


def some(values, kept):
    """Values of a test; those after the first few say again at length what these do (`make thorough`)."""
    return [pytest.param(value, marks=[pytest.mark.thorough] * (n >= kept)) for n, value in enumerate(values)]


def short(method="cot2", seed=42, profile="quick", **options):
    """A run of sixty steps."""
    shape = dict(task=SUMS, d_model=16, steps=60, evaluate_every=20, batch=16)
    return spec(method, profile, seed=seed, **shape | options)


def small_specs(method, seeds=(42, 43)):
    """Runs of one layer that learn something in a second."""
    recipe = dict(steps=150, evaluate_every=150, warmup=10)
    return [spec(method, task=SUMS, d_model=16, layers=1, heads=1, seed=seed, **recipe) for seed in seeds]


def evaluate(stack, data, specs):
    """Every run's held-out inputs decoded by the rules of its steps."""
    return evaluation.evaluate(
        stack, data, [spec.seed for spec in specs], evaluation_rules(specs[0], specs[0].thought, 0)
    )


SPECS = [short("cot2", 43), short("discrete", 42), short("cot2", 42)]
TWO, REWARDED = MTS(2), Recipe(steps=12, batch=4, lr=1e-2, evaluate_every=6)


def start(seed=42, epochs=30):
    """What a run by reward starts from."""
    return shortened(spec("discrete", task=SMALLER_SUMS, d_model=16, layers=1, heads=1, seed=seed), epochs)


def rewarded(seed=42, thought=TWO, recipe=REWARDED, **options):
    """A run by reward of twelve steps."""
    return GRPOSpec(recipe, start(seed), thought, **options)


def reward_trainer(*specs, stack=None, **options):
    """Runs by reward, from weights that nothing trained."""
    return GRPOTrainer(specs, build_stack([one.start for one in specs]) if stack is None else stack, **options)


def noted(monkeypatch):
    """What every update hands to the objective from now on."""
    seen, original = [], grpo.objective
    monkeypatch.setattr(grpo, "objective", lambda *given: seen.append(given) or original(*given))
    return seen


def weights_of(trainer, run=0):
    """All of a run's weights, in one row."""
    return torch.cat([parameter[run].detach().flatten() for parameter in trainer.stack.parameters()])


def graph(task, row):
    """A question's graph by names."""
    return networkx.DiGraph([(a, b) for a, b in task.edges[row].tolist() if a >= 0])


def walk_counts(task):
    """Walks from the root to each name after 0, 1, ... hops, for every question."""
    return supervision.forward_counts(supervision.graph_of(task, slice(None)), task.states, task.start)[:-1]


def walks(task, row):
    """All walks of an input's hops from its root that go on to the end, and all that end before, step by step."""
    edges, layers = graph(task, row), [[(int(task.root[row]),)]]
    for _ in range(int(task.graphs.hops[row])):
        layers.append([(*walk, after) for walk in layers[-1] for after in edges.successors(walk[-1])])
    return layers[1:]


def moved(stack, size):
    """A stack whose weights are far from their start, where biases are zero and all thoughts alike."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter += size * torch.randn(parameter.shape, generator=generator)
    return stack


# Thoughts of one distribution, which rules draw

ALPHA = torch.tensor([0.5, 0.3, 0.1492, 0.05, 5e-4, 2e-4, 1e-4], dtype=torch.float64)


def draws_of(key, count, batch=1):
    return random.uniform(torch.tensor([key]), batch * count).view(1, batch, count)


def mixed(weights):
    """The mean embedding of a vocabulary whose table counts up."""
    table = torch.arange(5 * weights.shape[-1], dtype=weights.dtype).view(-1, 5).sin()
    return weights @ table


def drawn(rule, alpha=ALPHA, count=40_000, key=3, dtype=torch.float32):
    """`count` thoughts of one rule at one distribution, as one batch."""
    logits = alpha.log().to(dtype).expand(1, count, -1)
    hidden = torch.zeros(1, count, 1)
    return rule(State(logits, hidden, lambda n: draws_of(key, n, count), lambda: hidden, mixed))


def registered(*packages):
    """Classes of frozen data in some packages, as plain data names them."""
    return {
        kind
        for kind in frozen.KINDS.values()
        if kind.__module__.split(".")[1] in packages and not inspect.isabstract(kind)
    }
