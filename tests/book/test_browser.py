"""The book's scripts in a real browser: the page that runs models, whose logits are ours, and filters of tables."""

import html
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from chromium import BROWSER, MISSING, SAID, said_in

import cot2lib
from cot2lib.decode import decode, rules
from cot2lib.study.book.ledger import of_records, short
from cot2lib.theory.construction import Design, Sharpness, TrigMNNS
from cot2lib.thoughts import Base, Discrete

BOOK = Path(__file__).parents[2] / "book"
INPUTS = [(3, 1, 8, 4), (9, 9, 9, 9), (1, 1, 1, 2), (2, 5, 7, 1)]

pytestmark = pytest.mark.skipif(BROWSER is None, reason=MISSING)


@pytest.fixture(scope="module")
def explorer():
    sys.path.insert(0, str(BOOK / "_ext"))
    try:
        import explorer
    finally:
        sys.path.pop(0)
    return explorer


@pytest.fixture(scope="module")
def folder(explorer, tmp_path_factory):
    """The scripts of the book, with the data of the explorer."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(BOOK / "_static", folder / "_static")
    models = json.dumps([explorer.packed(name) for name in explorer.SHOWN])
    (folder / "_static" / "explorer-data.js").write_text(f"window.COT2_MODELS = {models};\n")
    (folder / "book").mkdir()
    return folder


def said_by(folder, body, script):
    """What a script returns after a page's own scripts have run."""
    said = f"document.getElementById('said').textContent = JSON.stringify((() => {{{script}}})())"
    late = f"window.addEventListener('load', () => {{{said}}})"
    page = folder / "book" / "page.html"
    page.write_text(f'<!doctype html><meta charset="utf-8">{body}{SAID}<script>{late}</script>')
    return said_in(page)[0]


@pytest.fixture(scope="module")
def ask(folder):
    """What a script returns in the page that runs models."""
    shown = "".join(re.findall(r"```\{raw\} html\n(.*?)```", (BOOK / "explorer.md").read_text(), re.DOTALL))
    return lambda script: said_by(folder, shown, script)


def responses(rule, what, options="{}", inputs=INPUTS):
    """A script that responds to inputs by every model."""
    return f"""
        const readers = window.COT2_MODELS.map((model) => new window.COT2.Reader(model));
        return readers.map((reader) => {json.dumps(inputs)}.map((digits) =>
            window.COT2.respond(reader, digits, "{rule}", {options}).map((step) => step.{what})));"""


def ours(explorer, rule):
    """The same by cot2lib: logits, (model, input, step, vocab)."""
    found = []
    for run in explorer.SHOWN.values():
        rows = [int((run.task.digits == torch.tensor(digits)).all(1).nonzero()) for digits in INPUTS]
        prompts = run.task.prompt(run.supervision.arrow)[rows][None]
        with torch.no_grad():
            found.append(decode(cot2lib.load(run, missing="error"), prompts, rules(rule, run.task.steps)).logits[0])
    return torch.stack(found).numpy()


@pytest.mark.parametrize("name, rule", [("base", Base()), ("greedy", Discrete())])
def test_logits_are_those_of_the_library(ask, explorer, name, rule):
    found = np.array(ask(responses(name, "logits")))
    expected = ours(explorer, rule)
    assert found.shape == expected.shape == (2, 4, 4, 89) and np.abs(found - expected).max() < 1e-4


def test_mixtures_of_samples(ask):
    one, three = (np.array(ask(responses("mts", "weights", f"{{k: {k}, seed: 5}}"))) for k in (1, 3))
    assert (one.max(-1) == 1).all() and np.allclose(one.sum(-1), 1)
    thoughts = 3 * three[:, :, :-1]
    assert np.allclose(thoughts, thoughts.round()) and np.allclose(three.sum(-1), 1) and (thoughts == 1).any()
    again = np.array(ask(responses("mts", "weights", "{k: 3, seed: 6}")))
    assert not np.array_equal(again, three)


@pytest.mark.parametrize("rule, spread", [("mts", 1 / 20), ("dirichlet", 1 / 20)])
def test_sampled_thoughts_have_the_mean_and_spread_of_the_paper(ask, rule, spread):
    """Mean alpha, and variance alpha (1 - alpha) over K, or over gamma + 1."""
    draws = ask(f"""
        const reader = new window.COT2.Reader(window.COT2_MODELS[0]), seen = [];
        for (let seed = 0; seed < 1500; seed++) {{
          const [first] = window.COT2.respond(reader, [2, 5, 7, 1], "{rule}", {{k: 20, gamma: 19, seed: seed * 7919}});
          const top = first.alpha.indexOf(Math.max(...first.alpha));
          seen.push([first.alpha[top], first.weights[top]]);
        }}
        return seen;""")
    alpha, weights = np.array(draws).T
    assert abs(weights.mean() - alpha[0]) < 0.02
    assert abs(weights.var() / (spread * alpha[0] * (1 - alpha[0])) - 1) < 0.15


