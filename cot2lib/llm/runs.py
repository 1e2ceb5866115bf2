"""Trainings of language models by reward, kept in the local store so that they resume.

A run starts from a small model that is trained on stories first, or from a pretrained model as it is. The store
(`cot2lib.runs.store`) keeps the weights that were trained, the log of all steps and the evaluations in its folder
`llm`. Everything drawn is a function of the run's seed and the step, so on a CPU a run that goes on from a checkpoint
ends where it would have. A warm start does not resume.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import torch

from cot2lib.errors import RecordError
from cot2lib.kit import paths, random, timing
from cot2lib.kit.files import Weight
from cot2lib.kit.frozen import to_data
from cot2lib.kit.hugging_face import LanguageModel, Tokenizer
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.kit.random import Site
from cot2lib.llm import gsm8k, models, policy, warm_start
from cot2lib.llm.policy import PolicyTrainer
from cot2lib.llm.responses import Plan, check_reads_plainly
from cot2lib.llm.settings import GSM8K, SMALL, SMOLLM2, STORIES, LanguageRun, WarmStart
from cot2lib.llm.stories import Story, stories
from cot2lib.runs import store
from cot2lib.runs.store import Entry
from cot2lib.thoughts import Discrete

# To models that follow instructions; the second for problems of more steps.
REQUEST = "{} Answer with the number."
WRITTEN_REQUEST = "{}\nReason step by step, briefly. End with #### and the number."
Places = Mapping[str, str]
NOWHERE: Places = MappingProxyType({})
SHOWN = 7  # seed of the stories that a chat begins with


def some_stories(start: WarmStart, count: int, part: str) -> list[Story]:
    """Stories of one sum, two and so on up to the start's, as many of each."""
    each = -(-count // start.sums)
    made = [stories(each, sums, part, start.seed, start.brief) for sums in range(1, start.sums + 1)]
    return [story for turn in zip(*made) for story in turn][:count]


def asked(run: LanguageRun, tokenizer: Tokenizer, part: str, places: Places = NOWHERE) -> list[Story]:
    """A part's problems as the run's model is asked them: all to train on, the first `held_out` to be evaluated on."""
    if run.data == STORIES:
        found = some_stories(run.start, run.start.problems if part == "training" else run.held_out, part)
    else:
        folder = places.get(run.data, run.data)
        found = gsm8k.load(part, None if folder == GSM8K else folder)
        found = found if part == "training" else found[: run.held_out]
    prompt = form(run, tokenizer)
    return [replace(story, text=prompt(story.text)) for story in found]


def form(run: LanguageRun, tokenizer: Tokenizer) -> Callable[[str], str]:
    """How the run's model is asked a problem: as it is, or as a turn in a chat by the tokenizer's template.

    Solved stories, where there are any, are earlier turns, and say by themselves what is asked for. Qwen3 is told to
    leave out its own thinking. A tokenizer without a template gives the request as it is.
    """
    if run.model == SMALL:
        return str
    request = "{}" if run.shots else REQUEST if run.data == STORIES else WRITTEN_REQUEST
    if not tokenizer.chat_template:
        return request.format
    turns = []
    for story in some_stories(replace(run.start, seed=SHOWN, brief=0.0), run.shots, "training") if run.shots else []:
        turns += [{"role": "user", "content": story.text}, {"role": "assistant", "content": story.chain}]

    def asked_for(text: str) -> str:
        said = [*turns, {"role": "user", "content": request.format(text)}]
        whole = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        begin = tokenizer.bos_token_id
        doubled = begin is not None and tokenizer(whole)["input_ids"][:2] == [begin, begin]
        return whole.removeprefix(tokenizer.bos_token) if doubled else whole

    return asked_for


def entry(trained: LanguageRun | WarmStart, folder: Path | None = None) -> Entry:
    """Its place in a store, the local one by default."""
    return Entry([trained.id], (folder or paths.store()) / "llm")


def warm(start: WarmStart) -> tuple[LanguageModel, Tokenizer]:
    """The small model after its supervised training, and its tokenizer; trained once and kept in the store."""
    (model, tokenizer), kept = small(start), entry(start)
    if kept.finished.exists():
        return put(model, store.load(kept.finished)[0], kept.finished), tokenizer
    known = some_stories(start, start.problems, "training")
    warm_start.train(model.train(), tokenizer, known, start.steps, start.batch, start.lr, start.seed)
    kept.finish(_own(model), {"start": to_data(start)})
    return model.eval(), tokenizer


def small(start: WarmStart) -> tuple[LanguageModel, Tokenizer]:
    tokenizer = models.word_tokenizer()
    return models.small_qwen3(len(tokenizer), start.seed, start.width, start.layers), tokenizer


def put(model: LanguageModel, weights: Mapping[str, Weight], path: Path) -> LanguageModel:
    """A model with the weights that a file holds."""
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}  # a tied one once
    if {name: weight.shape for name, weight in weights.items()} != shapes:
        raise RecordError(f"{path} does not hold the weights of its model; delete it.")
    model.load_state_dict(weights, strict=False)
    return model.eval()


