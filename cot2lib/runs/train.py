"""Run specs: `run` trains what is missing, `load` gives trained models.

Specs of one shape are stacked and trained together. Finished stacks go to the local store. A spec that has a stored
result, or a shipped record (without `retrain`), is not trained again. A stack that was interrupted goes on where it
was, if the same runs are asked for.
"""

import time
from collections.abc import Sequence
from functools import partial

import pandas as pd
import torch

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import timing
from cot2lib.kit.frozen import positive
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.model import GPT2Stack
from cot2lib.runs import store
from cot2lib.runs.lookup import absent_message, described, known, require_some, weights
from cot2lib.specs import Run, by_shape, trained_once
from cot2lib.training.data import check_run
from cot2lib.training.fused import preferred
from cot2lib.training.supervised import build_stack
from cot2lib.training.trainer import StackTrainer

ENGINES = ("auto", "torch")


def run(
    specs: Sequence[Run],
    missing: str = "train",
    *,
    device: str = "auto",
    retrain: bool = False,
    shard: tuple[int, int] = (0, 1),
    threads: int | None = None,
    engine: str = "auto",
    stack: int | None = None,
) -> pd.DataFrame:
    """One row per spec, in order: its main fields, accuracies and where it was made.

    Rows are those of the shipped records and, for what is not shipped, of the local store.

    Args:
        specs: the runs.
        missing: what to do with runs that have neither a shipped record nor a stored result, "train" them or raise an
            "error".
        device: "auto", "cpu" or "cuda".
        retrain: ignore shipped records (stored results still count, so that it can resume).
        shard: (k, n): train every n-th stack of the request from the k-th (of 0..n-1) on, return what is known then.
        threads: CPU threads while training. By default torch takes one, since the matrices are small, and the fused
            engine trains as many runs at a time as torch has threads.
        engine: "auto": the fused engine (`cot2lib.training.fused`) where it applies; "torch": never.
        stack: most trainings side by side, by default 16 on a CPU, what half of its memory takes on a GPU.
    """
    if missing not in ("train", "error"):
        raise SpecError(f"missing={missing!r}: choose 'train' or 'error'.")
    positive(**{name: count for name, count in (("threads", threads), ("stack", stack)) if count is not None})
    if engine not in ENGINES:
        raise SpecError(f"engine={engine!r}: choose one of {', '.join(ENGINES)}.")
    if not 0 <= shard[0] < shard[1]:
        raise SpecError(f"shard={shard!r}: give (k, n) with 0 <= k < n.")
    require_some(specs)
    where = resolve_device(device)
    rows, left = known(specs, retrain)
    if left and missing == "error":
        raise RecordError(absent_message(left, retrain))
    if left:
        for spec in left:
            check_run(spec)
        stacks = plan(specs, {spec.id for spec in left}, where, shard, stack)
        _train(stacks, where, engine=engine, threads=threads, stack=stack)
        rows, _ = known(specs, retrain)
    return described(rows, specs)


