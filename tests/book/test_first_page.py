"""The first page: the figure of what was found, and its four sentences."""

import re

import pytest
from component import extension

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
        said = verdict if claim in ledger.STATEMENTS else "partly" if verdict == "partly" else group(verdict)
        assert words.lower() == said, claim


@pytest.mark.parametrize("claim", ["main-mnns-cot2", "main-prosqa-discrete", "grpo-mts-d24-k3"])
def test_our_number_stands_beside_the_papers(said, known, claim):
    pattern = rf"([\d.]+)\s\[[\d., \s]+\] % \(the paper ([\d.]+): {{ref}}`\w[\w ]* <claim-{claim}>"
    ours, papers = map(float, re.search(pattern, " ".join(said)).groups())
    epoch = "last" if claim.startswith("main") else "best"  # as the paper prints it
    assert ours == pytest.approx(known.loc[claim, epoch], abs=0.051)
    assert papers == pytest.approx(float(known.loc[claim, "paper_value"]), abs=0.006)


def test_one_layer_leads_where_its_interval_says_so(said, known):
    """The other dimension, at which one seed of ten turns the interval, is not asserted and then withdrawn."""
    found = re.search(r"leads at \*d\* = 32 \((.*)\), and has no certain lead at \*d\* = 24 \((.*)\):", said[0])
    ends = [[float(end) for end in re.findall(r"-?\d+\.\d", words)] for words in found.groups()]
    assert ends[0][1] > 0 > ends[1][1]
    assert ends[1][0] == pytest.approx(known.loc["small-cot2-beats-large-discrete", "last"], abs=0.051)


def test_of_more_cells_the_one_that_decides_is_named(said, known):
    gap = known.loc["grpo-improves", "last"]
    assert re.search(rf"gap in points {gap:.1f}\s\[.*\] at \*d\* = 24, K = 1\.", said[2])


def test_runs_that_end_with_one_answer_are_counted_at_both_dimensions(said, known):
    """The lower of the two groups in which each verdict finds the runs."""
    pattern = r"(\d+) of 20 runs at \*d\* = 32 and (\d+) of 20 runs at \*d\* = 24 end within a point"
    counts = re.search(pattern, said[2]).groups()
    verdicts = [known.loc[f"grpo-mts-d{d}-k3", "verdict"].partition(" and ")[2] for d in (32, 24)]
    assert list(counts) == [re.match(r"(\d+) at 3[45]\.", verdict)[1] for verdict in verdicts]


@pytest.mark.parametrize("d_model", [24, 32])
def test_an_open_number_that_no_run_comes_near_says_so(said, d_model):
    runs = ledger.KINDS[f"grpo-mts-d{d_model}-k3"].drawn(f"grpo-mts-d{d_model}-k3", "paper", ledger.reading_records())
    close = (runs[0].values - runs[0].stated).abs() < 5
    assert not close.any() and re.search(rf"<claim-grpo-mts-d{d_model}-k3>`; none of 20 runs within 5 points", said[2])


def test_the_first_screen_says_that_our_recipe_on_graphs_favours_cot2(said, tmp_path):
    """Beside the sentence and below the figure, whose right panel has another size than the paper's models."""
    lead, fair = map(int, re.search(r"leads by (\d+) points, and by (\d+) if each method", said[1]).groups())
    assert 0 < 2 * fair < lead and "(*d* = 32)" in first_page.favoured()
    shown = "\n".join(extension("front_page").LINES["first"](tmp_path))
    caption = shown.partition("::::{container}")[0]
    assert first_page.favoured() in caption and "(*d* = 64) and answer other questions" in caption


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