def loaded(run: LanguageRun, places: Places = NOWHERE) -> tuple[LanguageModel, Tokenizer]:
    """The model that the run starts from, and its tokenizer; weights that it does not train ask for no gradient."""
    if run.model == SMALL:
        model, tokenizer = warm(run.start)
    else:
        model, tokenizer = (
            models.smollm2() if run.model == SMOLLM2 else models.pretrained(places.get(run.model, run.model))
        )
    check_reads_plainly(model)
    if run.layers:
        model.requires_grad_(False)
        model.base_model.layers[-run.layers :].requires_grad_(True)
    return model, tokenizer


def train(run: LanguageRun, device: str = "auto", places: Places = NOWHERE) -> pd.DataFrame:
    """Train a run, or go on with it, and return its evaluations; at once if it is finished.

    `places` are folders that hold what the run names: its model, its problems.
    """
    kept = entry(run)
    if kept.finished.exists():
        return pd.DataFrame(finished(run)["evaluations"])
    where = resolve_device(device)
    model, tokenizer = loaded(run, places)
    at_once = run.recipe.prompts if run.model == SMALL else 1  # a large model takes one problem's gradients at a time
    problems, held_out = (asked(run, tokenizer, part, places) for part in ("training", "new numbers"))
    trainer = PolicyTrainer(model.to(where), tokenizer, problems, run.recipe, run.seed, at_once)
    before = kept.resume(partial(_restore, trainer))
    evaluations, began = before.get("evaluations", []), time.monotonic() - before.get("seconds", 0.0)
    results = lambda: {"log": trainer.log, "evaluations": evaluations, "seconds": time.monotonic() - began}
    due = {round(run.recipe.steps * part / run.evaluations) for part in range(run.evaluations + 1)}
    with timing.told(run.label, run.recipe.steps, trainer.taken) as tell:
        evaluations += [] if evaluations else evaluated(run, trainer, held_out)
        while trainer.taken < run.recipe.steps:
            trainer.step()
            tell(trainer.taken)
            if trainer.taken in due:
                evaluations += evaluated(run, trainer, held_out)
            kept.save(lambda: (_state(trainer), results()))
    kept.finish(_own(trainer.model), {"run": to_data(run), **results(), **provenance(where)})
    return pd.DataFrame(evaluations)


def evaluated(run: LanguageRun, trainer: PolicyTrainer, problems: Sequence[Story]) -> list[dict]:
    """Right answers to held-out problems, a row for each decoding.

    These are greedy tokens; greedy tokens after all thoughts, where the run learns to think; and as it is rewarded.
    """
    recipe, rule, ends = run.recipe, run.recipe.rule, trainer.ends
    plans = {"tokens": Plan(rule, 0, recipe.limit, Discrete(), ends)}
    if recipe.thoughts:
        plans["thoughts"] = Plan(rule, recipe.thoughts, recipe.limit, Discrete(), ends)
    plans["sampled"] = Plan(rule, recipe.thoughts, recipe.limit, ends=ends)
    keys, rows = random.run_keys([run.seed], Site.DECODE), []
    for name, plan in plans.items():
        found = policy.evaluate(trainer.model, trainer.tokenizer, problems, plan, keys)
        rows.append({"step": trainer.taken, "decoding": name, **found})
    return rows


def is_finished(run: LanguageRun, folder: Path | None = None) -> bool:
    return entry(run, folder).finished.exists()


def weights(run: LanguageRun) -> tuple[dict[str, Weight], dict[str, Weight]]:
    """Weights in the store of a run's warm start, and of the finished run."""
    return store.load(entry(run.start).finished)[0], store.load(entry(run).finished)[0]


def finished(run: LanguageRun, folder: Path | None = None) -> dict:
    """All that a store holds of a finished run but its weights: log, evaluations, seconds, where it was made."""
    if not is_finished(run, folder):
        raise RecordError(f"run {run.id} ({run.method}, seed {run.seed}) is not in the store; train it first.")
    return store.read_meta(entry(run, folder).finished)


def _own(model: LanguageModel) -> dict[str, Weight]:
    """Weights that are trained, by name; a tied one once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _state(trainer: PolicyTrainer) -> dict[str, Weight]:
    """The trained weights and AdamW's state."""
    tensors = {}
    for name, parameter in _own(trainer.model).items():
        tensors[f"weights.{name}"] = parameter
        tensors |= {f"{part}.{name}": value for part, value in trainer.optimizer.state[parameter].items()}
    return tensors


@torch.no_grad()
def _restore(trainer: PolicyTrainer, tensors: dict[str, Weight], meta: dict) -> None:
    """Bring a fresh trainer to where its checkpoint stands."""
    for name, parameter in _own(trainer.model).items():
        parameter.copy_(tensors[f"weights.{name}"])
        moments = {part: tensors[f"{part}.{name}"].to(parameter) for part in ("exp_avg", "exp_avg_sq")}
        trainer.optimizer.state[parameter] = {"step": tensors[f"step.{name}"], **moments}
    trainer.log, trainer.taken = meta["log"], len(meta["log"])
