"""The paper's numbers and claims: `claims.csv`, one row per number or claim."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pandas as pd

# Which of the paper's numbers stands at a place of a figure or table: the template of a claim's id, filled in with the
# columns that tell places apart, or a function of their values that gives the number.
Paper = str | Callable[..., float | None]


@cache
def claims() -> pd.DataFrame:
    """The paper's numbers and claims by id; columns source, task, setting, metric, paper_value, unit."""
    return pd.read_csv(Path(__file__).with_name("claims.csv"), dtype=str, keep_default_na=False).set_index("id")


LAYERS = {"1": "one layer,", "2": "two layers,", "4": "four layers,"}
GRAPHS = {"prosqa": "ProsQA", "prontoqa": "ProntoQA"}
REWARDED = r", \1, after reward"
WORDS = (
    (r"\b(\d)L\dH\b", lambda found: LAYERS[found[1]]),
    (r"\bd(\d+)\b", r"d = \1,"),
    (r"\bB=full\b", "CoT2, every trajectory"),
    (r"\bB=1$", "B = 1 (discrete CoT)"),
    (r"\b(B|K)=(\w+)\b", r"\1 = \2"),
    (r"\bk=(\d+)\.\.(\d+)", r"k = \1 to \2"),
    (r"\b([kT])(=|>)(?=[\d.])", r"\1 \2 "),
    (r"\bgamma\b", "\N{GREEK SMALL LETTER GAMMA}"),
    (r"\b\N{GREEK SMALL LETTER GAMMA}=", "\N{GREEK SMALL LETTER GAMMA} = "),
    (r"\bdiscrete\b(?! (?:CoT|traces|start))", "discrete CoT"),
    (r"\bMTS (?=K = \d+(?: token|$))", ""),
    (r"(?<=\d) (?=(?:token|step) \d)", ", "),
    (r" max_len (\d+) ", r", at most \1 tokens, "),
    (r"(?<=[\dT}]) (?=[TkK\N{GREEK SMALL LETTER GAMMA}] (?:=|in))", ", "),
    (r",? ([K\N{GREEK SMALL LETTER GAMMA}] = \d+)$", REWARDED),
    (r" GRPO$", ", after reward"),
    (r",? (SFT|initial)$", ", before reward"),
    (r" (before|after) RL$", r", \1 reward"),
)


MARKUP = str.maketrans({mark: f"\\{mark}" for mark in "*_{}^`[]<>"})
SIGNS = {";": ", ", ">=": " \N{GREATER-THAN OR EQUAL TO} ", "<=": " \N{LESS-THAN OR EQUAL TO} "}
UNITS = {"%": "\N{NO-BREAK SPACE}%", "nat": " nat", "h": " hours", "token": " tokens"}


def plain(text: str) -> str:
    """Text of a table as MyST that shows just this text."""
    for sign, shown in SIGNS.items():
        text = text.replace(sign, shown)
    return " ".join(text.split()).translate(MARKUP)


def value_text(claim: str) -> str:
    """The paper's statement, with its unit, as MyST."""
    known = claims().loc[claim]
    return plain(worded(known["paper_value"]) + UNITS.get(known["unit"], ""))


def readable(claim: str) -> str:
    """A claim's setting in a reader's words, with its tasks where all are on graphs."""
    task, setting = claims().loc[claim, ["task", "setting"]]
    named = [GRAPHS[part] for part in task.split("/") if set(task.split("/")) <= set(GRAPHS)]
    return ", ".join([*named, worded(setting).rstrip(",")])


def worded(text: str) -> str:
    """A table's shorthand in a reader's words."""
    for code, words in WORDS:
        text = re.sub(code, words, text)
    return text


def sources() -> pd.Series:
    """The label that each claim stands at in the paper, by id."""
    return claims()["source"].str.partition(" (")[0]


def stated(claim: str) -> float | None:
    """The paper's number, where it gives one."""
    return paper_value(claim) if claim in claims().index else None


def number_at(paper: Paper, place: Mapping[str, object]) -> float | None:
    """The paper's number at a place, given by the columns that tell it apart; None where the paper has none."""
    return stated(paper.format(**place)) if isinstance(paper, str) else paper(*place.values())


def paper_value(claim: str) -> float:
    """The paper's number, in the claim's unit."""
    return float(claims().loc[claim, "paper_value"])


# Gains by reward in the paper's own tables

SMALL, LARGE = (1, 3, 6), (6, 8, 12)  # tokens K
GAINS = {  # stems of the claims, and tokens K
    "MNNS, discrete CoT, d = 24": ("grpo-mts-d24", SMALL),
    "MNNS, discrete CoT, d = 32": ("grpo-mts-d32", SMALL),
    "ProsQA, discrete CoT": ("grpo-prosqa-discrete", LARGE),
    "ProntoQA, discrete CoT": ("grpo-prontoqa-discrete", LARGE),
    "ProsQA, CoT2": ("grpo-prosqa-cot2", LARGE),
    "ProntoQA, CoT2": ("grpo-prontoqa-cot2", LARGE),
}


def gains(model: str) -> pd.Series:
    """The paper's accuracies after policy gradients less that of the start (points), by K."""
    stem, ks = GAINS[model]
    return pd.Series({k: paper_value(f"{stem}-k{k}") - paper_value(f"{stem}-sft") for k in ks})
