"""Kinds that stand on another: a number of what training starts from, one whose recipe the paper states in part, and
one that its own table contradicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from cot2lib.study.kinds import ENTROPY, SETTLED, Drawn, Kind, Number, OfRuns, Read, command, under
from cot2lib.study.printed import paper_value
from cot2lib.study.samples import STEPS, Sample


@dataclass(frozen=True)
class OfStart(Kind):
    """A number (`held`) of the models that policy gradients start from, at the evaluation before any step.

    The profile `paper` trained them, whatever profile goes on from them. Records of `quick` hold that evaluation.
    """

    held: Number

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Under `paper` the number as quick records hold it; the profile `quick` trains no such start."""
        if profile != SETTLED:
            return {"seeds": 0, "verdict": f"not run: the {SETTLED} profile trains these starts"}
        return self.held.row(claim, SETTLED, self._quick(read)) | command(self.held.chapter, "quick")

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The number's lines."""
        lines = self.held.drawn(claim, SETTLED, self._quick(read)) if profile == SETTLED else []
        return [line._replace(runs=()) for line in lines]  # those are runs that go on from the starts

    def _quick(self, read: Read) -> Read:
        return lambda sample, _: read(sample, "quick")

    def ours(self, row) -> str:
        """The mean with its interval."""
        return self.held.ours(row)

    def number(self) -> Number:
        """The number, whose rows quick records hold."""
        return self.held


@dataclass(frozen=True)
class HalfStated(Kind):
    """A number whose recipe the paper states in part: does that part give it, and can the method reach it?

    Attributes:
        stated: by what the paper states and nothing more; it gives the verdict.
        reached: by the best recipe that the same search found for every method; the profile `quick` has it.
    """

    stated: Number
    reached: Number

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The answer to the first question under `paper`, with the second's beside it, which stands under `quick`."""
        best = self.reached.row(claim, SETTLED, lambda sample, _: read(sample, "quick"))
        if profile != SETTLED:
            return self.reached.row(claim, profile, read) if not best["seeds"] else self._quick(best)
        row = self.stated.row(claim, profile, read)
        if not row["seeds"] or not best["seeds"]:
            return row
        return row | {"verdict": f"{row['verdict']}; by our recipe {best['verdict'].partition(':')[0]}"}

    def _quick(self, best: dict) -> dict:
        return best | {"verdict": under("quick", best["verdict"])} | command(self.reached.chapter, "quick")

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The lines of the number that the profile has."""
        return (self.stated if profile == SETTLED else self.reached).drawn(claim, profile, read)

    def ours(self, row) -> str:
        """The mean with its interval."""
        return self.stated.ours(row)

    def number(self) -> Number:
        """The number that gives the verdict."""
        return self.stated


@dataclass(frozen=True)
class Contradicted(Kind):
    """A number (`held`) that the paper prints with several values, of which at most one is right.

    Attributes:
        held: the number.
        also: the claims that print it.
        why: why they are one number.
    """

    held: Kind
    also: Sequence[str]
    why: str

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """The number's row, refuted by the paper's own table."""
        row = self.held.row(claim, profile, read)
        if profile != SETTLED:
            return row
        values = ", ".join(f"{paper_value(other):g}" for other in self.also)
        return row | {"verdict": f"refuted: by its own table, which prints {values} for it, {self.why}"}

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The number's lines."""
        return self.held.drawn(claim, profile, read) if isinstance(self.held, OfRuns) else []

    def ours(self, row) -> str:
        """The mean with its interval."""
        return self.held.ours(row)

    def number(self) -> Number | None:
        """The number."""
        return self.held.number()


def entropies(stem: str, chapter: str, sample: Sample) -> dict[str, Kind]:
    """The paper's entropies of one row of a table: of the start, and after training."""
    number = lambda column: Number(chapter, sample, 1, column, **ENTROPY)
    after = {f"{stem}-entropy{step}": number(f"entropy_{step}") for step in STEPS}
    return after | {f"{stem}-entropy{step}-sft": OfStart(number(f"entropy_{step}_before")) for step in STEPS}
