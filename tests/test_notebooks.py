"""Every chapter keeps the rules that its readers and tools rely on."""

import ast
import contextlib
import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
EVERYWHERE = {"profile", "device", "seeds", "retrain"}

pytestmark = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def cells(path, kind=None):
    return [c for c in json.loads(path.read_text())["cells"] if kind in (None, c["cell_type"])]


def source(cell):
    return "".join(cell["source"])


def tags(cell):
    return cell["metadata"].get("tags", [])


def test_sources_are_clean(path):
    notebook = json.loads(path.read_text())
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert all(not c["outputs"] and c["execution_count"] is None for c in cells(path, "code"))
    ids = [c["id"] for c in cells(path)]
    assert len(set(ids)) == len(ids)
    assert not re.search(r"/home/|/root/|/work/|/tmp/", path.read_text())


def test_parameters_are_literals_with_the_common_names(path):
    tagged = [c for c in cells(path, "code") if "parameters" in tags(c)]
    assert len(tagged) == 1 and tagged[0] is not None
    names = set()
    for node in ast.parse(source(tagged[0])).body:
        names.add(node.targets[0].id)
        ast.literal_eval(node.value)
    assert names >= EVERYWHERE


def test_first_cell_is_the_title_and_colab_can_install(path):
    first, second = cells(path)[:2]
    assert first["cell_type"] == "markdown" and source(first).startswith("# ")
    assert "remove-cell" in tags(second) and CONFIG["repository"]["url"] in source(second)


def test_last_cell_checks(path):
    last = cells(path)[-1]
    assert last["cell_type"] == "code" and "assert " in source(last)


def test_checks_know_the_defaults(path):
    """What the last cell compares parameters with is what the parameters cell says, for every live parameter."""
    parameters = next(source(c) for c in cells(path, "code") if "parameters" in tags(c))
    values, last = {}, source(cells(path)[-1])
    exec(parameters, values)
    assert all(re.search(rf"\b{name}\b", last) for name in values if name.startswith("live_"))
    for node in ast.parse(last).body:
        if isinstance(node, ast.Assign):
            with contextlib.suppress(NameError):
                exec(compile(ast.Module([node], []), path.name, "exec"), values)
    assert all(values.get(name, True) for name in ("defaults", "early", "shipped"))


def test_figures_have_name_caption_and_alt_text_and_are_referred_to(path):
    text = "\n".join(source(c) for c in cells(path, "markdown"))
    code = "\n".join(source(c) for c in cells(path, "code"))
    drawing = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("cot2lib.study.figures")
        for alias in node.names
    }
    assert drawing or path.stem == "ledger"
    for cell in cells(path, "code"):
        shown = cell["metadata"].get("mystnb")
        if shown is None:
            last = ast.parse(source(cell)).body[-1] if source(cell).strip() else None
            called = (
                ast.unparse(last.value.func) if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else ""
            )
            assert called.partition(".")[0] not in drawing, f"{called} draws a figure without name and caption"
            continue
        name, caption, alt = shown["figure"]["name"], shown["figure"]["caption"], shown["image"]["alt"]
        assert re.fullmatch(r"fig-[a-z0-9-]+", name) and len(caption) > 40 and len(alt) > 40
        assert f"{{numref}}`{name}`" in text
        assert not re.search(r"\d+\.\d+ ?%", caption), "measured numbers do not belong in a caption"


def test_tables_are_referred_to(path):
    text = "\n".join(source(c) for c in cells(path, "markdown"))
    for cell in cells(path, "code"):
        for name in re.findall(r'report\.table\(.*?"(tab-[a-z0-9-]+)"', source(cell), re.DOTALL):
            folded = {"hide-cell", "hide-output"} & set(tags(cell))
            assert folded or f"{{numref}}`{name}`" in text, name


def test_no_titles_in_figures_and_no_progress_bars(path):
    code = "\n".join(source(c) for c in cells(path, "code"))
    assert "set_title" not in code and "suptitle" not in code and "tqdm" not in code


def test_is_in_the_book(path):
    assert f"notebooks/{path.stem}" in (ROOT / "_toc.yml").read_text()
