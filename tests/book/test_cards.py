import functools
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib.metrics import mean_interval
from cot2lib.runs import records
from cot2lib.specs.profiles import TWENTY
from cot2lib.study.book import cards, index, ledger, listing, overview
from cot2lib.study.book.draw import MOST, picture
from cot2lib.study.book.ledger import KINDS, is_series, of_records, reading_records
from cot2lib.study.comparisons import Cell, Compared, apart, labels
from cot2lib.study.gsm8k.claims import Most
from cot2lib.study.judge import NAT, POINTS
from cot2lib.study.kinds import Drawn, Fact, Kind, NotMeasured, Number, OfRuns, Statement
from cot2lib.study.printed import claims, plain, sources
from cot2lib.study.readings import HalfStated

ROOT = Path(__file__).parents[2]
MEASURES = (
    "last", "best", "split_half", "curve_mean", "hours", "lost", "gain", "entropy", "base_last", "base_best",
    "base_before", "base_split_half", "base_lost", "claimed", "other", "pass_at_k", "maj_at_k", "accuracy", "length",
    "start_accuracy", "first", "before",
)  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return of_records()


@pytest.fixture(scope="module")
def read():
    return reading_records()


def numbers(claim, read):
    return pd.read_csv(io.StringIO(picture(cards.drawn(claim, read)[1]).csv()))


def line(label="", values=(1.0, 3.0), stated=2.0, unit=POINTS, **options):
    return Drawn(label, pd.Series(values, index=range(42, 42 + len(values))), stated, unit, (), **options)


def test_every_claim_but_the_points_of_the_series_has_one_card(rows):
    page = cards.page(rows)
    expected = set(rows["id"][~is_series(rows)])
    assert sorted(re.findall(r":name: claim-(\S+)", page)) == sorted(expected)
    assert page.count(":::{dropdown}") == len(expected) and "\n\n\n\n" not in page
    known = [index.label(source) for source in index.places()["source"]]
    assert set(re.findall(r"^\((\S+)\)=$", page, re.M)) == set(known) & {index.label(s) for s in sources()}
    outside = page[page.index(f"## {listing.ELSEWHERE}") :]
    assert "claim-kl-coefficient" in outside and "claim-main-mnns-cot2" not in outside


def test_a_card_draws_what_the_ledger_judges(rows, read):
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
        if KINDS[row.id].number():
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
    assert seen >= {"Number", "OfStart", "Direction", "NoGain", "Value", "Reaches", "Parts"}


def test_a_card_says_everything(rows, read):
    both = [row for row in rows.itertuples() if row.id == "budget-b16-d16"]
    card = cards.card("budget-b16-d16", both, read)
    assert card.startswith(":::{dropdown} {bdg-info}`depends on the run` two layers, d = 16, B = 16: 55.27 %\n")
    assert "**The paper:** MNNS with four digits, validation accuracy, two layers, d = 16" in card.replace("\xa0", " ")
    assert "**Runs:** 20 planned; 0 failed or not made, 0 diverged, 0 left out." in card
    assert "**Ours, authors' recipe:**" in card and "**Ours, quick recipe:**" in card and "20 seeds." in card
    assert "```bash\ncot2 run csft --profile paper && cot2 collect csft --profile paper\n```" in card
    assert "**Seen in** {numref}`fig-budget`, {numref}`tab-budget`. **Play with it:** {ref}`two models add" in card
    row = next(row for row in both if row.profile == "paper")
    assert f"Ours is {abs(row.difference):.1f} points above the paper's." in card and row.difference > 0
    assert "The 95 % prediction interval for the mean of 5 runs, as the paper took, is " in card
    assert f" is {row.predicted_low:.1f} to {row.predicted_high:.1f}, if runs are normally distributed." in card
    hours = KINDS["budget-b16-d16"].sample("paper", TWENTY)["hours"]
    assert f"These runs took {hours.sum():.2f} core-hours." in card
    assert (
        "Run by run, authors' recipe:" in card
        and card.count("<circle") == 20
        and "download=" in card
        and card.rstrip().endswith(":::")
    )


