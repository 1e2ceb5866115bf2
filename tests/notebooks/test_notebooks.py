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
EVERYWHERE = {"profile", "device", "seeds", "retrain"}


def cells(path, kind="code"):
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def tags(cell):
    return set(cell["metadata"].get("tags", []))


def text(path, kind):
    return "\n".join(source(cell) for cell in cells(path, kind))


def offenders(wrong):
    """Chapters of which something is wrong, with what it is."""
    found = {path.stem: wrong(path) for path in CHAPTERS}
    return {name: what for name, what in found.items() if what}


def test_sources_hold_what_nbval_compares_and_no_other_output():
    """Each chapter has a cell that prints the same everywhere."""

    def wrong(path):
        notebook = json.loads(path.read_text())
        ids = [cell["id"] for cell in notebook["cells"]]
        compared = ["nbval-check-output" in tags(cell) for cell in cells(path)]
        made = [cell["id"] for cell, one in zip(cells(path), compared) if bool(cell["outputs"]) != one]
        made += [] if any(compared) else ["nothing is compared"]
        repeated = [name for name in ids if ids.count(name) > 1]
        kernel = {notebook["metadata"]["kernelspec"]["name"]} - {"python3"}
        return [*made, *repeated, *kernel, *re.findall(r"/home/|/root/|/work/|/tmp/", path.read_text())]

    assert offenders(wrong) == {}


def test_a_chapter_begins_with_its_title_colabs_cell_and_checked_parameters():
    """Parameters are literals with the common names; the first cell after them checks them against their defaults."""
    address, toc = (yaml.safe_load((ROOT / name).read_text()) for name in ("_config.yml", "_toc.yml"))
    for path in CHAPTERS:
        first, second = json.loads(path.read_text())["cells"][:2]
        assert first["cell_type"] == "markdown" and source(first).startswith("# "), path
        assert "remove-cell" in tags(second) and address["repository"]["url"] in source(second), path
        (place,) = (at for at, cell in enumerate(cells(path)) if "parameters" in tags(cell))
        known = chapters.defaults(path)
        assert len(ast.parse(source(cells(path)[place])).body) == len(known) and known.keys() >= EVERYWHERE, path
        assert f'begin("{path.stem}", globals())' in source(cells(path)[place + 1]), path
        assert known == chapters.EVERYWHERE | chapters.PARAMETERS[path.stem], path
        assert chapters.check(path.stem, known) and chapters.check(path.stem, known | {"device": "cpu"}), path
        assert not chapters.check(path.stem, known | {"seeds": [7]}), path
        assert f"notebooks/{path.stem}" in str(toc), path


def test_checks_fold_their_code_and_show_what_they_find():
    """A reader sees the lines that hold, and the code that decides them where it is asked for."""
    hidden = {"hide-output", "hide-cell", "remove-cell", "remove-output"}
    for path in CHAPTERS:
        checking = [cell for cell in cells(path) if cell["id"] != "imports" and re.search(r"\bcheck\(", source(cell))]
        assert checking and all("hide-input" in tags(cell) and not hidden & tags(cell) for cell in checking), path


def wrong(name, value):
    """Values that a parameter with this default cannot have."""
    known = {"profile": ["foo"], "device": ["abacus"]}.get(name, [])
    by_type = {
        str: [3, ["a"], None], bool: [-1, 1, "yes", [True]], int: [[1], "many", 1.5, True, None, 2**80],
        float: [[1.0], "much", None, math.nan, math.inf], list: [4, "1", ["x"], [[1]], [], [2**80], None],
    }  # fmt: skip
    twice = [value * 2] if isinstance(value, list) and name not in chapters.REPEATING else []
    return known + twice + by_type.get(type(value), [[1], "c", math.nan])


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_refuses_what_the_runner_refuses(path):
    """Whatever runs it: a wrong value ends in one sentence before anything is computed."""
    known = chapters.defaults(path)
    (code,) = (source(cell) for cell in cells(path) if cell["id"] == "imports")
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


def test_what_readers_are_asked_to_change_is_a_parameter_with_another_value():
    for chapter, asked in yaml.safe_load((ROOT / "book" / "chapters.yml").read_text()).items():
        path, changed = chapters.chapter_path(chapter), asked["change"]
        assert chapters.checked(path, {name: repr(value) for name, value in changed.items()}) == changed
        assert all(chapters.defaults(path)[name] != value for name, value in changed.items())
        assert asked["see"].endswith("?"), "a finding must come from records; a question may be typed"


def test_a_chapter_shows_its_code():
    """A reader sees the mechanism and the analysis; set-up, captions and checks are folded. The ledger only lists."""

    def seen(path):
        shown = [source(cell) for cell in cells(path) if not {"hide-input", "remove-cell"} & tags(cell)]
        return sum(bool(line.strip()) for code in shown for line in code.splitlines())

    assert offenders(lambda path: path.stem != "ledger" and seen(path) < 40) == {}


def test_figures_have_name_caption_and_alt_text():
    def wrong(path):
        for shown in filter(None, (cell["metadata"].get("mystnb") for cell in cells(path))):
            name, caption, alt = shown["figure"]["name"], shown["figure"]["caption"], shown["image"]["alt"]
            measured = re.search(r"\d+\.\d+ ?%", caption)  # numbers that were measured belong in no caption
            if measured or not re.fullmatch(r"fig-[a-z0-9-]+", name) or min(len(caption), len(alt)) <= 40:
                yield name

    assert offenders(lambda path: [*wrong(path)]) == {}


def test_figures_and_tables_are_referred_to():
    def wrong(path):
        given = [cell["metadata"].get("mystnb", {}) for cell in cells(path)]
        named = [shown["figure"]["name"] for shown in given if shown]
        named += re.findall(r'(?:report|page)\.table\(.*?"(tab-[a-z0-9-]+)"', text(path, "code"), re.DOTALL)
        return [name for name in named if f"{{numref}}`{name}`" not in text(path, "markdown")]

    assert offenders(wrong) == {}
