"""Figures, tables and checks of the chapter `sampling`: many samples, sharpened thoughts, what each costs."""

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib import paper, random, sampling
from cot2lib.data import StackData, stack_data
from cot2lib.decode import decode, rules
from cot2lib.errors import RecordError
from cot2lib.figures.style import COLOURS, MARKERS, PAPER, panels, series_legend
from cot2lib.measured import passed
from cot2lib.model import GPT2Stack
from cot2lib.random import Site
from cot2lib.specs import RunSpec
from cot2lib.thoughts import Discrete

TOP_K = 50
ROUNDS = 5


def samples(
    profile: str, stacks: dict[str, tuple[GPT2Stack, Sequence[RunSpec]]], measure: bool = False
) -> pd.DataFrame:
    """The Pass@k table of some models: the shipped one, or measured here.

    Raises:
        RecordError: if it is neither shipped nor to be measured.
    """
    wanted = {spec.id for _, specs in stacks.values() for spec in specs}
    if measure:
        return pd.concat([sampling.measure(stack, specs) for stack, specs in stacks.values()], ignore_index=True)
    table = passed(profile)
    if absent := wanted - set(table["id"]):
        raise RecordError(
            f"no Pass@k of run {min(absent)} is recorded under {profile}; make it with `cot2 run sampling --profile "
            f"{profile}` and `cot2 collect sampling --profile {profile}`, or ask with retrain=True."
        )
    return table[table["id"].isin(wanted)]


def pass_at_k(table: pd.DataFrame, method: dict[str, str], top_k: int) -> Figure:
    """Pass@k by k, a panel per temperature: thin lines are models, thick ones their mean, black marks the paper's.

    Args:
        table: the shipped Pass@k table of one profile.
        method: method of each run id.
        top_k: which discrete sampling, 0 for all tokens or 50.
    """
    table = table.assign(method=table["id"].map(method))
    temperatures = sorted(table["temperature"].unique())
    figure, axes = panels(1, len(temperatures), width=9.2, height=3.0, sharey=True)
    for axis, temperature in zip(axes[0], temperatures):
        part = table[np.isclose(table["temperature"], temperature)]
        for name, runs in part.groupby("method"):
            wanted = top_k if name == "discrete CoT" and temperature else 0
            _lines(axis, runs[runs["top_k"] == wanted], name)
        _paper_series(axis, temperature)
        axis.set(xlabel=f"k (T = {temperature:g})", ylim=(0, 102), xticks=[1, 5, 10, 14])
    axes[0, 0].set_ylabel("Pass@k (%)")
    series_legend(figure, ["CoT2", "discrete CoT"])
    return figure


def _lines(axis: Axes, runs: pd.DataFrame, name: str) -> None:
    for _, run in runs.groupby("id"):
        axis.plot(run["k"], run["pass_at_k"], color=COLOURS[name], linewidth=0.6, alpha=0.4)
    mean = runs.groupby("k")["pass_at_k"].mean()
    axis.plot(mean.index, mean, color=COLOURS[name], marker=MARKERS[name], markersize=3.5)


def _paper_series(axis: Axes, temperature: float) -> None:
    stated = [paper.paper_value(f"passk-discrete-t{temperature:.1f}-k{k}") for k in range(1, 15)]
    axis.scatter(range(1, 15), stated, s=60, **PAPER | {"linewidths": 1.4, "color": "#8a3b00"})
    axis.scatter([1], [paper.paper_value("passk-cot2")], s=130, **PAPER | {"color": "#00406b"})


def pass_table(table: pd.DataFrame, method: dict[str, str], ks: Sequence[int]) -> pd.DataFrame:
    """Mean Pass@k and Maj@k (%) over models, by method, temperature and sampling, for some k."""
    table = table.assign(method=table["id"].map(method))
    rows = []
    for (name, temperature, top_k), runs in table.groupby(["method", "temperature", "top_k"]):
        entry = {"method": name, "T": f"{temperature:g}", "tokens kept": top_k or "all"}
        for k in ks:
            at = runs[runs["k"] == k]
            entry[f"Pass@{k}"] = at["pass_at_k"].mean()
        if name == "discrete CoT":
            entry[f"Maj@{ks[-1]}"] = runs.loc[runs["k"] == ks[-1], "maj_at_k"].mean()
        rows.append(entry)
    return pd.DataFrame(rows)


