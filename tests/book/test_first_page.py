"""The first page: the figure of what was found, and its four sentences."""

import re

import pytest

from cot2lib.study.book import first_page, ledger
from cot2lib.study.judge import group
from cot2lib.study.printed import paper_value

pytestmark = pytest.mark.usefixtures("unchecked")
METHODS = ("cot2", "discrete")


@pytest.fixture(scope="module")
def said():
    return first_page.sentences()


@pytest.fixture(scope="module")
def known():
    rows = ledger.of_records()
    return rows[rows["profile"] == "paper"].set_index("id")


def test_there_is_a_sentence_for_each_part_of_the_paper(said):
    assert [sentence.partition(".**")[0][2:] for sentence in said] == ["Training", "Graphs", "Reward", "Theory"]


def test_verdicts_are_those_of_the_ledger_and_lead_to_cards(said, known):
    links = re.findall(r"\{ref\}`(.+?) <claim-(.+?)>`", " ".join(said))
    assert len(links) == 10
    for words, claim in links:
        verdict = known.loc[claim, "verdict"]
        assert words.lower() == (verdict if claim in ledger.STATEMENTS else group(verdict)), claim


@pytest.mark.parametrize("claim", ["main-mnns-cot2", "main-prosqa-discrete", "grpo-mts-d24-k3"])
def test_our_number_stands_beside_the_papers(said, known, claim):
    pattern = rf"([\d.]+)\s\[[\d., \s]+\] % \(the paper ([\d.]+): {{ref}}`\w[\w ]* <claim-{claim}>"
    ours, papers = map(float, re.search(pattern, " ".join(said)).groups())
    epoch = "last" if claim.startswith("main") else "best"  # as the paper prints it
    assert ours == pytest.approx(known.loc[claim, epoch], abs=0.051)
    assert papers == pytest.approx(float(known.loc[claim, "paper_value"]), abs=0.006)


def test_both_of_two_cells_are_told(said, known):
    gaps = re.findall(r"([\d.]+)\s\[[-\d., \s]+\] at \*d\* = (24|32)", said[0])
    assert [wide for _, wide in gaps] == ["24", "32"]
    assert float(gaps[0][0]) == pytest.approx(known.loc["small-cot2-beats-large-discrete", "last"], abs=0.051)


def test_of_more_cells_the_one_that_decides_is_named(said, known):
    gap = known.loc["grpo-improves", "last"]
    assert re.search(rf"gap in points {gap:.1f}\s\[.*\] at \*d\* = 24, K = 1\.", said[2])


def test_some_rewarded_runs_end_with_one_answer(said, known):
    """The sentence on reward says so of d = 24: the runs end in two groups, one of them below 40 %."""
    low = re.search(r"(\d+) at (\d+\.\d)", known.loc["grpo-mts-d24-k3", "verdict"].partition(" and ")[2])
    assert "one answer to everything" in said[2] and int(low[1]) > 0 and float(low[2]) < 40


def test_the_figure_draws_every_seed_and_the_papers_values():
    drawn = first_page.curves()
    ends = drawn.numbers.sort_values("epoch").groupby(["recipe", "method", "seed"], observed=True)["accuracy"].last()
    means = ends.groupby(["recipe", "method"], observed=True).mean().unstack()
    assert (means["CoT2"] > means["discrete CoT"]).all(), drawn.finding
    seeds = drawn.numbers.groupby(["recipe", "method"], observed=True)["seed"].nunique()
    assert seeds[first_page.SUMS].tolist() == [20, 20] and (seeds[first_page.GRAPHS] >= 1).all()
    bars = [bar for axis in drawn.figure.axes for bar in axis.collections]
    heights = sorted(float(bar.get_offsets()[0, 1]) for bar in bars)
    assert heights == sorted(paper_value(f"main-{task}-{name}") for task in ("mnns", "prosqa") for name in METHODS)
