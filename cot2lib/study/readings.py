"""Kinds that stand on another: a number of what training starts from, or whose recipe the paper states in part."""

from dataclasses import dataclass

from cot2lib.study.judge import AGREES, DIFFERS, UNDECIDED, group, in_words
from cot2lib.study.kinds import (
    ENTROPY,
    SETTLED,
    Drawn,
    Kind,
    Number,
    Read,
    command,
    of_profile,
    under,
    unmeasured,
)
from cot2lib.study.samples import STEPS, Sample

YES, NO = "yes", "no"


@dataclass(frozen=True)
class OfStart(Kind):
    """A number (`held`) of the models that policy gradients start from, at the evaluation before any step.

    The profile `paper` trained them, whatever profile goes on from them. Records of `quick` hold that evaluation.

    Attributes:
        held: the number.
        refuted: how the paper's own table contradicts it, or "".
    """

    held: Number
    refuted: str = ""

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Under `paper` the number as quick records hold it; the profile `quick` trains no such start."""
        if profile != SETTLED:
            return {"seeds": 0, "verdict": f"not run: the {SETTLED} profile trains these starts"}
        row = self.held.row(claim, SETTLED, of_profile(read, "quick")) | command(self.held.chapter, "quick")
        return row | ({"verdict": f"refuted: {self.refuted}"} if self.refuted else {})

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The number's lines."""
        lines = self.held.drawn(claim, SETTLED, of_profile(read, "quick")) if profile == SETTLED else []
        return [line._replace(runs=()) for line in lines]  # those are runs that go on from the starts

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
        best: by our recipe, the profile `quick`, which was found with CoT2 alone and is the same for every method.
    """

    stated: Number
    best: Number

    def row(self, claim: str, profile: str, read: Read) -> dict:
        """Under `paper` the answer to the first question, and in `reached` that to the second; `quick` has the best
        recipe's numbers."""
        best = self.best.row(claim, SETTLED, of_profile(read, "quick"))
        if profile == SETTLED:
            return self.stated.row(claim, profile, read) | ({"reached": _reached(best)} if best["seeds"] else {})
        verdict = under(profile, best["verdict"]) if best["seeds"] else unmeasured(profile)["verdict"]
        return best | {"verdict": verdict} | command(self.best.chapter, profile)

    def drawn(self, claim: str, profile: str, read: Read) -> list[Drawn]:
        """The lines of the number that the profile has."""
        return (self.stated if profile == SETTLED else self.best).drawn(claim, profile, read)

    def ours(self, row) -> str:
        """The mean with its interval."""
        return self.stated.ours(row)

    def number(self) -> Number:
        """The number that gives the verdict."""
        return self.stated


def _reached(row: dict) -> str:
    """Whether a number's runs come up to it, and how the rule says it: yes where they agree, or end above it."""
    verdict, higher = row["verdict"], row["difference"] > 0
    said = {AGREES: YES, DIFFERS: YES if higher else NO}.get(group(verdict), UNDECIDED)
    return ": ".join(filter(None, [said, in_words(verdict).why]))


def entropies(stem: str, chapter: str, sample: Sample) -> dict[str, Kind]:
    """The paper's entropies of one row of a table: of the start, and after training."""
    number = lambda column: Number(chapter, sample, 1, column, **ENTROPY)
    after = {f"{stem}-entropy{step}": number(f"entropy_{step}") for step in STEPS}
    return after | {f"{stem}-entropy{step}-sft": OfStart(number(f"entropy_{step}_before")) for step in STEPS}
