"""What tests of the component `two-minds` share: its place on a page, and what a reader does there."""

import importlib
import sys
from pathlib import Path

BOOK = Path(__file__).parents[2] / "book"


def extension(name):
    """A Sphinx extension of the book, as a module."""
    sys.path.insert(0, str(BOOK / "_ext"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


COMPONENT = '<div class="two-minds" data-task="{}"></div><script src="../_static/two-minds.js"></script>'
STYLED = '<link rel="stylesheet" href="../_static/book.css">' + COMPONENT
ERRORS = """<script>
  window.errors = [];
  window.addEventListener("error", (event) => window.errors.push(String(event.message || event.target.src)), true);
  for (const kind of ["error", "warn"]) console[kind] = (...words) => window.errors.push(words.join(" "));
</script>"""
HELPERS = """
  const root = document.querySelector(".two-minds");
  const find = (name) => root.querySelector(`[name=${name}]`);
  const status = () => root.querySelector("[role=status]").textContent;
  const set = (name, value) => {
    find(name).value = value;
    find(name).dispatchEvent(new Event("input", { bubbles: true }));
    return status();
  };
  const until = async (met) => { while (!met()) await new Promise((go) => setTimeout(go, 20)); };
  const start = () => until(() => root.querySelector("svg"));
  const mind = (name) => root.querySelector(`[data-mind=${name}]`);
  const discs = (name, step) => [...mind(name).querySelectorAll(`[role=button][data-step="${step}"]`)];
  const disc = (name, step, label) =>
    discs(name, step).find((one) => one.getAttribute("aria-label").includes(`: ${label}, `));
  const click = (one) => one.dispatchEvent(new Event("click", { bubbles: true }));
  const typed = { bubbles: true, cancelable: true };
  const press = (one, key) => one.dispatchEvent(new KeyboardEvent("keydown", { key, ...typed }));
  const question = () => root.querySelector(".asked").textContent;
"""
