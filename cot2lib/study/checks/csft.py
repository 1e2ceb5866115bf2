"""What the chapter `csft` claims of the shipped records."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from cot2lib.study.checks.claims import decided, part
from cot2lib.study.sweeps import D_MODELS

NEAR = 0.03  # nat, between a model's entropy and its targets'
POINT = 0.01  # of a share


def checks(rows: pd.DataFrame, finals: pd.DataFrame, exact: Float[np.ndarray, " step"]) -> dict[str, bool]:
    """The claims on methods and on entropies; `exact` are the entropies (nat) of the targets, step by step."""
    claims = {}
    for profile in rows["profile"].unique():
        for d in (24, 32):
            claim = f"CoT2 above discrete CoT on every seed ({profile}, d = {d})"
            claims[claim] = lambda profile=profile, d=d: _ahead(rows, profile, d)
        if profile == "quick":
            claim = "CoT2 entropies within .03 nat of the exact targets (quick, d = 32)"
            claims[claim] = lambda: all(
                abs(mean - exact[t - 1]) < NEAR for t, mean in _entropies(finals, "quick").items() if t < 4
            )
        else:
            claim = f"CoT2 entropies between the exact targets and t ln 2 for t = 2, 3 ({profile}, d = 32)"
            claims[claim] = lambda profile=profile: all(
                exact[t - 1] < _entropies(finals, profile)[t] < t * np.log(2) for t in (2, 3)
            )
    return decided(claims)


def _ahead(rows: pd.DataFrame, profile: str, d_model: int) -> bool:
    """Whether CoT2 is above discrete CoT on every seed that both have."""
    sides = (_shares(rows, profile=profile, method=method, d_model=d_model) for method in ("CoT2", "discrete CoT"))
    both = pd.concat(sides, axis=1, join="inner")
    return bool((both.iloc[:, 0] > both.iloc[:, 1]).all())


def _entropies(finals: pd.DataFrame, profile: str) -> dict[int, float]:
    """Mean entropy (nat) of each step."""
    found = part(finals, profile=profile)
    return {t: found[f"entropy_{t}"].mean() for t in (1, 2, 3, 4)}


def _shares(rows: pd.DataFrame, **columns) -> pd.Series:
    return part(rows, **columns).set_index("seed")["last"]


def more_checks(others: pd.DataFrame, single: pd.DataFrame, fed: pd.DataFrame) -> dict[str, bool]:
    """The claims on the other baselines, one layer and feeding, as far as the quick runs are recorded."""
    mean = lambda rows, **columns: _shares(rows, profile="quick", **columns).mean()
    rivals = [method for method in others["method"].unique() if method != "CoT2"]
    cot2 = lambda: mean(others, method="CoT2", d_model=32)
    own, teacher = (lambda d, fed_by=fed_by: mean(fed, fed=fed_by, d_model=d) for fed_by in ("self", "teacher"))
    one = lambda method, d: mean(single, method=method, d_model=d)
    return decided(
        {
            "CoT2 has a higher mean than every baseline at d = 32 (quick)": lambda: all(
                cot2() > mean(others, method=rival, d_model=32) for rival in rivals
            ),
            "one layer of CoT2 has a higher mean than one layer of discrete CoT at every d (quick)": lambda: all(
                one("CoT2", d) > one("discrete CoT", d) for d in D_MODELS
            ),
            "self-feeding betters teacher forcing by a point at no d (quick)": lambda: all(
                own(d) < teacher(d) + POINT for d in D_MODELS
            ),
        }
    )
