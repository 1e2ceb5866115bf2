"""The chapter `grpo_dirichlet`: policy gradients over the simplex beside the paper's numbers, and what gamma does.

`rows` are of `cot2lib.study.policies.outcomes`, a row for each run.
"""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.kit import dirichlet, random
from cot2lib.kit.frozen import positive
from cot2lib.kit.random import Site
from cot2lib.study import policies, show
from cot2lib.study.frame import called
from cot2lib.study.look import Shown, panels
from cot2lib.study.series import BLUE, ORANGE
from cot2lib.study.sweeps import BEST_GAMMA, GAMMAS, starts
from cot2lib.thoughts import Base, Dirichlet, State
from cot2lib.training.data import stack_data

STEMS = {  # of the paper's claims, by what runs start from
    "discrete CoT, 1 layer": "dirichlet-discrete-1l",
    "discrete CoT, 2 layers": "dirichlet-discrete-2l",
    "CoT2, 1 layer": "dirichlet-cot2",
}


def claimed(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the paper's claims about them, as `policies.claimed`; from discrete CoT it has one scale alone."""
    start = rows["origin"].astype(str).map(STEMS).fillna("")
    scaled = start + rows["gamma"].map("-g{:g}".format)
    usual = start.where(rows["gamma"] == BEST_GAMMA, "")
    return policies.claimed(rows, scaled.where(rows["started"] == "CoT2", usual), start + "-sft")


def lost_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Points that the last epoch lacks of the best, by base decoding, and how much more at each scale than at 20."""
    by, scales = ["recipe", "origin"], [gamma for gamma in GAMMAS if gamma != BEST_GAMMA]
    own = show.cells(rows, by, "gamma", "base_lost", policies.differences)
    more = {f"{called('gamma', gamma)}, more than at {BEST_GAMMA:g}": (gamma, BEST_GAMMA) for gamma in scales}
    return own.merge(show.gap_table(rows, by, "gamma", more, "base_lost"), how="left")


def gamma_curves(table: pd.DataFrame) -> Shown:
    """A point's entropy rises to that of its mean with gamma, and points come closer to it; `table` is of `scales`."""
    figure, axes = panels(1, 2, width=8.0, height=2.5)
    labels = {"entropy": "entropy of a thought (nat)", "distance": "distance from its mean"}
    for axis, (column, label) in zip(axes[0], labels.items()):
        options = dict(x="gamma", legend=False, ax=axis)
        sns.lineplot(table, y=f"{column}, formula", color=BLUE, label="formula", **options)
        sns.scatterplot(table, y=column, color=ORANGE, marker="s", label="sampled", **options)
        axis.set(xscale="log", xlabel="\N{GREEK SMALL LETTER GAMMA}", ylabel=label, ylim=(0, None))
    axes[0, 0].axhline(table["most"].iloc[0], color="black", linewidth=1.0, linestyle=":", label="base thought")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    least = table.loc[table["gamma"].idxmin()]
    finding = (
        f"Points of scale {least.gamma:g} have a mean entropy of {least.entropy:.2f} nat; "
        f"the distribution around which they lie has {least.most:.2f} nat."
    )
    return Shown(figure, table, finding)


@torch.no_grad()
def base_thought(seed: int) -> Float[Tensor, " token"]:
    """The second thought of a shipped discrete model fed its own base thoughts, on the first held-out prompt."""
    chosen = starts([seed])
    stack, data = runs.load_stack(chosen, missing="error"), stack_data(chosen, "cpu")
    prompt = data.prompts[data.held_out.index[:, :1]]
    return decode(stack, prompt, rules(Base(), chosen[0].outputs)).weights[0, 0, 1]


def scales(alpha: Float[Tensor, " token"], gammas: Sequence[float], samples: int) -> pd.DataFrame:
    """Per gamma: mean entropy (nat) of a point and distance from its mean, sampled, and by their formulas.

    The distance is the root of the summed variances. `alpha` is a base thought; `most` is its entropy. SpecError
    without samples.
    """
    positive(drawn_samples=samples)
    logits = alpha.log()[None, None].expand(1, samples, -1)
    keys = random.run_keys([0], Site.PROBE)
    draws = lambda count: random.uniform(keys, samples * count).view(1, samples, count)
    unused = lambda *_: None
    alpha, rows = alpha.double(), []
    for gamma in gammas:
        state = State(logits, logits, draws, unused, unused)
        found = Dirichlet(gamma, floor=0.0, most=None)(state).weights[0].double()  # (sample, token)
        rows.append(
            {
                "gamma": gamma,
                "entropy": torch.special.entr(found).sum(-1).mean().item(),
                "distance": (found - alpha).square().sum(-1).mean().sqrt().item(),
                "entropy, formula": dirichlet.mean_entropy(alpha, gamma).item(),
                "distance, formula": dirichlet.variance(alpha, gamma).sum().sqrt().item(),
            }
        )
    return pd.DataFrame(rows).assign(most=torch.special.entr(alpha).sum().item())
