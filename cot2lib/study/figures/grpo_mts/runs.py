"""Figures, tables and sentences of the chapter `grpo_mts` on runs before and after."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from cot2lib.specs import GRPOSpec
from cot2lib.study.analysis.policies import best, columns_of, ends
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures import before_after
from cot2lib.study.figures.before_after import Group
from cot2lib.study.figures.curves import in_order
from cot2lib.study.figures.style import BLUE, GREEN, ORANGE, K, legend_above, panels
from cot2lib.study.figures.words import difference
from cot2lib.study.sweeps import DIVERGENCE, Variant

SETTING = ("dimension", "tokens")  # columns that name a group
CHANGES = {  # what figures call a change that does not name itself
    "usual": "as usual",
    "divergence": f"\N{GREEK SMALL LETTER BETA} = {DIVERGENCE}",
    "low rate": "a tenth of the rate",
    "high rate": "ten times the rate",
    "product, high rate": "product, ten times the rate",
    "rising": "rising from 1",
}
START_LOOKS = ((BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "D", "-."))


def variant_name(cell: pd.Series) -> str:
    """What figures call a variant, from the columns of its runs."""
    return f"{K.named(int(cell['k']))}, {CHANGES.get(cell['change'], cell['change'])}"


def run_name(variants: Sequence[Variant]) -> Callable[[GRPOSpec], str]:
    """What sentences call a run, whatever its seed: by its variant, or by its K and dimension."""
    changes = {run.id: variant.change for variant in variants for run in variant.specs}

    def name(run: GRPOSpec) -> str:
        cell = columns_of(run)
        if run.id in changes:
            return variant_name(pd.concat([cell, pd.Series({"change": changes[run.id]})]))
        return f"{K.named(int(cell['k']))}, d = {cell['d_model']}{before_after.on_split(run)}"

    return name


def by_k(points: pd.DataFrame, d_model: int) -> list[Group]:
    """The runs of one dimension in groups of one K."""
    here = points[points["d_model"] == d_model]
    looks = K.looks(here["k"])
    claim = f"grpo-mts-d{d_model}-k"
    return [Group(k, K.named(k), here[here["k"] == k], look, f"{claim}{k}") for k, look in looks.items()]


def accuracy_by_k(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Accuracy by own sampler before and after training over K, a row per recipe and a panel per dimension."""
    titles = {d: f"tokens per thought (d = {d})" for points in tables.values() for d in in_order(points["d_model"])}
    starts = {title: f"grpo-mts-d{d}-sft" for d, title in titles.items()}
    rows = {name: {title: by_k(points, d) for d, title in titles.items()} for name, points in tables.items()}
    return before_after.accuracies(rows, "own", starts)


def entropies_by_k(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Entropy of each step before and after, a row per recipe and dimension, and a panel per K."""
    rows = {name: _by_dimension(points) for name, points in tables.items()}
    return before_after.entropies({f"{d},\n{name}": parts for name, row in rows.items() for d, parts in row.items()})


def entropy_table(points: pd.DataFrame) -> pd.DataFrame:
    """Entropies (nat) before and after, by dimension and K, means over seeds with the paper's."""
    return before_after.entropy_table(_by_dimension(points), SETTING)


def accuracy_table(points: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) by each decoder before and after, and the best epoch by own sampler."""
    return before_after.accuracy_table(_by_dimension(points), SETTING, "own")


def split_table(points: pd.DataFrame) -> pd.DataFrame:
    """Runs with d = 24 on one split by dropout in the current policy, beside the paper's."""
    tables = []
    for dropout, part in points.groupby("dropout"):
        table = before_after.split_table(by_k(part, 24), "tokens", "own")
        table.insert(0, "dropout", f"{dropout:g}")
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def split_findings(points: pd.DataFrame) -> list[str]:
    """A sentence per dropout and K: the best epochs of the runs on one split."""
    said = []
    for (dropout, k), part in points.groupby(["dropout", "k"]):
        found, stated = [f"{value:.1f}" for value in best(part).sort_values()], paper_value(f"grpo-mts-d24-k{k:.0f}")
        at = f"best epochs at {', '.join(found)} %; the paper's is at {stated:.1f} %."
        said.append(f"**{K.named(int(k))}, dropout {dropout:g}**: {at}")
    return said


def _by_dimension(points: pd.DataFrame) -> dict[str, list[Group]]:
    return {f"d = {d}": by_k(points, d) for d in in_order(points["d_model"])}


def by_start(points: pd.DataFrame, variants: pd.DataFrame) -> list[Group]:
    """The runs of K = 3 by what they started from; `variants` has the better starts."""
    three = points[points["k"] == 3]
    parts = {f"d = {d}": three[three["d_model"] == d] for d in in_order(points["d_model"])}
    parts["d = 24, better start"] = variants[variants["change"] == "better start"]
    known = {label: part for label, part in parts.items() if len(part)}
    return [Group(label, label, part, look) for (label, part), look in zip(known.items(), START_LOOKS)]


def gain_against_start(chosen: Sequence[Group]) -> Figure:
    """Gain in accuracy (points) over the accuracy at the start, both by own sampler, a dot per run."""
    figure, axes = panels(1, 1, width=5.6, height=3.2)
    axis = axes[0, 0]
    for group in chosen:
        first, last = (table.set_index("id")["own"] for table in ends(group.points))
        colour, marker, _ = group.look
        axis.scatter(first, last - first, color=colour, marker=marker, label=group.label)
    axis.set(xlabel="accuracy at the start (%), own sampler", ylabel="gain (points)")
    axis.axhline(0, color="black", linewidth=0.8)
    legend_above(figure, axis, len(chosen))
    return figure


def findings(points: pd.DataFrame) -> list[str]:
    """A sentence per dimension and K: accuracies and entropies before and after, and how many seeds gained."""
    first, last = ends(points)
    said = []
    for (d_model, k), after in last.groupby(["d_model", "k"]):
        before = first[(first["d_model"] == d_model) & (first["k"] == k)].set_index("id").loc[after["id"]]
        gained = int((after["own"].to_numpy() > before["own"].to_numpy()).sum())
        own, discrete = (f"{before[d].mean():.1f} % to {after[d].mean():.1f} %" for d in ("own", "discrete"))
        said.append(
            f"**d = {d_model}, K = {k}**: by its own sampler {own}, a gain of "
            f"{difference(after['own'], before['own'])} points, on {gained} of {len(after)} seeds; discrete "
            f"decoding {discrete}."
        )
    return said
