"""The letter to the authors (`book/letter.md`): its numbers, read from the records, the claims and the theory.

The page says `{{ name }}` where a number stands. `paper ID` is the paper's number of a claim, `ours ID` ours with its
interval and number of runs, as the ledger has it; `found` has all others.
"""

import re
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd

from cot2lib.specs.profiles import POLICIES
from cot2lib.study import arrow, graph_runs, graphs, grpo_mts, policies
from cot2lib.study.book.ledger import of_records, ours
from cot2lib.study.claims.kinds import SETTLED
from cot2lib.study.frame import at
from cot2lib.study.printed import claims, number_at, paper_value
from cot2lib.study.reward_runs import explaining
from cot2lib.study.show import mean_of
from cot2lib.study.sweeps import BUDGETS, DROPOUT, KS, LARGE
from cot2lib.tasks import MNNS
from cot2lib.theory import chains, estimators
from cot2lib.theory.construction import TrigMNNS

PLACE = re.compile(r"\{\{ (.+?) \}\}")
SPLITS = (42, 43, 44, 45, 46)  # seeds of the public code, the first that of the paper's single runs
SHOWN_K = 3  # of the table of settings


def filled(page: str) -> str:
    """The page with its numbers; raises KeyError for one that nothing gives."""
    return PLACE.sub(lambda place: number(place[1]), page)


def number(name: str) -> str:
    source, _, claim = name.partition(" ")
    if source == "paper":
        return claims().loc[claim, "paper_value"]
    if source == "ours":
        rows = of_records()
        row = next(rows[(rows["id"] == claim) & (rows["profile"] == SETTLED)].itertuples())
        return f"{ours(row)}, n = {row.seeds}"
    return found()[name]


@cache
def found() -> dict[str, str]:
    """Numbers that are no claim's, by name."""
    points = policies.evaluations({SETTLED: explaining(SETTLED)})
    return _split() | _settings(points) | _worded() | _bound() | _read_off() | _entropies(points) | _arrow()


def _split() -> dict[str, str]:
    """How many accuracies of Table 1 are whole numbers of a split's validation inputs."""
    task = MNNS()
    printed = [paper_value(f"grpo-mts-d{d}-{end}") for d in LARGE for end in ("sft", *(f"k{k}" for k in KS))]
    inputs = {seed: int((~task.split(seed)).sum()) for seed in SPLITS}
    shares = {seed: {round(100 * right / count, 2) for right in range(count + 1)} for seed, count in inputs.items()}
    fitting = [sum(value in shares[seed] for value in printed) for seed in SPLITS]
    counts = {"accuracies": len(printed), "inputs": inputs[SPLITS[0]], "fit": fitting[0], "others": max(fitting[1:])}
    return {name: str(count) for name, count in counts.items()}


def _settings(points: pd.DataFrame) -> dict[str, str]:
    """Rows of the table of settings, the paper's gains, and the first gain with collapsed runs."""
    every = policies.outcomes(points)
    standing, whole = (grpo_mts.standing(some) for some in (every, every.assign(collapsed=False)))
    best, gain = (
        at(standing, k=SHOWN_K, measure=name).groupby(["explanation", "d_model"])["value"] for name in ("best", "gain")
    )
    fits = grpo_mts.fits(standing)[["accuracies", "gains", "entropies"]].agg(", ".join, axis=1)
    every_gain = at(whole, k=SHOWN_K, measure="gain").groupby(["explanation", "d_model"])["value"]
    counts = best.size().astype(str) + " of " + every_gain.size().astype(str)
    columns = {"n": counts, "best": best.agg(mean_of), "gain": gain.agg(policies.differences), "fits": fits}
    shown = pd.DataFrame(columns).reset_index()
    gains = {f"gain {d}": f"{grpo_mts.paper_measure('gain', d, SHOWN_K):.2f}" for d in LARGE}
    gains["settings with collapsed"] = policies.differences(every_gain.get_group(("as stated", LARGE[0])))
    return gains | {"settings": "\n".join(f"| {' | '.join(map(str, row))} |" for row in shown.itertuples(index=False))}


def _worded() -> dict[str, str]:
    """Accuracy on ProsQA by the stated half of the recipe, on prompts of four tokens an edge."""
    last = graphs.recorded(graph_runs.worded()).groupby("method", observed=True)["last"]
    return {f"worded {method}": f"{mean_of(part)} % (n = {len(part)})" for method, part in last}


def _bound() -> dict[str, str]:
    """The exact ratio of errors where it exceeds the paper's bound, and the bound."""
    shown = {"ratio": estimators.mse_ratio(*chains.identity(2, 3), 2), "bound": estimators.printed_bound(2)}
    return {name: str(Fraction(value).limit_denominator(100)) for name, value in shown.items()}


def _read_off() -> dict[str, str]:
    """What the construction answers, as printed and with a threshold, of all inputs of four digits."""
    task = MNNS()
    solved = lambda variant: TrigMNNS(task.length, task.bound, variant).solve(task.digits) == task.answers
    zero, written = task.answers == 0, solved("as-written")
    counts = {"zeros": zero.sum(), "zeros right": written[zero].sum()}
    counts |= {"rest": (~zero).sum(), "rest right": written[~zero].sum()}
    counts |= {"all": task.size, "repaired right": solved("biased").sum()}
    return {name: str(int(count)) for name, count in counts.items()}


def _entropies(points: pd.DataFrame) -> dict[str, str]:
    """Our entropy of the first token by K: before any step, after one epoch, and after one with the code's dropout."""
    rates, shown, apart = at(points, lr=POLICIES[SETTLED].lr).sort_values("step"), {}, []
    for d in LARGE:
        usual, dropped = (at(rates, d_model=d, dropout=dropout) for dropout in (0.0, DROPOUT))
        after, late = (runs[runs["step"] > 0].groupby("id").head(1) for runs in (usual, dropped))
        for name, runs in {"before": at(usual, step=0), "stated": after, "dropped": late}.items():
            means = [mean_of(at(runs, k=k)["entropy_1"], 0.0, np.inf, 3) for k in KS]
            shown[f"{name} {d}"] = f"{' | '.join(means)} | {runs['seed'].nunique()}"
        printed = pd.Series({k: paper_value(f"grpo-mts-d{d}-k{k}-entropy1-sft") for k in KS})
        apart.append((late.groupby("k")["entropy_1"].mean() - printed).abs().max())
    return shown | {"apart": f"{max(apart):.2f}"}


def _arrow() -> dict[str, str]:
    """Rows of the table of budgets at d = 16: the paper's mean, and ours by its recipe without and with the arrow."""
    rows = at(arrow.read(), profile=SETTLED, d_model=16)
    table = []
    for budget in BUDGETS[1:]:
        both = at(rows, budget=budget).groupby("arrow")["last"].agg(mean_of)
        printed = number_at("budget-b{budget}-d{d_model}", {"budget": budget, "d_model": 16})
        table.append(f"| {budget} | {'' if printed is None else f'{printed:.2f}'} | {both['no']} | {both['yes']} |")
    return {"arrow": "\n".join(table), "arrow runs": str(len(at(rows, budget=16, arrow="yes")))}
