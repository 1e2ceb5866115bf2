"""Models that answer the questions of a file, and tests of the whole of ProsQA."""

import json
from dataclasses import asdict, replace

import pandas as pd
import pytest
import torch
from builders import QUESTIONS

from cot2lib import cli, runs
from cot2lib.decode import Rollout
from cot2lib.errors import RecordError, SpecError
from cot2lib.specs.profiles import spec
from cot2lib.study import graph_tests
from cot2lib.study.book import all_runs
from cot2lib.study.graph_facts import depths
from cot2lib.study.prosqa import draw, questions
from cot2lib.study.prosqa.runs import (
    CHOICES,
    REACHES,
    READ,
    TRIALS,
    Trial,
    changed,
    chosen,
    compared,
    every,
    farther,
    longer,
    of_concepts,
    rewarded,
    sizes,
    tried,
    whole,
    with_weights,
)
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.thoughts import MTS

SHARES = (0.25, 0.25, 0.25, 0.25)
TASK = ProsQA(inputs=60, names=28, hops=None, mixture=SHARES, waiting=6, padding_counts=True)
RECIPE = dict(d_model=8, layers=1, heads=1, steps=2, warmup=0, evaluate_every=2)
MODELS = [spec(method, task=TASK, seed=seed, **RECIPE) for method in ("cot2", "no-cot") for seed in (42, 43)]


@pytest.fixture
def trained(store, monkeypatch):
    """Four small models in place of those that ship."""
    runs.run(MODELS)
    monkeypatch.setattr(questions, "with_weights", lambda: MODELS)


def knowing(right):
    """A model whose thoughts are the targets; it answers as `right` says of each question, else the other option."""

    def answered(stack, run, test):
        targets = hindsight_targets(test.task)[test.rows].float()
        outputs = len(run.supervision.output_steps(targets.shape[1]))
        thoughts = targets[None, :, -outputs:].expand(stack.runs, -1, -1, -1)
        wrong = test.task.state_ids[test.task.options[test.rows, 1]]
        answers = torch.where(right(test), test.task.answer_ids[test.rows], wrong)
        logits = torch.zeros(thoughts.shape)
        logits[:, torch.arange(len(answers)), -1, answers] = 1.0
        return Rollout(logits, thoughts, answers.expand(stack.runs, -1), [], [])

    return answered


def test_every_model_answers_every_question_of_a_file(trained, monkeypatch):
    monkeypatch.setattr(graph_tests, "answered", knowing(lambda test: test.rows % 3 == 0))
    rows = questions.of_file(QUESTIONS)
    file = json.loads(QUESTIONS.read_text())
    assert [*rows] == ["method", "seed", "question", "hops", "strict", "pair"] and len(rows) == 4 * len(file)
    for (_, _), part in rows.groupby(["method", "seed"]):
        assert part["hops"].tolist() == [len(question["steps"]) for question in file]
        assert part["strict"].tolist() == part["pair"].tolist() == [int(place % 3 == 0) for place in range(len(file))]
    table = questions.by_hops(rows)
    first = rows[(rows["method"] == "CoT2") & (rows["seed"] == 42)]
    assert table.loc["CoT2", "all"] == pytest.approx(1 / 3) and [*table] == [3, 4, 5, 6, "all"]
    assert table.loc["no-CoT", 4] == pytest.approx(first[first["hops"] == 4]["strict"].mean())


def test_strict_and_pair_are_the_models_own(trained):
    """What the small models answer, decoded here once more."""
    rows = questions.of_file(QUESTIONS, "age")
    task = questions.published(QUESTIONS, naming="age", padding_counts=True, waiting=6)
    test = graph_tests.Test("", task, torch.arange(task.size))
    logits = graph_tests.answered(runs.load(MODELS[0], missing="error"), MODELS[0], test).logits[0, :, -1]
    target, other = (logits.gather(1, task.state_ids[task.options[:, k]][:, None])[:, 0] for k in (0, 1))
    found = rows[(rows["method"] == "CoT2") & (rows["seed"] == 42)]
    assert found["pair"].tolist() == (target > other).int().tolist() and 0 < found["pair"].mean() < 1
    assert found["strict"].tolist() == (logits.argmax(1) == task.answer_ids).int().tolist()


