import dataclasses
import inspect
from dataclasses import replace

import pandas as pd
import torch
from builders import ROOT

import cot2lib.llm.settings
import cot2lib.runs.taught
import cot2lib.tasks.variants  # noqa: F401
from cot2lib.specs import KINDS, Model, Supervision
from cot2lib.specs.profiles import grpo, shortened, spec
from cot2lib.tasks import MNNS, ProsQA
from cot2lib.thoughts import Discrete, Hidden
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import build_stack


def test_defaults_are_frozen():
    """An id leaves defaults out, so a default that changed would silently change what shipped records mean."""
    shipped = {
        name: kind
        for name, kind in KINDS.items()
        if kind.__module__.split(".")[1] not in ("study", "theory", "interventions")
    }
    fields = {
        name: [f for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING]
        for name, kind in shipped.items()
        if not inspect.isabstract(kind)
    }
    found = {name: " ".join(f"{f.name}={f.default!r}" for f in given) for name, given in fields.items()}
    known = pd.read_csv(ROOT / "tests" / "data" / "defaults.csv", keep_default_na=False, index_col="kind")
    assert found == known["defaults"].to_dict()


def test_shape_keeps_what_must_agree_in_a_stack():
    one, other = spec("cot2", seed=42, budget=4), spec("cot2", seed=43, budget=8, lr=0.01)
    assert one.shape() == other.shape()
    for changed in (
        replace(one, model=Model(16, 2, 2)),
        replace(one, model=Model(32, 2, 2, "cosine")),
        replace(one, recipe=replace(one.recipe, dropout=0.1)),
        replace(one, supervision=replace(one.supervision, arrow=False)),
        replace(one, task=MNNS(2, 9, 4)),
        replace(one, thought=Discrete()),
    ):
        assert changed.shape() != one.shape()


def test_output_steps():
    given = [(1, 4), (None, 4), (2, 5), (5, 5)]
    found = [Supervision(every=every).output_steps(steps) for every, steps in given]
    assert found == [[0, 1, 2, 3], [3], [0, 2, 4], [4]]


def test_own_thoughts():
    teacher, own = Supervision(), Supervision(feeding="self", switch=10)
    assert [teacher.own_thoughts(4, step, 40) for step in (0, 39)] == [0, 0]
    assert [own.own_thoughts(4, step, 40) for step in (0, 9, 10, 39)] == [0, 0, 3, 3]
    stages = Supervision(feeding="stages")
    counts = [stages.own_thoughts(4, step, 42) for step in range(42)]
    assert sorted(set(counts)) == [0, 1, 2, 3] and counts == sorted(counts)
    assert {counts.count(stage) for stage in range(4)} <= {10, 11}, "stages of equal length"


def test_scored_outputs():
    scored = lambda curriculum: [Supervision(curriculum=curriculum).scored(4, step, 42) for step in range(42)]
    assert scored("none") == [4] * 42
    assert scored("first") == [1] * 12 + [4] * 30
    growing = scored("growing")
    assert sorted(set(growing)) == [1, 2, 3, 4] and growing == sorted(growing)
    assert {growing.count(outputs) for outputs in range(1, 5)} <= {10, 11}, "stages of equal length"


def test_runs_are_told_apart_by_name():
    graphs = spec("discrete", task=ProsQA())
    named = [spec("coconut"), spec("coconut-slot"), spec("pause"), spec(self_fed_from=0.5), grpo(graphs)]
    assert [(run.method, run.fed, run.outputs, run.columns()["rule"]) for run in named] == [
        ("COCONUT", "stages", 4, "Hidden"),
        ("COCONUT, zero slot", "stages", 4, "ZeroSlot"),
        ("no-CoT, pauses", "teacher", 1, "Base"),
        ("CoT2", "teacher, then self", 4, "Base"),
        ("discrete CoT + GRPO", "self", 5, "MTS(k=8)"),
    ]


def test_shortened():
    half = shortened(spec("cot2", self_fed_from=0.5), 10)
    assert half.supervision.switch == half.recipe.steps // 2
    run = shortened(spec("cot2"), 3)
    assert (run.recipe.steps, run.recipe.warmup, run.recipe.evaluate_every) == (246, 24, 246)


def test_a_run_may_have_the_split_of_another_seed():
    """Its data are those of that seed; initialisation, data order and dropout stay those of its own."""
    usual, donor = spec("cot2", "quick", seed=43), spec("cot2", "quick", seed=42)
    moved = replace(usual, split=42)
    assert moved.shape() == usual.shape() and moved.columns()["split"] == 42 and usual.columns()["split"] == 43
    data = {run: stack_data([run], "cpu") for run in (usual, donor, moved)}
    assert torch.equal(data[moved].train[0], data[donor].train[0])
    assert torch.equal(data[moved].held_out.index, data[donor].held_out.index)
    assert not torch.equal(data[moved].train[0], data[usual].train[0])
    table = lambda run: build_stack([run]).transformer.wte.weight
    assert torch.equal(table(moved), table(usual)) and not torch.equal(table(moved), table(donor))
    rewarded = grpo(moved, "quick")
    assert rewarded.split_seed == 42 and rewarded.seed == 43 and rewarded.shape() == grpo(usual, "quick").shape()


def test_builders_take_the_rule_and_any_field_of_the_recipe():
    run = spec("cot2", thought=Discrete(1.0), steps=300, warmup=10)
    assert run.thought == Discrete(1.0) and (run.recipe.steps, run.recipe.warmup) == (300, 10)
    assert spec(steps=100).recipe.warmup == 10, "a tenth of the steps at most, unless given"
    assert spec("cot2", task=ProsQA(), thought=Hidden(), batch=8).recipe.batch == 8
    rewarded = grpo(spec("discrete"), thought=Discrete(1.0), steps=4, evaluate_every=2, ratio="product", kl=0.1)
    assert (rewarded.recipe.steps, rewarded.recipe.evaluate_every) == (4, 2)
    assert (rewarded.ratio, rewarded.kl) == ("product", 0.1)
    assert rewarded.recipe.batch == 64 and rewarded.thought == Discrete(1.0)
    assert grpo(spec("discrete", task=ProsQA()), thought=Discrete(1.0), steps=4).recipe.steps == 4


def test_a_full_budget_is_none_only_where_full_means_all_trajectories():
    """On graphs the default averages walks, which no budget does."""
    assert spec(budget=16).id == spec().id
    few = ProsQA(inputs=200)
    most = few.most_trajectories
    assert spec("cot2", task=few, budget=most).supervision.budget == most
    assert spec("cot2", task=replace(few, frontier="complete"), budget=most).supervision.budget is None
