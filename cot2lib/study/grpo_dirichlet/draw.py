"""Figures and tables of the chapter `grpo_dirichlet`, and the paper's numbers beside them.

`rows` are of `cot2lib.study.policies.outcomes`, a row for each run.
"""

import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Float
from torch import Tensor

from cot2lib.study import look, policies, show
from cot2lib.study.frame import at, called, ordered
from cot2lib.study.look import Shown, panels
from cot2lib.study.policies import differences
from cot2lib.study.printed import stated
from cot2lib.study.series import BLUE, ORANGE
from cot2lib.study.sweeps import BEST_GAMMA, STEPS, USUAL

STEMS = {  # the paper's claims, by what runs start from
    "discrete CoT, 1 layer": "dirichlet-discrete-1l",
    "discrete CoT, 2 layers": "dirichlet-discrete-2l",
    "CoT2, 1 layer": "dirichlet-cot2",
}


def stem(gamma: float = BEST_GAMMA, origin: str = "", **_) -> str:
    """The paper's claim about a run; "" where there is none."""
    if origin == "CoT2, 1 layer":
        return f"{STEMS[origin]}-g{gamma:g}"
    return STEMS[origin] if gamma == BEST_GAMMA else ""


def start(origin: str, **_) -> str:
    """The paper's claim about what such a run starts from."""
    return f"{STEMS[origin]}-sft"


def of_base(rows: pd.DataFrame, by_base: pd.DataFrame) -> pd.DataFrame:
    """Rows of discrete starts with the paper's scale, and with entropies of base decoding.

    `by_base` is of `cot2lib.study.thoughts_held.base_entropies`.
    """
    chosen = at(rows, started="discrete CoT", gamma=BEST_GAMMA)
    return chosen.drop(columns=list(by_base)).merge(by_base, left_on="id", right_index=True)


def entropies(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Entropy of each step before and after, a panel per recipe and start; black bars are the paper's."""
    printed = lambda when, token, origin: stated(
        f"{stem(origin=origin)}-entropy{token}{'-sft' if when == 'before' else ''}"
    )
    long, limits = policies.by_token(rows), (0.0, np.inf)
    long["origin"] = long["origin"].cat.remove_unused_categories()
    return look.ends(long, "when", "token", "origin", "value", printed, finding, "entropy (nat)", limits, row="recipe")


def misfits(rows: pd.DataFrame) -> pd.Series:
    """Mean distance (nat) of the entropies before training from the paper's, by recipe and start."""
    by = ["recipe", "origin"]
    means = show.groups(rows, by)[[f"entropy_{step}_before" for step in STEPS]].mean()
    paper = [[stated(f"{stem(origin=key[1])}-entropy{step}-sft") for step in STEPS] for key in means.index]
    return (means - np.array(paper)).abs().mean(axis=1)


def gamma_curves(table: pd.DataFrame) -> Shown:
    """A point's entropy rises to that of its mean with gamma, and points come closer to it.

    `table` is of `measure.scales`.
    """
    figure, axes = panels(1, 2, width=8.0, height=2.9)
    labels = {"entropy": "entropy of a thought (nat)", "distance": "distance from its mean"}
    for axis, (column, label) in zip(axes[0], labels.items()):
        sns.lineplot(table, x="gamma", y=f"{column}, formula", color=BLUE, label="formula", legend=False, ax=axis)
        sns.scatterplot(table, x="gamma", y=column, color=ORANGE, marker="s", label="sampled", legend=False, ax=axis)
        axis.set(xscale="log", xlabel="\N{GREEK SMALL LETTER GAMMA}", ylabel=label, ylim=(0, None))
    axes[0, 0].axhline(table["most"].iloc[0], color="black", linewidth=1.0, linestyle=":", label="base thought")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    least, most = (table.loc[table["gamma"].agg(end)] for end in ("idxmin", "idxmax"))
    finding = (
        f"Points of scale {least.gamma:g} hold {least.entropy:.2f} nat, points of scale {most.gamma:g} "
        f"{most.entropy:.2f}; their mean holds {most.most:.2f}."
    )
    return Shown(figure, table, finding)


# Variants


def settings(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of variants of Dirichlet thoughts in the order of their list, named by start, scale and change."""
    return _named(rows, [f"{_from_cot2(row)}{called('gamma', row.gamma)}, {row.change}" for row in rows.itertuples()])


def rules(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of rules of later papers in the order of their list, named by start, rule and change."""
    names = []
    for row in rows.itertuples():
        changed = [] if row.change == USUAL else [row.change]
        names.append(_from_cot2(row) + ", ".join(_rule(row) + changed))
    return _named(rows, names)


def _from_cot2(row) -> str:
    return "CoT2, " if row.started == "CoT2" else ""


def _rule(row) -> list[str]:
    """A sampling rule with its field, from the columns of a run; none without noise."""
    fields = {
        "MTS": ("K", "k"),
        "Dirichlet": ("\N{GREEK SMALL LETTER GAMMA}", "gamma"),
        "Gumbel": ("\N{GREEK SMALL LETTER TAU}", "temperature"),
        "Gaussian": ("\N{GREEK SMALL LETTER SIGMA}", "sigma"),
    }
    if row.sampler not in fields:
        return []
    sign, field = fields[row.sampler]
    return [row.sampler, f"{sign} = {getattr(row, field):g}"]


def _named(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    named = rows.assign(setting=names).sort_values("rank", kind="stable")
    return named.assign(setting=ordered(named["setting"]))


def lost_table(rows: pd.DataFrame, gamma: float) -> pd.DataFrame:
    """Points that the last epoch lacks of the best, by base decoding, by start and scale, alone and beside `gamma`."""
    by = ["origin", "gamma"]
    own = show.groups(rows, [*by, "recipe"])["base_lost"].agg(differences).unstack("recipe")
    table = own.join(_beside(rows, gamma).add_suffix(f", more than at {gamma:g}"))
    return show.headed(table.fillna(""))


def _beside(rows: pd.DataFrame, gamma: float) -> pd.DataFrame:
    """`lost` as differences, by start, scale and recipe."""
    gaps = lost_beside(rows, gamma)
    told = [show.describe(*ends) for ends in zip(gaps["mean"], gaps["low"], gaps["high"])]
    return gaps.assign(told=told).pivot(index=["origin", "gamma"], columns="recipe", values="told")


def lost_beside(rows: pd.DataFrame, gamma: float) -> pd.DataFrame:
    """Points more that the last epoch lacks of the best under each other scale than under `gamma`, as `show.gaps`."""
    others = [other for other in rows["gamma"].unique() if other != gamma]
    parts = [
        show.gaps(rows, ["recipe", "origin"], "gamma", other, gamma, "base_lost").assign(gamma=other)
        for other in sorted(others)
    ]
    return pd.concat(parts, ignore_index=True)


def noise_scale(sizes: Float[Tensor, " run"]) -> str:
    """A sentence on the size of the embeddings that Gaussian noise is added to.

    `sizes` are of `measure.embedding_sizes`.
    """
    return (
        f"The coordinates of the starts' embeddings have a root mean square of {sizes.mean():.2f} "
        f"({sizes.min():.2f} to {sizes.max():.2f} over seeds); a third of it is {sizes.mean() / 3:.2f}."
    )
