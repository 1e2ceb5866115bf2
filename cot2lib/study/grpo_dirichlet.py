"""The chapter `grpo_dirichlet`: figures and tables on policy gradients over the simplex, beside the paper's numbers.

`rows` are of `cot2lib.study.policies.outcomes`, a row for each run.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.specs import RunSpec
from cot2lib.study import policies, show
from cot2lib.study.frame import at, called, ordered
from cot2lib.study.look import Shown, panels
from cot2lib.study.printed import stated
from cot2lib.study.series import BLUE, ORANGE
from cot2lib.study.sweeps import BEST_GAMMA, STEPS, USUAL
from cot2lib.theory import points as simplex
from cot2lib.thoughts import Base, Dirichlet, State
from cot2lib.training.data import stack_data

STEMS = {  # the paper's claims, by what runs start from
    "discrete CoT, 1 layer": "dirichlet-discrete-1l",
    "discrete CoT, 2 layers": "dirichlet-discrete-2l",
    "CoT2, 1 layer": "dirichlet-cot2",
}
FIELDS = {  # of a sampling rule that is named
    "MTS": ("K", "k"),
    "Dirichlet": ("\N{GREEK SMALL LETTER GAMMA}", "gamma"),
    "Gumbel": ("\N{GREEK SMALL LETTER TAU}", "temperature"),
    "Gaussian": ("\N{GREEK SMALL LETTER SIGMA}", "sigma"),
}


def stem(gamma: float = BEST_GAMMA, origin: str = "", **_) -> str:
    """The paper's claim about a run; "" where there is none."""
    if origin == "CoT2, 1 layer":
        return f"{STEMS[origin]}-g{gamma:g}"
    return STEMS[origin] if gamma == BEST_GAMMA else ""


def start(origin: str, **_) -> str:
    """The paper's claim about what such a run starts from."""
    return f"{STEMS[origin]}-sft"


def paper_best(origin: str) -> float | None:
    """The paper's accuracy (%) from a start at its best scale."""
    return stated(stem(origin=origin))


def of_base(rows: pd.DataFrame, by_base: pd.DataFrame) -> pd.DataFrame:
    """Rows of discrete starts with the paper's scale, and with entropies of base decoding.

    `by_base` is of `cot2lib.study.thoughts_held.base_entropies`.
    """
    chosen = at(rows, started="discrete CoT", gamma=BEST_GAMMA)
    return chosen.drop(columns=list(by_base)).merge(by_base, left_on="id", right_index=True)


def entropies(rows: pd.DataFrame, finding: str = "") -> Shown:
    """Entropy of each step before and after, a panel per recipe and start; black bars are the paper's."""
    printed = lambda when, token, origin: policies.stated_entropy(stem(origin=origin), token, when)
    long = policies.by_token(rows)
    long["origin"] = long["origin"].cat.remove_unused_categories()
    return policies.entropies(long, "when", "origin", printed, finding)


def misfits(rows: pd.DataFrame) -> pd.Series:
    """Mean distance (nat) of the entropies before training from the paper's, by recipe and start."""
    by = ["recipe", "origin"]
    means = show.groups(rows, by)[[f"entropy_{step}_before" for step in STEPS]].mean()
    paper = [[policies.stated_entropy(stem(origin=key[1]), step, "before") for step in STEPS] for key in means.index]
    return (means - np.array(paper)).abs().mean(axis=1)


def gamma_curves(table: pd.DataFrame) -> Shown:
    """A point's entropy rises to that of its mean with gamma, and points come closer to it.

    `table` is of `scales`.
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


def by_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of variants of Dirichlet thoughts in the order of their list, named by start, scale and change."""
    return _named(rows, [f"{called('gamma', row.gamma)}, {row.change}" for row in rows.itertuples()])


