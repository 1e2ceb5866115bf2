"""Runs of policy gradients before and after training: a row for each run, what changed, its figures and tables.

Three decoders answer for a run: its own sampler, base and greedy discrete decoding. Accuracies are in percent.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from cot2lib.errors import RecordError
from cot2lib.specs import GRPOSpec, RunSpec
from cot2lib.study import frame, live, look, series, show
from cot2lib.study.frame import ordered
from cot2lib.study.look import SETTINGS, Shown
from cot2lib.study.printed import stated
from cot2lib.study.report import PERCENT
from cot2lib.study.sweeps import STEPS, Variant
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Rule

DECODERS = ("own", "base", "discrete")
ENTROPIES = tuple(f"entropy_{step}" for step in STEPS)
RUN, ENDS = ["profile", "id"], ("first", "last")
LIKE_CONSTANT = 0.3  # points
SHORT = {"own": "own sampler", "base": "base", "discrete": "discrete"}
HELD = {"support": "tokens held", "reachable": "weight in reach (%)", "on_the_way": "weight on the way (%)"}
LIVE_SPANS = 40  # points of a live curve; captions say so
GAIN = ("a gain of {} points", "a loss of {} points")

Stem = Callable[..., str]  # the paper's claim about runs, from the columns that tell them apart; "" where none is


def evaluations(requests: Mapping[str, Sequence[GRPOSpec]], retrained: str | None = None) -> pd.DataFrame:
    """Every evaluation of recorded runs, tidy, with accuracies by `DECODERS` and the `reward` of rollouts.

    `started` is the method of the model that a run began from, `origin` that model in words. Arguments and errors as
    `frame.read`.
    """
    rows, points = frame.read(requests, retrained)
    held_out = rows.drop_duplicates("id").set_index("id")[["inputs_a", "inputs_b"]].sum(axis=1)
    inputs = points["id"].map(held_out)
    shares = {name: PERCENT * (points[f"{name}_a"] + points[f"{name}_b"]) / inputs for name in DECODERS[1:]}
    methods = {spec.id: spec.start.method for specs in requests.values() for spec in specs}
    started = points["id"].map(methods)
    origin = started + points["layers"].map(lambda layers: f", {frame.called('layers', layers)}")
    named = {"started": started, "origin": ordered(origin, frame.ORDER["origin"])}
    return points.assign(own=points["accuracy"], reward=PERCENT * (1 - points["loss"]), **shares, **named)


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
    ends = {"before": rows[f"{measure}_before"], "after": rows[measure]}
    found = pd.concat([rows.assign(when=when, value=value) for when, value in ends.items()], ignore_index=True)
    return found.assign(when=ordered(found["when"], frame.ORDER["when"]))


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
    return found.assign(change=ordered(found["change"], known))


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


def gained(rows: pd.DataFrame, by: Sequence[str], decoder: str) -> pd.DataFrame:
    """Gains in accuracy by a decoder in each group of runs, as `show.gaps`."""
    return show.gaps(moments(rows, decoder), by, "when", "after", "before", value="value", words=GAIN)


def differences(values: pd.Series) -> str:
    """Mean with its 95 % t-interval, which nothing cuts."""
    return show.mean_of(values, -np.inf, np.inf)


# Figures


def accuracies(rows: pd.DataFrame, decoder: str, x: str, col: str, stem: Stem, start: Stem, finding: str) -> Shown:
    """Accuracy by a decoder before and after, a row of panels per recipe; black bars are the paper's.

    Args:
        rows: a row for each run.
        decoder: one of `DECODERS`.
        x, col: what places and columns of panels are told apart by.
        stem, start: the paper's claims about runs, and about what they start from, by `x` and `col`.
        finding: what the figure shows.
    """
    long, claim = moments(rows, decoder), {"before": start, "after": stem}
    said = lambda when, at, panel: stated(claim[when](**{x: at, col: panel}))
    return look.ends(long, "when", x, col, "value", said, finding, f"accuracy (%), {SHORT[decoder]}", row="recipe")


def entropies(long: pd.DataFrame, hue: str, col: str, printed: Callable[..., float | None], finding: str) -> Shown:
    """Entropies of `by_token`, a row of panels per recipe; black bars are the paper's, by `hue`, token and `col`."""
    return look.ends(long, hue, "token", col, "value", printed, finding, "entropy (nat)", (0.0, np.inf), row="recipe")


def stated_entropy(claim: str, token: int, when: str) -> float | None:
    """The paper's entropy of a step of the runs of a claim."""
    return stated(f"{claim}-entropy{token}{'-sft' if when == 'before' else ''}")


