"""Numbered tables and measured sentences, for the book, Jupyter and Colab alike.

An object displays itself with several representations. The book takes the Markdown one, in which a
table is a MyST directive with a number, a caption and a name to refer to; other front ends take the
plain HTML one.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Table:
    """A data frame shown as a numbered table; strings may hold MyST math and roles."""

    data: pd.DataFrame
    name: str
    caption: str
    digits: int = 2

    @property
    def cells(self) -> pd.DataFrame:
        """The entries as strings."""
        return self.data.map(lambda value: cell(value, self.digits))

    def markdown(self) -> str:
        """The MyST directive."""
        rows = [list(self.data.columns), *self.cells.to_numpy().tolist()]
        right = [pd.api.types.is_numeric_dtype(dtype) for dtype in self.data.dtypes]
        rows.insert(1, ["---:" if number else ":---" for number in right])
        lines = ["| " + " | ".join(str(entry).replace("|", "\\|") for entry in row) + " |" for row in rows]
        return "\n".join([f":::{{table}} {self.caption}", f":name: {self.name}", "", *lines, ":::"])

    def html(self) -> str:
        """A plain table with its caption above."""
        body = self.cells.to_html(index=False, border=0, escape=True)
        return f"<p><em>{html.escape(self.caption)}</em></p>{body}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        plain = f"{self.caption}\n{self.cells.to_string(index=False)}"
        return {"text/markdown": self.markdown(), "text/html": self.html(), "text/plain": plain}


@dataclass(frozen=True)
class Text:
    """Markdown made from measured numbers."""

    text: str

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/markdown": self.text, "text/plain": self.text}


def table(data: pd.DataFrame, name: str, caption: str, digits: int = 2) -> Table:
    """A numbered table; `name` starts with "tab-", columns are headings as they should read."""
    return Table(data.reset_index(drop=True), name, caption, digits)


def text(*sentences: str) -> Text:
    """Sentences holding measured numbers."""
    return Text(" ".join(sentences))


def bullets(sentences: Sequence[str]) -> Text:
    """One measured sentence per line of a list."""
    return Text("\n".join(f"- {sentence}" for sentence in sentences))


def cell(value, digits: int = 2) -> str:
    """A table entry: nothing for a missing value, `digits` decimals for a float."""
    if value is None or (np.isscalar(value) and pd.isna(value)):
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)
