"""Sphinx extension: chapters are read from `notebooks/`, their outputs from `build/executed/`.

Page names, launch buttons and downloads thus point to the clean sources. A chapter without an executed
copy, or with one whose code differs from the source, is a warning, which fails a strict build. The finding that a
figure carries opens its caption and its alternative text; its numbers become a file. The caption links to it, and to
the commands that make the figure again. Folded cells that show nothing are one with the folded cell after them.
"""

import gc
import json
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from cot2lib.study import check, report
from cot2lib.study.look import FINDING, NUMBERS

log = logging.getLogger(__name__)
CHECKED = tuple(f"{word}: " for word in check.WORDS)  # how a check begins a line


def setup(app: Sphinx) -> dict:
    """Register with Sphinx."""
    gc.disable()  # collecting takes a fifth of the build, and most objects stay
    app.add_config_value("executed_dir", "build/executed", "env")
    app.connect("source-read", merge_outputs)
    app.connect("env-purge-doc", forget_numbers)
    app.connect("env-merge-info", join_numbers)
    app.connect("build-finished", write_numbers)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True}


def executed_path(app: Sphinx, docname: str) -> Path | None:
    """Where the executed copy of a chapter should be; None for other documents."""
    source = Path(app.env.doc2path(docname))
    if source.suffix != ".ipynb":
        return None
    return Path(app.srcdir) / app.config.executed_dir / source.name


def outdated(app: Sphinx, env, added, changed, removed) -> list[str]:
    """Chapters whose executed copy is newer than the page."""
    pages = []
    for docname in env.found_docs - added - removed:
        path = executed_path(app, docname)
        if path and path.exists() and path.stat().st_mtime * 1e6 > env.all_docs.get(docname, 0):
            pages.append(docname)
    return pages


