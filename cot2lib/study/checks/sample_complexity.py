"""What the chapter `sample_complexity` claims: on chains, and on trained models."""

import math

import pandas as pd

from cot2lib.study.analysis.probes import KIND
from cot2lib.tasks import MNNS
from cot2lib.theory import chains, estimators


def checks(live: pd.DataFrame, sizes: pd.DataFrame, covered: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims on chains."""
    exact = live[live["kind"] == "exact"].set_index("k")["ratio"]
    near = lambda kind: all(
        math.isclose(row.ratio, exact[row.k], abs_tol=5 * row.error + 1e-9)
        for row in live[live["kind"] == kind].itertuples()
    )
    shares = covered.pivot(index="K", columns="kind", values="share")
    long = sizes["m"].astype(int) >= 100
    allowed = sizes["$\\delta$"].astype(float)
    most = float(estimators.ratio(estimators.mnns_explained(MNNS().digits), 10**9).max())
    return {
        "simulated MTS agrees with the exact ratio": near("multinomial"),
        "Dirichlet thoughts of concentration K - 1 do too": near("dirichlet"),
        "two tokens that never change break 2 - 1/K at K = 2, m = 3": estimators.mse_ratio(*chains.identity(2, 3), 2)
        > 1.5,
        "no four-digit input does, at any K": most < 2,
        "the printed N fails more often than allowed on every long chain": bool(
            (sizes["fails, printed"] > allowed)[long].all()
        ),
        "the corrected N never does": bool(
            (sizes[["fails, Chebyshev", "fails, Bernstein"]].max(axis=1) <= allowed).all()
        ),
        "MTS covers fewer answers than independent traces, systematic draws more, from K = 2 on": bool(
            (shares["MTS"] < shares["K independent traces"]).loc[2:].all()
            and (shares["systematic"] > shares["K independent traces"]).loc[2:].all()
        ),
    }


def model_checks(table: pd.DataFrame, right: pd.DataFrame, bias: pd.DataFrame) -> dict[str, bool]:
    """The chapter's claims on trained models."""
    cot2 = table[table["method"] == "CoT2"]
    mean = cot2.groupby([*KIND, "step"])["linear"].mean().unstack()
    markov = (
        table[["markov_other", "markov_mean"]].max(axis=1).groupby([table[name] for name in (*KIND, "step")]).median()
    )
    share = right[right["method"] == "CoT2"].groupby(KIND)[["base", "linear"]].mean()
    by_k = bias.groupby([*KIND, "step", "k"])["gap"].mean().unstack()
    return {
        "every CoT2 model is furthest from linear at the answer": bool(
            (mean.idxmax(axis=1) == mean.columns[-1]).all()
        ),
        "and that step made linear loses 20 points": bool((share["base"] - share["linear"] > 0.2).all()),
        "laws hardly depend on earlier thoughts, in the median over seeds": bool(markov.max() < 0.15),
        "sampled thoughts are biased, less so for more tokens": bool((by_k.iloc[:, -1] < by_k.iloc[:, 0]).all()),
    }
