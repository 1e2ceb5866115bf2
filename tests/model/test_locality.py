"""Masks that keep steps local: what the output of a step depends on, found by what changes it."""

import pytest
import torch

from cot2lib import decode
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.locality import causal, masks, seen
from cot2lib.model import GPT2Stack
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.thoughts import MTS

TASK = MNNS(1, 4, 4)
DIGITS = (1, 2, 3, 4)  # places behind <BOS>
SEEDS = (1, 2)


@pytest.fixture(scope="module")
def stack():
    return GPT2Stack(2, TASK.vocab_size, TASK.positions, 8, 2, 2, seeds=SEEDS)


def depends(stack, sees, task=TASK):
    """Which tokens of the prompt, and which thoughts, each step's logits change with."""
    tokens = task.prompt().shape[1]
    mask = seen(task, sees, tokens)
    given = torch.randn(2, 1, tokens + task.steps - 1, 8)

    def logits(x):
        return stack(x, outputs=task.steps, sees=mask)[0, 0]  # (step, vocab)

    found = torch.zeros(task.steps, given.shape[2], dtype=torch.bool)
    for place in range(given.shape[2]):
        other = given.clone()
        other[:, :, place] = torch.randn(8)
        found[:, place] = (logits(other) - logits(given)).abs().amax(1) > 1e-9
    return found


def test_a_strict_step_depends_on_its_own_digit_and_the_thought_before(stack):
    found = depends(stack, "strict")
    for step, digit in enumerate(DIGITS):
        assert found[step].nonzero()[:, 0].tolist() == [digit, 5 + step]


def test_a_strict_hop_depends_on_the_edges_and_the_answer_on_the_options():
    graphs = ProsQA(inputs=40, hops=3)
    edges = graphs.edges.shape[1]
    options, root, arrow = [edges, edges + 1], edges + 2, edges + 3
    found = depends(GPT2Stack(2, 8, graphs.positions, 8, 2, 2, seeds=SEEDS), "strict", graphs)
    hops = [[*range(edges), root, arrow], *([*range(edges), arrow + hop] for hop in (1, 2))]
    assert [step.nonzero()[:, 0].tolist() for step in found] == [*hops, [*options, arrow + 3]]
    assert ProsQA(inputs=40, hops=None).reads is ProsQA(inputs=40, grammar="sentences").reads is None


def test_a_local_step_depends_on_digits_up_to_its_own_through_their_positions(stack):
    found = depends(stack, "local")
    for step, digit in enumerate(DIGITS):
        assert found[step].nonzero()[:, 0].tolist() == [*range(digit + 1), 5 + step]


def test_everything_is_seen_without_a_mask(stack):
    assert seen(TASK, "all", 6) is None
    found = depends(stack, "all")
    assert torch.equal(found, torch.ones_like(found).tril(5))


@pytest.mark.parametrize("sees", ["local", "strict"])
def test_rollouts_and_their_replay_agree_with_each_alone(stack, sees):
    """Cached step by step, in branches side by side, and in one forward."""
    prompts, steps = TASK.prompt()[None, :6], decode.rules(MTS(2), TASK.steps)
    mask, keys = seen(TASK, sees, prompts.shape[2]), random.run_keys(SEEDS, Site.DECODE)
    rollout = decode.decode(stack, prompts, steps, keys, samples=3, sees=mask)
    again = decode.replay(stack, prompts, rollout.thoughts(stack), sees=mask)
    assert (again - rollout.logits).abs().max() < 1e-5
    inputs = torch.cat([stack.embed(prompts.repeat_interleave(3, 1)), rollout.thoughts(stack)], 2)
    plain = stack(inputs, outputs=TASK.steps, sees=mask)
    assert (plain - rollout.logits).abs().max() < 1e-5


def test_masks_of_trained_models_restrict_what_they_name(stack):
    """Every other position sees what it saw in training; a query sees itself and the places by name."""
    tokens, arrow = 6, 5
    query = [arrow + step for step in range(TASK.steps)]
    thoughts = [range(tokens, query[step]) for step in range(TASK.steps)]
    whole, found = causal(tokens + TASK.steps - 1), masks(TASK, tokens)
    kinds = {
        "own digit": lambda step: {DIGITS[step]},
        "own digit, arrow": lambda step: {DIGITS[step], arrow},
        "own digit, <BOS>": lambda step: {DIGITS[step], 0},
        "own digit, <BOS>, arrow": lambda step: {DIGITS[step], 0, arrow},
        "no earlier thoughts": lambda step: {*range(tokens)},
        "no digits": lambda step: {0, arrow, *thoughts[step]},
    }
    cases = {f"step {step + 1}: own digit, <BOS>": ([step], kinds["own digit, <BOS>"]) for step in range(TASK.steps)}
    for name, steps in (("answer", [TASK.steps - 1]), ("steps", range(TASK.steps))):
        cases |= {f"{name}: {kind}": (steps, seen) for kind, seen in kinds.items()}
    assert cases.keys() == {name for name in found if "another" not in name}
    for name, (steps, named) in cases.items():
        (mask,) = found[name]
        for place in range(len(whole)):
            seen_there = {query[step]: named(step) | {query[step]} for step in steps}.get(place)
            expected = {*whole[place].nonzero()[:, 0].tolist()} if seen_there is None else seen_there
            assert {*mask[place].nonzero()[:, 0].tolist()} == expected, (name, place)
    others = [mask[query[1]].nonzero()[:, 0].tolist() for mask in found["steps: another digit"]]
    assert sorted(others) == [[1, 6], [3, 6], [4, 6]]
