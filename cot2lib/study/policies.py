"""Runs of policy gradients before and after training: a row for each run, with what changed.

Three decoders answer for a run: its own sampler, base and greedy discrete decoding. Accuracies are in percent.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import pandas as pd

from cot2lib.errors import RecordError
from cot2lib.specs import GRPOSpec
from cot2lib.study import frame
from cot2lib.study.report import PERCENT
from cot2lib.study.sweeps import STEPS, Variant
from cot2lib.tasks import MNNS

DECODERS = ("own", "base", "discrete")
ENTROPIES = tuple(f"entropy_{step}" for step in STEPS)
RUN = ["profile", "id"]
LIKE_CONSTANT = 0.3  # points


def evaluations(requests: Mapping[str, Sequence[GRPOSpec]], retrained: str | None = None) -> pd.DataFrame:
    """Every evaluation of recorded runs, tidy, with accuracies by `DECODERS` and the `reward` of rollouts.

    `started` is the method of the model that a run began from, `origin` that model in words. Arguments and errors as
    `frame.read`.
    """
    rows, points = frame.read(requests, retrained)
    held_out = rows.drop_duplicates("id").set_index("id")[["inputs_a", "inputs_b"]].sum(axis=1)
    shares = decoded(points, points["id"].map(held_out), PERCENT)
    methods = {spec.id: spec.start.method for specs in requests.values() for spec in specs}
    started = points["id"].map(methods)
    origin = started + points["layers"].map(lambda layers: f", {frame.called('layers', layers)}")
    named = {"started": started, "origin": frame.ordered(origin, frame.ORDER["origin"])}
    return points.assign(own=points["accuracy"], reward=PERCENT * (1 - points["loss"]), **shares, **named)


def decoded(points: pd.DataFrame, held_out: pd.Series, scale: float = 1.0) -> dict[str, pd.Series]:
    """Share of the held-out inputs that each decoder but the own sampler answers, times a scale, by evaluation."""
    return {name: scale * (points[f"{name}_a"] + points[f"{name}_b"]) / held_out for name in DECODERS[1:]}


def of(table: pd.DataFrame, requests: Mapping[str, Sequence[GRPOSpec]]) -> pd.DataFrame:
    """The rows of some runs of each profile."""
    return pd.concat([frame.at(table, profile=name, id=[run.id for run in specs]) for name, specs in requests.items()])


def outcomes(points: pd.DataFrame) -> pd.DataFrame:
    """A row for each run: its last evaluation, and what changed since the first, which is before any step.

    Columns of each decoder, say `own`: `own_before`; `own_gain`; `own_best` of all evaluations; `own_lost`, the points
    that the last one lacks of it. Also `entropy_t` and `entropy_t_before`; `gradient`, its mean length; `collapsed`.
    """
    runs = points.sort_values("step", kind="stable").groupby(RUN, sort=False)
    measured = [*DECODERS, *ENTROPIES]
    rows = runs.last().join(runs[measured].first().add_suffix("_before"))
    rows = rows.join(runs[[*DECODERS]].max().add_suffix("_best"))
    gained = {f"{name}_gain": rows[name] - rows[f"{name}_before"] for name in DECODERS}
    lost = {f"{name}_lost": rows[f"{name}_best"] - rows[name] for name in DECODERS}
    gradient = points[points["step"] > 0].groupby(RUN)["gradient_norm"].mean()
    return rows.assign(**gained, **lost, gradient=gradient, collapsed=collapsed(rows)).reset_index()


def moments(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Each of `outcomes` twice, `when` before and after, with a measure in `value`."""
    parts = [
        rows.assign(when=when, value=rows[measure + suffix]) for when, suffix in (("before", "_before"), ("after", ""))
    ]
    found = pd.concat(parts, ignore_index=True)
    return found.assign(when=frame.ordered(found["when"], frame.ORDER["when"]))


def by_token(rows: pd.DataFrame) -> pd.DataFrame:
    """`moments` of the entropies of all steps, with the step as `token`."""
    return pd.concat([moments(rows, name).assign(token=step) for step, name in zip(STEPS, ENTROPIES)])


def varied(rows: pd.DataFrame, variants: Mapping[str, Sequence[Variant]]) -> pd.DataFrame:
    """Rows of each profile's variants, as far as there are any, in the order of their list; `change` says of what.

    `rank` is that of the variant in the list.
    """
    parts = [
        of(rows, {name: one.specs}).assign(change=one.change, rank=rank)
        for name, given in variants.items()
        for rank, one in enumerate(given)
    ]
    known = tuple(dict.fromkeys(one.change for given in variants.values() for one in given))
    found = pd.concat(parts, ignore_index=True)
    return found.assign(change=frame.ordered(found["change"], known))


def of_one(rows: pd.DataFrame, profile: str) -> pd.DataFrame:
    """The rows of a profile, or of the first that has any.

    Raises:
        RecordError: if none has.
    """
    if rows.empty:
        raise RecordError("none of these runs is recorded under any profile; set retrain = True to train them here.")
    found = frame.at(rows, profile=profile)
    return found if len(found) else frame.at(rows, profile=rows["profile"].iloc[0])


def collapsed(last: pd.DataFrame) -> pd.Series:
    """Which runs of four digits 1-9 end at the accuracy of one answer to everything, by every decoder."""
    apart = last[list(DECODERS)].sub(last["split"].map(constant_answer), axis=0).abs()
    return apart.max(axis=1) < LIKE_CONSTANT


@cache
def constant_answer(split: int) -> float:
    """Share (%) of the validation inputs of a split that have the most frequent answer."""
    task = MNNS()
    answers = task.answers[~task.split(split)]
    return PERCENT * answers.bincount().max().item() / len(answers)
