"""Cards of claims: each says its rows of the ledger, and draws the runs that they are made of."""

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib.metrics import mean_interval
from cot2lib.study.book import cards, index, ledger
from cot2lib.study.book.cards import MOST, picture
from cot2lib.study.book.index import is_series
from cot2lib.study.book.ledger import KINDS
from cot2lib.study.claims.comparisons import Cell, apart, labels
from cot2lib.study.claims.kinds import Drawn, HalfStated, Number, OfRuns
from cot2lib.study.judge import NAT, POINTS, number_verdict
from cot2lib.study.printed import claims, plain, sources
from cot2lib.study.report import RECIPES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page(rows):
    """All cards."""
    return cards.page(rows)


@pytest.fixture(scope="module")
def made(page):
    """Cards by claim."""
    return by_claim(page)


def by_claim(page):
    return {
        claim: card
        for card, claim in re.findall(r"^(:::\{dropdown\} [^\n]*\n:name: claim-(\S+)\n.*?)^:::$", page, re.M | re.S)
    }


def numbers(claim, read):
    return pd.read_csv(io.StringIO(picture(cards.drawn(claim, read)[1]).csv()))


def line(label="", values=(1.0, 3.0), stated=2.0, unit=POINTS, **options):
    return Drawn(label, pd.Series(values, index=range(42, 42 + len(values))), stated, unit, (), **options)


def test_page_has_one_card_for_every_claim_but_the_points_of_the_series(rows, page, made):
    expected = set(rows["id"][~is_series(rows)])
    assert sorted(re.findall(r":name: claim-(\S+)", page)) == sorted(made) == sorted(expected)
    known = [index.label(source) for source in index.places()["source"]]
    assert set(re.findall(r"^\((\S+)\)=$", page, re.M)) == set(known) & {index.label(s) for s in sources()}
    outside = page[page.index(f"## {index.ELSEWHERE}") :]
    assert "claim-kl-coefficient" in outside and "claim-main-mnns-cot2" not in outside


def test_card_says_the_verdict_errata_and_definition_of_its_claim(known, made):
    errata = (ROOT / "book" / "errata.md").read_text()
    for claim, card in made.items():
        row, kind = known.loc[claim], KINDS[claim]
        badge, heading = re.match(r":::\{dropdown\} \{bdg-\w+\}`(.*?)` (.*)\n", card).groups()
        assert (badge, heading) == (row["group"] or "no claim", cards.heading(claim))
        assert ("**Verdict:**" in card) == (row["group"] != "")
        assert not row["group"] or plain(row["why"]) in card, claim
        at = f"erratum-{cards.ERRATA.get(claim)}"
        assert (f"{{ref}}`{at}`" in card) == (claim in cards.ERRATA) == (f"\n({at})=\n### " in errata), claim
        path, _, number = re.search(r"Defined in \{source\}`(.*?)`", card)[1].partition("#L")
        line = (ROOT / path).read_text().splitlines()[int(number) - 1]
        assert line.startswith(f"{claim}," if path.endswith(".csv") else f'    "{claim}": '), claim
        assert isinstance(kind, OfRuns) or ("<svg" not in card and "CSV" not in card), claim


def test_card_says_the_numbers_of_its_rows(rows, read, made):
    """Means, seeds, prediction interval within the metric's range, hours of each run once, all seeds."""
    for row in rows[~is_series(rows) & (rows["seeds"] > 0)].itertuples():
        card, kind = made[row.id].replace("\xa0", " "), KINDS[row.id]
        assert kind.ours(row).replace("\xa0", " ") in card and f", {row.seeds} seeds." in card, row.id
        profile, lines = cards.drawn(row.id, read)
        if profile != row.profile:
            continue
        assert f"Seed by seed, {RECIPES[profile]}" in card or row.id.endswith("-sft"), row.id
        assert f"```bash\n{row.command}\n```" in card, row.id
        shown = sorted(lines, key=lambda one: one.values.mean())[:MOST]
        assert card.count("<circle") == sum(len(one.values) for one in shown), row.id
        if isinstance(kind, Number):
            ends = map(float, re.search(r"interval for .*? is (-?[\d.]+) to (-?[\d.]+) \S+, if runs", card).groups())
            within = np.clip([row.predicted_low, row.predicted_high], 0.0, kind.top)
            assert list(ends) == pytest.approx(list(within), abs=0.051)
        runs = [rows for one in lines for rows in one.runs]
        if runs and all({"id", "hours"} <= set(some) for some in runs):
            took = dict(pair for some in runs for pair in zip(some["id"], some["hours"]))
            alone = all(some["device"].str.startswith("cpu").all() for some in runs)
            assert (f"took {sum(took.values()):.2f} core-hours" in card) == alone, row.id


