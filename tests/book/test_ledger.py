"""The ledger of all claims: which runs a claim stands on, what it counts, and what it says without records."""

import re
from pathlib import Path

import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.errors import SpecError
from cot2lib.metrics import mean_interval
from cot2lib.runs import store as stores
from cot2lib.specs.profiles import PROFILES, TWENTY
from cot2lib.study import measured, policies, sweeps
from cot2lib.study.book import index, ledger
from cot2lib.study.book.ledger import KINDS, STATEMENTS
from cot2lib.study.claims.kinds import Number, OfRuns
from cot2lib.study.printed import claims

ROOT = Path(__file__).parents[2]


def test_claims_are_unique_and_each_has_a_kind():
    known = claims().index
    assert known.is_unique and sorted(KINDS) == sorted(known)
    assert [claim for claim, statement in STATEMENTS.items() if not (ROOT / statement.test).is_file()] == []


def test_judged_counts_a_number_and_a_series_once(rows):
    """The temperatures of Pass@k are series of one model each, and a setting claims nothing."""
    counted, known = index.judged(rows).index, claims()
    point = known["metric"] == "pass_at_k"
    assert known.index[point & known.index.isin(counted)].str.endswith("-k1").all()
    assert set(counted[counted.str.endswith("-k1")]) >= set(known.index[point & known.index.str.endswith("-k1")])
    twice = known[~point].duplicated(["task", "setting", "paper_value"])
    assert set(known.index[~point]) - set(counted) == {*twice.index[twice], "kl-coefficient"} and twice.any()


@pytest.mark.parametrize("worst", ["near", "open: 7 runs decide", "not reproduced: ours 9.0 points lower"])
def test_verdicts_of_a_series_are_that_on_its_worst_point(rows, worst):
    at = rows["id"] == "passk-discrete-t0.4-k9"
    found = index.verdicts(
        rows.assign(verdict=rows["verdict"].mask(index.is_series(rows), "reproduced").mask(at, worst))
    )
    assert found["passk-discrete-t0.4-k1"] == worst.partition(":")[0]
    assert found["passk-discrete-t0.8-k1"] == "reproduced"


def test_requests_for_nothing_are_refused(rows):
    with pytest.raises(SpecError, match="the ledger counts no seed"):
        ledger.ledger([])
    with pytest.raises(SpecError, match="profile 'slow' is unknown"):
        ledger.open_table(rows, "slow")


def test_ledger_without_records_reads_no_store(nothing_shipped, store, monkeypatch):
    monkeypatch.setattr(stores, "tables", lambda: pytest.fail("the store was read"))
    rows = ledger.ledger()
    assert tuple(rows.columns) == ledger.COLUMNS and len(rows) == 2 * len(claims())
    counted = ledger.is_measured(rows)
    assert (rows["seeds"] == 0).all() and not rows.loc[~counted, "last"].notna().any() and counted.any()
    claimed = ~counted & (rows["paper_value"] != "setting only")
    assert rows.loc[claimed, "verdict"].str.startswith("not run: ").all()
    assert set(rows.loc[~counted & ~claimed, "verdict"]) == {"no claim: a setting"}


# Which runs, and what of them


@pytest.mark.parametrize("profile", PROFILES)
def test_command_of_a_claim_trains_all_runs_that_it_stands_on(profile, read):
    chapters = {}
    for chapter in sweeps.CHAPTERS:
        for run in sweeps.of_chapter(chapter, profile):
            chapters.setdefault(run.id, set()).add(chapter)
    for claim, kind in KINDS.items():
        lines = kind.drawn(claim, profile, read) if isinstance(kind, OfRuns) else []
        runs_of = {run for line in lines for rows in line.runs if "id" in rows for run in rows["id"]} & set(chapters)
        named = set(re.findall(r"cot2 run (\w+)", kind.row(claim, profile, read)["command"])) if lines else set()
        assert all(chapters[run] & named for run in runs_of), claim


MEANT = {  # by a part of a claim's id: the column of its runs, and which value
    r"-d(\d+)(?!\d)": "d_model", r"^budget-b(\d+)": "budget", r"^dirichlet-.*-g(\d+)": "gamma",
    r"^grpo-mts-.*-k(\d+)": "k", r"-(\d)l(?:-|$)": "layers",
}  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES)
def test_numbers_stand_on_the_runs_that_their_ids_name(profile, read):
    seen = set()
    for claim, kind in KINDS.items():
        runs_of = read(kind.query, profile) if isinstance(kind, Number) else pd.DataFrame()
        for pattern, column in MEANT.items():
            named = re.search(pattern, claim)
            if named and column in runs_of and not claim.endswith("-sft"):
                assert set(runs_of[column]) <= {float(named[1])}, (claim, column)
                seen.add(column)
        for word, method in (("cot2", "CoT2"), ("discrete", "discrete CoT")):
            if f"-{word}" in claim and "method" in runs_of:
                assert runs_of["method"].str.startswith(method).all(), claim
    assert seen == set(MEANT.values())


@pytest.mark.parametrize("decoder", ["own", "base", "discrete"])
def test_collapsed_is_within_three_tenths_of_a_point_by_every_decoder(decoder):
    """One answer to everything: at 0.29 points from its share a run is collapsed, at 0.31 it is not."""
    constant = policies.constant_answer(42)
    at = lambda away: pd.DataFrame([{"split": 42, "own": constant, "base": constant, "discrete": constant}]).assign(
        **{decoder: constant + away}
    )
    found = {away: bool(policies.collapsed(at(away)).item()) for away in (0.0, 0.29, -0.29, 0.31, -0.31, 4.0)}
    assert found == {away: abs(away) < 0.3 for away in found}


def test_shipped_thoughts_are_those_of_the_papers_tables():
    """Every run of the paper's policy-gradient tables, and no other."""
    assert set(measured.read("thoughts")["id"]) == {run.id for run in sweeps.looked_into("quick")}


@pytest.mark.parametrize("profile", PROFILES)
def test_small_models_lose_for_every_budget_as_the_errata_say(profile):
    """From d = 32 to 16 the mean falls, and the paired interval leaves zero out."""
    asked = lambda b, d: sweeps.sweep("budgets", profile, TWENTY, d_model=d, budget=b)
    ends = lambda b, d: runs.recorded(asked(b, d)).set_index("seed")["last"]
    falls = {b: ends(b, 32).sub(ends(b, 16)).dropna() for b in sweeps.BUDGETS}
    assert min(map(len, falls.values())) == len(TWENTY)
    assert all(mean_interval(fall).low > 0 for fall in falls.values())
