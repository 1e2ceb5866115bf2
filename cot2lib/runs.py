"""Run specs, or look up what they gave: `run`, `curves`, `load`.

Specs of one shape are stacked and trained together; finished stacks go to the local store, and a
spec that has a shipped record or a stored result is never trained again. Stacks are formed from
the whole request, so the same request after an interrupt finds its checkpoints.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from tqdm import tqdm

from cot2lib import records, store
from cot2lib.errors import RecordError, SpecError
from cot2lib.model import GPT2Stack
from cot2lib.provenance import provenance, resolve_device
from cot2lib.specs import RunSpec, from_data
from cot2lib.supervised import StackTrainer, build_stack, shape_of
from cot2lib.supervision import check_budget

CHECKPOINT_SECONDS = 60
ANNOUNCE_SECONDS = 60
RUNS_PER_STACK = {"cpu": 16, "cuda": 64}
SHARE_OF_SGEMM = {"cpu": 0.2, "cuda": 0.004}  # rough, for the forecast alone


def run(
    specs: Sequence[RunSpec],
    missing: str = "train",
    *,
    device: str = "auto",
    compile: bool = False,
    retrain: bool = False,
    shard: tuple[int, int] = (0, 1),
    threads: int = 1,
) -> pd.DataFrame:
    """One row per spec, in order: its main fields, accuracies and where it was made.

    Args:
        specs: the runs.
        missing: what to do with specs that have neither a shipped record nor a stored result.
        device: "auto", "cpu" or "cuda".
        compile: compile forward and loss; pays above some minutes of CPU work.
        retrain: ignore shipped records (stored results still count, so that it can resume).
        shard: (k, n): train every n-th stack starting with the k-th, return what is known then.
        threads: CPU threads while training; the matrices are small, so that one is best (use shards for more cores).

    Raises:
        RecordError: for specs without a record under missing="error", or an unreadable file.
        SpecError: for a spec that cannot be run.
        DeviceError: for a device that is not there.
    """
    if missing not in ("train", "error"):
        raise SpecError(f"missing={missing!r}: choose 'train' or 'error'.")
    absent = _absent(specs, retrain)
    if absent and missing == "error":
        raise RecordError(_absent_message(absent))
    if absent:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            _train(specs, absent, resolve_device(device), compile, shard)
        finally:
            torch.set_num_threads(before)
    return recorded(specs, retrain)


def curves(specs: Sequence[RunSpec], retrain: bool = False) -> pd.DataFrame:
    """Learning curves of recorded runs: one row per run and evaluation, with the run's main fields.

    Columns besides those: `step`, `epoch`, `loss` (mean since the evaluation before), `accuracy`,
    `entropy_t`. Raises RecordError for specs without a record.
    """
    if absent := _absent(specs, retrain):
        raise RecordError(_absent_message(absent))
    rows, points = _tables(specs, retrain)
    described = _described(rows)
    points = points.merge(described[[*fields(specs[0]), "id"]], on="id")
    inputs = described.set_index("id").loc[points["id"]]
    points["accuracy"] = (points["correct_a"] + points["correct_b"]) / (inputs["inputs_a"] + inputs["inputs_b"]).values
    points["epoch"] = points["step"] * points["batch"] / inputs["train_inputs"].values
    return points


def by_profile(requests: Mapping[str, Sequence[RunSpec]], retrained: str | None = None) -> records.Tables:
    """Recorded rows and curves of each profile's request, with a column `profile`; what is not recorded is left out.

    Args:
        requests: specs by profile.
        retrained: the profile whose shipped records are ignored.

    Raises:
        RecordError: if nothing is recorded at all.
    """
    rows, points = [], []
    for name, specs in requests.items():
        known = recorded(specs, retrain=name == retrained)
        if len(known):
            have = [spec for spec in specs if spec.id in set(known["id"])]
            rows.append(known.assign(profile=name))
            points.append(curves(have, retrain=name == retrained).assign(profile=name))
    if not rows:
        raise RecordError(_absent_message([spec for specs in requests.values() for spec in specs]))
    return pd.concat(rows, ignore_index=True), pd.concat(points, ignore_index=True)


def load(spec: RunSpec, missing: str = "train", **options) -> GPT2Stack:
    """The trained model of `spec`, a stack of one run on the CPU.

    Raises:
        RecordError: under missing="error" if its weights are neither shipped nor stored.
    """
    weights = _stored_weights(spec.id)
    if weights is None and missing == "train":
        run([spec], retrain=True, **options)
        weights = _stored_weights(spec.id)
    if weights is None:
        raise RecordError(f"{_absent_message([spec])} (Its weights are not shipped.)")
    stack = build_stack([spec])
    stack.load_state_dict({name: value[None] for name, value in weights.items()})
    return stack


def plan(specs: Sequence[RunSpec], device: torch.device) -> list[list[RunSpec]]:
    """Stacks the request is trained in: runs of one shape, learning rates together, at most so many each."""
    shapes: dict[RunSpec, list[RunSpec]] = {}
    for spec in dict.fromkeys(specs):
        shapes.setdefault(shape_of(spec), []).append(spec)
    most = RUNS_PER_STACK[device.type]
    stacks = []
    for group in shapes.values():
        group = sorted(group, key=lambda spec: spec.recipe.lr)
        parts = -(-len(group) // most)
        size = -(-len(group) // parts)
        stacks += [group[first : first + size] for first in range(0, len(group), size)]
    return stacks


def forecast(stacks: Sequence[Sequence[RunSpec]], device: torch.device) -> float:
    """Roughly how many seconds training takes, from the model sizes and this machine's matrix product rate."""
    work = 0.0
    for specs in stacks:
        spec = specs[0]
        weights = 12 * spec.model.layers * spec.model.d_model**2 + spec.task.vocab_size * spec.model.d_model
        positions = spec.task.positions
        work += 6.0 * weights * positions * spec.recipe.batch * spec.recipe.steps * len(specs)
    return work / (SHARE_OF_SGEMM[device.type] * sgemm_rate(device))


