"""Measurements beside the claims on Pass@k (chapter `sampling`)."""

from collections.abc import Sequence
from functools import cache

import pandas as pd

from cot2lib.specs import RunSpec
from cot2lib.study import measured, sweeps
from cot2lib.study.comparisons import Direction, against
from cot2lib.study.frame import at
from cot2lib.study.kinds import Kind, Number, accuracy
from cot2lib.study.passk import MOST, TEMPERATURES, TOP_K
from cot2lib.study.samples import ON_SPLIT, Sample, single, tabled

POINTS = [(t, k) for t in TEMPERATURES for k in range(1, MOST + 1)]


@cache
def passing(method: str, temperature: float, k: int, one_split: bool = False) -> Sample:
    """Pass@k (%) of the models of the chapter `sampling`, in `pass_at_k`; discrete CoT samples from the top tokens.

    With `one_split` the models are those of `single`.
    """
    top_k = TOP_K if method == "discrete" and temperature else 0

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        models = _models(method, profile, tuple(seeds), one_split)
        return tabled(at(measured.read("sampling", profile), top_k=top_k), models, temperature, k)

    return sample


@cache
def _models(method: str, profile: str, seeds: tuple[int, ...], one_split: bool) -> Sequence[RunSpec]:
    """The same for every temperature and k."""
    models = sweeps.methods(profile, seeds, (24,), (method,), layers=1)
    return sweeps.on_split(models) if one_split else models


@cache
def beside_first(temperature: float, k: int) -> Sample:
    """Discrete Pass@k with the same models' Pass@1 in `first`."""

    def sample(profile: str, seeds: Sequence[int]) -> pd.DataFrame:
        rows, first = (passing("discrete", temperature, tries, True)(profile, seeds) for tries in (k, 1))
        return rows.assign(first=first["pass_at_k"])

    return sample


def _point(temperature: float, k: int) -> Number:
    """One point of the discrete series: its first value, after that the gain since, as one model gave them all."""
    since = f"passk-discrete-t{temperature}-k1" if k > 1 else None
    return Number("one_split sampling", beside_first(temperature, k), 1, "pass_at_k", scale=1.0, since=since)


SAMPLING: dict[str, Kind] = {
    "passk-cot2": accuracy(single("cot2", 24), 1, ON_SPLIT),
    "passk-mnns": Direction(
        "sampling",
        [against(passing("cot2", t, k), passing("discrete", t, k), "pass_at_k") for t, k in POINTS],
        scale=1.0,
        given="CoT2 may try as often",
    ),
    **{f"passk-discrete-t{t}-k{k}": _point(t, k) for t, k in POINTS},
}
