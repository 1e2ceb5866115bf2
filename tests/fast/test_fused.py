"""The fused engine against the torch stack: gradients, dropout bits, losses, evaluation, and who trains what."""

import math
import os
import shutil
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from builders import some, weights_of
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import assert_company_changes_nothing, assert_same_step, both, multipliers, stop_at_a_checkpoint
from ragged import Ragged

from cot2lib import runs
from cot2lib.model.dropout import Dropout
from cot2lib.runs import store as stores
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Base
from cot2lib.training import engines
from cot2lib.training.engines import preferred
from cot2lib.training.settings import Model, Recipe, Supervision
from cot2lib.training.supervised import SupervisedTrainer

fast = pytest.importorskip("cot2lib.fast")

TASK = MNNS(1, 5, 3)
LONG = MNNS(1, 2, 100, inputs=40)
TASKS = (TASK, MNNS(1, 3, 4), Ragged(2))
WIDTHS = (16, 24, 32, 40, 48, 64)


LONGEST = RunSpec(Recipe(2, 4, 1e-3, 2, dropout=0.1), LONG, Model(16, 2, 2), Supervision())


def short(method="cot2", profile="paper", **options):
    recipe = dict(steps=40, evaluate_every=20, batch=16) | options.pop("recipe", {})
    return spec(method, profile, **dict(task=TASK, d_model=16) | options, **recipe)


@st.composite
def shapes(draw):
    """Fields of a run of any supported shape and supervision, of equal or ragged inputs."""
    width, task = draw(st.sampled_from(WIDTHS)), draw(st.integers(0, len(TASKS) - 1))
    arrow, every, whole = draw(st.booleans()), draw(st.sampled_from([1, 2, None])), task < 2
    return dict(
        task=task,
        d_model=width,
        layers=draw(st.integers(1, 4)),
        heads=draw(st.sampled_from([heads for heads in (1, 2, 4) if width % (2 * heads) == 0])),
        embedding=draw(st.sampled_from(["learned", "cosine", "cosine, frozen"] if whole else ["learned"])),
        batch=draw(st.sampled_from([16, 64, 7])),
        dropout=draw(st.sampled_from([0.0, 0.1, 0.5])),
        supervision=dict(
            budget=draw(st.sampled_from([None, 1, 2, 3])),
            every=every,
            arrow=arrow,
            eos=draw(st.booleans()),
            loss_on=draw(st.sampled_from(["outputs", "sequence"])) if whole else "outputs",
            reduction=draw(st.sampled_from(["sum", "mean"])),
            pauses=draw(st.integers(0, 1)) if arrow and every is None else 0,
        ),
    )


def built(fields):
    """The run of those fields; outside the strategy, since checking types draws at random."""
    recipe = Recipe(10, fields["batch"], 1e-3, 10, weight_decay=0.01, dropout=fields["dropout"])
    model = Model(*(fields[name] for name in ("d_model", "layers", "heads", "embedding")))
    return RunSpec(recipe, TASKS[fields["task"]], model, Supervision(**fields["supervision"]))


@settings(max_examples=16, deadline=None, derandomize=True)
@given(shapes())
def test_every_gradient_is_torchs(fields):
    assert_same_step(built(fields))


HEADS_OF_SIX, HEADS_OF_TEN = (spec("cot2", "paper", d_model=d, layers=4, heads=4) for d in (24, 40))


@pytest.mark.parametrize(
    "run",
    [spec("cot2", "paper"), LONGEST, HEADS_OF_SIX, HEADS_OF_TEN],
    ids=["main", "200 positions", "heads of six", "heads of ten"],
)
def test_every_gradient_is_torchs_at_the_ends(run):
    assert_same_step(run)


def test_dropout_bits_are_torchs():
    torch_, fused_ = both(short(seed=43))
    fused_.advance(3)
    torch_.step.fill_(2)
    shape = fused_._shape
    lanes = torch_.stack.dropout_lanes(shape.batch, shape.positions, shape.scored)
    expected = torch.cat(list(torch_.dropout().scales(lanes)), 1)[0]
    made = multipliers(fused_, 0, len(expected))
    assert torch.equal(made, expected) and 0 < (expected == 0).float().mean() < 0.2
    assert isinstance(torch_.dropout(), Dropout)


