"""Trainings of language models in the store."""

import shutil
import sys
from dataclasses import replace

import pandas as pd
import pytest
import torch

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit.frozen import from_data, to_data
from cot2lib.thoughts import Dirichlet

pytest.importorskip("transformers")
from cot2lib.kit.files import save_tensors
from cot2lib.llm import models, policy, runs
from cot2lib.llm.policy import PolicyRecipe, PolicyTrainer
from cot2lib.llm.settings import LanguageRun, WarmStart
from cot2lib.runs import store as kept

START = WarmStart(sums=2, problems=60, steps=20, batch=8, width=16, layers=1)
RUN = LanguageRun(PolicyRecipe(8, 3, 4, 1e-2, limit=10, thoughts=2, k=2), START, held_out=12)


def test_language_run_is_plain_data_and_has_an_id():
    assert from_data(to_data(RUN)) == RUN and len({RUN.id, replace(RUN, seed=1).id}) == 2
    discrete = replace(RUN, recipe=PolicyRecipe(8, 3, 4, 1e-2, limit=10))
    assert (RUN.method, discrete.method) == ("MTS, K = 2", "discrete CoT")


def varied(texts, _):
    """Rewards that differ within groups, whatever an untrained model writes."""
    return [float(sum(map(ord, text)) % 2) for text in texts]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A store with the run, which no test changes, and its log as it stood before each step."""
    folder, seen, step = tmp_path_factory.mktemp("finished"), [], PolicyTrainer.step
    path = folder / "log"
    with path.open("w") as file, pytest.MonkeyPatch.context() as patched:
        patched.setenv("COT2_STORE", str(folder))
        patched.delenv("JPY_PARENT_PID", raising=False)
        patched.setattr(policy.answers, "rewards", varied)
        patched.setattr(PolicyTrainer, "step", lambda trainer: seen.append(path.read_text()) or step(trainer))
        patched.setattr(runs.timing, "TOLD_SECONDS", 0)
        patched.setattr(sys, "stdout", file)
        runs.train(RUN)
    return folder, seen


@pytest.fixture
def trained(finished, monkeypatch):
    """The run's evaluations, read: it is not trained again."""
    monkeypatch.setenv("COT2_STORE", str(finished[0]))
    with monkeypatch.context() as patched:
        patched.setattr(runs, "loaded", lambda run: pytest.fail("it is finished"))
        return runs.train(RUN)


def test_train_evaluates_before_in_between_and_after(trained):
    assert trained["step"].unique().tolist() == [0, 2, 4, 6, 8]
    assert set(trained["decoding"]) == {"tokens", "thoughts", "sampled"} and trained["accuracy"].between(0, 1).all()
    thinking = trained[trained["decoding"] == "thoughts"]
    assert (thinking["thoughts"] == 2).all() and (trained["length"] <= 10).all()
    log = pd.DataFrame(runs.finished(RUN)["log"])
    assert log["step"].tolist() == list(range(1, 9)) and log["thoughts"].tolist()[:4] == [0] * 4
    assert log["thoughts"].iloc[-1] == 2


def test_train_tells_how_far_it_is(finished):
    """The start's too; a line for every step here, about every minute else."""
    label, (_, seen) = "small, 12 tokens, MTS, K = 2, seed 42", finished
    began = seen[0].splitlines()
    assert (began[0], began[-1]) == ("learning stories: step 0 of 20", f"{label}: step 0 of 8")
    assert seen[3].splitlines()[-1].startswith(f"{label}: step 3 of 8, about ")


def test_train_by_another_rule_evaluates_on_what_is_held_out(store, finished, monkeypatch):
    """It starts from the model that the other run started from."""
    shutil.copytree(finished[0], store)
    rule, parts, plans, asked, evaluate = Dirichlet(20.0), [], [], runs.asked, policy.evaluate
    monkeypatch.setattr(runs, "asked", lambda *given: parts.append(given[2]) or asked(*given))
    monkeypatch.setattr(policy, "evaluate", lambda *given: plans.append(given[3]) or evaluate(*given))
    run = replace(RUN, recipe=replace(RUN.recipe, steps=2, thought=rule, enter=0.0, full=0.5))
    assert from_data(to_data(run)) == run and run.id != RUN.id and run.columns()["method"] == "Dirichlet(gamma=20.0)"
    table = runs.train(run)
    assert parts == ["training", "new numbers"]
    assert [(plan.thought, plan.thoughts) for plan in plans[:3]] == [(rule, 0), (rule, 2), (rule, 2)]
    assert [plan.token.temperature for plan in plans[:3]] == [0.0, 0.0, 1.0]
    assert (table[table["decoding"] == "sampled"]["thoughts"] == 2).all()
    assert runs.finished(run)["log"][-1]["thoughts"] == 2


