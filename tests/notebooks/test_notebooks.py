"""Every chapter keeps the rules that its readers and tools rely on."""

import ast
import json
import math
import re
from pathlib import Path

import pytest
import yaml

from cot2lib.errors import CoT2Error, SpecError
from cot2lib.study import chapters

ROOT = Path(__file__).parents[2]
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
    assert len(tagged) == 1
    names = set()
    for node in ast.parse(source(tagged[0])).body:
        names.add(node.targets[0].id)
        ast.literal_eval(node.value)
    assert names >= EVERYWHERE


def test_first_cell_is_the_title_and_colab_can_install(path):
    first, second = cells(path)[:2]
    assert first["cell_type"] == "markdown" and source(first).startswith("# ")
    assert "remove-cell" in tags(second) and CONFIG["repository"]["url"] in source(second)


def test_checks_fold_their_code_and_show_what_they_find(path):
    """A reader sees the lines that hold, and the code that decides them where it is asked for."""
    code = [c for c in cells(path, "code") if c["id"] != "imports"]
    checking = [c for c in code if re.search(r"\bcheck\(", source(c))]
    assert checking and all("hide-input" in tags(c) for c in checking)
    assert not [
        c["id"] for c in checking if {"hide-output", "hide-cell", "remove-cell", "remove-output"} & set(tags(c))
    ]


def test_parameters_are_checked_before_anything_else(path):
    """In the first cell after them, against defaults that are theirs, which a check asks for."""
    code = [source(c) for c in cells(path, "code")]
    parameters = next(place for place, c in enumerate(cells(path, "code")) if "parameters" in tags(c))
    assert f'begin("{path.stem}", globals())' in code[parameters + 1]
    known = chapters.defaults(path)
    assert known == chapters.EVERYWHERE | chapters.PARAMETERS[path.stem]
    assert chapters.check(path.stem, known) and chapters.check(path.stem, known | {"device": "cpu"})
    assert not any(chapters.check(path.stem, known | {name: another(known[name])}) for name in set(known) - {"device"})


def another(value):
    """Another value of a parameter."""
    if isinstance(value, list):
        return value[:-1] or [value[0] + 1]
    others = {"quick": "paper", "paper": "quick", None: 2.0}
    return others[value] if value in others else value + type(value)(1) if not isinstance(value, bool) else not value


def wrong(name, value):
    """Values that a parameter with this default cannot have."""
    known = {"profile": ["foo"], "device": ["abacus"]}.get(name, [])
    by_type = {
        str: [3, ["a"], None], bool: [-1, 1, "yes", [True]], int: [[1], "many", 1.5, True, None, 2**80],
        float: [[1.0], "much", None, math.nan, math.inf], list: [4, "1", ["x"], [[1]], [], [2**80], None],
    }  # fmt: skip
    twice = [value * 2] if isinstance(value, list) and name not in chapters.REPEATING else []
    return known + twice + by_type.get(type(value), [[1], "c", math.nan])


def test_a_chapter_refuses_what_the_runner_refuses(path):
    """Whatever runs it: a wrong value ends in one sentence before anything is computed."""
    known = chapters.defaults(path)
    (code,) = (source(c) for c in cells(path, "code") if c["id"] == "imports")
    code = compile(code.partition("  # refuses")[0], path.name, "exec")
    for name, default in known.items():
        for value in wrong(name, default):
            with pytest.raises(CoT2Error) as here:
                exec(code, known | {name: value})
            said = str(here.value)
            assert name in said and said.endswith(".") and "\n" not in said, said
            with pytest.raises(CoT2Error):
                chapters.checked(path, {name: repr(value)})
    with pytest.raises(SpecError, match="parameter 'seeds' is missing"):
        exec(code, {name: value for name, value in known.items() if name != "seeds"})


def test_figures_have_name_caption_and_alt_text_and_are_referred_to(path):
    text = "\n".join(source(c) for c in cells(path, "markdown"))
    code = "\n".join(source(c) for c in cells(path, "code"))
    drawing = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in ("draw", "look")
    }
    assert drawing or path.stem == "ledger"
    for cell in cells(path, "code"):
        shown = cell["metadata"].get("mystnb")
        if shown is None:
            last = ast.parse(source(cell)).body[-1] if source(cell).strip() else None
            called = (
                ast.unparse(last.value.func) if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) else ""
            )
            draws = called.partition(".")[0] in drawing and not called.endswith(".absent")
            assert not draws, f"{called} draws a figure without name and caption"
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


def test_is_in_the_book(path):
    assert f"notebooks/{path.stem}" in (ROOT / "_toc.yml").read_text()
