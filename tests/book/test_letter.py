"""The letter to the authors: its numbers come from the records, its sentences hold, its commands make what it says."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cot2lib.specs import GRPOSpec
from cot2lib.specs.profiles import PROFILES, TEN
from cot2lib.study import grpo_mts, policies, sweeps
from cot2lib.study.book import letter
from cot2lib.study.book.ledger import KINDS
from cot2lib.study.printed import claims, paper_value
from cot2lib.study.reward_runs import explaining
from cot2lib.study.sweeps import KS, LARGE
from cot2lib.tasks import MNNS
from cot2lib.theory import estimators

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book" / "letter.md").read_text()
FINDINGS = PAGE.split("\n## ")[1:]
NAMES = list(dict.fromkeys(letter.PLACE.findall(PAGE)))


@pytest.fixture(scope="module")
def points():
    return policies.evaluations({"paper": explaining("paper")})


@pytest.fixture(scope="module")
def said():
    return {name: letter.number(name) for name in NAMES}


def test_every_number_is_placed_and_no_other_is_made(said):
    assert {name for name in NAMES if " " not in name or name in letter.found()} == set(letter.found())
    assert not re.search(r"\{\{|\}\}|nan", letter.filled(PAGE))
    assert not re.search(r"\d\d\.\d|\d\.\d\d|\[-?\d|n = \d", PAGE), "a measured number is typed"
    with pytest.raises(KeyError):
        letter.filled("{{ nothing }}")


def test_numbers_are_the_papers_and_the_ledgers(said, known):
    for name, text in said.items():
        source, _, claim = name.partition(" ")
        if source == "paper":
            assert text == claims().loc[claim, "paper_value"]
        if source == "ours":
            row = known.loc[claim]
            ours = [row["last"], row["last_low"], row["last_high"], row["seeds"]]
            assert [float(n) for n in re.findall(r"[\d.]+", text)] == pytest.approx(ours, abs=0.0501)
    for d in LARGE:
        assert float(said[f"before {d}"][:5]) == pytest.approx(
            known.loc[f"grpo-mts-d{d}-k3-entropy1-sft", "last"], abs=6e-4
        )
        gain = paper_value(f"grpo-mts-d{d}-k3") - paper_value(f"grpo-mts-d{d}-sft")
        assert said[f"gain {d}"] == f"{gain:.2f}"


def test_exact_numbers(said):
    zeros = int((MNNS().answers == 0).sum())
    counts = [said[name] for name in ("zeros right", "zeros", "rest right", "rest", "repaired right", "all")]
    assert counts == ["0", str(zeros), *[str(MNNS().size - zeros)] * 2, *[str(MNNS().size)] * 2]
    assert (said["ratio"], said["bound"]) == ("7/4", "3/2")
    assert said["fit"] == said["accuracies"] and int(said["others"]) < int(said["fit"]) / 2
    parts = estimators.mnns_explained(MNNS().digits)
    assert all((estimators.ratio(parts, k) <= estimators.printed_bound(k)).all() for k in range(2, 13))


def test_no_setting_gives_the_whole_table(points):
    """None has all of the paper's numbers among its runs."""
    kept = grpo_mts.standing(policies.outcomes(points))
    fits = grpo_mts.fits(kept)[["accuracies", "gains", "entropies"]]
    assert not fits.isin(["3 of 3", "12 of 12"]).all(axis=1).any()
    made = {run for chapter in sweeps.CHAPTERS for name in PROFILES for run in sweeps.of_chapter(chapter, name)}
    policy = pd.DataFrame([run.columns() for run in made if isinstance(run, GRPOSpec)])
    assert not ((policy["dropout"] > 0) & (policy["lr"] < 2e-5)).any(), "both were combined after all"


def test_settings_of_the_code_gain_less(points):
    """The first page says so; for each dimension and K, with collapsed runs."""
    made = policies.outcomes(points)
    gains = made.assign(gain=made["own_best"] - made["discrete_before"])
    gains = gains.groupby(["dropout", "lr", "d_model", "k"])["gain"].mean().unstack([0, 1])
    stated = gains.pop((0.0, 5e-5))
    assert set(gains) == {(0.1, 5e-5), (0.0, 5e-6)} and gains.lt(stated, axis=0).all(axis=None)


def test_first_token_before_reward_knows_no_k_and_after_an_epoch_rises_with_it(points):
    usual = points[points["lr"] > 2e-5].sort_values("step")
    start = usual[usual["step"] == 0].groupby(["d_model", "dropout", "seed"])["entropy_1"]
    assert (start.max() - start.min()).max() < 1e-3
    later = usual[usual["step"] > 0].groupby("id").head(1)
    assert later["epoch"].between(0.99, 1.01).all()
    each = later.groupby(["dropout", "d_model", "k"])[[f"entropy_{step}" for step in (1, 2, 3, 4)]].mean()
    assert (each["entropy_1"].unstack("k").diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    dropped = each.loc[0.1]
    printed = [[paper_value(f"grpo-mts-d{d}-k{k}-entropy{t}-sft") for t in (1, 2, 3, 4)] for d, k in dropped.index]
    apart = (dropped - np.array(printed)).abs()
    assert letter.found()["apart"] == f"{apart['entropy_1'].max():.2f}"
    assert apart.mean().idxmin() == "entropy_1" and len(dropped) == len(LARGE) * len(KS)


def test_a_finding_names_its_place_a_command_a_card_and_no_verdict_outside_of_links(known):
    verdicts = known["verdict"].str.extract(r"^([a-z ]+?)(?: if |:|$)")[0].unique()
    for finding in FINDINGS:
        assert re.match(r".+\n\n\*.*(Table|Figure|Proposition|Appendix)", finding), finding
        assert re.search(r"\nCommand: (`(cot2 run|pytest) |as in point 1)", finding) and '\n> "' in finding, finding
        cards = re.findall(r"<claim-(.+?)>", finding)
        assert cards and set(cards) <= set(KINDS), finding
        words = re.sub(r"\{ref\}`.*?`|`.*?`", "", finding)
        assert not [verdict for verdict in verdicts if re.search(rf"\b{verdict}\b", words)], finding


def test_commands_make_the_runs_of_their_findings(known):
    runs = set()
    for command in re.findall(r"`(cot2 .+?)`", PAGE):
        _, _, chapter, _, profile, *where = shlex.split(command)
        runs |= set(sweeps.where(sweeps.of_chapter(chapter, profile), where[1:]))
    assert runs >= set(explaining("paper"))
    arrows = [sweeps.sweep(name, "paper", TEN, d_model=[16]) for name in ("budgets", "other_prompt")]
    assert runs >= {run for some in arrows for run in some if run.supervision.ties == "minus-first"}, "B above 1"
    by_id = known["command"]
    assert by_id["main-prosqa-cot2"].startswith("cot2 run search --profile paper")
    assert re.findall(r"`(pytest .+?)`", PAGE) == [by_id["sample-complexity-ratio"], by_id["read-off"]]
