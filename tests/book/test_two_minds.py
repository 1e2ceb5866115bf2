"""The component `two-minds` in a real browser: its models are ours, and it does what its readers do."""

import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from chromium import BROWSER, MISSING, said_by
from component import COMPONENT, ERRORS, HELPERS, STYLED

from cot2lib.decode import decode, replay
from cot2lib.thoughts import Base, Discrete, Rule, State, Thought

INPUTS = [(3, 1, 8, 4), (9, 9, 9, 9), (1, 1, 1, 4), (2, 5, 7, 1)]
TASKS = ("mnns", "prosqa")
THINKS = {"base": Base(), "greedy": Discrete()}
pytestmark = pytest.mark.skipif(BROWSER is None, reason=MISSING)


@pytest.fixture(scope="module")
def asked(shown):
    """By task: questions as the page has them, and the library's task and rows."""
    found = {}
    for name in TASKS:
        found[name] = shown[name].get("questions") or [
            {"tokens": [shown[name]["bos"], *(shown[name]["digit0"] + digit for digit in digits)], "thoughts": 3}
            for digits in INPUTS
        ]
    return found


def rows_of(explorer, name, shown):
    """The library's task of a component, and the rows of the questions."""
    task = next(iter(explorer.SHOWN[name].values())).task
    if name == "mnns":
        return task, [int((task.digits == torch.tensor(digits)).all(1).nonzero()) for digits in INPUTS]
    return explorer.unseen(task), [question["row"] for question in shown[name]["questions"]]


@dataclass(frozen=True)
class WithoutBest(Rule):
    """A thought that must do without its likeliest token."""

    single: bool

    def __call__(self, state: State) -> Thought:
        best = state.logits.argmax(-1, keepdim=True)
        left = state.logits.scatter(-1, best, -torch.inf)
        weights = torch.nn.functional.one_hot(left.argmax(-1), left.shape[-1]).to(left) if self.single else None
        return Thought(left.softmax(-1) if weights is None else weights)


@torch.no_grad()
def logits_of(mind, task, rows, steps):
    """Logits of the library, (question, step, vocab)."""
    padding = None if task.padding is None else task.padding[None, rows]
    prompts = task.prompt(mind.run.supervision.arrow)[None, rows]
    return decode(mind.stack, prompts, steps, padding=padding).logits[0].numpy()


def scripted(name, questions, rule, removed):
    """A script that answers questions by every model; `removed` may speak of `first`, the likeliest first token."""
    return f"""{HELPERS}
      await start();
      const {{ Reader, respond }} = window.COT2;
      return window.COT2_DATA["{name}"].models.map((model) => {{
        const reader = new Reader(model);
        return {json.dumps(questions)}.map((question) => {{
          const asked = reader.asked(question);
          const first = asked.logits.indexOf(Math.max(...asked.logits));
          const made = respond(asked, question.thoughts, "{rule}", {{ removed: {removed} }});
          return made.map((step) => step.logits);
        }});
      }});"""


@pytest.mark.parametrize("removed", ["[]", "[[first]]"], ids=["whole", "without its likeliest token"])
@pytest.mark.parametrize("rule", THINKS)
@pytest.mark.parametrize("name", TASKS)
def test_every_thought_is_that_of_the_library(site, explorer, shown, asked, name, rule, removed):
    found = np.array(said_by(site, COMPONENT.format(name), scripted(name, asked[name], rule, removed)))
    task, rows = rows_of(explorer, name, shown)
    steps = [*[THINKS[rule]] * (task.steps - 1), Discrete()]
    if removed != "[]":
        steps[0] = WithoutBest(rule == "greedy")
    expected = np.stack([logits_of(mind, task, rows, steps) for mind in explorer.minds(name)])
    assert found.shape == expected.shape and np.abs(found - expected).max() < 1e-3


def test_another_inputs_last_thought_is_fed_as_in_the_library(site, explorer, shown, asked):
    """Every question is fed the last thought of the question after it."""
    script = f"""{HELPERS}
      await start();
      const {{ Reader, respond }} = window.COT2;
      const questions = {json.dumps(asked["mnns"])};
      return window.COT2_DATA.mnns.models.map((model) => {{
        const reader = new Reader(model);
        const lasts = questions.map((one) => respond(reader.asked(one), 3, "base")[2].weights);
        return questions.map((one, place) => {{
          const given = [null, null, lasts[(place + 1) % lasts.length]];
          return respond(reader.asked(one), 3, "base", {{ given }})[3].logits;
        }});
      }});"""
    found = np.array(said_by(site, COMPONENT.format("mnns"), script))
    task, rows = rows_of(explorer, "mnns", shown)
    for mind, logits in zip(explorer.minds("mnns"), found):
        prompts = task.prompt(mind.run.supervision.arrow)[None, rows]
        fed = decode(mind.stack, prompts, [*[Base()] * 3, Discrete()]).weights[:, :, :-1].clone()
        fed[:, :, -1] = fed[:, :, -1].roll(-1, 1)
        expected = replay(mind.stack, prompts, mind.stack.mix(fed))[0, :, -1].detach().numpy()
        assert np.abs(logits - expected).max() < 1e-3


