"""Every task under "Things to try" of the page `explorer`, done in a real browser: the page's answers hold."""

import re

import pytest
from chromium import BROWSER, MISSING, said_by
from component import BOOK, COMPONENT, HELPERS

PAGE = (BOOK / "explorer.md").read_text()
TASKS = ("mnns", "prosqa")

pytestmark = [pytest.mark.pages, pytest.mark.skipif(BROWSER is None, reason=MISSING)]
WALKS = {
    "Fill the tree": """
      const counts = () => mind("cot2").querySelector(".mind-told").textContent;
      const first = (set("question", "1114"), counts());
      return [first, (set("question", "1588"), counts())];""",
    "Remove a sum": """
      set("question", "1199");
      const sums = discs("cot2", 1).map((one) => one.getAttribute("aria-label").match(/: (\\S+),/)[1]);
      const answers = sums.map((sum) => {
        find("whole").click();
        click(disc("cot2", 1, sum));
        return [sum, status().match(/CoT2 answers (\\S+),/)[1]];
      });
      return Object.fromEntries(answers);""",
    "Take another way": """
      set("question", "1114");
      const before = status();
      click(disc("discrete", 0, "1"));
      const way = [0, 1, 2].map((step) =>
        discs("discrete", step).filter((one) => !one.classList.contains("gone")).map((one) => one.dataset.id));
      return [before, status(), way.map((ids) => ids.map((id) => Number(id) - window.COT2_DATA.mnns.zero))];""",
    "Force a choice": """
      set("question", "1199");
      set("rule", "sample");
      const path = [0, 1, 2].map((step) => discs("cot2", step).length);
      const answers = draws(10);
      return [path, answers.some((one) => one), answers.every((one) => one)];""",
    "Mix a few": """
      set("question", "1199");
      set("rule", "mts");
      return ["2", "16"].map((k) => (set("k", k), draws(10).every((one) => one)));""",
    "Exchange a thought": """
      set("question", "1114");
      return [set("other", "8392"), question()];""",
    "Follow the frontier": """
      set("question", 0);
      const names = [0, 1, 2, 3].map((step) => {
        const [one] = discs("discrete", step).map((part) => part.getAttribute("aria-label").match(/: (\\S+),/)[1]);
        find("next").click();
        return one;
      });
      const { nodes, edges, right } = window.COT2_DATA.prosqa.questions[0];
      const id = (letter) => nodes.find((node) => node[1] === letter)[0];
      const children = edges.filter(([from]) => from === id(names[2])).map((edge) => edge[1]);
      return [names.slice(2), children.includes(right), children.includes(id(names[3])), status()];""",
    "Put it right": """
      set("question", 0);
      for (let hop = 1; hop < 4; hop++) find("next").click();
      click(disc("discrete", 3, "Q"));
      return status();""",
    "Remove a node": """
      set("question", 3);
      for (let hop = 1; hop < 3; hop++) find("next").click();
      const nodes = discs("cot2", 2).map((one) => one.getAttribute("aria-label").match(/: (\\S+),/)[1]);
      const answers = nodes.map((node) => {
        find("whole").click();
        click(disc("cot2", 2, node));
        return [node, status().match(/CoT2 answers (\\S+),/)[1]];
      });
      const { nodes: all, options } = window.COT2_DATA.prosqa.questions[3];
      return [Object.fromEntries(answers), options.map((id) => all.find((node) => node[0] === id)[1])];""",
    "Find the exception": """
      const told = window.COT2_DATA.prosqa.questions.map((_, place) => set("question", place));
      return told.map((said) => /CoT2 answers \\S+, which is wrong.*which is right/.test(said));""",
}
DRAWS = """
  const draws = (count) => Array.from({ length: count }, (_, place) => {
    if (place) find("again").click();
    return /CoT2 answers \\S+, which is right/.test(status());
  });
"""