def merge_outputs(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the outputs of the executed copy into the text of the source notebook."""
    path = executed_path(app, docname)
    if path is None:
        return
    if not path.exists():
        log.warning("no executed copy %s; run `cot2 chapters %s`", path, path.stem, location=docname, type="executed")
        return
    app.env.note_dependency(str(path))
    notebook, executed = json.loads(source[0]), json.loads(path.read_text())
    done, both = {cell.get("id"): cell for cell in executed["cells"]}, shows_both(executed["cells"])
    stale = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        match = done.get(cell["id"])
        if match is None or "".join(match["source"]) != "".join(cell["source"]):
            stale.append(cell["id"])
        else:
            cell["outputs"], cell["execution_count"] = match["outputs"], match["execution_count"]
            mark_checks(cell)
            open_with_finding(cell)
            offer_numbers(app, docname, cell)
            offer_commands(path.stem, cell)
    notebook["cells"] = joined(notebook["cells"])
    if stale:
        log.warning("%s was executed from other code (cells %s); run it again", path.name, ", ".join(stale),
                    location=docname, type="executed")  # fmt: skip
    notebook["metadata"]["language_info"] = executed["metadata"].get("language_info", {"name": "python"})
    notebook["metadata"]["cot2"] = executed["metadata"].get("cot2", {})
    notebook["cells"].insert(1, run_card(path.stem, notebook["metadata"]["cot2"], both))
    source[0] = json.dumps(notebook)


def kept(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """Numbers by page and figure."""
    if not hasattr(env, "cot2_numbers"):
        env.cot2_numbers = {}
    return env.cot2_numbers


def forget_numbers(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """A page that is read again offers its numbers anew."""
    kept(env).pop(docname, None)


def join_numbers(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    """What another process has read."""
    kept(env).update(kept(other))


def open_with_finding(cell: dict) -> None:
    """Let a figure's caption and alternative text begin with what the figure was found to show."""
    found = [text for output in cell["outputs"] if (text := "".join(output.get("data", {}).pop(FINDING, "")))]
    shown = cell["metadata"].get("mystnb", {})
    if found and "figure" in shown:
        shown["figure"]["caption"] = f"**{found[0]}** {shown['figure']['caption']}"
        shown["image"]["alt"] = f"{found[0]} {shown['image']['alt']}".replace("\N{NO-BREAK SPACE}", " ")


def mark_checks(cell: dict) -> None:
    """Tell pages which output is sentences of checks, so that it wraps; what is printed in columns does not."""
    lines = "".join("".join(output.get("text", "")) for output in cell["outputs"]).splitlines()
    if lines and all(line.startswith(CHECKED) for line in lines):
        cell["metadata"].setdefault("tags", []).append("checks")


def offer_numbers(app: Sphinx, docname: str, cell: dict) -> None:
    """A link in the caption of a figure whose output holds its numbers; they become a file when all is built."""
    shown = cell["metadata"].get("mystnb", {}).get("figure")
    found = [text for output in cell["outputs"] if (text := output.get("data", {}).pop(NUMBERS, None))]
    if shown is None or not found:
        return
    kept(app.env).setdefault(docname, {})[shown["name"]] = "".join(found[0])
    shown["caption"] += f' <a class="table-csv" download href="../_static/numbers/{shown["name"]}.csv">CSV</a>'


def write_numbers(app: Sphinx, error: Exception | None) -> None:
    """The numbers of all figures, as files of the built book."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / "numbers"
    folder.mkdir(parents=True, exist_ok=True)
    for figures in kept(app.env).values():
        for name, text in figures.items():
            (folder / f"{name}.csv").write_text(text, encoding="utf-8", newline="\n")


def offer_commands(chapter: str, cell: dict) -> None:
    """A link in a figure's caption to the chapter's commands."""
    if "figure" in cell["metadata"].get("mystnb", {}):
        link = f'<a class="table-csv" href="#{remake(chapter)}">Remake</a>'
        cell["metadata"]["mystnb"]["figure"]["caption"] += f" {link}"


def remake(chapter: str) -> str:
    """The place on a page where a chapter's commands stand."""
    return f"remake-{chapter.replace('_', '-')}"


def joined(cells: list[dict]) -> list[dict]:
    """The cells of a page; folded code without output, but for the parameters, is put before the next folded code."""
    left: list[dict] = []
    for cell in cells:
        last = left[-1] if left else {}
        if is_folded(last) and not last["outputs"] and is_folded(cell):
            cell["source"] = ["".join(last["source"]), "\n\n", "".join(cell["source"])]
            left.pop()
        left.append(cell)
    return left


def is_folded(cell: dict) -> bool:
    """Whether a cell is code that a page folds, and none that a reader is to change."""
    return "hide-input" in (tags := cell.get("metadata", {}).get("tags", [])) and "parameters" not in tags


def shows_both(cells: list[dict]) -> bool:
    """Whether figures of a chapter show runs of both recipes, by their numbers."""
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    numbers = "".join("".join(data.get(NUMBERS, "")) for data in outputs)
    return all(recipe in numbers for recipe in report.RECIPES.values())


def run_card(chapter: str, made: dict, both: bool) -> dict:
    """A folded box that says how the page was made, and how to make it again.

    Args:
        chapter: its name.
        made: what its run has left.
        both: whether its figures show both recipes; a run trains one.
    """
    given = made.get("parameters", {})
    parameters = ", ".join(f"`{name} = {value!r}`" for name, value in given.items())
    keys = ("device", "python", "torch", "cot2lib", "commit", "date")
    facts = "; ".join(f"{key} {made[key]}" for key in keys if key in made)
    commands = [f"papermill notebooks/{chapter}.ipynb out.ipynb"]
    if "retrain" in given:
        commands.append(f"{commands[0]} -p retrain True  # trains its runs first{', by the quick recipe' * both}")
    if both:
        commands.append(f"{commands[0]} -p retrain True -p profile paper  # those of the authors' recipe instead")
    counted = "retrain" in given and chapter != "gsm8k"  # whose runs the table does not have
    cost = "\n\nHow many hours of one core runs take: {numref}`tab-commands`." * counted
    shell = "\n".join(commands)
    text = (
        f"({remake(chapter)})=\n:::{{admonition}} How this page was run\n:class: dropdown note run-card\n\n"
        f"Parameters: {parameters}.\n\nExecuted in {made.get('seconds', '?')} s: {facts}.\n\n"
        f"```bash\n{shell}\n```{cost}\n:::\n"
    )
    return {"cell_type": "markdown", "id": "run-card", "metadata": {}, "source": text}
