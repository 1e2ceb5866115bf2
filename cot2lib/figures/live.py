"""What chapters train live: small requests that a reader may change, and their figures."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from cot2lib import runs
from cot2lib.figures.style import panels
from cot2lib.figures.tasks import baselines
from cot2lib.profiles import shortened, spec
from cot2lib.tasks import MNNS

SAMPLED = 20_000  # inputs of a task too large to enumerate
POINTS = 12  # evaluations of a live run
LINES = ("#D55E00", "#009E73", "#0072B2", "#E69F00", "#56B4E9", "#CC79A7", "#7A7A7A")
STYLES = ("-", "--", "-.", ":")


def task(low: int, high: int, length: int) -> MNNS:
    """MNNS with these digits; a sample of its inputs where there are too many to list."""
    few = (high - low + 1) ** length <= 10**5
    return MNNS(low, high, length, inputs=None if few else SAMPLED)


def budgets(
    profile: str,
    budgets: Sequence[int],
    digits: tuple[int, int, int],
    *,
    d_model: int,
    seed: int,
    epochs: int,
    device: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows and curves of one shortened run per budget; B = 1 is discrete chain of thought."""
    options = dict(task=task(*digits), d_model=d_model, seed=seed)
    kinds = [("discrete", None) if budget == 1 else ("cot2", budget) for budget in budgets]
    specs = [shortened(spec(name, profile, budget=budget, **options), epochs, POINTS) for name, budget in kinds]
    return runs.run(specs, device=device), runs.curves(specs)


def curves(found: pd.DataFrame) -> Figure:
    """Learning curves of live runs, a line per method and budget."""
    figure, axes = panels(1, 1, width=6.0, height=3.2)
    axis = axes[0, 0]
    for place, (_, run) in enumerate(found.groupby("id", sort=False)):
        first = run.iloc[0]
        label = f"{first['method']}, B = {first['budget']}"
        style = dict(color=LINES[place % len(LINES)], linestyle=STYLES[place % len(STYLES)])
        axis.plot(run["epoch"], 100 * run["accuracy"], label=label, marker="o", markersize=3, **style)
    axis.set(xlabel="epoch", ylabel="validation accuracy (%)", ylim=(0, 102))
    axis.legend(loc="lower right", frameon=False)
    return figure


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """What live training gave: method, budget, dimension, steps, accuracy (%), seconds."""
    chosen = rows[["task", "method", "budget", "d_model", "steps"]].rename(columns={"d_model": "d"})
    return chosen.assign(**{"validation accuracy (%)": 100 * rows["last"], "seconds": rows["seconds"]})


def checks(rows: pd.DataFrame) -> dict[str, bool]:
    """That the largest live budget learnt more than the parity rule knows, on four digits 1-9."""
    largest = rows.loc[rows["budget"].idxmax(), "last"]
    rule = float(baselines(MNNS())["all inputs (%)"].iloc[-1]) / 100
    return {"the live run of the largest budget is above the parity rule": bool(largest > rule)}