def test_a_sum_that_is_taken_out_is_gone_and_the_rest_is_whole(ask):
    weights = np.array(ask(responses("base", "weights", "{removed: [[window.COT2_MODELS[0].zero + 3], [], []]}")))
    kept = np.array(ask(responses("base", "weights")))
    first = weights[0, 0, 0]
    assert first[52 + 3] == 0 and kept[0, 0, 0, 52 + 3] > 0.4 and np.isclose(first.sum(), 1)
    assert not np.allclose(weights[0, 0, 1], kept[0, 0, 1])


def test_the_page_answers_explains_and_lets_sums_be_taken_out(ask):
    said = ask("""
        const box = document.getElementById("explorer"), status = () => box.querySelector("[role=status]").textContent;
        const set = (name, value) => {
          const field = box.querySelector(`[name=${name}]`);
          field.value = value;
          field.dispatchEvent(new Event("input"));
        };
        const told = {first: status(), discs: box.querySelectorAll("[role=button]").length};
        told.label = box.querySelector("[role=button]").getAttribute("aria-label");
        box.querySelector("[role=button]").dispatchEvent(new Event("click"));
        told.gone = box.querySelectorAll(".gone").length;
        box.querySelector(".gone").dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
        told.back = box.querySelectorAll(".gone").length;
        set("digits", "12");
        told.short = status();
        told.tree = box.querySelectorAll("svg").length;
        set("digits", "9999");
        set("rule", "dirichlet");
        set("gamma", "");
        told.empty = status();
        set("rule", "greedy");
        box.querySelector("[role=button]").dispatchEvent(new Event("click"));
        told.single = [status(), box.querySelectorAll(".gone").length];
        set("rule", "mts");
        told.k = !box.querySelector("[data-for=k]").hidden && box.querySelector("[data-for=gamma]").hidden;
        return told;""")
    assert said["first"] == "The model answers 0 with 100.0 percent, which is right."
    assert said["discs"] >= 2 + 4 + 8 and re.fullmatch(r"thought 1: −3, \d\d\.\d percent; take out", said["label"])
    assert said["gone"] == 1 and said["back"] == 0 and said["k"]
    assert said["short"] == "Type four digits from 1 to 9." and said["tree"] == 0
    assert said["empty"].startswith("The model answers")  # an empty field counts as its least value
    assert said["single"][0].endswith("keeps it.") and said["single"][1] == 0


DESIGNS = {
    "sigmoid": Design("sigmoid", masked=True),
    "biased": Design("biased", masked=True),
    "repaired": Design("biased", rescaled=True, masked=True),
}


@pytest.mark.parametrize("c", [3.0, 300.0, 30_000.0])
@pytest.mark.parametrize("read", DESIGNS)
def test_the_circle_is_the_construction(ask, read, c):
    sharp = Sharpness(attention=1e6, router=1e6, sigmoid=c, softmax=c)
    model = TrigMNNS(4, 36, DESIGNS[read], sharp)
    pairs, answers = model.states(INPUTS)[:, -1, :2].numpy(), model.solve(INPUTS).tolist()
    told = ask(f"""return {json.dumps(INPUTS)}.map((digits) => {{
        const made = window.COT2.readOff(window.COT2.states(digits)[4], {c}, "{read}");
        return [made.pair, made.answer];
    }});""")
    assert np.allclose([pair for pair, _ in told], pairs, rtol=0, atol=1e-9)
    assert [answer for _, answer in told] == answers


def test_the_circle_turns_answers_and_says_so(ask):
    said = ask("""
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
        return told;""")
    assert said["one"].startswith("After 1 digit the token holds") and set(said["labels"]) == {1}
    assert said["without"] == [True, 0] and said["with"] == [False, 1]
    assert said["all"] == 16 and said["none"] == "At first the token holds 0."
    assert said["two"] == "After 2 digits the token holds −4, −2, 2, 4."
    degrees = float(re.fullmatch(r"rotate\((.*)deg\)", said["turned"])[1])
    assert np.isclose(degrees, -4 * 0.99 * 90 / 36, atol=1e-4)
    assert said["printed"] == "The read-off answers 2, but the smallest sum that is not negative is 0."
    assert said["threshold"] == "The read-off answers 0, which is right." and said["blunt"] in said["label"]
    assert said["short"] == "Type four digits from 1 to 9."


