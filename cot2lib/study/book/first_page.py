"""The first page's figure and its four sentences: what was found, with unit, size, the paper's value and a verdict.

Everything is read from the records. A verdict leads to the card of its claim.
"""

from functools import cache

import pandas as pd

from cot2lib import runs
from cot2lib.metrics import mean_interval
from cot2lib.specs.profiles import TWENTY
from cot2lib.study import frame, graph_runs, graphs, look, show, sweeps
from cot2lib.study.book.ledger import KINDS, STATEMENTS, of_records, reading_records
from cot2lib.study.graph_runs import BOTH
from cot2lib.study.judge import PARTLY, POINTS, group
from cot2lib.study.kinds import SETTLED
from cot2lib.study.policies import constant_answer
from cot2lib.study.printed import paper_value
from cot2lib.study.prosqa import draw as prosqa
from cot2lib.study.prosqa import questions
from cot2lib.study.prosqa import runs as whole
from cot2lib.study.report import describe
from cot2lib.study.sweeps import methods

NEAR_CONSTANT = 1.0  # points
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
        f"{theirs}. {_one_layer('small-cot2-beats-large-discrete')}"
    )


def _one_layer(claim: str) -> str:
    """At which dimensions one layer of CoT2 is above two of discrete chain of thought, and where that is not sure."""
    sure, unsure = [], []
    for line in KINDS[claim].drawn(claim, SETTLED, reading_records()):
        gap, cell = mean_interval(line.values), line.label.partition(":")[0].replace("d =", "*d* =")
        lead = f"{describe(gap.mean, gap.low, gap.high)} points, {(line.values > 0).sum()} of {len(line.values)} seeds"
        (sure if gap.low > 0 else unsure).append(f"at {cell} ({lead})")
    said = [
        f"{words} {' and '.join(cells)}"
        for words, cells in (("leads", sure), ("has no certain lead", unsure))
        if cells
    ]
    return f"One layer of CoT2 against two of discrete chain of thought {', and '.join(said)}: {_linked(claim)}."


def _graphs() -> str:
    answered = prosqa.answers(prosqa.tested(whole.chosen()))
    asked = frame.at(answered, test=questions.PUBLISHED, asked="fresh", questions=prosqa.ALL)
    right = asked.groupby("method", observed=True)["strict"].mean()
    return (
        "**Graphs.** The half of the recipe that the paper states brings CoT2 on ProsQA (*d* = 32) to "
        f"{_number('main-prosqa-cot2')}, discrete chain of thought to {_number('main-prosqa-discrete')}, and CoT2 on "
        f"ProntoQA to {_number('main-prontoqa-cot2')}. By our recipe (*d* = 64) CoT2 answers {right['CoT2']:.1f} % of "
        f"the published questions of ProsQA ({_seeds(asked, 'CoT2')}), discrete chain of thought "
        f"{right['discrete CoT']:.1f} % ({_seeds(asked, 'discrete CoT')}). {favoured()}"
    )


@cache
def favoured() -> str:
    """How far our recipe on ProsQA favours CoT2: its lead by that recipe, and by the best choice for each method."""
    usual, best = graph_runs.naming("quick", namings=("fresh",), methods=graph_runs.BOTH), graph_runs.chosen()
    leads = [
        show.gap(graphs.described(frame.tidy(runs.recorded(specs)), specs), "method", *graphs.SIDES)
        for specs in (usual, [run for run in best if run.model.heads == usual[0].model.heads])
    ]
    ours, each = (f"{lead.mean:.0f}" for lead in leads)
    return (
        f"Our recipe was developed with CoT2 and favours it: on graphs of four hops (*d* = {usual[0].model.d_model}) "
        f"CoT2 leads by {ours} points, and by {each} if each method has its best choice ({{numref}}`tab-chosen`)."
    )


def _seeds(rows: pd.DataFrame, method: str) -> str:
    count = frame.at(rows, method=method)["seed"].nunique()
    return f"{count} seeds" if count > 1 else "1 seed"


def _reward() -> str:
    wide, narrow = (_number(f"grpo-mts-d{d}-k{K}", counted=True) for d in (WIDE, NARROW))
    constant = {d: _constant(d) for d in (WIDE, NARROW)}
    told = " and ".join(f"{constant[d][0]} at *d* = {d}" for d in constant)
    return (
        f"**Reward.** Rewarded thoughts of sampled tokens raise what a discrete model of one layer starts from: "
        f"{_gap('grpo-improves')}. With {K} tokens it comes to {wide} at *d* = {WIDE}, and to {narrow} at *d* = "
        f"{NARROW}. {told} end within a point of the {constant[NARROW][1]:.1f} % that one answer to everything gives."
    )


def _constant(d_model: int) -> tuple[str, float]:
    """How many runs of the sentence on reward end near what one answer to everything gives, and what it gives (%)."""
    rows = frame.tidy(runs.recorded(sweeps.sampled("paper", TWENTY, (d_model,), (K,), one_split=True)))
    gives = rows["split"].map(constant_answer)
    near = int(((rows["last"] - gives).abs() < NEAR_CONSTANT).sum())
    return f"{near} of {len(rows)} runs", float(gives.mean())


def _theory() -> str:
    words = {"holds": "hold as printed", "holds if": "if something is added", "holds vacuously": "vacuously"}
    found = _settled().loc[[*STATEMENTS], "verdict"].str.extract(r"^(holds(?: if| vacuously)?)")[0]
    counts = ", ".join(f"{(found == said).sum()} {word}" for said, word in words.items())
    solves = _linked("construction")
    return f"**Theory.** Of {len(found)} statements {counts}. The transformer that solves the task exactly: {solves}."


def _settled() -> pd.DataFrame:
    rows = of_records()
    return rows[rows["profile"] == SETTLED].set_index("id", drop=False)


def _number(claim: str, counted: bool = False) -> str:
    """Our mean at the epoch that the paper prints, the paper's number, and the group of the verdict.

    With `counted` it says how many runs are as close to the paper's number as a mean has to be.
    """
    row = _settled().loc[claim]
    ours = describe(row[row["judged"]], row["judged_low"], row["judged_high"])
    close = ""
    if counted:
        (line,) = KINDS[claim].drawn(claim, SETTLED, reading_records())
        count = int(((line.values - line.stated).abs() < POINTS.tight).sum())
        close = f"; {count or 'none'} of {len(line.values)} runs within {POINTS.tight:g} points"
    return f"{ours} % (the paper {paper_value(claim):g}: {_linked(claim)}{close})"


def _gap(claim: str) -> str:
    """The group of a verdict, and the difference of each of two cells; of more, that of the one that decides."""
    lines = KINDS[claim].drawn(claim, SETTLED, reading_records())
    found = [(mean_interval(line.values), line.label.partition(":")[0]) for line in lines]
    lows = [gap.low for gap, _ in found]
    shown = found if len(found) == 2 else [found[lows.index(min(lows))]]
    told = (f"{describe(gap.mean, gap.low, gap.high)} at {cell.replace('d =', '*d* =')}" for gap, cell in shown)
    return f"{_linked(claim)}, gap in points {' and '.join(told)}"


def _linked(claim: str) -> str:
    """The group of a verdict, as a link to its card; what is proved, or holds in some cells alone, says so."""
    verdict = _settled().loc[claim, "verdict"]
    said = verdict if claim in STATEMENTS else PARTLY if verdict.startswith(PARTLY) else group(verdict)
    return f"{{ref}}`{said} <claim-{claim}>`"
