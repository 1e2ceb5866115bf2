"""Runs of policy gradients before and after training: a row for each run, what changed, its figures and tables.

Three decoders answer for a run: its own sampler, base and greedy discrete decoding. Accuracies are in percent.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.specs import GRPOSpec
from cot2lib.study import frame, live, look, series, show, thoughts_held
from cot2lib.study.frame import at, ordered
from cot2lib.study.look import SETTINGS, Shown
from cot2lib.study.printed import stated
from cot2lib.study.report import PERCENT
from cot2lib.study.reward_runs import Asked, specs
from cot2lib.study.sweeps import STEPS, starts
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Rule

DECODERS = {"own": "own sampler", "base": "base", "discrete": "discrete"}
ENTROPIES = tuple(f"entropy_{step}" for step in STEPS)
RUN = ["profile", "id"]
LIKE_CONSTANT = 0.3  # points
LIVE_SPANS = 40  # points of a live curve; captions say so
STILL_STEPS = 40  # batches that show what a policy earns before it learns


# From records to a row for each run


def read(asked: Mapping[str, Asked], retrained: str | None = None, device: str = "auto") -> pd.DataFrame:
    """`outcomes` of each profile's runs, once for each `sweep` and `change` that they are of, in their order.

    The runs of the profile `retrained` are trained here. Errors as `frame.read`.
    """
    wanted = {name: specs(sweeps) for name, sweeps in asked.items()}
    if retrained:
        runs.run(wanted[retrained], retrain=True, device=device)
    rows = outcomes(evaluations(wanted, retrained))
    found = [
        at(rows, profile=name, id=[run.id for run in some]).assign(sweep=sweep, change=change)
        for name, sweeps in asked.items()
        for sweep, changes in sweeps.items()
        for change, some in changes.items()
    ]
    table = pd.concat(found, ignore_index=True)
    return table.assign(change=ordered(table["change"])).sort_values("change", kind="stable")


def evaluations(requests: Mapping[str, Sequence[GRPOSpec]], retrained: str | None = None) -> pd.DataFrame:
    """Every evaluation of recorded runs, tidy, with accuracies by `DECODERS`.

    `started` is the method of the model that a run began from, `origin` that model in words. Errors as `frame.read`.
    """
    rows, points = frame.read(requests, retrained)
    inputs = points["id"].map(frame.held_out(rows.drop_duplicates("id").set_index("id")))
    shares = {name: PERCENT * (points[f"{name}_a"] + points[f"{name}_b"]) / inputs for name in ("base", "discrete")}
    started = points["id"].map({spec.id: spec.start.method for some in requests.values() for spec in some})
    origin = started + points["layers"].map(lambda layers: f", {frame.called('layers', layers)}")
    named = {"started": started, "origin": ordered(origin, frame.ORDER["origin"])}
    return points.assign(own=points["accuracy"], **shares, **named)


def outcomes(points: pd.DataFrame) -> pd.DataFrame:
    """A row for each run: its last evaluation, and what changed since the first, which is before any step.

    Columns of each decoder, say `own`: `own_before`; `own_gain`; `own_best` of all evaluations; `own_lost`, the points
    that the last one lacks of it. Also `entropy_t` and `entropy_t_before`; `gradient`, its mean length; `collapsed`.
    """
    curves, decoders = points.sort_values("step", kind="stable").groupby(RUN, sort=False), [*DECODERS]
    rows = curves.last().join(curves[[*decoders, *ENTROPIES]].first().add_suffix("_before"))
    rows = rows.join(curves[decoders].max().add_suffix("_best"))
    gained = {f"{name}_gain": rows[name] - rows[f"{name}_before"] for name in decoders}
    lost = {f"{name}_lost": rows[f"{name}_best"] - rows[name] for name in decoders}
    gradient = points[points["step"] > 0].groupby(RUN)["gradient_norm"].mean()
    return rows.assign(**gained, **lost, gradient=gradient, collapsed=collapsed(rows)).reset_index()


def collapsed(last: pd.DataFrame) -> pd.Series:
    """Which runs of four digits 1-9 end at the accuracy of one answer to everything, by every decoder."""
    apart = last[[*DECODERS]].sub(last["split"].map(constant_answer), axis=0).abs()
    return apart.max(axis=1) < LIKE_CONSTANT


@cache
def constant_answer(split: int) -> float:
    """Share (%) of the validation inputs of a split that have the most frequent answer."""
    task = MNNS()
    answers = task.answers[~task.split(split)]
    return PERCENT * answers.bincount().max().item() / len(answers)


def claimed(rows: pd.DataFrame, after: pd.Series, before: pd.Series) -> pd.DataFrame:
    """Rows with the ids of the paper's claims about runs and about their starts, and its accuracies (%).

    An id that the paper has no number of gives none.
    """
    printed = {"paper": after.map(stated).astype(float), "paper_before": before.map(stated).astype(float)}
    return rows.assign(claim=after, **printed)


def moments(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Each of `outcomes` twice, `when` before and after: a measure in `value`, the paper's number in `paper`."""
    parts = []
    for when, column, suffix in (("before", f"{measure}_before", "-sft"), ("after", measure, "")):
        claims = rows["claim"] + "-" + measure.replace("_", "") + suffix
        accuracy = rows["paper" if when == "after" else "paper_before"]
        paper = claims.map(stated).astype(float) if measure in ENTROPIES else accuracy
        parts.append(rows.assign(when=when, value=rows[column], paper=paper))
    found = pd.concat(parts, ignore_index=True)
    return found.assign(when=ordered(found["when"], frame.ORDER["when"]))


