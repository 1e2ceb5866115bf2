"""Groups, figures, tables and checks of the chapter `grpo_dirichlet`."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.metrics import paired_interval
from cot2lib.specs import RunSpec
from cot2lib.study import sweeps
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures import policies
from cot2lib.study.figures.grpo import MOST
from cot2lib.study.figures.policies import STEPS, Group, ends, gain_of, interval, of
from cot2lib.study.figures.style import COLOURS, MARKERS, legend_above, panels
from cot2lib.study.report import describe
from cot2lib.study.sweeps import BEST_GAMMA, GAMMAS
from cot2lib.theory import points as simplex
from cot2lib.thoughts import Base, Dirichlet, State
from cot2lib.training.data import stack_data

STARTS = {  # title: method, layers, stem of the paper's claims
    "discrete CoT, one layer": ("discrete", 1, "dirichlet-discrete-1l"),
    "discrete CoT, two layers": ("discrete", 2, "dirichlet-discrete-2l"),
    "CoT2, one layer": ("cot2", 1, "dirichlet-cot2"),
}
ALIKE = 2.0  # points


def name(gamma: float) -> str:
    """How figures name a scale."""
    return f"{sweeps.GAMMA} = {gamma:g}"


def requests(profile: str, seeds: Sequence[int]) -> dict[str, dict[float, list]]:
    """The runs of the paper's tables, and gamma = 1, by start and gamma."""
    asked = {}
    for title, (method, layers, _) in STARTS.items():
        gammas = GAMMAS if layers == 1 else (BEST_GAMMA,)
        asked[title] = {gamma: sweeps.dirichlet(profile, seeds, (gamma,), method, layers) for gamma in gammas}
    return asked


def groups(points: pd.DataFrame, asked: Mapping[str, Mapping[float, list]]) -> dict[str, list[Group]]:
    """Recorded runs of `requests` in groups of one start and gamma, with the paper's claim where there is one."""
    found = {}
    for title, by_gamma in asked.items():
        method, _, stem = STARTS[title]
        claims = {g: f"{stem}-g{g:g}" for g in GAMMAS[1:]} if method == "cot2" else {BEST_GAMMA: stem}
        parts = [Group(name(g), of(points, specs), claims.get(g)) for g, specs in by_gamma.items()]
        found[title] = [group for group in parts if len(group.points)]
    return {title: parts for title, parts in found.items() if parts}


def accuracy(chosen: Mapping[str, Sequence[Group]]) -> Figure:
    """Accuracy by base decoding, which is the paper's, before and after, a panel per start."""
    return policies.before_after(chosen, "base", {title: f"{STARTS[title][2]}-sft" for title in chosen})


def accuracy_table(chosen: Mapping[str, Sequence[Group]]) -> pd.DataFrame:
    """Accuracy (%) by each decoder before and after, and the best epoch by base decoding."""
    return policies.accuracy_table(chosen, ("start", "scale"), "base")


def entropy_groups(chosen: Mapping[str, Sequence[Group]], table: pd.DataFrame) -> dict[str, list[Group]]:
    """The groups whose entropies the paper prints, in one row: their ends, with entropies of base decoding.

    `table` is of `contents.measure`.
    """
    by_base = table.pivot(index=["when", "id"], columns="step", values="base_entropy").add_prefix("entropy_")

    def of_base(points: pd.DataFrame) -> pd.DataFrame:
        parts = [
            rows.drop(columns=list(by_base)).join(by_base.loc[when], on="id")
            for when, rows in zip(("before", "after"), ends(points))
        ]
        return pd.concat(parts, ignore_index=True)

    stated = [
        Group(title, of_base(group.points), group.claim)
        for title, parts in chosen.items()
        for group in parts
        if STARTS[title][0] == "discrete" and group.claim
    ]
    return {name(BEST_GAMMA): stated}


