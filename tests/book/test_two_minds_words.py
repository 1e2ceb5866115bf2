"""Words and rings in the graphs of the component `two-minds`: each stands at the node that it speaks of."""

import re

import pytest
from chromium import BROWSER, MISSING, said_by
from component import HELPERS, STYLED

pytestmark = pytest.mark.skipif(BROWSER is None, reason=MISSING)
PHONE = 328  # pixels that a phone's page has
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
    told = said_by(site, f'<div style="width: {PHONE}px">{STYLED.format("prosqa")}</div>', HELPERS + LOOK)
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
