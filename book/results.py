"""Write the README's answer, counts and picture from the shipped records: `make results`."""

from pathlib import Path

import pandas as pd

from cot2lib.study.book import overview
from cot2lib.study.book.first_page import in_short
from cot2lib.study.book.ledger import of_records
from cot2lib.study.report import bare
from cot2lib.study.tasks import trajectories

PICTURE = Path(__file__).parent / "_static" / "thoughts.svg"
BEGIN, END = "<!-- results -->\n", "<!-- /results -->\n"


def results(rows: pd.DataFrame) -> str:
    """Whether the paper holds, in short, and how many claims have which verdict, as Markdown."""
    table = overview.table(rows)
    table = table.rename(columns={"verdict": "verdicts on the paper's claims"})
    lines = [f"| {' | '.join(map(str, row))} |" for row in [table, ["---"] * len(table.columns), *table.to_numpy()]]
    text = "\n".join([f"**In short.** {bare(in_short())}", "", *lines, ""])
    return text.replace("\N{NO-BREAK SPACE}", " ")


def put(path: Path, text: str) -> None:
    """Write text between the two marks of a file."""
    before, _, rest = path.read_text().partition(BEGIN)
    path.write_text(before + BEGIN + text + END + rest.partition(END)[2])


if __name__ == "__main__":
    put(Path("README.md"), results(of_records()))
    PICTURE.write_text(trajectories([2, 1, 4], [1, 8]).svg())
