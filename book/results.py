"""Draw the README's verdicts and picture from the shipped records: `make results`."""

import sys
from pathlib import Path

import pandas as pd

from cot2lib.study.book import index
from cot2lib.study.book.ledger import of_records, total, verdict_counts
from cot2lib.study.tasks.draw import trajectories

PICTURE = Path(__file__).parent / "_static" / "thoughts.svg"
BEGIN, END = "<!-- results -->\n", "<!-- /results -->\n"


def results(rows: pd.DataFrame) -> str:
    """A table of the book's first findings, and how many claims have which verdict, as Markdown."""
    counts = verdict_counts(rows).groupby("group", observed=True)
    told = {name: ", ".join(f"{row.claims} {row.verdict}" for row in part.itertuples()) for name, part in counts}
    said = "; ".join(f"{name}: {each}" for name, each in told.items())
    lines = [f"| {' | '.join([finding.sentence, *finding.found(rows)])} |" for finding in index.FINDINGS]
    head = ["| the paper's claim | verdict | ours, authors' recipe |", "| --- | --- | --- |"]
    text = "\n".join([*head, *lines, "", f"{total(rows)} ({said}.)", ""])
    return text.replace("\N{NO-BREAK SPACE}", " ")


def put(path: Path, text: str) -> None:
    """Write text between the two marks of a file."""
    before, _, rest = path.read_text().partition(BEGIN)
    path.write_text(before + BEGIN + text + END + rest.partition(END)[2])


if __name__ == "__main__":
    put(Path(sys.argv[1] if len(sys.argv) > 1 else "README.md"), results(of_records()))
    PICTURE.write_text(trajectories([2, 1, 4], [1, 8]).svg())
