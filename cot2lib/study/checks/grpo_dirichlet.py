"""What the chapter `grpo_dirichlet` claims of recorded runs."""

import numpy as np
import pandas as pd

from cot2lib.study.analysis.policies import ends, fallen, gains, lost
from cot2lib.study.checks.claims import NotRecorded, decided, part
from cot2lib.study.checks.grpo_mts import MOST, stays
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.sweeps import BEST_GAMMA, GAMMAS, SIGMAS
from cot2lib.tasks import MNNS

ALIKE, WITHIN = 2.0, 5.0  # points
UNSCALED = GAMMAS[0]


def checks(points: pd.DataFrame, variants: pd.DataFrame, held: pd.DataFrame) -> dict[str, bool]:
    """The claims about recorded runs, as far as there are records.

    Args:
        points: evaluations of the runs of the paper's tables, and of gamma = 1.
        variants: those of the variants (`cot2lib.study.analysis.policies.by_variant`).
        held: what thoughts hold (`cot2lib.study.analysis.thoughts_held`).
    """
    discrete = points[points["started"] == "discrete CoT"]
    one_layer = lambda: by_gamma(part(discrete, layers=1))
    cot2 = lambda: by_gamma(part(points, started="CoT2"))
    of = lambda change, gamma: part(variants, started="discrete CoT", change=change, gamma=gamma)
    closing = lambda change: ends(of(change, BEST_GAMMA))[1]["base"].mean()
    short = lambda gamma: lost(of("whole vocabulary", gamma), "base").mean()
    fallen = lambda gamma: lost(part(points, started="CoT2", gamma=gamma), "base", by="seed")
    away = lambda layers: misfit(part(discrete, layers=layers, gamma=BEST_GAMMA), held, layers)
    return decided(
        {
            "policy gradients raise base decoding of discrete models on most runs": lambda: (
                all_gains(part(points, started="discrete CoT")).gt(0).mean() > MOST
            ),
            "from discrete models gamma = 10, 20 and 40 gain alike": lambda: np.ptp(one_layer()[1:]) < ALIKE,
            "from CoT2 a larger gamma gains more": lambda: (np.diff(cot2()) > 0).all(),
            "and gamma = 1 loses": lambda: cot2()[0] < 0,
            "from CoT2 gamma = 1 loses more of its best than gamma = 20, on every seed": lambda: (
                fallen(UNSCALED) > fallen(BEST_GAMMA)
            ).all(),
            "at gamma = 20 a mask and a shared entry end alike": lambda: (
                abs(closing("usual") - closing("masked")) < ALIKE
            ),
            "the whole vocabulary more than doubles the gradient and gains less": lambda: (
                length(of("whole vocabulary", BEST_GAMMA)) > 2 * length(of("usual", BEST_GAMMA))
                and closing("whole vocabulary") < closing("usual")
            ),
            "from discrete models so does gamma = 1, with still longer gradients, and keeps what it gains": lambda: (
                length(of("whole vocabulary", UNSCALED)) > length(of("whole vocabulary", BEST_GAMMA))
                and gains(of("whole vocabulary", UNSCALED), "base").mean() > 0
                and short(UNSCALED) < short(BEST_GAMMA) + ALIKE
            ),
            "the paper's entropies before training fit two layers, not one": lambda: away(2) < away(1) / 2,
            "without a learning rate nothing changes": lambda: stays(
                part(variants, change="no learning"), ["own", "base", "discrete"]
            ),
        }
    )


def later_checks(compared: pd.DataFrame, variants: pd.DataFrame) -> dict[str, bool]:
    """The claims about rules of later papers (`sweeps.later`), beside Dirichlet thoughts from CoT2 at their rate."""
    of = lambda sampler, **columns: part(compared, sampler=sampler, started="discrete CoT", **columns)
    gain = lambda runs: gains(runs, "base").mean()
    mts, ours = lambda: of("MTS", change="usual"), lambda: of("Dirichlet")
    masked = lambda started: part(compared, change="masked rollouts", started=started)
    each = lambda sampler: [runs for _, runs in of(sampler).groupby("variant")]
    gaussian = lambda sigma: of("Gaussian", sigma=sigma)
    begins = lambda runs, decoder="own": ends(runs)[0][decoder].mean()
    return decided(
        {
            "MTS and Dirichlet thoughts gain most, within five points of each other": lambda: (
                min(gain(mts()), gain(ours()))
                > max(map(gain, [*each("Gumbel"), *each("Gaussian"), masked("discrete CoT")]))
                and abs(gain(mts()) - gain(ours())) < WITHIN
            ),
            "centred advantages gain as much as scaled ones": lambda: (
                abs(gain(mts()) - gain(of("MTS", change="centred"))) < ALIKE
            ),
            "Gumbel thoughts gain less than five points, with gradients three times as long": lambda: (
                max(map(gain, each("Gumbel"))) < WITHIN and min(map(length, each("Gumbel"))) > 3 * length(ours())
            ),
            "Gaussian noise costs from the start, the larger more, and brings every run to one answer": lambda: (
                begins(mts(), "base") > begins(gaussian(SIGMAS[0])) > begins(gaussian(SIGMAS[1]))
                and fallen(gaussian(SIGMAS[1])) == set(compared["seed"])
            ),
            "a mask per rollout brings more than half of it, and CoT2 as much as Dirichlet thoughts": lambda: (
                gain(masked("discrete CoT")) > gain(ours()) / 2
                and abs(gain(masked("CoT2")) - gain(part(variants, started="CoT2", change="high rate"))) < ALIKE
            ),
        }
    )


def all_gains(points: pd.DataFrame) -> pd.Series:
    """Gain (points) by base decoding of every run."""
    return pd.concat([gains(runs, "base") for _, runs in points.groupby(["layers", "gamma"])])


def by_gamma(points: pd.DataFrame) -> list[float]:
    """Mean gain (points) by base decoding under every gamma of the tables, smallest first."""
    return [gains(part(points, gamma=gamma), "base").mean() for gamma in GAMMAS]


def length(points: pd.DataFrame) -> float:
    """Mean length of the gradient."""
    return points.loc[points["step"] > 0, "gradient_norm"].mean()


def misfit(points: pd.DataFrame, held: pd.DataFrame, layers: int) -> float:
    """Mean distance (nat) of base decoding's entropies before training from those the paper prints.

    Raises:
        NotRecorded: if the thoughts of no run were measured.
    """
    mine = part(held[held["id"].isin(points["id"])], when="before")
    found = mine.groupby("step")["base_entropy"].mean()
    if len(found) < MNNS().steps:
        raise NotRecorded(f"entropies of {layers} layers")
    stated = pd.Series({t: paper_value(f"dirichlet-discrete-{layers}l-entropy{t}-sft") for t in found.index})
    return float((found - stated).abs().mean())
