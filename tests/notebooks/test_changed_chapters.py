"""Chapters whose parameters a reader has changed: they draw what there is, and say in a sentence what there is not.

Their checks too: at the defaults a check without runs fails.
"""

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.specs import profiles
from cot2lib.study import check, frame, graph_claims, graphs, passk, sweeps
from cot2lib.study.book import all_runs
from cot2lib.study.graph_runs import METHODS
from cot2lib.study.grpo_dirichlet.claims import base_entropies
from cot2lib.study.grpo_mts.claims import EVERY, sampled
from cot2lib.study.look import Shown
from cot2lib.study.sampling import measure
from cot2lib.tasks import MNNS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


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
        if isinstance(shown[name], Shown):
            shown[name].svg()
    return shown


def text(shown):
    return shown._repr_mimebundle_()["text/plain"]


def legend(figure):
    return [entry.get_text() for entry in figure.figure.legends[0].get_texts()]


@pytest.fixture
def short(monkeypatch, store):
    """The quick recipe with twenty steps, and an empty store."""
    monkeypatch.setattr(all_runs, "_listed", all_runs._listed.__wrapped__)  # else later tests get short runs
    rows = profiles.rows_of(MNNS(), "quick")
    for method in profiles.METHODS:
        monkeypatch.setitem(rows, method, replace(rows[method], most_steps=20, evaluations=2))


SHIPPED = {run.method: run.id for run in sweeps.small("quick", (42,))}
BUDGET = ("records", "accuracies", "accuracy-table", "steps-table", "check-budgets")


@pytest.mark.parametrize("budgets", [[1, 3], [1, 2, 6]])
def test_other_budgets_draw_what_is_recorded_and_name_the_rest(budgets, store):
    shown = executed("budget", BUDGET, budgets=budgets, d_models=[16])
    said, new = text(shown["check-budgets"]), budgets[-1]
    assert f'**Not drawn, quick recipe**: there is no record of B = {new}, d = 16; set `profile = "quick"`' in said
    assert "and `retrain = True`" in said and "B = 1, d = 16" not in said.partition("quick recipe")[2]
    assert legend(shown["accuracies"]) == [*(f"B = {b}" for b in budgets[:-1]), "paper"]


def test_other_budgets_draw_what_is_trained_here(short, monkeypatch):
    monkeypatch.setattr(sweeps, "sparse", lambda name: [profiles.spec("no-cot", name, task=MNNS(1, 4, 3))])
    changed = dict(budgets=[1, 3], d_models=[16], seeds=[42], retrain=True)
    live = dict(live_budgets=[1, 3], live_epochs=1, live_high=5)
    shown = executed("budget", (*BUDGET, "path-curves", "live"), **changed, **live)
    assert legend(shown["accuracies"]) == ["B = 1", "B = 3", "paper"]
    assert "quick recipe" not in text(shown["check-budgets"])
    assert "B = 3" in text(shown["accuracy-table"])
    labels = [entry.get_text() for entry in shown["live"].figure.axes[0].get_legend().get_texts()]
    assert {"B = 1", "B = 3"} <= set(labels)


def shipped_as(stack, specs):
    """The Pass@k of a shipped model of the same method under another run's id: to measure it takes a while."""
    table = measure.shipped("quick")
    return table[table["id"] == SHIPPED[specs[0].method]].assign(id=specs[0].id)


def test_sampling_with_a_new_seed(short, monkeypatch):
    """Trained and measured here, with the probe; without training the error names the run and the remedy."""
    monkeypatch.setattr(passk, "measure", shipped_as)
    cells = ("records", "passk", "passk-table", "overtaking", "check-passk", "probe", "probe-table")
    with pytest.raises(RecordError, match=r"seed 7.*retrain=True"):
        executed("sampling", ("records",), seeds=[7])
    shown = executed("sampling", cells, seeds=[7], retrain=True)
    said = text(shown["check-passk"])
    assert "**Not drawn, authors' recipe**: its Pass@k was not measured for all of these seeds" in said
    assert "quick recipe**" not in said and len(shown["passk"].figure.axes) == len(passk.TEMPERATURES)
    assert "CoT2, quick recipe" in text(shown["probe-table"])


