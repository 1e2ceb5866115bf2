"""Policy gradients where a swapped name changes no shape: which decoding is which."""

import pytest
import torch

from cot2lib import decode as decoding
from cot2lib.decode import decode, rules
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import spec
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete
from cot2lib.training import evaluation
from cot2lib.training.data import StackData
from cot2lib.training.evaluation import evaluate, rollouts
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.supervised import build_stack

TASK, OWN = MNNS(1, 5, 3), MTS(2)
RULES = {"correct": OWN, "base": Base(), "discrete": Discrete()}


def run_of(**options):
    start = spec("discrete", task=TASK, d_model=16, layers=1, heads=1)
    return GRPOSpec(Recipe(steps=4, batch=4, lr=1e-2, evaluate_every=4), start, OWN, **options)


@pytest.fixture
def trainer():
    """A policy whose answers depend on what it is fed: weights three times as large as they start."""
    one = run_of()
    stack = build_stack([one.start])
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.mul_(3)
    return GRPOTrainer([one], stack)


def answered(trainer, rule):
    """Answers to all held-out inputs, decoded here, by the keys of an evaluation's first chunk."""
    keys = random.fold(random.run_keys([42], Site.DECODE), 0)
    with torch.no_grad():
        return decode(trainer.stack, trainer.data.prompts[trainer.data.held_out.index], rules(rule, 3), keys).answers


@pytest.mark.parametrize("name", RULES)
def test_accuracies_belong_to_the_decoding_they_are_named_after(trainer, name, monkeypatch):
    """If the right answers are those that one decoding gives, it alone answers everything rightly."""
    given = {other: answered(trainer, rule) for other, rule in RULES.items()}
    held_out = trainer.data.held_out
    answers = trainer.data.answers.clone()
    answers[held_out.index[0]] = given[name][0]
    monkeypatch.setattr(StackData, "right", lambda self, found, rows: found == answers[rows])
    found = trainer.evaluate()
    for other in RULES:
        right = given[other][0] == given[name][0]
        counts = {"a": int((right & ~held_out.half[0]).sum()), "b": int((right & held_out.half[0]).sum())}
        assert [found[f"{other}_{half}"] for half in "ab"] == [[counts["a"]], [counts["b"]]], other
        assert bool(right.all()) == (other == name), "the three decodings must differ for this test to mean anything"


def test_chunks_of_the_held_out_inputs_change_nothing(trainer, monkeypatch):
    """What is evaluated five prompts at a time is what is evaluated at once, right answers and entropies."""
    whole, steps = {}, rules(Base(), 3)
    for size in (128, 5):
        monkeypatch.setattr(decoding, "PROMPTS_AT_ONCE", size)
        whole[size] = evaluate(trainer.stack, trainer.data, [42], steps)
    assert trainer.data.held_out.index.shape[1] > 10 and whole[5].keys() == whole[128].keys()
    for name, value in whole[128].items():
        assert whole[5][name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("thought", [MTS(2), Dirichlet(20.0)])
def test_draws_do_not_depend_on_how_many_chunks_are_decoded_together(trainer, monkeypatch, thought):
    """Chunks of five prompts, one after another and three at a time: the same draws, the last chunk's too."""
    monkeypatch.setattr(decoding, "PROMPTS_AT_ONCE", 5)
    found = {}
    for together in (1, 3):
        monkeypatch.setattr(evaluation, "parts_at_once", lambda stack, positions, together=together: together)
        parts = rollouts(trainer.stack, trainer.data, [42], rules(thought, 3))
        found[together] = torch.cat([part.weights for _, _, part in parts], 1)
    assert found[1].shape[1] % 5 and torch.allclose(found[1], found[3], atol=1e-5)


@pytest.mark.parametrize("ratio, share", [("geometric", 5 / 12), ("product", 7 / 12), ("per-draw", 3 / 4)])
def test_the_share_of_clipped_ratios_is_of_the_steps_that_are_there(ratio, share):
    """Steps of a rollout count alike, and so do rollouts. The second of these has one thought, the first two.

    A clip of 0.1 bounds a log-ratio by 0.095 above.
    """
    one = run_of(ratio=ratio, clip=0.1)
    trainer = GRPOTrainer([one], build_stack([one.start]))
    thoughts = torch.tensor([[[[0.15, 0.0], [0.3, 0.3]], [[0.3, -0.3], [0.3, 0.3]]]])
    answers = torch.tensor([[[[0.0]], [[0.3]]]])
    there = torch.tensor([[[True, True, True], [True, False, True]]])
    trainer.log_clipping([thoughts, answers], [torch.zeros_like(thoughts), torch.zeros_like(answers)], there)
    assert trainer.evaluate()["clip_fraction"] == pytest.approx([share])
