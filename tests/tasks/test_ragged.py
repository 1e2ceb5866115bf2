"""A task whose inputs differ in length, start, score and number of trajectories, against computations by hand."""

from dataclasses import dataclass

import pytest
import torch
from ragged import LONGEST, Ragged

from cot2lib import MTS, Base, Discrete, GRPOSpec, Rule, RunSpec, Thought, losses
from cot2lib.decode import ANSWER, decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.specs import Model, Recipe, Supervision
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import Task
from cot2lib.thoughts import Hidden
from cot2lib.training.data import stack_data
from cot2lib.training.grpo import GRPOTrainer, objective
from cot2lib.training.supervised import SupervisedTrainer, batch_loss, build_stack

TASK = Ragged()
RECIPE = Recipe(steps=60, batch=16, lr=3e-3, evaluate_every=30)
MODEL = Model(16, 1, 2)


ALL, BASE = Supervision(), Base()


def run_of(supervision=ALL, thought=BASE, **options):
    return RunSpec(RECIPE, TASK, MODEL, supervision, thought, **options)


def by_hand(row, budget):
    """Shares of the best trajectories in each state after each step, the last one-hot: (step, vocab)."""
    kept = TASK.ordered(row)[:budget]
    targets = torch.zeros(len(TASK.inputs[row]), TASK.vocab_size, dtype=torch.float64)
    for walk in kept:
        for step, state in enumerate(walk[:-1]):
            targets[step, TASK.state_ids[state]] += 1 / len(kept)
    targets[-1, TASK.answer_ids[row]] = 1
    return targets


@pytest.mark.parametrize("budget", [None, 1, 3, 16])
def test_targets_are_those_of_listed_trajectories(budget):
    found = hindsight_targets(TASK, budget)
    assert found.shape == (117, LONGEST, TASK.vocab_size)
    for row, length in enumerate(TASK.lengths.tolist()):
        assert torch.allclose(found[row, :length], by_hand(row, budget), atol=1e-12)
        assert found[row, length:].abs().sum() == 0


def alone(stack, supervision, row, budget=None):
    """Logits of one input without padding and without further steps, and its targets; thoughts are fed by hand."""
    steps = supervision.output_steps(len(TASK.inputs[row]))
    targets = by_hand(row, budget)[steps]
    if supervision.eos:
        targets = torch.cat([targets, torch.eye(TASK.vocab_size).double()[[TASK.eos_id]]])
    prompt = TASK.prompt(supervision.arrow)[row, TASK.padding[row] :]
    inputs = torch.cat([stack.embed(prompt[None]), stack.mix(targets[None, None, :-1].float())], 2)
    return stack(inputs, outputs=len(targets))[0, 0], targets


ALONE = torch.tensor([[0, 8, 20, 50, 110]])


@pytest.mark.parametrize(
    "supervision, end",  # a curriculum scores the first outputs alone: two, where an input has as many as four
    [
        (Supervision(), None),
        (Supervision(reduction="mean"), None),
        (Supervision(budget=1, eos=True, reduction="mean"), None),
        (Supervision(every=2), None),
        (Supervision(every=None, eos=True), None),
        (Supervision(), 2),
        (Supervision(reduction="mean"), 2),
    ],
)
def test_batch_loss_is_that_of_every_input_alone(supervision, end):
    run = run_of(supervision)
    stack, data, total = build_stack([run]), stack_data([run], "cpu"), 0.0
    for row in ALONE[0].tolist():
        logits, targets = (part[:end] for part in alone(stack, supervision, row, supervision.budget))
        nll = -(targets * logits.double().log_softmax(-1)).sum(-1)
        total += (nll.sum() if supervision.reduction == "sum" else nll.mean()) / 5
    assert batch_loss(stack, run, data.batch(ALONE), end=end).item() == pytest.approx(total.item(), rel=1e-5)


