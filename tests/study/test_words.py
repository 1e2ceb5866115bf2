"""The chapter on word problems: which runs, what is read from their evaluations, claims, commands."""

import itertools
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from cot2lib import cli
from cot2lib.errors import RecordError
from cot2lib.llm import answers, models, runs
from cot2lib.study import gsm8k, gsm8k_runs, measured
from cot2lib.study.book.ledger import rows_of
from cot2lib.study.claims.queries import reading
from cot2lib.study.gsm8k_runs import of_paper
from cot2lib.study.printed import paper_value


@pytest.fixture
def tiny(monkeypatch):
    """One run that takes seconds, as the only one of its profile."""
    run = gsm8k_runs.shown()
    start = replace(run.start, sums=1, problems=40, steps=4, batch=4, width=16, layers=1)
    run = replace(run, start=start, recipe=replace(run.recipe, steps=3, prompts=2, group=2), held_out=6)
    monkeypatch.setitem(gsm8k_runs.PROFILES, "quick", lambda: [run])
    monkeypatch.setattr(gsm8k_runs, "shown", lambda: run)
    # an untrained model is never right, and alike rewards teach nothing
    monkeypatch.setattr(answers, "rewards", lambda texts, _: [float(place % 2) for place in range(len(texts))])
    return run


def test_llm_train_collect_and_read(store, tiny, tmp_path, monkeypatch, capsys):
    """As a user types it: train, train again, collect, and read what was collected."""
    assert cli.main(["llm", "train", "--where", "longest=16"]) == 0
    *begun, said = capsys.readouterr().out.splitlines()
    assert begun == ["learning stories: step 0 of 4", "small, 16 tokens, MTS, K = 4, seed 42: step 0 of 3"]
    assert re.fullmatch(r"small, 16 tokens, MTS, K = 4, seed 42: [\d.]+% by sampled, [\d.]+ tokens", said)
    assert cli.main(["llm", "train"]) == 0 and capsys.readouterr().out == f"{said}\n"
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path / "records"))
    written = measured.collect("gsm8k", "quick")
    assert [path.name for path in written] == ["gsm8k.quick.evaluations.csv", "gsm8k.quick.models.safetensors"]
    table = gsm8k_runs.shipped("quick")
    assert set(table["id"]) == {tiny.id} and set(table["decoding"]) == {"tokens", "thoughts", "sampled", "training"}
    rewards = table[table["decoding"] == "training"]
    assert rewards["step"].tolist() == [1, 2, 3] and rewards["accuracy"].between(0, 1).all()
    before, after = (gsm8k.shown_model(when)[0] for when in gsm8k_runs.WHEN)
    assert any((a - b).abs().max() > 0 for a, b in zip(before.parameters(), after.parameters()))
    stored = gsm8k.shown_model("after", stored=True)[0]
    assert all((a - b).abs().max() < 1e-3 for a, b in zip(stored.parameters(), after.parameters()))
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(store, elsewhere)
    runs.entry(tiny).finished.unlink()
    assert gsm8k_runs.collect("quick").shape == table.shape  # what is shipped stays
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path / "none"))
    measured.collect("gsm8k", "quick", [elsewhere])  # from another machine's store
    assert gsm8k_runs.shipped("quick").equals(table)
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path / "records"))
    monkeypatch.setattr(gsm8k_runs, "shown", lambda: replace(tiny, seed=1))
    with pytest.raises(RecordError, match=f"holds models of run {tiny.id}"):
        gsm8k.shown_model("after")


def test_collect_and_shown_model_name_what_is_missing(store, tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COT2_RECORDS", str(tmp_path / "records"))
    with pytest.raises(RecordError, match="cot2 llm train --profile quick"):
        gsm8k_runs.collect("quick")
    with pytest.raises(RecordError, match="has no gsm8k"):
        gsm8k.shown_model("before")
    assert cli.main(["llm", "train", "--where", "longest=7"]) == 2
    assert "leaves no run; longest is one of 16" in capsys.readouterr().err


@pytest.mark.parametrize("seeds, verdict", [((42, 43, 44), "reproduced"), ((42,), "open: fewer than 3 seeds")])
def test_three_of_four_limits_are_those_at_which_the_paper_has_mts_ahead(monkeypatch, seeds, verdict):
    """By the paper's own table the claim holds; with one limit less it does not."""
    rows = []
    for run in (run for run in of_paper() if run.seed in seeds):
        claim = f"gsm8k-{run.longest}-{'mts' if run.recipe.thoughts else 'discrete'}"
        told = {"id": run.id, **run.columns(), "cut": 0.25, "length": paper_value(f"{claim}-length")}
        ends = {0: 0.2, run.recipe.steps: paper_value(claim) / 100}
        for (step, accuracy), decoding in itertools.product(ends.items(), ("sampled", "tokens", "thoughts")):
            rows.append(told | {"step": step, "decoding": decoding, "accuracy": accuracy})
    table = pd.DataFrame(rows)
    monkeypatch.setattr(gsm8k_runs, "shipped", lambda profile: table if profile == "paper" else table.iloc[:0])
    mts, most = (rows_of(f"gsm8k-{claim}", reading((42, 43, 44)))[0] for claim in ("80-mts", "3-of-4"))
    assert mts["seeds"] == len(seeds) and np.isclose(mts["last"], paper_value("gsm8k-80-mts"))
    assert most["verdict"].startswith(verdict)
    table.loc[(table["longest"] == 80) & (table["continuous"] > 0), "accuracy"] = 0.0
    assert not rows_of("gsm8k-3-of-4", reading((42, 43, 44)))[0]["verdict"].startswith("reproduced")


@pytest.fixture
def qwen(tmp_path):
    """A folder with a Qwen3 checkpoint of no use and its tokenizer, and one with GSM8K's files."""
    tokenizer = models.word_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    model, data = tmp_path / "model", tmp_path / "data"
    models.small_qwen3(len(tokenizer), 0, 16, 2).save_pretrained(model)
    tokenizer.save_pretrained(model)
    data.mkdir()
    lines = [{"question": f"Ana has {n} eggs . Ana buys 2 more .", "answer": f"#### {n + 2}"} for n in range(1, 7)]
    for name in ("train", "test"):
        (data / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return model, data


def paper_run(model, data):
    """A run of the paper's table, made short."""
    run = of_paper()[1]
    recipe = replace(run.recipe, limit=12, thoughts=4, steps=4, prompts=2, group=2, lr=1e-2)
    return replace(run, recipe=recipe, model=str(model), data=str(data), held_out=4, evaluations=1)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_train_by_the_papers_path_from_folders(store, qwen, device, monkeypatch):
    """Checkpoint, tokenizer, chat, problems, curriculum, parts of gradients and the record, as with Qwen3 itself."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    monkeypatch.setattr(answers, "rewards", lambda texts, _: [float(place % 2) for place in range(len(texts))])
    run = paper_run(*qwen)
    table = runs.train(run, device)
    assert set(table["decoding"]) == {"tokens", "thoughts", "sampled"} and table["step"].unique().tolist() == [0, 4]
    log = pd.DataFrame(runs.finished(run)["log"])
    assert log["thoughts"].tolist() == [0, 0, 0, 3] and log["reward"].tolist() == [0.5] * 4
    start = dict(models.pretrained(run.model)[0].named_parameters())
    trained = runs.store.load(runs.entry(run).finished)[0]
    assert set(trained) == set(start)
    assert all((value - start[name]).abs().max() > 0 for name, value in trained.items() if "norm" not in name)
