"""What the chapter `search` claims of the shipped records."""

import pandas as pd

from cot2lib.study.checks.claims import decided, part

CHANCE = 50  # per cent
MARGIN = 5  # points
NAMINGS = ("fresh", "once", "age")


def checks(rows: pd.DataFrame, tested: pd.DataFrame, guessed: pd.DataFrame, trained: pd.DataFrame) -> dict[str, bool]:
    """The claims on methods and namings, on what can be guessed, and on the live training."""
    shares = lambda **columns: part(rows, profile="quick", **columns).set_index("seed")["last"]
    mean = lambda test: 100 * part(tested, test=test, method="CoT2", naming="fresh")["strict"].mean()
    pairs = lambda test: 100 * part(tested, test=test, method="CoT2", naming="age")["pair"].mean()
    depth = lambda test: 100 * part(tested, test=test, method="CoT2", naming="fresh")["pair"].mean()
    deep = guessed[guessed.columns[0]].str.startswith("farther")
    ours = guessed[~deep].drop(columns=[guessed.columns[0], "published"]).to_numpy()
    return decided(
        {
            **{
                f"CoT2 is above discrete CoT on every seed (our recipe, names: {name})": lambda name=name: (
                    shares(method="CoT2", naming=name) > shares(method="discrete CoT", naming=name)
                ).all()
                for name in NAMINGS
            },
            "no rule about parents, children or age is 10 points from chance on our graphs": lambda: bool(
                (abs(ours - CHANCE) < 2 * MARGIN).all()
            ),
            "CoT2 with fresh names answers unseen graphs and those of training alike": lambda: (
                abs(mean("drawn names") - mean("seen graphs")) < MARGIN
            ),
            "CoT2 that learnt with ages as names chooses nearly at random where names are drawn": lambda: (
                pairs("ages") > CHANCE + 8 * MARGIN and pairs("drawn names") < CHANCE + 2 * MARGIN
            ),
            "CoT2 with fresh names does not rest on depth": lambda: (
                abs(depth("target deeper") - depth("as deep")) < MARGIN
            ),
            "the live model is above chance": lambda: 100 * trained["last"].iloc[0] > CHANCE + MARGIN,
        }
    )
