"""Sphinx extension: what the first page says of the records, drawn from them at build time.

Directives: `first` (figure of what was found, and four sentences), `scoreboard` (figure of every measured number, and
table of verdicts), `findings` (claims in sentences, each with its verdict), `halves` (what half of a recipe gives on
graphs), `rebuilt` (which parts of the paper are), `abstract` (verdicts on what the abstract says), `paper-index` (the
paper's figures, tables and propositions in its order), `commands` (what trains the runs of each chapter),
`by-mixtures` (predicted outcomes that depend on the decoder).
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cot2lib.study import report
from cot2lib.study.book import first_page, index
from cot2lib.study.book.draw import scoreboard
from cot2lib.study.book.ledger import halves_table, of_records, total, verdict_counts
from cot2lib.study.controls import draw as controls
from cot2lib.study.controls import outcomes
from cot2lib.study.controls.runs import SEEDS
from cot2lib.study.prosqa import runs as whole

ALT = (
    "Dot plots, one for each table or figure of the paper, with one row per measured number: an upright mark for "
    "the paper's value beside our means with 95 % intervals, one colour and marker per recipe."
)
CAPTION = (
    "Every number of the paper that our records measure so far: the paper's value (upright mark) and ours, mean over "
    "seeds with its 95 % interval."
)
VERDICTS = (
    "The paper's numbers and claims by group and verdict. A number stated twice counts once, and so does each Pass@k "
    "series, which comes from one model."
)
HALVES = (
    "Accuracies on graphs (%), where the paper states half of its recipe: no decay, and nothing of dropout. Does that "
    "half give the paper's number, if our graphs and 50 passes stand for the paper's? Does our recipe, which "
    "was found with CoT2 alone, come up to it? Means of the last epoch with 95 % intervals."
)
REBUILT = (
    "Claims of the paper by part: judged, recorded with the quick recipe alone, or without a run. Every point of a "
    "printed series counts here."
)
ABSTRACT = "What the abstract says, the claims that it rests on, and their verdicts, which lead to cards."
INDEX = (
    "The paper from end to end: what stands beside each figure, table and proposition, and how many of its claims "
    "agree with our runs, differ, cannot be told or were not run."
)
COMMANDS = "What trains the runs of each chapter, and how many hours of one core the recorded runs took."

FOUND_ALT = (
    "Learning curves in two panels, signed sums and ProsQA: continuous thoughts rise above discrete ones in both. "
    "Bars at the right edge are the paper's values."
)
FOUND = (
    "Thin lines are seeds, bars at the right edge the paper's final accuracies (*d* = 32 on both tasks). On the right "
    "our models are larger than the paper's (*d* = {d_model}) and answer other questions."
)
FIRST_CONTROLS = "5cf5852"  # the commit that made the first runs of the controls
MIXTURES = (
    "Outcomes that differ if every model that thinks feeds itself mixtures, with 95 % intervals, and the verdicts "
    "that change: right (\N{CHECK MARK}), wrong (\N{MULTIPLICATION SIGN}), cannot be told (?)."
)
DRAWN = "build/book"


def figure(name: str, file: str, alt: str, caption: str) -> list[str]:
    """The lines of a figure that is drawn below the book's folder."""
    return [f":::{{figure}} /{DRAWN}/{file}", f":name: {name}", f":alt: {alt}", "", caption, ":::", ""]


def table(data: pd.DataFrame, name: str, caption: str, **options) -> list[str]:
    """The lines of a numbered table."""
    return report.table(data, name, caption, **options).markdown().splitlines()


def scored(root: Path) -> list[str]:
    """The figure, which is drawn below `root`, and the table of verdicts."""
    shown = figure("fig-scoreboard", "scoreboard.png", f"{total(of_records())} {ALT}", CAPTION)
    _file(root, "scoreboard.png").write_bytes(scoreboard(of_records()).png())
    return [*shown, total(of_records()), "", *table(verdict_counts(of_records()), "tab-verdicts", VERDICTS)]


def first(root: Path) -> list[str]:
    """What was found: the figure, which is drawn below `root`, and a sentence for each part of the paper."""
    drawn = first_page.curves()
    _file(root, "finding.svg").write_text(drawn.svg())
    found = FOUND.format(d_model=whole.TRIALS[0].d_model)
    sentences = [[":::{container} finding", sentence, ":::", ""] for sentence in first_page.sentences()]
    shown = figure("finding-figure", "finding.svg", FOUND_ALT, f"{drawn.finding} {found} {first_page.favoured()}")
    return [*shown, "::::{container} findings", *(line for lines in sentences for line in lines), "::::", ""]


def by_mixtures() -> list[str]:
    """When the decoder of the controls was chosen, and the outcomes that depend on it."""
    rows, edited = outcomes.read(SEEDS)
    before = rows["commit"].str.startswith(FIRST_CONTROLS).sum()
    when = (
        "We chose this rule on 25 November (commits 8d78304 and c0ee34d), after the first "
        f"{before} runs (commit {FIRST_CONTROLS})."
    )
    return [when, "", *table(controls.moved_by_mixtures(rows, edited), "tab-by-mixtures", MIXTURES)]


def _file(root: Path, name: str) -> Path:
    """Where a figure of the first page is drawn."""
    (root / DRAWN).mkdir(parents=True, exist_ok=True)
    return root / DRAWN / name


LINES: dict[str, Callable[[Path], list[str]]] = {
    "first": first,
    "scoreboard": scored,
    "findings": lambda _: [f"- {finding.text(of_records())}" for finding in index.FINDINGS],
    "halves": lambda _: table(halves_table(of_records()), "tab-halves", HALVES),
    "rebuilt": lambda _: table(index.rebuilt(of_records()), "tab-rebuilt", REBUILT),
    "abstract": lambda _: table(index.abstract(of_records()), "tab-abstract", ABSTRACT),
    "paper-index": lambda _: table(index.paper_index(of_records()), "tab-paper", INDEX),
    "commands": lambda _: table(index.commands(), "tab-commands", COMMANDS, digits=1),
    "by-mixtures": lambda _: by_mixtures(),
}


class Drawn(SphinxDirective):
    """MyST that is made from the records, by the directive's name."""

    def run(self) -> list[nodes.Node]:
        """Parse it in place."""
        self.env.note_reread()
        container = nodes.container()
        lines = LINES[self.name](Path(self.env.srcdir))
        self.state.nested_parse(StringList(lines, source=self.name), self.content_offset, container)
        return container.children


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    for name in LINES:
        app.add_directive(name, Drawn)
    return {"version": "1", "parallel_read_safe": True}
