"""Predictions of the four explanations, as data."""

import math
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from cot2lib.study.predicted import EXPLANATIONS, bounds, predictions

ROOT = Path(__file__).parents[2]
CONFIRMING = {
    "predictions": ("controls.quick.runs.csv", "edits.quick.answers.csv.xz"),
    "steps_predicted": ("steps.quick.runs.csv", "reads.quick.answers.csv.xz"),
    "arrow_predicted": ("arrow.paper.runs.csv", "arrow.quick.runs.csv"),
    "hops_predicted": ("hops.quick.runs.csv",),
}


def test_predictions_can_be_read():
    for block, explanations in EXPLANATIONS.items():
        table = predictions(block)
        assert set(table["explanation"]) == set(explanations) and (table["low"] < table["high"]).all()
        assert not table.duplicated(["id", "explanation"]).any() and (table["counts"] > 0).all()
    whole = predictions()
    assert len(whole) == 4 * whole["id"].nunique(), "each of the first block says something of every experiment"


def test_bounds_of_an_entry():
    assert bounds("at least 5") == (5, math.inf) and bounds("at most 2.5") == (-math.inf, 2.5)
    assert bounds("within 3") == (-3, 3) and bounds("0 to 6") == (0, 6)
    with pytest.raises(ValueError, match="about"):
        bounds("about 5")


def test_predictions_are_what_the_page_shows():
    page = (ROOT / "book" / "predictions.md").read_text()
    files = [(ROOT / "book" / file).resolve() for file in re.findall(r"^:file: (.+)$", page, re.MULTILINE)]
    assert files == [ROOT / "cot2lib/study/controls" / f"{block}.csv" for block in EXPLANATIONS]


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("block", CONFIRMING)
def test_predictions_precede_every_confirming_run(block):
    """The commit that made a recorded run of the controls descends from the last one that touched the predictions."""
    file = f"cot2lib/study/controls/{block}.csv"
    written = git("log", "-1", "--format=%H", "--", file).stdout.strip()
    if not written or git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        pytest.skip("the history of the repository is not here")
    runs = pd.concat(pd.read_csv(ROOT / "cot2lib/study/records" / name) for name in CONFIRMING[block])
    commits = set(runs["commit"])
    assert commits and all(git("merge-base", "--is-ancestor", written, made).returncode == 0 for made in commits)
    assert git("diff", "--quiet", written, "HEAD", "--", file).returncode == 0
