"""Chapter `csft`: training on superpositions; the paper's numbers, entropies and thoughts of trained models."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from jaxtyping import Float

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.specs import RunSpec
from cot2lib.study import printed, show
from cot2lib.study.look import PAPER, Shown, panels
from cot2lib.study.printed import paper_value
from cot2lib.study.report import PERCENT, RECIPES
from cot2lib.study.series import BLUE, SKY
from cot2lib.study.targets import input_entropies
from cot2lib.supervision import hindsight_targets

AT_ONE_DIMENSION = {  # the article does not say which COCONUT, nor which no-CoT, it ran; d = 32
    "COCONUT": "main-mnns-coconut",
    "COCONUT, zero slot": "main-mnns-coconut",
    "no-CoT": "main-mnns-nocot",
    "no-CoT, pauses": "main-mnns-nocot",
}
ONE_LAYER = {"CoT2": "passk-cot2", "discrete CoT": "passk-discrete-t0.0-k1"}  # d = 24
MODELS = dict(zip(RECIPES.values(), (BLUE, SKY)))


def stated(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) of a method on MNNS 4 x 1-9, two layers, where it gives one."""
    if method in AT_ONE_DIMENSION:
        return paper_value(AT_ONE_DIMENSION[method]) if d_model == 32 else None
    return printed.stated(f"budget-b{16 if method == 'CoT2' else 1}-d{d_model}")


def stated_one_layer(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) with one layer and one head, which its Pass@k experiment gives for d = 24."""
    return paper_value(ONE_LAYER[method]) if d_model == 24 and method in ONE_LAYER else None


def exact_entropies(specs: Sequence[RunSpec]) -> Float[np.ndarray, " step"]:
    """Exact entropy (nat) of the targets of each step, mean over the validation inputs of each run, then over runs."""
    shown = lambda spec: input_entropies(spec.task, spec.supervision.budget, spec.supervision.ties)
    return np.mean([shown(spec)[~spec.task.split(spec.split_seed)].mean(0).numpy() for spec in specs], axis=0)


def entropies(finals: pd.DataFrame, exact: Float[np.ndarray, " step"], paper: str = "") -> Shown:
    """Entropy of CoT2 models' step-t distributions: dots are seeds, grey bars the exact targets, dotted lines t ln 2.

    Args:
        finals: last evaluation of each CoT2 run, tidy.
        exact: entropies of the targets (`exact_entropies`).
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
    sns.stripplot(long, x="step", y="entropy", hue="recipe", dodge=len(recipes) > 1, size=4, alpha=0.7, ax=axis,
                  palette={name: MODELS[name] for name in recipes})  # fmt: skip
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


@torch.no_grad()
def thoughts(spec: RunSpec, row: int, **options) -> Shown:
    """Step distributions of one trained model on the input `row`, fed its own thoughts, above its targets.

    The numbers are of sums in a target or above 1 % in the model; `options` are those of `cot2lib.runs.load`.
    """
    task, shown = spec.task, spec.supervision
    prompt = task.prompt(shown.arrow)[None, row : row + 1]
    made = decode(runs.load(spec, **options), prompt, rules(spec.thought, task.steps)).logits[0, 0].softmax(-1)
    wanted = hindsight_targets(task, shown.budget, shown.ties, slice(row, row + 1))[0]  # (step, vocab), as `made`
    reach = int(task.digits[row].sum()) + 1
    sums = np.arange(-reach, reach + 1)
    columns = [task.state_id(int(s)) for s in sums]
    figure, axes = panels(task.steps, 1, width=7.0, height=1.15, sharex=True)
    for step, axis in enumerate(axes[:, 0]):
        axis.bar(sums, 100 * made[step, columns].numpy(), width=0.8, color=BLUE, label="model")
        aimed = wanted[step, columns].numpy()
        axis.scatter(sums[aimed > 0], 100 * aimed[aimed > 0], s=70, **PAPER, label="target")
        axis.set_ylabel(f"t = {step + 1} (%)")
    axes[0, 0].legend(loc="upper right", ncols=2, frameon=False)
    axes[-1, 0].set_xlabel(f"partial sum of {' '.join(f'±{d}' for d in task.digits[row].tolist())}")
    aimed = [f"{PERCENT * share:.1f}" for share in made.where(wanted > 0, 0.0).sum(-1).tolist()]
    finding = f"Of the model's thoughts {', '.join(aimed[:-1])} and {aimed[-1]} % lie on sums in the targets."
    steps, tokens = ((wanted > 0) | (made > 0.01)).nonzero().T
    shares = {name: 100 * part[steps, tokens].numpy() for name, part in (("model (%)", made), ("target (%)", wanted))}
    return Shown(figure, pd.DataFrame({"t": steps + 1, "sum": tokens - task.state_id(0), **shares}), finding)
