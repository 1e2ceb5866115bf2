"""The cards' "Does it hold?": what a page judges from some seeds is what the ledger judges from the same."""

import json
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from chromium import BROWSER, MISSING, said_by
from component import extension

from cot2lib.study import report
from cot2lib.study.book import holds
from cot2lib.study.book.ledger import KINDS, PROFILES, of_records, reading, reading_records
from cot2lib.study.kinds import SETTLED, of_profile
from cot2lib.study.readings import HalfStated
from cot2lib.study.report import RECIPES

BOOK = Path(__file__).parents[2] / "book"
MANY = 6  # subsets of the seeds of each claim and recipe
LOADED = '<script src="../_static/holds-rules.js"></script><script src="../_static/holds-data.js"></script>'

pytestmark = pytest.mark.skipif(BROWSER is None, reason=MISSING)


@pytest.fixture(scope="module")
def cases():
    return holds.cases(reading_records())


@pytest.fixture(scope="module")
def folder(tmp_path_factory, cases):
    """The scripts of the book, with the runs of the claims."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(BOOK / "_static", folder / "_static")
    extension("claim_cards").write_cases(folder / "_static")
    return folder


def seeds_of(case):
    return sorted({seed for line in case["lines"] for seed, _ in line["values"]})


def verdict(claim, profile, read):
    """Verdict of the rule on a recipe's runs, whichever settles the claim."""
    kind = KINDS[claim]
    if profile != SETTLED:
        kind, read = kind.best if isinstance(kind, HalfStated) else kind, of_profile(read, profile)
    return kind.row(claim, SETTLED, read)["verdict"]


def some_of(read, seeds):
    """Reads the rows of some seeds, all of which have been read."""
    return lambda sample, profile: (rows := read(sample, profile))[rows.index.isin(seeds)]


def asked_of(cases, subsets):
    """Claims, recipes and random subsets of their seeds, in the order of the claims."""
    rng = random.Random(0)
    for claim, recipes in cases.items():
        for profile in PROFILES:
            if case := recipes.get(RECIPES[profile]):
                seeds = seeds_of(case)
                for _ in range(subsets):
                    yield claim, profile, sorted(rng.sample(seeds, rng.randint(1, len(seeds))))


def judged(folder, asked):
    """Verdicts of the page on claims, recipes and seeds."""
    return said_by(
        folder,
        LOADED,
        f"""return {json.dumps([(claim, RECIPES[profile], seeds) for claim, profile, seeds in asked])}
            .map(([claim, recipe, seeds]) => window.COT2.verdict(window.COT2_CASES[claim][recipe], seeds));""",
    )


@pytest.mark.parametrize("subsets", [1, pytest.param(MANY, marks=pytest.mark.thorough)])
def test_the_page_judges_as_the_rules_do(folder, cases, subsets):
    """All cards with runs, both recipes, random subsets of their seeds; notes and their numbers too."""
    asked, read = list(asked_of(cases, subsets)), reading_records()
    told = judged(folder, asked)
    apart, words = [], set()
    for (claim, profile, seeds), found in zip(asked, told):
        expected = verdict(claim, profile, some_of(read, seeds))
        words.add(re.split(r"[:,]", expected)[0])
        if expected != found and not (expected.startswith("not run") and found.startswith("not run")):
            apart.append((claim, profile, seeds, expected, found))
    assert not apart, "\n".join(map(str, apart))
    assert words >= {"reproduced", "near", "open", "not reproduced", "did not learn", "refuted"}


def test_with_all_seeds_the_page_says_what_the_ledger_says(folder, cases):
    rows = of_records()
    settled = rows[rows["profile"] == SETTLED].set_index("id")["verdict"]
    asked = [
        (claim, SETTLED, seeds_of(recipes[RECIPES[SETTLED]]))
        for claim, recipes in cases.items()
        if RECIPES[SETTLED] in recipes
    ]
    assert judged(folder, asked) == [settled[claim] for claim, *_ in asked] and len(asked) > 120


