"""The opponents of `benchmarks/` compute what ours does; how fast, no test says."""

import sys
from pathlib import Path

import pytest
import torch

from cot2lib.decode import decode
from cot2lib.losses import soft_nll

pytest.importorskip("transformers")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import grpo
import shared
import train


@pytest.mark.parametrize("measure, module", [(train.steps, train), (grpo.prompts, grpo)], ids=["train", "grpo"])
def test_steps_and_prompts_are_timed_beside_the_limit(measure, module, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None, raising=False)  # JAX takes long to compile
    monkeypatch.setattr(module, "step_flops", lambda trainer: 1e6)  # torch's counter loads the compiler
    for owner in (shared, module):
        monkeypatch.setattr(owner, "STEPS", 1)
    monkeypatch.setattr(shared, "FUSED_STEPS", 2)
    monkeypatch.setattr(module, "SIZES", (1, 2))
    monkeypatch.setattr(module, "MOST", 2, raising=False)
    table = measure(rounds=1, compiled=False)
    others = ["torch.func.vmap, 2 runs"] * (module is train) + ["fused, 1 runs", "fused, 2 runs"]
    assert list(table["variant"]) == [shared.BASELINE, "stack of 1", "stack of 2", *others]
    assert table["times"].iloc[0] == 1 and (table[["rate", "share", "sgemm"]] > 0).all(axis=None)


def test_timed_rates_are_of_one_run(monkeypatch):
    """And a slow round counts neither for the rate nor for the ratio."""
    spent = {"loop": [2.0, 2.0, 8.0], "stack": [1.0, 1.0, 4.0]}
    monkeypatch.setattr(shared, "in_turns", lambda turns, rounds: spent)
    ways = [shared.Variant("loop", 1, int, 6), shared.Variant("stack", 4, int, 6)]
    table = shared.timed(ways, rounds=3)
    assert table["rate"].tolist() == [3.0, 24.0] and table["times"].tolist() == [1.0, 8.0]


def test_logits_of_the_loop_give_our_loss():
    """Taught or on its own thoughts."""
    for model, scores in ((train.MAIN, train.taught_logits), (train.OWN, train.own_logits)):
        trainer = train.SupervisedTrainer([model(dropout=0.0)])
        batch = trainer.data.batch(trainer.data.order([42], 0, 1, 16)[:, 0])
        logits = scores(trainer.stack.to_hf(0), batch.prompts[0], batch.outputs[0])
        loss = soft_nll(logits[None], batch.outputs).sum(-1).mean()
        assert loss.item() == pytest.approx(
            trainer.loss(trainer.stack, trainer.spec, batch, *trainer.phase).item(), rel=1e-5
        )


@pytest.fixture
def policies():
    """Our trainer, and the loop with its weights."""
    trainer = grpo.trainer(1)
    return trainer, grpo.PlainGRPO(trainer.spec, trainer.stack.to_hf(0))


def test_plain_grpo_step_is_ours(policies, monkeypatch):
    """It draws from the same chances; the same draws move the weights alike, the reward and AdamW included."""
    trainer, plain = policies
    index = trainer.data.order([42], 0, 1, trainer.recipe.batch)[:, 0]
    kept, seen = [], []
    monkeypatch.setattr(trainer, "decode", lambda *given, **named: kept.append(decode(*given, **named)) or kept[-1])
    start = trainer.stack.transformer.wte.weight.detach().clone()
    trainer.update(index)
    given, roll_out = iter(kept[0].actions), plain.roll_out
    draw = lambda chances, count: seen.append(chances) or next(given)[0]
    monkeypatch.setattr(plain, "roll_out", lambda prompts: roll_out(prompts, draw))
    plain.step(trainer.data.prompts[index[0]], trainer.data.answers[index[0]])
    assert torch.allclose(torch.stack(seen, 1), kept[0].logits[0].softmax(-1), rtol=0, atol=1e-4)
    moved = trainer.stack.transformer.wte.weight[0] - start[0]
    assert (moved - (plain.model.transformer.wte.weight - start[0])).abs().max() < 1e-6 and moved.abs().max() > 1e-5