def test_a_card_without_runs_of_the_authors_recipe_shows_the_quick_ones(quick_alone):
    read, rows = quick_alone
    card = cards.card("sparse-11-19", [*rows.itertuples()], read)
    assert card.startswith(":::{dropdown} {bdg-muted}`not tested`") and "Run by run, quick recipe:" in card
    assert "--profile quick" in card


def test_runs_of_one_recipe_are_told_once_and_no_accuracy_is_above_100(rows, read):
    made = {claim: cards.card(claim, list(part.itertuples()), read) for claim, part in rows.groupby("id")}
    alone = made["grpo-prosqa-cot2-sft"]
    assert alone.count("**Ours, quick recipe:**") == alone.count("**Ours") == 1
    assert alone.startswith("**The paper:** ProsQA, validation accuracy, four layers", alone.index("**The paper"))
    ends = [
        float(end)
        for text in made.values()
        for end in re.findall(r"prediction interval for .* is .* to ([\d.]+), if runs are normally", text)
    ]
    assert len(ends) > 50 and max(ends) == 100.0


def test_claims_without_runs_have_cards_without_pictures(rows, read):
    for claim in ("construction", "gsm8k-160-mts", "kl-coefficient", "gsm8k-96-init"):
        card = cards.card(claim, [row for row in rows.itertuples() if row.id == claim], read)
        assert "<svg" not in card and "CSV" not in card and ("**Verdict:**" in card) == (claim != "kl-coefficient")


def test_cards_lead_to_errata_that_are_there():
    errata = (ROOT / "book" / "errata.md").read_text()
    for claim, label in cards.ERRATA.items():
        assert claim in KINDS and f"\n(erratum-{label})=\n### " in errata, claim


def test_a_claim_that_the_papers_table_refutes_names_the_cell_and_leads_to_the_erratum(rows, read):
    card = cards.card("rl-consistent", [row for row in rows.itertuples() if row.id == "rl-consistent"], read)
    sft, after = (claims().loc[f"grpo-prosqa-discrete-{name}", "paper_value"] for name in ("sft", "k6"))
    lost = float(sft) - float(after)
    assert f"ProsQA, discrete CoT, K = 6 falls by {lost:.2f} points, from {sft} to {after}" in card
    assert "{ref}`erratum-gains`" in card


def test_hours_count_a_run_once(read):
    runs = pd.DataFrame({"id": ["a", "b"], "hours": [1.0, 0.5], "device": "cpu (x)"})
    assert cards.spent([line()._replace(runs=(runs, runs)), line()._replace(runs=(runs.iloc[:1],))]) == 1.5
    assert cards.spent([line()]) == 0.0 and cards.spent([line()._replace(runs=(runs.assign(device="H100"),))]) == 0.0


@pytest.mark.parametrize("claim", ["main-mnns-cot2", "k-infinity", "budget-b4-d24", "kl-coefficient", "gsm8k-160-mts"])
def test_where_a_claim_is_defined(claim):
    path, _, number = cards._defined(claim).partition("#L")
    lines = (ROOT / path).read_text().splitlines()
    if number:
        assert f'"{claim}":' in lines[int(number) - 1]
    else:
        assert not any(f'"{claim}":' in text for text in lines)


def test_text_of_the_tables_is_shown_as_it_stands():
    assert plain("d in {16;24}  d>=24 *x* a_b") == (
        "d in \\{16, 24\\} d \N{GREATER-THAN OR EQUAL TO} 24 \\*x\\* a\\_b"
    )


# The day on which everything is measured


@pytest.fixture
def measured(monkeypatch):
    """The ledger with five made-up runs beside every claim, and what reads them."""
    rng = np.random.default_rng(0)
    columns = [*MEASURES, *(f"entropy_{t}{when}" for t in (1, 2, 3, 4) for when in ("", "_before"))]

    @functools.cache
    def read(sample, profile):
        rows = pd.DataFrame(rng.uniform(0.3, 0.6, (5, len(columns))), columns=columns, index=range(42, 47))
        return rows.assign(
            id=[f"{profile}{seed}" for seed in rows.index], device="cpu (x)", inputs_a=500, inputs_b=500
        )

    monkeypatch.setattr(cards, "reading_records", lambda: read)
    return ledger._ledger(read), read