def by_rule(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of rules of later papers in the order of their list, named by start, rule with its field, and change."""
    names = []
    for row in rows.itertuples():
        sign, field = FIELDS.get(row.sampler, ("", ""))
        rule = [row.sampler, f"{sign} = {getattr(row, field):g}"] if field else []  # none without noise
        names.append(", ".join(rule + ([] if row.change == USUAL else [row.change])))
    return _named(rows, names)


def _named(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    start = rows["started"].map({"CoT2": "CoT2, "}).fillna("")
    named = rows.assign(setting=start + names).sort_values("rank", kind="stable")
    return named.assign(setting=ordered(named["setting"]))


def lost_table(rows: pd.DataFrame, gamma: float) -> pd.DataFrame:
    """Points that the last epoch lacks of the best, by base decoding, by start and scale, alone and beside `gamma`."""
    by = ["origin", "gamma"]
    own = show.groups(rows, [*by, "recipe"])["base_lost"].agg(policies.differences).unstack("recipe")
    gaps = lost_beside(rows, gamma)
    told = [show.describe(*ends) for ends in zip(gaps["mean"], gaps["low"], gaps["high"])]
    beside = gaps.assign(told=told).pivot(index=by, columns="recipe", values="told")
    return show.headed(own.join(beside.add_suffix(f", more than at {gamma:g}")).fillna(""))


def lost_beside(rows: pd.DataFrame, gamma: float) -> pd.DataFrame:
    """Points more that the last epoch lacks of the best under each other scale than under `gamma`, as `show.gaps`."""
    others = [other for other in rows["gamma"].unique() if other != gamma]
    parts = [
        show.gaps(rows, ["recipe", "origin"], "gamma", other, gamma, "base_lost").assign(gamma=other)
        for other in sorted(others)
    ]
    return pd.concat(parts, ignore_index=True)


# Thoughts of one base thought, and the embeddings that noise is added to


@torch.no_grad()
def base_thought(spec: RunSpec) -> Float[Tensor, " token"]:
    """The second thought of a shipped model that feeds its own base thoughts, on its first held-out prompt.

    Raises:
        RecordError: if its weights are neither shipped nor stored.
    """
    stack, data = runs.load_stack([spec], missing="error"), stack_data([spec], "cpu")
    prompt = data.prompts[data.held_out.index[:, :1]]
    return decode(stack, prompt, rules(Base(), spec.outputs)).weights[0, 0, 1]


def drawn(alpha: Float[Tensor, " token"], gamma: float, samples: int) -> Float[Tensor, "sample token"]:
    """Dirichlet thoughts of one base thought, on the whole vocabulary."""
    logits = alpha.log()[None, None].expand(1, samples, -1)
    keys = random.run_keys([0], Site.PROBE)
    draws = lambda count: random.uniform(keys, samples * count).view(1, samples, count)
    unused = lambda *_: None
    return Dirichlet(gamma, floor=0.0, most=None)(State(logits, logits, draws, unused, unused)).weights[0]


def scales(alpha: Float[Tensor, " token"], gammas: Sequence[float], samples: int) -> pd.DataFrame:
    """Per gamma: mean entropy (nat) of a point and distance from its mean, sampled, and by their formulas.

    The distance is the root of the summed variances. `alpha` is a base thought.

    Raises:
        SpecError: without scales or samples.
    """
    if not gammas or samples < 1:
        raise SpecError(f"drawn_gammas={list(gammas)}, drawn_samples={samples}: give at least one of each.")
    alpha = alpha.double()
    rows = []
    for gamma in gammas:
        found = drawn(alpha.float(), gamma, samples).double()
        apart = (found - alpha).square().sum(-1)
        rows.append(
            {
                "gamma": gamma,
                "entropy": torch.special.entr(found).sum(-1).mean().item(),
                "distance": apart.mean().sqrt().item(),
                "entropy, formula": simplex.entropy(alpha, gamma).item(),
                "distance, formula": simplex.variance(alpha, gamma).sum().sqrt().item(),
            }
        )
    return pd.DataFrame(rows).assign(most=torch.special.entr(alpha).sum().item())


def noise_scale(specs: Sequence[RunSpec]) -> str:
    """A sentence on the size of shipped models' embeddings, which Gaussian noise is added to: a root mean square.

    Raises:
        RecordError: if weights are neither shipped nor stored.
    """
    table = runs.load_stack(specs, missing="error").transformer.wte.weight.detach()
    sizes = table.square().mean((1, 2)).sqrt()
    return (
        f"The coordinates of the starts' embeddings have a root mean square of {sizes.mean():.2f} "
        f"({sizes.min():.2f} to {sizes.max():.2f} over seeds); a third of it is {sizes.mean() / 3:.2f}."
    )
