"""Names that are drawn anew at every visit: in prompts, targets, answers and rewards."""

from dataclasses import replace

import torch

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.specs.profiles import grpo, spec
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.reachability import SPECIALS
from cot2lib.thoughts import MTS
from cot2lib.training.data import renamed, stack_data
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.supervised import build_stack

SMALL = ProsQA(inputs=200)


def test_new_names_are_the_same_in_prompt_targets_and_answer():
    """Parsed back under the permutation, a renamed batch is the batch itself."""
    data = stack_data([spec("cot2", task=SMALL)], "cpu")
    index = torch.arange(12)[None]
    names = data.names(random.run_keys([7], Site.NAMES), 12)
    assert names.sort(-1).values.eq(torch.arange(SMALL.vocab_size)).all()
    assert (names[..., : len(SPECIALS)] == torch.arange(len(SPECIALS))).all() and len(names[0].unique(dim=0)) == 12
    batch, plain = data.batch(index, names), data.batch(index)
    back = names.argsort(-1)
    assert not torch.equal(batch.prompts, plain.prompts)
    assert torch.equal(renamed(batch.prompts, back), plain.prompts)
    assert torch.equal(batch.outputs.gather(3, names[:, :, None].expand_as(batch.outputs)), plain.outputs)
    new_answers = names.gather(2, data.answers[index][..., None])[..., 0]
    assert data.right(new_answers, index, names).all()
    assert not data.right(data.answers[index], index, names).all()


def test_a_name_keeps_its_roles_together():
    task = ProntoQA(inputs=60, reading="sign")
    names = stack_data([spec(task=task)], "cpu").names(random.run_keys([1], Site.NAMES), 5)
    first, *others = (names[..., tokens] - tokens[0] for tokens in task.renamed)
    assert len(others) == 2 and all(torch.equal(first, other) for other in others)


def test_stored_names_stay_under_other_namings():
    assert SMALL.renamed is not None and replace(SMALL, naming="once").renamed is None
    assert torch.equal(replace(SMALL, naming="once").prompt(), SMALL.prompt())
    assert torch.equal(replace(SMALL, naming="age").edges, SMALL.graphs.edges)


# Policy gradients


def test_rewards_are_counted_under_the_names_of_the_visit():
    """Answers under new names earn everything with these names, and nothing to speak of without."""
    run = grpo(spec("discrete", task=SMALL, d_model=16, layers=1), thought=MTS(2))
    trainer = GRPOTrainer([run], build_stack([run.start]))
    index = torch.arange(16)[None]
    names = trainer.names(index)
    answers = names.gather(2, trainer.data.answers[index][..., None])[..., 0].repeat_interleave(trainer.group, 1)
    assert trainer.reward(index, answers, names)[0].mean() == 1
    assert trainer.reward(index, answers)[0].mean() < 0.5
    rollout = trainer.roll_out(index, names)
    assert rollout.answers.shape == (1, 16 * trainer.group)
