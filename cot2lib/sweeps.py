"""Which runs each chapter stands on, per profile: the one list that notebooks, `cot2 run` and `cot2 collect` share."""

from collections.abc import Sequence

from cot2lib.errors import SpecError
from cot2lib.profiles import METHODS, SEEDS, spec
from cot2lib.runs import fields
from cot2lib.specs import RunSpec


def csft(
    profile: str = "quick",
    seeds: Sequence[int] = SEEDS,
    d_models: Sequence[int] = (16, 24, 32),
    methods: Sequence[str] = METHODS,
) -> list[RunSpec]:
    """CoT2, discrete CoT and no-CoT on MNNS 4 x 1-9, 2 layers and 2 heads, over embedding dimensions."""
    return [
        spec(method, profile, d_model=d_model, seed=seed)
        for method in methods
        for d_model in d_models
        for seed in seeds
    ]


SWEEPS = {"csft": csft}


def sweep(chapter: str, profile: str) -> list[RunSpec]:
    """All runs of a chapter under a profile.

    Raises:
        SpecError: for a chapter that trains nothing or does not exist.
    """
    if chapter not in SWEEPS:
        raise SpecError(f"chapter {chapter!r} has no runs; chapters with runs: {', '.join(SWEEPS)}.")
    return SWEEPS[chapter](profile)


def ships_weights(chapter: str, run: RunSpec) -> bool:
    """Whether a run's trained weights are shipped: those that a page looks into or a later chapter starts from."""
    return chapter == "csft" and run.model.d_model == 32 and run.method != "no-CoT"


def where(specs: Sequence[RunSpec], conditions: Sequence[str]) -> list[RunSpec]:
    """Specs whose fields (`cot2lib.runs.fields`) equal every "field=value".

    Raises:
        SpecError: for an unknown field, a malformed condition, or if no run is left.
    """
    for condition in conditions:
        name, equals, value = condition.partition("=")
        known = list(fields(specs[0]))
        if not equals or name not in known:
            raise SpecError(f"condition {condition!r}: write FIELD=VALUE with a field of {', '.join(known)}.")
        left = [spec for spec in specs if str(fields(spec)[name]) == value]
        if not left:
            values = sorted({str(fields(spec)[name]) for spec in specs})
            raise SpecError(f"condition {condition!r} leaves no run; {name} is one of {', '.join(values)}.")
        specs = left
    return list(specs)