def test_a_stage_of_coconut_scores_what_follows_its_own_thoughts_and_every_answer():
    """Two own thoughts: an input of two steps has one, so that its answer is scored."""
    supervision = Supervision(budget=1, feeding="stages", reduction="mean")
    run = run_of(supervision, Hidden())
    stack, data = build_stack([run]), stack_data([run], "cpu")
    index, total = torch.tensor([[1, 15, 60]]), 0.0
    for row in index[0].tolist():
        length = len(TASK.inputs[row])
        own = min(2, length - 1)
        inputs = stack.embed(TASK.prompt()[row, TASK.padding[row] :][None])
        for _ in range(own):
            inputs = torch.cat([inputs, stack.hidden(inputs)[:, :, -1:]], 2)
        targets = by_hand(row, 1)[own:]
        inputs = torch.cat([inputs, stack.mix(targets[None, None, :-1].float())], 2)
        logits = stack(inputs, outputs=len(targets))[0, 0].double()
        total += -(targets * logits.log_softmax(-1)).sum(-1).mean() / 3
    assert batch_loss(stack, run, data.batch(index), own=2).item() == pytest.approx(total.item(), rel=1e-5)


@pytest.mark.parametrize("thought", [Base(), Discrete(), Hidden()])
def test_an_input_decodes_as_it_does_alone(thought):
    run = run_of(thought=thought)
    stack, data = build_stack([run]), stack_data([run], "cpu")
    index = ALONE
    padding, last = data.padding_of(index), data.last_of(index)
    made = decode(stack, data.prompts[index], rules(thought, LONGEST), padding=padding, last=last)
    for place, row in enumerate(index[0].tolist()):
        length = len(TASK.inputs[row])
        one = decode(stack, TASK.prompt()[row, TASK.padding[row] :][None, None], rules(thought, length))
        assert torch.allclose(made.logits[0, place, :length], one.logits[0, 0], atol=1e-5)
        assert made.answers[0, place] == one.answers[0, 0]
        assert torch.equal(made.weights[0, place, length - 1], one.weights[0, 0, -1])


def test_an_answer_rule_reads_the_hidden_state_of_its_own_step():
    """Each input's last one, as if it were decoded alone, with its row; what comes after it cannot be seen."""
    stack, rows, seen = build_stack([run_of()]), ALONE, []
    data = stack_data([run_of()], "cpu")

    @dataclass(frozen=True)
    class Noted(Rule):
        def __call__(self, state):
            seen.append(state)
            return Thought(state.logits.softmax(-1))

    steps = rules(Base(), LONGEST, Noted())
    decode(stack, data.prompts[rows], steps, padding=data.padding_of(rows), last=data.last_of(rows), rows=rows)
    state = seen[-1]
    assert torch.equal(state.rows, rows) and state.step is None
    assert torch.allclose(stack.logits(state.hidden[:, :, None])[:, :, 0], state.logits, atol=1e-6)
    assert torch.allclose(state.mix(torch.eye(TASK.vocab_size)[None, :5]), stack.transformer.wte.weight[:, :5])
    for place, row in enumerate(rows[0].tolist()):
        decode(
            stack, TASK.prompt()[row, TASK.padding[row] :][None, None], rules(Base(), len(TASK.inputs[row]), Noted())
        )
        assert torch.allclose(seen[-1].hidden[0, 0], state.hidden[0, place], atol=1e-5)
    with pytest.raises(SpecError, match="cannot peek"):
        state.peek()


def test_inputs_of_one_length_decode_as_without_the_last_step():
    """Told that all answers come at the last step, decoding draws what it draws untold."""
    run, keys = run_of(), random.run_keys([3], Site.DECODE)
    stack, rows = build_stack([run]), (TASK.lengths == LONGEST).nonzero()[:6, 0]
    prompts, steps = TASK.prompt()[rows][None], rules(MTS(2), LONGEST, ANSWER)
    told = decode(stack, prompts, steps, keys, last=torch.full((1, 6), LONGEST - 1), samples=2)
    untold = decode(stack, prompts, steps, keys, samples=2)
    assert torch.equal(told.answers, untold.answers)
    assert torch.equal(told.weights, untold.weights)


