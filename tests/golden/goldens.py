"""What must not move unseen: the ledger, the ids of every sweep, measured tables, and what chapters show, as text.

`make results` writes the files next to this one from the records and the executed chapters; `test_golden.py` compares.
It also puts what mechanisms print into the sources of chapters, where nbval compares it. A change is read as a diff
before it is committed.
"""

import json
import re
from pathlib import Path

import pandas as pd

from cot2lib.study import sweeps as registry
from cot2lib.study.book.ledger import of_records
from cot2lib.study.look import FINDING, NUMBERS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXECUTED = ROOT / "build" / "executed"
CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
SETTLED = ["id", "profile", "seeds", "last", "last_low", "last_high", "best", "split_half", "verdict"]
MOST_LINES = 120  # of one figure's numbers; of longer ones, say learning curves, every so-many-th
RUNS = re.compile(r"\.(runs\.csv|curves\.xz|weights\.\w+|models\.\w+)$")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def ledger() -> str:
    """A row for each claim and profile."""
    return of_records()[SETTLED].sort_values(["id", "profile"]).to_csv(index=False, float_format="%.6g")


def sweeps() -> str:
    """The ids of every chapter's runs."""
    rows = [
        (chapter, profile, run.id)
        for chapter in registry.CHAPTERS
        for profile in ("paper", "quick")
        for run in registry.of_chapter(chapter, profile)
    ]
    return pd.DataFrame(sorted(rows), columns=["chapter", "profile", "id"]).to_csv(index=False)


def measured() -> str:
    """Checksums of the shipped tables that are measured and not merged from runs."""
    manifest = json.loads((ROOT / "cot2lib/study/records/manifest.json").read_text())
    files = [(name, checksum) for name, checksum in manifest.items() if "." in name and not RUNS.search(name)]
    return pd.DataFrame(sorted(files), columns=["file", "checksum"]).to_csv(index=False)


def shown(chapter: str) -> str:
    """Findings and numbers of a chapter's figures, cells of its tables and lists, but for what it trains here."""
    parts = []
    for cell in json.loads((EXECUTED / f"{chapter}.ipynb").read_text())["cells"]:
        if cell["cell_type"] != "code" or "live" in cell["metadata"].get("tags", []):
            continue
        for output in cell["outputs"]:
            data = output.get("data", {})
            text = "".join(data.get(NUMBERS) or data.get("text/markdown", ""))
            if text:
                finding = "".join(data.get(FINDING, ""))
                parts.append("\n".join([f"# {cell['id']}", *filter(None, [finding]), thinned(text)]) + "\n")
    return "\n".join(parts)


def thinned(text: str) -> str:
    """A long list of numbers by every so-many-th of its lines, below how many there are."""
    head, *lines = text.strip().splitlines()
    if len(lines) <= MOST_LINES:
        return text.strip()
    return "\n".join([head, f"{len(lines)} lines", *lines[:: -(-len(lines) // MOST_LINES)]])


def alike(one: str, other: str) -> bool:
    """Whether two texts have the same words and, to one in a thousand or as printed, the same numbers."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other))
    return all(a == b or abs(float(a) - float(b)) <= max(1e-3 * abs(float(a)), 1e-6) for a, b in pairs)


GOLDEN = {"ledger.csv": ledger, "sweeps.csv": sweeps, "measured.csv": measured}
GOLDEN |= {f"{chapter}.txt": lambda chapter=chapter: shown(chapter) for chapter in CHAPTERS}


def print_into_sources(chapter: str) -> None:
    """Give cells that nbval compares what they printed when the chapter was executed."""
    path = ROOT / "notebooks" / f"{chapter}.ipynb"
    source, executed = (json.loads(file.read_text()) for file in (path, EXECUTED / path.name))
    outputs = {cell["id"]: cell["outputs"] for cell in executed["cells"] if cell["cell_type"] == "code"}
    for cell in source["cells"]:
        if "nbval-check-output" in cell["metadata"].get("tags", []):
            printed = "".join("".join(part["text"]) for part in outputs[cell["id"]])  # in parts as time would have it
            stream = {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
            cell.update(outputs=[stream], execution_count=1)
    path.write_text(json.dumps(source, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for name, made in GOLDEN.items():
        (HERE / name).write_text(made())
    for chapter in CHAPTERS:
        print_into_sources(chapter)
