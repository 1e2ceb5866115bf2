"""Pass@k of the chapter's models, shipped or measured here; what rollouts cost on this machine; other thoughts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import pandas as pd
import torch

from cot2lib import passk, runs
from cot2lib.decode import decode, rules
from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.kit.timing import in_turns, ratio
from cot2lib.model import GPT2Stack
from cot2lib.passk import MOST, TEMPERATURES, TOP_K, with_runs
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import PROFILES, TWENTY
from cot2lib.study import measured, sweeps
from cot2lib.study.frame import tidy
from cot2lib.study.report import RECIPES, Text, bullets
from cot2lib.thoughts import Base, Discrete, Rule
from cot2lib.training.data import StackData, stack_data
from cot2lib.training.evaluation import accuracy, evaluate

ROUNDS, PROMPTS = 5, 64  # of timed rollouts, and prompts that are rolled out at a time

Stacks = Mapping[str, tuple[GPT2Stack, Sequence[RunSpec]]]  # trained models by method


def checked(top_k: int, ks: Sequence[int], temperature: float) -> None:
    """Raise SpecError for parameters that nothing was measured with."""
    if top_k not in (0, TOP_K):
        raise SpecError(f"top_k={top_k}: measured are 0 (all tokens) and {TOP_K}.")
    if not ks or not all(1 <= k <= MOST for k in ks):
        raise SpecError(f"ks={list(ks)}: give numbers of samples from 1 to {MOST}.")
    if temperature not in TEMPERATURES[1:]:
        raise SpecError(f"temperature {temperature}: measured are {', '.join(map(str, TEMPERATURES[1:]))}.")


def models(profile: str) -> list[RunSpec]:
    """The small models of a profile, also those on the paper's split."""
    on_split = [run for run in sweeps.on_split(sweeps.small(profile, TWENTY)) if run.split is not None]
    return [*sweeps.small(profile), *on_split]


def of_runs(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Pass@k (%) of trained runs of one shape; raises RecordError if the weights of one are not here."""
    return passk.measure(runs.load_stack(specs, missing="error"), specs)


def read(profile: str, stacks: Stacks, measured_here: bool = False) -> pd.DataFrame:
    """Pass@k of some models, shipped or measured here, and of the other profile where all seeds are shipped.

    A tidy frame with the columns of `passk.measure`, `k` as `tries`, and `recipe`, `method`, `seed`.

    Raises:
        RecordError: if those of `profile` are neither shipped nor to be measured.
    """
    specs = [spec for _, group in stacks.values() for spec in group]
    tables = {name: measured.read("sampling", name) for name in PROFILES}
    if measured_here:
        tables[profile] = pd.concat([passk.measure(*model) for model in stacks.values()], ignore_index=True)
    elif absent := [spec for spec in specs if spec.id not in set(tables[profile]["id"])]:
        raise RecordError(_absent(absent[0], profile))
    seeds = list(dict.fromkeys(spec.seed for spec in specs))
    wanted = {name: specs if name == profile else sweeps.small(name, seeds) for name in tables}
    whole = [name for name, table in tables.items() if {spec.id for spec in wanted[name]} <= set(table["id"])]
    parts = [with_runs(tables[name], wanted[name]).assign(profile=name) for name in whole]
    return tidy(pd.concat(parts, ignore_index=True)).rename(columns={"k": "tries"})


def _absent(run: RunSpec, profile: str) -> str:
    """A sentence on a run that was not measured; it names commands where these measure the run."""
    commands = f"`cot2 run sampling --profile {profile}` and `cot2 measure sampling --profile {profile}`"
    remedy = f"make it with {commands}, or ask" if run in sweeps.small(profile) else "ask"
    return f"no Pass@k of run {run.id} (seed {run.seed}) is recorded under {profile}; {remedy} with retrain=True."


def lacking(rows: pd.DataFrame) -> Text | None:
    """A bullet for each profile that `read` leaves out, with the remedy."""
    return bullets(
        [
            f"**Not drawn, {RECIPES[name]}**: its Pass@k was not measured for all of these seeds; set "
            f'`profile = "{name}"` and `retrain = True` to make it here.'
            for name in PROFILES
            if name not in set(rows["profile"])
        ]
    )


def sampled_from(rows: pd.DataFrame, top_k: int) -> pd.DataFrame:
    """The rows of one way to sample tokens; nothing is sampled by CoT2's thoughts, nor at temperature 0."""
    free = rows["method"].eq("CoT2") | rows["temperature"].eq(0)
    return rows[free | rows["top_k"].eq(top_k)]


def rollout_costs(stacks: Stacks, tries: Sequence[int]) -> pd.DataFrame:
    """Costs of several rollouts per prompt: positions that a model computes, and time beside one CoT2 trace.

    Columns `method`, `tries`, `positions` (prompt once, then one per fed thought and rollout), `ratio` (median over
    rounds taken in alternation of the time over that of one CoT2 trace).
    """
    turns = {}
    for method, (stack, specs) in stacks.items():
        data = stack_data(specs, stack.device)
        for count in tries if method == "discrete CoT" else (1,):
            turns[method, count] = _rollout(stack, data, specs, count)
    taken, rows = in_turns(turns, ROUNDS), []
    for (method, count), seconds in taken.items():
        spec = stacks[method][1][0]
        prompt = spec.task.prompt(spec.supervision.arrow).shape[1]
        positions = prompt + count * (spec.outputs - 1)
        times = ratio(seconds, taken["CoT2", 1])
        rows.append({"method": method, "tries": count, "positions": positions, "ratio": times})
    return pd.DataFrame(rows)


def _rollout(stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], count: int) -> Callable[[], None]:
    index = data.held_out.index[:, :PROMPTS]
    rule = Discrete(1.0) if count > 1 else specs[0].thought
    keys = random.run_keys([spec.seed for spec in specs], Site.DECODE)

    @torch.no_grad()
    def turn() -> None:
        decode(stack, data.prompts[index], rules(rule, specs[0].outputs), keys, data.padding_of(index), samples=count)

    return turn


# Other thoughts than in training: sharpened, pruned or sampled ones


def accuracies(models: Sequence[tuple[GPT2Stack, Sequence[RunSpec]]], thoughts: Sequence[Rule]) -> pd.DataFrame:
    """Validation accuracy (%) of every run, fed by each of some thought rules, equal ones once.

    Columns: `layers`, `d_model` and `seed` of the run; `sampler` and the fields of the rule; `accuracy`.

    Raises:
        SpecError: without a rule.
    """
    if not thoughts:
        raise SpecError("no thought rules were given; give at least one temperature, threshold or K.")
    rows = []
    for stack, specs in models:
        data, seeds = stack_data(specs, stack.device), [spec.seed for spec in specs]
        for thought in dict.fromkeys(thoughts):
            found = evaluate(stack, data, seeds, rules(thought, specs[0].outputs))
            named = {"sampler": type(thought).__name__, **asdict(thought)}
            for spec, share in zip(specs, accuracy(data, found).tolist()):
                of_run = {"layers": spec.model.layers, "d_model": spec.model.d_model, "seed": spec.seed}
                rows.append(of_run | named | {"accuracy": share})
    return tidy(pd.DataFrame(rows))


def varied(rows: pd.DataFrame, *fields: str) -> pd.DataFrame:
    """Rows of base thoughts in which these fields alone may differ from the default."""
    keep = rows["sampler"] == Base.__name__
    for name, value in asdict(Base()).items():
        keep &= (name in fields) | rows[name].eq(value)
    return rows[keep]


def sampled(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of thoughts of K sampled tokens."""
    return rows[rows["sampler"] == "MTS"].astype({"k": int})
