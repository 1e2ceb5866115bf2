"""The pages by Sphinx alone: Jupyter Book writes its `conf.py`, and the newest Sphinx that pip finds builds it.

    python release/sphinx.py    # with .venv set up; chapters show outputs where `make chapters` has made them

It says early what a new Sphinx, theme or Python breaks. Jupyter Book itself asks for an older Sphinx, so it comes
without its requirements: pages use its extension and not its command.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "sphinx"
# What Jupyter Book would bring: the extensions that its conf.py names.
EXTENSIONS = (
    "sphinx", "myst-nb", "sphinx-external-toc", "sphinx-book-theme", "sphinx-togglebutton", "sphinx-copybutton",
    "sphinx-thebe", "sphinx-comments", "sphinx-design", "sphinxcontrib-bibtex", "sphinx-jupyterbook-latex",
    "sphinx-multitoc-numbering", "linkify-it-py",
)  # fmt: skip


def unpinned() -> list[str]:
    """The names of what the extra `book` lists, without versions and without Jupyter Book."""
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["book"]
    names = [re.match(r"[\w-]+", text)[0] for text in extra]
    return [name for name in names if name != "jupyter-book"]


def environment() -> Path:
    """The Python of an environment with the newest of everything."""
    subprocess.run([sys.executable, "-m", "venv", FOLDER / "venv"], check=True)
    python = FOLDER / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *EXTENSIONS, *unpinned(), ROOT], check=True)
    subprocess.run([*pip, "--no-deps", "jupyter-book<2"], check=True)
    return python


def main() -> int:
    """Write conf.py, install, build; returns the exit status of Sphinx."""
    python, conf = environment(), ROOT / "conf.py"
    subprocess.run([ROOT / ".venv" / "bin" / "jupyter-book", "config", "sphinx", ROOT], check=True)
    try:
        command = [python, "-m", "sphinx", "-b", "html", ROOT, FOLDER / "html", "--keep-going"]
        return subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT / "book" / "_ext")}).returncode
    finally:
        conf.unlink()  # it belongs to _config.yml, which says the same


if __name__ == "__main__":
    sys.exit(main())
