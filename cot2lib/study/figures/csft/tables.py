"""Tables and measured sentences of the chapter `csft`."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from cot2lib.metrics import paired_interval
from cot2lib.specs import RunSpec
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.csft.drawn import paper_accuracy
from cot2lib.study.figures.curves import unique
from cot2lib.study.figures.style import METHOD
from cot2lib.study.figures.words import describe_mean, in_words, versus
from cot2lib.study.report import recipe

Cell = tuple[str, str, int]
FEWEST, APART = 5, 20.0  # runs of a cell, and points between two groups of them, that a sentence tells


def run_name(run: RunSpec) -> str:
    """What sentences call a run of this chapter, whatever its seed."""
    known = run.columns()
    fed = "" if known["fed"] in ("teacher", "stages") else f", fed {known['fed']}"
    return f"{known['method']}, {known['layers']} layer{'s' * (known['layers'] > 1)}, d = {known['d_model']}{fed}"


def cell(rows: pd.DataFrame, profile: str, method: str, d_model: int) -> pd.DataFrame:
    """The runs of one cell, by seed."""
    chosen = (rows["profile"] == profile) & (rows["method"] == method) & (rows["d_model"] == d_model)
    return rows[chosen].set_index("seed")


def cells(rows: pd.DataFrame) -> list[Cell]:
    """(profile, method, d_model) of every cell with a record, in the order of the rows."""
    return list(dict.fromkeys(zip(rows["profile"], rows["method"], rows["d_model"])))


def final_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Last-epoch accuracies (%) by method and dimension: the paper's, and ours per profile."""
    table = []
    for method in METHOD.looks(rows["method"]):
        for d_model in sorted(unique(rows.loc[rows["method"] == method, "d_model"])):
            entry = {"method": method, "d": d_model, "paper": paper_accuracy(method, d_model)}
            for profile in unique(rows["profile"]):
                entry[f"ours, {recipe(profile)}"] = describe_mean(cell(rows, profile, method, d_model)["last"])
            table.append(entry)
    return pd.DataFrame(table)


