"""A script outside the package trains its own rules on its own task, and draws them beside ours."""

import inspect
import json
import linecache
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Optional

import pandas as pd
import pytest
import torch
from outside import Sharpened
from parity import stop_at_a_checkpoint

from cot2lib import MTS, Base, Discrete, GRPOSpec, Rule, Run, Task, Thought, losses, runs
from cot2lib.errors import SpecError
from cot2lib.specs import Model, Recipe, RunSpec, Supervision, from_data, to_data
from cot2lib.tasks import MNNS
from cot2lib.training.supervised import SupervisedTrainer

TESTS = Path(__file__).parents[1]
RECIPE = Recipe(steps=20, batch=8, lr=1e-3, evaluate_every=10)


class AnswerTrainer(SupervisedTrainer):
    """Scores the answer alone."""

    def update(self, index):
        batch = self.data.batch(index)
        fed = torch.cat([self.stack.embed(batch.prompts), self.stack.mix(batch.outputs[:, :, :-1])], 2)
        loss = losses.soft_nll(self.stack(fed, outputs=1), batch.outputs[:, :, -1:]).mean((1, 2))
        self.descend(loss)
        return loss


@dataclass(frozen=True)
class AnswerSpec(Run):
    """An objective outside the package, with two properties where ours have fields."""

    recipe: Recipe
    task: Task
    model: Model
    seed: int = 42
    supervision = property(lambda run: Supervision())
    thought = property(lambda run: Base())

    @property
    def method(self):
        return "answer alone"

    def shape(self):
        return replace(self, seed=0)

    def trainer(self, specs, load, device):
        return AnswerTrainer(specs, device)


def run_of(thought, seed=42):
    return RunSpec(RECIPE, MNNS(1, 3, 3), Model(8, 1, 1), thought=thought, seed=seed)


@pytest.mark.parametrize("steps", [30, pytest.param(300, marks=pytest.mark.thorough)])
def test_a_script_trains_and_draws_its_own_rules_and_task(tmp_path, monkeypatch, steps):
    """Others can use its store past the classes that they do not know."""
    environment = os.environ | {"COT2_STORE": str(tmp_path / "store"), "COT2_COMMIT": "test", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, TESTS / "outside.py", tmp_path, str(steps)]
    out = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    table = pd.read_csv(tmp_path / "curves.csv")
    assert set(table["rule"]) == {"Base", "Sharpened", "Doubted", "MTS", "Pair"} and table["seed"].nunique() == 2
    assert set(table.loc[table["rule"] == "Doubted", "targets"]) == {"Doubted"}
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    losses = table[table["loss"].notna()].sort_values("step").groupby(["rule", "seed"])["loss"].agg(["first", "last"])
    supervised = losses.loc[["Base", "Sharpened", "Doubted"]]
    assert (supervised["last"] < supervised["first"]).all(), "CSFT learns"
    assert steps < 300 or table.loc[table["rule"] == "Sharpened", "accuracy"].max() > 0.3
    monkeypatch.setenv("COT2_STORE", str(tmp_path / "store"))
    assert len(runs.run([run_of(Sharpened())], device="cpu")) == 1


def test_the_id_knows_the_source():
    one = run_of(Sharpened())

    def redefined():
        @dataclass(frozen=True)
        class Sharpened(Rule):
            power: float = 2.0

            def __call__(self, state):
                return Thought((state.logits / self.power).softmax(-1))

        return Sharpened()

    assert one.id == run_of(Sharpened()).id != run_of(redefined()).id
    assert to_data(one)["thought"]["module"] == "outside"
    with pytest.raises(SpecError, match="spec of kind 'Sharpened': this version of cot2lib knows"):
        from_data(to_data(one))


def test_the_id_knows_the_trainer_that_an_objective_names(monkeypatch):
    """So a changed trainer trains again."""
    one = AnswerSpec(RECIPE, MNNS(1, 3, 3), Model(8, 1, 1))
    assert replace(one).id == one.id

    class Changed(AnswerTrainer):
        """Another trainer under this name."""

    monkeypatch.setitem(globals(), "AnswerTrainer", Changed)
    assert replace(one).id != one.id


def cell(power):
    """A rule as a cell of a notebook defines it: of a module without a file, of lines that `linecache` alone has."""
    source = f"@dataclass(frozen=True)\nclass Cell(Rule):\n    def __call__(self, state):\n        return {power}\n"
    name, space = f"<cell of {power}>", {"__name__": "__main__", "dataclass": dataclass, "Rule": Rule}
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), space)
    return space["Cell"]


def test_the_id_knows_the_source_of_a_cell():
    with pytest.raises(OSError):
        inspect.getsource(cell(2.0))
    assert run_of(cell(2.0)()).id == run_of(cell("(2.0)  # two")()).id != run_of(cell(3.0)()).id, (
        "comments do not count"
    )


def test_a_class_of_a_cell_needs_a_method_of_its_own():
    bare = dataclass(frozen=True)(type("Bare", (cell(2.0),), {"__module__": "__main__"}))
    with pytest.raises(SpecError, match="define the class in a file, or in a notebook cell with a method of its own"):
        _ = run_of(bare()).id


