"""Figures and tables of the chapter `sampling` on what one trace holds: its entropies, and other ways to feed it."""

from collections.abc import Sequence

import pandas as pd
import torch
from matplotlib.figure import Figure

from cot2lib.decode import PROMPTS_AT_ONCE, decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.csft_numbers import describe_mean, entropy_table
from cot2lib.study.figures.style import panels
from cot2lib.thoughts import MTS, Base, Rule
from cot2lib.training.data import StackData, stack_data

LOOKS = (("#0072B2", "o", "-"), ("#56B4E9", "v", "--"))


def decoding_accuracies(stack: GPT2Stack, specs: Sequence[RunSpec], thoughts: Sequence[Rule]) -> pd.DataFrame:
    """Validation accuracy (share) of every run under each of some thought rules (SpecError without any)."""
    if not thoughts:
        raise SpecError("no thought rules were given; give at least one temperature, threshold or K.")
    data = stack_data(specs, stack.device)
    rows = []
    for thought in thoughts:
        for run, share in zip(specs, accuracy(stack, data, specs, rules(thought, specs[0].outputs))):
            rows.append({"thought": thought, "seed": run.seed, "accuracy": share})
    return pd.DataFrame(rows)


@torch.no_grad()
def accuracy(stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], steps: Sequence[Rule]) -> list[float]:
    """Validation accuracy (share) of each run under the rules of its steps."""
    keys, right = random.run_keys([spec.seed for spec in specs], Site.DECODE), []
    for chunk, index in enumerate(data.held_out.index.split(PROMPTS_AT_ONCE, dim=1)):
        made = decode(stack, data.prompts[index], steps, random.fold(keys, chunk), data.padding_of(index))
        right.append(made.answers == data.answers[index])
    right = torch.cat(right, dim=1) & data.held_out.real
    return (right.sum(1) / data.held_out.real.sum(1)).tolist()


def sharpened(found: dict[str, pd.DataFrame]) -> Figure:
    """Accuracy over temperature and over threshold of the thoughts, a line per model kind, dots are seeds."""
    figure, axes = panels(1, 2, width=8.4, height=3.0, sharey=True)
    for (label, table), (colour, marker, dash) in zip(found.items(), LOOKS):
        for axis, field in zip(axes[0], ("temperature", "threshold")):
            values = varied(table, field)
            axis.scatter(values[field], 100 * values["accuracy"], s=14, color=colour, marker=marker, alpha=0.5)
            mean = values.groupby(field)["accuracy"].mean()
            axis.plot(mean.index, 100 * mean, color=colour, linestyle=dash, label=label)
    for axis, field in zip(axes[0], ("temperature", "threshold")):
        axis.set(xlabel=f"{field} of the thoughts", ylim=(0, 102))
    axes[0, 0].set_ylabel("validation accuracy (%)")
    axes[0, 0].legend(loc="lower center", frameon=False)
    return figure


def varied(table: pd.DataFrame, field: str) -> pd.DataFrame:
    """Rows in which only `field` of the thoughts may differ from the default."""
    other = "threshold" if field == "temperature" else "temperature"
    plain = getattr(Base(), other)
    keep = [getattr(thought, other) == plain for thought in table["thought"]]
    return table[keep].assign(**{field: [getattr(thought, field) for thought in table.loc[keep, "thought"]]})


def sampled_thoughts(found: dict[str, pd.DataFrame]) -> Figure:
    """Accuracy over K if thoughts are means of K sampled tokens, a line per model kind; level lines are base CoT2."""
    figure, axes = panels(1, 1, width=6.0, height=3.0)
    axis = axes[0, 0]
    for (label, table), (colour, marker, dash) in zip(found.items(), LOOKS):
        sampled = table[[isinstance(thought, MTS) for thought in table["thought"]]]
        ks = [thought.k for thought in sampled["thought"]]
        axis.scatter(ks, 100 * sampled["accuracy"], s=14, color=colour, marker=marker, alpha=0.5)
        mean = sampled.groupby(ks)["accuracy"].mean()
        axis.plot(mean.index, 100 * mean, color=colour, linestyle=dash, marker=marker, label=label)
        plain = table[[thought == Base() for thought in table["thought"]]]["accuracy"].mean()
        axis.axhline(100 * plain, color=colour, linestyle=dash, linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_xticks(sorted(set(ks)), [str(k) for k in sorted(set(ks))])
    axis.set(xlabel="tokens K sampled per thought", ylabel="validation accuracy (%)", ylim=(0, 102))
    axis.legend(loc="lower right", frameon=False)
    return figure


def sampled_table(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The numbers of `sampled_thoughts`."""
    rows = []
    for label, table in found.items():
        for thought, seeds in table.groupby("thought", sort=False):
            thoughts = f"MTS, K = {thought.k}" if isinstance(thought, MTS) else "base"
            rows.append({"model": label, "thoughts": thoughts, "accuracy (%)": describe_mean(seeds["accuracy"])})
    return pd.DataFrame(rows)


def sharpened_table(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The numbers of `sharpened`."""
    rows = []
    for label, table in found.items():
        for thought, seeds in table.groupby("thought", sort=False):
            entry = {"model": label, "temperature": thought.temperature, "threshold": thought.threshold}
            rows.append(entry | {"accuracy (%)": describe_mean(seeds["accuracy"])})
    return pd.DataFrame(rows)


def probe_table(finals: pd.DataFrame, specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Step entropies (nat) of the paper's probe, of t ln 2, of the exact targets and of each profile's models."""
    table = entropy_table(finals, specs)
    steps = [column for column in table.columns if column != "what"]
    stated = {column: paper_value(f"entropy-{place}") for place, column in enumerate(steps, start=1)}
    return pd.concat([pd.DataFrame([{"what": "the paper's probe", **stated}]), table], ignore_index=True)


def checks(sharp: dict[str, pd.DataFrame], drawn: dict[str, pd.DataFrame]) -> dict[str, bool]:
    """The chapter's claims about other ways to feed trained models."""
    mean = lambda table: table.groupby("thought", sort=False)["accuracy"].mean().to_dict()
    base = {label: mean(table)[Base()] for label, table in drawn.items()}
    by_k = {label: {t.k: share for t, share in mean(table).items() if t != Base()} for label, table in drawn.items()}
    rising = {label: [found[k] for k in sorted(found)] for label, found in by_k.items()}
    claims = {
        "no sharpening or pruning betters the trained thoughts by a point": all(
            max(mean(table).values()) < base[label] + 0.01 for label, table in sharp.items()
        ),
        "accuracy rises with K": all(shares == sorted(shares) for shares in rising.values()),
    }
    if all({1, 1024} <= set(found) for found in by_k.values()):
        claims["one sampled token per thought is ten points worse than the mixture, 1024 less than five"] = all(
            found[1] < base[label] - 0.1 and found[1024] > base[label] - 0.05 for label, found in by_k.items()
        )
    return claims
