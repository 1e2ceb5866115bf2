"""What the chapter `grpo_mts` claims: of recorded runs, and of policy ratios."""

import numpy as np
import pandas as pd

from cot2lib.metrics import Interval, paired_interval
from cot2lib.specs.profiles import SEEDS
from cot2lib.study.analysis.differences import either_ratio, entropies_apart
from cot2lib.study.analysis.policies import best, ends, fallen, gains
from cot2lib.study.analysis.ratios import example_ends
from cot2lib.study.checks.claims import NotRecorded, decided, part
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.sweeps import DROPOUT, KS, STEPS

MOST = 0.9  # of the runs, for which a claim about most of them must hold
MANY = 0.8  # the same of two things at once
POINTS_APART, TEN_POINTS = 3.0, 10.0
NEAR, FAR = 7.0, 10.0  # points from the paper's


def checks(points: pd.DataFrame, variants: pd.DataFrame) -> dict[str, bool]:
    """The claims about recorded runs, as far as there are records.

    Args:
        points: evaluations of the runs of the paper's table (`cot2lib.study.analysis.policies.evaluations`).
        variants: those of the variants (`by_variant`).
    """
    first, last = ends(points)
    paired = last.merge(first, on=["profile", "id"], suffixes=("", "_first"))
    surer = (paired["entropy_1"] < paired["entropy_1_first"]) & (paired["entropy_4"] < paired["entropy_4_first"])
    gain = lambda change, k, decoder="own": gains(part(variants, change=change, k=k), decoder).mean()
    return decided(
        {
            "policy gradients raise accuracy by the own sampler on most runs": lambda: (
                (paired["own"] > paired["own_first"]).mean() > MOST
            ),
            "the first and the last token become more certain on most runs": lambda: surer.mean() > MANY,
            "without a learning rate nothing changes": lambda: stays(
                part(variants, change="no learning"), ["discrete"]
            ),
            "the product and its root end within three points": lambda: all(
                abs(_mean(variants, "usual", k) - _mean(variants, "product", k)) < POINTS_APART
                for k in sorted(map(int, part(variants, change="product")["k"].unique()))
            ),
            "logits / K starts lower; with K = 6 every run collapses and greedy decoding gains no point": lambda: (
                _mean(variants, "logits / K", 3, end=0) < _mean(variants, "usual", 3, end=0)
                and _fallen(variants, "logits / K", 6) == set(variants["seed"])
                and gain("logits / K", 6, "discrete") < 1
            ),
            "one-sided dropout takes more than half of the mean gain, and the paper's gain lies between": lambda: (
                gain("one-sided dropout", 3) < min(gain("usual", 3) / 2, _paper_gain(3))
                and _paper_gain(3) < gain("usual", 3)
            ),
            "a rising K gains no less than K = 6 throughout": lambda: gain("rising", 6) >= gain("usual", 6),
            "a penalty on divergence lowers the mean gain under every K, and no run collapses": lambda: all(
                gain("divergence", k) < gain("usual", k) and not _fallen(variants, "divergence", k) for k in KS
            ),
            "of the usual runs the same start collapses under every K": lambda: all(
                _fallen(variants, "usual", k) == {SEEDS[0]} for k in KS
            ),
            "K = 6 leaves tokens 1 to 3 more entropy than K = 1, and less of it under the product": lambda: (
                _more_entropy(variants)
            ),
        }
    )


def recipe_checks(quick: pd.DataFrame, authors: pd.DataFrame | None) -> dict[str, bool]:
    """The claims that name a recipe, from the variants of either; the authors' may be missing."""
    gain = lambda variants, change, k=3, decoder="own": gains(part(variants, change=change, k=k), decoder)
    high = ("high rate", "product, high rate")
    claims = {
        "quick: with K = 3 logits / K brings greedy decoding no point": lambda: (
            gain(quick, "logits / K", 3, "discrete").mean() < 1
        ),
        "quick: under K = 6 the penalty's loss is within the spread": lambda: (
            paired_interval(gain(quick, "usual", 6), gain(quick, "divergence", 6)).low < 0
        ),
        "quick: ten times the rate brings every run down": lambda: all(
            _fallen(quick, change, 3) == set(quick["seed"]) for change in high
        ),
    }
    if authors is not None:
        claims["authors': with K = 3 logits / K brings it ten points or more on some starts"] = lambda: (
            gain(authors, "logits / K", 3, "discrete").max() >= TEN_POINTS
        )
        claims["authors': ten times the rate gains more than the usual one, and collapses no other start"] = lambda: (
            all(
                gain(authors, change).mean() > gain(authors, "usual").mean()
                and _fallen(authors, change, 3) == {SEEDS[0]}
                for change in high
            )
        )
    return decided(claims)


