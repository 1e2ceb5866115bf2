"""Sphinx extension: references by number unpickle each page once. Sphinx does so for each reference."""

from functools import cache

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment


class Kept:
    """An environment whose pages are looked at and not changed."""

    def __init__(self, env: BuildEnvironment):
        self._env = env
        self.get_doctree = cache(env.get_doctree)

    def __getattr__(self, name: str) -> object:
        return getattr(self._env, name)


class Numbered(StandardDomain):
    """Sphinx's domain of labels and numbers."""

    _kept: Kept | None = None

    def resolve_xref(self, env: BuildEnvironment, *about) -> nodes.Element | None:
        """As Sphinx resolves it, after all pages have been read."""
        if self._kept is None:
            self._kept = Kept(env)
        return super().resolve_xref(self._kept, *about)


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    app.add_domain(Numbered, override=True)
    return {"version": "1", "parallel_read_safe": True}
