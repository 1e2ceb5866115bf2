"""Claim cards: for each claim of the paper its sentence, verdict, numbers, picture and what made them, as MyST."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from cot2lib import study
from cot2lib.runs import records
from cot2lib.study.book import index
from cot2lib.study.book.draw import picture
from cot2lib.study.book.ledger import KINDS, PARTS, is_series, reading_records, short
from cot2lib.study.judge import AGREES, DIFFERS, UNRUN, UNTOLD, group
from cot2lib.study.kinds import SETTLED, Drawn, OfRuns, Read
from cot2lib.study.printed import claims, readable, sources, worded
from cot2lib.study.report import recipe

COLOURS = {AGREES: "success", DIFFERS: "danger", UNTOLD: "warning", UNRUN: "muted", "": "muted"}
METRICS = {
    "val_accuracy": "validation accuracy", "accuracy": "accuracy", "entropy": "entropy", "mean_length": "mean length",
    "wall_time": "time of one run",
}  # fmt: skip
TASKS = {
    "mnns": "MNNS", "mnns4": "MNNS with four digits", "mnns5": "MNNS with five", "prosqa": "ProsQA",
    "prontoqa": "ProntoQA", "gsm8k": "GSM8K", "any": "any task", "markov": "Markov", "all": "all tasks",
    "construction": "the construction",
}  # fmt: skip
UNITS = {"%": "\N{NO-BREAK SPACE}%", "nat": " nat", "h": " hours", "token": " tokens"}
MARKUP = str.maketrans({mark: f"\\{mark}" for mark in "*_{}^`[]<>"})
SIGNS = {";": ", ", ">=": " \N{GREATER-THAN OR EQUAL TO} ", "<=": " \N{LESS-THAN OR EQUAL TO} "}
ELSEWHERE = "What the text says"


def page(rows: pd.DataFrame) -> str:
    """All cards but those of the long series, below the paper's figures, tables and propositions in their order.

    Args:
        rows: of the ledger, for all seeds.
    """
    read = reading_records()
    shown = rows[~is_series(rows)]
    series = sources()[rows["id"][is_series(rows)].unique()].value_counts()
    return "\n".join(line for section in _sections(shown) for line in _section(*section, read, series))


def _sections(rows: pd.DataFrame) -> list[tuple[str, str, str, pd.DataFrame]]:
    """Title, source, what is ours beside it, and rows of each section.

    What the paper prints twice stands where it does so last.
    """
    source, sections = rows["id"].map(sources()), []
    for place in index.places().drop_duplicates("source", keep="last").itertuples():
        beside = index.links(f"{place.figures} {place.tables}".split())
        sections.append((f"{place.printed}: {place.what}", place.source, beside, rows[source == place.source]))
    rest = rows[~source.isin(index.places()["source"])]
    return [section for section in [*sections, (ELSEWHERE, "", "", rest)] if len(section[-1])]


def _section(title: str, source: str, beside: str, rows: pd.DataFrame, read: Read, series: pd.Series) -> list[str]:
    made = [card(claim, list(part.itertuples()), read) for claim, part in rows.groupby("id", sort=False)]
    points = series.get(source, 0)
    about = [f"Ours: {beside}."] if beside else []
    about += [f"The {points} points of its series are in {{numref}}`tab-series`."] if points else []
    target = [f"({index.label(source)})="] if source else []
    return [*target, f"## {title}", "", *([" ".join(about), ""] if about else []), *made]


def card(claim: str, rows: Sequence[tuple], read: Read) -> str:
    """A claim's card, from its rows of the ledger, as named tuples."""
    row = next(row for row in rows if row.profile == SETTLED)
    (profile, lines), said = drawn(claim, read), short(row.verdict)
    shown = next(row for row in rows if row.profile == profile)
    runs = picture(lines, (shown.predicted_low, shown.predicted_high)) if lines else None
    epochs = ", best epochs" if shown.judged == "best" else ""
    parts = [
        f"**The paper:** {_sentence(claim)}. **Verdict:** {_plain(shown.verdict)}.",
        _reached(row),
        *(_ours(row) for row in rows if row.seeds),
        *([f"Run by run, {_whose(shown)}{epochs}:", runs.figure] if runs else []),
        counted(lines),
        _made(claim, shown, spent(lines), any("sampler" in rows for line in lines for rows in line.runs)),
    ]
    if runs:
        numbers = f"data:text/csv;charset=utf-8,{quote(runs.csv())}"
        parts[-1] += f' <a download="{claim}.csv" href="{numbers}">Every seed\'s number as CSV</a>'
    colour = COLOURS[group(row.verdict)]
    body = "\n\n".join(filter(None, parts))
    return f":::{{dropdown}} {{bdg-{colour}}}`{said}` {heading(claim)}\n:name: claim-{claim}\n\n{body}\n:::\n"


