"""The fused engine against the torch stack: gradients, losses, evaluation, and who trains what.

`tests/test_contracts.py` asks of every kind of run that both agree in a few steps; here shapes are drawn.
"""

import json
import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from builders import REWARDED, SUMS, rewarded, some, start, weights_of
from builders import short as of_sixty
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import DRAWN, FIXED, KINDS, reward, supervised
from parity import assert_same_step, both, by_torch, stop_at_a_checkpoint
from ragged import Ragged

from cot2lib import runs
from cot2lib.runs import store as stores
from cot2lib.specs import Model, Recipe, RunSpec, Supervision
from cot2lib.specs.profiles import spec
from cot2lib.targets import Apart, Frontier
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Base, Discrete, Gaussian, Hidden, ZeroSlot
from cot2lib.training import fused as engines
from cot2lib.training.fused import preferred

fast = pytest.importorskip("cot2lib.fast")

TASKS = (SUMS, MNNS(1, 3, 4), Ragged(2))
WIDTHS = (16, 24, 32, 40, 48, 64)
STEPS = 10
short = partial(of_sixty, profile="paper", steps=40)


@st.composite
def shapes(draw):
    """Fields of a run of any supported shape and supervision, of equal or ragged inputs; and one of its steps."""
    pick = lambda *values: draw(st.sampled_from(values))
    width, task, arrow = pick(*WIDTHS), pick(0, 1, 2), pick(True, False)
    teacher, whole, every = (feeding := pick("teacher", "self", "stages")) == "teacher", task < 2, pick(1, 2, None)
    targets = pick(None, FIXED, DRAWN) if teacher and every else None
    loss_on = pick("outputs", "sequence") if teacher and whole else "outputs"
    return dict(
        task=task,
        d_model=width,
        layers=pick(1, 2, 3, 4),
        heads=pick(*[heads for heads in (1, 2, 4) if width % (2 * heads) == 0]),
        embedding=pick("learned", "cosine", "cosine, frozen") if whole else "learned",
        batch=pick(16, 64, 7),
        dropout=pick(0.0, 0.1, 0.5),
        thought=Base() if teacher else pick(Base(), Hidden(), ZeroSlot()),
        step=pick(*range(STEPS)),
        supervision=dict(
            targets=targets,
            budget=None if targets else pick(None, 1, 2, 3),
            every=every if teacher else every or 1,
            feeding=feeding,
            curriculum=pick("none", "growing") if teacher and loss_on == "outputs" else "none",
            arrow=arrow,
            eos=pick(True, False),
            loss_on=loss_on,
            reduction=pick("sum", "mean"),
            pauses=pick(0, 1) if arrow and every is None and teacher else 0,
        ),
    )


def built(fields):
    """The run of those fields; outside the strategy, since checking types draws at random."""
    recipe = Recipe(STEPS, fields["batch"], 1e-3, STEPS, weight_decay=0.01, dropout=fields["dropout"])
    model = Model(*(fields[name] for name in ("d_model", "layers", "heads", "embedding")))
    return RunSpec(recipe, TASKS[fields["task"]], model, Supervision(**fields["supervision"]), fields["thought"])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(shapes())
def test_every_gradient_is_torchs(fields):
    assert_same_step(built(fields), fields["step"])


LONGEST = RunSpec(Recipe(2, 4, 1e-3, 2, dropout=0.1), MNNS(1, 2, 100, inputs=40), Model(16, 2, 2), Supervision())
HEADS_OF_SIX, HEADS_OF_TEN = (spec("cot2", "paper", d_model=d, layers=4, heads=4) for d in (24, 40))


@pytest.mark.parametrize(
    "run",
    [spec("cot2", "paper"), LONGEST, HEADS_OF_SIX, HEADS_OF_TEN],
    ids=["main", "200 positions", "heads of six", "heads of ten"],
)
def test_every_gradient_is_torchs_at_the_ends(run):
    assert_same_step(run)


def felt(trainer, run):
    """A run's weights but for the biases of keys, which no softmax feels: their gradients are rounding alone."""
    width = trainer.stack.shape["d_model"]
    keys = lambda name, weights: torch.cat([weights[:width], weights[2 * width :]]) if "attn.bias" in name else weights
    return torch.cat(
        [keys(name, weights[run].detach().flatten()) for name, weights in trainer.stack.named_parameters()]
    )


