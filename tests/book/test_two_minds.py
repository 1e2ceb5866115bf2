"""The component `two-minds` in a real browser: it does what its readers do. `test_explorer` has its models."""

import json
import re

import pytest
from chromium import BROWSER, MISSING, said_by
from component import COMPONENT, ERRORS, HELPERS, STYLED

TASKS = ("mnns", "prosqa")
PHONE, SCREEN = 328, 720  # pixels that the component has on a phone's page and on a screen
pytestmark = [pytest.mark.pages, pytest.mark.skipif(BROWSER is None, reason=MISSING)]


def narrow(name, width):
    """The component in a box so many pixels wide."""
    return f'<div style="width: {width}px">{STYLED.format(name)}</div>'


def test_components_share_scripts_come_when_they_are_near_and_take_no_focus(site):
    scripts = "[...document.scripts].map((one) => one.src.split('/').pop()).filter((name) => name !== 'two-minds.js')"
    before, after, drawn, said, left, errors = said_by(
        site,
        ERRORS + '<div style="height: 9000px"></div>' + "".join(map(COMPONENT.format, ("mnns", "prosqa", "mnns"))),
        f"""{HELPERS}
        const loaded = () => {scripts}.filter(Boolean);
        const all = () => [...document.querySelectorAll(".two-minds")];
        await new Promise((go) => setTimeout(go, 200));
        const before = [loaded(), "COT2" in window];
        for (const one of all()) one.scrollIntoView();
        await until(() => all().every((one) => one.querySelector("form")));
        const told = all().map((one) => one.querySelector("[role=status]").textContent);
        const drawn = all().map((one) => one.querySelectorAll("svg").length);
        return [before, loaded(), drawn, told, document.activeElement === document.body, errors];""",
    )
    assert before == [[], False]
    assert {f"two-minds-data-{name}.js" for name in TASKS} < set(after) and len(after) == len(set(after))
    assert (drawn, left, errors) == ([2, 2, 2], True, [])
    pattern = r"CoT2 answers \S+, which is right; discrete chain of thought answers \S+, which is wrong\."
    assert [one for one in said if not re.fullmatch(pattern, one)] == [], "it starts on what tells them apart"


def test_a_failure_to_load_is_said(site):
    missing, away = (site / "_static" / name for name in ("two-minds-data-mnns.js", "away.js"))
    missing.rename(away)
    try:
        script = f"{HELPERS} await until(() => root.textContent); return root.textContent;"
        told = said_by(site, COMPONENT.format("mnns"), script)
    finally:
        away.rename(missing)
    assert told == "The models could not be loaded (two-minds-data-mnns)."


def test_controls_of_sums(site):
    said = said_by(
        site,
        ERRORS + COMPONENT.format("mnns"),
        HELPERS
        + """
        await start();
        const told = {};
        told.counts = [0, 1, 2].map((step) => [discs("cot2", step).length, discs("discrete", step).length]);
        told.labels = [...root.querySelectorAll("form input, form select")].map((one) => one.labels.length);
        const one = disc("cot2", 1, "0");
        told.label = one.getAttribute("aria-label");
        one.focus();
        told.stopped = !press(one, " ");
        told.gone = [disc("cot2", 1, "0").classList.contains("gone"), find("whole").disabled];
        told.kept = document.activeElement === disc("cot2", 1, "0");
        press(disc("cot2", 1, "0"), "Enter");
        told.back = [disc("cot2", 1, "0").classList.contains("held"), find("whole").disabled];
        click(disc("discrete", 0, "1"));
        told.other = [discs("discrete", 0).length, mind("discrete").querySelectorAll(".gone").length];
        find("whole").click();
        told.whole = mind("discrete").querySelectorAll(".gone").length;
        set("other", "8392");
        click(discs("discrete", 2)[0]);
        told.exchanged = [discs("discrete", 2).length, status()];
        set("other", "");
        told.short = [set("question", "12"), root.querySelectorAll("svg").length, question()];
        set("question", "9999");
        set("rule", "dirichlet");
        told.empty = set("gamma", "");
        set("rule", "mts");
        told.k = [find("k").parentElement.hidden, find("gamma").parentElement.hidden, find("again").disabled];
        told.errors = errors;
        return told;""",
    )
    assert said["counts"] == [[2, 1], [3, 1], [4, 1]] and set(said["labels"]) == {1} and said["errors"] == []
    assert re.fullmatch(r"thought 2: 0, \d\d\.\d percent; take out", said["label"])
    assert said["stopped"] and said["kept"] and said["gone"] == [True, False] and said["back"] == [True, True]
    assert said["other"][1] == 1 and said["other"][0] >= 2 and said["whole"] == 0
    assert said["exchanged"][0] >= 2 and "no sum" not in said["exchanged"][1], "another token takes the place"
    assert said["short"] == ["Type four digits from 1 to 9.", 0, ""] and said["k"] == [False, True, False]
    assert said["empty"].startswith("CoT2 answers")  # an empty field counts as its least value


