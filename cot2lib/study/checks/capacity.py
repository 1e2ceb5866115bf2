"""What the chapter `capacity` claims: what is proved, counted anew, and what was measured at the defaults."""

import pandas as pd

from cot2lib.specs.profiles import PROFILES
from cot2lib.study.analysis import overhead
from cot2lib.study.analysis.separation import mean_states, one_hot_margin, targets_of, whole_tree_divergence
from cot2lib.study.checks.claims import decided, part
from cot2lib.study.sweeps import D_MODELS
from cot2lib.tasks import MNNS
from cot2lib.theory import packing

ROUNDING = 1e-9  # nat
HIGH, LOW = 0.85, 0.6


def checks(rows: pd.DataFrame, found: pd.DataFrame, heads: pd.DataFrame, task: MNNS) -> dict[str, bool]:
    """The chapter's claims, as far as their cells were asked for.

    Args:
        rows: runs of the budgets.
        found: margins (`cot2lib.study.analysis.separation.margin_rows`).
        heads: divergences of fitted heads (`head_rows`).
        task: whose targets.
    """
    counts = {b: len(targets_of(task, b)) for b in (4, 8, 16)}
    smallest = lambda profile: part(rows, profile=profile, budget=16, d_model=16)["last"]
    of = lambda kind, budget: part(found, kind=kind, B=budget).groupby("d")["margin"].mean()
    apart = lambda: part(found, kind="widened", B=16, d=8)["margin"].item()
    kl = lambda d: part(heads, B=16, d=d)["KL"].item()
    return decided(
        {
            "a fixed margin of a tenth cannot be had by every budget": lambda: not packing.fixed_margin_is_possible(),
            "at possible margins the paper's bound holds": packing.bound_holds_at_possible_margins,
            "the paper's formula asks for less than half of the smallest d tried": lambda: (
                2 * packing.most_asked_for() < min(D_MODELS)
            ),
            "all trajectories have fewer different targets than 4 or 8": lambda: (
                counts[16] < min(counts[4], counts[8])
            ),
            "eight dimensions show every target of the full budget, by construction": lambda: (
                whole_tree_divergence(task) < ROUNDING
            ),
            "at d = 16 some run of B = 16 ends above 85 %, some below 60 %, under both recipes": lambda: all(
                smallest(profile).max() > HIGH and smallest(profile).min() < LOW for profile in PROFILES
            ),
            "a thought of the full budget holds more states on average than one of 8": lambda: (
                mean_states(task, 16) > mean_states(task, 8)
            ),
            "embeddings trained on the full budget are farther apart than random ones, discrete ones nearer": lambda: (
                (of("trained", 16) - of("random", 16)).min() > 0 > (of("trained", 1) - of("random", 1)).max()
            ),
            "in eight dimensions the full budget's targets can be as far apart as with one per state": lambda: (
                apart() > one_hot_margin(task, 16)
            ),
            "a fitted head finds it: from d = 6 to 8 the KL falls tenfold": lambda: kl(8) < kl(6) / 10,
            "the mixture needs exactly the projection's operations": overhead.equals_projection,
            "GPT-2's blocks need more, a narrow model with a large vocabulary less": lambda: (
                overhead.is_dominated() and not overhead.is_dominated(overhead.SMALL)
            ),
        }
    )
