"""Sphinx extension: chapters are read from `notebooks/`, their outputs from `build/executed/`.

Page names, launch buttons and downloads thus point to the clean sources. A chapter without an executed copy, or with
one whose code differs from the source, is a warning, which fails a strict build. The finding that a figure carries
opens its caption and its alternative text; its numbers become a file. The caption links to it, and to the commands at
the end of the page, which make the page again or with something changed (`book/chapters.yml`). Folded cells that show
nothing are one with the folded cell after them.
"""

import gc
import json
from functools import cache
from pathlib import Path
from shlex import quote

import yaml
from explorer import described
from sphinx.application import Sphinx
from sphinx.util import logging

from cot2lib.study.look import FINDING, NUMBERS

log = logging.getLogger(__name__)
CHAPTERS = Path(__file__).parent.parent / "chapters.yml"
PLAYED = """**Try two recorded models:** {models}.

```{{raw}} html
<div class="two-minds" data-task="{task}"></div><script src="../_static/two-minds.js"></script>
```"""  # two models that think side by side, on the task of a chapter
CHANGE = """
**Change something.** {see} [Open in Colab]({colab}) and change the parameters of this chapter there, or run:

```bash
{command}
```
"""
AGAIN = """({place})=
## Run it again
{changed}
:::{{admonition}} How this page was run
:class: dropdown note run-card

Parameters: {parameters}.

Executed in {seconds} s: {facts}.

```bash
{run}{retrained}
```

{{numref}}`tab-commands`, on the page of [all claims](../book/claims.md), lists the commands that train runs,
with their hours.
:::
"""
RETRAINED = """
{run} -p retrain True  # trains runs first, by the quick recipe
{run} -p retrain True -p profile paper  # by the authors' recipe instead"""
FOLDS = {"parameters": "Parameters: change these and run again", "checks": "What is checked"}  # by tag
FIGURE = "The code"
FACTS = ("device", "python", "torch", "cot2lib", "commit", "date")


def setup(app: Sphinx) -> dict:
    gc.disable()  # collecting takes a fifth of the build, and most objects stay
    app.connect("source-read", merge_outputs)
    return {"version": "1", "parallel_read_safe": True}


def merge_outputs(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the outputs of the executed copy into the text of the source notebook."""
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".ipynb":
        return
    path = Path(app.srcdir) / "build" / "executed" / page.name
    app.env.note_dependency(str(path))
    if not path.exists():
        log.warning("no executed copy %s; run `cot2 chapters %s`", path, path.stem, location=docname, type="executed")
        return
    notebook, executed = json.loads(source[0]), json.loads(path.read_text())
    done = {cell.get("id"): cell for cell in executed["cells"]}
    stale = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        match = done.get(cell["id"])
        if match is None or "".join(match["source"]) != "".join(cell["source"]):
            stale.append(cell["id"])
        else:
            cell["outputs"], cell["execution_count"] = match["outputs"], match["execution_count"]
            if "check(" in "".join(cell["source"]):  # whose sentences wrap; what is printed in columns does not
                cell["metadata"].setdefault("tags", []).append("checks")
            complete_figure(cell, path.stem, Path(app.outdir) / "_static" / "numbers")
    notebook["cells"] = joined(notebook["cells"])
    for cell in notebook["cells"]:
        if "hide-input" in (tags := cell["metadata"].get("tags", [])):
            prompt = next((words for tag, words in FOLDS.items() if tag in tags), FIGURE)
            cell["metadata"].setdefault("mystnb", {})["code_prompt_show"] = prompt
    if stale:
        log.warning("%s was executed from other code (cells %s); run it again", path.name, ", ".join(stale),
                    location=docname, type="executed")  # fmt: skip
    notebook["metadata"]["language_info"] = executed["metadata"].get("language_info", {"name": "python"})
    add_commands(app, path.stem, notebook["cells"], executed["metadata"].get("cot2", {}))
    source[0] = json.dumps(notebook)


def complete_figure(cell: dict, chapter: str, folder: Path) -> None:
    """Let a figure's caption and alternative text begin with its finding; link its numbers and how to remake it."""
    shown, carried = cell["metadata"].get("mystnb", {}), {}
    for data in (output.get("data", {}) for output in cell["outputs"]):
        carried |= {kind: "".join(data.pop(kind)) for kind in (FINDING, NUMBERS) if kind in data}
    if not (figure := shown.get("figure")):
        return
    if found := carried.get(FINDING):
        figure["caption"] = f"**{found}** {figure['caption']}"
        shown["image"]["alt"] = f"{found} {shown['image']['alt']}".replace("\N{NO-BREAK SPACE}", " ")
    if numbers := carried.get(NUMBERS):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{figure['name']}.csv").write_text(numbers, encoding="utf-8", newline="\n")
        figure["caption"] += f' <a class="table-csv" download href="../_static/numbers/{figure["name"]}.csv">CSV</a>'
    figure["caption"] += f' <a class="table-csv" href="#{remake(chapter)}">Remake</a>'


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


@cache
def chapters() -> dict[str, dict]:
    """What a reader may change in each chapter, and which models think below its first figure."""
    return yaml.safe_load(CHAPTERS.read_text())


def add_commands(app: Sphinx, chapter: str, cells: list[dict], made: dict) -> None:
    """Say below a page how to make it, again or otherwise; put two minds below its first figure."""
    app.env.note_dependency(str(CHAPTERS))
    known = chapters().get(chapter, {})
    run = f"papermill notebooks/{chapter}.ipynb out.ipynb"
    evidence = [cell for cell in cells if cell.get("id") != "parameters"]
    changed = ""
    if known:
        command = f"{run} {given(known['change'])}"
        changed = CHANGE.format(see=known["see"], colab=in_colab(app, chapter), command=command)
    text = AGAIN.format(
        place=remake(chapter),
        changed=changed,
        parameters=", ".join(f"`{name} = {value!r}`" for name, value in made.get("parameters", {}).items()),
        seconds=made.get("seconds", "?"),
        facts="; ".join(f"{key} {made[key]}" for key in FACTS if key in made),
        run=run,
        retrained=RETRAINED.format(run=run) if any("retrain" in "".join(cell["source"]) for cell in evidence) else "",
    )
    cells.append({"cell_type": "markdown", "id": "again", "metadata": {}, "source": text})
    if "play" in known:
        played = PLAYED.format(models=described(known["play"]), task=known["play"])
        first = next(place for place, cell in enumerate(cells) if "figure" in cell["metadata"].get("mystnb", {}))
        cells.insert(first + 1, {"cell_type": "markdown", "id": "minds", "metadata": {}, "source": played})


def in_colab(app: Sphinx, chapter: str) -> str:
    """The address at which Colab opens a chapter, as the theme's button does."""
    theme = app.config.html_theme_options
    source = f"{theme['repository_url'].removeprefix('https://github.com')}/blob/{theme['repository_branch']}"
    return f"{theme['launch_buttons']['colab_url']}/github{source}/notebooks/{chapter}.ipynb"


def given(parameters: dict) -> str:
    """Papermill's options for parameters."""
    options = [
        f"-y {quote(f'{name}: {value}')}" if isinstance(value, list) else f"-p {name} {quote(str(value))}"
        for name, value in parameters.items()
    ]
    return " ".join(options)