def test_a_check_without_runs_fails_at_the_defaults_and_is_told_elsewhere(monkeypatch, capsys):
    """A check for which nothing is found was left out once, and the cell passed."""
    sparse = sweeps.sparse
    monkeypatch.setattr(sweeps, "sparse", lambda name: [run for run in sparse(name) if run.columns()["tokens"] != 1])
    cells = ("records", "check-paths")
    with pytest.raises(AssertionError, match="the whole path has the best mean, the answer alone the worst"):
        executed("budget", cells)
    capsys.readouterr()
    executed("budget", cells, live_epochs=1)
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] in (check.OTHERWISE, check.OPEN) for line in said] == [True] * 2


AUTHORS = "authors' recipe"
JUDGED = {  # by chapter: its rows, and samples of the ledger by what tells their rows apart
    "grpo_mts": ("main", [(dict(recipe=AUTHORS, k=k, d_model=d), sampled(k, d)) for k, d in EVERY]),
    "grpo_dirichlet": ("main", [
        (dict(recipe=AUTHORS, origin=f"discrete CoT, {called}", gamma=sweeps.BEST_GAMMA), base_entropies(layers))
        for layers, called in ((1, "1 layer"), (2, "2 layers"))
    ]),
    "prosqa": ("rows", [
        (dict(recipe=recipe, naming="age", method=called), sample)
        for called, method in zip(("CoT2", "discrete CoT", "COCONUT", "no-CoT"), METHODS)
        for recipe, sample in ((AUTHORS, graph_claims.prosqa(method)),
                               (graphs.BARE, graph_claims.stated("ProsQA", method)))
    ]),
}  # fmt: skip


@pytest.mark.parametrize("chapter", JUDGED)
def test_chapters_draw_every_seed_by_which_the_ledger_judges(chapter):
    """Five seeds were drawn once where the ledger had twenty, and three where it had ten."""
    cells = {
        cell["id"]: "".join(cell["source"])
        for cell in json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text())["cells"]
    }
    space = {}
    for name in ("parameters", "imports", *["whole"] * (chapter == "prosqa"), "records"):
        exec(cells[name], space)
    rows, samples = JUDGED[chapter]
    for told, sample in samples:
        assert set(frame.at(space[rows], **told)["seed"]) == set(sample("paper", profiles.TWENTY).index), told


GRPO = ("grpo", "grpo-table", "check-accuracy", "entropies", "held", "learning", "variants",
        "variants-table", "ratio-entropy", "starts")  # fmt: skip
DIRICHLET = ("accuracy", "accuracy-table", "check-gains", "entropy", "held",
             "learning", "variants", "treatments", "later")  # fmt: skip


@pytest.mark.parametrize(
    "chapter, cells", [("grpo_mts", GRPO), pytest.param("grpo_dirichlet", DIRICHLET, marks=pytest.mark.thorough)]
)
def test_policy_gradients_draw_what_is_recorded(chapter, cells, monkeypatch):
    """Of the authors' recipe nothing is recorded: the quick one is drawn, and a sentence says so."""
    recorded = runs.recorded
    paper = {run.id for run in all_runs.sweep(chapter, "paper")}
    nothing = lambda specs, retrain=False: recorded([run for run in specs if run.id not in paper], retrain)
    for module in (runs, runs.lookup):
        monkeypatch.setattr(module, "recorded", nothing)
    shown = executed(chapter, ("records", *cells), profile="paper")
    drawn = [shown[name].numbers for name in (cells[0], "learning", "variants")]
    assert all(set(numbers["recipe"]) == {"quick recipe"} for numbers in drawn) and len(shown["held"].numbers)
    said = text(shown["check-accuracy" if chapter == "grpo_mts" else "check-gains"])
    assert "**Not drawn, authors' recipe**: there is no record of " in said
    assert '`profile = "paper"` and `retrain = True`' in said and "quick" not in said
