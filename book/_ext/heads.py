"""Sphinx extension: a box below the title of each chapter, which says what it takes and where it stands in the paper.

It gives the minutes to read, counted from the text, the seconds to run, the chapters before it, the parts of the paper
that its figures and tables stand beside, with their verdicts, and something to change. Chapters on training let two
models think. `heads.yml` holds what cannot be counted.
"""

import json
import re
from functools import cache
from pathlib import Path
from shlex import quote

import yaml
from sphinx.application import Sphinx

from cot2lib.study.book import index
from cot2lib.study.book.ledger import of_records

HEADS = Path(__file__).parent.parent / "heads.yml"
PLAYED = """
```{{raw}} html
<div class="two-minds" data-task="{}"></div><script src="../_static/two-minds.js"></script>
```"""  # two models that think side by side, on the task of a chapter
PACE = 180  # words of such text that a reader takes in a minute


@cache
def boxes() -> dict[str, dict]:
    """What cannot be counted, by chapter."""
    return yaml.safe_load(HEADS.read_text())


@cache
def parts() -> dict[str, str]:
    """The paper's parts with their verdicts as MyST, by the names of our figures and tables beside them."""
    said = index.paper_index(of_records())["verdicts"]
    return {
        name: f"{place.printed}: {verdicts}" if verdicts else place.printed
        for place, verdicts in zip(index.places().itertuples(), said)
        for name in (*place.figures.split(), *place.tables.split())
    }


def names(notebook: dict) -> set[str]:
    """Figures and tables that a chapter shows."""
    found = {cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") for cell in notebook["cells"]}
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return found | set(re.findall(r"\btab-[\w-]+", "\n".join(code)))


def minutes(notebook: dict) -> int:
    """How long a chapter's text takes to read, its figures aside."""
    words = [word for cell in notebook["cells"] if cell["cell_type"] == "markdown" for word in _text(cell).split()]
    return max(1, round(len(words) / PACE))


def _text(cell: dict) -> str:
    return "".join(cell["source"])


def changed(chapter: str, parameters: dict) -> str:
    """The command that runs a chapter with other parameters."""
    given = [
        f"-y {quote(f'{name}: {value}')}" if isinstance(value, list) else f"-p {name} {quote(str(value))}"
        for name, value in parameters.items()
    ]
    return f"papermill notebooks/{chapter}.ipynb out.ipynb {' '.join(given)}"


def head(chapter: str, notebook: dict, seconds: float | None) -> str:
    """The box, as MyST."""
    known, here = boxes()[chapter], names(notebook)
    before = ", ".join(f"{{doc}}`{name}`" for name in known["needs"]) or "nothing"
    beside = "; ".join(dict.fromkeys(said for name, said in parts().items() if name in here))
    run = f", {seconds:.0f} s to run" if seconds else ""
    return "\n".join(
        [
            ":::{admonition} At a glance",
            ":class: note head",
            f"- **Takes** about {minutes(notebook)} minutes to read{run}; builds on {before}.",
            *([f"- **Beside the paper's** {beside} (rows of other chapters count, too)."] if beside else []),
            f"- **Change this:** {known['see']} `{changed(chapter, known['change'])}`",
            ":::",
            *([PLAYED.format(known["play"])] if "play" in known else []),
        ]
    )


def add(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the box after the first cell; `executed` has left how long the chapter took."""
    chapter = docname.removeprefix("notebooks/")
    if chapter not in boxes():
        return
    app.env.note_dependency(str(HEADS))
    notebook = json.loads(source[0])
    text = head(chapter, notebook, notebook["metadata"].get("cot2", {}).get("seconds"))
    notebook["cells"].insert(1, {"cell_type": "markdown", "id": "head", "metadata": {}, "source": text})
    source[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict:
    """Register with Sphinx, to run after `executed`."""
    app.connect("source-read", add, priority=600)
    return {"version": "1", "parallel_read_safe": True}
