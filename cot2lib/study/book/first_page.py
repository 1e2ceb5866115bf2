"""The first page in words and curves: whether the paper holds, and this book beside it. Numbers are of the records."""

from functools import cache

import pandas as pd

from cot2lib import runs
from cot2lib.runs import records
from cot2lib.specs.profiles import TWENTY
from cot2lib.study import arrow, frame, graph_runs, graphs, gsm8k_runs, look, report, sweeps
from cot2lib.study.book import overview
from cot2lib.study.book.ledger import KINDS, STATEMENTS, of_records, reading_records
from cot2lib.study.claims.kinds import SETTLED
from cot2lib.study.controls import steps
from cot2lib.study.graph_runs import BOTH
from cot2lib.study.judge import AGREES
from cot2lib.study.printed import GAINS, gains, paper_value
from cot2lib.study.prosqa import runs as whole
from cot2lib.study.report import ends
from cot2lib.study.sweeps import methods

SUMS, GRAPHS = "signed sums, d = 32, authors' recipe", "ProsQA of all hops, d = 64, our recipe"
CLAIMED = {SUMS: "main-mnns", GRAPHS: "main-prosqa"}
SOME = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def curves(panel: str) -> look.Shown:
    """Learning curves of continuous and discrete thoughts on one task, beside the paper's values."""
    if panel == SUMS:
        part = frame.read({"paper": methods("paper", TWENTY, (32,), BOTH)})[1]
        finding = "On sums of digits continuous thoughts learn more than discrete ones."
    else:
        part = frame.read({"quick": whole.chosen(methods=BOTH)})[1]
        finding = "On ProsQA continuous thoughts learn more than discrete ones, too."
    claimed = lambda method, _: paper_value(f"{CLAIMED[panel]}-{graphs.CLAIMED[method]}")
    drawn = part.assign(recipe=frame.ordered(pd.Series(panel, part.index), (panel,)))
    return look.curves(drawn, col="recipe", paper=claimed, finding=finding)


def in_short() -> str:
    """Whether the paper holds, in one paragraph of MyST whose words lead to cards."""
    rows = of_records()
    settled = rows[rows["profile"] == SETTLED].set_index("id")
    ours = lambda claim: f"{settled.loc[claim, 'last']:.1f} %"
    leads = [
        line.values > 0 for line in KINDS["convergence-2l2h"].drawn("convergence-2l2h", SETTLED, reading_records())
    ]
    every = "on every seed" if all(map(all, leads)) else "on average"
    lifts = [line.values.mean() for line in KINDS["grpo-improves"].drawn("grpo-improves", SETTLED, reading_records())]
    printed = [gain for model in GAINS if model.startswith("MNNS") for gain in gains(model)]
    repaired = settled.loc[[*STATEMENTS], "verdict"].str.startswith("holds if").sum()
    local = [f"{accuracy:.1f} %" for accuracy in of_local_steps()]
    lost = arrow.outcomes(arrow.read()).set_index("id").loc["full-16", "mean"]
    named = (
        graphs.recorded(graph_runs.naming("quick", methods=("cot2",))).groupby("naming", observed=True)["last"].mean()
    )
    dashed = lambda points: ends(points, 0).replace(" to ", "\N{EN DASH}")
    sentences = [
        f"CoT2 (authors' recipe) beats discrete thoughts on sums (*d* = 32) {_card('convergence-2l2h', every)}, "
        f"{_card('main-mnns-cot2', ours('main-mnns-cot2'))} against "
        f"{_card('main-mnns-discrete', ours('main-mnns-discrete'))}.",
        f"{{ref}}`Arrows <erratum-arrow>` after its prompts add {lost:.0f} points (*d* = 16).",
        f"Reward on sampled tokens {_card('grpo-improves', 'lifts')} discrete models of sums "
        f"{dashed(lifts)} points (paper: {dashed(printed)}), less with the code's settings.",
        f"If each step sees {{ref}}`one digit <local-steps>` (our recipe), CoT2 reaches {local[0]}, "
        f"discrete thoughts {local[1]}.",
        f"{SOME[repaired].capitalize()} of {len(STATEMENTS)} theoretical statements need "
        f"{_card('construction', 'repair or conditions')}.",
        f"Our recipe gives CoT2 {dashed(named)} % on ProsQA; the paper's half-stated one gives "
        f"{_card('main-prosqa-cot2', ours('main-prosqa-cot2'))}, not {paper_value('main-prosqa-cot2'):g} %, and "
        f"{_card('main-prontoqa-cot2', 'near chance')} with its prompts or on ProntoQA.",
    ]
    return " ".join(sentences)


