"""Training on targets of their own, by torch: what is fed, and what is scored."""

from dataclasses import replace

import torch
from builders import SUMS, short

from cot2lib import losses
from cot2lib.specs import Supervision
from cot2lib.specs.profiles import spec
from cot2lib.supervision import hindsight_targets
from cot2lib.targets import Apart, Arrow, DrawnState, FreshPath, Frontier, Renamed, Shuffled
from cot2lib.tasks import ProsQA
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import SupervisedTrainer, batch_loss, build_stack

FIXED, FRESH = Apart(Renamed(), Shuffled()), Apart(DrawnState(), FreshPath(2))


def control(rule, seed=42, **supervision):
    return replace(short(seed=seed), supervision=Supervision(targets=rule, **supervision))


def trained(*specs, steps=20):
    trainer = SupervisedTrainer(specs)
    trainer.advance(steps)
    return trainer


def test_one_is_fed_and_the_other_is_scored():
    """The loss by hand."""
    run = control(Apart(Frontier(), Arrow()))
    stack, data = build_stack([run]), stack_data([run], "cpu")
    rows = data.train[0][:8]
    batch = data.batch(rows[None])
    arrow = torch.full((1, 8, SUMS.steps - 1), SUMS.prompt()[0, -1])
    inputs = torch.cat(
        [
            stack.embed(data.prompts[rows][None]),
            stack.mix(torch.nn.functional.one_hot(arrow, SUMS.vocab_size).float()),
        ],
        2,
    )
    nll = losses.soft_nll(stack(inputs, outputs=SUMS.steps), hindsight_targets(SUMS, rows=rows)[None].float())
    assert torch.allclose(batch_loss(stack, run, batch), nll.sum(-1).mean(-1))
    assert (batch.outputs[0] == hindsight_targets(SUMS, rows=rows).float()).all()


def test_held_out_inputs_have_no_targets():
    data = stack_data([control(FIXED)], "cpu")
    held_out = data.held_out.index[0][data.held_out.real[0]]
    assert not data.outputs[0, held_out].any() and data.outputs[0, data.train[0]].sum(-1).eq(1).all()


def test_names_drawn_anew_rename_what_is_fed_too():
    """Under names of the visit, labels and fed mixtures of the frontier are CSFT's."""
    task = ProsQA(inputs=100, naming="fresh")
    run = spec(task=task, d_model=16, layers=1, heads=2, steps=20, batch=8, evaluate_every=20, warmup=2)
    rule = Apart(Frontier(), Frontier())
    same = replace(run, supervision=replace(run.supervision, targets=rule))
    other = replace(run, supervision=replace(run.supervision, targets=Apart(Frontier(), FreshPath())))
    plain, apart, path = (trained(one) for one in (run, same, other))
    assert torch.equal(plain.losses, apart.losses) and not torch.equal(plain.losses, path.losses)