def test_every_kind_of_claim_can_be_measured(measured):
    """Word problems too, which nothing stands beside so far."""
    rows, _ = measured
    kinds = {*Kind.__subclasses__(), *Number.__subclasses__(), *Compared.__subclasses__()} - {Compared}
    assert {type(kind) for kind in KINDS.values()} == kinds
    of_runs = rows[rows["id"].map(lambda claim: isinstance(KINDS[claim], (OfRuns, Most)))]
    told = of_runs[(of_runs["seeds"] > 0) | (of_runs["profile"] == "paper")]
    assert (told["seeds"] == 5).all() and told["last"].notna().all() and not told["verdict"].str.match("not run").any()
    assert set(rows["id"]) - set(told["id"]) == {
        c for c in KINDS if isinstance(KINDS[c], Fact | Statement | NotMeasured)
    }
    shown = listing.claims_table(rows).set_index(pd.Index(rows["id"].unique()))
    assert (shown.loc[told["id"], "ours"] != "").all() and (shown.loc[told["id"], "seeds"] == 5).all()
    assert len(shown) == len(claims()) and list(shown) == [
        "claim",
        "the paper",
        "ours",
        "seeds",
        "verdict",
        "why, or on what condition",
    ]


def test_tables_hold_every_kind_of_claim(measured):
    rows, read = measured
    misses = ledger.misses_table(rows, read).set_index("family")
    assert {
        "`gsm8k`, points",
        "`gsm8k`, tokens",
        "`grpo_mts one_split`, nat",
        "`one_split sampling`, points, series",
    } <= set(misses.index)
    assert misses.loc["`gsm8k`, tokens", "numbers"] == 8 and misses.loc["`gsm8k`, tokens", "differ"] == 8
    assert ledger.open_table(rows, "paper").empty, "a setting waits for nothing"
    counts = overview.counts(rows).loc["all"]
    assert counts.sum() > 150 and counts["not tested"] > 0
    assert "not run" not in " ".join(index.paper_index(rows)["verdicts"])


def test_cards_and_tiles_show_every_kind_of_claim(measured):
    rows, _ = measured
    page = cards.page(rows)
    for claim, card in re.findall(r":name: claim-(\S+)\n(.*?)\n:::\n", page, re.S):
        assert ("<svg" in card) == (isinstance(KINDS[claim], OfRuns)), claim
        assert ("**Ours, " in card) == (isinstance(KINDS[claim], (OfRuns, Most))), claim
    assert "tokens, beside the paper&#x27;s" in page
    halves = [claim for claim, kind in KINDS.items() if isinstance(kind, HalfStated)]
    assert len(ledger.halves_table(rows)) == len(halves) == page.count("**Can the method reach it by our recipe?**")
    assert "not run" not in overview.picture(rows)


# Pictures


def places(drawn):
    at = lambda pattern: [float(x) for x in re.findall(pattern, drawn)]
    return (
        at(r"circle[^>]* cx='([\d.]+)%'"),
        at(r"text x='([\d.]+)%'"),
        at(r"class='range' x1='([\d.]+)%' x2='[\d.]+%'"),
    )


def test_places_are_shares_of_what_is_shown():
    dots, paper, low = places(picture([line(values=(10.0, 20.0), stated=40.0, within=(10.0, 30.0))]).figure)
    assert dots == pytest.approx([4, 4 + 92 / 3], abs=0.01) and paper == [96] and low == [4]
    judged = picture([line(values=(10.0, 20.0), stated=40.0, within=(10.0, 30.0))], (-70.0, 130.0)).figure
    assert places(judged) == (dots, paper, low), "an axis ends where its numbers do"
    assert re.findall(r"class='judged' x1='([\d.]+)%' x2='([\d.]+)%'", judged) == [("4.00", "65.33")]
    wide = picture([line(values=(10.0, 20.0), stated=40.0)]).figure
    assert places(wide)[0][0] > 40, "an interval of two runs is wide where nothing cuts it"


def test_one_run_has_no_interval_and_equal_values_have_an_axis():
    alone = picture([line(values=(5.0,), stated=5.0)]).figure
    assert "class='range'" not in alone and places(alone)[:2] == ([50.0], [50.0]) and "5.0 points" in alone
    assert "0.0" in alone and "10.0" in alone


