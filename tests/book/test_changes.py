"""What readers may change in each chapter (`book/chapters.yml`)."""

from pathlib import Path

import pytest
import yaml

from cot2lib.study import chapters

ROOT = Path(__file__).parents[2]
KNOWN = yaml.safe_load((ROOT / "book" / "chapters.yml").read_text())


@pytest.mark.parametrize("chapter", KNOWN)
def test_what_is_to_be_changed_is_a_parameter_with_another_value(chapter):
    source, asked = chapters.chapter_path(chapter), KNOWN[chapter]["change"]
    assert chapters.checked(source, {name: repr(value) for name, value in asked.items()}) == asked
    assert all(chapters.defaults(source)[name] != value for name, value in asked.items())
    assert KNOWN[chapter]["see"].endswith("?"), "a finding must come from records; a question may be typed"