def test_controls_of_graphs(site):
    said = said_by(
        site,
        ERRORS + COMPONENT.format("prosqa"),
        HELPERS
        + """
        await start();
        const told = {}, place = () => root.querySelector(".mind-step").textContent;
        const lit = () => mind("discrete").querySelectorAll("line.lit, line.passed").length;
        told.first = [place(), find("back").disabled, lit()];
        find("next").click();
        told.second = [place(), find("back").disabled, lit()];
        press(root.querySelector("[role=status]"), "ArrowRight");
        press(root.querySelector("[role=status]"), "ArrowRight");
        told.fourth = [place(), lit()];
        press(find("rule"), "ArrowRight");
        told.select = place();
        press(root, "ArrowRight");
        told.answer = [place(), find("next").disabled, root.querySelectorAll("[role=button]").length];
        press(root, "ArrowRight");
        told.end = place();
        press(root, "ArrowLeft");
        told.back = place();
        while (!find("back").disabled) find("back").click();
        const [one] = discs("cot2", 0);
        one.focus();
        press(one, "Enter");
        told.gone = document.activeElement.classList.contains("gone");
        told.told = mind("cot2").querySelector(".mind-told").textContent;
        find("next").click();
        press(discs("cot2", 1)[0], "ArrowRight");
        told.inside = root.contains(document.activeElement);
        told.again = [set("question", 3), place()];
        told.errors = errors;
        return told;""",
    )
    assert said["first"] == ["After thought 1 of 4", True, 1] and said["second"] == ["After thought 2 of 4", False, 2]
    assert said["fourth"] == ["After thought 4 of 4", 4] == [said["select"], 4] and said["errors"] == []
    assert said["answer"] == ["Answer", True, 0] and said["end"] == "Answer" and said["back"] == "After thought 4 of 4"
    assert said["gone"] and said["told"].endswith("1 taken out.") and said["inside"]
    assert said["again"][1] == "After thought 1 of 4" and said["again"][0].startswith("CoT2 answers")


@pytest.mark.parametrize("name, questions", [("mnns", ["1588", "1999", "1114"]), ("prosqa", [0, 6, 11])])
def test_it_fits_its_page_and_a_click_on_a_disc_hits_it(site, name, questions):
    """On a phone one model stands below the other, on a screen beside it."""
    script = f"""{HELPERS}
      await start();
      const middle = (one) => {{
        const {{ left, top, width, height }} = one.querySelector(".disc").getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2);
      }};
      const hits = {json.dumps(questions)}.flatMap((question) => {{
        set("question", question);
        root.scrollIntoView();
        return [...root.querySelectorAll("[role=button]")].map((one) => middle(one)?.closest("[role=button]") === one);
      }});
      set("rule", "dirichlet");
      const room = root.getBoundingClientRect().right;
      const wide = [...root.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > room + 0.5);
      const [one, other] = [...root.querySelectorAll(".mind")].map((part) => part.getBoundingClientRect().top);
      return [hits, wide.map((part) => part.outerHTML), one === other];"""
    for width in (PHONE, SCREEN):
        hits, wide, beside = said_by(site, narrow(name, width), script)
        assert len(hits) >= 10 and all(hits)
        assert (wide, beside) == ([], width == SCREEN)


LOOK = """
await start();
const middle = (one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
};
const between = (one, other) => Math.hypot(...[0, 1].map((axis) => middle(one)[axis] - middle(other)[axis]));
const least = (all, far) => all.reduce((best, one) => (far(one) < far(best) ? one : best));
const named = (svg, circle) =>
  least([...svg.querySelectorAll(".letter")], (letter) => between(letter, circle)).textContent;
const nearest = (svg, note) => {
  const gap = (circle) => Math.abs(between(circle, note) - circle.getAttribute("r"));
  return named(svg, least([...svg.querySelectorAll("circle.sum")], gap));
};
const apart = (one, other) => {
  const [a, b] = [one, other].map((text) => text.getBoundingClientRect());
  return a.right < b.left || b.right < a.left || a.bottom - 3 < b.top || b.bottom - 3 < a.top;
};
const look = (name) => {
  const svg = mind(name).querySelector("svg"), notes = [...svg.querySelectorAll(".note")];
  const rings = [...svg.querySelectorAll(".answered")];
  return {
    notes: notes.map((one) => [one.textContent, nearest(svg, one)]),
    apart: notes.every((one, at) => notes.slice(0, at).every((other) => apart(one, other))),
    rings: rings.map((one) => named(svg, one)),
    label: svg.getAttribute("aria-label"),
    answer: mind(name).querySelector(".mind-name").textContent.match(/Answer (\\S+)/)[1],
    stroke: rings.map((one) => getComputedStyle(one).stroke !== "none"),
  };
};
return [...find("question").options].map(({ value }) => {
  set("question", value);
  const before = ["cot2", "discrete"].map(look);
  while (!find("next").disabled) find("next").click();
  return { asked: question(), before, after: ["cot2", "discrete"].map(look) };
});
"""  # for each question both minds' words and rings, after the first thought and with the answer


def test_words_stand_at_their_nodes_and_the_answer_is_marked_when_it_is_shown(site):
    told = said_by(site, narrow("prosqa", PHONE), HELPERS + LOOK)
    kinds = set()
    for one in told:
        root, *options = re.match(r"Start at (\S+) .* reach (\S+) or (\S+)\?", one["asked"]).groups()
        for seen in one["before"]:
            notes = dict(seen["notes"])
            assert notes["start"] == root and {notes["right answer"], notes["wrong answer"]} == set(options)
            assert seen["rings"] == [] and "answer" not in seen["label"] and seen["apart"]
        for seen in one["after"]:
            [(text, at)] = [note for note in seen["notes"] if "answered" in note[0]]
            assert at == seen["answer"] and seen["rings"] == [at] and seen["stroke"] == [True] and seen["apart"]
            assert seen["label"].endswith(f"a ring in its colour is around its answer, {at}")
            kinds.add(text)
    assert kinds == {"answered right", "answered wrong", "answered"}, "some answers are no option"
