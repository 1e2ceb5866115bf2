"""Figures and tables of what training with trigonometric embeddings gives, which the paper says is perfect.

Two kinds of models: a GPT-2 with one layer and one head, whose embeddings are learned, start trigonometric or stay
so, and the construction's own block trained from random weights (`cot2lib.theory.experts`).
"""

import pandas as pd
from matplotlib.figure import Figure

from cot2lib.figures import curves as drawn
from cot2lib.measured import MEASURED
from cot2lib.metrics import mean_interval
from cot2lib.paper import describe
from cot2lib.profiles import SEEDS
from cot2lib.tasks import MNNS
from cot2lib.theory.experts import BATCH

PERFECT = MEASURED["construction-trained"].value
BLOCK = "block"


def last_steps(blocks: pd.DataFrame) -> pd.DataFrame:
    """Closing rows of the block's training curves, one for each feed, learning rate and seed."""
    return blocks.sort_values("step").groupby(["feed", "lr", "seed"], sort=False).tail(1)


def best_rates(blocks: pd.DataFrame) -> pd.DataFrame:
    """The block's training curves at each feed's best learning rate, by mean closing accuracy."""
    means = last_steps(blocks).groupby(["feed", "lr"], sort=False)["accuracy"].mean()
    kept = pd.MultiIndex.from_tuples(means.groupby("feed", sort=False).idxmax())
    return blocks[pd.MultiIndex.from_frame(blocks[["feed", "lr"]]).isin(kept)]


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


def final_accuracies(rows: pd.DataFrame, blocks: pd.DataFrame) -> Figure:
    """Closing validation accuracy of every run, a panel per profile; black bars are the paper's "perfect"."""
    both = together(rows, last_steps(blocks), "last")
    figure = drawn.final_accuracies(both, "embedding", "model", "{}", _stated)
    for axis in figure.axes:
        axis.set_ylim(100 * both["last"].min() - 2, 101)
    return figure


def learning_curves(curves: pd.DataFrame, blocks: pd.DataFrame) -> Figure:
    """Validation accuracy over epochs, a panel per model; thin lines are seeds."""
    trained_on = pd.Series({seed: int(MNNS().split(seed).sum()) for seed in SEEDS})
    blocks = blocks.assign(epoch=blocks["step"] * BATCH / blocks["seed"].map(trained_on))
    return drawn.learning_curves(together(curves, blocks, "accuracy"), "embedding", "model", "{}", _stated)


def _stated(embedding: str, model: str) -> float | None:
    """What the paper's remark says of training with trigonometric embeddings (%)."""
    return None if embedding == "learned" else PERFECT


def model_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Closing accuracy (%) of the GPT-2 runs with its interval, the best seed's, and how many seeds are perfect."""
    groups = rows.sort_values("d_model", kind="stable").groupby(["profile", "d_model", "embedding"], sort=False)
    named = [{"profile": p, "d": d, "embedding": e, **_summary(100 * part["last"])} for (p, d, e), part in groups]
    return pd.DataFrame(named)


def block_table(blocks: pd.DataFrame) -> pd.DataFrame:
    """The same of the construction's block, for every feed and learning rate tried."""
    groups = last_steps(blocks).groupby(["feed", "lr"], sort=False)
    return pd.DataFrame([{"fed its": f, "rate": f"{lr:g}", **_summary(100 * g["accuracy"])} for (f, lr), g in groups])


def _summary(shares: pd.Series) -> dict:
    interval = mean_interval(shares, 0.0, 100.0)
    return {
        "accuracy (%)": describe(interval.mean, interval.low, interval.high),
        "best seed": shares.max(),
        "perfect seeds": f"{(shares >= PERFECT).sum()} of {len(shares)}",
    }