def at_best_gamma(chosen: Mapping[str, Sequence[Group]]) -> list[Group]:
    """The groups of gamma = 20, named by their start."""
    return [Group(title, g.points) for title, parts in chosen.items() for g in parts if g.label == name(BEST_GAMMA)]


# What gamma does


@torch.no_grad()
def base_thought(spec: RunSpec, step: int = 2) -> Float[Tensor, " token"]:
    """A thought of a shipped model that feeds its own base thoughts: that of its first held-out prompt.

    Raises:
        RecordError: if its weights are neither shipped nor stored.
    """
    stack, data = runs.load_stack([spec], missing="error"), stack_data([spec], "cpu")
    prompt = data.prompts[data.held_out.index[:, :1]]
    return decode(stack, prompt, rules(Base(), spec.outputs)).weights[0, 0, step - 1]


def drawn(alpha: Float[Tensor, " token"], gamma: float, samples: int, seed: int) -> Float[Tensor, "sample token"]:
    """Dirichlet thoughts of one base thought, on the whole vocabulary."""
    logits = alpha.log()[None, None].expand(1, samples, -1)
    keys = random.run_keys([seed], Site.PROBE)
    draws = lambda count: random.uniform(keys, samples * count).view(1, samples, count)
    unused = lambda *_: None
    return Dirichlet(gamma, floor=0.0, most=None)(State(logits, logits, draws, unused, unused)).weights[0]


def scales(alpha: Float[Tensor, " token"], gammas: Sequence[float], samples: int, seed: int = 0) -> pd.DataFrame:
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
        found = drawn(alpha.float(), gamma, samples, seed).double()
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


def gamma_curves(table: pd.DataFrame) -> Figure:
    """`scales`: a point's entropy rises to that of its mean, points come closer to it."""
    figure, axes = panels(1, 2, width=8.0, height=2.9)
    labels = {"entropy": "entropy of a thought (nat)", "distance": "distance from its mean"}
    for axis, (column, label) in zip(axes[0], labels.items()):
        axis.plot(table["gamma"], table[f"{column}, formula"], color=COLOURS["CoT2"], label="formula")
        look = dict(color=COLOURS["discrete CoT"], marker=MARKERS["discrete CoT"], linestyle="none")
        axis.plot(table["gamma"], table[column], label="sampled", **look)
        axis.set(xscale="log", xlabel=sweeps.GAMMA, ylabel=label, ylim=(0, None))
    axes[0, 0].axhline(table["most"].iloc[0], color="black", linewidth=1.0, linestyle=":", label="base thought")
    legend_above(figure, axes[0, 0], 3)
    return figure


# Tiny concentrations


def treatments(points: pd.DataFrame) -> pd.DataFrame:
    """Per variant: accuracies (%) by own sampler and base decoding, and the gradient's length; means over seeds."""
    rows = []
    for variant, part in points.groupby("variant", sort=False):
        row = {"variant": variant} | policies.accuracy_cells(part, ("own", "base"))
        row["lost at the end"] = interval(policies.lost(part, "base"))
        rows.append(row | {"gradient": policies.gradient_length(part)})
    return pd.DataFrame(rows)


# Words and checks


def findings(chosen: Mapping[str, Sequence[Group]]) -> list[str]:
    """A sentence per start: by how much base decoding gained under each gamma."""
    said = []
    for title, parts in chosen.items():
        gains = []
        for group in parts:
            first, last = (table.set_index("seed")["base"].sort_index() for table in ends(group.points))
            gap = paired_interval(last, first)
            gains.append(f"{group.label}: {describe(gap.mean, gap.low, gap.high)}")
        start = ends(parts[0].points)[0]["base"].mean()
        said.append(f"**{title}** (base decoding starts at {start:.1f} %), gain in points by {'; '.join(gains)}.")
    return said