def heading(claim: str) -> str:
    """A claim in a line."""
    known = claims().loc[claim]
    return f"{_plain(readable(claim))}: {_plain(worded(known['paper_value']) + UNITS.get(known['unit'], ''))}"


def _sentence(claim: str) -> str:
    """A claim with its task and what is measured."""
    known = claims().loc[claim]
    tasks = re.sub(r"\w+", lambda name: TASKS.get(name[0], name[0]), known["task"]).replace("/", ", ")
    return ", ".join(filter(None, [_plain(tasks), METRICS.get(known["metric"], ""), heading(claim)]))


def _plain(text: str) -> str:
    """Text of a table as MyST that shows just this text."""
    for sign, shown in SIGNS.items():
        text = text.replace(sign, shown)
    return " ".join(text.split()).translate(MARKUP)


def _reached(row: tuple) -> str:
    """Whether our best recipe comes up to a number whose recipe the paper states in part; "" for others."""
    return f"**Can the method reach it by our recipe?** {_plain(row.reached)}." if isinstance(row.reached, str) else ""


def _ours(row: tuple) -> str:
    """Ours under a profile, in a sentence."""
    said = [] if pd.isna(row.last) else [KINDS[row.id].ours(row)]
    if row.judged == "best":
        said.append(f"best epochs {row.best:.1f}")
    return f"**Ours, {_whose(row)}:** {', '.join([*said, f'{row.seeds} seeds'])}."


def _whose(row: tuple) -> str:
    """The recipe of a row's models; those that rewarded runs on graphs start from are of ours under both profiles."""
    return "our own recipe" if row.verdict.endswith(": it is of our recipe") else recipe(row.profile)


def _made(claim: str, row: tuple, hours: float, rewarded: bool) -> str:
    """The command, what the runs took, and where the claim is read from them."""
    parts = [f"Made by `{row.command}`."] if isinstance(row.command, str) else []
    if hours:
        parts.append(f"These runs took {hours:.2f} core-hours{', without their starts' if rewarded else ''}.")
    return " ".join([*parts, f"Defined in {{source}}`{_defined(claim)}`."])


def _defined(claim: str) -> str:
    """The file, and the line where there is one, that says how a claim is measured."""
    module = next(name for name, part in PARTS.items() if claim in part)
    lines = (Path(study.__file__).parent / f"{module}.py").read_text().splitlines()
    found = [f"#L{number}" for number, line in enumerate(lines, 1) if f'"{claim}":' in line]
    return f"cot2lib/study/{module}.py{''.join(found[:1])}"


def drawn(claim: str, read: Read) -> tuple[str, list[Drawn]]:
    """The runs of a claim, and their profile: the one that settles it, or else `quick`."""
    kind = KINDS[claim]
    if not isinstance(kind, OfRuns):
        return SETTLED, []
    settled = kind.drawn(claim, SETTLED, read)
    return (SETTLED, settled) if settled else ("quick", kind.drawn(claim, "quick", read))


def counted(lines: Sequence[Drawn]) -> str:
    """How many runs some lines were to have, and what became of those that they do not show; "" where unknown."""
    parts = [(rows, line.values.index) for line in lines for rows in line.runs if {"id", "planned"} <= set(rows)]
    if not parts:
        return ""
    seen = {frozenset(rows["id"]): int(rows["planned"].iloc[0]) for rows, _ in parts if len(rows)}
    known = frozenset().union(*seen)
    lacking = sum(planned - len(ids) for ids, planned in seen.items())
    used = {run for rows, seeds in parts for seed, run in rows["id"].items() if seed in seeds}
    return (
        f"**Runs:** {len(known) + lacking} planned; {lacking} failed or not made, {len(known & diverged())} diverged, "
        f"{len(known - used)} left out."
    )


@cache
def diverged() -> frozenset[str]:
    """Recorded runs with a training loss that is no number. Before its first step a run has none."""
    points = records.shipped()[1]
    return frozenset(points["id"][(points["step"] > 0) & ~np.isfinite(points["loss"])])


def spent(lines: Sequence[Drawn]) -> float:
    """Core-hours of the runs in some lines, each counted once; 0 unless they are known of all, and on CPUs alone."""
    runs = [rows for line in lines for rows in line.runs]
    if not runs or any(not {"id", "hours", "device"} <= set(rows) for rows in runs):
        return 0.0
    each = pd.concat([rows[["id", "hours", "device"]] for rows in runs]).drop_duplicates("id")
    return float(each["hours"].sum()) if each["device"].str.startswith("cpu").all() else 0.0
