"""The first page and the README: whether the paper holds, from the records, and each verdict a click or two away."""

import hashlib
import re
import runpy
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from cot2lib.metrics import mean_interval
from cot2lib.study import graph_runs, graphs
from cot2lib.study.book import first_page, index, overview
from cot2lib.study.book.index import judged
from cot2lib.study.book.ledger import KINDS, STATEMENTS
from cot2lib.study.judge import GROUPS, group
from cot2lib.study.printed import claims, paper_value
from cot2lib.study.report import bare

ROOT = Path(__file__).parents[2]
METHODS = ("cot2", "discrete")


@pytest.fixture(scope="module")
def picture(rows):
    return BeautifulSoup(overview.picture(rows), "html.parser")


def words(text):
    return [word for word in text.split() if re.search(r"\w", word)]


# In short


def test_in_short_says_the_numbers_of_the_ledger_and_leads_to_cards(known, read):
    said = first_page.in_short()
    links = re.findall(r"\{ref\}`[^<]+ <claim-(.+?)>`", said)
    assert len(words(bare(said))) <= 90 and links and set(links) <= set(claims().index)
    said = said.replace("\xa0", " ")
    for claim in ("main-mnns-cot2", "main-mnns-discrete", "main-prosqa-cot2"):
        assert f"{{ref}}`{known.loc[claim, 'last']:.1f} % <claim-{claim}>`" in said
    runs = lambda claim: [line.values for line in KINDS[claim].drawn(claim, "paper", read)]
    assert all((gap > 0).all() for gap in runs("convergence-2l2h")) and "{ref}`on every seed <" in said
    low, high, *paper = map(int, re.search(r"(\d+)–(\d+) points \(paper: (\d+)–(\d+)\)", said).groups())
    gains = [mean_interval(gap).mean for gap in runs("grpo-improves")]
    assert (low, high) == (round(min(gains)), round(max(gains))) and min(gains) > paper[1]
    kept, lost = map(float, re.search(r"one digit <.* reaches ([\d.]+) %, .* thoughts ([\d.]+) %", said).groups())
    assert kept > 95 and lost < 50, "so it needs no look-ahead"
    conditions = sum("holds if" in known.loc[claim, "verdict"] for claim in STATEMENTS)
    assert f"{first_page.SOME[conditions].capitalize()} of {len(STATEMENTS)} theoretical statements" in said
    assert f"not {paper_value('main-prosqa-cot2'):g} %" in said
    worded = graphs.recorded(graph_runs.worded())
    assert max(worded["last"].max(), known.loc["main-prontoqa-cot2", "last"]) < 60, "so it learns nothing"


# The abstract and the tiles


def test_abstract_is_the_papers():
    """A digest of its words as they stand in the paper, without markup."""
    text = overview.PHRASE.sub(r"\1", overview.ABSTRACT)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "a26a9e740955a27d"


def test_phrases_and_tiles_say_claim_and_verdict(rows, known, picture):
    abstract = BeautifulSoup(str(picture.select_one(".abstract")), "html.parser")
    for sign in abstract.select(".sign, a:not(.phrase)"):
        sign.decompose()
    assert abstract.get_text() == overview.PHRASE.sub(r"\1", overview.ABSTRACT)
    cards = {f"claims.html#claim-{claim}": claim for claim in known.index}
    links = picture.select(".abstract a, .tile:not(.strip .tile)")
    assert links
    for link in links:
        said, claim = link["title"], cards.get(link["href"], "passk-discrete-t0.4-k1")  # a series has no card
        verdict = group(judged(rows)[claim]) if not index.in_series(claim) else "agrees"
        assert re.search(rf"\. Verdict: {verdict}[:,.]", said) or index.in_series(claim), claim
        assert index.in_series(claim) or f"is-{verdict.replace(' ', '-')}" in link["class"], claim
        assert "phrase" in link["class"] or link["aria-label"] == said
    assert not set(overview.MARKS) ^ set(GROUPS)


def test_every_claim_has_one_tile(rows, picture):
    strips = sum(int(link.get_text().split()[1]) for link in picture.select(".strip .tile"))
    tiles = picture.select(".tile:not(.strip .tile)")
    large = [tile for tile in tiles if "small" not in tile["class"]]
    counts = overview.counts(rows)
    assert len(large) == counts.loc[overview.STATEMENT].sum() and strips == counts.loc[overview.ENTROPY].sum()
    assert len(tiles) + strips == counts.loc["all"].sum() == len(judged(rows))
    assert [name.get_text() for name in picture.select("dt")] == [*overview.ROWS]
    assert all(row.select(".tile") for row in picture.select("dd"))


# The figure


@pytest.mark.parametrize("panel", first_page.CLAIMED)
def test_curves_show_the_seeds_of_the_ledger_and_the_papers_values(panel, known):
    drawn = first_page.curves(panel)
    if panel == first_page.SUMS:
        seeds = drawn.numbers.groupby("method", observed=True)["seed"].nunique()
        assert set(seeds) == {known.loc["main-mnns-cot2", "seeds"]}
    ends = drawn.numbers.sort_values("epoch").groupby(["method", "seed"], observed=True)["accuracy"].last()
    means = ends.groupby("method", observed=True).mean()
    assert means["CoT2"] > means["discrete CoT"], drawn.finding
    heights = sorted(float(bar.get_offsets()[0, 1]) for axis in drawn.figure.axes for bar in axis.collections)
    assert heights == sorted(paper_value(f"{first_page.CLAIMED[panel]}-{name}") for name in METHODS)


def test_favoured_says_that_our_recipe_on_graphs_favours_cot2():
    said = re.search(r"leads by (\d+) points by .* by (\d+) \(two heads\) or (\d+) \(four\) if", first_page.favoured())
    lead, two, four = map(int, said.groups())
    assert 0 < 2 * four < 2 * two < lead


# The README


def test_the_readme_says_what_the_records_say(rows, tmp_path):
    """`make results` puts it there."""
    made = runpy.run_path(str(ROOT / "book" / "results.py"))
    text, readme = made["results"](rows), (ROOT / "README.md").read_text()
    assert made["BEGIN"] + text + made["END"] in readme, "the README is stale; run `make results`"
    assert "{ref}" not in text
    (tmp_path / "README.md").write_text(f"a\n{made['BEGIN']}old\n{made['END']}b\n")
    made["put"](tmp_path / "README.md", "new\n")
    assert (tmp_path / "README.md").read_text() == f"a\n{made['BEGIN']}new\n{made['END']}b\n"
    assert len(readme.splitlines()) <= 100 and len(words(readme)) <= 900


def test_the_readmes_code_runs(store, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code.count("steps=1500") == 1
    exec(code.replace("steps=1500", "steps=120"), {})
    thoughts = capsys.readouterr().out.splitlines()[-4:]
    assert all(line.startswith("{") for line in thoughts)
