"""Measurements beside the claims on word problems (chapter `gsm8k`): the paper's table, where a GPU has made it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cot2lib.study import judge as rules
from cot2lib.study.gsm8k import measure as language_runs
from cot2lib.study.gsm8k.runs import PAPER_LIMITS, QWEN
from cot2lib.study.judge import Unit
from cot2lib.study.kinds import SETTLED, Kind, Number, Read, command, unmeasured
from cot2lib.study.report import PERCENT, describe
from cot2lib.study.samples import Sample

TOKENS = Unit("tokens", 5.0, 1)
NEEDS = "needs the Qwen3-0.6B weights and a GPU"
LENGTH = dict(scale=1.0, top=float("inf"), unit=TOKENS, given="a length counts discrete tokens")
AHEAD, SHORTER = 3, 2  # limits at which MTS must be right more often, and shorter, in the mean over seeds
ROWS = {"discrete": False, "mts": True}  # methods, by the names of claims, and whether they think


@dataclass(frozen=True)
class Elsewhere(Number):
    """A number that cannot be measured on the machines at hand."""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The number's row."""
        return _waiting(super().row(claim, profile, read))


def _waiting(row: dict) -> dict:
    """A row; without records, what is missing and the command that would make them."""
    return row if row["seeds"] else row | {"verdict": f"not run: {NEEDS}"} | command("gsm8k", SETTLED)


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


@dataclass(frozen=True)
class Most(Kind):
    """That MTS is right more often than discrete chain of thought at most limits, and shorter at half of them.

    The paper says "three out of four" and "often".
    """

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The smallest gap in points, and at how many limits MTS is ahead and shorter."""
        cells = [(limit, thinks) for limit in PAPER_LIMITS for thinks in (True, False)]
        found = {cell: read(trained(*cell), profile) for cell in cells}
        if any(rows.empty for rows in found.values()):
            return _waiting(unmeasured(profile))
        means = pd.DataFrame({cell: rows[["accuracy", "length"]].mean() for cell, rows in found.items()}).T.unstack()
        gaps = PERCENT * (means["accuracy", True] - means["accuracy", False])
        ahead, short = (gaps > 0).sum(), (means["length", True] < means["length", False]).sum()
        seeds = min(map(len, found.values()))
        verdict = rules.REPRODUCED if ahead >= AHEAD and short >= SHORTER else rules.NOT
        verdict = f"{verdict}: " if seeds >= rules.FEWEST_SEEDS else f"{rules.TOO_FEW}, "
        said = f"{verdict}right more often at {ahead} of {len(gaps)} limits, shorter at {short}"
        return {"seeds": seeds, "last": gaps.min(), "verdict": said} | command("gsm8k", profile)

    def ours(self, row) -> str:
        """The smallest gap."""
        return f"gap {describe(row.last, np.nan, np.nan)}"


WORDS: dict[str, Kind] = {"gsm8k-3-of-4": Most()}
for limit in PAPER_LIMITS:
    WORDS[f"gsm8k-{limit}-init"] = Elsewhere("gsm8k", trained(limit, False), 1, "start_accuracy")
    for name, thinks in ROWS.items():
        WORDS[f"gsm8k-{limit}-{name}"] = Elsewhere("gsm8k", trained(limit, thinks), 1, "accuracy")
        WORDS[f"gsm8k-{limit}-{name}-length"] = Elsewhere("gsm8k", trained(limit, thinks), 1, "length", **LENGTH)