def sgemm_rate(device: torch.device, size: int = 1024, repeats: int = 3) -> float:
    """Measured float32 matrix product rate in flop/s."""
    a = torch.rand(size, size, device=device)
    rates = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        (a @ a)[0, 0].item()
        rates.append(2 * size**3 / (time.perf_counter() - began))
    return max(rates[1:])


# Looking up


def recorded(specs: Sequence[RunSpec], retrain: bool = False) -> pd.DataFrame:
    """As `run`, for those of the specs that are recorded."""
    return _described(_tables(specs, retrain)[0])


def _tables(specs: Sequence[RunSpec], retrain: bool) -> records.Tables:
    """Rows, in the order of the request, and curves of the recorded specs; shipped records come first."""
    wanted = [spec.id for spec in specs]
    sources = [] if retrain else [records.shipped()]
    rows, points = records.choose(records.join([*sources, records.stored()]), wanted)
    rows = rows.set_index("id")
    return rows.loc[[run_id for run_id in wanted if run_id in rows.index]].reset_index(), points


def _absent(specs: Sequence[RunSpec], retrain: bool) -> list[RunSpec]:
    known = set(store.finished())
    if not retrain:
        known |= set(records.shipped()[0]["id"])
    return [spec for spec in dict.fromkeys(specs) if spec.id not in known]


def _absent_message(absent: Sequence[RunSpec]) -> str:
    spec = absent[0]
    others = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    return (
        f"no record of run {spec.id} ({spec.method}, d={spec.model.d_model}, seed {spec.seed}){others}; "
        "make it with `cot2 run CHAPTER --profile PROFILE`, or ask with missing='train' (in a chapter: retrain=True)."
    )


def _stored_weights(run_id: str) -> dict[str, torch.Tensor] | None:
    stored = store.finished().get(run_id)
    return stored[0].weights(stored[1]) if stored else records.shipped_weights(run_id)


def _described(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the main fields of their specs in front."""
    if rows.empty:
        return rows
    specs = [from_data(json.loads(text)) for text in rows["spec"]]
    main = pd.DataFrame([fields(spec) for spec in specs], index=rows.index)
    train = pd.Series([s.task.size for s in specs], index=rows.index) - rows["inputs_a"] - rows["inputs_b"]
    return pd.concat([main, rows.drop(columns="spec"), train.rename("train_inputs")], axis=1)


def fields(spec: RunSpec) -> dict:
    """What tells runs of a sweep apart, as columns."""
    return {
        "task": spec.task.name,
        "method": spec.method,
        "budget": spec.supervision.budget or spec.task.trajectories,
        "tokens": spec.outputs,
        "fed": spec.fed,
        "d_model": spec.model.d_model,
        "layers": spec.model.layers,
        "heads": spec.model.heads,
        "seed": spec.seed,
        "batch": spec.recipe.batch,
        "lr": spec.recipe.lr,
        "steps": spec.recipe.steps,
    }


# Training


def _train(specs, absent, device: torch.device, compile: bool, shard: tuple[int, int]) -> None:
    for spec in absent:
        check_budget(spec.task, spec.supervision.budget, spec.supervision.ties)
    wanted = {spec.id for spec in absent}
    share = plan(specs, device)[shard[0] :: shard[1]]
    stacks = [left for stack in share if (left := [spec for spec in stack if spec.id in wanted])]
    seconds = forecast(stacks, device)
    if seconds > ANNOUNCE_SECONDS:
        print(f"training {sum(map(len, stacks))} runs in {len(stacks)} stacks on {device}: about {_span(seconds)}")
    began = time.perf_counter()
    for stack in stacks:
        _train_stack(stack, device, compile)
    spent = time.perf_counter() - began
    print(f"trained {sum(map(len, stacks))} runs in {_span(spent)} on {device}", flush=True)


def _train_stack(specs: list[RunSpec], device: torch.device, compile: bool) -> None:
    trainer = StackTrainer(specs, device, compile)
    made = provenance(device) | {"compiled": compile}
    store.resume(trainer)
    spec, saved = specs[0], time.monotonic()
    label = f"{spec.method} d={spec.model.d_model} x{len(specs)}"
    with tqdm(total=spec.recipe.steps, initial=trainer.progress.step, desc=label, disable=_quiet()) as bar:

        def after_segment(steps: int) -> None:
            nonlocal saved
            bar.update(steps)
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                store.save_checkpoint(trainer, made)
                saved = time.monotonic()

        trainer.train(after_segment)
    store.save_finished(trainer, made)


def _quiet() -> bool | None:
    """Bars are for terminals: never in a notebook's outputs or a log file."""
    return None if sys.stderr.isatty() and "JPY_PARENT_PID" not in os.environ else True


def _span(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