def plan(
    specs: Sequence[Run], left: set[str], device: torch.device, shard: tuple[int, int], most: int | None = None
) -> list[list[Run]]:
    """The stacks of what is left that a shard trains.

    A stack has trainings of one shape, learning rates together, at most so many; with every training all its runs. Who
    trains what follows from the request alone, however far other shards are.
    """
    runs: dict[Run, list[Run]] = {}
    for spec in dict.fromkeys(specs):
        runs.setdefault(spec.training, []).append(spec)
    stacks = []
    for group in by_shape(trained_once(specs)):
        group = sorted(group, key=lambda spec: spec.recipe.lr)
        parts = -(-len(group) // (most or room(group[0], device)))
        size = -(-len(group) // parts)
        together = [group[first : first + size] for first in range(0, len(group), size)]
        stacks += [[run for spec in some for run in runs[spec.training]] for some in together]
    rest = [[spec for spec in stack if spec.id in left] for stack in stacks[shard[0] :: shard[1]]]
    return [stack for stack in rest if stack]


def room(spec: Run, device: torch.device) -> int:
    """How many trainings of a shape go side by side: 16 on a CPU, as many as take half of its memory on a GPU.

    Each takes its weights, with gradients and AdamW's two moments; what backward reads of all tokens of a batch; and
    labels and fed mixtures of all inputs, which it may share. A float has four bytes.
    """
    if device.type == "cpu":
        return 16
    task, width, layers = spec.task, spec.model.d_model, spec.model.layers
    weights = (task.vocab_size + task.positions) * width + 12 * layers * width**2
    tokens = spec.recipe.batch * getattr(spec, "group", 1) * task.positions
    read = layers * (20 * width + 5 * spec.model.heads * task.positions) + 5 * task.vocab_size  # of each token
    targets = 2 * task.size * spec.outputs * task.vocab_size
    whole = torch.cuda.mem_get_info()[1]  # in bytes; what is free would let shards on one card plan differently
    return max(1, whole // 2 // (4 * (4 * weights + tokens * read + targets)))


def _train(stacks: Sequence[list[Run]], device: torch.device, **options) -> None:
    store.prepare()
    count = sum(map(len, stacks))
    if stacks:
        timing.say(f"training {count} runs in {len(stacks)} stacks on {device}")
    began = time.monotonic()
    for specs in stacks:
        _train_stack(specs, device, **options)
    print(f"trained {count} runs in {timing.span(time.monotonic() - began)} on {device}", flush=True)


def _train_stack(specs: list[Run], device: torch.device, threads: int | None, **options) -> None:
    trainer = make_trainer(specs, device, threads=threads, **options)
    entry = store.Entry(spec.id for spec in specs)
    before = entry.resume(partial(store.restore, trainer)).get("provenance", {})
    spec, progress = trainer.spec, trainer.progress
    label = f"{spec.method} d={spec.model.d_model} x{len(trainer.specs)}"
    with timing.threads(threads or 1), timing.told(label, spec.recipe.steps, progress.step) as tell:
        engine = trainer.engine.name
        made = provenance(device) | {"engine": engine, "threads": trainer.engine.threads}
        made |= {key: value for key, value in before.items() if key == "commit"}
        if before.get("engine", engine) != engine:
            made["engine"] = f"{before['engine']}, then {engine}"

        def after_segment(steps: int) -> None:
            tell(trainer.progress.step)
            entry.save(partial(store.state, trainer, made))

        trainer.train(after_segment)
    entry.finish(*store.results(trainer, made))


def make_trainer(
    specs: Sequence[Run], device: torch.device, engine: str = "auto", threads: int | None = None, **options
) -> StackTrainer:
    """The trainer of a stack; models that its runs start from are trained first if they are not there yet.

    Arguments as of `run`.
    """
    load = partial(load_stack, device=device.type, engine=engine, threads=threads, **options)
    trainer = specs[0].trainer(specs, load, device)
    return trainer if engine == "torch" else preferred(trainer, threads)


def load(spec: Run, missing: str = "train", retrain: bool = False, **options) -> GPT2Stack:
    """The trained model of `spec`, a stack of one run on the CPU; arguments and errors as `load_stack`."""
    return load_stack([spec], missing, retrain, **options)


def load_stack(specs: Sequence[Run], missing: str = "train", retrain: bool = False, **options) -> GPT2Stack:
    """The trained models of runs, whose task and model are the same, as one stack on the CPU.

    The weights belong to the rows that `run` gives, except for a record shipped without weights. Then they are of
    another training of its spec (other rounding), stored locally or made under `missing="train"`. With `retrain`
    shipped weights are ignored; the options are `device`, `threads`, `engine` and `stack` of `run`.

    A spec of another thought rule is another run, and trained anew. To let a trained model think by a rule of yours,
    load its own spec, and give `cot2lib.interventions.thought` the spec with the rule in place of its own.
    """
    require_some(specs)
    if len({(spec.task, spec.model) for spec in specs}) > 1:
        raise SpecError("only models of one task and one shape stack; load others one by one.")
    found = {spec: weights(spec.id, retrain) for spec in specs}
    lacking = [spec for spec, part in found.items() if part is None]
    if lacking and missing == "error":
        raise RecordError(absent_message(lacking, retrain=True, lacks="no trained weights"))
    if lacking:
        run(lacking, retrain=True, **options)
        found |= {spec: weights(spec.id, retrain) for spec in lacking}
    stack = build_stack(specs)
    parts = [part for spec in specs if (part := found[spec]) is not None]
    stack.load_state_dict({name: torch.stack([part[name] for part in parts]) for name in stack.state_dict()})
    return stack