def test_drawn_is_what_the_ledger_judges(rows, read):
    """The numbers under a card have the mean and the interval of its row, of all kinds of claims."""
    seen = set()
    measured = rows[rows["seeds"] > 0].drop_duplicates("id")  # the authors' recipe first
    for row in measured.itertuples():
        table = numbers(row.id, read)
        if table.empty:
            continue
        assert not table.duplicated(["measured", "seed"]).any(), f"{row.id}: two lines of one name"
        means = table.groupby("measured", dropna=False)["ours"].mean()
        kind = type(KINDS[row.id]).__name__
        seen.add(kind)
        if kind in ("Direction", "NoGain", "Parts"):
            sides = table["measured"].str.rpartition(": ")[2].str.partition(" minus ")
            assert (sides[1] != "").all() and (sides[0] != sides[2]).all(), f"{row.id}: {set(table['measured'])}"
        if isinstance(KINDS[row.id], Number):
            paper = table["paper"].unique().item()
            assert means.item() == pytest.approx(paper + row.difference, rel=1e-4, abs=1e-4), row.id
            if row.judged != "gain":
                assert means.item() == pytest.approx(row.best if row.judged == "best" else row.last, rel=1e-4), row.id
                assert paper == float(claims().loc[row.id, "paper_value"])
        elif kind in ("Direction", "NoGain"):
            ends = table.groupby("measured", dropna=False)["ours"].apply(lambda part: mean_interval(part).low)
            assert np.isclose(means, row.last, rtol=1e-4, atol=1e-5).any(), row.id
            assert np.isclose(ends, row.last_low, rtol=1e-3, atol=1e-3, equal_nan=True).any(), row.id
            assert set(table["paper"]) == {0.0}
    assert seen >= {"Number", "OfStart", "Direction", "NoGain", "Uniform", "Reaches", "Parts"}


def test_plain_shows_text_of_the_tables_as_it_stands():
    assert plain("d in {16;24}  d>=24 *x* a_b") == (
        "d in \\{16, 24\\} d \N{GREATER-THAN OR EQUAL TO} 24 \\*x\\* a\\_b"
    )


def test_card_and_listing_without_runs_of_the_authors_recipe_show_the_quick_ones(read):
    without = lambda query, profile: read(query, profile)[: 0 if profile == "paper" else None]
    rows = pd.DataFrame(ledger.rows_of("sparse-11-19", without), columns=list(ledger.COLUMNS))
    card = cards.card("sparse-11-19", [*rows.itertuples()], without)
    assert card.startswith(":::{dropdown} {bdg-muted}`not tested`") and "Seed by seed, quick recipe:" in card
    assert "--profile quick" in card
    (listed,) = ledger.claims_table(rows).itertuples(index=False)
    assert listed.ours.endswith(" (quick recipe)") and "not tested" in listed.verdict
    assert listed[5] == "quick recipe alone"


def test_halves_are_asked_whether_our_recipe_reaches_them(rows, page):
    halves = [claim for claim, kind in KINDS.items() if isinstance(kind, HalfStated)]
    assert len(ledger.halves_table(rows)) == len(halves) == page.count("**Does our quick recipe's mean reach it?**")


# Pictures


def places(drawn):
    at = lambda pattern: [float(x) for x in re.findall(pattern, drawn)]
    return (
        at(r"circle[^>]* cx='([\d.]+)%'"),
        at(r"text x='([\d.]+)%'"),
        at(r"class='range' x1='([\d.]+)%' x2='[\d.]+%'"),
    )