@pytest.mark.parametrize(
    "name", some(["CSFT", "no-CoT", "discrete", "pauses", "COCONUT", "ZeroSlot", "fixed", "drawn"], 1)
)
def test_losses_of_two_hundred_steps_are_torchs(name):
    """Compiled and eager torch differ by 5e-6 here."""
    run = KINDS[name].run
    run = replace(run, recipe=replace(run.recipe, steps=200, evaluate_every=200))
    torch_, fused_ = both(run, replace(run, seed=43))
    while torch_.progress.step < 200:
        torch_.advance(ahead := torch_.ahead()), fused_.advance(ahead)
        assert (torch_.losses - fused_.losses).abs().max() < 5e-5
    assert (felt(torch_, 1) - felt(fused_, 1)).abs().max() < 1e-4
    assert (fused_.losses[0] - fused_.losses[1]).abs().max() > 0.01


def test_the_first_step_is_of_the_rate():
    """AdamW divides the first gradient by its own size; biases begin at zero, so a step of theirs loses no digit."""
    run = short()
    _, fused_ = both(replace(run, recipe=replace(run.recipe, beta2=0.5)))
    fused_.advance(1)
    biases = [value.detach() for name, value in fused_.stack.named_parameters() if name.endswith("bias")]
    assert max(float(bias.abs().max()) for bias in biases) == pytest.approx(run.recipe.lr, rel=1e-6)


@pytest.mark.parametrize("name", ["drawn", *(f"{kind}, names drawn anew" for kind in ("drawn", "own", "MTS"))])
def test_losses_of_what_every_visit_draws_are_torchs(name):
    """Of thirty steps in pieces of several: names and paths are not those of a piece's first."""
    run = KINDS[name].run
    torch_, fused_ = both(replace(run, recipe=replace(run.recipe, steps=30)))
    torch_.advance(30), fused_.advance(30)
    assert (torch_.losses - fused_.losses).abs().max() < 5e-5 and len(set(torch_.losses[0, :30].tolist())) > 5


def test_a_cosine_schedule_with_several_rates_and_budgets_in_a_stack():
    differing = ((42, 1e-3, 2), (42, 3e-3, 4), (43, 3e-3, 2))
    company = [short(profile="quick", seed=seed, budget=b, lr=lr) for seed, lr, b in differing]
    torch_, fused_ = both(*company)
    torch_.advance(40), fused_.advance(40)
    for place in range(3):
        assert (weights_of(torch_, place) - weights_of(fused_, place)).abs().max() < 1e-4


def test_the_frontier_for_both_is_csft():
    """Bit by bit through the entry of CSFT, and to rounding through that which feeds and scores apart."""
    plain, same, apart = (
        both(replace(short(), supervision=Supervision(targets=rule)))[1]
        for rule in (None, Frontier(), Apart(Frontier(), Frontier()))
    )
    for trainer in (plain, same, apart):
        trainer.advance(20)
    assert torch.equal(plain.losses, same.losses) and torch.equal(weights_of(plain), weights_of(same))
    assert same.engine.fed is same.engine.scored and apart.engine.fed is not apart.engine.scored
    assert (plain.losses - apart.losses).abs().max() < 5e-5


def test_rewards_of_sixty_steps_are_torchs():
    """A rewarded answer more or less is 1/64 of a loss; rounding may turn a draw near the edge of two tokens."""
    recipe = replace(REWARDED, steps=60, batch=8, lr=1e-4, weight_decay=0.01, dropout=0.1, evaluate_every=60)
    before = replace(start(), task=MNNS(1, 3, 4), model=replace(start().model, layers=2, heads=2))
    one = replace(rewarded(thought=MTS(3), recipe=recipe, kl=0.1), start=before)
    torch_, fused_ = both(one, replace(one, start=replace(before, seed=43)))
    torch_.advance(60), fused_.advance(60)
    apart = (torch_.losses - fused_.losses).abs()[:, :60]
    assert (apart > 0).float().mean() < 0.05 and apart.max() < 0.02
    assert torch_.losses[:, :60].std(1).min() > 0.003
    assert (weights_of(torch_, 1) - weights_of(fused_, 1)).abs().mean() < 1e-4