def overtaking(table: pd.DataFrame, method: dict[str, str], top_k: int) -> pd.DataFrame:
    """From which k mean discrete Pass@k is above one greedy CoT2 trace, and above CoT2 at the same T and k."""
    single, pairs = _means(table, method, top_k)
    return pd.DataFrame(
        [
            {
                "T": f"{temperature:g}",
                "one greedy CoT2 trace (%)": single,
                "discrete above it from k =": _first(discrete > single),
                "discrete above CoT2 sampled alike from k =": _first(discrete > continuous),
            }
            for temperature, (continuous, discrete) in pairs.items()
        ]
    )


def findings(table: pd.DataFrame, method: dict[str, str], top_k: int) -> list[str]:
    """One sentence per temperature on where discrete sampling passes CoT2."""
    single, pairs = _means(table, method, top_k)
    sentences = []
    for temperature, (continuous, discrete) in pairs.items():
        from_k, alike = _first(discrete > single), _first(discrete > continuous)
        most = int(discrete.index.max())
        reaches = f"passes it from k = {from_k} on" if from_k != "never" else f"does not pass it up to k = {most}"
        same = f"passes CoT2 from k = {alike} on" if alike != "never" else "stays below"
        sentences.append(
            f"**T = {temperature:g}**: one greedy CoT2 trace is right on {single:.1f} %, one discrete sample on "
            f"{discrete.iloc[0]:.1f} %; discrete Pass@k {reaches}, and against CoT2 that may try as often it {same}."
        )
    return sentences


def _means(table: pd.DataFrame, method: dict[str, str], top_k: int) -> tuple[float, dict]:
    """Accuracy (%) of one greedy CoT2 trace; by temperature, mean Pass@k (%) by k of CoT2 and of discrete CoT."""
    table = table.assign(method=table["id"].map(method))
    pairs = {}
    for temperature in sorted(table["temperature"].unique()):
        at = table[np.isclose(table["temperature"], temperature)]
        kept = {"CoT2": 0, "discrete CoT": top_k if temperature else 0}
        means = [
            at[(at["method"] == name) & (at["top_k"] == k)].groupby("k")["pass_at_k"].mean()
            for name, k in kept.items()
        ]
        pairs[float(temperature)] = means
    return float(pairs[0.0][0].iloc[0]), pairs


def _first(holds: pd.Series) -> str:
    """The first k from which on it holds, or "never"."""
    fails = holds.index[~holds]
    start = 1 if not len(fails) else int(fails.max()) + 1
    return str(start) if start <= int(holds.index.max()) else "never"


# Cost


def costs(
    stacks: dict[str, tuple[GPT2Stack, Sequence[RunSpec]]], ks: Sequence[int], prompts: int = 64
) -> pd.DataFrame:
    """What k rollouts per prompt cost: positions a model computes, and seconds beside one CoT2 trace.

    Columns `method`, `k`, `positions` (prompt once, then one per fed thought and rollout), `ratio` (median over rounds
    taken in alternation of the time over that of one CoT2 trace).
    """
    turns = {}
    for method, (stack, specs) in stacks.items():
        data = stack_data(specs, stack.device)
        for k in ks if method == "discrete CoT" else (1,):
            turns[method, k] = _turn(stack, data, specs, k, prompts)
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in turns}
    for round_ in range(ROUNDS + 1):
        for key, turn in turns.items():
            began = time.perf_counter()
            turn()
            if round_:  # the first warms up
                seconds[key].append(time.perf_counter() - began)
    one = np.array(seconds["CoT2", 1])
    rows = []
    for (method, k), taken in seconds.items():
        spec = stacks[method][1][0]
        prompt = spec.task.prompt(spec.supervision.arrow).shape[1]
        positions = prompt + k * (spec.outputs - 1)
        rows.append({"method": method, "k": k, "positions": positions, "ratio": float(np.median(taken / one))})
    return pd.DataFrame(rows)


def _turn(stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], k: int, prompts: int):
    index = data.held_out.index[:, :prompts]
    rule = Discrete(1.0) if k > 1 else specs[0].thought
    keys = random.run_keys([spec.seed for spec in specs], Site.DECODE)

    @torch.no_grad()
    def turn() -> None:
        decode(stack, data.prompts[index], rules(rule, specs[0].outputs), keys, data.padding_of(index), samples=k)

    return turn


