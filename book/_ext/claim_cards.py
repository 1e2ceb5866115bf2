"""Sphinx extension: claim cards and the letter's numbers, made from the records at build time, and links to sources.

The page `book/claims` holds a line `% cards`, which the cards take the place of. `book/letter` holds names of numbers.
The role `source` links to a file at the commit that the book is built from.
"""

from collections.abc import Callable

from docutils import nodes
from sphinx.application import Sphinx

from cot2lib.kit.provenance import commit
from cot2lib.study.book import cards, letter
from cot2lib.study.book.ledger import of_records

MADE: dict[str, Callable[[str], str]] = {
    "book/claims": lambda page: page.replace("% cards", cards.page(of_records())),
    "book/letter": letter.filled,
}


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put cards and numbers into their pages."""
    if docname in MADE:
        app.env.note_reread()
        source[0] = MADE[docname](source[0])


def revision(options: dict) -> str:
    """The commit, or the branch of the repository where the commit does not hold the files as they are."""
    made = commit()
    return options["repository_branch"] if made == "unknown" or made.endswith("-dirty") else made


def linked(name, rawtext, text, lineno, inliner, options=None, content=()):
    """A link to a file of the repository; what follows # is a place in it."""
    options = inliner.document.settings.env.config.html_theme_options
    at = f"{options['repository_url']}/blob/{revision(options)}/{text}"
    shown = nodes.literal("", text.partition("#")[0])
    return [nodes.reference(rawtext, "", shown, refuri=at)], []


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("source-read", fill)
    app.add_role("source", linked)
    return {"version": "1", "parallel_read_safe": True}
