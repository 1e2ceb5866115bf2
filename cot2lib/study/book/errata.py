"""The list of errata by place in the paper and by chapter, made from the text of their page."""

import re

import pandas as pd

from cot2lib.study.report import table

ENTRY = re.compile(
    r"(?:^\((?P<label>[\w-]+)\)=\n)?^### (?P<title>.+)\n\n\*(?P<place>[^*]+)\.\*"
    r"(?P<text>(?s:.*?))(?=^\(\S+\)=|^##|\Z)",
    re.M,
)
CHAPTER = re.compile(r"\.\./notebooks/(\w+)\.ipynb")
CAPTION = "Errata, their places in the paper or its code, and linked chapters."


def label(entry: re.Match) -> str:
    """Where an entry stands on its page."""
    return entry["label"] or "erratum-" + re.sub(r"\W+", "-", entry["title"].lower())


def entries(page: str) -> pd.DataFrame:
    """A row for each entry: its place in the paper, a link to it, and links to the chapters that its text names."""
    return pd.DataFrame(
        {
            "place": entry["place"],
            "what is wrong": f"{{ref}}`{entry['title']} <{label(entry)}>`",
            "chapters": ", ".join(
                f"{{doc}}`/notebooks/{name}`" for name in dict.fromkeys(CHAPTER.findall(entry["text"]))
            ),
        }
        for entry in ENTRY.finditer(page)
    )


def filled(page: str) -> str:
    """The page with a label at each entry, and the list in the place of the line `% entries`."""
    listed = table(entries(page), "tab-errata", CAPTION).markdown()
    labelled = ENTRY.sub(lambda entry: entry[0] if entry["label"] else f"({label(entry)})=\n{entry[0]}", page)
    return labelled.replace("% entries", listed)
