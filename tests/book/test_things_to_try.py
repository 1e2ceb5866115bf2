"""Every task under "Things to try" of the page `explorer`, done in a real browser: the page's answers hold."""

import re

import pytest
from chromium import BROWSER, MISSING, said_by
from component import BOOK, COMPONENT, HELPERS

pytestmark = [pytest.mark.pages, pytest.mark.skipif(BROWSER is None, reason=MISSING)]
WALKING = """
  const names = (which, step) => discs(which, step).map((one) => one.getAttribute("aria-label").match(/: (\\S+),/)[1]);
  const answers = () => status().match(/answers \\S+(?=,)/g).map((said) => said.slice("answers ".length));
  const right = () => status().match(/which is (right|wrong)/g).map((said) => said.endsWith("right"));
  const draws = (count) => Array.from({ length: count }, (_, place) => {
    if (place) find("again").click();
    return right()[0];
  });
  const steps = (count) => { for (let step = 0; step < count; step++) find("next").click(); };
  const without = (step) => Object.fromEntries(names("cot2", step).map((name) => {
    find("whole").click();
    click(disc("cot2", step, name));
    return [name, answers()[0]];
  }));
  const asked = () => window.COT2_DATA.prosqa.questions[+find("question").value];
  const letter = (id) => asked().nodes.find(([one]) => one === id)[1];
"""
WALKS = {  # by component and title of the task: what a reader does, and finds
    "mnns": {
        "Fill the tree": (
            """const told = () => mind("cot2").querySelector(".mind-told").textContent;
            return ["1114", "1588"].map((digits) => (set("question", digits), told()));""",
            ["Its thoughts lie on 2, 3 and 4 sums.", "Its thoughts lie on 2, 4 and 8 sums."],
        ),
        "Remove a sum": ("""set("question", "1199"); return without(1);""", {"−2": "0", "0": "2", "2": "0"}),
        "Force a choice": (
            """set("question", "1199");
            set("rule", "sample");
            const path = [0, 1, 2].map((step) => discs("cot2", step).length), found = draws(10);
            return [path, found.some((one) => one), found.every((one) => one)];""",
            [[1, 1, 1], True, False],
        ),
        "Mix a few": (
            """set("question", "1199");
            set("rule", "mts");
            return ["2", "16"].map((k) => (set("k", k), draws(10).every((one) => one)));""",
            [False, True],
        ),
        "Exchange a thought": (
            """set("question", "1114");
            set("other", "8392");
            return [answers(), question().match(/about 8, 3, 9 and 2; with your 4 it leads to (\\S+)\\./)[1]];""",
            [["0", "−2"], "0"],
        ),
    },
    "prosqa": {
        "Follow the frontier": (
            """set("question", 0);
            const way = [0, 1, 2, 3].map((step) => (steps(step > 0), names("discrete", step)[0]));
            const { edges, right: aim } = asked();
            const next = edges.filter(([from]) => letter(from) === way[2]).map((edge) => edge[1]);
            return [way.slice(2), next.includes(aim), next.map(letter).includes(way[3]), right()[1]];""",
            [["M", "Q"], True, True, False],
        ),
        "Correct it": (
            """set("question", 0);
            steps(3);
            click(disc("discrete", 3, "Q"));
            return [answers()[1], right()[1]];""",
            ["P", True],
        ),
        "Find the exception": (
            """const all = window.COT2_DATA.prosqa.questions.map((_, place) => (set("question", place), right()));
            return all.flatMap(([one, other], place) => (!one && other ? [place + 1] : []));""",
            [11],
        ),
    },
}


def test_every_task_of_the_page_has_an_answer_there_and_a_walk_here():
    page = (BOOK / "explorer.md").read_text()
    titles = re.findall(r"^\d\. \*(.*?)\.\*", page, re.MULTILINE)
    folds = "\n".join(re.findall(r":::\{dropdown\} Answers\n(.*?):::", page, re.DOTALL))
    assert titles == [title for walks in WALKS.values() for title in walks]
    assert len(re.findall(r"^\d\. ", folds, re.MULTILINE)) == len(titles)


@pytest.mark.parametrize("name", WALKS)
def test_a_reader_finds_what_the_page_answers(site, name):
    walk = "set('rule', 'own'); if (find('other')) set('other', ''); found.push((() => {{{}}})());"
    script = "".join(walk.format(does) for does, _ in WALKS[name].values())
    body = f"{HELPERS}{WALKING} await start(); const found = []; {script} return found;"
    found = said_by(site, COMPONENT.format(name), body)
    assert dict(zip(WALKS[name], found)) == {title: finds for title, (_, finds) in WALKS[name].items()}


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
    [shown] = re.findall(r"```\{raw\} html\n(<div id=\"circle\".*?)```", (BOOK / "explorer.md").read_text(), re.DOTALL)
    script = """
      const found = ["sigmoid", "biased", "repaired"].map((read) => all.map((c) => right(read, c)));
      return [all, right("biased", field("sharpness").defaultValue), ...found];"""
    sharpness, threshold, printed, *found = said_by(site, shown, CIRCLE + script)
    assert not any(printed[20:]) and threshold
    limits = [len(one) - one[::-1].index(False) for one in found]
    biased, repaired = (sharpness[limit] for limit in limits)
    assert all(one[-1] and not any(one[20:limit]) for one, limit in zip(found, limits))
    assert biased - repaired > 1, "a tenth of the sharpness or less"
