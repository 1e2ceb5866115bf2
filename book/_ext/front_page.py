"""Sphinx extension: what the first page and the page of claims say of the records, drawn from them at build time.

Directives: `curves` (figure of what was found), `in-short` (whether the paper holds), `overview` (the abstract and a
tile for each claim), `counts` (claims by kind and verdict), `glance` (this book beside the paper), `paper-index` (the
paper's figures, tables and propositions in its order), `halves` (what half of a recipe gives on graphs), `commands`
(what trains the runs of each chapter), `by-mixtures` (predicted outcomes that depend on the decoder).
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cot2lib.study import report
from cot2lib.study.book import first_page, index, overview
from cot2lib.study.book.ledger import halves_table, of_records
from cot2lib.study.controls import draw as controls
from cot2lib.study.controls import outcomes
from cot2lib.study.controls.runs import SEEDS
from cot2lib.study.prosqa import runs as whole

COUNTS = (
    "The paper's claims by verdict and kind. Entropies are of single tokens. A number stated twice counts once, as "
    "does a Pass@k series, which comes from one model."
)
GLANCE = "This book beside the paper."
HALVES = (
    "Accuracies on graphs (%), where the paper states half of its recipe: no decay, and nothing of dropout. Does that "
    "half give the paper's number, if our graphs and 50 passes stand for the paper's? Does our recipe, which "
    "was found with CoT2 alone, come up to it? Means of the last epoch with 95 % intervals."
)
INDEX = (
    "The paper from end to end: what stands beside each figure, table and proposition, and how many of its claims "
    "have which verdict."
)
COMMANDS = "What trains the runs of each chapter, and how many hours of one core the recorded runs took."
CURVES = {  # by panel: the file, and what a reader who does not see it reads
    first_page.SUMS: (
        "sums.svg",
        "Learning curves on signed sums: continuous thoughts rise above discrete ones. Bars at the right "
        "edge are the paper's values.",
    ),
    first_page.GRAPHS: (
        "graphs.svg",
        "Learning curves on ProsQA: continuous thoughts come near 100 %, discrete ones stay below. Bars at the right "
        "edge are the paper's values.",
    ),
}
FOUND = (
    "Continuous thoughts learn more than discrete ones. Thin lines are seeds, bars the paper's final accuracies. "
    "Models on the right have *d* = {d_model}, the paper's 32, and other questions."
)
FIRST_CONTROLS = "5cf5852"  # the commit that made the first runs of the controls
MIXTURES = (
    "Outcomes that differ if every model that thinks feeds itself mixtures, with 95 % intervals, and the verdicts "
    "that change: right (\N{CHECK MARK}), wrong (\N{MULTIPLICATION SIGN}), undecided (?)."
)
DRAWN = "build/book"


def table(data: pd.DataFrame, name: str, caption: str, **options) -> list[str]:
    """The lines of a numbered table."""
    return report.table(data, name, caption, **options).markdown().splitlines()


def curves(root: Path) -> list[str]:
    """A figure of two pictures, which are drawn below `root`; `Drawn` puts the second one beside the first."""
    (root / DRAWN).mkdir(parents=True, exist_ok=True)
    for panel, (file, _) in CURVES.items():
        (root / DRAWN / file).write_text(first_page.curves(panel).svg())
    (file, alt), (other, alt_of_other) = CURVES.values()
    caption = f"{FOUND.format(d_model=whole.TRIALS[0].d_model)} {first_page.favoured()}"
    figure = [f"::::{{figure}} /{DRAWN}/{file}", ":name: finding-figure", f":alt: {alt}", "", caption, "::::", ""]
    return [*figure, f":::{{image}} /{DRAWN}/{other}", f":alt: {alt_of_other}", ":::"]


def by_mixtures() -> list[str]:
    """When the decoder of the controls was chosen, and the outcomes that depend on it."""
    rows, edited = outcomes.read(SEEDS)
    before = rows["commit"].str.startswith(FIRST_CONTROLS).sum()
    when = (
        "We chose this rule on 25 November (commits 8d78304 and c0ee34d), after the first "
        f"{before} runs (commit {FIRST_CONTROLS})."
    )
    return [when, "", *table(controls.moved_by_mixtures(rows, edited), "tab-by-mixtures", MIXTURES)]


LINES: dict[str, Callable[[Path], list[str]]] = {
    "curves": curves,
    "in-short": lambda _: [":::{container} in-short", f"**In short.** {first_page.in_short()}", ":::"],
    "overview": lambda _: ["```{raw} html", overview.picture(of_records()), "```"],
    "counts": lambda _: table(overview.table(of_records()), "tab-verdicts", COUNTS),
    "glance": lambda _: table(first_page.glance(), "tab-glance", GLANCE),
    "paper-index": lambda _: table(index.paper_index(of_records()), "tab-paper", INDEX),
    "halves": lambda _: table(halves_table(of_records()), "tab-halves", HALVES),
    "commands": lambda _: table(first_page.commands(), "tab-commands", COMMANDS, digits=1),
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
        if self.name == "curves":
            figure, picture = container.children
            figure.insert(1, picture)
            return [figure]
        return container.children


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    for name in LINES:
        app.add_directive(name, Drawn)
    return {"version": "1", "parallel_read_safe": True}
