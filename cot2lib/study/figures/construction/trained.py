"""Figures and tables of what training with trigonometric embeddings gives, which the paper says is perfect.

Two kinds of models: a GPT-2 with one layer and one head, whose embeddings are learned, start trigonometric or stay
so, and the construction's own block trained from random weights (`cot2lib.study.analysis.experts`).
"""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.metrics import paired_interval
from cot2lib.specs.profiles import SEEDS
from cot2lib.study.analysis.experts import BATCH, best_rates, last_steps
from cot2lib.study.claims.training import PERFECT
from cot2lib.study.figures.curves import accuracy_over_epochs, named, unique
from cot2lib.study.figures.style import EMBEDDING, PAPER, panels, seed_dots, series_legend
from cot2lib.study.figures.words import PERCENT, mean_of
from cot2lib.study.report import recipe
from cot2lib.tasks import MNNS

BLOCK, SEEN = "block", "block,\ninputs trained on"


def together(models: pd.DataFrame, blocks: pd.DataFrame, column: str) -> pd.DataFrame:
    """Rows or curves of the GPT-2 runs and of the block at its best rates, with the block's accuracy as `column`.

    Profiles without a trigonometric run are left out. `model` names what was trained, `embedding` what tells
    its kinds apart: for the block, what one pass hands to the next.
    """
    known = models.loc[models["embedding"] != "learned", "profile"].unique()
    models = models[models["profile"].isin(known)].sort_values("d_model", kind="stable")
    models = models.assign(model="GPT-2, d = " + models["d_model"].astype(str))
    fed = best_rates(blocks).assign(model=BLOCK, profile="quick")
    fed = fed.assign(embedding="fed its " + fed["feed"], **{column: fed["accuracy"]})
    return pd.concat([models, fed], ignore_index=True)


def trained_accuracies(rows: pd.DataFrame, blocks: pd.DataFrame) -> Figure:
    """Closing accuracy of every run, a panel per profile; the black line is the paper's "perfect".

    Accuracy is on validation inputs, and of the block also on the inputs it was trained on.
    """
    both = together(rows, last_steps(blocks), "last")
    fed = both[both["model"] == BLOCK]
    both = pd.concat([both, fed.assign(model=SEEN, last=fed["seen"])])
    profiles = unique(both["profile"])
    figure, axes = panels(1, len(profiles), width=8.4, height=3.2, sharey=True)
    for axis, profile in zip(axes[0], profiles):
        part = both[both["profile"] == profile]
        _kinds(axis, part, unique(part["model"]))
        axis.set_xlabel(recipe(profile))
    axes[0, 0].set_ylabel("accuracy (%)")
    series_legend(figure, named(EMBEDDING, EMBEDDING.looks(both["embedding"])))
    return figure


def _kinds(axis: Axes, part: pd.DataFrame, models: Sequence[str]) -> None:
    """Dots of every kind of each model, side by side."""
    axis.axhline(PERFECT, color=PAPER["color"], linewidth=1.6, zorder=1)
    for place, model in enumerate(models):
        kinds = part[part["model"] == model].groupby("embedding", sort=False)["last"]
        for shift, (name, shares) in enumerate(kinds):
            seed_dots(
                axis,
                place + 0.26 * (shift - (len(kinds) - 1) / 2),
                PERCENT * shares,
                EMBEDDING.known[name],
                spread=0.07,
            )
    axis.set_xticks(range(len(models)), models)


def trained_curves(curves: pd.DataFrame, blocks: pd.DataFrame) -> Figure:
    """Validation accuracy over epochs, a panel per model; thin lines are seeds."""
    trained_on = pd.Series({seed: int(MNNS().split(seed).sum()) for seed in SEEDS})
    blocks = blocks.assign(epoch=blocks["step"] * BATCH / blocks["seed"].map(trained_on))
    return accuracy_over_epochs(together(curves, blocks, "accuracy"), EMBEDDING, "model", "{}", _stated)