def test_picture_has_places_that_are_shares_of_what_is_shown():
    dots, paper, low = places(picture([line(values=(10.0, 20.0), stated=40.0, within=(10.0, 30.0))]).figure)
    assert dots == pytest.approx([4, 4 + 92 / 3], abs=0.01) and paper == [96] and low == [4]
    judged = picture([line(values=(10.0, 20.0), stated=40.0, within=(10.0, 30.0))], (-70.0, 130.0)).figure
    assert places(judged) == (dots, paper, low), "an axis ends where its numbers do"
    assert re.findall(r"class='judged' x1='([\d.]+)%' x2='([\d.]+)%'", judged) == [("4.00", "65.33")]
    wide = picture([line(values=(10.0, 20.0), stated=40.0)]).figure
    assert places(wide)[0][0] > 40, "an interval of two runs is wide where nothing cuts it"


def test_picture_of_one_run_has_no_interval_and_equal_values_have_an_axis():
    alone = picture([line(values=(5.0,), stated=5.0)]).figure
    assert "class='range'" not in alone and places(alone)[:2] == ([50.0], [50.0]) and "5.0 points" in alone
    assert "0.0" in alone and "10.0" in alone


def test_picture_gives_units_axes_of_their_own():
    drawn = picture([line("a", stated=0.0), line("b", (0.1, 0.2), 0.1, NAT)]).figure
    assert drawn.count("claim-scale") == 2 and "<span>nat</span>" in drawn
    assert 'aria-label="a: 2.0 [-10.7, 14.7] points, beside no difference; runs 1.0, 3.0"' in drawn.replace(
        "\xa0", " "
    )


# What a verdict hangs on


@pytest.mark.parametrize(
    "values, stated, said",
    [
        ((50, 50.5, 51, 50.2), 50, ["The verdict stays if any one of the 4 seeds is left out."]),
        (
            (50, 51, 52, 60),
            58,
            [
                'Leaving out one of the 4 seeds can change the verdict: to "differs" without seed 45.',
                "Another margin would change the verdict (8.0 points: agrees).",
            ],
        ),
    ],
)
def test_verdict_hangs_on_single_seeds_and_on_the_margin(values, stated, said):
    verdict = number_verdict(np.array(values), stated, 1)
    assert [*filter(None, cards.hangs_on("grpo-mts-d24-k3", verdict, [line("", values, stated)], None))] == said


# Labels of comparisons


def test_labels_say_what_tells_cells_and_sides_apart():
    made = lambda **columns: pd.DataFrame([{"task": "T", "d_model": 16} | columns] * 2)
    cells = [Cell(None, "last", None, "last"), Cell(None, "entropy_3", None, "entropy_1")]
    above = [made(method="CoT2", budget=16), made(method="CoT2", budget=16, d_model=24)]
    below = [made(method="discrete CoT", budget=1), made(method="CoT2", budget=16, d_model=24)]
    assert labels(cells, list(zip(above, below))) == [
        "d = 16, last epoch: CoT2 minus discrete CoT",
        "CoT2, d = 24: token 3 minus token 1",
    ]
    mixed = above[0].assign(d_model=[16, 24], budget=[None, 1])
    assert labels(cells[:1], [(mixed, below[0])]) == ["CoT2 minus (discrete CoT, d = 16)"]
    layered = [(made(layers=2), made(layers=1))]
    assert labels(cells[:1], layered) == ["2 layers minus 1 layer"]
    budgets = [(above[0], above[0].assign(budget=8))]
    assert labels(cells[:1], budgets) == ["B = 16 minus B = 8"], "no method implies the budget here"
    tasks = [(made(task="ProsQA, age", method="CoT2 + GRPO"), made(task="ProsQA, age", method="COCONUT, zero slot"))]
    tasks += [tuple(rows.assign(task="MNNS 4 x 1-9") for rows in tasks[0])]
    assert labels([cells[0]] * 2, tasks) == [
        f"{name}: (CoT2 + GRPO) minus (COCONUT, zero slot)" for name in ("ProsQA", "MNNS")
    ]
    assert apart([["a", "b"], ["b", "c"], ["b"]]) == [["a"], ["c"], []] and apart([]) == []