# Evaluation


@pytest.mark.parametrize(
    "run",
    [
        short("cot2", layers=3, steps=150, lr=3e-3),
        short("discrete", d_model=24, heads=4, steps=150, lr=3e-3),
        RunSpec(Recipe(80, 8, 3e-3, 30), Ragged(3), Model(16, 2, 2)),
        RunSpec(Recipe(80, 8, 3e-3, 30), Ragged(3), Model(16, 2, 2), Supervision(budget=1), Discrete()),
    ],
    ids=["cot2", "discrete, heads of six", "ragged", "ragged, discrete"],
)
def test_evaluation_is_torchs(run):
    torch_, fused_ = both(run)
    fused_.advance(run.recipe.evaluate_every), fused_.advance(min(100, run.recipe.steps - 20))
    torch_.stack.load_state_dict(fused_.stack.state_dict())
    expected, made = torch_.evaluate(), fused_.evaluate()
    assert set(expected) == set(made)
    assert abs(sum(expected["correct_a"] + expected["correct_b"]) - sum(made["correct_a"] + made["correct_b"])) <= 1
    assert sum(made["correct_a"]) > 0
    for name in expected:
        if name.startswith("entropy"):
            assert made[name] == pytest.approx(expected[name], abs=1e-4)


# Runs


@pytest.mark.parametrize("first, then", [("auto", "torch"), ("torch", "auto")])
def test_a_run_goes_on_with_the_other_engine(store, nothing_shipped, monkeypatch, first, then):
    run = short()
    whole = both(run)[1]
    whole.train()
    assert "optimizer" not in vars(whole), "torch would load its compiler with one"
    stop_at_a_checkpoint(monkeypatch, run, engine=first)
    runs.run([run], device="cpu", engine=then)
    row = runs.recorded([run], retrain=True).iloc[0]
    names = {"auto": "fused", "torch": "torch"}
    assert row["engine"] == f"{names[first]}, then {names[then]}"
    for name, value in stores.weights(run.id).items():
        assert (value - whole.stack.state_dict()[name][0]).abs().max() < 1e-4, name
    assert len(json.loads(row["first_losses"])) == 20


def test_a_run_that_diverges_shows_it():
    torch_, fused_ = both(short(lr=1e30, dropout=0.0))
    torch_.train(), fused_.train()
    for trainer in (torch_, fused_):
        assert not math.isfinite(trainer.progress.curves[-1]["loss"][0])


SETS = supervised(scoring="set")


@pytest.mark.parametrize(
    "run, says",
    [
        (short(d_model=20), "needs d in eights and heads of even width, not d=20 with 2 heads"),
        (short(d_model=24, heads=8), "not d=24 with 8 heads"),
        (supervised(Base(2.0), feeding="self"), "does not feed Base(temperature=2.0) in training"),
        (SETS, "does not score sets"),
        (reward(Gaussian(0.2)), "does not sample Gaussian"),
        (reward(Discrete(1.0, top_k=3)), "does not sample Discrete"),
        (reward(Base(), mask=0.1), "has no MaskedTrainer"),
    ],
    ids=["width", "heads", "rule", "sets", "sampler", "top tokens", "masks"],
)
def test_what_the_engine_does_not_know_is_trained_by_torch(run, says, capsys):
    engines._say.cache_clear()
    trainer = by_torch(run)
    assert preferred(trainer) is trainer
    told = capsys.readouterr().err
    assert says in told and told.count("\n") == 1
    assert preferred(by_torch(supervised(Base(2.0)))).engine.name == "fused", "where it acts at evaluation alone"
    assert capsys.readouterr().err == ""


def test_without_a_compiler_torch_trains_and_a_line_says_so(monkeypatch, capsys):
    def unbuilt():
        raise OSError("false: ")

    engines._say.cache_clear()
    monkeypatch.setattr(engines.fast, "library", unbuilt)
    for trainer in (by_torch(short()), by_torch(short("no-cot"))):
        assert preferred(trainer) is trainer
    assert capsys.readouterr().err == "torch trains here: the fused engine cannot be built here (false: ).\n"
