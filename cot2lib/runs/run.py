"""Run specs, or look up what they gave: `run`, `curves`, `load`.

Specs of one shape are stacked and trained together; finished stacks go to the local store, and a
spec that has a shipped record or a stored result is never trained again. A stack that was interrupted
goes on as it was, whatever else is asked for. Shipped records come first, for rows, curves and weights
alike; with `retrain` only the local store counts.
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from tqdm import tqdm

from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import timing
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.model import GPT2Stack
from cot2lib.runs import records, store
from cot2lib.specs import GRPOSpec, Run, by_shape, from_data, shape_of
from cot2lib.supervision import check_budget
from cot2lib.thoughts import Discrete
from cot2lib.training.masked import policy_trainer
from cot2lib.training.supervised import SupervisedTrainer, build_stack
from cot2lib.training.trainer import StackTrainer

CHECKPOINT_SECONDS = 60
ANNOUNCE_SECONDS = 60
RUNS_PER_STACK = {"cpu": 16, "cuda": 64}
# fields that name one run
TELLING = ("task", "method", "budget", "tokens", "fed", "d_model", "layers", "embedding", "seed")
TELLING_POLICIES = (
    "sampler", "lr", "k", "first_k", "gamma", "floor", "masked", "sigma", "temperature", "ratio", "kl", "scaled",
    "dropout", "mask", "start",
)  # fmt: skip
SHARE_OF_SGEMM = {"cpu": 0.2, "cuda": 0.004}  # rough, for the forecast alone


def run(
    specs: Sequence[Run],
    missing: str = "train",
    *,
    device: str = "auto",
    compile: bool = False,
    retrain: bool = False,
    shard: tuple[int, int] = (0, 1),
    threads: int = 1,
) -> pd.DataFrame:
    """One row per spec, in order: its main fields, accuracies and where it was made.

    Rows are those of the shipped records and, for what is not shipped, of the local store.

    Args:
        specs: the runs.
        missing: what to do with specs that have neither a shipped record nor a stored result.
        device: "auto", "cpu" or "cuda".
        compile: compile the forward passes; pays above some minutes of CPU work.
        retrain: ignore shipped records (stored results still count, so that it can resume).
        shard: (k, n): train every n-th stack of the request starting with the k-th, return what is known then.
        threads: CPU threads while training; the matrices are small, so that one is best (use shards for more cores).

    Raises:
        RecordError: for specs without a record under missing="error", or an unreadable file.
        SpecError: for a spec that cannot be run, or none at all.
        DeviceError: for a device that is not there.
    """
    if missing not in ("train", "error"):
        raise SpecError(f"missing={missing!r}: choose 'train' or 'error'.")
    if threads < 1:
        raise SpecError(f"threads={threads}: need at least one.")
    _some(specs)
    where = resolve_device(device)
    absent = _absent(specs, retrain)
    if absent and missing == "error":
        raise RecordError(_absent_message(absent))
    if absent:
        with timing.threads(threads):
            _train(specs, absent, where, compile, shard)
    return _described(_tables(specs, retrain)[0])


def curves(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """Learning curves of recorded runs: one row per distinct run and evaluation, with the run's main fields.

    Columns besides those: `step`, `epoch`, `loss` (mean since the evaluation before), `accuracy`,
    `entropy_t`. Raises RecordError for specs without a record, SpecError for no specs.
    """
    _some(specs)
    if absent := _absent(specs, retrain):
        raise RecordError(_absent_message(absent))
    rows, points = _tables(list(dict.fromkeys(specs)), retrain)
    described = _described(rows)
    points = points.merge(described[[*fields(specs[0]), "id"]], on="id")
    inputs = described.set_index("id").loc[points["id"]]
    points["accuracy"] = (points["correct_a"] + points["correct_b"]) / (inputs["inputs_a"] + inputs["inputs_b"]).values
    points["epoch"] = points["step"] * points["batch"] / inputs["train_inputs"].values
    return points


def by_profile(requests: Mapping[str, Sequence[Run]], retrained: str | None = None) -> records.Tables:
    """Recorded rows and curves of each profile's distinct runs, with a column `profile`; others are left out.

    Args:
        requests: specs by profile.
        retrained: the profile that is read from the local store; the others are read from the shipped records.

    Raises:
        RecordError: if nothing is recorded at all.
        SpecError: if nothing is asked for.
    """
    _some([spec for specs in requests.values() for spec in specs])
    rows, points = [], []
    for name, specs in requests.items():
        known = recorded(list(dict.fromkeys(specs)), retrain=name == retrained)
        if len(known):
            have = [spec for spec in specs if spec.id in set(known["id"])]
            rows.append(known.assign(profile=name))
            points.append(curves(have, retrain=name == retrained).assign(profile=name))
    if not rows:
        raise RecordError(_absent_message([spec for specs in requests.values() for spec in specs]))
    return pd.concat(rows, ignore_index=True), pd.concat(points, ignore_index=True)


def load(spec: Run, missing: str = "train", retrain: bool = False, **options) -> GPT2Stack:
    """The trained model of `spec`, a stack of one run on the CPU; arguments and errors as `load_stack`."""
    return load_stack([spec], missing, retrain, **options)


def load_stack(specs: Sequence[Run], missing: str = "train", retrain: bool = False, **options) -> GPT2Stack:
    """The trained models of runs of one shape, as one stack on the CPU.

    The weights belong to the rows that `run` gives, with one exception: a shipped record without weights, of which
    the local store holds, or `missing="train"` makes, another training (the same spec, other rounding).

    Args:
        specs: the runs.
        missing: what to do if their weights are neither shipped nor stored, as in `run`.
        retrain: ignore shipped weights.
        **options: `device`, `compile` and `threads` of `run`.

    Raises:
        RecordError: under missing="error" if weights are neither shipped nor stored.
        SpecError: for runs of several shapes, or none at all.
    """
    _some(specs)
    if len({shape_of(spec) for spec in specs}) > 1:
        raise SpecError("only runs of one shape stack (see `cot2lib.specs.spec.shape_of`); load others one by one.")
    return _load(specs, missing, retrain, **options)


def load_starts(specs: Sequence[GRPOSpec], missing: str = "train", **options) -> GPT2Stack:
    """The models that policy gradients start from, as `load_stack`; how they were trained may differ."""
    _some(specs)
    return _load([spec.start for spec in specs], missing, **options)


def _load(specs: Sequence[Run], missing: str, retrain: bool = False, **options) -> GPT2Stack:
    """As `load_stack`, of runs whose models alone must be of one shape."""
    found = {spec.id: _weights(spec.id, retrain) for spec in specs}
    absent = [spec for spec in specs if found[spec.id] is None]
    if absent and missing == "error":
        raise RecordError(f"{_absent_message(absent)} (Its weights are not shipped.)")
    if absent:
        run(absent, retrain=True, **options)
        found |= {spec.id: _weights(spec.id, retrain) for spec in absent}
    stack = build_stack(specs)
    parts = [found[spec.id] for spec in specs]
    stack.load_state_dict({name: torch.stack([part[name] for part in parts]) for name in stack.state_dict()})
    return stack


def plan(specs: Sequence[Run], device: torch.device) -> list[list[Run]]:
    """Stacks the request is trained in: runs of one shape, learning rates together, at most so many each."""
    most = RUNS_PER_STACK[device.type]
    stacks = []
    for group in by_shape(specs):
        group = sorted(group, key=lambda spec: spec.recipe.lr)
        parts = -(-len(group) // most)
        size = -(-len(group) // parts)
        stacks += [group[first : first + size] for first in range(0, len(group), size)]
    return stacks


def forecast(stacks: Sequence[Sequence[Run]], device: torch.device) -> float:
    """Roughly how many seconds training takes, from the model sizes and this machine's matrix product rate."""
    work = 0.0
    for specs in stacks:
        spec = specs[0]
        weights = 12 * spec.model.layers * spec.model.d_model**2 + spec.task.vocab_size * spec.model.d_model
        work += 6.0 * weights * spec.positions * spec.recipe.batch * spec.recipe.steps * len(specs)
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


