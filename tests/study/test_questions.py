"""Models that answer the questions of a file, and tests of the whole of ProsQA."""

import json

import pandas as pd
import pytest
import torch
from builders import QUESTIONS

from cot2lib import cli, runs
from cot2lib.decode import Rollout
from cot2lib.specs.profiles import spec
from cot2lib.study import graph_tests
from cot2lib.study.prosqa import questions
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import ProsQA
from cot2lib.tasks.variants import depths

TASK = ProsQA(inputs=60, names=28, hops=None, mixture=(0.25,) * 4, waiting=6, padding_counts=True)
RECIPE = dict(d_model=8, layers=1, heads=1, steps=2, warmup=0, evaluate_every=2)
MODELS = [spec(method, task=TASK, seed=seed, **RECIPE) for method in ("cot2", "no-cot") for seed in (42, 43)]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store with four small models, which no test changes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COT2_STORE", str(tmp_path_factory.mktemp("store")))
        runs.run(MODELS)
        yield patched


@pytest.fixture
def trained(stored, monkeypatch):
    """The four models in place of those that ship, and few generated questions."""
    monkeypatch.setattr(questions, "with_weights", lambda: MODELS)
    monkeypatch.setattr(questions, "INPUTS", 40)


def knowing(right):
    """A model whose thoughts are the targets; it answers as `right` says of each question, else the other option."""

    def answered(stack, run, task, rows):
        targets = hindsight_targets(task)[rows].float()
        outputs = len(run.supervision.output_steps(targets.shape[1]))
        thoughts = targets[None, :, -outputs:].expand(stack.runs, -1, -1, -1)
        wrong = task.state_ids[task.options[rows, 1]]
        answers = torch.where(right(task, rows), task.answer_ids[rows], wrong)
        logits = torch.zeros(thoughts.shape)
        logits[:, torch.arange(len(answers)), -1, answers] = 1.0
        return Rollout(logits, thoughts, answers.expand(stack.runs, -1), [], [])

    return answered


def deeper(task, rows):
    """Whether the target is farther from its nearest source than the other option."""
    target, other = depths(task)[rows].gather(1, task.options[rows]).unbind(1)
    return target > other


def test_of_file_asks_every_model_every_question(trained, monkeypatch):
    monkeypatch.setattr(graph_tests, "answered", knowing(lambda task, rows: rows % 3 == 0))
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


def test_of_file_says_what_the_models_answer(trained):
    """What the small models answer, decoded here once more."""
    rows = questions.of_file(QUESTIONS, "age")
    task = questions.published(QUESTIONS, naming="age", padding_counts=True, waiting=6)
    rows_of_file = torch.arange(task.size)
    stack = runs.load(MODELS[0], missing="error")
    logits = graph_tests.answered(stack, MODELS[0], task, rows_of_file).logits[0, :, -1]
    target, other = (logits.gather(1, task.state_ids[task.options[:, k]][:, None])[:, 0] for k in (0, 1))
    found = rows[(rows["method"] == "CoT2") & (rows["seed"] == 42)]
    assert found["pair"].tolist() == (target > other).int().tolist() and 0 < found["pair"].mean() < 1
    assert found["strict"].tolist() == (logits.argmax(1) == task.answer_ids).int().tolist()


def test_prosqa_command_writes_a_row_for_each_question(trained, tmp_path, capsys):
    made = tmp_path / "made.json"
    made.write_text(json.dumps(json.loads(QUESTIONS.read_text())[:12]))
    assert cli.main(["prosqa", str(made), "--naming", "age", "--csv", str(tmp_path / "out.csv")]) == 0
    rows = pd.read_csv(tmp_path / "out.csv")
    assert len(rows) == 4 * 12 and set(rows["strict"]) <= {0, 1}
    said = capsys.readouterr().out
    assert "CoT2" in said and "all" in said
    assert cli.main(["prosqa", str(tmp_path / "none.json")]) == 2


def test_measure_of_models_that_go_by_depth(trained, monkeypatch):
    """They answer all questions whose target is deeper, and no other; their thoughts lie on the frontier."""
    monkeypatch.setattr(graph_tests, "answered", knowing(deeper))
    table = questions.measure(MODELS[:2])
    hops = table.pivot_table("inputs", ["test", "asked"], "hops", aggfunc="first")
    assert hops.loc["generated", "fresh"].tolist() == [40] * 4 and hops.loc["published", "age"].sum() == 300
    assert set(table["id"]) == {run.id for run in MODELS[:2]}
    one = table[table["id"] == MODELS[0].id].set_index("test")
    assert one.loc[[*questions.DEPTHS], "inputs"].sum() == one.loc[[*questions.RULES], "inputs"].sum() == 160
    assert one.loc[[questions.BEFORE, questions.MOVED, questions.IDLE], "inputs"].nunique() == 1
    strict = table.groupby("test")["strict"].mean()
    others = strict[[*questions.DEPTHS[1:], questions.RULES[2]]]
    assert strict[questions.DEPTHS[0]] == strict[questions.RULES[0]] == 1 and (others == 0).all()
    assert table[[f"frontier_{hop}" for hop in range(1, 7)]].min().min() == pytest.approx(1)
