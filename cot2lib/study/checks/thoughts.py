"""What the chapter `search` claims of what models think, on test graphs like those of training and on others."""

import pandas as pd

from cot2lib.study.analysis.distractors import LEAVES
from cot2lib.study.analysis.shortcuts import LEADING, MOVED, NEITHER
from cot2lib.study.checks.claims import decided, part
from cot2lib.study.checks.search import CHANCE, DRAWN, LITTLE, MARGIN
from cot2lib.tasks.prontoqa import READINGS, TWINS


def reached_checks(tested: pd.DataFrame) -> dict[str, bool]:
    """The claims on what models answer, and think, on ProntoQA as the paper reads it, and on its control."""
    mean = lambda column, **columns: 100 * part(tested, reading=READINGS[0], **columns)[column].mean()
    right = lambda d, method, test: mean("strict", d=d, method=method, test=test)
    by_heart = lambda d, method: right(d, method, "seen graphs") - right(d, method, "drawn names")
    on_frontier = lambda d: mean("frontier_6", d=d, method="CoT2", test="drawn names")
    coconut = lambda: part(tested, reading=READINGS[0], method="COCONUT", test="drawn names")
    above = lambda: 100 * coconut()[["strict", "frontier_6"]] > [CHANCE + MARGIN, CHANCE]
    means = lambda: 100 * part(tested, reading=READINGS[0]).groupby(["method", "d", "test"])["strict"].mean().unstack()
    over = lambda method: means().loc[method].loc[32:, list(MOVED)].pipe(lambda by: by.sub(by[NEITHER], axis=0))
    alike = lambda: 100 * part(tested, reading=TWINS, test="drawn names").groupby("method")["strict"].mean()
    return decided(
        {
            "on ProntoQA discrete CoT learns questions by heart from d = 32 on": lambda: (
                min(by_heart(d, "discrete CoT") for d in (32, 40)) > 3 * MARGIN
            ),
            "and CoT2 does not": lambda: max(by_heart(d, "CoT2") for d in (24, 32, 40)) < MARGIN,
            "there CoT2 is right about as often as its last thought lies on the frontier, from d = 32 on": lambda: (
                max(abs(on_frontier(d) - right(d, "CoT2", "drawn names")) for d in (32, 40)) < MARGIN
            ),
            "one run of COCONUT leaves chance there: the one whose last thought lies mostly on the frontier": lambda: (
                (above()["strict"] == above()["frontier_6"]).all() and above()["strict"].sum() == 1
            ),
            "from d = 32 on CoT2 loses by blocked rules what it loses by moved edges, within 2 points": lambda: (
                over("CoT2").abs().max(axis=None) < 2
            ),
            "and discrete CoT 3 points more where the other concept leads on": lambda: (
                over("discrete CoT")[LEADING].max() < -LITTLE
            ),
            "models with thoughts answer 95 % or more of the control, others are within 5 points of chance": lambda: (
                alike()[["CoT2", "discrete CoT"]].min() >= 95 and abs(alike()["no-CoT"] - CHANCE) < MARGIN
            ),
        }
    )


def thought_checks(tested: pd.DataFrame) -> dict[str, bool]:
    """The claims on COCONUT's thoughts, and on what wider frontiers cost each method; fresh names in training."""
    usual = lambda method: part(tested, naming="fresh", method=method, test="drawn names").set_index("seed")
    kept = lambda: 100 * usual("COCONUT").filter(regex="^frontier_[1-4]$").min(axis=1).sort_values()  # (run,)
    right = lambda test, naming="fresh": (
        100 * part(tested, naming=naming, test=test).groupby("method")["strict"].mean()
    )
    lost = lambda where: right("few nodes") - right(f"few nodes, {LEAVES} leaves {where}")
    ordered = lambda shares: shares["CoT2"] > shares["COCONUT"] > shares["discrete CoT"]
    return decided(
        {
            "COCONUT is between CoT2 and discrete CoT where names are drawn": lambda: all(
                ordered(right("drawn names", naming)) for naming in DRAWN
            ),
            "most of its first thought lies on the frontier on every seed, though no target says so": lambda: (
                100 * usual("COCONUT")["frontier_1"].min() > CHANCE
            ),
            "one model of it keeps 90 % of every thought there, and each other less than 55 % of one": lambda: (
                kept().iloc[-1] > 90 and kept().iloc[:-1].max() < 55
            ),
            "most of its last thought lies on the target, and more than of CoT2's": lambda: (
                100 * usual("COCONUT")["in_time_4"].min() > CHANCE
                and usual("COCONUT")["in_time_4"].min() > usual("CoT2")["in_time_4"].max()
            ),
            "leaves elsewhere change no method by three points": lambda: lost("elsewhere").abs().max() < LITTLE,
            "leaves on the way cost CoT2 less than 4 points, and discrete CoT more than 30": lambda: (
                lost("on the way")["CoT2"] < 4 and lost("on the way")["discrete CoT"] > 30
            ),
        }
    )
