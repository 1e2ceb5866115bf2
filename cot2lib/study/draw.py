"""Figures that several chapters share: entropies beside those of the targets, and what a chapter trains live."""

import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Float
from matplotlib.patches import Patch

from cot2lib.study import show
from cot2lib.study.look import PAPER, Shown, panels
from cot2lib.study.printed import paper_value
from cot2lib.study.series import LOOKS, SKY, SOLID, Look, told_apart

LIVE_SPANS = 40  # points of a live curve; captions say so
MODELS: dict[str, Look] = {"authors' recipe": LOOKS["method"]["CoT2"], "quick recipe": (SKY, "v", SOLID)}


def entropies(finals: pd.DataFrame, exact: Float[np.ndarray, " step"], paper: str = "") -> Shown:
    """Entropy of a CoT2 model's step-t distribution against what its targets hold.

    Args:
        finals: last evaluation of each CoT2 run, tidy.
        exact: entropy (nat) of the targets of each step, which count coinciding sums once; grey bars. Dotted lines are
            t ln 2, which does not.
        paper: template of the claims that give the paper's entropies, by `step`.
    """
    steps, recipes = np.arange(1, len(exact) + 1), list(finals["recipe"].unique())
    names = {f"entropy_{t}": t for t in steps}
    wide = finals[["recipe", "seed", *names]].rename(columns=names)
    long = wide.melt(["recipe", "seed"], var_name="step", value_name="entropy")
    figure, axes = panels(1, 1, width=6.4, height=3.2)
    axis = axes[0, 0]
    axis.bar(steps - 1, exact, width=0.8, color="#d9d9d9", label="exact target")
    thoughts = steps[:-1]
    axis.hlines(thoughts * np.log(2), thoughts - 1.4, thoughts - 0.6, "black", ":", linewidth=1.4, label="t ln 2")
    palette = {name: MODELS[name][0] for name in recipes}
    sns.stripplot(long, x="step", y="entropy", hue="recipe", dodge=len(recipes) > 1, palette=palette, size=4,
                  alpha=0.7, ax=axis)  # fmt: skip
    if paper:
        axis.scatter(steps - 1, [paper_value(paper.format(step=t)) for t in steps], s=420, label="paper", **PAPER)
    axis.set(xlabel="step t", ylabel="entropy (nat)")
    axis.legend(loc="upper left", frameon=False)
    t = len(thoughts)
    means = show.groups(finals, "recipe")[f"entropy_{t}"].mean().reset_index(name="ours").assign(exact=exact[t - 1])
    finding = show.finding(means, f"By the {{recipe}} thought {t} holds {{ours:.3f}} nat, its targets {{exact:.3f}}.")
    return Shown(figure, long[["recipe", "seed", "step", "entropy"]], finding)


def entropy_table(finals: pd.DataFrame, exact: Float[np.ndarray, " step"], paper: str) -> pd.DataFrame:
    """Entropies (nat): the paper's, t ln 2, of the exact targets, and the means of each recipe's models."""
    steps = range(1, len(exact) + 1)
    heads = {f"entropy_{t}": f"t = {t}" for t in steps}
    models = show.groups(finals, "recipe")[[*heads]].mean().rename(columns=heads, index="CoT2, {}".format)
    references = pd.DataFrame(
        [[paper_value(paper.format(step=t)) for t in steps], [t * np.log(2) for t in steps[:-1]] + [np.nan], exact],
        index=["the paper's probe", "t ln 2", "exact targets"],
        columns=[*heads.values()],
    )
    return pd.concat([references, models]).rename_axis("what").reset_index()


def live_curves(
    found: pd.DataFrame,
    recorded: pd.DataFrame | None = None,
    hue: str = "budget",
    level: tuple[str, float] | None = None,
) -> Shown:
    """Learning curves of live runs (tidy), a line for each, before the range of the recorded seeds of such runs.

    Args:
        found: curves of the live runs.
        recorded: curves of recorded runs.
        hue: what series are told apart by.
        level: name and height (%) of a dashed line.
    """
    parts = {"live": found} | ({} if recorded is None else {"recorded": recorded})
    data, apart = told_apart(pd.concat(parts, names=["made"]).reset_index("made"), hue)
    options = {name: apart[name] for name in ("hue", "palette", "hue_order")} | {"x": "epoch", "y": "accuracy"}
    behind, data = data[data["made"] == "recorded"].copy(), data[data["made"] == "live"]
    figure, axes = panels(1, 1, width=6.0, height=3.2)
    axis = axes[0, 0]
    if len(behind):
        behind["epoch"] = behind.groupby(["series", "step"], observed=True)["epoch"].transform("mean")
        sns.lineplot(behind, estimator="mean", errorbar=("pi", 100), err_kws={"alpha": 0.2, "linewidth": 0},
                     linewidth=0, legend=False, ax=axis, **options)  # fmt: skip
    sns.lineplot(data, units="seed", estimator=None, style="series", style_order=apart["hue_order"], ax=axis,
                 dashes=apart["dashes"], markers=apart["markers"], markersize=4, **options)  # fmt: skip
    if level:
        axis.axhline(level[1], color="black", linestyle="--", linewidth=1.2, label=level[0])
    axis.set(xlabel="epoch", ylabel="validation accuracy (%)", ylim=(0, 102))
    handles, labels = axis.get_legend_handles_labels()
    ranges = {*behind["series"]} - {*data["series"]}  # of series without a line
    patches = {name: Patch(color=apart["palette"][name], alpha=0.2) for name in ranges}
    shown = [patches.get(label, handle) for handle, label in zip(handles, labels)]
    axis.legend(shown, labels, loc="best", frameon=False)
    ends = data.sort_values("epoch").groupby(["series", "seed"], observed=True)["accuracy"].last()
    told = [f"{name} ends at {mean:.1f} %" for name, mean in ends.groupby("series", observed=True).mean().items()]
    said = told + ([f"{level[0]}: {level[1]:.1f} %"] if level else [])
    numbers = data[[*dict.fromkeys(["method", hue, "seed", "epoch", "accuracy"])]]
    return Shown(figure, numbers, f"{'; '.join(said)}.")
