"""Figures, tables and sentences of the chapter `grpo_dirichlet`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from cot2lib.specs import GRPOSpec
from cot2lib.study.analysis.policies import columns_of, ends, lost
from cot2lib.study.figures import before_after
from cot2lib.study.figures.before_after import Group, each_variant, mean_gradient
from cot2lib.study.figures.style import BLUE, GAMMA, ORANGE, K, legend_above, panels
from cot2lib.study.figures.words import difference, mean_of
from cot2lib.study.sweeps import BEST_GAMMA, Variant


@dataclass(frozen=True)
class Start:
    """What runs start from: how figures call it, the stem of the paper's claims, and their ends by stated gamma."""

    title: str
    stem: str
    stated: Mapping[float, str]


STARTS = {  # method and layers of the model
    ("discrete CoT", 1): Start("discrete CoT, one layer", "dirichlet-discrete-1l", {BEST_GAMMA: ""}),
    ("discrete CoT", 2): Start("discrete CoT, two layers", "dirichlet-discrete-2l", {BEST_GAMMA: ""}),
    ("CoT2", 1): Start("CoT2, one layer", "dirichlet-cot2", {10.0: "-g10", 20.0: "-g20", 40.0: "-g40"}),
}
CHANGES = {  # what figures call a change that does not name itself
    "usual": "as usual",
    "half rate": "half the rate",
    "MTS rate": "the rate of MTS",
    "high rate": "ten times the rate",
    "masked rollouts": "mask per rollout",
}

Groups = Mapping[tuple[str, int], Sequence[Group]]  # by method and layers of the start


def groups(points: pd.DataFrame) -> dict[tuple[str, int], list[Group]]:
    """The runs of the paper's tables in groups of one start and gamma, with the paper's claim where there is one."""
    found = {}
    for (method, layers), start in STARTS.items():
        here = points[(points["started"] == method) & (points["layers"] == layers)]
        claims = {gamma: start.stem + suffix for gamma, suffix in start.stated.items()}
        found[method, layers] = [
            Group(gamma, GAMMA.named(gamma), here[here["gamma"] == gamma], look, claims.get(gamma))
            for gamma, look in GAMMA.looks(here["gamma"]).items()
        ]
    return {key: parts for key, parts in found.items() if parts}