def test_units_have_axes_of_their_own():
    drawn = picture([line("a", stated=0.0), line("b", (0.1, 0.2), 0.1, NAT)]).figure
    assert drawn.count("claim-scale") == 2 and "<span>nat</span>" in drawn
    assert 'aria-label="a: 2.0 [-10.7, 14.7] points, beside no difference; runs 1.0, 3.0"' in drawn.replace(
        "\xa0", " "
    )


def test_of_many_lines_those_with_the_smallest_means_are_drawn():
    lines = [line(f"line {n}", (n, n + 1.0)) for n in range(MOST + 3)]
    drawn = picture(lines[::-1]).figure
    assert drawn.count("<svg") == MOST and "3 more lines" in drawn and f"line {MOST}" not in drawn


# Counts of runs


def runs_of(seeds, asked, used):
    """A line of a card: runs of some seeds, how many from 42 on were asked for, and those that its values are of."""
    ids = " ".join(f"run{seed}" for seed in range(42, 42 + asked))
    rows = pd.DataFrame({"id": [f"run{seed}" for seed in seeds], "asked": ids}, index=seeds)
    return Drawn("", pd.Series(1.0, index=used), 0.0, POINTS, (rows,))


@pytest.mark.parametrize(
    "lines, told",
    [
        ([runs_of([42, 43], 2, [42, 43])], "2 planned; 0 failed or not made, 0 diverged, 0 left out"),
        ([runs_of([42, 43], 5, [42, 43])], "4 planned; 2 failed or not made, 0 diverged, 0 left out"),
        ([runs_of([42, 43, 44], 3, [42, 43])], "3 planned; 0 failed or not made, 1 diverged, 1 left out"),
        (
            [runs_of([42, 43], 3, [42]), runs_of([43, 42], 3, [43])],
            "3 planned; 1 failed or not made, 0 diverged, 0 left out",
        ),
    ],
)
def test_a_card_counts_what_it_does_not_show(monkeypatch, lines, told):
    monkeypatch.setattr(cards, "diverged", lambda: frozenset({"run44"}))
    monkeypatch.setattr(cards, "planned", lambda: frozenset(f"run{seed}" for seed in range(42, 46)))  # 46 is not
    assert cards.counted(lines) == f"**Runs:** {told}."


def test_a_card_of_no_runs_counts_none():
    bare = Drawn("", pd.Series([1.0]), 0.0, POINTS, (pd.DataFrame({"accuracy": [1.0]}),))
    assert cards.counted([]) == cards.counted([bare]) == ""


def test_a_run_diverges_where_a_loss_is_no_number(monkeypatch):
    points = pd.DataFrame({"id": list("aabbcc"), "step": [0, 9] * 3, "loss": [np.nan, 1, 1, np.nan, 1, np.inf]})
    monkeypatch.setattr(records, "shipped", lambda: (None, points))
    assert cards.diverged.__wrapped__() == {"b", "c"}


# Labels of comparisons


def test_labels_say_what_tells_cells_and_sides_apart():
    made = lambda **columns: pd.DataFrame([{"task": "T", "d_model": 16} | columns] * 2)
    cells = [Cell(None, "last", None, "last"), Cell(None, "entropy_3", None, "entropy_1")]
    above = [made(method="CoT2", budget=16), made(method="CoT2", budget=16, d_model=24)]
    below = [made(method="discrete CoT", budget=1), made(method="CoT2", budget=16, d_model=24)]
    assert labels(cells, list(zip(above, below))) == [
        "d = 16, last epoch: CoT2, B = 16 minus discrete CoT, B = 1",
        "CoT2, d = 24, B = 16: entropy 3 minus entropy 1",
    ]
    mixed = above[0].assign(d_model=[16, 24], budget=[None, 1])
    assert labels(cells[:1], [(mixed, below[0])]) == ["CoT2 minus discrete CoT, d = 16, B = 1"]
    assert apart([["a", "b"], ["b", "c"], ["b"]]) == [["a"], ["c"], []] and apart([]) == []