def test_warm_is_trained_once(trained, monkeypatch):
    first = runs.warm(START)[0]
    monkeypatch.setattr(runs.warm_start, "train", lambda *_: pytest.fail("it is stored"))
    assert all(torch.equal(*pair) for pair in zip(first.parameters(), runs.warm(START)[0].parameters()))
    weights, start = kept.load(runs.entry(RUN).finished)[0], dict(first.named_parameters())
    assert all((value - start[name]).abs().max() > 1e-4 for name, value in weights.items())


def test_train_interrupted_ends_where_it_would_have(trained, tmp_path, monkeypatch):
    """Its evaluations, its log and every weight; before the first step there is nothing to keep."""
    whole, log, weights = trained, runs.finished(RUN)["log"], kept.load(runs.entry(RUN).finished)[0]
    monkeypatch.setenv("COT2_STORE", str(tmp_path))
    monkeypatch.setattr(policy.answers, "rewards", varied)
    monkeypatch.setattr(kept, "pause", lambda spent: -1)
    taken, step = [], PolicyTrainer.step

    def stepped(trainer):
        if trainer.taken == stop:
            raise KeyboardInterrupt
        taken.append(trainer.taken + 1)
        return step(trainer)

    monkeypatch.setattr(PolicyTrainer, "step", stepped)
    for stop in (0, 5):
        with pytest.raises(KeyboardInterrupt):
            runs.train(RUN)
        assert runs.entry(RUN).checkpoint.exists() == (stop > 0)
    stop = None
    assert runs.train(RUN).equals(whole) and taken == list(range(1, 9)) and runs.finished(RUN)["log"] == log
    assert all(torch.equal(value, weights[name]) for name, value in kept.load(runs.entry(RUN).finished)[0].items())
    assert not runs.entry(RUN).checkpoint.exists()


def test_some_stories_are_of_all_numbers_of_sums_and_unseen_ones_differ():
    some = runs.some_stories(WarmStart(sums=3, brief=0.0), 30, "training")
    assert [story.chain.count("=") for story in some[:6]] == [1, 2, 3] * 2 and len(some) == 30
    seen, unseen = ({story.text for story in runs.asked(RUN, None, part)} for part in ("training", "new numbers"))
    assert not seen & unseen


def test_train_and_warm_name_damaged_files(store):
    start = runs.entry(START)
    start.finish({"x": torch.zeros(1)}, {})
    with pytest.raises(RecordError, match="does not hold the weights of its model"):
        runs.warm(START)
    start.finished.unlink()
    save_tensors(runs.entry(RUN).checkpoint, {"weights.x": torch.zeros(1)}, {"format": kept.FORMAT})
    with pytest.raises(RecordError, match="does not fit its run"):
        runs.train(RUN)


def test_finished_and_loaded_name_what_is_not_there(store):
    with pytest.raises(RecordError, match="is not in the store; train it first"):
        runs.finished(RUN)


def test_loaded_trains_the_last_layers_of_a_pretrained_model(monkeypatch):
    tokenizer = models.word_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}<user> {{ m.content }} <model>{% endfor %}"
    monkeypatch.setattr(models, "smollm2", lambda: (models.small_qwen3(len(tokenizer), 0, 16, 4), tokenizer))
    model, _ = runs.loaded(replace(RUN, model="smollm2", layers=2))
    trained = {name.split(".")[2] for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {"2", "3"}
    told = runs.asked(replace(RUN, model="smollm2"), tokenizer, "training")[0].text
    assert told.startswith("<user> ") and told.endswith("Answer with the number. <model>")


def test_loaded_refuses_models_that_would_be_misread(monkeypatch):
    """Gemma multiplies embeddings by the root of their size."""
    transformers = pytest.importorskip("transformers")
    small = dict(vocab_size=30, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    gemma = transformers.GemmaForCausalLM(transformers.GemmaConfig(**small, num_key_value_heads=1, head_dim=8)).eval()
    monkeypatch.setattr(models, "pretrained", lambda name: (gemma, None))
    with pytest.raises(SpecError, match="GemmaForCausalLM scales embeddings or scores"):
        runs.loaded(replace(RUN, model="gemma"))