def selection_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracies (%) of every cell under four ways of choosing the epoch."""
    names = {"last": "last", "closing_mean": "last ten", "best": "best", "split_half": "split half"}
    table = []
    for profile, method, d_model in cells(rows):
        means = 100 * cell(rows, profile, method, d_model)[list(names)].mean()
        table.append({"recipe": recipe(profile), "method": method, "d": d_model, **means.rename(names).to_dict()})
    return pd.DataFrame(table)


def findings(rows: pd.DataFrame) -> list[str]:
    """One sentence per profile and dimension on CoT2 against discrete CoT."""
    sentences = []
    for profile in unique(rows["profile"]):
        for d_model in sorted(unique(rows["d_model"])):
            gap = advantage(rows, profile, d_model)
            if gap is not None:
                sentences.append(_sentence(profile, d_model, *gap))
    return sentences


def advantage(rows: pd.DataFrame, profile: str, d_model: int) -> tuple[pd.Series, pd.Series] | None:
    """Accuracies (%) of CoT2 and discrete CoT for the seeds that both have."""
    ours, theirs = (100 * cell(rows, profile, method, d_model)["last"] for method in ("CoT2", "discrete CoT"))
    seeds = ours.index.intersection(theirs.index)
    return (ours[seeds], theirs[seeds]) if len(seeds) else None


def _sentence(profile: str, d_model: int, ours: pd.Series, theirs: pd.Series) -> str:
    gap = paired_interval(ours, theirs)
    ahead = int((ours > theirs).sum())
    return (
        f"**{recipe(profile)}, d = {d_model}**: CoT2 {ours.mean():.1f} %, discrete CoT {theirs.mean():.1f} %. CoT2 is "
        f"{in_words(gap, '{} points above', '{} points below')} discrete CoT, and ahead on {ahead} of {gap.n} seeds."
    )


def two_outcomes(rows: pd.DataFrame) -> list[str]:
    """One sentence per cell whose runs end in two groups far apart."""
    sentences = []
    for profile, method, d_model in cells(rows):
        ends = np.sort(100 * cell(rows, profile, method, d_model)["last"])
        gaps = np.diff(ends)
        if len(ends) >= FEWEST and gaps.max() >= APART:
            low, high = np.split(ends, [gaps.argmax() + 1])
            groups = [f"{len(part)} of {len(ends)} runs {_between(part)}" for part in (high, low)]
            sentences.append(f"**{recipe(profile)}, {method}, d = {d_model}**: {groups[0]}, {groups[1]}.")
    return sentences


def _between(ends: np.ndarray) -> str:
    low, high = f"{ends[0]:.0f}", f"{ends[-1]:.0f}"
    return f"{'ends' if len(ends) == 1 else 'end'} at {low if low == high else f'{low} to {high}'} %"


def epochs_to(curves: pd.DataFrame, levels: Sequence[float]) -> pd.DataFrame:
    """Median epochs until runs first reach each accuracy (a run that never does counts as late), and how many do."""
    table = []
    for profile, method, d_model in cells(curves):
        runs = [run for _, run in cell(curves, profile, method, d_model).groupby("seed")]
        entry = {"recipe": recipe(profile), "method": method, "d": d_model}
        for level in levels:
            first = [run["epoch"][run["accuracy"] >= level].min() for run in runs]
            median = np.median(np.nan_to_num(first, nan=np.inf))
            reached = f"({np.isfinite(first).sum()}/{len(runs)})"
            entry[f"{level:.0%}"] = f"{median:.0f} {reached}" if np.isfinite(median) else f"not by half {reached}"
        table.append(entry)
    return pd.DataFrame(table)


def entropy_table(finals: pd.DataFrame, exact: Float[np.ndarray, " step"]) -> pd.DataFrame:
    """Entropies (nat) of the exact targets, t ln 2, and the means of each profile's models."""
    steps = range(1, len(exact) + 1)
    table = [
        {"what": "t ln 2", **{f"t = {t}": t * np.log(2) for t in steps[:-1]}},
        {"what": "exact targets", **{f"t = {t}": exact[t - 1] for t in steps}},
    ]
    for profile, runs in finals.groupby("profile", sort=False):
        table.append({"what": f"CoT2, {recipe(profile)}", **{f"t = {t}": runs[f"entropy_{t}"].mean() for t in steps}})
    return pd.DataFrame(table)


def cost(rows: pd.DataFrame) -> str:
    """What a run took on each kind of machine, beside the paper's three hours."""
    sentences = []
    on_cpu = rows["device"].str.startswith("cpu")
    for (profile, cpu), runs in rows.groupby(["profile", on_cpu], sort=False):
        places = ", ".join(sorted(set(runs["device"])))
        minutes = (runs["seconds"] * (runs["threads"] if cpu else 1)).mean() / 60
        unit = "core-minutes" if cpu else "GPU-minutes"
        sentences.append(f"A run of the {recipe(profile)} took {minutes:.1f} {unit} on average ({places}).")
    stated = paper_value("train-cost")
    return " ".join(sentences) + f" The paper states about {stated:g} hours a run on one L40S GPU."


def stage_findings(rows: pd.DataFrame) -> list[str]:
    """One sentence per profile and kind of COCONUT: last epoch, and best epoch, which is of an earlier stage."""
    sentences = []
    for profile, method, d_model in cells(rows):
        if not method.startswith("COCONUT"):
            continue
        runs = cell(rows, profile, method, d_model)
        part = 100 * (runs["best_step"] / runs["steps"]).mean()
        sentences.append(
            f"**{recipe(profile)}, {method}**: {100 * runs['last'].mean():.1f} % at the last epoch, "
            f"{100 * runs['best'].mean():.1f} % at the best one, which comes {part:.0f} % into the training. The "
            f"paper says {paper_accuracy(method, d_model):g} %."
        )
    return sentences