@pytest.mark.parametrize("method", some(["cot2", "no-cot", "discrete", "pause"], 1))
def test_losses_of_two_hundred_steps_are_torchs(method):
    """Compiled and eager torch differ by 5e-6 here."""
    torch_, fused_ = both(*(short(method, seed=seed, recipe=dict(steps=200)) for seed in (42, 43)))
    torch_.advance(200), fused_.advance(200)
    assert (torch_.losses - fused_.losses).abs().max() < 5e-5
    assert (weights_of(torch_, 1) - weights_of(fused_, 1)).abs().max() < 5e-4
    assert (fused_.losses[0, :200] - fused_.losses[1, :200]).abs().max() > 0.01


def test_a_cosine_schedule_with_several_rates_and_budgets_in_a_stack():
    differing = ((42, 1e-3, 2), (42, 3e-3, 4), (43, 3e-3, 2))
    company = [short(profile="quick", seed=seed, budget=b, recipe=dict(lr=lr)) for seed, lr, b in differing]
    torch_, fused_ = both(*company)
    torch_.advance(40), fused_.advance(40)
    for place in range(3):
        assert (weights_of(torch_, place) - weights_of(fused_, place)).abs().max() < 1e-4


@pytest.mark.parametrize("curriculum", ["first", "growing"])
@pytest.mark.parametrize("task", [TASK, TASKS[2]], ids=["equal", "ragged"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_a_curriculum_with_a_short_memory_is_torchs(curriculum, task, reduction):
    supervision = Supervision(curriculum=curriculum, reduction=reduction)
    torch_, fused_ = both(RunSpec(Recipe(21, 8, 1e-2, 21, beta2=0.5), task, Model(16, 2, 2), supervision))
    torch_.train(), fused_.train()
    assert torch_.progress.first_losses[0] == pytest.approx(fused_.progress.first_losses[0], rel=1e-4)


def test_frozen_embeddings_stay(store):
    torch_, fused_ = both(short(layers=1, heads=1, d_model=24, embedding="cosine, frozen"))
    before = fused_.stack.transformer.wte.weight.clone()
    fused_.advance(20), torch_.advance(20)
    assert torch.equal(before, fused_.stack.transformer.wte.weight)
    assert (weights_of(torch_) - weights_of(fused_)).abs().max() < 1e-4


def test_threads_and_company_change_nothing():
    assert_company_changes_nothing([short(seed=seed) for seed in (42, 43, 44)])


# Evaluation


def ragged(thought=Base(), **supervision):
    recipe = Recipe(steps=30, batch=8, lr=3e-3, evaluate_every=30)
    return RunSpec(recipe, Ragged(3), Model(16, 2, 2), Supervision(**supervision), thought)


@pytest.mark.parametrize(
    "run",
    [
        short("cot2", layers=3, recipe=dict(steps=150, lr=3e-3)),
        short("cot2", d_model=24, heads=4, recipe=dict(steps=150, lr=3e-3)),
        short("discrete", recipe=dict(steps=150, lr=3e-3)),
        short("no-cot", recipe=dict(steps=150, lr=3e-3)),
        ragged(),
        spec(
            "discrete", task=Ragged(3), d_model=16, layers=1, heads=1, steps=30, evaluate_every=30, batch=8, warmup=1
        ),
    ],
    ids=["cot2", "heads of six", "discrete", "no-cot", "ragged", "ragged, discrete"],
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


def test_other_rules_are_evaluated_by_torch():
    torch_, fused_ = both(replace(short(), thought=Base(temperature=2.0)))
    torch_.stack.load_state_dict(fused_.stack.state_dict())
    assert fused_.evaluate() == torch_.evaluate()


# Runs


def test_run_takes_the_engine_and_says_so(store, nothing_shipped):
    given = [short(seed=42), short("coconut"), replace(short("coconut"), thought=Base(2.0))]
    runs.run(given, device="cpu", threads=1)
    made = [stores.finished()[spec.id][0].provenance["engine"] for spec in given]
    assert made == ["fused", "fused", "torch"]
    again = runs.run([short(seed=43)], device="cpu", engine="torch")
    assert stores.finished()[short(seed=43).id][0].provenance["engine"] == "torch" and len(again) == 1


@pytest.mark.parametrize("first, then", [("auto", "torch"), ("torch", "auto")])
def test_a_run_goes_on_with_the_other_engine(store, nothing_shipped, monkeypatch, first, then):
    run = short()
    whole = both(run)[1]
    whole.train()
    assert "optimizer" not in vars(whole), "torch would load its compiler with one"
    stop_at_a_checkpoint(monkeypatch, run, engine=first)
    runs.run([run], device="cpu", engine=then)
    file, _ = stores.finished()[run.id]
    names = {"auto": "fused", "torch": "torch"}
    assert file.provenance["engine"] == f"{names[first]}, then {names[then]}"
    for name, value in file.weights(0).items():
        assert (value - whole.stack.state_dict()[name][0]).abs().max() < 1e-4, name
    assert len(file.progress.first_losses[0]) == 20


def test_a_run_that_diverges_shows_it():
    torch_, fused_ = both(short(recipe=dict(lr=1e30, dropout=0.0)))
    torch_.train(), fused_.train()
    for trainer in (torch_, fused_):
        assert not math.isfinite(trainer.progress.curves[-1]["loss"][0])


def test_what_the_engine_does_not_know_is_trained_by_torch(capsys):
    engines._say.cache_clear()
    for odd, said in (
        (short(d_model=20), "needs d in eights and heads of even width, not d=20 with 2 heads"),
        (short(d_model=24, heads=8), "not d=24 with 8 heads"),
    ):
        trainer = preferred(SupervisedTrainer([odd]), 1)
        assert type(trainer) is SupervisedTrainer
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1
    assert preferred(SupervisedTrainer([short("coconut")]), 1).engine == "fused"
    assert capsys.readouterr().err == ""


WITHOUT = """
import sys
{0}
from cot2lib import run, spec
from cot2lib.tasks import MNNS
options = dict(task=MNNS(1, 4, 2), d_model=16, layers=1, heads=1, steps=4, evaluate_every=4, warmup=1)
rows = run([spec(seed=42, **options), spec("no-cot", seed=43, **options)], device="cpu")
print(rows["last"].notna().sum())
"""


@pytest.mark.parametrize(
    "how, said",
    [
        pytest.param(*case, id=name, marks=[pytest.mark.thorough] * (name != "missing"))
        for name, case in {
            "missing": ("sys.modules['numba'] = None", "needs Numba"),
            "broken": ("import types; sys.modules['numba'] = types.ModuleType('numba')", "needs Numba"),
            "no cache": (
                "import os; os.environ['NUMBA_CACHE_DIR'] = '/dev/null/x'",
                "set NUMBA_CACHE_DIR to a folder",
            ),
            "switched off": ("import os; os.environ['NUMBA_DISABLE_JIT'] = '1'", "Numba is switched off"),
        }.items()
    ],
)
def test_without_numba_torch_trains_and_a_line_says_so(tmp_path, how, said):
    code, environment = WITHOUT.format(how), os.environ | {"COT2_STORE": str(tmp_path), "COT2_COMMIT": "test"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert out.returncode == 0, out.stderr
    lines = [line for line in out.stderr.splitlines() if line.startswith("torch trains")]
    assert out.stdout.split()[-1] == "2" and len(lines) == 1 and said in lines[0]


@pytest.mark.parametrize("error", [NameError("tyop"), ImportError("no tyop", name="cot2lib.fast.rows")])
def test_a_mistake_of_the_engines_own_is_no_reason_for_torch(monkeypatch, error):
    class Broken(types.ModuleType):
        def __getattr__(self, name):
            raise error

    monkeypatch.setitem(sys.modules, "cot2lib.fast", Broken("cot2lib.fast"))
    with pytest.raises(type(error)):
        engines.unfit(short())


def test_an_edited_kernel_is_compiled_anew(tmp_path):
    """Numba looks at one source file alone; the folder's name looks at all."""
    copy = tmp_path / "fast"
    shutil.copytree(Path(fast.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = fast._folder(copy).name
    assert before == Path(fast._folder(Path(fast.__file__).parent)).name
    with (copy / "kernels.py").open("a") as kernels:
        kernels.write("# edited\n")
    assert fast._folder(copy).name != before
