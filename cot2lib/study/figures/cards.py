"""Claim cards: for each claim of the paper its sentence, verdict, numbers, a small picture and what made them, as MyST.

A picture has a line for each comparison: dots for seeds, a bar for the 95 % interval of their mean, and a diamond for
the paper's number, or for no difference. It is plain SVG in the colours of the page.
"""

import html
from collections.abc import Sequence
from functools import cache
from urllib.parse import quote

import numpy as np
import pandas as pd

from cot2lib.metrics import mean_interval
from cot2lib.specs.profiles import SEEDS
from cot2lib.study.claims import index
from cot2lib.study.claims.kinds import SETTLED, Drawn, OfRuns, Read
from cot2lib.study.claims.ledger import KINDS, is_series, short
from cot2lib.study.claims.printed import claims, readable, sources
from cot2lib.study.report import cell, recipe

BADGES = {
    "reproduced": "success", "holds": "success", "compatible": "info", "partly": "warning",
    "not reproduced": "danger", "refuted": "danger",
}  # fmt: skip
METRICS = {
    "val_accuracy": "validation accuracy", "accuracy": "accuracy", "entropy": "entropy", "mean_length": "mean length",
    "wall_time": "time", "pass_at_k": "Pass@k",
}  # fmt: skip
UNITS = {"%": "\N{NO-BREAK SPACE}%", "h": " hours", "token": " tokens"}
MOST = 12  # lines of a picture
WIDE, LINE, LEFT = 640, 26, 14  # of a picture, in its own units
ELSEWHERE = "Said in the text"


def page(rows: pd.DataFrame, seeds: Sequence[int] = SEEDS) -> str:
    """All cards, in the paper's order below its figures, tables and propositions; `rows` are those of the ledger."""
    read = cache(lambda sample, profile: sample(profile, seeds))
    shown = rows[~is_series(rows)]
    return "\n".join(line for title, about, part in _sections(shown) for line in _section(title, about, part, read))


def _sections(rows: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Title, first line and rows of each section; what the paper prints twice stands where it does so last."""
    source, sections = rows["id"].map(sources()), []
    for place in index.places().drop_duplicates("source", keep="last").itertuples():
        beside = index.links(f"{place.figures} {place.tables}".split())
        title = f"{place.printed}: {place.what}"
        sections.append((title, f"Here: {beside}." if beside else "", rows[source == place.source]))
    rest = rows[~source.isin(index.places()["source"])]
    return [section for section in [*sections, (ELSEWHERE, "", rest)] if len(section[2])]


def _section(title: str, about: str, rows: pd.DataFrame, read: Read) -> list[str]:
    cards = [_card(claim, part.set_index("profile"), read) for claim, part in rows.groupby("id", sort=False)]
    return [f"## {title}", "", about, "", *cards]


def _card(claim: str, rows: pd.DataFrame, read: Read) -> str:
    """A claim's card, from its rows of the ledger by profile."""
    row, said = rows.loc[SETTLED], short(rows.loc[SETTLED, "verdict"])
    colour = BADGES.get(said.split(" if ")[0].split(" but ")[0], "secondary")
    lines = drawn(claim, read)
    parts = [
        f"**The paper:** {sentence(claim)}. **Verdict:** {_escaped(row['verdict'])}.",
        *(_numbers(claim, rows.loc[profile], profile) for profile in rows.index if rows.loc[profile, "seeds"]),
        picture(lines, sentence(claim)) if lines else "",
        _made(row, lines),
    ]
    title = f"{{bdg-{colour}}}`{said}` {heading(claim)}"
    body = "\n\n".join(filter(None, parts))
    return f":::{{dropdown}} {title}\n:name: claim-{claim}\n\n{body}\n:::\n"


def heading(claim: str) -> str:
    """A claim in a line."""
    known = claims().loc[claim]
    said = _escaped(known["paper_value"])
    value = said if known["metric"] == "direction" else f"{said}{UNITS.get(known['unit'], ' ' + known['unit'])}"
    return f"{_escaped(readable(claim))}: {value}"


def sentence(claim: str) -> str:
    """A claim with its task and what is measured."""
    known = claims().loc[claim]
    words = METRICS.get(known["metric"], "")
    return f"{known['task']}, {heading(claim)}{f' ({words})' if words else ''}"


def _escaped(text: str) -> str:
    """Text of a table as MyST: lists with commas, no markup."""
    said = text.replace(";", ", ").replace(">=", "\N{GREATER-THAN OR EQUAL TO}").replace("<=", "\N{LESS-THAN OR EQUAL TO}")
    return said.replace("*", "\\*").replace("_", "\\_").replace("{", "\\{").replace("}", "\\}").replace("^", "\\^")


def _numbers(claim: str, row: pd.Series, profile: str) -> str:
    """Ours under a profile, in a sentence."""
    named = row.rename(None).copy()
    named["id"] = claim
    ours = f"{KINDS[claim].ours(named)}, " if not pd.isna(row["last"]) else ""
    best = f"; best epochs {cell(row['best'])}" if row["judged"] == "best" and not pd.isna(row["best"]) else ""
    return f"**{recipe(profile).capitalize()}:** {ours}{row['seeds']} seeds{best}."


def _made(row: pd.Series, lines: Sequence[Drawn]) -> str:
    """The command, what the runs took, and the numbers to take away."""
    parts = [f"Made by `{row['command']}`."] if isinstance(row["command"], str) else []
    hours = spent(lines)
    if hours:
        parts.append(f"These runs took {hours:.2f} core-hours.")
    if lines:
        parts.append(f'<a download="{row.name}.csv" href="data:text/csv,{quote(table(lines))}">Numbers of each seed (CSV)</a>')
    return " ".join(parts)


def drawn(claim: str, read: Read) -> list[Drawn]:
    """What a claim's runs give: under the profile that settles it, or else under `quick`."""
    kind = KINDS[claim]
    return (kind.drawn(claim, SETTLED, read) or kind.drawn(claim, "quick", read)) if isinstance(kind, OfRuns) else []


def spent(lines: Sequence[Drawn]) -> float:
    """Core-hours of the runs in some lines, each counted once."""
    runs = [rows[["id", "hours"]] for line in lines for rows in line.runs if {"id", "hours"} <= set(rows)]
    return float(pd.concat(runs).drop_duplicates("id")["hours"].sum()) if runs else 0.0


def table(lines: Sequence[Drawn]) -> str:
    """Every seed's value as CSV."""
    columns = ("measured", "seed", "ours", "paper", "unit")
    rows = [
        (line.label, seed, float(value), line.stated, line.unit.name) for line in lines for seed, value in line.values.items()
    ]
    return pd.DataFrame(rows, columns=columns).to_csv(index=False, float_format="%.6g")


def picture(lines: Sequence[Drawn], about: str) -> str:
    """A small SVG of at most `MOST` lines: those with the smallest means, if there are more."""
    kept = sorted(lines, key=lambda line: line.values.mean())[:MOST] if len(lines) > MOST else lines
    place = _axis(kept)
    tall = LINE * len(kept) + 24 + 14 * any(line.label for line in kept) * len(kept)
    drawn = "".join(_line(line, number, tall / len(kept), place) for number, line in enumerate(kept))
    return f'<svg class="claim-picture" viewBox="0 0 {WIDE} {tall}" role="img" aria-label="{html.escape(about)}">{drawn}</svg>'
