"""The wiring from claim to measurement, by hand."""

import re

import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.runs import records
from cot2lib.specs.profiles import PROFILES
from cot2lib.study import policies, sweeps, thoughts_held
from cot2lib.study.book import all_runs, ledger
from cot2lib.study.book.ledger import KINDS
from cot2lib.study.kinds import OfRuns

SEEDS = (42, 43, 44)


# Runs whose columns all differ, so that a swapped one shows


def told(specs, column, seed):
    """Some share for each kind of run and column; best is above last."""
    spec = specs[0]
    value = 0.30 + 0.001 * spec.model.d_model + 0.05 * spec.model.layers + 0.0003 * (seed - 42)
    return value + {"last": 0.0, "best": 0.2, "split_half": 0.1, "curve_mean": -0.1}[column]


def at_hand(monkeypatch, own_last=None):
    """Two evaluations of every asked run: entropy_t is t before and t / 10 after; 30 then 20 of 100 right by base."""

    asked = {}

    def recorded(specs, retrain=False):
        asked.update({spec.id: spec for spec in specs})
        rows = [{"id": s.id, "seed": s.seed, **{c: told(specs, c, s.seed) for c in COLUMNS}} for s in specs]
        rows = pd.DataFrame(rows).assign(
            inputs_a=60, inputs_b=40, seconds=36.0, threads=1, device="cpu", fed="teacher"
        )
        return rows if own_last is None else rows.assign(last=[own_last(s) for s in specs])

    def curves(specs, retrain=False):
        moments = ((0, 1.0, 30), (9, 0.1, 20))
        return pd.DataFrame(
            [
                {"id": s.id, "seed": s.seed, "step": step, "base_a": right / 2, "base_b": right / 2}
                | {f"entropy_{t}": t * scale + 0.001 * (s.seed - 42) for t in (1, 2, 3, 4)}
                for s in specs
                for step, scale, right in moments
            ]
        )

    monkeypatch.setattr(runs, "recorded", recorded)
    monkeypatch.setattr(runs, "curves", curves)
    monkeypatch.setattr(records, "shipped_curves", lambda ids: curves([asked[name] for name in ids]))


COLUMNS = ("last", "best", "split_half", "curve_mean")


def row_of(claim, profile="quick"):
    return KINDS[claim].row(claim, profile, lambda sample, of: sample(of, SEEDS))


def test_entropies_before_come_from_the_evaluation_before_any_step(monkeypatch):
    at_hand(monkeypatch)
    for step in (1, 2, 3, 4):
        for stem in ("grpo-mts-d24-k3", "grpo-mts-d32-k6"):
            assert row_of(f"{stem}-entropy{step}-sft", "paper")["last"] == pytest.approx(step + 0.001)
            assert row_of(f"{stem}-entropy{step}")["last"] == pytest.approx(step / 10 + 0.001)


def test_policy_gradients_show_the_last_epoch_and_are_judged_by_the_best(monkeypatch):
    at_hand(monkeypatch)
    row, one_layer = row_of("grpo-mts-d32-k3"), 100 * (0.30 + 0.032 + 0.05 + 0.0003)
    assert [row[name] for name in ("last", "best", "split_half")] == pytest.approx(
        [one_layer, one_layer + 20, one_layer + 10]
    )
    assert row["judged"] == "best" and row["judged_low"] < row["best"] < row["judged_high"]
    assert row["predicted_low"] > row["last"], "the interval that is judged lies about the best"
    base = row_of("dirichlet-cot2-g10")
    assert (base["last"], base["best"], base["split_half"]) == pytest.approx((20.0, 30.0, 30.0))


def test_the_starts_of_dirichlet_runs_have_their_layers(monkeypatch):
    at_hand(monkeypatch)
    one, two = 100 * (0.30 + 0.024 + 0.05 + 0.0003), 100 * (0.30 + 0.024 + 0.10 + 0.0003)
    assert row_of("dirichlet-cot2-sft")["last"] == pytest.approx(one)
    assert row_of("dirichlet-discrete-1l-sft")["last"] == pytest.approx(one)
    assert row_of("dirichlet-discrete-2l-sft")["last"] == pytest.approx(two)


def test_the_stabler_ratio_is_that_which_loses_less(monkeypatch):
    """Where the plain product loses six points more of its best than the root, the claim holds."""

    def falls(product, root):
        at = {"product": product, "geometric": root}
        last = lambda s: told([s], "best", s.seed) - at[s.ratio] - s.seed / 1e5 if hasattr(s, "ratio") else 0.5
        at_hand(monkeypatch, last)
        return row_of("gm-stabler")

    assert falls(0.08, 0.02)["last"] == pytest.approx(6) and falls(0.02, 0.08)["last"] == pytest.approx(-6)
    assert "not" not in falls(0.08, 0.02)["verdict"] and "not reproduced" in falls(0.02, 0.08)["verdict"]


@pytest.mark.parametrize("decoder", ["own", "base", "discrete"])
def test_a_run_is_collapsed_within_three_tenths_of_a_point_by_every_decoder(decoder):
    """One answer to everything: at 0.29 points from its share a run is collapsed, at 0.31 it is not."""
    constant = policies.constant_answer(42)
    at = lambda away: pd.DataFrame([{"split": 42, "own": constant, "base": constant, "discrete": constant}]).assign(
        **{decoder: constant + away}
    )
    assert [bool(policies.collapsed(at(away)).item()) for away in (0.0, 0.29, -0.29, 0.31, -0.31, 4.0)] == [
        True, True, True, False, False, False
    ]  # fmt: skip


def test_the_shipped_thoughts_are_those_of_the_papers_tables():
    """Every run of the paper's policy-gradient tables, and no other, has its thoughts in the shipped table."""
    shipped = set(thoughts_held.shipped("quick")["id"])
    assert shipped == {run.id for run in sweeps.looked_into("quick")}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_command_of_a_claim_trains_all_runs_that_it_stands_on(profile):
    read, chapters = ledger.reading_records(), {}
    for chapter in all_runs.SWEEPS:
        for run in all_runs.sweep(chapter, profile):
            chapters.setdefault(run.id, set()).add(chapter)
    for claim, kind in KINDS.items():
        lines = kind.drawn(claim, profile, read) if isinstance(kind, OfRuns) else []
        runs_of = {run for line in lines for rows in line.runs if "id" in rows for run in rows["id"]} & set(chapters)
        named = set(re.findall(r"cot2 run (\w+)", kind.row(claim, profile, read)["command"])) if lines else set()
        assert all(chapters[run] & named for run in runs_of), claim
