"""Figures and tables of the chapter `gsm8k`: accuracy by limit, while training, before and after, and by decoding."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cot2lib.llm.settings import SMALL, SMOLLM2, LanguageRun
from cot2lib.metrics import Interval, mean_interval
from cot2lib.study.analysis import step_costs
from cot2lib.study.analysis.language_runs import SAMPLED, THOUGHTS, TOKENS, TRAINING, ends
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.style import BLUE, GREY, ORANGE, Look, panels, seed_dots, series_legend
from cot2lib.study.report import PERCENT, describe
from cot2lib.study.word_problems import QWEN

START: Look = (GREY, "^", ":")
DISCRETE: Look = (ORANGE, "s", "--")
MIXED: Look = (BLUE, "o", "-")
NAMES = {"init": "before", "discrete": "discrete CoT", "mts": "MTS"}
LOOKS = dict(zip(NAMES.values(), (START, DISCRETE, MIXED)))
KINDS = {"accuracy": "sampled", "greedy": "greedy"}  # columns of `language_runs.ends`
MODELS = {SMALL: "small model", SMOLLM2: "SmolLM2", QWEN: "Qwen3-0.6B"}


def by_limit(table: pd.DataFrame, limits: Sequence[int], name: str) -> Figure:
    """Accuracy by the limit on a response: as the paper prints it, and what our runs come to, sampled and greedy.

    Args:
        table: of `language_runs.shipped`, of one model.
        limits: the paper's.
        name: what the model is called.
    """
    figure, axes = panels(1, 3, height=3.3)
    left, *others = axes[0]
    for place, limit in enumerate(limits):
        for shift, (method, shown) in enumerate(NAMES.items()):
            colour, marker, _ = LOOKS[shown]
            value = paper_value(f"gsm8k-{limit}-{method}")
            left.scatter([place + 0.25 * (shift - 1)], [value], s=42, color=colour, marker=marker)
    left.set_title("paper: Qwen3-0.6B, one run", fontsize=9.5)
    _limits(left, limits)
    found = ends(table)
    ours = sorted(found["longest"].unique(), reverse=True)
    for axis, (column, how) in zip(others, KINDS.items()):
        for place, limit in enumerate(ours):
            for shift, values in enumerate(_columns(found[found["longest"] == limit], column).values()):
                seed_dots(axis, place + 0.25 * (shift - 1), PERCENT * values, list(LOOKS.values())[shift], spread=0.05)
        axis.set_title(f"ours: {name}, {how}", fontsize=9.5)
        _limits(axis, ours)
    left.set_ylabel("right answers (%)")
    series_legend(figure, LOOKS, paper=False)
    return figure


def _limits(axis: Axes, limits: Sequence[int]) -> None:
    axis.set_xticks(range(len(limits)), [str(limit) for limit in limits])
    axis.set_xlabel("longest response (tokens)")
    axis.set_ylim(0)


def _columns(found: pd.DataFrame, column: str = "accuracy") -> dict[str, np.ndarray]:
    """Accuracies by seed, in shares: before, discrete, MTS."""
    thinks = found["continuous"].to_numpy() > 0
    plain = found[~thinks].sort_values("seed")
    mixed = found[thinks].sort_values("seed")[column]
    return dict(zip(NAMES, (plain[f"start_{column}"].to_numpy(), plain[column].to_numpy(), mixed.to_numpy())))


def while_training(table: pd.DataFrame) -> Figure | None:
    """Accuracy over training by limit, sampled above and greedy below; a thin line is a seed, a thick one the mean.

    A model that learns to think is drawn twice below: answering at once, and after its thoughts. None without runs.
    """
    if table.empty:
        return None
    limits = sorted(table["longest"].unique(), reverse=True)
    figure, axes = panels(2, len(limits), height=2.5, sharey=True, sharex=True)
    kinds = {
        "discrete CoT": (0, SAMPLED, False, DISCRETE),
        "MTS": (0, SAMPLED, True, MIXED),
        "discrete CoT, greedy": (1, TOKENS, False, DISCRETE),
        "MTS, greedy": (1, THOUGHTS, True, MIXED),
        "MTS, asked to answer at once": (1, TOKENS, True, START),
    }
    for column, limit in enumerate(limits):
        rows = table[table["longest"] == limit]
        for row, decoding, thinks, look in kinds.values():
            part = rows[(rows["decoding"] == decoding) & ((rows["continuous"] > 0) == thinks)]
            _lines(axes[row, column], part, look)
        axes[0, column].set_title(f"{limit} tokens", fontsize=9.5)
        axes[1, column].set_xlabel("step")
        for axis in axes[:, column]:
            axis.axvline(table["step"].max() * table["enter"].iloc[0], color="#bbbbbb", linewidth=1)
    for axis, how in zip(axes[:, 0], KINDS.values()):
        axis.set_ylabel(f"right, {how} (%)")
    shown = {name: look for name, (*_, look) in kinds.items() if "greedy" not in name}
    series_legend(figure, shown, paper=False)
    return figure


def _lines(axis: Axes, rows: pd.DataFrame, look: Look) -> None:
    """Accuracy over steps: every seed, and the mean."""
    lines = rows.pivot(index="step", columns="seed", values="accuracy")
    colour, marker, dash = look
    axis.plot(lines.index, PERCENT * lines, color=colour, linewidth=0.7, alpha=0.5)
    axis.plot(lines.index, PERCENT * lines.mean(axis=1), color=colour, marker=marker, linestyle=dash, ms=4)


def limits_table(table: pd.DataFrame, beside: Mapping[int, int]) -> pd.DataFrame:
    """The paper's table beside ours, from the longest to the shortest limit.

    Args:
        table: of `language_runs.shipped`, of one model.
        beside: for each of our limits the paper's that it stands for.
    """
    found = ends(table)
    rows = []
    for limit, printed in beside.items():
        part = found[found["longest"] == limit]
        if part.empty:
            continue
        row = {"limit": limit, "runs": part["seed"].nunique()}
        for column, how in KINDS.items():
            row |= {f"{NAMES[name]}, {how}": said(values) for name, values in _columns(part, column).items()}
        for name, thinks in (("discrete CoT", False), ("MTS", True)):
            row[f"tokens, {name}"] = said(part[(part["continuous"] > 0) == thinks]["length"], 1.0, np.inf)
        row |= {"paper: limit": printed}
        row |= {f"paper: {shown}": paper_value(f"gsm8k-{printed}-{name}") for name, shown in NAMES.items()}
        for name in ("discrete", "mts"):
            row[f"paper: tokens, {NAMES[name]}"] = paper_value(f"gsm8k-{printed}-{name}-length")
        rows.append(row)
    return pd.DataFrame(rows)


def said(values: Sequence[float], scale: float = PERCENT, top: float = 100.0) -> str:
    """The mean over seeds with its interval, between 0 and `top`; nothing of no seed."""
    if not len(values):
        return ""
    interval = mean_interval(scale * np.asarray(values, dtype=float), 0.0, top)
    return describe(interval.mean, interval.low, interval.high)


def gains(table: pd.DataFrame, column: str = "accuracy") -> pd.DataFrame:
    """Per limit and seed, in points: what reward gives discrete CoT and MTS, and MTS less discrete CoT."""
    found = ends(table)
    cell = found.assign(name=np.where(found["continuous"] > 0, "mts", "discrete"))
    wide = cell.pivot(index=["longest", "seed"], columns="name", values=column).reindex(columns=["discrete", "mts"])
    start = found[found["continuous"] == 0].set_index(["longest", "seed"])[f"start_{column}"]
    made = {name: wide[name] - start for name in wide} | {"between": wide["mts"] - wide["discrete"]}
    return PERCENT * pd.DataFrame(made).dropna()


def gains_table(table: pd.DataFrame) -> pd.DataFrame:
    """Gains in points, mean over seeds with its interval, by limit and decoding."""
    rows = []
    for column, how in KINDS.items():
        for limit, part in sorted(gains(table, column).groupby("longest"), reverse=True):
            row = {"answers": how, "limit": limit}
            for name, shown in (("discrete", "discrete CoT gains"), ("mts", "MTS gains"), ("between", "MTS above it")):
                interval = mean_interval(part[name].to_numpy())
                row[shown] = describe(interval.mean, interval.low, interval.high)
            rows.append(row)
    return pd.DataFrame(rows)


def pretrained(table: pd.DataFrame) -> Figure:
    """SmolLM2: its reward while it trains, and right answers before and after; a line or dot is a seed."""
    table = table[table["model"] == SMOLLM2]
    figure, axes = panels(1, 2, height=3.4)
    left, right = axes[0]
    rewards = table[table["decoding"] == TRAINING]
    for thinks, name in ((False, "discrete CoT"), (True, "MTS")):
        _lines(left, rewards[(rewards["continuous"] > 0) == thinks], LOOKS[name])
    left.set_xlabel("step")
    left.set_ylabel("rewarded samples (%)")
    left.set_ylim(0)
    for place, (name, values) in enumerate(_columns(ends(table), "greedy").items()):
        seed_dots(right, place, PERCENT * values, LOOKS[NAMES[name]])
    right.set_xticks(range(len(NAMES)), list(LOOKS))
    right.set_ylabel("right greedy answers (%)")
    right.set_ylim(0)
    series_legend(figure, LOOKS, paper=False)
    return figure


def decodings_table(measured: pd.DataFrame) -> pd.DataFrame:
    """Right answers (%) by model, sums and decoding, by both parsers, with lengths."""
    shown = measured.assign(model=measured["model"].map(MODELS))
    for column in ("accuracy", "passed", "verified", "cut"):
        shown[column] = PERCENT * shown[column]
    names = {"accuracy": "right", "passed": "right among its samples", "verified": "right by math-verify"}
    names |= {"length": "tokens", "cut": "cut by the limit"}
    columns = ["model", "sums", "decoding", "samples", "problems", *names]
    return shown[columns].rename(columns=names)


def costs_table(costs: pd.DataFrame) -> pd.DataFrame:
    """What a step costs by what is trained, from the table of `step_costs.shipped`."""
    return costs[step_costs.COLUMNS].rename(columns={"weights": "million weights", "ratio": "times"})


def findings(table: pd.DataFrame) -> list[str]:
    """What the runs of a model say, a sentence or two for each limit."""
    made, sentences = gains(table), []
    for limit, part in sorted(made.groupby("longest"), reverse=True):
        between = mean_interval(part["between"].to_numpy())
        sentences.append(
            f"{limit} tokens: reward {_moves('discrete chain of thought', part['discrete'].mean())} and "
            f"{_moves('MTS', part['mts'].mean())}. MTS ends {_beside(between.mean)} discrete chain of thought; "
            f"{_sure(between)}, and it is above in {(part['between'] > 0).sum()} of {len(part)} seeds."
        )
    return sentences


def _moves(who: str, points: float) -> str:
    return f"{'gives' if points >= 0 else 'costs'} {who} {abs(points):.1f} points"


def _sure(between: Interval) -> str:
    if np.isnan(between.low):
        return "one seed has no interval"
    return f"the interval over seeds {'holds' if between.low <= 0 <= between.high else 'excludes'} zero"


def _beside(points: float) -> str:
    return f"{abs(points):.1f} points {'above' if points >= 0 else 'below'}"


def not_drawn(table: pd.DataFrame, wanted: Sequence[LanguageRun], profile: str) -> list[str]:
    """One sentence where runs have no record: how many, and the remedy."""
    absent = len(wanted) - table["id"].nunique()
    remedy = f"`cot2 llm train --profile {profile} && cot2 collect gsm8k --profile {profile}`"
    return [f"**Not drawn**: {absent} of {len(wanted)} runs have no record; {remedy} makes it."] if absent else []


def responses_table(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Stories with both responses, of `answered.responses`."""
    code = lambda texts: [f"`{text}`" if text else "" for text in texts]
    shown = {"story": before["story"], "answer": before["answer"], "before": code(before["written"])}
    return pd.DataFrame(shown | {"thoughts after": code(after["thoughts"]), "after": code(after["written"])})


