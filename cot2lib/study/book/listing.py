"""The ledger as a page shows it: a row a claim, in a folded table for each place of the paper."""

import pandas as pd

from cot2lib.study import report
from cot2lib.study.book import index
from cot2lib.study.book.ledger import is_measured, is_series, ours, verdicts
from cot2lib.study.claims.kinds import SETTLED
from cot2lib.study.judge import group, in_words
from cot2lib.study.printed import plain, readable, sources, value_text

ELSEWHERE = "What the text says"
SERIES = "tab-series"


def sections(rows: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Title, source and rows of each place of the paper that claims something, in its order.

    What the paper prints twice stands where it does so last.
    """
    source, found = rows["id"].map(sources()), []
    for place in index.places().drop_duplicates("source", keep="last").itertuples():
        found.append((f"{place.printed}: {place.what}", place.source, rows[source == place.source]))
    found.append((ELSEWHERE, "", rows[~source.isin(index.places()["source"])]))
    return [section for section in found if len(section[-1])]


def folds(rows: pd.DataFrame) -> report.Folds:
    """All claims of the ledger; the points of a long series in a table of their own, and counted at their place."""
    series, shown, settled = rows[is_series(rows)], [], verdicts(rows).map(group)
    there = set(sources()[series["id"]])
    for title, source, part in sections(rows[~is_series(rows)]):
        here = settled.index.isin(part["id"]) | (sources()[settled.index] == source)
        counts = index.counted(settled[here]) + (", its series below among them" if source in there else "")
        table = report.table(claims_table(part), f"tab-ledger-{index.slug(source)}", f"{title}.")
        shown.append(report.Fold(f"{title} ({counts})", table))
    points = "The paper's Pass@k series point by point; its values stand in the public plotting script"
    return report.Folds([*shown, report.Fold(points, report.table(claims_table(series), SERIES, f"{points}."))])


def claims_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim: what it is about, the paper's value, ours, our seeds, the verdict and why.

    Ours is of the authors' recipe; where that has no run, of the quick one, and said so. Verdicts lead to cards.
    """
    chosen = []
    for _, both in rows.groupby("id", sort=False):
        settled, quick = (both[both["profile"] == profile] for profile in (SETTLED, "quick"))
        found = quick if not is_measured(settled).item() and is_measured(quick).item() else settled
        chosen.append(next(found.assign(verdict=settled["verdict"].item()).itertuples()))
    return pd.DataFrame(
        {
            "claim": [plain(readable(row.id)) for row in chosen],
            "the paper": [value_text(row.id) for row in chosen],
            "ours": [_ours(row) for row in chosen],
            "seeds": [row.seeds or None for row in chosen],
            "verdict": [_verdict(row) for row in chosen],
            "why, or on what condition": [plain(because(row.verdict)) for row in chosen],
        }
    ).astype({"seeds": "Int64"})


def _ours(row: tuple) -> str:
    """Our value, at the best epochs too where these are judged, and with the recipe where it is not the authors'."""
    found = ours(row)
    notes = [f"best epochs {row.best:.1f}"] if row.judged == "best" else []
    if found and row.profile != SETTLED and row.seeds:
        notes.append("quick recipe")
    return f"{found} ({', '.join(notes)})" if found and notes else found


def _verdict(row: tuple) -> str:
    """The verdict as a link to the card, which the points of a series lack."""
    said = group(row.verdict) or "no claim"
    return said if index.in_series(row.id) else f"{{ref}}`{said} <claim-{row.id}>`"


def because(verdict: str) -> str:
    """Why a verdict is what it is, and the condition that it is meant under."""
    words = in_words(verdict)
    return "; ".join(filter(None, [words.why, f"if {words.condition}" if words.condition else ""]))
