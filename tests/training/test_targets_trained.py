"""Training on targets of their own, by torch: what is fed, what is scored, and that no run notices its company."""

from dataclasses import dataclass, replace

import pytest
import torch
from builders import SUMS, short, some, weights_of

from cot2lib import losses, runs
from cot2lib.errors import SpecError
from cot2lib.runs import train
from cot2lib.runs.collect import collect
from cot2lib.specs import Supervision
from cot2lib.specs.profiles import spec
from cot2lib.supervision import hindsight_targets
from cot2lib.targets import Apart, Arrow, DrawnState, FreshPath, Frontier, Renamed, Shown, Shuffled, Targets
from cot2lib.tasks import ProsQA
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import SupervisedTrainer, batch_loss, build_stack
from cot2lib.training.trainer import StackTrainer

FIXED, FRESH = Apart(Renamed(), Shuffled()), Apart(DrawnState(), FreshPath(2))


def control(rule, seed=42, **supervision):
    return replace(short(seed=seed), supervision=Supervision(targets=rule, **supervision))


def trained(*specs, steps=20):
    trainer = SupervisedTrainer(specs)
    trainer.advance(steps)
    return trainer


@pytest.mark.parametrize("rule", [Frontier(), Apart(Frontier(), Frontier())], ids=["one", "apart"])
def test_the_frontier_for_both_is_csft_bit_by_bit(rule):
    plain, apart = trained(short()), trained(control(rule))
    assert torch.equal(plain.losses, apart.losses)
    assert all(torch.equal(a, b) for a, b in zip(plain.gradients, apart.gradients))
    assert torch.equal(weights_of(plain), weights_of(apart))


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


@pytest.mark.parametrize(
    "fields", [dict(eos=True), dict(every=2), dict(loss_on="sequence", reduction="mean")], ids=str
)
def test_every_format_of_the_output(fields):
    both = Apart(Frontier(), Frontier())
    plain = trained(replace(short(), supervision=Supervision(**fields)))
    assert torch.equal(plain.losses, trained(control(both, **fields)).losses)
    assert not torch.equal(plain.losses, trained(control(Apart(Frontier(), DrawnState()), **fields)).losses)


@pytest.mark.parametrize("rule", [FIXED, FRESH], ids=["fixed", "fresh"])
def test_a_run_does_not_notice_its_company(rule):
    together, alone = trained(*(control(rule, seed) for seed in (42, 43))), trained(control(rule, 43))
    assert (weights_of(together, 1) - weights_of(alone)).abs().max() < 1e-5
    assert torch.allclose(together.losses[1], alone.losses[0], atol=1e-5)


@pytest.mark.parametrize("engine", ["torch", "auto"])
@pytest.mark.parametrize("rule", some([FIXED, FRESH, Frontier()], 2), ids=["fixed", "fresh", "frontier"])
def test_a_killed_run_goes_on_as_if_it_had_not_been(store, nothing_shipped, monkeypatch, rule, engine):
    run = control(rule)
    monkeypatch.setenv("COT2_STORE", f"{store}-whole")
    whole, weights = runs.run([run], device="cpu", engine=engine), runs.load(run, missing="error").state_dict()
    monkeypatch.setenv("COT2_STORE", str(store))
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", -1.0)
    finish = StackTrainer._record

    def killed(trainer):
        finish(trainer)
        if trainer.progress.step == 40:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StackTrainer, "_record", killed)
        runs.run([run], device="cpu", engine=engine)
    assert list(store.glob("*.checkpoint.safetensors"))
    again = runs.run([run], device="cpu", engine=engine)
    assert again["first_losses"].tolist() == whole["first_losses"].tolist()
    resumed = runs.load(run, missing="error").state_dict()
    assert all(torch.equal(weights[name], resumed[name]) for name in weights)
    assert again["engine"].tolist() == ["torch" if engine == "torch" else "fused"]


def test_names_drawn_anew_rename_what_is_fed_too():
    """Under names of the visit, labels and fed mixtures of the frontier are CSFT's."""
    task = ProsQA(inputs=100, naming="fresh")
    run = spec(task=task, d_model=16, layers=1, heads=2, steps=20, batch=8, evaluate_every=20, warmup=2)
    rule = Apart(Frontier(), Frontier())
    same = replace(run, supervision=replace(run.supervision, targets=rule))
    other = replace(run, supervision=replace(run.supervision, targets=Apart(Frontier(), FreshPath())))
    plain, apart, path = (trained(one) for one in (run, same, other))
    assert torch.equal(plain.losses, apart.losses) and not torch.equal(plain.losses, path.losses)


@dataclass(frozen=True)
class Doubted(Targets):
    """A reader's: labels that leave a share to all tokens."""

    doubt: float = 0.1

    def __call__(self, visits):
        both = hindsight_targets(visits.task, rows=visits.rows)
        return Shown(both * (1 - self.doubt) + self.doubt / both.shape[-1] * both.sum(-1, keepdim=True), both)


def test_a_readers_own_targets_are_named_and_not_collected(store, nothing_shipped, tmp_path):
    one, other = control(Doubted()), control(Doubted(0.2))
    rows = runs.run([one, other, short()], device="cpu")
    assert rows["targets"].tolist() == ["Doubted", "Doubted(doubt=0.2)", ""]
    assert rows["method"].tolist() == ["CoT2, other targets"] * 2 + ["CoT2"]
    with pytest.raises(SpecError, match="Doubted"):
        collect("mine.quick", [one], folder=tmp_path)
