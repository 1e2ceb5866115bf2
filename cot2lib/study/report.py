"""Numbered tables and sentences with measured numbers, for the book, Jupyter and Colab.

The book takes the Markdown of an object, where a table is a MyST directive with a number, a caption and a name. Other
front ends take its plain HTML.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Table:
    """A data frame that is shown as a numbered table; entries and caption may hold MyST math and roles.

    The text refers to it by `name`, which starts with "tab-"; floats have so many `digits`.
    """

    data: pd.DataFrame
    name: str
    caption: str
    digits: int = 2

    @property
    def cells(self) -> pd.DataFrame:
        return self.data.map(lambda value: cell(value, self.digits))

    def markdown(self) -> str:
        """The table as a MyST directive. Numbers are aligned right."""
        rows = [list(self.data.columns), *self.cells.to_numpy().tolist()]
        right = [pd.api.types.is_numeric_dtype(dtype) for dtype in self.data.dtypes]
        rows.insert(1, ["---:" if number else ":---" for number in right])
        lines = ["| " + " | ".join(_entry(str(entry)) for entry in row) + " |" for row in rows]
        return "\n".join([f":::{{table}} {self.caption}", f":name: {self.name}", "", *lines, ":::"])

    def html(self) -> str:
        body = self.cells.map(bare).to_html(index=False, border=0, escape=True)
        return f"<p><em>{html.escape(self.caption)}</em></p>{body}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        plain = f"{self.caption}\n{self.cells.map(bare).to_string(index=False)}"
        return {"text/markdown": self.markdown(), "text/html": self.html(), "text/plain": plain}


@dataclass(frozen=True)
class Folds:
    """Folded tables, one below the other, by the title that opens each."""

    folds: Mapping[str, Table]

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        box = "::::{{dropdown}} {}\n:class-container: fold\n\n{}\n::::"
        opened = "<details><summary>{}</summary>{}</details>"
        return {
            "text/markdown": "\n\n".join(box.format(title, table.markdown()) for title, table in self.folds.items()),
            "text/html": "".join(
                opened.format(html.escape(title), table.html()) for title, table in self.folds.items()
            ),
            "text/plain": "\n\n".join(self.folds),
        }


@dataclass(frozen=True)
class Text:
    """Markdown text that holds measured numbers."""

    text: str

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/markdown": self.text, "text/plain": self.text}


def table(data: pd.DataFrame, name: str, caption: str, digits: int = 2) -> Table:
    """A numbered table of the rows of `data`; its index is dropped. See `Table` for the arguments."""
    return Table(data.reset_index(drop=True), name, caption, digits)


def text(*sentences: str) -> Text:
    return Text(" ".join(sentences))


def bullets(sentences: Sequence[str]) -> Text | None:
    """A list with one sentence per bullet; without sentences nothing, so that a page shows no empty box."""
    return Text("\n".join(f"- {sentence}" for sentence in sentences)) if sentences else None


ROLE = re.compile(r"\{[\w-]+\}`([^`<]*?)(?: <[^`]*>)?`")  # of MyST, whose words a reader sees
HTML = re.compile(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)")  # what begins a tag or an entity
PERCENT = 100.0  # of a share
RECIPES = {"paper": "authors' recipe", "quick": "quick recipe"}


def recipe(profile: str) -> str:
    """The name that readers know a profile by: "paper" alone means the article, so that profile has another one."""
    return RECIPES.get(profile, profile)


def _entry(text: str) -> str:
    """A table entry as MyST: no bar ends it, and nothing outside math and code is taken for HTML."""
    parts = re.split(r"(\$[^$]*\$|`[^`]*`)", text.replace("|", "\\|"))
    return "".join(part if place % 2 else HTML.sub(r"\\\g<0>", part) for place, part in enumerate(parts))


def bare(text: str) -> str:
    """A cell's words where MyST is not read: without roles and escapes."""
    return re.sub(r"\\([^\w\s]|_)", r"\1", ROLE.sub(r"\1", text))


def cell(value, digits: int = 2) -> str:
    """A table entry as text: empty for a missing value, with `digits` decimals for a float."""
    if value is None or value is pd.NA or (np.isscalar(value) and pd.isna(value)):
        return ""
    return f"{value:z.{digits}f}" if isinstance(value, float) else str(value)


def ends(values: Sequence[float] | np.ndarray | pd.Series, digits: int = 1) -> str:
    """The lowest value to the highest; a single one where they read alike, and "" of none."""
    return " to ".join(dict.fromkeys(f"{end(values):z.{digits}f}" for end in (min, max))) if len(values) else ""


def describe(value: float, low: float, high: float, digits: int = 1) -> str:
    """`mean [low, high]`, whose interval stays on one line; the mean alone where there is no interval."""
    shown = [f"{part:z.{digits}f}" for part in (value, low, high)]
    return shown[0] if np.isnan(low) else f"{shown[0]} [{shown[1]},\N{NO-BREAK SPACE}{shown[2]}]"
