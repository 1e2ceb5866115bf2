"""Runs that are trained twice, beside each other."""

import pandas as pd
import pytest

from cot2lib.runs import records
from cot2lib.specs.profiles import grpo
from cot2lib.study.book import drift
from cot2lib.study.sweeps import starts
from cot2lib.thoughts import MTS, Dirichlet, Gaussian, Gumbel


def table():
    """Three runs, recorded and trained again, as a record ships them."""
    rows = pd.DataFrame({"id": range(3), "kind": "reward, MTS, K = 3", "seed": (42, 43, 44)})
    before = dict(last=[0.5, 0.6, 0.7], curve_mean=[0.4, 0.5, 0.6], engine="torch", device="cpu (One(R) Core)")
    again = dict(last=[0.51, 0.58, 0.7], curve_mean=[0.41, 0.51, 0.61], engine="fused", device="cpu (Two)")
    for when, part in (("recorded", before), ("again", again)):
        rows = rows.assign(**{f"{name}_{when}": value for name, value in (part | {"stacked": 5}).items()})
    return rows


def test_the_table_says_how_far_apart_by_hand():
    (row,) = drift.drift_table(table()).to_dict("records")
    assert (
        row["recorded by"] == "torch on One Core, stack of 5"
        and row["again by"] == "fused on Two, stack of 5"
        and row["seeds"] == 3
    )
    assert row["last epoch"].startswith("-0.3") and row["over training"].startswith("1.00 [1.00")
    assert row["farthest"] == pytest.approx(2.0)


def test_every_kind_has_a_name():
    quick = drift.trained_again("quick")
    names = {drift.kind(run) for run in quick}
    gamma = "\N{GREEK SMALL LETTER GAMMA} = 20"
    assert names == {"CoT2", "discrete CoT", "no-CoT", f"reward, MTS, K = {MTS(3).k}", f"reward, Dirichlet, {gamma}"}
    assert {drift.kind(run) for run in drift.trained_again("paper")} == {"CoT2", "discrete CoT", "no-CoT"}


@pytest.mark.parametrize(
    "rule, name",
    [
        (Gumbel(0.5), "Gumbel, \N{GREEK SMALL LETTER TAU} = 0.5"),
        (Gumbel(), "Gumbel"),
        (Gaussian(0.3), "Gaussian, \N{GREEK SMALL LETTER SIGMA} = 0.3"),
        (MTS(6, temperature=6.0), "MTS, K = 6, \N{GREEK SMALL LETTER TAU} = 6"),
        (Dirichlet(1.0, masked=True), "Dirichlet, \N{GREEK SMALL LETTER GAMMA} = 1, masked = True"),
        (Dirichlet(1.0, 0.0, most=None), "Dirichlet, \N{GREEK SMALL LETTER GAMMA} = 1, floor = 0, most = None"),
    ],
)
def test_every_rule_has_a_name(rule, name):
    (start,) = starts((42,))
    assert drift.kind(grpo(start, "quick", thought=rule, ratio="product")) == f"reward, {name}"


def test_records_are_named_by_their_runs():
    """Whatever they say themselves; the table shows no markup, and every number that was shipped."""
    for profile in ("paper", "quick"):
        shipped = records.shipped_table(f"drift.{profile}.again")
        assert drift.shipped(profile).drop(columns="kind").equals(shipped.drop(columns="kind"))
        assert set(drift.shipped(profile)["kind"]) >= {drift.kind(run) for run in drift.trained_again(profile)}
    table = drift.both()
    assert len(table) == 9 and not table["runs"].str.contains(r"[$\\]").any() and (table["seeds"] == 5).all()
