"""What the page of a chapter calls: runs as frames, figures and tables of them, text with numbers, and checks.

Entropies of trained models, which two pages draw, stand here; all else has its own file.
"""
# ruff: noqa: F401

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Float

from cot2lib.specs import RunSpec
from cot2lib.study.check import begin
from cot2lib.study.frame import absent, hours, read, tidy
from cot2lib.study.look import PAPER, SETTINGS, Shown, curves, ends, finished, lines, panels, ticked
from cot2lib.study.printed import paper_value
from cot2lib.study.report import RECIPES, bullets, table, text
from cot2lib.study.series import LOOKS
from cot2lib.study.show import ADDS, cells, finding, gap_table, gaps, groups, mean_of
from cot2lib.study.targets import input_entropies


def exact_entropies(specs: Sequence[RunSpec]) -> Float[np.ndarray, " step"]:
    """Exact entropy (nat) of the targets of each step, mean over the validation inputs of each run, then over runs."""
    shown = lambda spec: input_entropies(spec.task, spec.supervision.budget, spec.supervision.ties)
    return np.mean([shown(spec)[~spec.task.split(spec.split_seed)].mean(0).numpy() for spec in specs], axis=0)


def entropies(finals: pd.DataFrame, exact: Float[np.ndarray, " step"], paper: str = "") -> Shown:
    """Entropy of CoT2 models' step-t distributions: dots are seeds, grey bars the exact targets, dotted lines t ln 2.

    `finals` are the last evaluations of CoT2 runs; `paper` is the template of the claims on entropies, by `step`.
    """
    steps, recipes = np.arange(1, len(exact) + 1), list(finals["recipe"].unique())
    names = {f"entropy_{t}": t for t in steps}
    wide = finals[["recipe", "seed", *names]].rename(columns=names)
    long = wide.melt(["recipe", "seed"], var_name="step", value_name="entropy")
    figure, axes = panels(1, 1, width=6.4, height=2.5)
    axis = axes[0, 0]
    axis.bar(steps - 1, exact, width=0.8, color="#d9d9d9", label="exact target")
    thoughts = steps[:-1]
    axis.hlines(thoughts * np.log(2), thoughts - 1.4, thoughts - 0.6, "black", ":", linewidth=1.4, label="t ln 2")
    sns.stripplot(long, x="step", y="entropy", hue="recipe", dodge=len(recipes) > 1, size=4, alpha=0.7, ax=axis,
                  palette={name: LOOKS["recipe"][name][0] for name in recipes})  # fmt: skip
    if paper:
        axis.scatter(steps - 1, [paper_value(paper.format(step=t)) for t in steps], s=420, label="paper", **PAPER)
    axis.set(xlabel="step t", ylabel="entropy (nat)")
    axis.legend(loc="upper left", frameon=False)
    t = len(thoughts)
    means = groups(finals, "recipe")[f"entropy_{t}"].mean().reset_index(name="ours").assign(exact=exact[t - 1])
    words = f"Thought {t} has a mean entropy of {{ours:.3f}} nat, its targets {{exact:.3f}} ({{recipe}})."
    return Shown(figure, long[["recipe", "seed", "step", "entropy"]], finding(means.head(1), words))


def entropy_table(finals: pd.DataFrame, exact: Float[np.ndarray, " step"], paper: str) -> pd.DataFrame:
    """Entropies (nat): the paper's, t ln 2, of the exact targets, and the means of each recipe's models."""
    steps = range(1, len(exact) + 1)
    heads = {f"entropy_{t}": f"t = {t}" for t in steps}
    models = groups(finals, "recipe")[[*heads]].mean().rename(columns=heads, index="CoT2, {}".format)
    references = pd.DataFrame(
        [[paper_value(paper.format(step=t)) for t in steps], [t * np.log(2) for t in steps[:-1]] + [np.nan], exact],
        index=["the paper's CoT2", "t ln 2", "exact targets"],
        columns=[*heads.values()],
    )
    return pd.concat([references, models]).rename_axis("what").reset_index()
