"""The book's scripts in a real browser: the circle of the construction, and filters of tables, cards and folds."""

import re
import shutil

import numpy as np
import pytest
from chromium import BROWSER, MISSING, said_by
from component import BOOK

pytestmark = [pytest.mark.pages, pytest.mark.skipif(BROWSER is None, reason=MISSING)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The scripts of the book."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(BOOK / "_static", folder / "_static")
    return folder


def test_the_circle_turns_answers_and_says_so(folder):
    shown = "".join(re.findall(r"```\{raw\} html\n(.*?)```", (BOOK / "explorer.md").read_text(), re.DOTALL))
    said = said_by(
        folder,
        shown,
        """
        const box = document.getElementById("circle"), status = () => box.querySelector("[role=status]").textContent;
        const set = (name, value) => {
          const field = box.querySelector(`[name=${name}]`);
          field.value = value;
          field.dispatchEvent(new Event("input", { bubbles: true }));
          return status();
        };
        const told = { all: box.querySelectorAll(".turning").length };
        told.none = set("step", 0);
        told.one = set("step", 1);
        told.two = set("step", 2);
        told.turned = box.querySelector(".turning").style.transform;
        told.without = [box.querySelector("[name=sharpness]").disabled, box.querySelectorAll(".goal").length];
        told.printed = set("step", 5);
        told.labels = [...box.querySelectorAll("input, select")].map((one) => one.labels.length);
        told.with = [box.querySelector("[name=sharpness]").disabled, box.querySelectorAll(".goal").length];
        told.threshold = set("read", "biased");
        told.blunt = set("sharpness", 0);
        told.label = box.querySelector("svg").getAttribute("aria-label");
        told.short = set("digits", "31");
        return told;""",
    )
    assert said["one"].startswith("After 1 digit the token holds") and set(said["labels"]) == {1}
    assert said["without"] == [True, 0] and said["with"] == [False, 1]
    assert said["all"] == 16 and said["none"] == "At first the token holds 0."
    assert said["two"] == "After 2 digits the token holds −4, −2, 2, 4."
    degrees = float(re.fullmatch(r"rotate\((.*)deg\)", said["turned"])[1])
    assert np.isclose(degrees, -4 * 0.99 * 90 / 36, atol=1e-4)
    assert said["printed"] == "The read-off answers 2, but the smallest sum that is not negative is 0."
    assert said["threshold"] == "The read-off answers 0, which is right." and said["blunt"] in said["label"]
    assert said["short"] == "Type four digits from 1 to 9."


ROWS = "".join(f"<tr><td>claim {n}</td><td>{'agrees' if n % 5 else 'differs'}</td></tr>" for n in range(25))
TABLE = '<article><div class="pst-scrollable-table-container"><table id="{}"><thead><tr><th>claim</th><th>{}</th></tr>'
TABLE += "</thead><tbody>{}</tbody></table></div></article>"
SCRIPT = '<script src="../_static/filter.js"></script>'
COUNT = "const rows = () => [...document.querySelectorAll('#tab-x tbody tr')].filter((row) => !row.hidden).length;"


def test_long_tables_keep_the_rows_that_are_asked_for(folder):
    """A short one has no field, and one without verdicts no list of them."""
    short = TABLE.format("tab-z", "verdict", "<tr><td>1</td><td>2</td></tr>")
    told = said_by(
        folder,
        SCRIPT + TABLE.format("tab-x", "verdict", ROWS) + TABLE.format("tab-y", "value", ROWS) + short,
        f"""{COUNT}
        const [field, list] = document.querySelector(".table-filter").children;
        const type = (box, value) => {{ box.value = value; box.dispatchEvent(new Event("input")); return rows(); }};
        const told = [rows(), type(field, "CLAIM 2"), type(field, ""), type(list, "differs"), type(field, "claim 1")];
        const boxes = [...document.querySelectorAll(".table-filter")];
        const lists = boxes.map((box) => box.querySelectorAll("select").length);
        const said = document.querySelector("[role=status]").textContent;
        return [...told, said, [...list].map((one) => one.value), lists];""",
    )
    assert told == [25, 7, 25, 5, 2, "2 of 25 rows", ["", "agrees", "differs"], [1, 0]]


def test_keys_reach_what_is_wide_and_names_are_what_is_seen(folder):
    """Formulas on a line of their own scroll; those in a sentence never do."""
    style = "<style>mjx-container { display: inline-block; width: 90px }</style>"
    drawn = '<mjx-container id="{}" {}><span style="display: inline-block; width: {}px">x</span></mjx-container>'
    made = [("wide", 'display="true"', 300), ("narrow", 'display="true"', 50), ("within", "", 300)]
    formulas = "".join(drawn.format(*one) for one in made)
    fold = '<details><summary aria-label="Toggle hidden content"><span>Show</span></summary>hidden</details>'
    script = '<script src="../_static/accessible.js"></script>'
    told = said_by(
        folder,
        f'{script}{style}<article>{formulas}{fold}<button aria-label="Copy"></button></article>',
        """const reached = [...document.querySelectorAll('[tabindex="0"]')].map((one) => one.id);
        return [reached, document.querySelector("summary").ariaLabel, document.querySelector("button").title];""",
    )
    assert told == [["wide"], None, "Copy"]


def test_marks_stay_beside_formulas_and_numbers_beside_their_signs(folder):
    """No line begins with the mark that follows a formula; what code shows stays as it is."""
    formula = '<span class="math" style="display: inline-block; width: 60px">x</span>'
    told = said_by(
        folder,
        '<script src="../_static/unbroken.js"></script>'
        f'<article style="width: 100px"><p id="p">word ({formula}). At d = 24, 95 % <code>d = 24</code></p></article>',
        """const box = document.querySelector(".math").parentElement;
        return [document.getElementById("p").textContent, box.textContent, box.getClientRects().length];""",
    )
    assert told == ["word (x). At d\xa0=\xa024, 95\xa0% d = 24", "(x).", 1]


CARD = '<details id="claim-{0}"><summary><span class="sd-badge">{1}</span> card {0}</summary>about {0}</details>'
CARDS = "<section>" + CARD.format("one", "agrees") + CARD.format("two", "differs") + "</section>"
CARDS += "<section>" + CARD.format("three", "not tested") + "</section>"


def test_cards_are_filtered_with_their_sections_and_a_link_opens_one(folder):
    told = said_by(
        folder,
        SCRIPT + f"<article>{CARDS}</article>",
        """const shown = () => [...document.querySelectorAll("details, section")].filter((one) => !one.hidden).length;
        const [field, list] = document.querySelector(".table-filter").children;
        const type = (box, value) => { box.value = value; box.dispatchEvent(new Event("input")); return shown(); };
        const told = [shown(), type(field, "card ONE"), type(field, ""), type(list, "agrees"), type(list, "differs")];
        window.location.hash = "#claim-three";
        window.dispatchEvent(new HashChangeEvent("hashchange"));
        return [...told, document.querySelector("[role=status]").textContent,
                [...document.querySelectorAll("details")].map((card) => card.open)];""",
    )
    assert told == [5, 2, 5, 2, 2, "3 of 3 cards", [False, False, True]], "a card that is linked to is never hidden"


FOLD = "<details><summary>{0}</summary><div>" + TABLE.format("tab-ledger-{0}", "verdict", "{1}") + "</div></details>"


def test_one_field_searches_all_tables_of_the_ledger_and_opens_what_it_finds(folder):
    rows = "<tr><td>claim {}</td><td>{}</td></tr>"
    folds = FOLD.format("a", rows.format("one", "open") + rows.format("two", "near")) + FOLD.format(
        "b", rows.format("three", "near")
    )
    told = said_by(
        folder,
        SCRIPT + f"<article>{folds}</article>",
        """const state = () => [...document.querySelectorAll("details")].map((fold) => [fold.hidden, fold.open]);
        const [field, list] = document.querySelector(".table-filter").children;
        const type = (box, value) => { box.value = value; box.dispatchEvent(new Event("input")); return state(); };
        const told = [state(), type(field, "TWO"), type(field, ""), type(list, "near"), type(list, "")];
        window.location.hash = "#tab-ledger-b";
        window.dispatchEvent(new HashChangeEvent("hashchange"));
        return [...told, state(), document.querySelectorAll(".table-filter").length];""",
    )
    closed, shut = [False, False], [True, True]
    assert told[0] == [closed, closed] and told[1] == [[False, True], shut] and told[2] == [closed, closed]
    assert told[3] == [[False, True], [False, True]] and told[4] == [closed, closed]
    assert told[5] == [closed, [False, True]] and told[6] == 1, "a link opens the fold that it leads into"


def test_a_table_is_saved_as_it_stands(folder):
    table = (
        '<article><table id="tab-z"><caption><span class="caption-number">Table 2.1 </span>Told.</caption>'
        "<thead><tr><th>who</th><th>said</th></tr></thead>"
        '<tbody><tr><td>a, b</td><td>"x"</td></tr><tr><td> c </td><td>&gt; 1</td></tr></tbody></table>'
        '<table id="tab-bare"><tr><td>1</td></tr></table></article>'
    )
    told = said_by(
        folder,
        '<script src="../_static/csv.js"></script>' + table,
        """const links = [...document.querySelectorAll("a.table-csv")];
        return links.map((a) => [a.download, decodeURIComponent(a.href)]);""",
    )
    [[name, link]] = told
    assert name == "tab-z.csv"
    assert link == 'data:text/csv;charset=utf-8,who,said\n"a, b","""x"""\nc,> 1\n'