@pytest.mark.parametrize("claim", ["main-mnns-discrete", "budget-d16", "grpo-mts-d32-k3", "convergence-prosqa"])
def test_rows_of_some_seeds_are_what_the_ledger_reads_of_them(claim, cases):
    """The ledger for some seeds, as `cot2lib.study.book.ledger.ledger(seeds)` makes it."""
    seeds = seeds_of(cases[claim][RECIPES[SETTLED]])[1:4]
    assert verdict(claim, SETTLED, reading(seeds)) == verdict(claim, SETTLED, some_of(reading_records(), seeds))


def test_a_reader_leaves_out_seeds_and_takes_the_other_recipe(folder, cases):
    claim = "budget-b16-d16"
    body = f"<div class='holds' data-claim='{claim}'>{cases[claim][RECIPES[SETTLED]]['picture']}</div>"
    told = said_by(
        folder,
        f'{body}<script src="../_static/holds.js"></script>',
        """const box = document.querySelector(".holds"), status = () => box.querySelector("[role=status]").textContent;
        document.querySelector(".holds-start").click();
        while (!box.querySelector("select")) await new Promise((go) => setTimeout(go, 20));
        const end = (name) => Number(box.querySelector(".range").getAttribute(name).slice(0, -1));
        const bar = () => ["x1", "x2"].map(end);
        const told = { whole: status(), bars: [bar()], dots: box.querySelectorAll("circle").length };
        const seeds = [...box.querySelectorAll("input")];
        told.labels = seeds.map((one) => one.labels.length);
        seeds.slice(0, 18).forEach((one) => one.click());
        told.two = status();
        told.out = box.querySelectorAll(".left-out").length;
        told.bars.push(bar());
        told.said = box.querySelector("svg").getAttribute("aria-label");
        const recipe = box.querySelector("select");
        [recipe.value] = [recipe.options[1].value];
        recipe.dispatchEvent(new Event("input", { bubbles: true }));
        told.quick = status();
        return told;""",
    )
    settled, quick = (f"{verdict(claim, profile, reading_records())}." for profile in PROFILES)
    assert told["whole"] == f"20 of 20 seeds, authors' recipe: {settled}" and told["dots"] == 20
    assert told["two"] == f"2 of 20 seeds, authors' recipe: open: 2 of at least 3 seeds. With all: {settled}"
    assert told["out"] == 18 and told["bars"][0] != told["bars"][1] and set(told["labels"]) == {1}
    assert told["said"].startswith("ours: ") and told["said"].endswith("; 2 seeds")
    assert told["quick"].endswith(f"quick recipe: {quick}")


def test_the_page_writes_numbers_as_python_does(folder):
    values = [-0.04, -0.05, -0.06, 0.04, 0.25, 0.35, -0.25, -2.0, 0.0, 99.95]
    told = said_by(
        folder, LOADED, f"return {values}.map((value) => [0, 1, 3].map((d) => window.COT2.fixed(value, d)));"
    )
    assert told == [[report.cell(value, digits) for digits in (0, 1, 3)] for value in values]


def test_intervals_are_those_of_the_metrics(folder, cases):
    """Drawn again with all seeds, a bar stays where it was."""
    claims = ["main-mnns-discrete", "main-mnns-coconut", "convergence-2l2h", "entropy-uniform"]
    shown = "".join(
        f"<div class='holds' data-claim='{claim}'>{cases[claim][RECIPES[SETTLED]]['picture']}</div>"
        for claim in claims
    )
    told = said_by(
        folder,
        f'{shown}<script src="../_static/holds.js"></script>',
        """const ends = () => [...document.querySelectorAll(".range, .judged")].map((bar) =>
            ["x1", "x2"].map((end) => Number(bar.getAttribute(end).slice(0, -1))));
        const words = () => [...document.querySelectorAll(".claim-line span")].map((one) => one.textContent);
        const before = [ends(), words()];
        document.querySelectorAll(".holds-start").forEach((one) => one.click());
        while (document.querySelectorAll("select").length < 4) await new Promise((go) => setTimeout(go, 20));
        return [before, [ends(), words()]];""",
    )
    (bars, said), (again, told_again) = told
    assert len(bars) > 5 and np.allclose(bars, again, rtol=0, atol=0.006)
    assert [one.replace("\xa0", " ") for one in said] == told_again