def held(rows: pd.DataFrame, table: pd.DataFrame, hue: str) -> Shown:
    """Contents of the distributions of all steps, a row of panels per measure, before and after side by side.

    `table` is of `cot2lib.study.thoughts_held`.
    """
    long = table.merge(rows[["id", hue, "seed"]], on="id").rename(columns={"step": "token"})
    long["when"] = ordered(long["when"], ("before", "after"))
    long = long.rename(columns=HELD).melt(["when", "token", hue, "seed"], [*HELD.values()], "measure")
    third = show.groups(long[long["token"] == 3], ["measure", "when"])["value"].mean().unstack("when")
    told = [f"{name} from {row.before:.1f} to {row.after:.1f}" for name, row in third.iterrows()]
    finding = f"In the third token's distribution training takes, on average, {', '.join(told)}."
    return look.ends(long, hue, "token", "when", "value", finding=finding, label="", row="measure")


def learning(points: pd.DataFrame, hue: str, decoder: str) -> Shown:
    """Reward of rollouts, accuracy by a decoder and gradient norm over epochs; a row of panels per recipe."""
    names = {"reward": "reward of rollouts (%)", decoder: f"accuracy (%), {SHORT[decoder]}"}
    names |= {"gradient_norm": "gradient norm"}
    told = points[points["step"] > 0].rename(columns=names)
    long = told.melt(["recipe", hue, "seed", "epoch"], [*names.values()], "measure")
    long["measure"] = ordered(long["measure"], tuple(names.values()))
    rewards = frame.at(long, measure=names["reward"]).sort_values("epoch")
    first, last = (getattr(rewards.groupby(["recipe", hue, "seed"], observed=True)["value"], end)() for end in ENDS)
    means = pd.DataFrame({"first": first, "last": last}).groupby("recipe", observed=True).mean().reset_index()
    told = (
        "By the {recipe} {first:.1f} % of rollouts are right in the first epoch, {last:.1f} % in the last, on average."
    )
    finding = show.finding(means, told)
    return look.curves(long, hue, "measure", y="value", labels=("epoch", ""), free=True, finding=finding)


def gains(rows: pd.DataFrame, y: str, hue: str, col: str, finding: str = "", value: str = "gain") -> Shown:
    """Gain in accuracy of every run, a line for each `y` and a panel for each `col`; larger marks are means."""
    data, apart = series.told_apart(rows, hue)
    lines, names = [*data[y].cat.remove_unused_categories().cat.categories], apart["hue_order"]
    options = dict(x=value, y=y, order=lines, hue="series", hue_order=names, palette=apart["palette"])
    dodge = 0.8 - 0.8 / len(names) if len(names) > 1 else False
    with plt.rc_context(SETTINGS):
        height = 1.2 + 0.35 * len(lines)
        panels = data[col].nunique()
        grid = look.Grid(data, col=col, height=height, aspect=look.WIDE / panels / height, despine=False)
        grid.map_dataframe(sns.stripplot, dodge=len(names) > 1, jitter=False, size=3.4, alpha=0.5, **options)
        grid.map_dataframe(sns.pointplot, dodge=dodge, errorbar=None, linestyle="none", markersize=6, zorder=5,
                           markers=[*apart["markers"].values()], markeredgecolor="white", markeredgewidth=0.7,
                           **options)  # fmt: skip
        grid.refline(x=0, color="black", linestyle="-", linewidth=0.8).set_axis_labels("gain (points)", "")
        look.panel_titles(grid, col)
        look.legend(grid.figure, apart, lines=False)
        look.finished(grid.figure)
    return Shown(grid.figure, data[[*dict.fromkeys([col, y, hue, "seed", value])]], finding)


def extremes(rows: pd.DataFrame, y: str) -> str:
    """A sentence for each recipe: which `y` gains most in accuracy by its own decoder, and which least."""
    means = show.groups(rows, ["recipe", y])["own_gain"].mean().dropna().reset_index(y)
    said = []
    quoted = "\N{LEFT DOUBLE QUOTATION MARK}{}\N{RIGHT DOUBLE QUOTATION MARK}".format
    for recipe, part in means.groupby("recipe", observed=True):
        part = part.sort_values("own_gain", ascending=False)
        (most, high), (least, low) = (tuple(part.iloc[place]) for place in (0, -1))
        said.append(
            f"By the {recipe}, decoded by {SHORT['own']}, {quoted(most)} brings most, {show.in_points(high, GAIN)}, "
            f"and {quoted(least)} least, {show.in_points(low, GAIN)}."
        )
    return " ".join(said)