def test_evaluation_counts_right_answers_and_means_over_inputs_that_have_the_step():
    run = run_of()
    trainer = SupervisedTrainer([run])
    trainer.train()
    found, right, entropies = trainer.evaluate(), [0, 0], [[] for _ in range(LONGEST)]
    held_out = trainer.data.held_out
    for row, second in zip(held_out.index[0].tolist(), held_out.half[0].tolist(), strict=True):
        length = len(TASK.inputs[row])
        one = decode(trainer.stack, TASK.prompt()[row, TASK.padding[row] :][None, None], rules(Base(), length))
        right[second] += int(one.answers == TASK.answer_ids[row])
        for step, p in enumerate(one.logits[0, 0].detach().softmax(-1)):
            entropies[step].append(float(torch.special.entr(p).sum()))
    assert [found["correct_a"][0], found["correct_b"][0]] == right and 0 < sum(right) < held_out.real.sum()
    for step, values in enumerate(entropies):
        assert found[f"entropy_{step + 1}"][0] == pytest.approx(sum(values) / len(values), abs=1e-5)


def grpo_of(**options):
    recipe = Recipe(steps=6, batch=8, lr=1e-3, evaluate_every=6)
    return GRPOSpec(recipe, run_of(Supervision(budget=1), Discrete()), **{"thought": MTS(2), "group": 4} | options)


def test_policy_gradients_weigh_the_steps_of_every_rollout_by_hand():
    """Surrogate and divergence of the steps that a rollout has, their mean, then the mean over rollouts."""
    run = grpo_of(kl=0.3)
    trainer = GRPOTrainer([run], build_stack([run.start]))
    index = torch.tensor([[0, 20, 110]])
    rollout = trainer.roll_out(index)
    rewards, advantages = trainer.reward(index, rollout.answers)
    steps = [len(TASK.inputs[row]) for row in index[0].tolist() for _ in range(4)]
    rows = [row for row in index[0].tolist() for _ in range(4)]
    assert rewards[0].tolist() == [float(a == TASK.answer_ids[r]) for a, r in zip(rollout.answers[0], rows)]
    given = (run.thought, trainer.data.prompts[index], trainer.data.padding_of(index), rollout)
    new = trainer.replayed(trainer.stack, *given)
    generator = torch.Generator().manual_seed(0)
    away = lambda part: part.detach() - 0.2 * torch.rand(part.shape, generator=generator)  # another gap at every step
    old, reference = ([away(part) for part in new] for _ in range(2))
    value = objective(new, old, advantages, kl=run.kl, reference=reference, there=rollout.there)
    total = 0.0
    for place, length in enumerate(steps):
        part = []
        for step in range(length):
            last = step == length - 1
            draws = [x[1][0, place, 0] if last else x[0][0, place, step] for x in (new, old, reference)]
            ratio = (draws[0] - draws[1]).mean().exp()
            clipped = torch.minimum(ratio * advantages[0, place], ratio.clamp(0.9, 1.1) * advantages[0, place])
            gap = (draws[2] - draws[0]).mean()
            part.append(clipped - 0.3 * (gap.exp() - gap - 1))
        total -= sum(part) / length / len(steps)
    assert value.item() == pytest.approx(total.item(), rel=1e-4, abs=1e-7)
    assert losses.outside_clip(losses.log_ratios(new[0], new[0].detach(), "geometric"), 0.1).sum() == 0


def test_what_a_task_lacks_is_named():
    @dataclass(frozen=True)
    class Half(Task):
        size: int  # a field without a default counts as given
        name: str = "half"

        def prompt(self, arrow=True, pauses=0):
            return torch.zeros(1, 1, dtype=torch.int64)

        def children(self, step, rows=slice(None)):
            return torch.zeros(1, 1, 1, dtype=torch.int64)

    with pytest.raises(SpecError, match=r"task Half lacks vocab_size, eos_id, .*score; cot2lib.Task says"):
        Half(3)
