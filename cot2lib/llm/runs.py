"""Trainings of language models by reward, kept in the local store so that they resume.

A run starts from a small model that is trained on stories first, or from a pretrained model as it is. Folder `llm` of
the store holds a file for each warm start and each run, by their ids: the weights that were trained, the log of all
steps and the evaluations; a checkpoint has AdamW's state too. Everything drawn is a function of the run's seed and the
step, so on a CPU a run that goes on from a checkpoint ends where it would have. A warm start does not resume.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import torch

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import paths, random, timing
from cot2lib.kit.files import Weight, load_meta, load_tensors, save_tensors
from cot2lib.kit.frozen import to_data
from cot2lib.kit.hugging_face import LanguageModel, Tokenizer
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.kit.random import Site
from cot2lib.llm import gsm8k, models, policy, warm_start
from cot2lib.llm.policy import Asked, PolicyTrainer, greedy
from cot2lib.llm.responses import Plan, check_reads_plainly
from cot2lib.llm.settings import GSM8K, SMALL, SMOLLM2, STORIES, LanguageRun, WarmStart
from cot2lib.llm.stories import Story, stories

CHECKPOINT_SECONDS = 60
SAVING = 20  # times as long as a checkpoint takes to write are spent on training before the next
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


def asked(run: LanguageRun, tokenizer: Tokenizer, part: str, places: Places = NOWHERE) -> Asked:
    """A part's problems as the run's model is asked them: all to train on, the first `held_out` to be evaluated on."""
    if run.data == STORIES:
        found = some_stories(run.start, run.start.problems if part == "training" else run.held_out, part)
    else:
        folder = places.get(run.data, run.data)
        found = gsm8k.load(part, None if folder == GSM8K else folder)
        found = found if part == "training" else found[: run.held_out]
    return Asked.of(found, form(run, tokenizer))


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


def warm(start: WarmStart) -> tuple[LanguageModel, Tokenizer]:
    """The small model after its supervised training, and its tokenizer; trained once and kept in the store."""
    model, tokenizer = small(start)
    path = _path(start.id, "start")
    if path.exists():
        return put(model, load_tensors(path)[0], path), tokenizer
    known = some_stories(start, start.problems, "training")
    warm_start.train(model.train(), tokenizer, known, start.steps, start.batch, start.lr, start.seed)
    save_tensors(path, _own(model), {"start": to_data(start)})
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
        blocks = getattr(model.base_model, "layers", None)
        if blocks is None:
            raise SpecError(
                f"layers={run.layers}: {type(model).__name__} has no list of layers; 0 trains every weight."
            )
        model.requires_grad_(False)
        blocks[-run.layers :].requires_grad_(True)
    return model, tokenizer


def train(run: LanguageRun, device: str = "auto", places: Places = NOWHERE) -> pd.DataFrame:
    """Train a run, or go on with it, and return its evaluations; at once if it is finished.

    `places` are folders that hold what the run names: its model, its problems.
    """
    done = _path(run.id, "run")
    if done.exists():
        return pd.DataFrame(load_meta(done)["evaluations"])
    where = resolve_device(device)
    model, tokenizer = loaded(run, places)
    at_once = run.recipe.prompts if run.model == SMALL else 1  # a large model takes one problem's gradients at a time
    problems = asked(run, tokenizer, "training", places)
    trainer = PolicyTrainer(model.to(where), tokenizer, problems, run.recipe, run.seed, at_once)
    held_out = asked(run, trainer.tokenizer, "new numbers", places)
    told = _resume(run, trainer)
    due = {round(run.recipe.steps * part / run.evaluations) for part in range(run.evaluations + 1)}
    counted = time.monotonic()
    checkpoint = counted + CHECKPOINT_SECONDS
    with timing.told(run.label, run.recipe.steps, trainer.taken) as tell:
        while True:
            if trainer.taken in due and all(row["step"] != trainer.taken for row in told["evaluations"]):
                told["evaluations"] += evaluated(run, trainer, held_out)
            told["seconds"], counted = told["seconds"] + timing.since(counted), time.monotonic()
            if trainer.taken == run.recipe.steps:
                break
            if trainer.taken and counted > checkpoint:
                save_tensors(_path(run.id, "checkpoint"), *_state(run, trainer, told))
                checkpoint = time.monotonic() + max(CHECKPOINT_SECONDS, SAVING * timing.since(counted))
            trainer.step()
            tell(trainer.taken)
    made = {"run": to_data(run), "log": trainer.log, **told, **provenance(where)}
    save_tensors(done, _own(trainer.model), made, checked=True)
    _path(run.id, "checkpoint").unlink(missing_ok=True)
    return pd.DataFrame(told["evaluations"])


def evaluated(run: LanguageRun, trainer: PolicyTrainer, problems: Asked) -> list[dict]:
    """Right answers to held-out problems by each of `plans`: a row each."""
    keys, rows = random.run_keys([run.seed], Site.DECODE), []
    for name, plan in plans(run, trainer.ends).items():
        right, told = policy.evaluate(trainer.model, trainer.tokenizer, problems, plan, keys)
        rows.append({"step": trainer.taken, "decoding": name, "accuracy": float(right.double().mean()), **told})
    return rows


def plans(run: LanguageRun, ends: tuple[int, ...]) -> dict[str, Plan]:
    """Decodings that a run is evaluated by: greedy tokens, after all its thoughts too where it learns to think, and as
    it is rewarded."""
    recipe, rule = run.recipe, run.recipe.rule
    found = {"tokens": greedy(rule, 0, recipe.limit, ends)}
    if recipe.thoughts:
        found["thoughts"] = greedy(rule, recipe.thoughts, recipe.limit, ends)
    return found | {"sampled": Plan(rule, recipe.thoughts, recipe.limit, ends=ends)}


def is_finished(run: LanguageRun, folder: Path | None = None) -> bool:
    return _path(run.id, "run", folder).exists()


def weights(run: LanguageRun) -> tuple[dict[str, Weight], dict[str, Weight]]:
    """Files in the store of a finished run and of its warm start."""
    return load_tensors(_path(run.start.id, "start"))[0], load_tensors(_path(run.id, "run"))[0]


def finished(run: LanguageRun, folder: Path | None = None) -> dict:
    """All that a store holds of a finished run but its weights: log, evaluations, seconds, where it was made."""
    if not is_finished(run, folder):
        raise RecordError(f"run {run.id} ({run.method}, seed {run.seed}) is not in the store; train it first.")
    return load_meta(_path(run.id, "run", folder))


def _path(name: str, kind: str, folder: Path | None = None) -> Path:
    return (folder or paths.store()) / "llm" / f"{name}.{kind}.safetensors"


def _own(model: LanguageModel) -> dict[str, Weight]:
    """Weights that are trained, by name; a tied one once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _state(run: LanguageRun, trainer: PolicyTrainer, told: dict) -> tuple[dict[str, Weight], dict]:
    tensors = {}
    for name, parameter in _own(trainer.model).items():
        tensors[f"weights.{name}"] = parameter
        for entry, value in trainer.optimizer.state[parameter].items():
            tensors[f"{entry}.{name}"] = value
    return tensors, {"run": to_data(run), "taken": trainer.taken, "log": trainer.log, **told}


def _resume(run: LanguageRun, trainer: PolicyTrainer) -> dict:
    """Bring a fresh trainer to where its checkpoint stands, if there is one; evaluations and seconds so far."""
    path = _path(run.id, "checkpoint")
    if not path.exists():
        return {"evaluations": [], "seconds": 0.0}
    tensors, meta = load_tensors(path)
    try:
        with torch.no_grad():
            for name, parameter in _own(trainer.model).items():
                parameter.copy_(tensors[f"weights.{name}"])
                state = {entry: tensors[f"{entry}.{name}"] for entry in ("step", "exp_avg", "exp_avg_sq")}
                trainer.optimizer.state[parameter] = {
                    k: v.to(v if k == "step" else parameter) for k, v in state.items()
                }
        trainer.taken, trainer.log = meta["taken"], meta["log"]
        return {"evaluations": meta["evaluations"], "seconds": meta["seconds"]}
    except (KeyError, RuntimeError) as error:
        raise RecordError(f"{path} does not fit its run ({type(error).__name__}); delete it.") from error
