"""What stands beside the claims on word problems (chapter `gsm8k`): the paper's table, where a GPU has made it."""

from dataclasses import dataclass

import pandas as pd

from cot2lib.study.analysis import language_runs
from cot2lib.study.claims.comparisons import Direction, against
from cot2lib.study.claims.kinds import SETTLED, Kind, Number, Read, command
from cot2lib.study.claims.rules import Unit
from cot2lib.study.claims.samples import Sample
from cot2lib.study.word_problems import PAPER_LIMITS, QWEN

TOKENS = Unit("tokens", 5.0, 1)
NEEDS = "needs the Qwen3-0.6B weights and a GPU"
ROWS = {"discrete": False, "mts": True}  # methods, by the names of claims, and whether they think


@dataclass(frozen=True)
class Elsewhere:
    """A claim that cannot be measured on the machines at hand.

    Attributes:
        kind: what it is once there are records.
        needs: what is missing here.
    """

    kind: Kind
    needs: str = NEEDS

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """As of the kind; without records, what is missing and the command that would make them."""
        row = self.kind.row(claim, profile, read)
        return row if row["seeds"] else row | {"verdict": f"not run: {self.needs}"} | command("gsm8k", SETTLED)

    def ours(self, row) -> str:
        """As of the kind."""
        return self.kind.ours(row)


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


GAPS = [against(trained(limit, True), trained(limit, False), "accuracy") for limit in PAPER_LIMITS]

WORDS: dict[str, Kind] = {
    **{f"gsm8k-{limit}-init": _of(limit, False, "start_accuracy") for limit in PAPER_LIMITS},
    **{f"gsm8k-{limit}-{name}": _of(limit, thinks) for limit in PAPER_LIMITS for name, thinks in ROWS.items()},
    **{
        f"gsm8k-{limit}-{name}-length": _of(limit, thinks, "length", scale=1.0, top=float("inf"), unit=TOKENS)
        for limit in PAPER_LIMITS
        for name, thinks in ROWS.items()
    },
    "gsm8k-3-of-4": Elsewhere(Direction("gsm8k", GAPS)),
}
