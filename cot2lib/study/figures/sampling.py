"""Figures, tables and checks of the chapter `sampling`: many samples, sharpened thoughts, what each costs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.decode import decode, rules
from cot2lib.errors import RecordError, SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.kit.timing import in_turns, ratio
from cot2lib.metrics import mean_interval, paired_interval
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.study import sweeps
from cot2lib.study.analysis import passk as sampling
from cot2lib.study.claims.ledger import PROFILES
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.claims.samples import passed
from cot2lib.study.figures.csft_numbers import in_words
from cot2lib.study.figures.style import COLOURS, MARKERS, PAPER, panels, series_legend
from cot2lib.study.report import describe, recipe
from cot2lib.thoughts import Discrete
from cot2lib.training.data import StackData, stack_data

ROUNDS = 5

Stacks = dict[str, tuple[GPT2Stack, Sequence[RunSpec]]]
Tables = dict[str, pd.DataFrame]  # Pass@k by profile


def checked(top_k: int, ks: Sequence[int], temperature: float) -> None:
    """Raise SpecError for parameters that nothing was measured with."""
    if top_k not in (0, sampling.TOP_K):
        raise SpecError(f"top_k={top_k}: measured are 0 (all tokens) and {sampling.TOP_K}.")
    if not ks or not all(1 <= k <= sampling.MOST for k in ks):
        raise SpecError(f"ks={list(ks)}: give numbers of samples from 1 to {sampling.MOST}.")
    if temperature not in sampling.TEMPERATURES[1:]:
        raise SpecError(f"temperature {temperature}: measured are {', '.join(map(str, sampling.TEMPERATURES[1:]))}.")


def samples(profile: str, stacks: Stacks, measure: bool = False) -> Tables:
    """Pass@k of some models, the shipped one or measured here, and of the other profiles where all seeds are shipped.

    Columns of `sampling.measure`, `method` and `seed`; the paper's profile first.

    Raises:
        RecordError: if those of `profile` are neither shipped nor to be measured.
    """
    specs = [spec for _, group in stacks.values() for spec in group]
    tables = {name: passed(name) for name in PROFILES}
    if measure:
        tables[profile] = pd.concat([sampling.measure(*model) for model in stacks.values()], ignore_index=True)
    elif absent := {spec.id for spec in specs} - set(tables[profile]["id"]):
        raise RecordError(
            f"no Pass@k of run {min(absent)} is recorded under {profile}; make it with `cot2 run sampling --profile "
            f"{profile}` and `cot2 collect sampling --profile {profile}`, or ask with retrain=True."
        )
    seeds = list(dict.fromkeys(spec.seed for spec in specs))
    wanted = {name: specs if name == profile else sweeps.small(name, seeds) for name in tables}
    return {
        name: _named(table, wanted[name])
        for name, table in tables.items()
        if {spec.id for spec in wanted[name]} <= set(table["id"])
    }


def _named(table: pd.DataFrame, specs: Sequence[RunSpec]) -> pd.DataFrame:
    """The rows of some runs, with their method and seed."""
    known = {spec.id: spec for spec in specs}
    table = table[table["id"].isin(known)]
    return table.assign(method=[known[i].method for i in table["id"]], seed=[known[i].seed for i in table["id"]])


def curves_at(
    table: pd.DataFrame, temperature: float, top_k: int, column: str = "pass_at_k"
) -> dict[str, pd.DataFrame]:
    """Pass@k (%) of both methods at a temperature: a row per k, a column per seed."""
    at = table[np.isclose(table["temperature"], temperature)]
    kept = {"CoT2": 0, "discrete CoT": top_k if temperature else 0}
    chosen = {name: at[(at["method"] == name) & (at["top_k"] == k)] for name, k in kept.items()}
    return {name: part.pivot(index="k", columns="seed", values=column) for name, part in chosen.items()}


def greedy(table: pd.DataFrame) -> pd.Series:
    """Accuracy (%) of one greedy CoT2 trace, by seed."""
    return curves_at(table, 0.0, 0)["CoT2"].loc[1]


def temperatures_of(*tables: pd.DataFrame) -> list[float]:
    """Temperatures that were measured."""
    return sorted({float(t) for table in tables for t in table["temperature"].unique()})


def pass_at_k(tables: Tables, top_k: int) -> Figure:
    """Pass@k by k, a row per profile and a panel per temperature: thin lines are models, thick ones their mean.

    Short marks are the paper's. `top_k`: which discrete sampling, 0 for all tokens or 50.
    """
    temperatures = temperatures_of(*tables.values())
    figure, axes = panels(len(tables), len(temperatures), width=9.2, height=2.8, sharex=True, sharey=True)
    for row, (profile, table) in zip(axes, tables.items()):
        for axis, temperature in zip(row, temperatures):
            for name, seeds in curves_at(table, temperature, top_k).items():
                axis.plot(seeds.index, seeds, color=COLOURS[name], linewidth=0.6, alpha=0.4)
                axis.plot(seeds.index, seeds.mean(axis=1), color=COLOURS[name], marker=MARKERS[name], markersize=3.5)
            _paper_series(axis, temperature)
        row[0].set(ylabel=f"Pass@k (%), {recipe(profile)}", ylim=(0, 102), xticks=[1, 5, 10, 14])
    for axis, temperature in zip(axes[-1], temperatures):
        axis.set_xlabel(f"k (T = {temperature:g})")
    series_legend(figure, ["CoT2", "discrete CoT"], paper=False)
    return figure


def paper_curve(temperature: float) -> pd.Series:
    """The paper's discrete Pass@k (%) by k."""
    ks = range(1, sampling.MOST + 1)
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
            entry |= {f"Pass@{k}": _interval(runs.loc[runs["k"] == k, "pass_at_k"]) for k in ks}
            if name == "discrete CoT":
                entry[f"Maj@{ks[-1]}"] = _interval(runs.loc[runs["k"] == ks[-1], "maj_at_k"])
            rows.append(entry)
    return pd.DataFrame(rows)