def test_other_files_and_namings_are_refused(trained, tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        questions.of_file(tmp_path / "none.json")
    with pytest.raises(SpecError, match="naming='old'"):
        questions.of_file(QUESTIONS, "old")


def test_models_that_are_not_here_are_named(store, nothing_shipped):
    with pytest.raises(RecordError, match="cot2 run prosqa"):
        questions.of_file(QUESTIONS)


def test_the_command_writes_a_row_for_each_question(trained, tmp_path, capsys):
    made = tmp_path / "made.json"
    made.write_text(json.dumps(json.loads(QUESTIONS.read_text())[:12]))
    assert cli.main(["prosqa", str(made), "--naming", "age", "--csv", str(tmp_path / "out.csv")]) == 0
    rows = pd.read_csv(tmp_path / "out.csv")
    assert len(rows) == 4 * 12 and set(rows["strict"]) <= {0, 1}
    said = capsys.readouterr().out
    assert "CoT2" in said and "all" in said
    assert cli.main(["prosqa", str(tmp_path / "none.json")]) == 2


@pytest.fixture
def table(trained, monkeypatch):
    """Tests on few questions of models that know which are deep."""
    monkeypatch.setattr(questions, "INPUTS", 40)
    monkeypatch.setattr(graph_tests, "answered", knowing(lambda test: graph_tests.deeper(test.task)[test.rows] > 0))
    return questions.measure(MODELS[:2])


def test_tests_are_told_apart_by_columns(table):
    hops = table.pivot_table("inputs", ["test", "asked"], "hops", aggfunc="first")
    assert hops.loc["generated", "fresh"].tolist() == [40] * 4 and hops.loc["published", "age"].sum() == 300
    assert set(table["id"]) == {run.id for run in MODELS[:2]}
    one = table[table["id"] == MODELS[0].id].set_index("test")
    assert one.loc[[*questions.DEPTHS], "inputs"].sum() == one.loc[[*questions.RULES], "inputs"].sum() == 160
    assert one.loc[[questions.BEFORE, questions.MOVED, questions.IDLE], "inputs"].nunique() == 1


def test_a_model_that_goes_by_depth_is_found_out(table):
    """It answers all questions whose target is deeper, and no other."""
    strict = table.groupby("test")["strict"].mean()
    deeper, others = strict[questions.DEPTHS[0]], strict[[*questions.DEPTHS[1:], questions.RULES[2]]]
    assert deeper == 1 and (others == 0).all() and strict[questions.RULES[0]] == 1


def test_thoughts_of_a_model_that_knows_lie_on_the_frontier(table):
    shares = table[[f"frontier_{hop}" for hop in range(1, 7)]]
    assert shares.min().min() == pytest.approx(1)


def test_a_published_file_can_be_trained_on(store):
    task = questions.published(QUESTIONS, naming="fresh", frontier="nodes", padding_counts=True, waiting=6)
    row = runs.run([spec("cot2", task=task, **RECIPE)]).iloc[0]
    assert row["train_inputs"] == 240 and row["inputs_a"] + row["inputs_b"] == 60


def test_rules_are_counted_question_by_question():
    task = questions.generated(TASK)
    far, names = depths(task), questions.rules(task)
    target, other = far.gather(1, task.options).unbind(1)
    assert all(names[row] != questions.RULES[2] for row in (target > other).nonzero()[:, 0].tolist())
    assert set(names) == set(questions.RULES)


def test_methods_differ_in_nothing_but_the_method():
    trials = [Trial(run.model.heads, run.recipe.lr, run.model.layers, run.model.d_model) for run in tried()]
    assert set(trials) <= set(TRIALS) and len({run.seed for run in tried()}) == 1
    assert {run.task.naming for run in (*tried(), *compared("quick"))} == {"fresh"}
    assert {run.start for run in rewarded()} == set(chosen(methods=["cot2", "discrete"])) < set(every("quick"))
    assert {run.thought for run in rewarded()} == {MTS(8)}
    assert {run.task.waiting for run in compared("quick")} == {6}
    steps = {run.method: run.recipe.steps for run in tried()}
    assert steps.pop("COCONUT") * 2 == steps["CoT2"] and len(set(steps.values())) == 1
    assert {run.task.frontier for run in tried() if run.method == "CoT2"} == {"nodes"}
    first = [run for run in chosen() if run.seed == 42]
    assert set(first) <= set(tried()) and every("paper") == []
    assert {run for run in every("quick") if all_runs.ships_weights("prosqa", run)} == set(with_weights())


def test_choices_differ_in_one_field_of_the_task():
    usual, *others = (run for (run,) in changed().values())
    assert usual == whole("cot2") and len(CHOICES) == len(set(others)) + 1
    for run, words in zip(others, list(CHOICES)[1:]):
        differing = {name for name, value in asdict(run.task).items() if value != getattr(usual.task, name)}
        assert differing == set(CHOICES[words]) and replace(run, task=usual.task) == usual


def test_proofs_are_learnt_by_the_same_recipe():
    for run in of_concepts():
        (same,) = (other for other in chosen() if (other.method, other.seed) == (run.method, run.seed))
        assert replace(run, task=same.task) == same and isinstance(run.task, ProntoQA)
        assert run.task.naming == "fresh" and run.task.frontier == same.task.frontier
    asked = [seeds for _, seeds, methods in READ for _ in methods]
    assert len(set(of_concepts())) == len(of_concepts()) == sum(map(len, asked)) == 2 * 5 + 2 * 2 + 2


def test_models_of_large_graphs_differ_in_the_questions_they_learnt():
    """Both have thoughts enough for all, and learn as many questions of each number of hops."""
    short, long = ([run.task for run in farther([42], [reach])] for reach in REACHES)
    for reach, (task,) in zip(REACHES, (short, long)):
        assert task.most_hops == reach and len(set(task.mixture)) == 1 and (task.names, task.steps) == (60, 13)
    first = chosen([42], ["cot2"])[0]
    assert {run.task for run in sizes()} == {first.task} and {run.recipe for run in sizes()} == {first.recipe}
    (more,) = longer()
    assert [more.task] == long and more.recipe.steps == 3 * first.recipe.steps
    assert first.model not in {run.model for run in sizes()} and len(set(sizes())) == len(sizes())


def test_answers_of_models_that_wait_longer_are_of_more_hops(store, monkeypatch):
    """Questions go as far as there are thoughts; strict accuracies are those of each number of hops."""
    monkeypatch.setattr(questions, "INPUTS", 12)
    monkeypatch.setattr(graph_tests, "answered", knowing(lambda test: test.task.graphs.hops[test.rows] <= 6))
    run = spec("cot2", task=ProsQA(inputs=60, names=60, hops=None, mixture=SHARES, waiting=7), **RECIPE)
    runs.run([run])
    table = questions.measure_hops([run]).set_index("hops").sort_index()
    assert table.index.tolist() == [3, 4, 5, 6, 7] and set(table["inputs"]) == {12}
    assert table["strict"].tolist() == [1.0] * 4 + [0.0] and "frontier_7" in table


@pytest.fixture
def asked(monkeypatch):
    """Answers of models that know questions of as many hops as they learnt."""
    rows = []
    for run in [*farther([42, 43]), *longer()]:
        for hops in range(3, run.task.steps):
            told = dict(id=run.id, test=questions.GENERATED, asked="fresh", hops=hops, inputs=100)
            rows.append(told | dict(strict=float(hops <= run.task.most_hops), pair=1.0))
    monkeypatch.setattr(questions, "shipped", lambda name="questions": pd.DataFrame(rows))


def test_models_of_large_graphs_are_told_apart_by_what_they_learnt(asked):
    rows = draw.reached()
    right = rows.groupby(["learnt", "hops"])["strict"].mean()
    assert right["3 to 6 hops"].tolist() == [100.0] * 4 + [0.0] * 6
    assert right["3 to 12 hops"].tolist() == [100.0] * 10
    shown = draw.farther(rows, "A finding.")
    assert len(shown.numbers) == 5 * 10 and shown.finding == "A finding."