def by_token(rows: pd.DataFrame) -> pd.DataFrame:
    """`moments` of the entropies of all steps, with the step as `token`."""
    return pd.concat([moments(rows, name).assign(token=step) for step, name in zip(STEPS, ENTROPIES)])


def of_one(rows: pd.DataFrame, profile: str) -> pd.DataFrame:
    """The rows of a profile, or of the first that has any; raises RecordError if none has."""
    if rows.empty:
        raise RecordError("none of these runs is recorded under any profile; set retrain = True to train them here.")
    found = at(rows, profile=profile)
    return found if len(found) else at(rows, profile=rows["profile"].iloc[0])


# Figures


def accuracies(rows: pd.DataFrame, decoder: str, x: str, col: str, finding: str = "", **panel) -> Shown:
    """Accuracy by a decoder before and after, a row of panels per recipe; black bars are the paper's.

    `panel` has further options of `look.ends`.
    """
    label = f"accuracy (%), {DECODERS[decoder]}"
    return _ends(moments(rows, decoder), "when", x, col, finding, label, (0.0, PERCENT), **panel)


def entropies(long: pd.DataFrame, hue: str, col: str, finding: str = "", **panel) -> Shown:
    """Entropies of `by_token`, a row of panels per recipe; black bars are the paper's."""
    return _ends(long, hue, "token", col, finding, "entropy (nat)", (0.0, np.inf), **panel)


def _ends(long: pd.DataFrame, hue: str, x: str, col: str, finding: str, label: str, limits: tuple, **panel) -> Shown:
    printed = long.dropna(subset="paper").drop_duplicates([hue, x, col]).set_index([hue, x, col])["paper"].to_dict()
    paper = lambda *place: printed.get(place)
    return look.ends(long, hue, x, col, "value", paper, finding, label, limits, row="recipe", **panel)


def by_base(rows: pd.DataFrame, asked: Mapping[str, Asked], retrained: str | None = None) -> pd.DataFrame:
    """Rows of runs whose thoughts were measured (`thoughts_held.measure`), with the entropies of base decoding."""
    known = set(rows["id"])
    wanted = {name: [run for run in specs(sweeps) if run.id in known] for name, sweeps in asked.items()}
    found = thoughts_held.base_entropies(thoughts_held.of_runs(wanted, retrained))
    return rows.drop(columns=list(found)).merge(found, left_on="id", right_index=True)