def of_local_steps() -> list[float]:
    """Accuracy (%) of CoT2 and of discrete chain of thought whose steps see one digit alone, d = 32."""
    cells = (steps.numbers(steps.Cell(method, "strict")) for method in ("csft", "discrete"))
    return [float(frame.tidy(runs.recorded(cell))["last"].mean()) for cell in cells]


@cache
def favoured() -> str:
    """How far our recipe on ProsQA favours CoT2: its lead by that recipe, and by the best choice for each method."""
    usual, best = graph_runs.naming("quick", namings=("fresh",), methods=BOTH), graph_runs.chosen()
    ours = graphs.gaps(graphs.recorded(usual), ["heads"])["mean"].item()
    two, four = graphs.gaps(graphs.recorded(best), ["heads"])["mean"]
    return (
        f"On four hops with names drawn anew, CoT2 leads by {ours:.0f} points by our recipe, which favours it, and by "
        f"{two:.0f} (two heads) or {four:.0f} (four) if each method has its best settings ({{numref}}`tab-chosen`)."
    )


def glance() -> pd.DataFrame:
    """This book beside the paper: scope, hardware, time, cost, outcome."""
    shipped, rows = records.shipped()[0], of_records()
    minutes = 60 * rows[(rows["id"] == "train-cost") & (rows["profile"] == SETTLED)]["last"].item()
    kinds = overview.counts(rows)
    some = overview.counts(rows, on_condition=True)[AGREES]
    agree = ", ".join(f"{kinds.loc[kind, AGREES]} of {kinds.loc[kind].sum()} {kind}" for kind in kinds.index[:3])
    return pd.DataFrame(
        [
            ("scope", "signed sums, graphs, word problems, theory", "the same without large language models"),
            ("hardware", "GPUs (L40S)", f"CPUs; up to {shipped['stacked'].max()} runs shared a core"),
            (
                "a run on four digits",
                f"about {paper_value('train-cost'):g} hours",
                f"{minutes:.1f} core-minutes on average (CoT2, d = 32, authors' recipe)",
            ),
            ("cost", "not stated", f"{len(shipped)} runs, {frame.hours(shipped).sum():.0f} core-hours"),
            ("outcome", f"{kinds.loc['all'].sum()} claims", f"{agree} agree ({some['all']} on a condition)"),
        ],
        columns=["", "the paper", "this book"],
    )


def commands() -> pd.DataFrame:
    """Commands that train each chapter's runs by either recipe, how many are recorded, and their core-hours."""
    rows = []
    for chapter in sweeps.CHAPTERS:
        for profile, recipe in report.RECIPES.items():
            if specs := sweeps.of_chapter(chapter, profile):
                rows.append((f"`cot2 run {chapter} --profile {profile}`", recipe, len(specs), runs.recorded(specs)))
    for profile, recipe in report.RECIPES.items():
        spent = gsm8k_runs.shipped(profile).drop_duplicates("id")
        rows.append((f"`cot2 llm train --profile {profile}`", recipe, len(gsm8k_runs.word_problems(profile)), spent))
    table = pd.DataFrame(rows, columns=["command", "recipe", "runs", "spent"])
    spent = table.pop("spent")
    return table.assign(recorded=spent.map(len), **{"core-hours": spent.map(lambda rows: frame.hours(rows).sum())})


def _card(claim: str, words: str) -> str:
    return f"{{ref}}`{words} <claim-{claim}>`"
