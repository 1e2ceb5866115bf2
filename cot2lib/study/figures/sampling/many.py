"""Figures, tables and sentences of the chapter `sampling` on many samples: Pass@k, Maj@k and what each costs."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.metrics import paired_interval
from cot2lib.study.analysis.passk import MOST, Tables, curves_at, greedy, temperatures_of
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.style import METHOD, PAPER, panels, series_legend
from cot2lib.study.figures.words import in_words, mean_of
from cot2lib.study.report import recipe

COT2, DISCRETE = METHOD.known["CoT2"], METHOD.known["discrete CoT"]


def pass_at_k(tables: Tables, top_k: int) -> Figure:
    """Pass@k by k, a row per profile and a panel per temperature: thin lines are models, thick ones their mean.

    Short marks are the paper's. `top_k`: which discrete sampling, 0 for all tokens or 50.
    """
    temperatures = temperatures_of(*tables.values())
    figure, axes = panels(len(tables), len(temperatures), width=9.2, height=2.8, sharex=True, sharey=True)
    for row, (profile, table) in zip(axes, tables.items()):
        for axis, temperature in zip(row, temperatures):
            for name, seeds in curves_at(table, temperature, top_k).items():
                colour, marker, _ = METHOD.known[name]
                axis.plot(seeds.index, seeds, color=colour, linewidth=0.6, alpha=0.4)
                axis.plot(seeds.index, seeds.mean(axis=1), color=colour, marker=marker, markersize=3.5)
            _paper_series(axis, temperature)
        row[0].set(ylabel=f"Pass@k (%), {recipe(profile)}", ylim=(0, 102), xticks=[1, 5, 10, 14])
    for axis, temperature in zip(axes[-1], temperatures):
        axis.set_xlabel(f"k (T = {temperature:g})")
    series_legend(figure, {"CoT2": COT2, "discrete CoT": DISCRETE}, paper=False)
    return figure


def paper_curve(temperature: float) -> pd.Series:
    """The paper's discrete Pass@k (%) by k."""
    ks = range(1, MOST + 1)
    return pd.Series({k: paper_value(f"passk-discrete-t{temperature:.1f}-k{k}") for k in ks})


def _paper_series(axis: Axes, temperature: float) -> None:
    """The paper's discrete curve as short brown marks and its one CoT2 accuracy as a level blue line."""
    stated = paper_curve(temperature)
    axis.scatter(stated.index, stated, s=60, **PAPER | {"linewidths": 1.4, "color": "#8a3b00"})
    axis.axhline(paper_value("passk-cot2"), color="#00406b", linewidth=1.2, linestyle=":")


def pass_table(tables: Tables, ks: Sequence[int]) -> pd.DataFrame:
    """Pass@k (%) by profile, method, temperature and sampling, and discrete Maj@k for the last k, with intervals."""
    rows = []
    for profile, table in tables.items():
        for (name, temperature, top_k), runs in table.groupby(["method", "temperature", "top_k"]):
            entry = {"recipe": recipe(profile), "method": name, "T": f"{temperature:g}", "tokens kept": top_k or "all"}
            entry |= {f"Pass@{k}": mean_of(runs.loc[runs["k"] == k, "pass_at_k"]) for k in ks}
            if name == "discrete CoT":
                entry[f"Maj@{ks[-1]}"] = mean_of(runs.loc[runs["k"] == ks[-1], "maj_at_k"])
            rows.append(entry)
    return pd.DataFrame(rows)


def overtaking(tables: Tables, top_k: int) -> pd.DataFrame:
    """From which k mean discrete Pass@k is above CoT2: the paper's, ours, and ours if CoT2 may try as often."""
    line, rows = paper_value("passk-cot2"), []
    for temperature in temperatures_of(*tables.values()):
        row = {"T": f"{temperature:g}", "paper: above its level CoT2 line": _first(paper_curve(temperature) > line)}
        for profile, table in tables.items():
            both = curves_at(table, temperature, top_k)
            discrete = both["discrete CoT"].mean(axis=1)
            row[f"{recipe(profile)}: above one greedy CoT2 trace"] = _first(discrete > greedy(table).mean())
            row[f"{recipe(profile)}: above CoT2 sampled as often"] = _first(discrete > both["CoT2"].mean(axis=1))
        rows.append(row)
    return pd.DataFrame(rows)