def by_decoder(rows: pd.DataFrame, decoders: Sequence[str] = DECODERS) -> pd.DataFrame:
    """Each run once for each decoder, with its `gain`."""
    parts = [rows.assign(decoder=name, gain=rows[f"{name}_gain"]) for name in decoders]
    found = pd.concat(parts, ignore_index=True)
    return found.assign(decoder=ordered(found["decoder"], tuple(decoders)))


def live_rewards(starts: Sequence[RunSpec], rule: Rule, steps: int, lr: float, device: str) -> Shown:
    """Train by reward here, and draw the share (%) of right rollouts: thin lines are seeds, a thick one their mean.

    They are means over `LIVE_SPANS` equal spans of steps; a dashed line is the share before training. Arguments and
    errors as `live.rewards`.
    """
    found, start = live.rewards(starts, rule, steps, lr, device), live.start_level(starts, rule, device)
    spans = found.groupby(np.arange(len(found)) * LIVE_SPANS // len(found)).mean()
    spans.index = pd.Index((spans.index + 0.5) * len(found) / LIVE_SPANS, name="step")
    long = spans.reset_index().melt("step", var_name="seed", value_name="right")
    colour = series.LOOKS["when"]["after"][0]
    figure, axes = look.panels(1, 1, width=6.0, height=3.0)
    axis = axes[0, 0]
    sns.lineplot(
        long, x="step", y="right", units="seed", estimator=None, color=colour, linewidth=0.8, alpha=0.5, ax=axis
    )
    sns.lineplot(long, x="step", y="right", errorbar=None, color=colour, label="in training, mean", ax=axis)
    axis.axhline(start, color=series.LOOKS["when"]["before"][0], linestyle="--", label="before training")
    axis.set(xlabel="step", ylabel="right rollouts (%)", ylim=(0, 100))
    axis.legend(loc="upper left", frameon=False)
    end = spans.iloc[-1].mean()
    return Shown(figure, long, f"Training takes right rollouts from {start:.1f} to {end:.1f} % on average.")


# Tables


def accuracy_table(rows: pd.DataFrame, by: Sequence[str], best_by: str, stem: Stem) -> pd.DataFrame:
    """Accuracy (%) before and at the best epoch by one decoder, beside the paper's, and gains by all.

    `stem` names the paper's claim, from what tells the runs of a recipe apart.
    """
    told = {"before": (f"{best_by}_before", "mean"), "best epoch": (f"{best_by}_best", show.mean_of)}
    table = show.groups(rows, by).agg(**told | _gains(DECODERS))
    table["before"] = table["before"].map("{:.1f}".format)
    table.insert(2, "paper, best", _stated(table, by, stem))
    return show.headed(table)


def split_table(rows: pd.DataFrame, by: Sequence[str], best_by: str, stem: Stem) -> pd.DataFrame:
    """Accuracy (%) before, by discrete decoding, and at the best epoch beside the paper's; how many runs collapsed."""
    told = {"discrete, before": ("discrete_before", show.mean_of)}
    told |= {f"{SHORT[best_by]}, best epoch": (f"{best_by}_best", show.mean_of)}
    table = show.groups(rows, by).agg(**told, collapsed=("collapsed", how_many))
    table.insert(2, "paper, best epoch", _stated(table, by, stem))
    return show.headed(table)


def gain_table(
    rows: pd.DataFrame, by: Sequence[str], decoders: Sequence[str] = DECODERS, lost: str = "own"
) -> pd.DataFrame:
    """Accuracy (%) at the start and gains (points) by some decoders, and how runs fared.

    That is: what the last epoch lacks of the best by the decoder `lost`, how long gradients are on average, and how
    many runs collapsed.
    """
    told = {f"start, {SHORT[name]}": (f"{name}_before", show.mean_of) for name in [decoders[0]]} | _gains(decoders)
    length = partial(show.mean_of, high=np.inf)
    told |= {"lost at the end": (f"{lost}_lost", show.mean_of), "gradient": ("gradient", length)}
    return show.headed(show.groups(rows, by).agg(**told, collapsed=("collapsed", how_many)))


def _stated(table: pd.DataFrame, by: Sequence[str], stem: Stem) -> list[float | None]:
    """The paper's number for each row of a table whose index is `by`."""
    return [stated(stem(**dict(zip(by, key)))) for key in table.index]


def _gains(decoders: Sequence[str]) -> dict[str, tuple[str, Callable]]:
    return {f"gain, {SHORT[name]}": (f"{name}_gain", differences) for name in decoders}


def how_many(values: pd.Series) -> str:
    """A count of the runs of which something is true."""
    return f"{int(values.sum())} of {len(values)}"
