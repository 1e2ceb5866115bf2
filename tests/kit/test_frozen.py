from dataclasses import dataclass

import pytest

from cot2lib.kit.frozen import KINDS, Frozen, from_data, to_data
from cot2lib.thoughts import MTS


@dataclass(frozen=True)
class Data(Frozen):
    count: int = 1


def test_a_class_keeps_its_tag_under_another_name(monkeypatch):
    monkeypatch.setattr("cot2lib.kit.frozen.KINDS", dict(KINDS))
    old = dataclass(frozen=True)(type("Old", (Data,), {"__module__": "cot2lib.made_up"}))
    new = dataclass(frozen=True)(type("New", (Data,), {"__module__": "cot2lib.made_up", "tag": "Old"}))
    below = dataclass(frozen=True)(type("Below", (new,), {"__module__": "cot2lib.made_up"}))
    assert new(2).id == old(2).id != below(2).id and to_data(below(2))["kind"] == "Below"
    assert type(from_data(to_data(old(2)))) is new


def test_two_classes_of_one_tag_are_refused():
    with pytest.raises(AssertionError, match="have one tag; name them apart"):
        type(MTS.__name__, (Data,), {"__module__": "cot2lib.made_up"})