WRONG, RIGHT = (f"discrete chain of thought answers {{}}, which is {how}" for how in ("wrong", "right"))
SAID = {  # what a reader finds, by task
    "Fill the tree": lambda found: (
        found == ["Its thoughts lie on 2, 3 and 4 sums.", "Its thoughts lie on 2, 4 and 8 sums."]
    ),
    "Remove a sum": lambda found: found == {"−2": "0", "0": "2", "2": "0"},
    "Take another way": lambda found: (
        WRONG.format("−1") in found[0] and RIGHT.format("1") in found[1] and found[2] == [[-1], [-2], [-3]]
    ),
    "Force a choice": lambda found: found == [[1, 1, 1], True, False],
    "Mix a few": lambda found: found == [False, True],
    "Exchange a thought": lambda found: (
        "CoT2 answers 0, which" in found[0] and "discrete chain of thought answers −2, which" in found[0]
        and "fed their last thought about 8, 3, 9 and 2; with your 4 it leads to 0." in found[1]
    ),
    "Follow the frontier": lambda found: found[:3] == [["M", "Q"], True, True] and WRONG.format("R") in found[3],
    "Put it right": lambda found: RIGHT.format("P") in found,
    "Remove a node": lambda found: (
        len(found[0]) == 4 and found[0].pop("I") == "L" and {"L", *found[0].values()} == set(found[1])
    ),
    "Find the exception": lambda found: [place for place, only in enumerate(found, start=1) if only] == [11],
}  # fmt: skip


def answers_on_page():
    """The page's answers by title of the task."""
    titles = re.findall(r"^\d\. \*(.*?)\.\*", PAGE, re.MULTILINE)
    folds = "\n".join(re.findall(r":::\{dropdown\} Answers\n(.*?):::", PAGE, re.DOTALL))
    return dict(zip(titles, re.findall(r"^\d\. (.*)$", folds, re.MULTILINE), strict=True))


def task_of(title):
    """The component that a title is about."""
    return TASKS[PAGE.index(f"*{title}.*") > PAGE.index("## Ways through a graph")]


@pytest.mark.parametrize("name", TASKS)
def test_a_reader_finds_what_the_page_answers(site, name):
    assert list(answers_on_page()) == list(WALKS) == list(SAID)
    walks = {title: walk for title, walk in WALKS.items() if task_of(title) == name}
    script = "".join(f"""
      set("rule", "own");
      if (find("other")) set("other", "");
      found.push(await (async () => {{{walk}}})());""" for walk in walks.values())  # fmt: skip
    found = said_by(
        site, COMPONENT.format(name), f"{HELPERS}{DRAWS} await start(); const found = [];{script} return found;"
    )
    wrong = {title: one for title, one in zip(walks, found, strict=True) if not SAID[title](one)}
    assert not wrong


CIRCLE = """
  const field = (name) => document.querySelector(`#circle [name=${name}]`);
  const right = (read, sharpness) => {
    field("read").value = read;
    field("sharpness").value = sharpness;
    field("sharpness").dispatchEvent(new Event("input", { bubbles: true }));
    return document.querySelector("#circle [role=status]").textContent.endsWith("which is right.");
  };
  const { min, max, step } = field("sharpness");
  const all = Array.from({ length: 1 + Math.round((max - min) / step) }, (_, place) => Number(min) + place * step);
"""


def test_the_circle_shows_the_defect_and_the_limits(site):
    """As printed, no sharpness is right but a few steps from the lower end, where sums are told apart.

    On the way down each other read-off is right up to its limit, and then wrong for long.
    """
    [shown] = re.findall(r"```\{raw\} html\n(<div id=\"circle\".*?)```", PAGE, re.DOTALL)
    script = """
      const found = ["sigmoid", "biased", "repaired"].map((read) => all.map((c) => right(read, c)));
      return [all, right("biased", field("sharpness").defaultValue), ...found];"""
    sharpness, threshold, printed, *found = said_by(site, shown, CIRCLE + script)
    assert not any(printed[20:]) and threshold
    limits = [len(one) - one[::-1].index(False) for one in found]
    biased, repaired = (sharpness[limit] for limit in limits)
    assert all(one[-1] and not any(one[20:limit]) for one, limit in zip(found, limits))
    assert biased - repaired > 1, "a tenth of the sharpness or less"
