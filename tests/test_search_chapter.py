"""What the chapter `search` measures, draws and tabulates, on oracles whose answers are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from test_reachability import walks

from cot2lib.decode import Rollout
from cot2lib.errors import SpecError
from cot2lib.specs.graphs import graph_spec
from cot2lib.study import searches
from cot2lib.study.analysis import searched, votes
from cot2lib.study.analysis.shortcuts import BOTH, LEADING, LED_TO, MOVED, NEITHER
from cot2lib.study.checks.search import (
    COSTLY,
    CURRICULA,
    FOR_DISCRETE,
    HARMLESS,
    STEADY,
    bare_checks,
    checks,
    chosen_checks,
    last_checks,
    more_checks,
    width_checks,
)
from cot2lib.study.checks.thoughts import reached_checks, thought_checks
from cot2lib.study.figures import search
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import ProntoQA, ProsQA
from cot2lib.tasks.reachability import token
from cot2lib.training.supervised import build_stack

FILE = Path(__file__).parent / "data" / "prosqa_valid.json"
TASK = ProsQA(inputs=60)
COUNTS = {"paper": 129, "quick": 249}  # runs of the chapter
ROWS = torch.arange(20)
TEST = searched.Test("sixty", TASK, ROWS)
STACK = build_stack([graph_spec(task=TASK, d_model=8, layers=1)])  # never asked where answers are told


def oracle(weights, answers, runs=1):
    """A rollout that thinks and answers as told; its last logits are one at the answer."""
    steps = weights.shape[1] + 1
    logits = torch.zeros(runs, len(weights), steps, weights.shape[-1])
    logits[:, torch.arange(len(weights)), -1, answers] = 1.0
    told = torch.cat([weights, torch.zeros_like(weights[:, :1])], 1).float().expand(runs, -1, -1, -1)
    answers = answers.expand(runs, -1)
    return Rollout(logits, told, answers, torch.zeros(runs, len(weights), steps), [], [])


def test_states_are_those_of_listed_walks():
    held = searched.held_states(TASK, ROWS)
    for row in range(20):
        layers, target = walks(TASK, row), int(TASK.options[row, 0])
        for hop, layer in enumerate(layers):
            assert set(held.frontier[row, hop].nonzero()[:, 0].tolist()) == {walk[-1] for walk in layer}
            ends = {walk[hop + 1] for walk in layers[-1] if walk[-1] == target}
            assert set(held.in_time[row, hop].nonzero()[:, 0].tolist()) == ends
        unreached = set(range(TASK.names)) - set(held.reached[row].nonzero()[:, 0].tolist())
        assert int(TASK.options[row, 1]) in unreached and target not in unreached


def test_an_oracle_keeps_its_thoughts_on_the_frontier(monkeypatch):
    targets = hindsight_targets(TASK)[ROWS]
    monkeypatch.setattr(searched, "answered", lambda *_: oracle(targets[:, :-1], TASK.answer_ids[ROWS]))
    row = searched.measured(STACK, [graph_spec(task=TASK)], TEST).iloc[0]
    assert row["strict"] == row["pair"] == 1 and row["inputs"] == 20
    for hop in range(1, 5):
        assert row[f"frontier_{hop}"] == pytest.approx(1) and row[f"unreached_{hop}"] == 0
        assert 0 < row[f"in_time_{hop}"] <= 1
    share = targets[torch.arange(20), 3, TASK.answer_ids[ROWS]].mean()
    assert row["in_time_4"] == pytest.approx(float(share))


def test_a_wrong_answer_counts_by_its_kind(monkeypatch):
    """The other option is wrong both ways. So is a name that was not asked for: a tie is no choice."""
    thoughts = torch.zeros(20, 4, TASK.vocab_size)
    other = TASK.state_ids[TASK.options[ROWS, 1]]
    thoughts.scatter_(2, other[:, None, None].expand(-1, 4, 1), 1.0)
    neither = TASK.state_ids[TASK.root[ROWS]]
    for answers, strict, pair in ((other, 0, 0), (neither, 0, 0), (TASK.answer_ids[ROWS], 1, 1)):
        monkeypatch.setattr(searched, "answered", lambda *_, answers=answers: oracle(thoughts, answers))
        row = searched.measured(STACK, [graph_spec(task=TASK)], TEST).iloc[0]
        assert (row["strict"], row["pair"]) == (strict, pair)
        assert row["unreached_2"] == 1 and row["frontier_2"] == 0


def test_prontoqa_is_answered_by_true_or_false(monkeypatch):
    task = ProntoQA(inputs=60)
    targets, right = hindsight_targets(task)[ROWS], task.answer_ids[ROWS]
    wrong, neither = token("True") + token("False") - right, torch.full_like(right, token("in"))
    for answers, share in ((right, 1), (wrong, 0), (neither, 0)):
        monkeypatch.setattr(searched, "answered", lambda *_, answers=answers: oracle(targets[:, :-1], answers))
        row = searched.measured(STACK, [graph_spec(task=task)], searched.Test("sixty", task, ROWS)).iloc[0]
        assert (row["strict"], row["pair"]) == (share, share)
        assert row["frontier_6"] == pytest.approx(1) and row["in_time_6"] == pytest.approx(0.25)
    specs = [graph_spec(task=replace(task, naming="once"))]
    usual = {"drawn names", *search.TESTED[2:]}
    assert {test.name for test in searched.tests(specs)} == usual | set(MOVED)
    for reading in ("sign", "twins"):
        other = graph_spec(task=replace(task, naming="once", reading=reading))
        assert {test.name for test in searched.tests([other])} == usual


def test_tests_are_of_other_graphs_or_of_those_trained_on(monkeypatch):
    monkeypatch.setattr(searched, "INPUTS", 40)
    spec = graph_spec(task=replace(TASK, naming="once"), seed=42)
    found = {test.name: test for test in searched.tests([spec, replace(spec, seed=43)])}
    assert set(search.TESTED) < set(found)
    seen, renamed = found["seen graphs"], found["seen graphs, new names"]
    assert all(spec.task.split(seed)[seen.rows].all() for seed in (42, 43)) and len(seen.rows) > 20
    depth = [len(found[name].rows) for name in ("target deeper", "as deep", "other deeper")]
    assert sum(depth) == 40 and depth[0] > depth[2]
    assert torch.equal(seen.rows, renamed.rows)
    assert torch.equal(seen.task.graphs.edges, renamed.task.graphs.edges)
    assert not torch.equal(seen.task.edges, renamed.task.edges)
    unseen = found["drawn names"].task.graphs.edges
    assert not torch.equal(unseen[:5], spec.task.graphs.edges[:5]) and torch.equal(
        unseen, found["ages"].task.graphs.edges
    )
    assert {name: int(test.task.graphs.hops[0]) for name, test in found.items() if "hops" in name} == {
        "3 hops": 3, "5 hops": 5,
    }  # fmt: skip
    few = [test for name, test in found.items() if name.startswith("few nodes")]
    assert len(few) == 3 and len(few[0].rows) == 40 and all(torch.equal(test.rows, few[0].rows) for test in few)
    sizes = [test.task.graphs.nodes[test.rows] for test in few]
    assert [(size - sizes[0]).unique().tolist() for size in sizes] == [[0], [4], [4]]
    alone = {test.name for test in searched.tests([graph_spec("no-cot", task=spec.task)])}
    assert alone == set(found) - {"3 hops", "5 hops"}


def test_all_published_questions_are_asked():
    asked = list(searched.published_tests(FILE))
    assert sum(len(test.rows) for test in asked) == 600 and len(asked) == 8


def test_answers_come_from_the_model():
    """Decoding a fresh model by `answered` equals decoding one question by itself, whatever its padding."""
    spec = graph_spec(task=TASK, d_model=16, layers=1)
    stack = build_stack([spec])
    all_at_once = searched.answered(stack, spec, TEST)
    for row in (0, 7):
        alone = searched.answered(stack, spec, TEST._replace(rows=ROWS[row : row + 1]))
        assert torch.allclose(alone.logits[:, 0], all_at_once.logits[:, row], atol=1e-5)
    assert all_at_once.weights.shape == (1, 20, 5, TASK.vocab_size)


# Tables and figures


@pytest.fixture
def tested():
    """Two runs of two methods on all tests, with shares by hop."""
    rows = []
    for method in ("CoT2", "discrete CoT"):
        for seed in (42, 43):
            for naming in ("fresh", "age"):
                for place, test in enumerate((*search.TESTED, "3 hops", *search.DEPTHS)):
                    masses = {f"{stem}_{hop}": 1 / hop for stem in search.MASSES for hop in (1, 2, 3)}
                    shares = dict(strict=0.9 - 0.1 * place, pair=0.95, method=method, seed=seed, naming=naming)
                    rows.append(shares | masses | {"test": test, "inputs": 100})
    return pd.DataFrame(rows)


def test_tables_of_tests(tested):
    table = search.naming_table(tested)
    assert table["trained on"].tolist() == ["fresh names", "names by age"] * 2
    assert table["ages"].str.startswith("80.0").all() and table["seen graphs, new names"].str.startswith("60.0").all()
    far = search.far_table(tested)
    assert len(far) == 16 and far["pair"].str.startswith("95.0").all()


def test_choices_say_when_a_curve_leaves_chance():
    curve = pd.DataFrame({"method": "CoT2", "seen": [1000, 2000, 3000], "accuracy": [0.5, 0.7, 0.9]})
    flat = curve.assign(method="discrete CoT", accuracy=0.55)
    row = search.choices_table({"usual": pd.concat([curve, flat])}).iloc[0]
    assert row["CoT2"] == 90 and row["CoT2, graphs"] == 2 and np.isnan(row["discrete CoT, graphs"])


def test_costs_are_examples_and_core_minutes():
    shape = {"names": 28, "d_model": 64, "heads": 2, "method": "CoT2", "train_inputs": 17_886, "steps": 20_000}
    rows = pd.DataFrame(
        [shape | {"id": f"{m}", "batch": 32, "threads": 2, "seconds": 60.0 * m, "last": 0.8} for m in (5, 7)]
    )
    tests = [("5", "drawn names", 0.9), ("7", "drawn names", 0.7), ("7", "ages", 0.0), ("9", "drawn names", 0.1)]
    (row,) = search.costs_table(rows, pd.DataFrame(tests, columns=["id", "test", "strict"])).to_dict("records")
    assert (row["examples (thousands)"], row["core-minutes"], row["graphs"]) == (640, 12, 17_886)
    assert row["validation"].startswith("80.0") and row["test"].startswith("80.0") and "n=2" in row["test"]


def test_figures_draw_what_they_are_given(tested):
    figure = search.hops(tested[tested["test"] == "drawn names"])
    assert len(figure.axes) == 2 and figure.axes[0].lines[-1].get_ydata()[1] == pytest.approx(50)
    sizes = {"names": [19, 19, 19, 28], "d_model": [32, 64, 64, 32], "heads": [1, 2, 2, 2]}
    surface = pd.DataFrame(sizes | {"last": [0.5, 0.6, 0.3, 0.7], "method": ["CoT2", "CoT2", "discrete CoT", "CoT2"]})
    few, many = search.surface(surface).axes
    assert [text.get_text() for text in few.get_xticklabels()] == ["d = 32", "d = 64"]
    heights = lambda axis: [float(dots.get_offsets()[0, 1]) for dots in axis.collections[::2]]  # then the mean
    assert heights(few) == [50, 60, 30] and heights(many) == [70]


def test_the_question_shows_where_the_thought_is():
    thoughts = np.zeros((4, TASK.names))
    thoughts[:, int(TASK.options[3, 0])] = 1.0
    figure = search.question(TASK, 3, thoughts)
    assert [axis.get_title() for axis in figure.axes] == [f"after hop {hop}" for hop in range(1, 5)]
    sizes = figure.axes[0].collections[1].get_sizes()
    assert (sizes > 0).sum() == 1 and sizes.max() == search.drawn.MOST_SIZE
    said = {text.get_text() for text in figure.axes[0].texts}
    assert {"root", "target", "other"} <= said


def test_a_question_that_is_not_there_is_refused():
    with pytest.raises(SpecError, match=r"question=60: the test has questions 0\.\.59"):
        searched.thoughts(graph_spec(task=TASK), TASK, 60)


def test_checks_fail_when_records_say_otherwise(tested):
    rows = pd.DataFrame(
        [
            {"profile": "quick", "method": method, "naming": naming, "seed": seed, "last": share}
            for method, share in (("CoT2", 0.95), ("discrete CoT", 0.6), ("no-CoT", 0.53))
            for naming in ("fresh", "once", "age")
            for seed in (42, 43)
        ]
    )
    stated = {"CoT2": 0.5, "no-CoT": 0.52, "COCONUT": 0.15, "discrete CoT": 0.05}
    drawn = pd.DataFrame({"profile": "paper", "method": list(stated), "last": list(stated.values()), "seed": 42})
    by_recipe = [
        rows,
        *(drawn.assign(naming=name) for name in ("fresh", "once")),
        drawn.assign(naming="age", last=[0.6, 0.5, 0.5, 0.5]),
    ]
    rows = pd.concat(by_recipe, ignore_index=True)
    guessed = pd.DataFrame({"rule": ["one", "farther"], "published": [70.0, 92.0], "ours": [52.0, 85.0]})
    trained = pd.DataFrame({"last": [0.7]})
    by_age = (tested["naming"] == "age") & (tested["test"] == "drawn names")
    near = tested.assign(strict=0.9, pair=tested["pair"].where(~by_age, 0.52))
    holds = checks(rows, near, guessed, trained)
    assert all(holds.values()) and len(holds) == 14
    swapped = rows.assign(last=(1 - rows["last"]).where(rows["method"] != "no-CoT", 0.6))
    broken = checks(
        swapped,
        tested.assign(pair=tested["pair"].where(tested["test"] != "as deep", 0.6)),
        guessed.assign(ours=61.0, published=70.0),
        trained.assign(last=0.5),
    )
    assert not any(broken.values())


def test_every_run_of_the_chapter_stands_once():
    assert {profile: len(searches.searches(profile)) for profile in ("paper", "quick")} == COUNTS
    assert {run.task.naming for run in searches.naming()} == {"age", "once", "fresh"}
    for change, part in searches.changes().items():
        assert part[0].method == "CoT2" and (change == "usual") == (part[0] == graph_spec("cot2"))


def test_findings_name_what_names_do(tested):
    sentences = search.naming_findings(tested)
    assert len(sentences) == 4 and "Trained on names by age, CoT2 is right on 80.0" in sentences[1]
    assert "90.0" in sentences[1] and "of pairs on 95.0" in sentences[1]
    assert search.naming_findings(tested[tested["test"] != "ages"]) == []


def test_depths_stand_apart(tested):
    table = search.depths_table(tested.assign(pair=tested["pair"].where(tested["test"] != "as deep", 0.4)))
    assert table["as deep"].str.startswith("40.0").all() and table["other deeper"].str.startswith("95.0").all()


def test_depths_say_how_many_graphs_they_have():
    sizes = {"target deeper": 862, "as deep": 92, "other deeper": 46, "drawn names": 1000}
    tested = pd.DataFrame({"test": sizes.keys(), "inputs": sizes.values()})
    assert search.counted(tested) == "862, 92 and 46"


def test_rewards_are_of_first_and_last_evaluations():
    seeds, counts = (
        {"seed": [42] * 3 + [43] * 3, "step": [0, 5, 9] * 2},
        {"inputs_a": 60, "inputs_b": 40, "base_b": 10},
    )
    points = pd.DataFrame(seeds | {"accuracy": [0.5, 0.9, 0.6] * 2, "base_a": [40, 0, 30] * 2})
    points = points.assign(discrete_a=[15, 0, 20] * 2, discrete_b=5)
    points = points.assign(task="ProsQA, 19 names", method="CoT2 + GRPO", k=6.0, profile="quick", **counts)
    row = search.rewards_table(points).iloc[0]
    assert (row["start"], row["K"], row["paper before"], row["paper after"]) == ("CoT2", 6, 93.37, 93.83)
    own = [row[f"own, {when}"].split("\N{NO-BREAK SPACE}")[0] for when in ("before", "best", "gain")]
    assert own == ["50.0", "90.0", "10.0"]
    assert row["base, before"].startswith("50.0") and row["base, after"].startswith("40.0")
    assert row["discrete, before"].startswith("20.0") and row["discrete, after"].startswith("25.0")


def test_each_method_is_shown_with_its_own_choice():
    rows = [
        dict(id=f"{m}{heads}", method=m, heads=heads, steps=1000, batch=32, last=0.9)
        for m in ("CoT2", "discrete CoT")
        for heads in (2, 4)
    ]
    tested = [dict(id=row["id"], test=t, strict=0.8, pair=0.85) for row in rows for t in search.TESTED]
    tested = pd.DataFrame(tested).assign(strict=lambda rows: rows["strict"].where(rows["test"] == "drawn names", 0.1))
    table = search.chosen_table(pd.DataFrame(rows), tested)
    assert table["changed"].tolist() == [searches.CHOSEN["cot2"], searches.CHOSEN["discrete"]] * 2
    assert table["heads"].tolist() == [2, 2, 4, 4]
    assert (table["examples (thousands)"] == 32).all() and table["validation"].str.startswith("90.0").all()
    assert table["test, strict"].str.startswith("80.0").all() and table["test, pair"].str.startswith("85.0").all()


def test_methods_stand_beside_the_papers_numbers():
    rows = pd.DataFrame({"method": ["CoT2", "CoT2", "no-CoT"], "seed": [42, 43, 42], "last": [0.9, 0.8, 0.5]})
    rows = rows.assign(naming="fresh", profile="quick")
    table = search.methods_table(rows, "prosqa", "naming")
    assert table["method"].tolist() == ["CoT2", "no-CoT"] and table["paper"].tolist() == [93.37, 54.91]
    assert table["ours, quick recipe"].str.contains("n=").all() and table["ours, quick recipe"][0].startswith("85.0")
    both = pd.concat([rows[:2], rows[:2].assign(method="discrete CoT", last=0.5)])
    (sentence,) = search.findings(both)
    assert sentence.startswith("CoT2 is 35.0") and sentence.endswith("(fresh names, quick recipe).")


def test_the_recipe_without_dropout_stands_beside_it():
    seeds, columns = [42, 43], {"profile": "paper", "naming": "age", "method": "CoT2"}
    stated = pd.DataFrame({"seed": seeds, "last": [0.6, 0.6], **columns})
    (sentence,) = search.bare_findings(stated, stated.assign(last=[0.8, 0.9]))
    assert "CoT2 ends at 85.0" in sentence and "25.0" in sentence and "points higher (names by age" in sentence
    assert search.bare_findings(stated.assign(naming="once"), stated) == []
    assert search.bare_findings(stated, pd.DataFrame({"last": []})) == []


def test_claims_on_the_recipe_without_dropout_can_fail():
    by_method = lambda cot2, discrete: pd.DataFrame(
        [
            dict(profile="paper", naming="age", method=method, seed=seed, last=last)
            for method, lasts in (("CoT2", cot2), ("discrete CoT", discrete))
            for seed, last in enumerate(lasts)
        ]
    )
    rows = by_method((0.6, 0.6), (0.5, 0.5))
    assert list(bare_checks(by_method((0.8, 0.82), (0.7, 0.72)), rows).values()) == [True] * 2
    assert list(bare_checks(by_method((0.65, 0.9), (0.65, 0.7)), rows).values()) == [False] * 2
    assert list(bare_checks(by_method((0.8, 0.9), (0.7, 0.72)), rows).values()) == [True, False]
    fresh, without = (part.assign(naming="fresh") for part in (rows, by_method((0.66, 0.7), (0.4, 0.4))))
    fresh = fresh.assign(last=fresh["last"].where(fresh["method"] == "CoT2", 0.1))
    assert list(bare_checks(without, fresh).values()) == [True]
    assert list(bare_checks(without.assign(last=0.62), fresh).values()) == [False]
    assert bare_checks(rows.assign(naming="once"), rows) == {}


def test_dimensions_stand_side_by_side():
    sides = {"CoT2": (0.9, 0.8), "discrete CoT": (0.6, 0.7)}  # at the end, over the training
    rows = [
        dict(task=f"{task}, 19 names", d=d, profile="quick", method=method, seed=seed, last=last, curve_mean=mean)
        for task, d in (("ProntoQA", 24), ("ProsQA", 40), ("ProsQA", 24))
        for method, (last, mean) in sides.items()
        for seed in (42, 43)
    ]
    table = search.dimensions_table(pd.DataFrame(rows))
    assert table[["task", "d"]].to_numpy().tolist() == [["ProsQA", 24], ["ProsQA", 40], ["ProntoQA", 24]]
    shown = [column.split("\N{NO-BREAK SPACE}")[0] for column in table.iloc[0, 3:]]
    assert shown == ["90.0", "60.0", "30.0", "10.0"]


def test_each_change_stands_beside_the_usual_curves():
    curve = pd.DataFrame({"method": ["CoT2"] * 2, "seen": [0, 2000], "accuracy": [0.0, 0.9]})
    figure = search.choices({"usual": curve} | {f"change {n}": curve.assign(accuracy=[0, 0.5]) for n in range(5)})
    drawn = [axis for axis in figure.axes if axis.lines]
    assert [axis.get_title() for axis in drawn] == [f"change {n}" for n in range(5)]
    for axis in drawn:
        thin, thick = axis.lines
        assert thin.get_linewidth() < thick.get_linewidth()
        assert thin.get_ydata()[-1] == 90 and thick.get_ydata()[-1] == 50 and thick.get_xdata()[-1] == 2


def test_votes_stand_by_profile_and_seed(monkeypatch):
    spec = searches.dimension("quick", (42,), (32,), ("discrete",))[0]
    table = pd.DataFrame({"id": [spec.id, "another"], "temperature": 1.0, "k": 5, "pass_at_k": 90.0, "maj_at_k": 80.0})
    monkeypatch.setattr(votes, "shipped", lambda profile: table)
    row = votes.by_profile(["quick"], [42])
    assert row[["method", "seed", "profile"]].to_numpy().tolist() == [["discrete CoT", 42, "quick"]]
    figure = search.votes(pd.concat([row, row.assign(method="CoT2", temperature=0.0, k=1)]))
    assert len(figure.axes) == 1 and len(figure.axes[0].lines) >= 2


def test_published_questions_stand_by_hops_and_by_the_names_of_training(tested):
    cell = tested[(tested["test"] == "ages") & (tested["method"] == "CoT2") & (tested["naming"] == "age")]
    rows = cell.assign(test="published, 4 hops, ages", inputs=133)
    aged = rows.assign(naming="age", strict=0.9)
    other = aged.assign(test="published, 5 hops, ages", inputs=67, strict=0.3)
    table = search.published_table(pd.concat([rows.assign(naming="fresh"), aged, other, tested]))
    ours = table[table["method"] == "CoT2"].set_index(["questions", "asked with"])
    assert ours.index.tolist() == [
        ("4 hops (133)", "ages"), ("5 hops (67)", "ages"), ("all (133)", "ages"), ("all (200)", "ages"),
        ("generated (100)", "drawn names"), ("generated (100)", "ages"),
    ]  # fmt: skip
    row = ours.loc[("4 hops (133)", "ages")]
    assert row["fresh names, strict"].startswith("80.0") and row["fresh names, pair"].startswith("95.0")
    assert row["names by age, strict"].startswith("90.0")
    assert ours.loc[("all (200)", "ages"), "names by age, strict"].startswith("69.9")
    assert ours.loc[("generated (100)", "ages"), "names by age, strict"].startswith("80.0")


def test_more_checks_fail_when_records_say_otherwise():
    shares = {
        ("CoT2", "age", "ages"): 0.99, ("CoT2", "fresh", "drawn names"): 0.96, ("discrete CoT", "age", "ages"): 0.87,
        ("discrete CoT", "fresh", "drawn names"): 0.6, ("discrete CoT", "fresh", "5 hops"): 0.66,
        ("CoT2", "age", "drawn names"): 0.17,
        ("CoT2", "fresh", "3 hops"): 0.5, ("discrete CoT", "age", "seen graphs"): 0.99,
        ("discrete CoT", "once", "drawn names"): 0.5, ("discrete CoT", "once", "seen graphs"): 0.8,
        ("COCONUT", "once", "drawn names"): 0.5, ("COCONUT", "once", "seen graphs"): 0.6,
        ("no-CoT", "once", "drawn names"): 0.5, ("no-CoT", "once", "seen graphs"): 0.8,
        ("CoT2", "fresh", "5 hops"): 0.62, ("COCONUT", "fresh", "5 hops"): 0.3,
        ("COCONUT", "fresh", "3 hops"): 0.6, ("discrete CoT", "fresh", "3 hops"): 0.5,
    }  # fmt: skip
    rows = [dict(zip(("method", "naming", "test"), key), strict=share, pair=0.95) for key, share in shares.items()]
    tests = pd.DataFrame(rows).assign(frontier_4=lambda table: table["strict"])
    asked = [("CoT2", "fresh", "drawn names", 0.97), ("CoT2", "age", "ages", 0.98)]
    asked += [(*key, f"published, 4 hops, {names}", share) for *key, names, share in asked]
    asked += [("CoT2", "age", "published, 4 hops, drawn names", 0.3), ("discrete CoT", "age", "ages", 0.68)]
    three = (("fresh", "published, 3 hops, drawn names"), ("age", "published, 3 hops, ages"))
    asked += [(m, *key, share) for m, share in (("CoT2", 0.3), ("discrete CoT", 0.5)) for key in three]
    sized = pd.DataFrame(asked, columns=["method", "naming", "test", "strict"]).assign(pair=0.52)
    one = {"method": "CoT2", "profile": "quick", "temperature": 0.0, "k": 1, "pass_at_k": 99.0, "maj_at_k": 99.0}
    many = {
        "method": "discrete CoT",
        "profile": "quick",
        "temperature": 1.0,
        "k": 21,
        "pass_at_k": 96.0,
        "maj_at_k": 88.0,
    }
    counted = pd.DataFrame([one, many]).assign(task="ProsQA")
    guessing = pd.DataFrame([one, many | {"temperature": 0.0, "k": 1}]).assign(profile="paper", pass_at_k=51.0)
    elsewhere = pd.concat([counted, guessing]).assign(task="ProntoQA")
    counted = pd.concat([counted, elsewhere], ignore_index=True)
    points = pd.DataFrame({"step": [0, 9], "accuracy": [0.7, 0.8], "base_a": [90, 80]})
    points = points.assign(method="CoT2 + GRPO", profile="quick", k=8, seed=42, base_b=0, inputs_a=50, inputs_b=50)
    points = points.assign(task="ProsQA, 19 names", discrete_a=[40, 41], discrete_b=20)
    still = points.assign(task="ProntoQA, reachable", base_a=[90, 90], profile="paper")
    discrete = points.assign(method="discrete CoT + GRPO", accuracy=[0.5, 0.8], base_a=[40, 50])
    elsewhere = discrete.assign(task="ProntoQA, reachable", accuracy=[0.6, 0.605])
    parts = [points, points.assign(profile="paper"), still, discrete, elsewhere]
    points = pd.concat(parts, ignore_index=True)
    holds = more_checks(tests, sized, counted, points)
    assert len(holds) == 20 and all(holds.values())
    other, swapped = (
        tests.assign(strict=1 - tests["strict"], frontier_4=0.5, pair=0.6),
        points.assign(
            step=9 - points["step"], discrete_b=points["step"], accuracy=points["accuracy"].replace(0.6, 0.7)
        ),
    )
    better = counted.assign(maj_at_k=99.5, pass_at_k=counted["pass_at_k"] + 9 * (counted["profile"] == "paper"))
    worse = sized.assign(strict=sized["strict"].where(sized["test"].str.startswith("published"), 0.8), pair=0.6)
    worse.loc[worse["test"].str.contains("3 hops"), "strict"] = 0.5
    broken = more_checks(other, worse, better, swapped)
    assert len(broken) == 20 and not any(broken.values())


def test_last_checks_fail_when_records_say_otherwise():
    sizes = [(28, 64, 1, 0.98), (28, 64, 2, 0.98), (28, 64, 4, 0.9), (19, 16, 2, 0.6), (19, 32, 4, 0.9)]
    sizes += [(19, d, heads, 0.98) for d in (32, 64) for heads in (1, 2)] + [(19, 40, 4, 0.98)]
    sizes += [(28, 32, heads, 0.7 - 0.02 * heads) for heads in (1, 2, 4)]
    wide = pd.DataFrame(sizes, columns=["names", "d_model", "heads", "last"]).assign(method="CoT2")
    changes = {"usual": 96.0, "padding counts": 98.0, "one hop first": 60.0, "hops one by one": 40.0}
    changes |= {"the paper's grammar": 49.0, searches.CHOSEN["discrete"]: 97.0}
    changes |= {"all four of the last search": 97.0, "those four, constant rate": 95.0, "five hops": 97.0}
    changes |= (
        dict.fromkeys(STEADY, 80.0)
        | {"rate 1e-4": 51.0, "constant rate": 93.0}
        | dict.fromkeys(COSTLY, 85.0)
        | dict.fromkeys(HARMLESS, 97.0)
    )
    choices = pd.DataFrame({"changed": list(changes), "CoT2": list(changes.values()), "discrete CoT": 60.0})
    choices.loc[choices["changed"].isin(FOR_DISCRETE), "discrete CoT"] = 70.0
    choices.loc[choices["changed"].isin(CURRICULA), "discrete CoT"] = 15.0
    choices.loc[choices["changed"].isin(STEADY), "discrete CoT"] = 40.0
    choices.loc[choices["changed"] == "the paper's grammar", "discrete CoT"] = 51.0
    choices.loc[choices["changed"] == searches.CHOSEN["discrete"], "discrete CoT"] = 88.0
    choices.loc[choices["changed"] == "all four of the last search", "discrete CoT"] = 85.0
    choices["COCONUT"] = choices["changed"].map(
        {"usual": 80.0, "twice as long": 90.0, "padding counts": 51.0, "rate 1e-3": 50.0}
    )
    shortcuts = pd.DataFrame({"rule": ["in", "local"], "sign": [69.0, 100.0]})
    methods = ["CoT2", "discrete CoT", "no-CoT"]
    answers = pd.DataFrame(
        {"profile": "quick", "reading": "sign", "method": methods, "last": [0.58, 0.6, 0.62], "best": 0.7}
    )
    stated = answers[:1].assign(profile="paper", last=0.7)
    ways = pd.DataFrame({"reading": "reachable", "method": ["CoT2", "COCONUT", "no-CoT"], "best": 0.8})
    ways = pd.concat([ways.assign(profile="quick", last=[0.8, 0.6, 0.5]), ways.assign(profile="paper", last=0.5)])
    answers = pd.concat([answers, stated, ways], ignore_index=True)
    holds = last_checks(wide, choices, answers, shortcuts)
    assert len(holds) == 22 and all(holds.values())
    apart = answers.assign(last=[0.58, 0.6, 0.64, 0.6, *[0.6] * 6], best=[0.7, 0.73, 0.68, 0.7, *[0.7] * 6])
    other = {
        "five hops": 90.0,
        "padding counts": 95.0,
        "one hop first": 77.0,
        "rate 1e-4": 60.0,
        COSTLY[-1]: 92.0,
        HARMLESS[0]: 92.0,
    }
    changed = pd.DataFrame({"changed": list(changes), "CoT2": list((changes | other).values()), "discrete CoT": 60.0})
    changed["COCONUT"] = changed["changed"].map(
        {"usual": 99.0, "twice as long": 90.0, "padding counts": 51.0, "rate 1e-3": 61.0}
    )
    worse = last_checks(wide.assign(last=0.9), changed, apart, shortcuts)
    assert len(worse) == 22 and not any(worse.values())
    two = last_checks(wide, choices, answers[:2], shortcuts)
    assert not two["under the sign reading all three methods end within 5 points (our recipe)"]


def over_dimensions(**gaps):
    """Rows whose gaps (points) by seed are given for each profile, task and dimension."""
    return pd.DataFrame(
        [
            dict(profile=profile, task=f"{task}, 19", d=d, seed=seed, method=method, last=base + over * gap / 100)
            for (profile, task, d), (base, by_seed) in gaps["cells"].items()
            for seed, gap in enumerate(by_seed)
            for method, over in (("CoT2", 1), ("discrete CoT", 0))
        ]
    )


def test_claims_over_dimensions_can_fail():
    cells = {("quick", "ProsQA", d): (0.8, [10, 12]) for d in (24, 32, 40)}
    cells |= {("quick", "ProntoQA", d): (0.55, [gap, gap]) for d, gap in ((24, -4), (32, 20), (40, 9))}
    cells |= {("paper", "ProsQA", d): (base, [gap, -1]) for d, base, gap in ((24, 0.5, 3), (32, 0.6, 3), (40, 0.7, 2))}
    cells |= {("paper", "ProntoQA", d): (0.5, [1, -1]) for d in (24, 32, 40)}
    holds = width_checks(over_dimensions(cells=cells))
    assert len(holds) == 6 and all(holds.values())
    for place, (cell, value) in enumerate(
        [
            (("quick", "ProsQA", 24), (0.8, [10, -1])),
            (("quick", "ProntoQA", 40), (0.6, [9, -1])),
            (("quick", "ProntoQA", 24), (0.7, [1, 1])),
            (("paper", "ProsQA", 24), (0.65, [3, -1])),
            (("paper", "ProsQA", 40), (0.7, [2, 1])),
            (("paper", "ProntoQA", 40), (0.6, [1, -1])),
        ]
    ):
        broken = list(width_checks(over_dimensions(cells=cells | {cell: value})).values())
        assert not broken[place] and sum(broken) == 5


def reached(d=32, **changed):
    """Rows of both methods on ProntoQA, with some shares changed by method and test."""
    shares = {("CoT2", "drawn names"): 0.84, ("CoT2", "seen graphs"): 0.86, ("discrete CoT", "drawn names"): 0.65}
    shares |= {("discrete CoT", "seen graphs"): 0.96} | changed.pop("shares", {})
    rows = [dict(method=m, test=t, strict=share, frontier_6=0.8, seed=42, d=d) for (m, t), share in shares.items()]
    return pd.DataFrame(rows).assign(**{"reading": "reachable"} | changed)


def blocked(both=0.0, leading=-0.05):
    """What `reached` has where rules are blocked, as far from its shares on unseen questions as told."""
    by = {LED_TO: 0.01, LEADING: 0.0, BOTH: both, NEITHER: 0.0}
    gaps = {("CoT2", 0.84): by, ("discrete CoT", 0.65): by | {LEADING: leading}}
    return {(method, rule): share + gap for (method, share), rules in gaps.items() for rule, gap in rules.items()}


def of_control(**shares):
    """Rows of the control by method."""
    rows = [dict(method=m, test="drawn names", strict=share, seed=42, d=32) for m, share in shares.items()]
    return pd.DataFrame(rows).assign(reading="twins")


def of_coconut(*held):
    """Rows of COCONUT by the share of the last thought on its frontier; the first one alone is above chance."""
    rows = pd.DataFrame({"frontier_6": held}).assign(strict=[0.8, *[0.5] * (len(held) - 1)])
    return rows.assign(method="COCONUT", test="drawn names", reading="reachable", d=32)


def test_claims_on_prontoqa_can_fail():
    alike = of_control(**{"CoT2": 0.99, "discrete CoT": 0.97, "no-CoT": 0.51})
    guessed = of_control(**{"CoT2": 0.99, "discrete CoT": 0.9, "no-CoT": 0.51})
    at = lambda *others, **changed: pd.concat([*others, *(reached(d, **changed) for d in (24, 32, 40))])
    assert list(reached_checks(at(alike, of_coconut(0.6, 0.1), shares=blocked())).values()) == [True] * 7
    by_heart = {("CoT2", "seen graphs"): 0.95, ("discrete CoT", "seen graphs"): 0.7}
    other = at(guessed, of_coconut(0.4, 0.1), shares=by_heart | blocked(-0.05, -0.01), frontier_6=0.5)
    assert list(reached_checks(other).values()) == [False] * 7


def of_thoughts(coconut=0.85, first=(0.7, 0.95), least=(0.4, 0.95), target=0.6, lost=0.4, elsewhere=0.0):
    """Rows of three methods on graphs like those of training and on some with leaves, two seeds."""
    strict = {"CoT2": 0.96, "COCONUT": coconut, "discrete CoT": 0.6}
    leaves = {"few nodes": 0.0, "few nodes, 4 leaves elsewhere": elsewhere, "few nodes, 4 leaves on the way": lost}
    rows = []
    for method, share in strict.items():
        for seed in (0, 1):
            own = method == "COCONUT"
            shares = (first[seed], least[seed], 0.97, 0.96) if own else (0.99,) * 4
            masses = {f"frontier_{hop}": value for hop, value in enumerate(shares, start=1)}
            row = dict(method=method, seed=seed, in_time_4=target if own else 0.4) | masses
            rows += [row | dict(naming=naming, test="drawn names", strict=share) for naming in ("fresh", "once")]
            losses = {test: gap if method == "discrete CoT" else gap / 20 for test, gap in leaves.items()}
            rows += [row | dict(naming="fresh", test=test, strict=share - gap) for test, gap in losses.items()]
    return pd.DataFrame(rows)


def test_claims_on_thoughts_can_fail():
    assert list(thought_checks(of_thoughts()).values()) == [True] * 6
    other = of_thoughts(coconut=0.5, first=(0.4, 0.95), least=(0.6, 0.8), target=0.3, lost=0.2, elsewhere=0.05)
    assert list(thought_checks(other).values()) == [False] * 6
    assert thought_checks(of_thoughts().assign(naming="age")) == {}


def test_prontoqa_stands_by_dimension_and_method():
    parts = [reached(24).assign(reading="twins"), reached(40), reached(24)]
    table = search.reached_table(pd.concat(parts))
    assert table[["d", "method"]].to_numpy().tolist() == [
        [d, m] for d in (24, 40, 24) for m in ("CoT2", "discrete CoT")
    ]
    assert table["asked"].tolist() == ["is it reached?"] * 4 + ["two halves alike"] * 2
    shown = table.iloc[1]
    assert shown["drawn names"].startswith("65.0") and shown["seen graphs"].startswith("96.0")
    assert shown["thought on its frontier"].startswith("80.0")


def test_blocked_rules_stand_beside_the_questions_of_training():
    tests = {"drawn names": 0.84, **{rule: 0.8 - place / 10 for place, rule in enumerate(MOVED)}}
    shares = {("CoT2", test): share for test, share in tests.items()}
    known = reached(40, shares=shares)
    table = search.blocked_table(pd.concat([known, reached(24).assign(reading="twins")]))
    assert table["d"].tolist() == [40, 40] and table["method"].tolist() == ["CoT2", "discrete CoT"]
    shown = [column.split(",")[0] for column in table.iloc[0, 2:]]
    assert table.columns.tolist()[2:] == ["as in training", *MOVED]
    assert shown == ["84.0", "80.0", "70.0", "60.0", "50.0"]


def test_claims_on_the_best_of_each_can_fail():
    make = lambda *gaps, base=0.85: pd.DataFrame(
        [
            dict(profile="quick", naming="fresh", method=method, heads=heads, seed=seed, last=base + over * gap)
            for seed, gap in enumerate(gaps)
            for method, over in (("CoT2", 1), ("discrete CoT", 0))
            for heads in (2, 4)
        ]
    )
    usual = make(0.3, 0.4).query("heads == 2")
    assert list(chosen_checks(make(0.1, 0.12), usual).values()) == [True] * 3
    assert list(chosen_checks(make(0.4, -0.01, base=0.5), usual).values()) == [False] * 3
    assert len(chosen_checks(make(0.1, 0.12).query("heads == 2"), usual)) == 2


def test_every_claim_on_graphs_rests_on_listed_runs():
    """So that the command on a card trains them."""
    listed = {run.id for profile in ("quick", "paper") for run in searches.searches(profile)}
    for method in ("cot2", "coconut", "discrete", "no-cot"):
        for profile in ("quick", "paper"):
            asked = [
                *searches.naming(profile, methods=(method,), namings=("age",)),
                *searches.answering(profile, methods=(method,), readings=("reachable",)),
            ]
            assert {run.id for run in asked} <= listed