def _stated(embedding: str, model: str) -> float | None:
    """What the paper's remark says of training with trigonometric embeddings (%)."""
    return None if embedding == "learned" else PERFECT


def model_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Closing accuracy (%) of the GPT-2 runs with its interval, the best seed's, and how many seeds are perfect."""
    groups = rows.sort_values("d_model", kind="stable").groupby(["profile", "d_model", "embedding"], sort=False)
    named = [{"recipe": recipe(p), "d": d, "embedding": e, **_summary(part["last"])} for (p, d, e), part in groups]
    return pd.DataFrame(named)


def block_table(blocks: pd.DataFrame) -> pd.DataFrame:
    """The same of the construction's block, for every feed and learning rate tried, and on what it was trained on."""
    groups = last_steps(blocks).groupby(["feed", "lr"], sort=False)
    return pd.DataFrame(
        [
            {
                "fed its": feed,
                "rate": f"{lr:g}",
                **_summary(part["accuracy"]),
                "trained on (%)": mean_of(PERCENT * part["seen"]),
            }
            for (feed, lr), part in groups
        ]
    )


def trained_findings(rows: pd.DataFrame, blocks: pd.DataFrame) -> list[str]:
    """Which kinds of models are perfect for how many seeds, and how the block does on what it was trained on."""
    trigonometric = rows[rows["embedding"] != "learned"]
    perfect = int((PERCENT * trigonometric["last"] >= PERFECT).sum())
    by_kind = rows.groupby(["embedding", "d_model", "profile"], sort=False)
    means = {f"{e}, d = {d}, {recipe(profile)}": part["last"] for (e, d, profile), part in by_kind}
    best = max(means, key=lambda name: means[name].mean())
    last = last_steps(best_rates(blocks))
    sentences = [
        f"Of the {len(trigonometric)} trigonometric GPT-2 runs {perfect} reach {PERFECT:g} %; the highest mean of all "
        f"is that of {best}: {mean_of(PERCENT * means[best])} %.",
        *costs(rows),
    ]
    for feed, part in last.groupby("feed", sort=False):
        sentences.append(
            f"The block fed its {feed} reaches {mean_of(PERCENT * part['accuracy'])} % on the validation inputs and "
            f"{mean_of(PERCENT * part['seen'])} % on those it was trained on; "
            f"perfect are {_perfect(part['accuracy'])} and {_perfect(part['seen'])} seeds."
        )
    return sentences


def costs(rows: pd.DataFrame) -> list[str]:
    """How far trigonometric tables end from learned ones, seed by seed, for each recipe and dimension."""
    sentences = []
    for (profile, d), part in rows.groupby(["profile", "d_model"], sort=False):
        seeds = part.pivot(index="seed", columns="embedding", values="last").dropna() * PERCENT
        others = seeds.columns.drop("learned", errors="ignore")
        if len(others) < len(seeds.columns) and len(others):
            said = "; ".join(f"{name} {_apart(seeds[name], seeds['learned'])}" for name in others)
            sentences.append(f"Beside a learned table at d = {d}, {recipe(profile)}: {said}.")
    return sentences


def _apart(own: pd.Series, other: pd.Series) -> str:
    """How many points one column lies below another, or above it."""
    side, apart = "below", paired_interval(other, own)
    if apart.mean < 0:
        side, apart = "above", paired_interval(own, other)
    return f"{apart.mean:.1f} [{apart.low:.1f}, {apart.high:.1f}] points {side}"


def _summary(shares: pd.Series) -> dict:
    return {
        "accuracy (%)": mean_of(PERCENT * shares),
        "best seed": PERCENT * shares.max(),
        "perfect seeds": _perfect(shares),
    }


def _perfect(shares: pd.Series) -> str:
    return f"{(PERCENT * shares >= PERFECT).sum()} of {len(shares)}"
