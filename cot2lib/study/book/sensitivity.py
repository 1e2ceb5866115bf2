"""What a verdict hangs on: single seeds, the margin, and runs that end in two groups; in sentences for a card."""

from collections.abc import Callable
from dataclasses import replace

from cot2lib.study import judge
from cot2lib.study.book.ledger import KINDS
from cot2lib.study.claims.kinds import SETTLED, Drawn
from cot2lib.study.claims.queries import Read
from cot2lib.study.judge import UNTESTED, group

MARGINS = (0.6, 1.6)  # times the margin
MANY = 4  # seeds that are counted and not named


def sentences(claim: str, verdict: str, lines: list[Drawn], read: Read) -> list[str]:
    """What the verdict on a claim by runs of the authors' recipe (`lines`) hangs on."""
    word, number = group(verdict), KINDS[claim].number()
    if not lines or word == UNTESTED or verdict.startswith((judge.REFUTED, judge.UNLEARNT)):
        return []
    if number is None:
        return [_seeds(word, lines, lambda seed: _without(claim, seed, read))]
    (line,) = lines
    judged = lambda values, unit: group(judge.number_verdict(values, line.stated, number.paper_runs, unit))
    return [
        judge.outcomes(line.values, line.stated, line.unit),
        _seeds(word, lines, lambda seed: judged(line.values.drop(seed), line.unit)),
        _margins(word, line, lambda unit: judged(line.values, unit)),
    ]


def _without(claim: str, seed: int, read: Read) -> str:
    """The group of a claim's verdict without a seed."""
    rest = lambda query, profile: read(query, profile).drop(seed, errors="ignore")
    return group(KINDS[claim].row(claim, SETTLED, rest)["verdict"])


def _seeds(word: str, lines: list[Drawn], without: Callable[[int], str]) -> str:
    """Which single seeds, left out, change the group of a verdict."""
    seeds = sorted(set().union(*(line.values.index for line in lines)))
    fewest = min(len(line.values) for line in lines)
    if fewest <= judge.FEWEST_SEEDS:
        return f"It stands on {fewest} seeds: without any one of them it would be undecided."
    changed = {seed: found for seed in seeds if (found := without(seed)) != word}
    if not changed:
        return f"The verdict stays if any one of the {len(seeds)} seeds is left out."
    turned = {found: [str(seed) for seed, one in changed.items() if one == found] for found in changed.values()}
    named = [
        f"{found} without seed {' or '.join(which)}" if len(which) < MANY else f"{found} without one of {len(which)}"
        for found, which in turned.items()
    ]
    return f"Of {len(seeds)} seeds single ones matter: {'; '.join(named)}."


def _margins(word: str, line: Drawn, judged: Callable[[judge.Unit], str]) -> str:
    """What a narrower and a wider margin would say, where it is something else."""
    unit = line.unit
    units = [replace(unit, tight=factor * unit.tight, share=factor * unit.share) for factor in MARGINS]
    other = [f"{one.text(one.margin(line.stated))}: {found}" for one in units if (found := judged(one)) != word]
    return f"Another margin would say otherwise ({'; '.join(other)})." if other else ""