def split_checks(points: pd.DataFrame) -> dict[str, bool]:
    """The claims on runs of the authors' recipe on the paper's split, with the public code's dropout and without.

    Args:
        points: their evaluations.
    """
    return decided(
        {
            "without dropout every run has its best epoch far from the paper's": lambda: (
                _from_paper(part(points, dropout=0.0)).abs().min() > FAR
            ),
            "with it those that do not collapse without it have theirs near the paper's, below it": lambda: (
                _from_paper(_standing(points)).between(-NEAR, 0).all()
            ),
        }
    )


def _standing(points: pd.DataFrame) -> pd.DataFrame:
    """Runs with dropout from initialisations that do not collapse without it, whatever K."""
    return part(points[~points["seed"].isin(fallen(part(points, dropout=0.0)))], dropout=DROPOUT)


def _from_paper(points: pd.DataFrame) -> pd.Series:
    """By run: best epoch by own sampler less the paper's number for its K (points)."""
    stated = points.groupby("id")["k"].first().map(lambda k: paper_value(f"grpo-mts-d24-k{k:.0f}"))
    return best(points) - stated


def _fallen(variants: pd.DataFrame, change: str, k: int) -> set[int]:
    """Seeds whose run collapsed."""
    return fallen(part(variants, change=change, k=k))


def _apart(variants: pd.DataFrame) -> dict[tuple[str, int], Interval]:
    """What K = 6 leaves more than K = 1 by ratio and token (nat), without the seeds of which a run collapsed."""
    both = either_ratio(variants, 1, 6)
    if set(both["change"]) != {"usual", "product"}:
        raise NotRecorded("the other ratio")
    return entropies_apart(both, 1, 6, without=fallen(both))


def _more_entropy(variants: pd.DataFrame) -> bool:
    """Whether K = 6 surely leaves tokens 1 to 3 more entropy under either ratio, and 2 and 3 less under the product.

    Collapsed runs are left out.
    """
    apart = _apart(variants)
    sure = all(apart[ratio, token].low > 0 for ratio in ("geometric", "product") for token in STEPS[:3])
    return sure and all(apart["product", token].mean < apart["geometric", token].mean for token in STEPS[1:3])


def _paper_gain(k: int) -> float:
    """What the paper's run gained (points)."""
    return paper_value(f"grpo-mts-d24-k{k}") - paper_value("grpo-mts-d24-sft")


def stays(points: pd.DataFrame, decoders: list[str]) -> bool:
    """Whether no run changes its accuracy by any of the decoders."""
    spread = points.groupby("id")[decoders].agg(lambda values: float(np.ptp(values)))
    return bool((spread == 0).all(axis=None))


def _mean(variants: pd.DataFrame, change: str, k: int, end: int = 1) -> float:
    """Mean accuracy (%) by own sampler of a variant, before (end 0) or after (end 1) training."""
    return float(ends(part(variants, change=change, k=k))[end]["own"].mean())


def ratio_checks(
    listed: pd.DataFrame, sampled: pd.DataFrame, dropped: pd.DataFrame, silent: pd.DataFrame, updates: pd.DataFrame
) -> dict[str, bool]:
    """The claims on policy ratios, from the tables of `cot2lib.study.analysis.ratios`.

    Args:
        listed: of `exact_gradients`.
        sampled: of `sampled_gradients`.
        dropped, silent: of `dropout`, with and without dropout.
        updates: of `several_updates`.
    """
    along = sampled[(sampled["ratio"] == "product") & (sampled["measure"] == "along")]
    product, geometric = (listed[listed["ratio"] == ratio] for ratio in ("product", "geometric"))
    reward = example_ends((1, 2, 6), 4000).pivot(index="k", columns="ratio", values="J")
    first, more = updates[updates["updates"] == 1], updates[updates["updates"] > 1]
    moved = dropped.groupby(["profile", "ratio", "divided", "k"])["thoughts"].mean()
    claims = {
        "the product's expected gradient is that of J": (product["cosine"] > 1 - 1e-5).all(),
        "sampled gradients of the product agree with it": ((along["value"] - 1).abs() < 5 * along["error"]).all(),
        "the geometric mean's points elsewhere from K = 2 on": (
            geometric.loc[geometric["k"] > 1, "cosine"] < 1 - 1e-4
        ).all(),
        "with a shared parameter it lowers the reward for K = 2 and 6": (
            (reward.loc[[2, 6], "geometric"] < 0.4).all() and (reward["product"] > 0.49).all()
        ),
        "without dropout no ratio leaves one": (silent[["thoughts", "answers", "spread"]] == 0).all(axis=None),
        "dropout in the current policy alone moves most ratios out of the clip range": (moved > 0.5).all(),
        "with one update per batch the clip cuts nothing": (first[["thoughts", "answers"]] == 0).all(axis=None),
        "with several it does": (more.groupby("updates")["thoughts_cut"].mean() > 0).all(),
    }
    return {claim: bool(holds) for claim, holds in claims.items()}
