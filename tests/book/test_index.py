"""The first page: the paper's figures, tables and propositions, six claims, what is rebuilt, the commands."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from cot2lib.study.book import index
from cot2lib.study.printed import claims, sources

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="module")
def imagined():
    """One claim judged, one with quick records, one without; the verdicts of others are made up."""
    verdicts = {
        "convergence-2l2h": "reproduced",
        "sparse-5-13": "quick only",
        "majk-prosqa": "not run: no chapter yet",
    }
    known = [{"id": claim, "verdict": verdicts.get(claim, "near")} for claim in claims().index]
    paper = pd.DataFrame(known).assign(profile="paper", seeds=5, last=12.3, last_low=10.0, last_high=14.6)
    return pd.concat([paper, paper.assign(profile="quick", verdict="quick only")], ignore_index=True)


def drawn():
    """Names of the figures and tables that each chapter makes."""
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        figures = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", "") for cell in cells]
        tables = re.findall(r'"(tab-[\w-]+)"', "".join("".join(cell["source"]) for cell in cells))
        yield path.stem, {*figures, *tables}


def test_exhibits_are_in_the_book_and_every_place_has_its_claims():
    assert {shown.name for shown in index.exhibits()} <= set().union(*(names for _, names in drawn()))
    places = index.places()
    with_claims = set(claims()["source"].str.partition(" (")[0])
    without = {place.printed for place in places.itertuples() if place.source not in with_claims}
    assert without == {"Figure 1", "Figure 2b"}, "the numbers of Figure 2b stand in Table 3"


def test_paper_index_counts_verdicts_of_the_authors_recipe(imagined):
    table = index.paper_index(imagined).set_index("the paper")["verdicts"]
    assert table["Figure 3: training with two layers"] == "{ref}`agrees <claims-fig-cont_disc_comp_graph>`"
    table = table.str.extract("`(.*) <")[0].fillna("")
    assert table["Figure 4: fewer supervised tokens"] == "not tested"
    assert table["Figure 10: majority votes on ProsQA"] == "not tested"
    assert table["Table 5: scales of Dirichlet samples"] == "5 agree"
    assert table["Figure 1: how a budget of trajectories makes the targets"] == ""


def test_badges_lead_to_the_only_card_or_to_all_cards_of_a_place(imagined):
    made = index.badges(imagined)
    assert made["fig-curves"] == [index.Badge("agrees", "Figure 3: agrees", "claim-convergence-2l2h")]
    assert [badge.words for badge in made["fig-budget"]] == ["Figure 2c: 12 agree"]
    assert made["fig-budget"][0].label == index.label("fig:emb_k_bar")
    assert {badge.label for badge in made["fig-passk"]} == {index.label("fig:pass-k")}, "a series has no card"
    assert made["fig-path"][0].group == "not tested" and made["fig-final"][0].group == "agrees"
    mixed = imagined.assign(verdict=imagined["verdict"].mask(imagined["id"] == "main-mnns-nocot", "open"))
    assert index.badges(mixed)["fig-final"][0].group == index.MIXED and "fig-tree" not in made
    graphs = imagined["id"].str.match("main-pro|csft-above")  # a verdict on graphs is none on sums
    made = index.badges(imagined.assign(verdict=imagined["verdict"].mask(graphs, "not reproduced")))
    assert [(badge.group, badge.words) for badge in made["fig-final"]] == [("agrees", "Table 3: 3 agree")]
    assert [badge.words for badge in made["fig-search"]] == ["Table 3: 4 differ", "Section 3.2: differs"]
    for verdict, words in (
        ("holds if m <= 2", "agrees on a condition"),
        ("holds vacuously: nothing", "agrees vacuously"),
    ):
        made = index.badges(imagined.assign(verdict=imagined["verdict"].mask(imagined["id"] == "packing", verdict)))
        assert made["fig-bounds"][0].words == f"Appendix, packing: {words}" and made["fig-bounds"][0].group == "agrees"


CHAPTERS = {  # tasks of the figures and tables of a chapter; of the others sums, or none
    "prosqa": {"prosqa"}, "prontoqa": {"prontoqa"}, "gsm8k": {"gsm8k"},
}  # fmt: skip
TASKS = {"prosqa", "prontoqa", "gsm8k", "mnns"}


def task_of(task):
    """Tasks that a claim names; every one where it names none, as theory does."""
    return {name.rstrip("45") for name in re.findall(r"mnns[45]?|prosqa|prontoqa|gsm8k", task)} or TASKS


def test_exhibits_speak_to_claims_on_their_own_task():
    """The main table of the paper has three tasks, and its sections several; ours have one each."""
    chapter = {name: stem for stem, names in drawn() for name in names}
    wrong = [
        (shown.name, claim)
        for shown in index.exhibits()
        for claim in shown.claims
        if shown.name != "tab-paper-gains"  # it has all tasks of the paper's tables
        and not CHAPTERS.get(chapter[shown.name], {"mnns"}) & task_of(claims().loc[claim, "task"])
    ]
    assert not wrong
    assert all(shown.claims for shown in index.exhibits() if shown.source in set(sources())), "a pattern fits nothing"
    assert [claim for claim in claims().index if not index.shown_with(claim)] == ["kl-coefficient"], "a setting"
