"""A script outside the package trains its own rules on its own task, and draws them beside ours."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from cot2lib import Base, Rule, Run, Task, Thought, losses, runs
from cot2lib.errors import SpecError
from cot2lib.runs.collect import collect
from cot2lib.specs import Model, Recipe, RunSpec, Supervision, UndefinedError, from_data, to_data
from cot2lib.tasks import MNNS
from cot2lib.training.supervised import SupervisedTrainer

TESTS = Path(__file__).parent
RECIPE = Recipe(steps=20, batch=8, lr=1e-3, evaluate_every=10)


@dataclass(frozen=True)
class Sharpened(Rule):
    power: float = 2.0

    def __call__(self, state):
        return Thought((self.power * state.logits).softmax(-1))


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
    """An objective outside the package."""

    recipe: Recipe
    task: Task
    model: Model
    supervision: Supervision = Supervision()
    thought: Rule = Base()
    seed: int = 42

    @property
    def method(self):
        return "answer alone"

    def shape(self):
        return replace(self, seed=0)

    def trainer(self, specs, load, device, compile):
        return AnswerTrainer(specs, device, compile)


def run_of(thought, seed=42):
    return RunSpec(RECIPE, MNNS(1, 3, 3), Model(8, 1, 1), thought=thought, seed=seed)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder that the script wrote to, and its store."""
    folder = tmp_path_factory.mktemp("outside")
    environment = os.environ | {"COT2_STORE": str(folder / "store"), "COT2_COMMIT": "test", "OMP_NUM_THREADS": "1"}
    out = subprocess.run(
        [sys.executable, TESTS / "outside.py", folder], env=environment, capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    return folder


def test_a_script_trains_and_draws_its_own_rules_and_task(made):
    table = pd.read_csv(made / "curves.csv")
    ends = table.sort_values("step").groupby(["rule", "seed"])["accuracy"].agg(["first", "last"])
    assert set(table["rule"]) == {"Base", "Sharpened", "MTS", "Pair"} and len(ends) == 8
    assert (ends["last"] > ends["first"]).groupby("rule").any()[["Base", "Sharpened"]].all(), "CSFT learns"
    assert table.loc[table["rule"] == "Sharpened", "accuracy"].max() > 0.3
    assert (made / "curves.png").stat().st_size > 10_000


def test_others_read_the_store_past_what_they_do_not_know(made, monkeypatch):
    monkeypatch.setenv("COT2_STORE", str(made / "store"))
    mine = run_of(Sharpened())
    assert len(runs.run([mine], device="cpu")) == 1, "a store with unknown classes can be used"


def test_the_id_knows_the_source():
    one = run_of(Sharpened())
    first = Sharpened

    def redefined():
        @dataclass(frozen=True)
        class Sharpened(Rule):
            power: float = 2.0

            def __call__(self, state):
                return Thought((state.logits / self.power).softmax(-1))

        return Sharpened

    assert one.id == run_of(first()).id != run_of(redefined()()).id
    data = to_data(one)
    assert data["thought"]["module"] == __name__ and from_data(data) == one
    data["thought"]["source"] = "0" * 16
    with pytest.raises(UndefinedError, match=r"Sharpened of module .*test_outside is not defined here"):
        from_data(data)


def test_a_rule_without_its_decorator_is_named():
    class Plain(Rule):
        def __call__(self, state):
            return Thought(state.logits.softmax(-1))

    with pytest.raises(SpecError, match=r"class Plain is no dataclass; write @dataclass\(frozen=True\)"):
        run_of(Plain())


def test_an_own_rule_resumes_and_does_not_notice_its_company(store, monkeypatch):
    """Interrupted and gone on, it equals an uninterrupted run; so does a run alone."""
    specs = [run_of(Sharpened(), seed) for seed in (42, 43)]
    whole = runs.run(specs, device="cpu")
    monkeypatch.setenv("COT2_STORE", str(store) + "-alone")
    alone = runs.run(specs[1:], device="cpu")
    assert whole["last"].iloc[1] == alone["last"].iloc[0]
    assert whole["first_losses"].iloc[1] == alone["first_losses"].iloc[0]


def test_an_own_objective_trains_beside_ours(store):
    """Two seeds in one stack, rows and curves as of ours, weights to load; the first loss is the answer's alone."""
    specs = [AnswerSpec(RECIPE, MNNS(1, 3, 3), Model(8, 1, 1), seed=seed) for seed in (42, 43)]
    rows = runs.run([*specs, run_of(Base())], device="cpu")
    assert rows["method"].tolist() == ["answer alone"] * 2 + ["CoT2"] and rows["stacked"].tolist() == [2, 2, 1]
    assert len(runs.curves([*specs, run_of(Base())])) == 6
    first = [json.loads(text)[0] for text in rows["first_losses"]]
    assert first[0] < 0.5 * first[2], "one step's cross-entropy, not the sum of three"
    assert runs.load(specs[0], missing="error").runs == 1


def test_collect_refuses_what_is_outside(store, tmp_path):
    specs = [run_of(Sharpened())]
    runs.run(specs, device="cpu")
    with pytest.raises(SpecError, match="Sharpened"):
        collect("mine.quick", specs, folder=tmp_path)
