"""What stands beside the claims on word problems (chapter `gsm8k`): the paper's table, where a GPU has made it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cot2lib.study import judge as rules
from cot2lib.study.gsm8k import measure as language_runs
from cot2lib.study.gsm8k.runs import PAPER_LIMITS, QWEN
from cot2lib.study.judge import Unit
from cot2lib.study.kinds import SETTLED, Drawn, Kind, Number, OfRuns, Read, command, unmeasured
from cot2lib.study.report import PERCENT, describe
from cot2lib.study.samples import Sample

TOKENS = Unit("tokens", 5.0, 1)
NEEDS = "needs the Qwen3-0.6B weights and a GPU"
LENGTH = dict(scale=1.0, top=float("inf"), unit=TOKENS, given="a length counts discrete tokens")
AHEAD, SHORTER = 3, 2  # limits at which MTS must be right more often, and shorter, in the mean over seeds
ROWS = {"discrete": False, "mts": True}  # methods, by the names of claims, and whether they think


@dataclass(frozen=True)
class Elsewhere(Kind):
    """A claim that cannot be measured on the machines at hand.

    Attributes:
        kind: what it is once there are records.
    """

    kind: Kind

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The kind's row; without records, what is missing and the command that would make them."""
        row = self.kind.row(claim, profile, read)
        return row if row["seeds"] else row | {"verdict": f"not run: {NEEDS}"} | command("gsm8k", SETTLED)

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The kind's lines."""
        return self.kind.drawn(claim, profile, read) if isinstance(self.kind, OfRuns) else []

    def ours(self, row) -> str:
        """The kind's words."""
        return self.kind.ours(row)

    def number(self) -> Number | None:
        """The kind's number."""
        return self.kind.number()


def trained(limit: int, thinks: bool) -> Sample:
    """Runs of Qwen3 with responses of at most so many tokens: a row for each seed, of `language_runs.ends`."""

    def sample(profile: str, seeds) -> pd.DataFrame:
        table = language_runs.shipped(profile)
        chosen = (table["model"] == QWEN) & (table["longest"] == limit) & table["seed"].isin(seeds)
        if not chosen.any():
            return table[chosen]
        found = language_runs.ends(table[chosen])
        return found[(found["continuous"] > 0) == thinks].set_index("seed")

    return sample


def _of(limit: int, thinks: bool, column: str = "accuracy", **options) -> Elsewhere:
    return Elsewhere(Number("gsm8k", trained(limit, thinks), 1, column, **options))


@dataclass(frozen=True)
class Most(Kind):
    """That MTS is right more often than discrete chain of thought at most limits, and shorter at half of them.

    The paper says "three out of four" and "often".
    """

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The smallest gap in points, and at how many limits MTS is ahead and shorter."""
        pairs = [(read(trained(limit, True), profile), read(trained(limit, False), profile)) for limit in PAPER_LIMITS]
        if any(part.empty for pair in pairs for part in pair):
            return unmeasured(profile) | command("gsm8k", profile)
        gaps = [PERCENT * (mixed["accuracy"].mean() - plain["accuracy"].mean()) for mixed, plain in pairs]
        ahead = sum(gap > 0 for gap in gaps)
        short = sum(mixed["length"].mean() < plain["length"].mean() for mixed, plain in pairs)
        seeds = min(len(part) for pair in pairs for part in pair)
        holds = ahead >= AHEAD and short >= SHORTER
        said = f"right more often at {ahead} of {len(pairs)} limits, shorter at {short}"
        verdict = rules.TOO_FEW if seeds < rules.FEWEST_SEEDS else rules.REPRODUCED if holds else "not reproduced"
        row = {"seeds": seeds, "last": min(gaps), "verdict": f"{verdict}{', ' if ':' in verdict else ': '}{said}"}
        return row | command("gsm8k", profile)

    def ours(self, row) -> str:
        """The smallest gap."""
        return f"gap {describe(row.last, np.nan, np.nan)}"


WORDS: dict[str, Kind] = {
    **{f"gsm8k-{limit}-init": _of(limit, False, "start_accuracy") for limit in PAPER_LIMITS},
    **{f"gsm8k-{limit}-{name}": _of(limit, thinks) for limit in PAPER_LIMITS for name, thinks in ROWS.items()},
    **{
        f"gsm8k-{limit}-{name}-length": _of(limit, thinks, "length", **LENGTH)
        for limit in PAPER_LIMITS
        for name, thinks in ROWS.items()
    },
    "gsm8k-3-of-4": Elsewhere(Most()),
}
