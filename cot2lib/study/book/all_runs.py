"""The runs of all chapters, per profile: the one list that `cot2 run`, `cot2 collect` and the book's pages share."""

from collections.abc import Callable, Sequence
from functools import cache

from cot2lib.errors import SpecError
from cot2lib.llm.settings import LanguageRun
from cot2lib.specs import Run, RunSpec, profiles
from cot2lib.specs.profiles import SEEDS, TEN, TWENTY
from cot2lib.study import graph_runs, reward_runs
from cot2lib.study.controls import runs as controls
from cot2lib.study.prosqa import runs as prosqa
from cot2lib.study.sweeps import (
    baselines,
    budgets,
    distinct,
    feeding,
    methods,
    one_layer,
    one_split,
    small,
    sparse,
    starts,
    trigonometric,
)


def _csft(profile: str) -> list[RunSpec]:
    return [*methods(profile, TWENTY), *baselines(profile), *one_layer(profile, TWENTY), *feeding(profile)]


def _one_split(profile: str) -> list[Run]:
    """All but what other chapters have, since the first seed's own split is this one."""
    again = distinct(one_split(profile), reward_runs.on_split(profile))
    known = {*_csft(profile), *reward_runs.every_mts(profile), *reward_runs.every_simplex(profile)}
    return [run for run in again if run not in known]


def _budget(profile: str) -> list[RunSpec]:
    known = {run.id for run in methods(profile, TWENTY)}
    return [run for run in [*budgets(profile, TWENTY), *sparse(profile)] if run.id not in known]


SWEEPS: dict[str, Callable[[str], Sequence[Run]]] = {
    "csft": _csft,
    "budget": _budget,
    "sampling": small,
    "one_split": _one_split,
    "construction": trigonometric,
    graph_runs.SWEEP: graph_runs.every,  # not renamed, for its records
    "prosqa": prosqa.every,
    "controls": controls.every,
    "grpo_mts": reward_runs.every_mts,
    "grpo_dirichlet": reward_runs.every_simplex,
}
HALF = ("prosqa",)  # chapters whose weights ship in half precision


def sweep(chapter: str, profile: str) -> list[Run]:
    """All runs that a chapter stands on under a profile; `budget` leaves out those of `csft`, `sampling` repeats some.

    Raises:
        SpecError: for a chapter that trains nothing or does not exist, or an unknown profile.
    """
    if chapter not in SWEEPS:
        other = " `cot2 llm train` trains its language models." if chapter == "gsm8k" else ""
        raise SpecError(f"chapter {chapter!r} has no runs; chapters with runs: {', '.join(SWEEPS)}.{other}")
    return list(_listed(SWEEPS[chapter], profiles.profile(profile)))


@cache
def _listed(runs: Callable[[str], Sequence[Run]], profile: str) -> tuple[Run, ...]:
    """A chapter's runs; whoever looks for the chapter of a run asks for all of them."""
    return tuple(runs(profile))


def ships_weights(chapter: str, run: Run) -> bool:
    """Whether a run's trained weights are shipped: those that a page looks into or a later chapter starts from."""
    if chapter == "one_split":
        return isinstance(run, RunSpec) and run.seed in TEN
    if chapter == graph_runs.SWEEP:
        return run in graph_runs.looked_into()
    if chapter == "prosqa":
        return run in prosqa.with_weights()
    if chapter != "csft" or run.method not in ("CoT2", "discrete CoT") or run.seed not in SEEDS:
        return False
    looked_into = run.model.layers == 1 or (run.model.layers == 2 and run.model.d_model == 32)
    return looked_into or run in starts(layers=2)


def where(specs: Sequence[Run | LanguageRun], conditions: Sequence[str]) -> list[Run | LanguageRun]:
    """Specs whose fields (`columns`) equal every "field=value".

    Raises:
        SpecError: for no specs, an unknown field, a malformed condition, or if no run is left.
    """
    if not specs:
        raise SpecError("there are no such runs under this profile; choose the other one.")
    columns = {spec: spec.columns() for spec in specs}
    for condition in conditions:
        name, equals, value = condition.partition("=")
        known = list(columns[specs[0]])
        if not equals or name not in known:
            raise SpecError(f"condition {condition!r}: write FIELD=VALUE with a field of {', '.join(known)}.")
        left = [spec for spec in specs if str(columns[spec].get(name)) == value]
        if not left:
            values = sorted({str(columns[spec].get(name)) for spec in specs})
            raise SpecError(f"condition {condition!r} leaves no run; {name} is one of {', '.join(values)}.")
        specs = left
    return list(specs)
