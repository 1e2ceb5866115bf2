"""Sphinx extension: drop the Thebe scripts that Jupyter Book adds to every page although Thebe is off."""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True}


def drop_thebe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Keep every script of the page but those that mention Thebe."""
    context["script_files"] = [script for script in context.get("script_files", []) if not _is_thebe(script)]


def _is_thebe(script) -> bool:
    text = f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {}).get('body', '')}"
    return "thebe" in text.lower()