def layers_table(single: pd.DataFrame, double: pd.DataFrame) -> pd.DataFrame:
    """Last-epoch accuracies (%) with one layer beside two, by method and dimension, per profile."""
    table = []
    for method in ("CoT2", "discrete CoT"):
        for d_model in sorted(unique(single["d_model"])):
            entry = {"method": method, "d": d_model}
            for profile in dict.fromkeys([*double["profile"], *single["profile"]]):
                for layers, rows in (("1 layer", single), ("2 layers", double)):
                    entry[f"{layers}, {recipe(profile)}"] = describe_mean(cell(rows, profile, method, d_model)["last"])
            table.append(entry)
    return pd.DataFrame(table)


def layers_findings(single: pd.DataFrame, double: pd.DataFrame) -> list[str]:
    """One sentence per profile and dimension: the small CoT2 model against the small and the large discrete one."""
    sentences = []
    for profile in unique(single["profile"]):
        for d_model in sorted(unique(single["d_model"])):
            ours = cell(single, profile, "CoT2", d_model)["last"]
            gaps = []
            for name, rows in (("1 layer", single), ("2 layers", double)):
                theirs = cell(rows, profile, "discrete CoT", d_model)["last"]
                if gap := versus(ours, theirs, "{} points above", "{} points below"):
                    gaps.append(f"{gap} discrete CoT with {name}")
            if gaps:
                sentences.append(f"**{recipe(profile)}, d = {d_model}**: CoT2 with 1 layer is {' and '.join(gaps)}.")
    return sentences


def fed_cell(rows: pd.DataFrame, profile: str, fed: str, d_model: int) -> pd.DataFrame:
    """The runs of one way of feeding, by seed."""
    chosen = (rows["profile"] == profile) & (rows["fed"] == fed) & (rows["d_model"] == d_model)
    return rows[chosen].set_index("seed")


def feeding_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Last-epoch accuracies (%) by who is fed and dimension."""
    table = []
    for profile in unique(rows["profile"]):
        for fed in unique(rows["fed"]):
            means = {
                f"d = {d_model}": describe_mean(fed_cell(rows, profile, fed, d_model)["last"])
                for d_model in sorted(unique(rows["d_model"]))
            }
            table.append({"recipe": recipe(profile), "fed": fed, **means})
    return pd.DataFrame(table)


def feeding_findings(rows: pd.DataFrame) -> list[str]:
    """One sentence per profile and dimension: what self-feeding and the curriculum add to teacher forcing."""
    sentences = []
    for profile in unique(rows["profile"]):
        for d_model in sorted(unique(rows["d_model"])):
            teacher = fed_cell(rows, profile, "teacher", d_model)["last"]
            told = []
            for name, label in (("self", "self-feeding"), ("teacher, then self", "the curriculum")):
                ours = fed_cell(rows, profile, name, d_model)["last"]
                if gap := versus(ours, teacher, "adds {} points", "costs {} points"):
                    told.append(f"{label} {gap}")
            if told:
                sentences.append(f"**{recipe(profile)}, d = {d_model}**: beside teacher forcing, {', '.join(told)}.")
    return sentences


def method_findings(rows: pd.DataFrame, d_model: int) -> list[str]:
    """One sentence per profile and method: what the whole tree of CoT2 adds to it, and the paper's difference."""
    sentences = []
    for profile, method, d in cells(rows):
        stated = paper_accuracy(method, d_model)
        ours = cell(rows, profile, "CoT2", d_model)["last"]
        if method == "CoT2" or d != d_model or stated is None or not len(ours):
            continue
        gap = versus(ours, cell(rows, profile, method, d_model)["last"], "{} points above", "{} points below")
        difference = paper_accuracy("CoT2", d_model) - stated
        sentences.append(
            f"**{recipe(profile)}, {method}**: CoT2 is {gap} it. In the paper it is {difference:.1f} above."
        )
    return sentences
