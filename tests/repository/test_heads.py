import importlib.util
import json
import re
from pathlib import Path

import pytest
import yaml

from cot2lib.study import chapters

ROOT = Path(__file__).parents[2]
BOXES = yaml.safe_load((ROOT / "book" / "heads.yml").read_text())
ORDER = [
    Path(chapter["file"]).name for chapter in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"][0]["chapters"]
]


@pytest.fixture(scope="module")
def heads():
    spec = importlib.util.spec_from_file_location("heads", ROOT / "book" / "_ext" / "heads.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_chapter_has_a_box_and_builds_on_earlier_ones():
    assert list(BOXES) == ORDER
    for place, chapter in enumerate(ORDER):
        assert set(BOXES[chapter]["needs"]) <= set(ORDER[:place]), chapter
        assert BOXES[chapter]["see"].endswith("?"), "a finding must come from records; a question may be typed"


@pytest.mark.parametrize("chapter", ORDER)
def test_what_is_to_be_changed_is_a_parameter_with_another_value(chapter):
    source = chapters.chapter_path(chapter)
    asked = BOXES[chapter]["change"]
    assert chapters.checked(source, {name: repr(value) for name, value in asked.items()}) == asked
    assert all(chapters.defaults(source)[name] != value for name, value in asked.items())


def test_minutes_are_counted_and_figures_found(heads):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["word " * 400]},
        {"cell_type": "code", "metadata": {"mystnb": {"figure": {"name": "fig-curves"}}}, "source": ["'tab-speed'"]},
        {"cell_type": "markdown", "metadata": {}, "source": ["tab-other " * 140]},
    ]
    assert heads.minutes({"cells": cells}) == 3 and heads.minutes({"cells": []}) == 1
    assert heads.names({"cells": cells}) - {None} == {"fig-curves", "tab-speed"}


def test_a_box_says_what_stands_beside_the_chapter(heads):
    notebook = json.loads((ROOT / "notebooks" / "budget.ipynb").read_text())
    box = heads.head("budget", notebook, 12.4)
    assert "12 s to run; builds on {doc}`tasks`, {doc}`csft`." in box
    assert re.search(r"Figure 2c: \{ref\}`.*<claims-fig-emb_k_bar>`; Figure 4: \{ref\}", box)
    assert "Figure 3:" not in box and "s to run" not in heads.head("budget", notebook, None)
    command = "papermill notebooks/budget.ipynb out.ipynb -p live_d_model 16 -y 'live_budgets: [1, 2, 8]'"
    assert f"`{command}`" in box