def accuracy(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Accuracy by base decoding, which is the paper's, before and after, a row per recipe and a panel per start."""
    starts = {start.title: f"{start.stem}-sft" for start in STARTS.values()}
    rows = {name: _titled(groups(points)) for name, points in tables.items()}
    return before_after.accuracies(rows, "base", starts)


def accuracy_table(points: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) by each decoder before and after, and the best epoch by base decoding."""
    return before_after.accuracy_table(_titled(groups(points)), ("start", "scale"), "base")


def split_table(points: pd.DataFrame) -> pd.DataFrame:
    """Runs of the best scale on one split, by start, beside the paper's."""
    at_best = {STARTS[key].title: group for key, parts in groups(points).items() for group in parts}
    named = [replace(group, label=title) for title, group in at_best.items()]
    return before_after.split_table(named, "start", "base")


def _titled(chosen: Groups) -> dict[str, Sequence[Group]]:
    return {STARTS[key].title: parts for key, parts in chosen.items()}


def entropy_groups(chosen: Groups, held: pd.DataFrame) -> list[Group]:
    """The groups whose entropies the paper prints: their ends, with entropies of base decoding.

    `held` is of `cot2lib.study.analysis.thoughts_held`.
    """
    by_base = held.pivot(index=["when", "id"], columns="step", values="base_entropy").add_prefix("entropy_")

    def of_base(points: pd.DataFrame) -> pd.DataFrame:
        parts = [
            rows.drop(columns=list(by_base)).join(by_base.loc[when], on="id")
            for when, rows in zip(("before", "after"), ends(points))
        ]
        return pd.concat(parts, ignore_index=True)

    return [
        Group((method, layers), STARTS[method, layers].title, of_base(group.points), group.look, group.claim)
        for (method, layers), parts in chosen.items()
        for group in parts
        if method == "discrete CoT" and group.claim
    ]


def entropies(stated: Sequence[Group]) -> Figure:
    """Entropy of each step before and after, a panel per start; black bars are the paper's."""
    return before_after.entropies({GAMMA.named(BEST_GAMMA): stated})


def entropy_table(stated: Sequence[Group]) -> pd.DataFrame:
    """The numbers of `entropies`, means over seeds, with the paper's."""
    return before_after.entropy_table({GAMMA.named(BEST_GAMMA): stated}, ("scale", "start"))


def at_best_gamma(chosen: Groups) -> list[Group]:
    """The groups of gamma = 20, named by their start."""
    return [
        Group(key, STARTS[key].title, group.points, group.look)
        for key, parts in chosen.items()
        for group in parts
        if group.value == BEST_GAMMA
    ]


def gamma_curves(table: pd.DataFrame) -> Figure:
    """A point's entropy rises to that of its mean with gamma, and points come closer to it.

    `table` is of `cot2lib.study.analysis.simplex.scales`.
    """
    figure, axes = panels(1, 2, width=8.0, height=2.9)
    labels = {"entropy": "entropy of a thought (nat)", "distance": "distance from its mean"}
    for axis, (column, label) in zip(axes[0], labels.items()):
        axis.plot(table["gamma"], table[f"{column}, formula"], color=BLUE, label="formula")
        axis.plot(table["gamma"], table[column], label="sampled", color=ORANGE, marker="s", linestyle="none")
        axis.set(xscale="log", xlabel="\N{GREEK SMALL LETTER GAMMA}", ylabel=label, ylim=(0, None))
    axes[0, 0].axhline(table["most"].iloc[0], color="black", linewidth=1.0, linestyle=":", label="base thought")
    legend_above(figure, axes[0, 0], 3)
    return figure


# Variants


def variant_name(cell: pd.Series) -> str:
    """What figures call a variant of Dirichlet thoughts, from the columns of its runs."""
    parts = [GAMMA.named(cell["gamma"])]
    if cell["started"] == "CoT2":
        parts.insert(0, "CoT2")
    if cell["change"] != "usual" or cell["started"] != "CoT2":
        parts.append(CHANGES.get(cell["change"], cell["change"]))
    return ", ".join(parts)


def later_name(cell: pd.Series) -> str:
    """What figures call a run by a rule of a later paper, from the columns of its runs."""
    rules = {
        "MTS": lambda: f"MTS, {K.named(int(cell['k']))}",
        "Dirichlet": lambda: f"Dirichlet, {GAMMA.named(cell['gamma'])}",
        "Gumbel": lambda: f"Gumbel, \N{GREEK SMALL LETTER TAU} = {cell['temperature']:g}",
        "Gaussian": lambda: f"Gaussian, \N{GREEK SMALL LETTER SIGMA} = {cell['sigma']:g}",
    }
    parts = ["CoT2"] if cell["started"] == "CoT2" else []
    parts += [rules[cell["sampler"]]()] if cell["sampler"] in rules else []
    parts += [CHANGES.get(cell["change"], cell["change"])] if cell["change"] != "usual" else []
    return ", ".join(parts)


def run_name(changed: Sequence[Variant], later: Sequence[Variant]) -> Callable[[GRPOSpec], str]:
    """What sentences call a run, whatever its seed: by its variant, or by its start and gamma."""
    changes = {run.id: (names, variant.change) for names, variants in ((later_name, later), (variant_name, changed))
               for variant in variants for run in variant.specs}  # fmt: skip

    def name(run: GRPOSpec) -> str:
        cell = columns_of(run)
        if run.id in changes:
            names, change = changes[run.id]
            return names(pd.concat([cell, pd.Series({"change": change})]))
        title = STARTS[cell["started"], cell["layers"]].title
        return f"{title}, {GAMMA.named(cell['gamma'])}{before_after.on_split(run)}"

    return name


def treatments(points: pd.DataFrame) -> pd.DataFrame:
    """Per variant: accuracies (%) by own sampler and base decoding, and the gradient's length; means over seeds."""
    rows = []
    for name, part in each_variant(points, variant_name).items():
        row = {"variant": name} | before_after.accuracy_cells(part, ("own", "base"))
        row["lost at the end"] = mean_of(lost(part, "base"))
        rows.append(row | {"gradient": mean_gradient(part)})
    return pd.DataFrame(rows)


# Words


def findings(points: pd.DataFrame) -> list[str]:
    """A sentence per start: by how much base decoding gained under each gamma."""
    said = []
    for key, parts in groups(points).items():
        gained = []
        for group in parts:
            first, last = (table.set_index("seed")["base"].sort_index() for table in ends(group.points))
            gained.append(f"{group.label}: {difference(last, first)}")
        start = ends(parts[0].points)[0]["base"].mean()
        said.append(
            f"**{STARTS[key].title}** (base decoding starts at {start:.1f} %), gain in points by {'; '.join(gained)}."
        )
    return said


def noise_scale(sizes: Float[Tensor, " run"]) -> str:
    """How large the embeddings are that Gaussian noise is added to, as a sentence.

    `sizes` are of `cot2lib.study.analysis.simplex.embedding_sizes`.
    """
    return (
        f"The coordinates of the starts' embeddings have a root mean square of {sizes.mean():.2f} "
        f"({sizes.min():.2f} to {sizes.max():.2f} over seeds); a third of it is {sizes.mean() / 3:.2f}."
    )