def cost_curves(table: pd.DataFrame, method: dict[str, str], cost: pd.DataFrame, temperature: float) -> Figure:
    """Accuracy against forward passes and against measured time, per prompt, relative to one CoT2 trace.

    Discrete CoT at one temperature: Pass@k counts a prompt as solved if any sample is right, Maj@k if the most
    frequent answer is.
    """
    table = table.assign(method=table["id"].map(method))
    discrete = table[(table["method"] == "discrete CoT") & np.isclose(table["temperature"], temperature)]
    discrete = discrete[discrete["top_k"] == 0].groupby("k")[["pass_at_k", "maj_at_k"]].mean()
    ours = table[(table["method"] == "CoT2") & (table["temperature"] == 0) & (table["k"] == 1)]["pass_at_k"]
    figure, axes = panels(1, 2, width=8.4, height=3.1, sharey=True)
    known = cost[cost["method"] == "discrete CoT"].set_index("k")
    one = cost[cost["method"] == "CoT2"].iloc[0]
    for axis, column, label in zip(axes[0], ("positions", "ratio"), ("positions computed per prompt", "time")):
        scale = 1.0 if column == "positions" else one[column]
        x = known.loc[discrete.index, column] / scale
        axis.plot(x, discrete["pass_at_k"], color=COLOURS["discrete CoT"], marker="s", label="discrete CoT, Pass@k")
        axis.plot(x, discrete["maj_at_k"], color="#7A7A7A", marker="^", linestyle=":", label="discrete CoT, Maj@k")
        axis.scatter([one[column] / scale] * len(ours), ours, s=30, color=COLOURS["CoT2"], label="CoT2, one trace")
        axis.axhline(ours.mean(), color=COLOURS["CoT2"], linewidth=1.0)
        axis.set(xlabel=f"{label}{'' if column == 'positions' else ' (one CoT2 trace = 1)'}", ylim=(0, 102))
    axes[0, 0].set_ylabel(f"validation accuracy (%), T = {temperature:g}")
    axes[0, 1].legend(loc="lower right", frameon=False)
    return figure


def cost_findings(table: pd.DataFrame, method: dict[str, str], cost: pd.DataFrame, top_k: int) -> list[str]:
    """One sentence per temperature: what discrete samples cost where their Pass@k passes one greedy CoT2 trace."""
    single, pairs = _means(table, method, top_k)
    known = cost.set_index(["method", "k"])
    one, sentences = known.loc[("CoT2", 1), "positions"], []
    for temperature, (_, discrete) in pairs.items():
        if not temperature:
            continue
        k = _first(discrete > single)
        if k == "never":
            k, verb = str(int(discrete.index.max())), f"is still at {discrete.iloc[-1]:.1f} %"
        else:
            verb = f"passes the {single:.1f} % of one CoT2 trace"
        there = known.loc[("discrete CoT", int(k))]
        sentences.append(
            f"**T = {temperature:g}**: with k = {k} discrete Pass@k {verb}, having computed "
            f"{there['positions'] / one:.1f} times the positions in {there['ratio']:.1f} times the time."
        )
    return sentences


def cost_table(cost: pd.DataFrame, ks: Sequence[int]) -> pd.DataFrame:
    """The numbers of `costs` for some k."""
    chosen = cost[cost["k"].isin([*ks, 1])]
    return chosen.rename(columns={"ratio": "time beside one CoT2 trace"})


def checks(table: pd.DataFrame, method: dict[str, str], top_k: int) -> dict[str, bool]:
    """The chapter's claims about the shipped Pass@k table."""
    single, pairs = _means(table, method, top_k)
    discrete_one = max(discrete.iloc[0] for _, discrete in pairs.values())
    warm = [pair for temperature, pair in pairs.items() if temperature]
    return {
        "one greedy CoT2 trace is above one discrete sample at every temperature": bool(single > discrete_one),
        "Pass@k never falls with k": all((np.diff(mean) >= -1e-9).all() for pair in pairs.values() for mean in pair),
        "sampling gains nothing at temperature 0": all(np.ptp(mean) < 1e-9 for mean in pairs[0.0]),
        "CoT2 sampled alike is above discrete CoT at every k and temperature": all(
            (continuous > discrete).all() for continuous, discrete in warm
        ),
    }