def recorded(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """As `run`, for those of the specs that have a shipped record; with `retrain`, a result in the local store."""
    rows = (records.stored() if retrain else records.shipped())[0]
    return _described(_in_order(specs, rows))


def _tables(specs: Sequence[Run], retrain: bool) -> records.Tables:
    """Rows, in the order of the request, and curves of the known specs; the store is read only if it is needed."""
    wanted = {spec.id for spec in specs}
    tables = records.stored() if retrain else records.shipped()
    if not retrain and not wanted <= set(tables[0]["id"]):
        tables = records.join([tables, records.stored()])
    rows, points = records.choose(tables, wanted)
    return _in_order(specs, rows), points


def _in_order(specs: Sequence[Run], rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of those specs that have one, in the order of the specs."""
    rows = rows.set_index("id")
    return rows.loc[[spec.id for spec in specs if spec.id in rows.index]].reset_index()


def _some(specs: Sequence[Run]) -> None:
    if not specs:
        raise SpecError("no runs were asked for; give at least one seed, dimension and method.")


def _absent(specs: Sequence[Run], retrain: bool) -> list[Run]:
    shipped = set() if retrain else set(records.shipped()[0]["id"])
    left = [spec for spec in dict.fromkeys(specs) if spec.id not in shipped]
    stored = store.finished() if left else {}
    return [spec for spec in left if spec.id not in stored]


def _absent_message(absent: Sequence[Run]) -> str:
    spec = absent[0]
    others = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    telling = TELLING + (TELLING_POLICIES if isinstance(spec, GRPOSpec) else ())
    where = shlex.join(f"{name}={value}" for name, value in fields(spec).items() if name in telling)
    return (
        f"no record of run {spec.id} ({spec.method}, d={spec.model.d_model}, seed {spec.seed}){others}; "
        f"make it with `cot2 run <chapter> --profile <profile> --where {where}` if `cot2 list` shows its chapter, "
        "or ask with missing='train' (in a chapter: retrain=True)."
    )


def _weights(run_id: str, retrain: bool) -> dict[str, torch.Tensor] | None:
    shipped = None if retrain else records.shipped_weights(run_id)
    if shipped is not None:
        return shipped
    stored = store.finished().get(run_id)
    return stored[0].weights(stored[1]) if stored else None


def _described(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the main fields of their specs in front."""
    if rows.empty:
        return rows
    specs = [from_data(json.loads(text)) for text in rows["spec"]]
    main = pd.DataFrame([fields(spec) for spec in specs], index=rows.index)
    train = pd.Series([s.task.size for s in specs], index=rows.index) - rows["inputs_a"] - rows["inputs_b"]
    return pd.concat([main, rows.drop(columns="spec"), train.rename("train_inputs")], axis=1)


def fields(spec: Run) -> dict:
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
        "embedding": spec.model.embedding,
        "seed": spec.seed,
        "batch": spec.recipe.batch,
        "lr": spec.recipe.lr,
        "steps": spec.recipe.steps,
    } | (_of_policy_gradient(spec) if isinstance(spec, GRPOSpec) else {})


def _of_policy_gradient(spec: GRPOSpec) -> dict:
    """What tells policy-gradient runs apart besides."""
    rule = spec.thought
    return {
        "sampler": type(rule).__name__,
        "k": getattr(rule, "k", 1 if isinstance(rule, Discrete) else None),
        "first_k": spec.first_k,
        "gamma": getattr(rule, "gamma", None),
        "floor": getattr(rule, "floor", None),
        "masked": getattr(rule, "masked", False),
        "sigma": getattr(rule, "sigma", None),
        "temperature": getattr(rule, "temperature", 1.0),
        "ratio": spec.ratio,
        "kl": spec.kl,
        "scaled": spec.scaled,
        "updates": spec.updates,
        "dropout": spec.recipe.dropout,
        "mask": spec.mask,
        "start": spec.start.id,
    }


# Training


def _train(specs, absent, device: torch.device, compile: bool, shard: tuple[int, int]) -> None:
    for spec in absent:
        check_budget(spec.task, spec.supervision.budget, spec.supervision.ties)
    store.prepare()
    stacks = _stacks(specs, {spec.id for spec in absent}, device, shard)
    seconds = forecast(stacks, device)
    if seconds > ANNOUNCE_SECONDS:
        print(f"training {sum(map(len, stacks))} runs in {len(stacks)} stacks on {device}: about {_span(seconds)}")
    began = time.perf_counter()
    for stack in stacks:
        _train_stack(stack, device, compile)
    spent = time.perf_counter() - began
    print(f"trained {sum(map(len, stacks))} runs in {_span(spent)} on {device}", flush=True)


def _stacks(specs, absent: set[str], device: torch.device, shard: tuple[int, int]) -> list[list[Run]]:
    """This shard's stacks: those that a checkpoint has begun, as they are, then what else is absent.

    Who trains what follows from the request alone, however far other shards are: each run has an owner, and a
    checkpoint goes on with the owner of its first absent run.
    """
    planned = plan(specs, device)
    owner = {spec.id: place % shard[1] for place, stack in enumerate(planned) for spec in stack}
    begun = store.begun(absent)
    taken = {spec.id for stack in begun for spec in stack}
    first = lambda stack: next(spec.id for spec in stack if spec.id in absent)
    resumed = [stack for stack in begun if owner[first(stack)] == shard[0]]
    rest = [[spec for spec in stack if spec.id in absent - taken] for stack in planned[shard[0] :: shard[1]]]
    return resumed + [stack for stack in rest if stack]


def _train_stack(specs: list[Run], device: torch.device, compile: bool) -> None:
    trainer = make_trainer(specs, device, compile)
    made = provenance(device) | {"compiled": compile}
    made |= {key: value for key, value in store.resume(trainer).items() if key == "commit"}
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


def make_trainer(specs: list[Run], device: torch.device, compile: bool = False) -> StackTrainer:
    """The trainer of a stack; the starts of policy gradients that are not there yet are trained first."""
    if isinstance(specs[0], GRPOSpec):
        start = load_starts(specs, device=str(device), compile=compile)
        return policy_trainer(specs, start, device, compile)
    return SupervisedTrainer(specs, device, compile)


def _quiet() -> bool | None:
    """Bars are for terminals: never in a notebook's outputs or a log file."""
    return None if sys.stderr.isatty() and "JPY_PARENT_PID" not in os.environ else True


def _span(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
