"""Chapters whose parameters a reader has changed: they draw what there is, and say in a sentence what there is not."""

import ast
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.specs import profiles
from cot2lib.study import sweeps
from cot2lib.study.analysis import passk
from cot2lib.tasks import MNNS

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def executed(chapter, ids, **changed):
    """What some cells of a chapter display, by id, after the parameters were changed; figures are drawn."""
    notebook = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text())
    cells = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    space, shown = {}, {}
    exec(cells["parameters"], space)
    assert set(changed) <= set(space), "a parameter that the chapter has"
    space |= changed
    for name in ["imports", *ids]:
        tree = ast.parse(cells[name])
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), space)
        shown[name] = last and eval(compile(ast.Expression(last.value), name, "eval"), space)
        if isinstance(shown[name], Figure):
            shown[name].savefig(io.BytesIO(), dpi=20)
    return shown


def text(shown):
    return shown._repr_mimebundle_()["text/plain"]


def legend(figure):
    return [entry.get_text() for entry in figure.legends[0].get_texts()]


@pytest.fixture
def short(monkeypatch, store):
    """The quick recipe with twenty steps, and an empty store."""
    quick = replace(profiles.PROFILES["quick"], most_steps=20, evaluations=2)
    monkeypatch.setitem(profiles.PROFILES, "quick", quick)


SHIPPED = {run.method: run.id for run in sweeps.small("quick", (42,))}
BUDGET = ("records", "accuracies", "accuracy-table", "steps-table", "findings")


@pytest.mark.parametrize("budgets", [[1, 3], [1, 2, 6]])
def test_other_budgets_draw_what_is_recorded_and_name_the_rest(budgets, store):
    shown = executed("budget", BUDGET, budgets=budgets, d_models=[16])
    said, new = text(shown["records"]), budgets[-1]
    assert f'**Not drawn, quick recipe**: there is no record of B = {new}, d = 16; set `profile = "quick"`' in said
    assert "and `retrain = True`" in said and "B = 1, d = 16" not in said.partition("quick recipe")[2]
    assert legend(shown["accuracies"]) == [*(f"B = {b}" for b in budgets[:-1]), "paper"]


def test_other_budgets_draw_what_is_trained_here(short, monkeypatch):
    monkeypatch.setattr(sweeps, "sparse", lambda name: [profiles.spec("no-cot", name, task=MNNS(1, 4, 3))])
    changed = dict(budgets=[1, 3], d_models=[16], seeds=[42], retrain=True)
    live = dict(live_budgets=[1, 3], live_epochs=1, live_high=5)
    shown = executed("budget", (*BUDGET, "path-curves", "live", "live-numbers"), **changed, **live)
    assert legend(shown["accuracies"]) == ["B = 1", "B = 3", "paper"]
    assert "quick recipe" not in text(shown["records"])
    assert "B = 3" in text(shown["accuracy-table"])
    labels = [entry.get_text() for entry in shown["live"].axes[0].get_legend().get_texts()]
    assert labels == ["discrete CoT, B = 1", "CoT2, B = 3"]


def shipped_as(stack, specs):
    """The Pass@k of a shipped model of the same method under another run's id: to measure it takes a while."""
    table = passk.shipped("quick")
    return table[table["id"] == SHIPPED[specs[0].method]].assign(id=specs[0].id)


def test_sampling_with_a_new_seed(short, monkeypatch):
    """Trained and measured here, with the probe; without training the error names the run and the remedy."""
    monkeypatch.setattr(passk, "measure", shipped_as)
    cells = ("records", "passk", "passk-table", "overtaking", "findings", "probe", "probe-table")
    with pytest.raises(RecordError, match=r"seed 7.*retrain=True"):
        executed("sampling", ("records",), seeds=[7])
    shown = executed("sampling", cells, seeds=[7], retrain=True)
    said = text(shown["records"])
    assert "**Not drawn, authors' recipe**: its Pass@k was not measured for all of these seeds" in said
    assert "quick recipe**" not in said and len(shown["passk"].axes) == len(passk.TEMPERATURES)
    assert "CoT2, quick recipe" in text(shown["probe-table"])


GRPO = ("grpo", "grpo-table", "findings", "entropies", "held", "learning", "variants", "variants-table",
        "ratio-entropy", "starts")  # fmt: skip
DIRICHLET = (
    "accuracy",
    "accuracy-table",
    "findings",
    "entropy",
    "held",
    "learning",
    "variants",
    "treatments",
    "later",
)


@pytest.mark.parametrize(
    "chapter, first, cells",
    [
        ("grpo_mts", "records", GRPO),
        pytest.param("grpo_dirichlet", "read", DIRICHLET, marks=pytest.mark.thorough),
    ],
)
def test_policy_gradients_draw_what_is_recorded(chapter, first, cells, monkeypatch):
    """Of the authors' recipe nothing is recorded: the quick one is drawn, and a sentence says so."""
    recorded = runs.recorded
    paper = {run.id for run in sweeps.sweep(chapter, "paper")}
    nothing = lambda specs, retrain=False: recorded([run for run in specs if run.id not in paper], retrain)
    for module in (runs, runs.lookup):
        monkeypatch.setattr(module, "recorded", nothing)
    shown = executed(chapter, (first, *cells), profile="paper")
    assert all(isinstance(shown[name], Figure) for name in (cells[0], "held", "learning", "variants"))
    said = text(shown[first])
    assert "**Not drawn, authors' recipe**: there is no record of " in said
    assert '`profile = "paper"` and `retrain = True`' in said and "quick" not in said
