"""Sphinx extension: the directive `scoreboard`, what was found so far, drawn from the records at build time."""

from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cot2lib.study import report
from cot2lib.study.claims.ledger import ledger, verdict_counts
from cot2lib.study.figures.ledger import scoreboard

ALT = (
    "Dot plot with one row per measured number of the paper: a black mark for the paper's value beside our means "
    "with 95 % intervals, one colour and marker per profile."
)

VERDICTS = (
    "How many of the paper's numbers and claims have which verdict so far. A number stated twice counts once; "
    "the points of its long Pass@k series are left out."
)


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.add_directive("scoreboard", Scoreboard)
    return {"version": "1", "parallel_read_safe": True}


class Scoreboard(SphinxDirective):
    """A figure of every measured number and a table of verdicts."""

    def run(self) -> list[nodes.Node]:
        rows = ledger()
        drawn = Path(self.env.srcdir) / "build" / "book" / "scoreboard.png"
        drawn.parent.mkdir(parents=True, exist_ok=True)
        scoreboard(rows).savefig(drawn)
        lines = [
            ":::{figure} /build/book/scoreboard.png",
            ":name: fig-scoreboard",
            f":alt: {ALT}",
            "",
            "Every number of the paper that our records measure so far: the paper's value (black) and ours, mean over "
            "seeds with its 95 % interval.",
            ":::",
            "",
            *report.table(verdict_counts(rows), "tab-verdicts", VERDICTS).markdown().splitlines(),
        ]
        self.env.note_reread()
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source="scoreboard"), self.content_offset, container)
        return container.children