def left_open() -> pd.DataFrame:
    """What the paper does not say of its training on GSM8K, and what we take."""
    rows = {
        'what "batch 6" counts': "six problems, each with its group of four responses",
        "temperature of samples": "1",
        "loss": "over all steps of a group, as the paper's equation for other tasks; ours weighs each response alike",
        "weight decay": "0.01, as the paper states for its other models; ours have none",
        "advantages": "divided by their spread in the group",
        "what is trained": "every weight",
        "where thoughts stand": "before the text",
        "how their number rises": "evenly",
        "form of the question": "a turn of the model's chat without its own thinking; the answer after ####",
        "how answers are decoded": "both sampled and greedy are recorded; the ledger judges the sampled ones",
        "which step is reported": "the last; elsewhere the paper reports the best one, unless it says otherwise",
        "what a length counts": "discrete tokens",
        "held-out problems": "all of GSM8K's test set",
    }
    return pd.DataFrame({"left open": rows.keys(), "here": rows.values()})


def early_table(usual: pd.DataFrame, early: pd.DataFrame) -> pd.DataFrame:
    """MTS with thoughts in the second half of its training beside MTS with thoughts from the start, and discrete CoT.

    Args:
        usual: evaluations of the small model with the paper's curriculum.
        early: those with thoughts that begin to come at the first step.
    """
    limit = early["longest"].unique()
    parts = {
        "discrete CoT": usual[(usual["continuous"] == 0) & usual["longest"].isin(limit)],
        "MTS, thoughts in the second half": usual[(usual["continuous"] > 0) & usual["longest"].isin(limit)],
        "MTS, thoughts from the start": early,
    }
    found = {name: ends(part) for name, part in parts.items()}
    rows = [
        {"training": name, "limit": row["longest"].iloc[0], "runs": len(row)}
        | {how: said(row[column]) for column, how in KINDS.items()}
        for name, row in found.items()
        if len(row)
    ]
    return pd.DataFrame(rows)
