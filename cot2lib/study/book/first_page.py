"""The first page's figure and its four sentences: what was found, with unit, size, the paper's value and a verdict.

Everything is read from the records. A verdict leads to the card of its claim.
"""

import pandas as pd

from cot2lib.metrics import mean_interval
from cot2lib.specs.profiles import TWENTY
from cot2lib.study import frame, graphs, look
from cot2lib.study.book.ledger import KINDS, STATEMENTS, of_records, reading_records
from cot2lib.study.graph_runs import BOTH
from cot2lib.study.judge import group
from cot2lib.study.kinds import SETTLED
from cot2lib.study.printed import paper_value
from cot2lib.study.prosqa import draw as prosqa
from cot2lib.study.prosqa import questions
from cot2lib.study.prosqa import runs as whole
from cot2lib.study.report import describe
from cot2lib.study.sweeps import methods

SUMS, GRAPHS = "signed sums, d = 32, authors' recipe", "ProsQA of all hops, d = 64, our recipe"
K, WIDE, NARROW = 3, 32, 24  # of the sentence on reward
CLAIMED = {SUMS: "main-mnns", GRAPHS: "main-prosqa"}


def curves() -> look.Shown:
    """Learning curves of continuous and discrete thoughts on both tasks, beside the paper's values."""
    parts = {
        SUMS: frame.read({"paper": methods("paper", TWENTY, (32,), BOTH)})[1],
        GRAPHS: frame.read({"quick": whole.chosen(methods=BOTH)})[1],
    }
    drawn = pd.concat([part.assign(recipe=panel) for panel, part in parts.items()])
    panels = drawn.assign(recipe=frame.ordered(drawn["recipe"], tuple(parts)))
    finding = "Continuous thoughts learn more than discrete ones, on sums of digits and on ProsQA."
    return look.curves(panels, col="recipe", stated=_stated, finding=finding, sharex=False)


def _stated(method: str, panel: str) -> float:
    """The paper's final accuracy of a method."""
    return paper_value(f"{CLAIMED[panel]}-{graphs.CLAIMED[method]}")


def sentences() -> list[str]:
    """Four sentences as MyST: on supervised training, graphs, reward and theory."""
    return [_supervised(), _graphs(), _reward(), _theory()]


def _supervised() -> str:
    ours, theirs = _number("main-mnns-cot2"), _number("main-mnns-discrete")
    return (
        f"**Training.** On signed sums (two layers, *d* = 32) CoT2 is right on {ours}, discrete chain of thought on "
        f"{theirs}. One layer of CoT2 beats two of discrete chain of thought: "
        f"{_gap('small-cot2-beats-large-discrete')}."
    )


def _graphs() -> str:
    answered = prosqa.answers(prosqa.tested(whole.chosen()))
    asked = frame.at(answered, test=questions.PUBLISHED, asked="fresh", questions=prosqa.ALL)
    right = asked.groupby("method", observed=True)["strict"].mean()
    return (
        "**Graphs.** The half of the recipe that the paper states brings CoT2 on ProsQA (*d* = 32) to "
        f"{_number('main-prosqa-cot2')}, discrete chain of thought to {_number('main-prosqa-discrete')}, and CoT2 on "
        f"ProntoQA to {_number('main-prontoqa-cot2')}. By our recipe (*d* = 64) CoT2 answers {right['CoT2']:.1f} % of "
        f"the published questions of ProsQA ({_seeds(asked, 'CoT2')}), discrete chain of thought "
        f"{right['discrete CoT']:.1f} % ({_seeds(asked, 'discrete CoT')})."
    )


def _seeds(rows: pd.DataFrame, method: str) -> str:
    count = frame.at(rows, method=method)["seed"].nunique()
    return f"{count} seeds" if count > 1 else "1 seed"


def _reward() -> str:
    wide, narrow = (_number(f"grpo-mts-d{d}-k{K}") for d in (WIDE, NARROW))
    return (
        f"**Reward.** Rewarded thoughts of sampled tokens raise what a discrete model of one layer starts from: "
        f"{_gap('grpo-improves')}. With {K} tokens it comes to {wide} at *d* = {WIDE}, and to {narrow} at *d* = "
        f"{NARROW}, where some runs end with one answer to everything."
    )


def _theory() -> str:
    words = {"holds": "hold as printed", "holds if": "if something is added", "holds vacuously": "vacuously"}
    found = _settled().loc[[*STATEMENTS], "verdict"].str.extract(r"^(holds(?: if| vacuously)?)")[0]
    counts = ", ".join(f"{(found == said).sum()} {word}" for said, word in words.items())
    solves = _linked("construction")
    return f"**Theory.** Of {len(found)} statements {counts}. The transformer that solves the task exactly: {solves}."


def _settled() -> pd.DataFrame:
    rows = of_records()
    return rows[rows["profile"] == SETTLED].set_index("id", drop=False)


def _number(claim: str) -> str:
    """Our mean at the epoch that the paper prints, the paper's number, and the group of the verdict."""
    row = _settled().loc[claim]
    ours = describe(row[row["judged"]], row["judged_low"], row["judged_high"])
    return f"{ours} % (the paper {paper_value(claim):g}: {_linked(claim)})"


def _gap(claim: str) -> str:
    """The group of a verdict, and the difference of each of two cells; of more, that of the one that decides."""
    lines = KINDS[claim].drawn(claim, SETTLED, reading_records())
    found = [(mean_interval(line.values), line.label.partition(":")[0]) for line in lines]
    lows = [gap.low for gap, _ in found]
    shown = found if len(found) == 2 else [found[lows.index(min(lows))]]
    told = (f"{describe(gap.mean, gap.low, gap.high)} at {cell.replace('d =', '*d* =')}" for gap, cell in shown)
    return f"{_linked(claim)}, gap in points {' and '.join(told)}"


def _linked(claim: str) -> str:
    """The group of a verdict, as a link to its card; what is proved says so in full."""
    verdict = _settled().loc[claim, "verdict"]
    said = verdict if claim in STATEMENTS else group(verdict)
    return f"{{ref}}`{said} <claim-{claim}>`"