def gains(rows: pd.DataFrame, y: str, hue: str, col: str, finding: str = "", value: str = "gain") -> Shown:
    """Gain in accuracy of every run, a line for each `y` and a panel for each `col`; larger marks are means with their
    95 % t-intervals."""
    data, apart = series.told_apart(rows.assign(**{y: ordered(rows[y])}), hue)
    height = 1.2 + 0.3 * data[y].nunique()
    with plt.rc_context(SETTINGS):
        aspect = look.WIDE / data[col].nunique() / height
        grid = look.Grid(data, col=col, height=height, aspect=aspect, despine=False)
        for place, cell in grid.facet_data():
            look.seeds(grid.facet_axis(*place[:2]), cell, apart, value, y, (-np.inf, np.inf))
        grid.refline(x=0, color="black", linestyle="-", linewidth=0.8).set_axis_labels("gain (points)", "")
        look.panel_titles(grid, col)
        look.legend(grid.figure, apart, lines=False)
        look.finished(grid.figure)
    return Shown(grid.figure, data[[*dict.fromkeys([col, y, hue, "seed", value])]], finding)


def by_decoder(rows: pd.DataFrame, decoders: Sequence[str] = tuple(DECODERS)) -> pd.DataFrame:
    """Each run once for each decoder, with its `gain`."""
    parts = [rows.assign(decoder=name, gain=rows[f"{name}_gain"]) for name in decoders]
    found = pd.concat(parts, ignore_index=True)
    return found.assign(decoder=ordered(found["decoder"], tuple(decoders)))


def live_rewards(seeds: Sequence[int], rule: Rule, steps: int, lr: float, device: str) -> Shown:
    """Train discrete models by reward here; share (%) of right traces: thin lines are seeds, a thick one their mean.

    They are means over `LIVE_SPANS` equal spans of steps; a dashed line is the share before training. Errors as
    `live.rewards`.
    """
    chosen, looks = starts(seeds), series.LOOKS["when"]
    found, still = (live.rewards(chosen, rule, *how, device) for how in ((steps, lr), (STILL_STEPS, 0.0)))
    spans = found.groupby(np.arange(len(found)) * LIVE_SPANS // len(found)).mean()
    spans.index = pd.Index((spans.index + 0.5) * len(found) / LIVE_SPANS, name="step")
    long = spans.reset_index().melt("step", var_name="seed", value_name="right")
    figure, axes = look.panels(1, 1, width=6.0, height=2.4)
    options = dict(data=long, x="step", y="right", color=looks["after"][0], ax=axes[0, 0])
    sns.lineplot(units="seed", estimator=None, linewidth=0.8, alpha=0.5, **options)
    sns.lineplot(errorbar=None, label="in training, mean", **options)
    start = still.to_numpy().mean()  # without a step
    axes[0, 0].axhline(start, color=looks["before"][0], linestyle="--", label="before training")
    axes[0, 0].set(ylabel="right traces (%)", ylim=(0, 100))
    axes[0, 0].legend(loc="upper left", frameon=False)
    end = spans.iloc[-1].mean()
    return Shown(figure, long, f"Training takes the share of right traces from {start:.1f} to {end:.1f} % on average.")


# Tables


def differences(values: pd.Series) -> str:
    """Mean with its 95 % t-interval, which nothing cuts."""
    return show.mean_of(values, -np.inf, np.inf)


def how_many(values: pd.Series) -> str:
    """A count of the runs of which something is true."""
    return f"{int(values.sum())} of {len(values)}"


HEADS = {"best": "best epoch", "lost": "lost at the end", "paper": "best epoch, paper"}
TOLD: dict[str, str | Callable] = {
    "gain": differences,
    "gradient": partial(show.mean_of, high=np.inf),
    "collapsed": how_many,
    "paper": "first",
}


def table(rows: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Means of columns of `outcomes`, with 95 % t-intervals; `paper` is the paper's best epoch."""
    told = {}
    for column in columns:
        decoder, _, what = column.rpartition("_")
        head = ", ".join([HEADS.get(what, what), *filter(None, [DECODERS.get(decoder)])])
        told[head] = (column, TOLD.get(what, show.mean_of))
    return show.headed(show.groups(rows, by).agg(**told))