@pytest.mark.parametrize("rule", ["mts", "dirichlet"])
def test_sampled_thoughts_have_the_mean_and_spread_of_the_paper(site, asked, rule):
    """Mean alpha, and variance alpha (1 - alpha) over K, or over gamma + 1."""
    script = f"""{HELPERS}
      await start();
      const asked = new window.COT2.Reader(window.COT2_DATA.mnns.models[0]).asked({json.dumps(asked["mnns"][3])});
      return Array.from({{ length: 1500 }}, (_, seed) => {{
        const [first] = window.COT2.respond(asked, 1, "{rule}", {{ k: 20, gamma: 19, seed: seed * 7919 }});
        const top = first.alpha.indexOf(Math.max(...first.alpha));
        return [first.alpha[top], first.weights[top]];
      }});"""
    alpha, weights = np.array(said_by(site, COMPONENT.format("mnns"), script)).T
    assert abs(weights.mean() - alpha[0]) < 0.02
    assert abs(weights.var() / (alpha[0] * (1 - alpha[0]) / 20) - 1) < 0.15


def test_the_mark_of_held_out_inputs_is_the_split(site, explorer):
    run = explorer.SHOWN["mnns"]["cot2"]
    script = f"""{HELPERS}
      await start();
      const task = window.COT2.tasks.mnns(window.COT2_DATA.mnns);
      return {json.dumps(["".join(map(str, digits)) for digits in run.task.digits.tolist()])}.map((digits) => {{
        task.field.value = digits;
        return task.question().text.includes("Neither model was trained on these digits");
      }});"""
    told = said_by(site, COMPONENT.format("mnns"), script)
    assert told == (~run.task.split(run.seed)).tolist() and 0 < sum(told) < len(told) / 4


# The component on a page

SRC = "[...document.scripts].map((one) => one.src.split('/').pop()).filter(Boolean)"


@pytest.mark.parametrize("name", TASKS)
def test_it_is_drawn_when_it_is_near_and_takes_no_focus(site, name):
    told = said_by(
        site,
        ERRORS + '<div style="height: 9000px"></div>' + COMPONENT.format(name),
        f"""{HELPERS}
        await new Promise((go) => setTimeout(go, 200));
        const before = [{SRC}, "COT2" in window];
        root.scrollIntoView();
        await start();
        return [before, {SRC}, status(), document.activeElement === document.body, errors];""",
    )
    before, after, said, left, errors = told
    assert before == [["two-minds.js"], False] and errors == [] and left
    assert f"two-minds-data-{name}.js" in after and len(after) == len(set(after)) == 8
    pattern = r"CoT2 answers \S+, which is right; discrete chain of thought answers \S+, which is wrong\."
    assert re.fullmatch(pattern, said), "it starts on a question that tells them apart"


def test_a_failure_is_said(site):
    missing, away = (site / "_static" / name for name in ("two-minds-data-mnns.js", "away.js"))
    missing.rename(away)
    try:
        script = f"{HELPERS} await until(() => root.textContent); return root.textContent;"
        told = said_by(site, COMPONENT.format("mnns"), script)
    finally:
        away.rename(missing)
    assert told == "The models could not be loaded (two-minds-data-mnns)."


def test_two_components_share_their_scripts(site):
    told = said_by(
        site,
        ERRORS + COMPONENT.format("mnns") + COMPONENT.format("prosqa") + COMPONENT.format("mnns"),
        f"""{HELPERS}
        await until(() => document.querySelectorAll(".two-minds form").length === 3);
        const known = {SRC}.filter((name) => name !== "two-minds.js");
        const drawn = [...document.querySelectorAll(".two-minds")].map((one) => one.querySelectorAll("svg").length);
        return [known.length === new Set(known).size, drawn, errors];""",
    )
    assert told == [True, [2, 2, 2], []]


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


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("width, beside", [(328, False), (720, True)])
def test_it_fits_a_phone_and_stands_side_by_side_on_a_screen(site, name, width, beside):
    told = said_by(
        site,
        f'<div style="width: {width}px">{STYLED.format(name)}</div>',
        HELPERS
        + """
        await start();
        set("rule", "dirichlet");
        const room = root.getBoundingClientRect().right;
        const wide = [...root.querySelectorAll("*")].filter((one) => one.getBoundingClientRect().right > room + 0.5);
        const [one, other] = [...root.querySelectorAll(".mind")].map((part) => part.getBoundingClientRect().top);
        return [wide.map((part) => part.outerHTML), one === other];""",
    )
    assert told == [[], beside]


@pytest.mark.parametrize("name, questions", [("mnns", ["1588", "1999", "1114"]), ("prosqa", [0, 6, 11])])
def test_a_click_on_a_disc_hits_it(site, name, questions):
    script = f"""{HELPERS}
      await start();
      const middle = (one) => {{
        const {{ left, top, width, height }} = one.querySelector(".disc").getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2);
      }};
      return {json.dumps(questions)}.flatMap((question) => {{
        set("question", question);
        root.scrollIntoView();
        return [...root.querySelectorAll("[role=button]")].map((one) => middle(one).closest("[role=button]") === one);
      }});"""
    hits = said_by(site, STYLED.format(name), script, "--window-size=900,1400", "--force-prefers-reduced-motion")
    assert len(hits) >= 10 and all(hits)
