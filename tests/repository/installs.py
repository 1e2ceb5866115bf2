"""Whether the requirements tell the truth: install them into a clean environment and use what is there.

    python tests/repository/installs.py floors                   # the lowest versions that pyproject.toml allows
    python tests/repository/installs.py newest                   # the newest that pip finds
    python tests/repository/installs.py newest torch==2.13.0     # ... but for these
    python tests/repository/installs.py dist/some.whl            # that wheel, without extras, as locked
    python tests/repository/installs.py .binder/environment.yml  # pip's part of an environment, and postBuild

For the first two, a wheel is installed without extras and used outside the checkout: every module, the README's
Python, `cot2`, and every chapter as Colab runs it, with the extras that its first cell asks for. In an environment
`postBuild` runs, and papermill executes a chapter. All without a GPU. Takes many minutes, gigabytes and the internet.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHAPTER = "notebooks/tasks.ipynb"  # that papermill executes
# The first with wheels for a Python, where that is above the floor.
FIRST = {"3.13": {"torch": "2.5.0", "numpy": "2.1.0", "pandas": "2.2.3", "scipy": "1.14.1", "matplotlib": "3.9.2"}}

IMPORTS = """
import importlib, pkgutil, cot2lib
for module in pkgutil.walk_packages(cot2lib.__path__, "cot2lib."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
CELLS = """
import json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
"""


class Clean:
    """An environment without packages in a folder, a copy of the checkout beside it, and what failed there."""

    def __init__(self, folder: Path):
        self.folder, self.failed = folder, []
        self.checkout = folder / "checkout"
        left = shutil.ignore_patterns(".git", ".venv", ".mypy_cache", "build", "_build", "*.egg-info", "__pycache__")
        shutil.copytree(ROOT, self.checkout, ignore=left)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
            "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder / "venv"),
            "COT2_STORE": str(folder / "store"),
            "MPLBACKEND": "agg",
        }

    def run(self, name: str, *command: str, cwd: Path | None = None) -> bool:
        """Run a command, outside the checkout if not told otherwise, and say whether it worked."""
        began = time.perf_counter()
        streams = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        done = subprocess.run(command, cwd=cwd or self.folder, env=self.environ, **streams)
        print("FAILS" if done.returncode else "works", f"{time.perf_counter() - began:5.0f} s ", name, flush=True)
        if done.returncode:
            self.failed.append(name)
            print(*done.stdout.splitlines()[-30:], sep="\n")
        return not done.returncode

    def install(self, *arguments: str, cwd: Path | None = None) -> None:
        """With pip; ends here if that fails."""
        said = f"pip install {' '.join(arguments)}"
        if not self.run(said, "python", "-m", "pip", "install", "-q", *arguments, cwd=cwd):
            sys.exit(1)


def floors(python: str = f"3.{sys.version_info.minor}") -> list[str]:
    """The lowest version of each requirement that a Python can have, extras included but for the tools."""
    extras = [group for extra, group in PROJECT["optional-dependencies"].items() if extra not in ("book", "dev")]
    texts = [text for group in [PROJECT["dependencies"], *extras] for text in group]
    lowest = dict(found.groups() for text in texts if (found := re.fullmatch(r"([\w-]+)>=([\d.]+)", text)))
    lowest |= FIRST.get(python, {})
    return [f"{name}=={version}" for name, version in lowest.items()]


def asked(chapter: Path) -> str:
    """The extras that a chapter's first cell of code installs, as `graphs,llm`."""
    first = next(cell for cell in json.loads(chapter.read_text())["cells"] if cell["cell_type"] == "code")
    return re.search(r"cot2lib(?:\[([\w,]+)\])? @ ", "".join(first["source"]))[1] or ""


def pip_part(path: Path) -> list[str]:
    """What pip installs of a conda environment."""
    _, _, part = path.read_text().partition("- pip:\n")
    return [line.partition(" #")[0].strip().removeprefix("- ") for line in part.splitlines()]


def try_wheel(clean: Clean, pins: list[str]) -> None:
    """The wheel under pins: first without extras, then with those that chapters ask for."""
    (clean.folder / "pins.txt").write_text("\n".join(pins))
    clean.run("wheel", "python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", ".", str(clean.checkout))
    wheel = str(next(clean.folder.glob("*.whl")))
    pinned = ("--only-binary", ":all:", "-c", "pins.txt")
    try_bare(clean, wheel, *pinned)
    there = ""
    for chapter in sorted(ROOT.glob("notebooks/*.ipynb"), key=lambda path: (asked(path), path)):
        if asked(chapter) != there:
            there = asked(chapter)
            clean.install(*pinned, f"{wheel}[{there}]")
        clean.run(chapter.stem, "python", "-c", CELLS, str(chapter))


def try_bare(clean: Clean, wheel: str, *options: str) -> None:
    """A wheel without extras, outside the checkout."""
    clean.install(*options, wheel)
    clean.run("every module", "python", "-c", IMPORTS)
    for snippet in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL):
        clean.run("README", "python", "-c", snippet)
    clean.run("cot2 list", "cot2", "list")
    clean.run("cot2 ledger --csv", "cot2", "ledger", "--csv", "ledger.csv")


def try_environment(clean: Clean, path: str, pins: list[str]) -> None:
    """Pip's part of an environment, Binder's last step, and a chapter."""
    (clean.checkout / "pins.txt").write_text("\n".join(pins))
    (clean.checkout / "pip.txt").write_text("\n".join(pip_part(ROOT / path)))
    clean.install("-c", "pins.txt", "-r", "pip.txt", cwd=clean.checkout)
    clean.run("postBuild", "bash", ".binder/postBuild", cwd=clean.checkout)
    clean.run("pip check", "python", "-m", "pip", "check")
    clean.run(CHAPTER, "papermill", CHAPTER, str(clean.folder / "out.ipynb"), cwd=clean.checkout)


def main(what: str, *pins: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        clean = Clean(Path(folder))
        if what.endswith(".yml"):
            try_environment(clean, what, list(pins))
        elif what.endswith(".whl"):
            try_bare(clean, str(Path(what).resolve()), "-c", str(ROOT / "constraints.txt"))
        else:
            try_wheel(clean, [*pins, *{"floors": floors, "newest": list}[what]()])
        subprocess.run(["python", "-m", "pip", "freeze"], env=clean.environ, check=True)
    print("Python", sys.version.split()[0], *clean.failed and ("FAILS:", *clean.failed))
    return bool(clean.failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