def test_an_own_objective_trains_beside_ours(store):
    """Two seeds in one stack, rows and curves as of ours, weights to load; the first loss is the answer's alone."""
    specs = [AnswerSpec(RECIPE, MNNS(1, 3, 3), Model(8, 1, 1), seed=seed) for seed in (42, 43)]
    rows = runs.run([*specs, run_of(Base())], device="cpu")
    assert rows["method"].tolist() == ["answer alone"] * 2 + ["CoT2"] and rows["stacked"].tolist() == [2, 2, 1]
    assert len(runs.curves([*specs, run_of(Base())])) == 6
    first = [json.loads(text)[0] for text in rows["first_losses"]]
    assert first[0] != first[1] and first[0] < 0.5 * first[2], "one step's cross-entropy, not the sum of three"
    assert runs.load(specs[0], missing="error").runs == 1


def test_a_rule_that_acts_at_evaluation_alone_shares_the_training(store, nothing_shipped):
    """One model, one curve for each rule, the same weights; the ids differ and the stack is of one."""
    base, sharp, other = run_of(Base()), run_of(Sharpened(8.0)), run_of(Sharpened(8.0), seed=43)
    rows = runs.run([base, sharp, other], device="cpu").set_index("id")
    assert base.id != sharp.id and base.training == sharp.training != other.training
    assert rows["stacked"].tolist() == [1, 1, 1] and rows["rule"].tolist() == ["Base", *["Sharpened(power=8.0)"] * 2]
    apart = runs.curves([base, sharp]).pivot(index="step", columns="id", values="entropy_2")
    assert (apart[base.id] != apart[sharp.id]).all(), "each run is evaluated by its own rule"
    one, two = (runs.load(run, missing="error").state_dict() for run in (base, sharp))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_shared_trainings_equal_trainings_apart(store, nothing_shipped, monkeypatch):
    """Whatever else is asked for, and whichever engine trains."""
    asked = [run_of(rule, seed) for rule in (Base(), Sharpened()) for seed in (42, 43)]
    for engine in ("torch", "auto"):
        monkeypatch.setenv("COT2_STORE", f"{store}-{engine}")
        together = runs.run(asked, device="cpu", engine=engine).set_index("id")
        monkeypatch.setenv("COT2_STORE", f"{store}-{engine}-alone")
        alone = pd.concat([runs.run([run], device="cpu", engine=engine) for run in asked]).set_index("id")
        told = ["last", "best", "split_half", "first_losses", "rule"]
        pd.testing.assert_frame_equal(together[told], alone[told])


def test_a_shared_training_goes_on_after_a_kill(store, nothing_shipped, monkeypatch):
    asked = [run_of(rule) for rule in (Base(), Sharpened())]
    monkeypatch.setenv("COT2_STORE", f"{store}-whole")
    whole = runs.run(asked, device="cpu", engine="torch")
    monkeypatch.setenv("COT2_STORE", str(store))
    stop_at_a_checkpoint(monkeypatch, *asked, engine="torch")
    assert list(store.glob("*.checkpoint.safetensors"))
    again = runs.run(asked, device="cpu", engine="torch")
    same = [name for name in whole if name not in ("seconds", "date")]
    pd.testing.assert_frame_equal(whole[same], again[same])


@dataclass(frozen=True)
class Told(MTS):
    """Fields that runs and records have too."""

    seed: int = 7
    steps: int = 7
    last: float = 7.0
    loss: float = 7.0


def test_a_rules_fields_never_overwrite_a_run(store, nothing_shipped):
    start = RunSpec(RECIPE, MNNS(1, 3, 3), Model(8, 1, 1), Supervision(budget=1), Discrete(), 43)
    run = GRPOSpec(replace(RECIPE, steps=2, evaluate_every=1), start, Told(2), group=2)
    row, curve = runs.run([run], device="cpu").iloc[0], runs.curves([run])
    assert (row["seed"], row["steps"], row["rule_seed"], row["rule_steps"]) == (43, 2, 7, 7)
    assert row["last"] <= 1 and row["spec_last"] == 7.0 and row["rule"] == "Told(k=2)" and row["sampler"] == "Told"
    assert (curve["loss"].dropna() <= 1).all() and (curve["spec_loss"] == 7.0).all()


@dataclass(frozen=True)
class Fielded(Rule):
    """Fields of every type that a rule may have."""

    powers: tuple[float, ...] = (1.0, 2.0)
    floor: Optional[float] = None  # noqa: UP045 - as a reader may write it
    how: Literal["soft", "hard"] = "soft"
    pair: tuple[int, str] | None = None

    def __call__(self, state):
        return Thought((sum(self.powers) * state.logits).softmax(-1))


def test_fields_of_a_rule():
    rule = Fielded([1, 2, 3], 1, "hard", (1, "a"))
    assert rule == Fielded((1.0, 2.0, 3.0), 1.0, "hard", (1, "a")) and isinstance(rule.floor, float)
    assert rule.label == "Fielded(powers=(1.0, 2.0, 3.0), floor=1.0, how=hard, pair=(1, 'a'))"
    assert run_of(rule).id != run_of(Fielded()).id
    for wrong, said in (
        (dict(powers=3), "powers=3: give a tuple"),
        (dict(powers=["x"]), "powers[0]='x': give a finite number"),
        (dict(floor="z"), "floor='z': give a finite number"),
        (dict(how="so"), "how='so': choose one of soft, hard"),
        (dict(pair=(1,)), "pair=(1,): give a tuple of 2"),
    ):
        with pytest.raises(SpecError, match=re.escape(said)):
            Fielded(**wrong)
