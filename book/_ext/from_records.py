"""Sphinx extension: what pages say of the records, made from them at build time, and links to sources.

Directives of `TABLES` have the caption of their table as content. Others: `curves` (figure of what was found),
`in-short` (whether the paper holds), `overview` (the abstract and a tile for each claim). On the page `book/claims`
cards take the place of the line `% cards`, on `book/letter` numbers that of their names, on `book/errata` a list that
of `% entries`. The role `source` links to a file at the commit that the book is built from.
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cot2lib.kit.provenance import commit
from cot2lib.study import report
from cot2lib.study.book import cards, errata, first_page, index, letter, overview
from cot2lib.study.book.ledger import halves_table, of_records
from cot2lib.study.prosqa import runs as prosqa

TABLES: dict[str, tuple[str, Callable[[], pd.DataFrame]]] = {  # the table's name, and what makes its rows
    "counts": ("tab-verdicts", lambda: overview.table(of_records())),  # claims by kind and verdict
    "glance": ("tab-glance", first_page.glance),  # this book next to the paper
    "paper-index": ("tab-paper", lambda: index.paper_index(of_records())),  # the paper from end to end
    "halves": ("tab-halves", lambda: halves_table(of_records())),  # what half of a recipe gives on graphs
    "commands": ("tab-commands", first_page.commands),  # what trains the runs of each chapter
}
CURVES = {  # by panel: the file, and what a reader who does not see it reads
    first_page.SUMS: ("sums", "signed sums: continuous thoughts rise above discrete ones."),
    first_page.GRAPHS: ("graphs", "ProsQA: continuous thoughts come near 100 %, discrete ones stay below."),
}
FOUND = (
    "These models learn better with continuous than with discrete thoughts. Thin lines are seeds, "
    "bars the paper's accuracies. The ProsQA models drawn have *d* = {d_model}; the paper's have *d* = 32 and "
    "answer other questions."
)
DRAWN = "build/book"
FILLED: dict[str, Callable[[str], str]] = {
    "book/claims": lambda page: page.replace("% cards", cards.page(of_records())),
    "book/errata": errata.filled,
    "book/letter": letter.filled,
}


def curves(root: Path, caption: str) -> list[str]:
    """A figure of two pictures, which are drawn below `root`; `Drawn` puts the second one into it."""
    (root / DRAWN).mkdir(parents=True, exist_ok=True)
    made = []
    for panel, (name, seen) in CURVES.items():
        (root / DRAWN / f"{name}.svg").write_text(first_page.curves(panel).svg())
        alt = f":alt: Learning curves on {seen} Bars at the right edge are the paper's values."
        made.append((f"/{DRAWN}/{name}.svg", alt))
    (file, alt), (other, alt_of_other) = made
    caption = f"{FOUND.format(d_model=prosqa.whole('cot2').model.d_model)} {first_page.favoured()}"
    figure = [f"::::{{figure}} {file}", ":name: finding-figure", alt, "", caption, "::::", ""]
    return [*figure, f":::{{image}} {other}", alt_of_other, ":::"]


LINES: dict[str, Callable[[Path, str], list[str]]] = {
    "curves": curves,
    "in-short": lambda *_: [":::{container} in-short", f"**In short.** {first_page.in_short()}", ":::"],
    "overview": lambda *_: ["```{raw} html", overview.picture(of_records()), "```"],
}


class Drawn(SphinxDirective):
    """MyST that is made from the records, by the directive's name."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        container, caption = nodes.container(), " ".join(self.content)
        if self.name in TABLES:
            name, rows = TABLES[self.name]
            lines = report.table(rows(), name, caption, digits=1).markdown().splitlines()
        else:
            lines = LINES[self.name](Path(self.env.srcdir), caption)
        self.state.nested_parse(StringList(lines, source=self.name), self.content_offset, container)
        if self.name == "curves":
            figure, picture = container.children
            figure.insert(1, picture)
            return [figure]
        return container.children


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname in FILLED:
        app.env.note_reread()
        source[0] = FILLED[docname](source[0])


def linked(name, rawtext, text, lineno, inliner, options=None, content=()):
    """A link to a file of the repository; what follows # is a place in it."""
    options, made = inliner.document.settings.env.config.html_theme_options, commit()
    if made == "unknown" or made.endswith("-dirty"):  # a commit that does not hold the files as they are
        made = options["repository_branch"]
    at = f"{options['repository_url']}/blob/{made}/{text}"
    shown = nodes.literal("", text.partition("#")[0])
    return [nodes.reference(rawtext, "", shown, refuri=at)], []


def setup(app: Sphinx) -> dict:
    for name in [*TABLES, *LINES]:
        app.add_directive(name, Drawn)
    app.connect("source-read", fill)
    app.add_role("source", linked)
    return {"version": "1", "parallel_read_safe": True}