def noise_scale(specs: Sequence[RunSpec]) -> str:
    """How large the embeddings are that Gaussian noise is added to, as a sentence."""
    table = runs.load_stack(specs, missing="error").transformer.wte.weight.detach()
    sizes = table.square().mean((1, 2)).sqrt()
    return (
        f"The coordinates of the starts' embeddings have a root mean square of {sizes.mean():.2f} "
        f"({sizes.min():.2f} to {sizes.max():.2f} over seeds); a third of it is {sizes.mean() / 3:.2f}."
    )


def misfit(group: Group) -> float:
    """Mean distance (nat) of a group's entropies before training from those the paper prints for it."""
    first, _ = ends(group.points)
    ours = [first[f"entropy_{step}"].mean() for step in STEPS]
    return float(np.mean([abs(x - paper_value(f"{group.claim}-entropy{t}-sft")) for t, x in zip(STEPS, ours)]))


def _lost_by_seed(group: Group) -> pd.Series:
    """What the last evaluation of each run lacks of its best (points) by base decoding, by seed."""
    lost = policies.lost(group.points, "base")
    return lost.rename(group.points.drop_duplicates("id").set_index("id")["seed"]).sort_index()


def checks(chosen: Mapping[str, Sequence[Group]], variants: pd.DataFrame, stated: Sequence[Group]) -> dict[str, bool]:
    """The chapter's claims about recorded runs."""
    gains = lambda part: ends(part)[1].set_index("seed")["base"] - ends(part)[0].set_index("seed")["base"]
    discrete = [gains(g.points) for title, parts in chosen.items() if STARTS[title][0] == "discrete" for g in parts]
    by_gamma = {title: [gains(g.points).mean() for g in parts] for title, parts in chosen.items()}
    one_layer, cot2 = by_gamma["discrete CoT, one layer"][1:], by_gamma["CoT2, one layer"]
    ended = {g: _lost_by_seed(part) for g, part in zip(GAMMAS, chosen["CoT2, one layer"])}
    short = lambda variant: policies.lost(variants[variants["variant"] == variant], "base").mean()
    unscaled = f"{name(GAMMAS[0])}, whole vocabulary"
    seen = variants[variants["step"] > 0].groupby("variant")["gradient_norm"].mean()
    closing = ends(variants)[1].groupby("variant")["base"].mean()
    shared, masked, whole = (f"{name(BEST_GAMMA)}, {how}" for how in ("as usual", "masked", "whole vocabulary"))
    still = variants[variants["variant"].str.contains("no learning")]
    held = still.groupby("id")[["own", "base", "discrete"]].agg(lambda values: float(np.ptp(values)))
    return {
        "policy gradients raise base decoding of discrete models on most runs": bool(
            (pd.concat(discrete) > 0).mean() > MOST
        ),
        "from discrete models gamma = 10, 20 and 40 gain alike": bool(np.ptp(one_layer) < ALIKE),
        "from CoT2 a larger gamma gains more": bool((np.diff(cot2) > 0).all()),
        "and gamma = 1 loses": bool(cot2[0] < 0),
        "from CoT2 gamma = 1 loses more of its best than gamma = 20, on every seed": bool(
            (ended[1.0] > ended[BEST_GAMMA]).all()
        ),
        "at gamma = 20 a mask and a shared entry end alike": bool(abs(closing[shared] - closing[masked]) < ALIKE),
        "the whole vocabulary more than doubles the gradient and gains less": bool(
            seen[whole] > 2 * seen[shared] and closing[whole] < closing[shared]
        ),
        "from discrete models so does gamma = 1, with still longer gradients, and keeps what it gains": bool(
            seen[unscaled] > seen[whole]
            and gain_of(variants, unscaled, "base").mean() > 0
            and short(unscaled) < short(whole) + ALIKE
        ),
        "the paper's entropies before training fit two layers, not one": misfit(stated[1]) < misfit(stated[0]) / 2,
        "without a learning rate nothing changes": bool(len(held) and held.to_numpy().max() == 0),
    }
