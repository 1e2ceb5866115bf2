"""Word problems with exact answers and chains, made from a seed.

A story gives somebody a number of things, and changes the number in one step or more: by gains, losses and, where the
numbers stay small, doubling. Its chain writes every sum, or of some only the result, and marks the answer as GSM8K
does. Held-out stories differ from training in the numbers of their first sum, so that they cannot be learnt by heart.
"""

from dataclasses import dataclass

import numpy as np

MARK = "####"  # before the answer, as in GSM8K
PARTS = ("training", "new numbers")
MOST = 20  # the largest number
NAMES = ("Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gwen", "Hugo")
THINGS = ("apples", "books", "cards", "coins", "eggs", "pens", "shells", "stamps")


SENTENCES = {  # by sign; {name}, {thing} and {n} are filled in
    "opening": (
        "{name} has {n} {thing}.", "There are {n} {thing} on the table of {name}.", "{name} starts with {n} {thing}.",
    ),
    "+": ("{name} buys {n} more.", "A friend gives {name} {n} {thing}.", "{name} finds {n} more {thing}."),
    "-": ("{name} loses {n} of them.", "{name} sells {n} {thing}.", "{name} gives {n} away."),
    "*": ("Then the number doubles.", "{name} gets as many again."),
    "question": ("How many {thing} are there now?", "How many {thing} does {name} have?"),
}  # fmt: skip


@dataclass(frozen=True)
class Story:
    """One problem."""

    text: str  # the story and its question
    chain: str  # every sum, whole or its result alone, then the mark and the answer
    answer: float | int


def stories(count: int, steps: int, part: str = "training", seed: int = 0, brief: float = 0.0) -> list[Story]:
    """Stories of `steps` sums with numbers up to `MOST`; equal arguments give equal stories.

    `part` is one of `PARTS`; of a share `brief` of the sums the chain writes the result alone.
    """
    random = np.random.default_rng([seed, steps, PARTS.index(part)])
    return [_story(random, steps, part, brief) for _ in range(count)]


def is_held_out(first: int, second: int) -> bool:
    """Whether a story that begins with these two numbers is kept from training: about a fifth of all pairs."""
    return (first * 7 + second * 3) % 5 == 0


def _story(random: np.random.Generator, steps: int, part: str, brief: float) -> Story:
    names = {"name": random.choice(NAMES), "thing": random.choice(THINGS)}
    say = lambda kind, n=0: str(random.choice(SENTENCES[kind])).format(**names, n=n)
    sums = _sums(random, steps, part != "training")
    sentences = [say("opening", sums[0][0]), *(say(sign, number) for _, sign, number, _ in sums)]
    answer = sums[-1][-1]
    whole = lambda before, sign, number, after: f"{before} {sign} {number} = {after}"
    chain = [str(line[-1]) if random.random() < brief else whole(*line) for line in sums]
    return Story(" ".join([*sentences, say("question")]), f"{' ; '.join(chain)} {MARK} {answer}", answer)


def _sums(random: np.random.Generator, steps: int, held_out: bool) -> list[tuple[int, str, int, int]]:
    """Number before, sign, number and result of each sum; the first two numbers belong to the part."""
    while True:
        now = int(random.integers(2, MOST))
        sums = []
        for _ in range(steps):
            sums.append(_sum(random, now))
            now = sums[-1][-1]
        if is_held_out(sums[0][0], sums[0][2]) == held_out:
            return sums


def _sum(random: np.random.Generator, now: int) -> tuple[int, str, int, int]:
    """One that stays between 1 and `MOST`."""
    signs = ["+"] * (now < MOST) + ["-"] * (now > 1) + ["*"] * (2 <= now <= MOST // 2)
    sign = str(random.choice(signs))
    number = 2 if sign == "*" else int(random.integers(1, now if sign == "-" else MOST - now + 1))
    return now, sign, number, {"+": now + number, "-": now - number, "*": now * number}[sign]