def _interval(values: pd.Series) -> str:
    interval = mean_interval(values, 0.0, 100.0)
    return describe(interval.mean, interval.low, interval.high)


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


def costs(stacks: Stacks, ks: Sequence[int], prompts: int = 64) -> pd.DataFrame:
    """What k rollouts per prompt cost: positions a model computes, and seconds beside one CoT2 trace.

    Columns `method`, `k`, `positions` (prompt once, then one per fed thought and rollout), `ratio` (median over rounds
    taken in alternation of the time over that of one CoT2 trace).
    """
    turns = {}
    for method, (stack, specs) in stacks.items():
        data = stack_data(specs, stack.device)
        for k in ks if method == "discrete CoT" else (1,):
            turns[method, k] = _turn(stack, data, specs, k, prompts)
    taken, rows = in_turns(turns, ROUNDS), []
    for (method, k), seconds in taken.items():
        spec = stacks[method][1][0]
        prompt = spec.task.prompt(spec.supervision.arrow).shape[1]
        positions = prompt + k * (spec.outputs - 1)
        times = ratio(seconds, taken["CoT2", 1])
        rows.append({"method": method, "k": k, "positions": positions, "ratio": times})
    return pd.DataFrame(rows)


def _turn(stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], k: int, prompts: int):
    index = data.held_out.index[:, :prompts]
    rule = Discrete(1.0) if k > 1 else specs[0].thought
    keys = random.run_keys([spec.seed for spec in specs], Site.DECODE)

    @torch.no_grad()
    def turn() -> None:
        decode(stack, data.prompts[index], rules(rule, specs[0].outputs), keys, data.padding_of(index), samples=k)

    return turn


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
            (solved, "discrete CoT, Pass@k", COLOURS["discrete CoT"], "s", "-"),
            (majority, "discrete CoT, Maj@k", "#7A7A7A", "^", ":"),
        ):
            axis.plot(x, seeds, color=colour, linewidth=0.6, alpha=0.4)
            axis.plot(x, seeds.mean(axis=1), color=colour, marker=marker, linestyle=dash, label=name)
        axis.scatter([one[column]] * len(ours), ours, s=30, color=COLOURS["CoT2"], label="CoT2, one trace")
        axis.axhline(ours.mean(), color=COLOURS["CoT2"], linewidth=1.0)
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


def checks(table: pd.DataFrame, top_k: int) -> dict[str, bool]:
    """The chapter's claims about the shipped Pass@k table."""
    single = greedy(table).mean()
    pairs = {t: curves_at(table, t, top_k) for t in temperatures_of(table)}
    means = {t: {name: seeds.mean(axis=1) for name, seeds in both.items()} for t, both in pairs.items()}
    return {
        "one greedy CoT2 trace is above one discrete sample at every temperature": all(
            single > both["discrete CoT"].loc[1] for both in means.values()
        ),
        "Pass@k never falls with k": all(
            (np.diff(mean) >= -1e-9).all() for both in means.values() for mean in both.values()
        ),
        "sampling gains nothing at temperature 0": all(np.ptp(mean) < 1e-9 for mean in means[0.0].values()),
        "CoT2 sampled alike is above discrete CoT at every k and temperature": all(
            (both["CoT2"] > both["discrete CoT"]).all() for both in means.values()
        ),
    }
