"""The published questions: what they are, files that are none, and downloads."""

import json
import sys
from pathlib import Path

import pytest
import torch
from builders import QUESTIONS, walk_counts

from cot2lib.errors import SpecError
from cot2lib.specs import from_data, to_data
from cot2lib.specs.profiles import spec
from cot2lib.tasks import prosqa as module
from cot2lib.tasks import variants
from cot2lib.tasks.prosqa import fetch, published


def test_the_published_file_is_what_settings_say():
    task = published(QUESTIONS, naming="age")
    into, out = variants.degrees(task)
    there, counts = into + out > 0, walk_counts(task)
    rows = torch.arange(task.size)
    ways = torch.stack(counts, 1)[rows, task.graphs.hops, task.options[:, 0]]
    found = {
        "nodes": there.sum(1),
        "edges": into.sum(1),
        "sources": (there & (into == 0)).sum(1),
        "one way (%)": 100.0 * (ways == 1),
        "frontier 1": (counts[1] > 0).sum(1),
        "frontier 3": (counts[3] > 0).sum(1),
    }
    expected = [22.8, 36.3, 2.51, 56.3, 2.9, 6.7]
    assert [float(part.double().mean()) for part in found.values()] == pytest.approx(expected, abs=0.06)
    (younger, older), (few, many) = (values.double().T for values in (task.options, into.gather(1, task.options)))
    assert (younger > older).double().mean() > 0.6, "the target is mostly the younger option"
    assert ((few < many).double() + (few == many) / 2).mean() > 0.66, "and the one with fewer parents"


# Files


def changed(**fields):
    questions = json.loads(QUESTIONS.read_text())
    return json.dumps([questions[0] | fields, *questions[1:]])


def test_published_refuses_a_wrong_file(tmp_path):
    path = tmp_path / "prosqa.json"
    for content, says in (
        (QUESTIONS.read_text()[:1000], r"prosqa\.json is no published ProsQA file .*; download it again"),
        ("[" * 100_000, "is no published ProsQA file"),
        ("{}", "is no published ProsQA file"),
        ("[1]", "is no published ProsQA file"),
        (json.dumps([{"edges": []}]), "is no published ProsQA file .*idx_to_symbol"),
        (changed(steps=["x"] * 7), "prompts have no room for .* or 7 steps"),
        (changed(idx_to_symbol=["x"] * 29), "no room for 29 nodes"),
    ):
        path.write_text(content)
        with pytest.raises(SpecError, match=says):
            published(path)
    with pytest.raises(SpecError, match=r"none\.json cannot be read .*fetch\(\) returns, which downloads one"):
        published(tmp_path / "none.json")


def test_published_is_one_task_wherever_its_file_lies(tmp_path):
    """Its path is kept, and is no part of a run's id; a file that changed since is refused."""
    path = tmp_path / "other.json"
    path.write_bytes(QUESTIONS.read_bytes())
    one, other = published(QUESTIONS), published(path)
    assert one == other and spec(task=one).id == spec(task=other).id != spec(task=published(path, seed=1)).id
    assert from_data(json.loads(json.dumps(to_data(other)))).path == str(path)
    path.write_text(changed(root=1, steps=["a", "b", "c"]) + " ")
    with pytest.raises(SpecError, match="not the file that this task was made of"):
        other.graphs  # noqa: B018


# Downloads


def test_what_is_downloaded_is_checked_and_kept(tmp_path, monkeypatch):
    """From a local address the true file comes once; another one with its name is refused."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "ADDRESS", QUESTIONS.as_uri())
    pooch = pytest.importorskip("pooch")
    copied = lambda url, output, _pooch: Path(output).write_bytes(Path(url.removeprefix("file://")).read_bytes())
    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_, **__: copied)
    assert published(fetch()).size == 300
    monkeypatch.setattr(module, "ADDRESS", (tmp_path / QUESTIONS.name).as_uri())
    assert fetch().read_bytes() == QUESTIONS.read_bytes()  # from the cache
    (tmp_path / "prosqa_valid.json").write_text("[]")
    fetch().unlink()
    with pytest.raises(SpecError, match=r"prosqa_valid\.json cannot be had \(what is there is another file\)"):
        fetch()


def test_without_a_connection_one_short_sentence_says_so(tmp_path, monkeypatch):
    """What requests says nests several errors."""
    pooch = pytest.importorskip("pooch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def offline(*given, **options):
        raise ConnectionError("HTTPSConnectionPool(host='a', port=443): Max retries exceeded (Caused by " + "x" * 300)

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_, **__: offline)
    with pytest.raises(SpecError) as refused:
        fetch()
    assert "ConnectionError" in str(refused.value) and "Pool" not in str(refused.value)


def test_without_pooch_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(SpecError, match="downloads need pooch"):
        fetch()