def findings(tables: Tables, top_k: int) -> list[str]:
    """A sentence per profile and temperature: discrete sampling against one greedy CoT2 trace."""
    sentences = []
    for profile, table in tables.items():
        single = greedy(table)
        for temperature in temperatures_of(*tables.values()):
            discrete = curves_at(table, temperature, top_k)["discrete CoT"]
            most = discrete.index.max()
            gap, ahead = paired_interval(discrete.loc[most], single), int((discrete.loc[most] > single).sum())
            points = in_words(gap, "{} points above", "{} points below")
            sentence = (
                f"**{recipe(profile)}, T = {temperature:g}**: one greedy CoT2 trace is right on "
                f"{single.mean():.1f} %, one discrete sample on {discrete.loc[1].mean():.1f} %. With k = {most} "
                f"discrete Pass@k is {points} "
                f"the greedy trace, and ahead on {ahead} of {gap.n} seeds."
            )
            if profile == "paper":
                far = (discrete.mean(axis=1) - paper_curve(temperature)).abs().max()
                sentence += f" Its mean is at most {far:.1f} points from the paper's value at any k."
            sentences.append(sentence)
    return sentences


def _first(holds: pd.Series) -> str:
    """The first k from which on it holds, or "never"."""
    fails = holds.index[~holds]
    start = 1 if not len(fails) else int(fails.max()) + 1
    return str(start) if start <= int(holds.index.max()) else "never"


# Cost


def cost_curves(table: pd.DataFrame, cost: pd.DataFrame, temperature: float, top_k: int) -> Figure:
    """Accuracy against positions computed per prompt, and against measured time in units of one CoT2 trace.

    Discrete CoT at one temperature: Pass@k counts a prompt as solved if any sample is right, Maj@k if the most
    frequent answer is.
    """
    solved, majority = (curves_at(table, temperature, top_k, c)["discrete CoT"] for c in ("pass_at_k", "maj_at_k"))
    known = cost[cost["method"] == "discrete CoT"].set_index("k")
    one, ours = cost[cost["method"] == "CoT2"].iloc[0], greedy(table)
    labels = {"positions": "positions computed per prompt", "ratio": "time (one CoT2 trace = 1)"}
    figure, axes = panels(1, 2, width=8.4, height=3.1, sharey=True)
    for axis, (column, label) in zip(axes[0], labels.items()):
        x = known.loc[solved.index, column]
        for seeds, name, colour, marker, dash in (
            (solved, "discrete CoT, Pass@k", DISCRETE[0], "s", "-"),
            (majority, "discrete CoT, Maj@k", "#7A7A7A", "^", ":"),
        ):
            axis.plot(x, seeds, color=colour, linewidth=0.6, alpha=0.4)
            axis.plot(x, seeds.mean(axis=1), color=colour, marker=marker, linestyle=dash, label=name)
        axis.scatter([one[column]] * len(ours), ours, s=30, color=COT2[0], label="CoT2, one trace")
        axis.axhline(ours.mean(), color=COT2[0], linewidth=1.0)
        axis.set(xlabel=label, ylim=(0, 102))
    axes[0, 0].set_ylabel(f"validation accuracy (%), T = {temperature:g}")
    axes[0, 1].legend(loc="lower right", frameon=False)
    return figure


def cost_findings(table: pd.DataFrame, cost: pd.DataFrame, top_k: int) -> list[str]:
    """One sentence per temperature: what discrete samples cost where mean Pass@k passes one greedy CoT2 trace."""
    single = greedy(table)
    known = cost.set_index(["method", "k"])
    one, sentences = known.loc[("CoT2", 1), "positions"], []
    for temperature in temperatures_of(table)[1:]:
        discrete = curves_at(table, temperature, top_k)["discrete CoT"]
        k = _first(discrete.mean(axis=1) > single.mean())
        k = str(discrete.index.max()) if k == "never" else k
        gap = paired_interval(discrete.loc[int(k)], single)
        told = f"is {in_words(gap, '{} points above', '{} points below')} one greedy CoT2 trace"
        there = known.loc[("discrete CoT", int(k))]
        sentences.append(
            f"**T = {temperature:g}**: with k = {k} discrete Pass@k {told}. It has computed "
            f"{there['positions'] / one:.1f} times the positions in {there['ratio']:.1f} times the time."
        )
    return sentences


def cost_table(cost: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """The numbers of `costs` for some k."""
    chosen = cost[cost["k"].isin(ks)]
    return chosen.rename(columns={"ratio": "time beside one CoT2 trace"})