ROWS = "".join(
    f"<tr><td>claim {n}</td><td>{'reproduced: but low' if n % 5 else 'refuted'}</td></tr>" for n in range(25)
)
TABLE = '<article><div class="pst-scrollable-table-container"><table id="{}"><thead><tr><th>claim</th><th>{}</th></tr>'
TABLE += "</thead><tbody>{}</tbody></table></div></article>"
SCRIPT = '<script src="../_static/filter.js"></script>'
COUNT = "const rows = () => [...document.querySelectorAll('tbody tr')].filter((row) => !row.hidden).length;"


def test_long_tables_keep_the_rows_that_are_asked_for(folder):
    told = said_by(
        folder,
        SCRIPT + TABLE.format("tab-x", "verdict", ROWS),
        f"""{COUNT}
        const [field, list] = document.querySelector(".table-filter").children;
        const type = (box, value) => {{ box.value = value; box.dispatchEvent(new Event("input")); return rows(); }};
        const told = [rows(), type(field, "CLAIM 2"), type(field, ""), type(list, "refuted"), type(field, "claim 1")];
        return [...told, document.querySelector("[role=status]").textContent, [...list].map((one) => one.value)];""",
    )
    assert told == [25, 7, 25, 5, 2, "2 of 25 rows", ["", "refuted", "reproduced but ..."]]


def test_a_page_shortens_verdicts_as_the_ledger_does(folder):
    verdicts = [*of_records()["verdict"].unique(), "partly: of a: but of b", "holds if: x", "reproduced: more: if so"]
    rows = "".join(f"<tr><td>1</td><td>{html.escape(verdict)}</td></tr>" for verdict in verdicts)
    script = "return [...document.querySelector('.table-filter select')].slice(1).map((one) => one.value)"
    told = said_by(folder, SCRIPT + TABLE.format("tab-x", "verdict", rows), script)
    assert set(told) == {short(verdict) for verdict in verdicts} and len(told) > 10


def test_short_tables_and_those_without_verdicts(folder):
    script = (
        "return [...document.querySelectorAll('.table-filter')].map((box) => box.querySelectorAll('select').length)"
    )
    few = TABLE.format("tab-x", "verdict", "<tr><td>1</td><td>2</td></tr>")
    assert said_by(folder, SCRIPT + few, script) == []
    assert said_by(folder, SCRIPT + TABLE.format("tab-y", "value", ROWS), script) == [0]


CARD = '<details id="claim-{0}"><summary><span class="sd-badge">{1}</span> card {0}</summary>about {0}</details>'
CARDS = "<section>" + CARD.format("one", "partly") + CARD.format("two", "refuted: by") + "</section>"
CARDS += "<section>" + CARD.format("three", "partly but ...") + "</section>"


def test_cards_are_filtered_with_their_sections_and_a_link_opens_one(folder):
    told = said_by(
        folder,
        SCRIPT + f"<article>{CARDS}</article>",
        """const shown = () => [...document.querySelectorAll("details, section")].filter((one) => !one.hidden).length;
        const [field, list] = document.querySelector(".table-filter").children;
        const type = (box, value) => { box.value = value; box.dispatchEvent(new Event("input")); return shown(); };
        const told = [shown(), type(field, "card ONE"), type(field, ""), type(list, "partly"), type(list, "refuted")];
        window.location.hash = "#claim-three";
        window.dispatchEvent(new HashChangeEvent("hashchange"));
        return [...told, document.querySelector("[role=status]").textContent,
                [...document.querySelectorAll("details")].map((card) => card.open)];""",
    )
    assert told == [5, 2, 5, 2, 2, "3 of 3 cards", [False, False, True]], "a card that is linked to is never hidden"


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
        return links.map((a) => [a.download, a.getAttribute("aria-label"), decodeURIComponent(a.href)]);""",
    )
    [[name, label, link]] = told
    assert name == "tab-z.csv" and label == "Table 2.1 as CSV"
    assert link == 'data:text/csv;charset=utf-8,who,said\n"a, b","""x"""\nc,> 1\n'


def test_the_caption_of_a_wide_table_is_read_without_scrolling(folder):
    cells = "".join(f"<td>a_cell_that_does_not_break_{i}</td>" for i in range(30))
    caption = f"<caption>{'Words of a long caption. ' * 40}</caption>"
    wide = f'<div class="pst-scrollable-table-container"><table>{caption}<tr>{cells}</tr></table></div>'
    body = (
        f'<link rel="stylesheet" href="../_static/book.css"><div class="bd-content" style="width: 500px">{wide}</div>'
    )
    width = lambda name: f"document.querySelector('{name}').getBoundingClientRect().width"
    found = said_by(folder, body, f"return [{', '.join(map(width, ('table', 'caption', 'div.bd-content')))}]")
    table, said, room = found
    assert said <= room < table
