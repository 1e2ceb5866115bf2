"""What the chapter `search` claims of the shipped records."""

import pandas as pd

from cot2lib.study.analysis import policies
from cot2lib.study.checks.claims import decided, part
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.searches import CHOSEN

CHANCE = 50  # per cent
MARGIN = 5  # points
DRAWN = ("fresh", "once")
NAMINGS = (*DRAWN, "age")
CURRICULA = ("one hop first", "hops one by one")
STEADY = tuple(f"{name}, constant rate" for name in CURRICULA)
COSTLY = ("dropout .1", "embeddings .02", "two layers", "targets of complete walks")
HARMLESS = (
    "rate 1e-3", "beta_2 .98", "twice the graphs", "targets of nodes", "batch 128, as many examples", "twice as long",
    "own thoughts from half on",
)  # fmt: skip
FOR_DISCRETE = ("constant rate", "twice as long", "padding counts")  # what discrete CoT gains by, and CoT2 does not
LITTLE = 3.0  # points
PRINTED = {"CoT2": "cot2", "COCONUT": "coconut", "discrete CoT": "discrete"}  # what the paper's claims call them


def checks(rows: pd.DataFrame, tested: pd.DataFrame, guessed: pd.DataFrame, trained: pd.DataFrame) -> dict[str, bool]:
    """The claims on methods and namings, on what can be guessed, and on the live training."""
    shares = lambda **columns: part(rows, profile="quick", **columns).set_index("seed")["last"]
    stated = lambda naming: 100 * part(rows, profile="paper", naming=naming).groupby("method")["last"].mean()
    mean = lambda test: 100 * part(tested, test=test, method="CoT2", naming="fresh")["strict"].mean()
    pairs = lambda test: 100 * part(tested, test=test, method="CoT2", naming="age")["pair"].mean()
    depth = lambda test: 100 * part(tested, test=test, method="CoT2", naming="fresh")["pair"].mean()
    deepest = lambda: guessed.set_index(guessed.columns[0]).filter(like="farther", axis=0).iloc[0]
    known = guessed[guessed.columns[0]].str.startswith(("farther", "more ancestors"))
    ours = guessed[~known].drop(columns=[guessed.columns[0], "published"]).to_numpy()
    return decided(
        {
            **{
                f"CoT2 is above discrete CoT on every seed (our recipe, names: {name})": lambda name=name: (
                    shares(method="CoT2", naming=name) > shares(method="discrete CoT", naming=name)
                ).all()
                for name in NAMINGS
            },
            "without chain of thought our recipe stays within 5 points of chance": lambda: (
                abs(100 * part(rows, profile="quick", method="no-CoT").groupby("naming")["last"].mean() - CHANCE)
                < MARGIN
            ).all(),
            "by the authors' recipe no method with thoughts comes within 10 points of the paper": lambda: all(
                stated(name)[method] < paper_value(f"main-prosqa-{key}") - 2 * MARGIN
                for name in NAMINGS
                for method, key in PRINTED.items()
            ),
            "by the authors' recipe CoT2 leaves chance by 5 points where names are ages, and only there": lambda: (
                stated("age")["CoT2"] > CHANCE + MARGIN > max(stated(name)["CoT2"] for name in DRAWN)
            ),
            "elsewhere no-CoT stays within 5 points of chance, and COCONUT and discrete CoT below 20 %": lambda: all(
                abs(stated(name)["no-CoT"] - CHANCE) < MARGIN
                and stated(name)[["COCONUT", "discrete CoT"]].max() < 4 * MARGIN
                for name in DRAWN
            ),
            "but for depth and ancestors no rule is 10 points from chance on our graphs": lambda: bool(
                (abs(ours - CHANCE) < 2 * MARGIN).all()
            ),
            "CoT2 with fresh names answers unseen graphs and those of training alike": lambda: (
                abs(mean("drawn names") - mean("seen graphs")) < MARGIN
            ),
            "CoT2 that learnt with ages as names chooses nearly at random where names are drawn": lambda: (
                pairs("ages") > CHANCE + 8 * MARGIN and pairs("drawn names") < CHANCE + 2 * MARGIN
            ),
            "CoT2 with fresh names does not rest on depth": lambda: (
                min(depth("as deep"), depth("other deeper")) > depth("target deeper") - MARGIN
            ),
            "on the published file depth finds the target within three points as often as the paper's CoT2": lambda: (
                abs(deepest()["published"] - paper_value("main-prosqa-cot2")) < LITTLE
            ),
            "CoT2 with fresh names ends above the paper's accuracy on average": lambda: (
                100 * shares(method="CoT2", naming="fresh").mean() > paper_value("main-prosqa-cot2")
            ),
            "the live model is 15 points or more above chance": lambda: (
                100 * trained["last"].iloc[0] > CHANCE + 3 * MARGIN
            ),
        }
    )


def last_checks(
    wide: pd.DataFrame, choices: pd.DataFrame, answers: pd.DataFrame, shortcuts: pd.DataFrame
) -> dict[str, bool]:
    """The claims on larger graphs, on what each choice changes, and on ProntoQA's second reading."""
    signs = lambda: part(answers, profile="quick", reading="sign")
    reached = lambda profile: (
        100 * part(answers, profile=profile, reading="reachable").groupby("method")["last"].mean()
    )
    by_method = lambda: 100 * signs().groupby("method")["last"].mean()
    by_width = lambda names: part(wide, names=names, method="CoT2").pivot_table("last", "d_model", "heads")
    narrow = lambda: wide[wide["d_model"].isin((24, 32)) & (wide["method"] == "CoT2")]
    by_heads = lambda: narrow().pivot_table("last", ["names", "d_model"], "heads")
    changed = choices.set_index("changed")
    usual = changed.loc["usual", "CoT2"]
    gained = changed[["CoT2", "discrete CoT"]] - changed.loc["usual", ["CoT2", "discrete CoT"]]
    steady = changed.loc["constant rate", list(gained)] - changed.loc[list(STEADY), list(gained)]  # points lost
    rule = shortcuts["sign"].iloc[0]  # what the question alone says
    return decided(
        {
            "19 names: one and two heads are above 97 % from d = 32 on, four from d = 40 on and not before": lambda: (
                by_width(19).loc[32:, [1, 2]].min(axis=None) > 0.97
                and by_width(19).loc[40:, 4].min() > 0.97 > by_width(19).loc[:32, 4].max()
            ),
            "28 names: at d = 64 one and two heads are above 97 %, and four heads are not": lambda: (
                by_width(28).loc[64, [1, 2]].min() > 0.97 > by_width(28).loc[64, 4]
            ),
            "at d = 24 and 32 four heads do worse than one and two, whatever the names": lambda: (
                by_heads()[4] < by_heads()[[1, 2]].min(axis=1)
            ).all(),
            "28 names at d = 32 are below 80 % with any number of heads": lambda: (
                100 * part(wide, names=28, d_model=32, method="CoT2")["last"].max() < 80
            ),
            "on the paper's reading CoT2 leads by our recipe, and all are at chance by the authors'": lambda: (
                reached("quick").idxmax() == "CoT2" and (reached("paper") - CHANCE).abs().max() < MARGIN
            ),
            "under the sign reading all three methods end within 5 points (our recipe)": lambda: (
                len(by_method()) == 3 and by_method().max() - by_method().min() < MARGIN
            ),
            "and every run 5 points or more below its best epoch": lambda: (
                100 * (signs()["best"] - signs()["last"]).min() >= MARGIN
            ),
            "and none three points above the rule that the question says in": lambda: (
                100 * signs()["best"].max() < rule + LITTLE
            ),
            "by the authors' recipe CoT2 ends within three points of that rule on every seed": lambda: (
                (100 * part(answers, profile="paper", reading="sign", method="CoT2")["last"] - rule).abs().max()
                < LITTLE
            ),
            "both methods are better where padding counts": lambda: (gained.loc["padding counts"] > 0).all(),
            "three changes help discrete CoT by 10 points or more, and change CoT2 by less than 4": lambda: (
                gained.loc[list(FOR_DISCRETE), "discrete CoT"].min() >= 2 * MARGIN
                and gained.loc[list(FOR_DISCRETE), "CoT2"].abs().max() < 4
            ),
            "both curricula on hops cost both methods 20 points or more": lambda: (
                gained.loc[list(CURRICULA)].max(axis=None) < -4 * MARGIN
            ),
            "at a rate that stays constant they cost both 10 points or more, and CoT2 less than that": lambda: (
                steady.min(axis=None) > 2 * MARGIN
                and (steady["CoT2"].to_numpy() < -gained.loc[list(CURRICULA), "CoT2"]).all()
            ),
            "on top of the last search's four a constant rate costs discrete CoT 10 points or more": lambda: (
                changed.loc["those four, constant rate", "discrete CoT"]
                < changed.loc["all four of the last search", "discrete CoT"] - 2 * MARGIN
            ),
            "five hops change neither method by 3 points": lambda: gained.loc["five hops"].abs().max() < LITTLE,
            "twice the steps serve COCONUT best of its changes, and take it between the best of the others": lambda: (
                changed["COCONUT"].idxmax() == "twice as long"
                and changed["discrete CoT"].max() < changed["COCONUT"].max() < changed["CoT2"].max()
            ),
            "COCONUT is within 5 points of chance where padding counts, and at a rate of 1e-3": lambda: (
                (changed.loc[["padding counts", "rate 1e-3"], "COCONUT"] - CHANCE).abs().max() < MARGIN
            ),
            "in the paper's grammar both methods stay within 5 points of chance": lambda: (
                (changed.loc["the paper's grammar", list(gained)] - CHANCE).abs().max() < MARGIN
            ),
            "the chosen changes are the best of those that both methods had": lambda: all(
                changed.loc[CHOSEN[key], method] == changed.dropna(subset=list(gained))[method].max()
                for key, method in (("cot2", "CoT2"), ("discrete", "discrete CoT"))
            ),
            "at the stated rate CoT2 stays within 5 points of chance": lambda: (
                abs(changed.loc["rate 1e-4", "CoT2"] - CHANCE) < MARGIN
            ),
            "dropout, smaller embeddings, fewer layers and complete walks each cost CoT2 5 points or more": lambda: (
                changed.loc[list(COSTLY), "CoT2"].max() < usual - MARGIN
            ),
            "other rates, batches, lengths, numbers of graphs and weights change it by less than 3": lambda: (
                (changed.loc[list(HARMLESS), "CoT2"] - usual).abs().max() < LITTLE
            ),
        }
    )


def more_checks(
    tested: pd.DataFrame, sized: pd.DataFrame, counted: pd.DataFrame, rewards: pd.DataFrame
) -> dict[str, bool]:
    """The claims on what names change, on other hops, published questions, votes and reward."""
    mean = lambda column, table=tested, **columns: 100 * part(table, **columns)[column].mean()
    right = lambda method, naming, test: mean("strict", method=method, naming=naming, test=test)
    profits = lambda method: right(method, "age", "ages") - right(method, "fresh", "drawn names")
    frontier = lambda test: mean("frontier_4", method="CoT2", naming="age", test=test)
    fewer = dict(method="CoT2", naming="fresh", test="3 hops")
    published = lambda column, naming, names, hops=4, method="CoT2": mean(
        column, sized, method=method, naming=naming, test=f"published, {hops} hops, {names}"
    )
    as_trained = (("fresh", "drawn names"), ("age", "ages"))
    generated = lambda method, naming, names: mean("strict", sized, method=method, naming=naming, test=names)
    by_heart = lambda naming, unseen, method="discrete CoT": (
        right(method, naming, "seen graphs") - right(method, naming, unseen)
    )
    of_task = lambda task: rewards[rewards["task"].str.startswith(task)]
    prosqa, cot2 = of_task("ProsQA"), lambda: part(of_task("ProsQA"), method="CoT2 + GRPO")
    stated = lambda task: part(of_task(task), profile="paper", method="CoT2 + GRPO")
    before = lambda: part(prosqa, method="discrete CoT + GRPO", step=prosqa["step"].min())
    started = lambda decoding: _share(before(), decoding).mean()
    return decided(
        {
            "discrete CoT profits more than CoT2 from ages as names": lambda: (
                profits("discrete CoT") > profits("CoT2")
            ),
            "CoT2 that learnt with ages follows edges under ages, and not under drawn names": lambda: (
                frontier("ages") > 90 and frontier("drawn names") < CHANCE
            ),
            "with fewer hops the target is often not likeliest of all tokens, and mostly of both options": lambda: (
                mean("pair", **fewer) - mean("strict", **fewer) > 4 * MARGIN and mean("pair", **fewer) > 90
            ),
            "CoT2 answers published questions of four hops as often as generated ones, within 5 points": lambda: all(
                abs(published("strict", naming, names) - generated("CoT2", naming, names)) < MARGIN
                for naming, names in as_trained
            ),
            "trained with ages it does so only if they keep their names": lambda: (
                abs(published("pair", "age", "drawn names") - CHANCE) < MARGIN
            ),
            "of that size, by age, discrete CoT is within 3 points of the paper's accuracy, and CoT2 above": lambda: (
                abs(generated("discrete CoT", "age", "ages") - paper_value("main-prosqa-discrete")) < LITTLE
                and generated("CoT2", "age", "ages") > paper_value("main-prosqa-cot2")
            ),
            "CoT2 is not the best of three on average with fewer and with more hops": lambda: all(
                right("CoT2", "fresh", test) < max(right(name, "fresh", test) for name in ("COCONUT", "discrete CoT"))
                for test in ("3 hops", "5 hops")
            ),
            "published questions of three hops discrete CoT answers more often than CoT2": lambda: all(
                published("strict", naming, names, 3, "discrete CoT") > published("strict", naming, names, 3)
                for naming, names in as_trained
            ),
            "discrete CoT is right more often on five hops, which it never learnt": lambda: (
                right("discrete CoT", "fresh", "5 hops") > right("discrete CoT", "fresh", "drawn names")
            ),
            "discrete CoT learns graphs by heart where names are ages or drawn once": lambda: (
                min(by_heart("age", "ages"), by_heart("once", "drawn names")) > MARGIN
            ),
            "and COCONUT and models without chain of thought where they are drawn once": lambda: (
                min(by_heart("once", "drawn names", method) for method in ("COCONUT", "no-CoT")) > MARGIN
            ),
            "on ProsQA 21 chains do not reach CoT2's one answer on average": lambda: all(map(_ahead, _each(counted))),
            "on ProntoQA they do not either by our recipe": lambda: _ahead(
                part(counted, task="ProntoQA", profile="quick")
            ),
            "and by the authors' recipe one answer of either method is no better than chance": lambda: (
                _single(part(counted, task="ProntoQA", profile="paper")).sub(CHANCE).abs().max() < MARGIN
            ),
            "base decoding of CoT2 loses by reward at the larger rate": lambda: (
                _gains(part(rewards, profile="quick", method="CoT2 + GRPO"), "base").max() < 0
            ),
            "and on ProsQA at the paper's rate too from K = 8 on, on ProntoQA by less than one point": lambda: (
                _gains(stated("ProsQA").query("k >= 8"), "base").max() < 0
                and _gains(stated("ProntoQA"), "base").abs().max() < 1
            ),
            "before reward the discrete start on ProsQA is best by discrete decoding": lambda: (
                started("discrete") > max(started("base"), before()["accuracy"].mean())
            ),
            "by discrete decoding the discrete start on ProsQA changes by less than two points": lambda: (
                _gains(part(prosqa, method="discrete CoT + GRPO"), "discrete").abs().max() < 2
            ),
            "on ProntoQA a discrete start gains less than one point by its own sampler": lambda: (
                _risen(part(of_task("ProntoQA"), method="discrete CoT + GRPO"), "accuracy").max() < 1
            ),
            "on ProsQA CoT2 loses by sampled thoughts, and reward wins some of it back on average": lambda: _wins_back(
                cot2()
            ),
        }
    )


def width_checks(rows: pd.DataFrame) -> dict[str, bool]:
    """The claims on both methods over dimensions."""

    of_task = lambda task, **columns: part(rows[rows["task"].str.startswith(task)], **columns)

    def gaps(profile: str, task: str) -> pd.DataFrame:
        """How far CoT2 is above discrete CoT at the end (points), by seed and dimension."""
        return 100 * _gap(of_task(task, profile=profile), ["seed", "d"]).unstack()

    means = lambda task: 100 * of_task(task, profile="paper").groupby(["method", "d"])["last"].mean().unstack()
    narrow = lambda: 100 * of_task("ProntoQA", profile="quick", d=24).groupby("method")["last"].median()
    return decided(
        {
            "by our recipe CoT2 is above on ProsQA at every dimension and seed": lambda: (
                gaps("quick", "ProsQA") > 0
            ).all(axis=None),
            "on ProntoQA it is above on every seed at d = 32 and 40": lambda: (
                gaps("quick", "ProntoQA")[[32, 40]] > 0
            ).all(axis=None),
            "and at d = 24 most models of both methods are within 10 points of chance": lambda: (
                (narrow() - CHANCE).abs().max() < 2 * MARGIN
            ),
            "by the authors' recipe both methods gain with d on ProsQA": lambda: (
                means("ProsQA").diff(axis=1).iloc[:, 1:] > 0
            ).all(axis=None),
            "and at d = 40 neither is above on every seed": lambda: (
                gaps("paper", "ProsQA")[40].min() < 0 < gaps("paper", "ProsQA")[40].max()
            ),
            "by the authors' recipe both stay within 5 points of chance on ProntoQA as the paper reads it": lambda: (
                (means("ProntoQA") - CHANCE).abs().max(axis=None) < MARGIN
            ),
        }
    )


def chosen_checks(best: pd.DataFrame, rows: pd.DataFrame) -> dict[str, bool]:
    """The claims on each method by its own best change (`best`), beside our recipe."""
    usual = part(rows, profile="quick", naming="fresh")
    by_heads = lambda heads: _gap(part(best, heads=heads), ["seed"])
    alone = lambda heads: 100 * part(best, heads=heads, method="CoT2")["last"]
    return decided(
        {
            "each method by its own best change, CoT2 is above on every seed": lambda: (by_heads(2) > 0).all(),
            "and by less than half of what it is by our recipe": lambda: (
                by_heads(2).mean() < _gap(usual, ["seed"]).mean() / 2
            ),
            "with four heads CoT2 is above the paper's accuracy on average": lambda: (
                alone(4).mean() > paper_value("main-prosqa-cot2")
            ),
        }
    )


def bare_checks(bare: pd.DataFrame, rows: pd.DataFrame) -> dict[str, bool]:
    """The claims on the authors' recipe without dropout and decay (`bare`), beside it with both."""
    ends = lambda table, naming, method: 100 * part(table, naming=naming, method=method).set_index("seed")["last"]
    below = lambda naming, method: paper_value(f"main-prosqa-{PRINTED[method]}") - ends(bare, naming, method).mean()
    gains = lambda naming: min(
        (ends(bare, naming, method) - ends(part(rows, profile="paper"), naming, method)).min()
        for method in ("CoT2", "discrete CoT")
    )
    return decided(
        {
            "without dropout and decay both methods gain 10 points or more on every seed (names: age)": lambda: (
                gains("age") >= 2 * MARGIN
            ),
            "discrete CoT is then above the paper's accuracy on average, and CoT2 10 points or more below": lambda: (
                below("age", "discrete CoT") < 0 and below("age", "CoT2") > 2 * MARGIN
            ),
            "they gain 5 points or more on every seed with fresh names too, and stay 20 below the paper": lambda: (
                gains("fresh") >= MARGIN
                and min(below("fresh", method) for method in ("CoT2", "discrete CoT")) > 4 * MARGIN
            ),
        }
    )


def _gap(rows: pd.DataFrame, by: list[str]) -> pd.Series:
    """How far CoT2 is above discrete CoT at the end, as a share."""
    last = rows.pivot_table("last", by, "method")
    return last["CoT2"] - last["discrete CoT"]


def _each(counted: pd.DataFrame) -> list[pd.DataFrame]:
    """Votes of each recipe on ProsQA."""
    return [runs for _, runs in part(counted, task="ProsQA").groupby("profile")]


def _single(runs: pd.DataFrame) -> pd.Series:
    """Mean share (%) of right greedy answers by method."""
    return part(runs, temperature=0.0, k=1).groupby("method")["pass_at_k"].mean()


def _ahead(runs: pd.DataFrame) -> bool:
    """Whether one greedy answer of CoT2 is right more often than the majority of most chains, at every temperature."""
    single = part(runs, method="CoT2", temperature=0.0, k=1)["pass_at_k"].mean()
    most = part(runs, method="discrete CoT", k=runs["k"].max())
    return bool((most.groupby("temperature")["maj_at_k"].mean() < single).all())


def _gains(points: pd.DataFrame, decoding: str) -> pd.Series:
    """What a decoding gains (points) from before training to after it, in each setting on average."""
    return _risen(points.assign(share=_share(points, decoding)), "share")


def _risen(points: pd.DataFrame, column: str) -> pd.Series:
    """By how many points a share is higher at the last evaluation than at the first, in each setting on average."""
    settings = ["profile", "task", "k"]
    by_run = points.sort_values("step").groupby([*settings, "seed"])[column]
    return 100 * (by_run.last() - by_run.first()).groupby(settings).mean()


def _share(points: pd.DataFrame, decoding: str) -> pd.Series:
    """Share of inputs that a decoding answers."""
    return policies.decoded(points, points["inputs_a"] + points["inputs_b"])[decoding]


def _wins_back(points: pd.DataFrame) -> bool:
    """Whether own sampling is below base decoding before training and higher after it, in each setting on average."""
    ordered = points.sort_values("step").groupby(["profile", "k", "seed"])
    first = ordered.first()
    lost = (_share(first, "base") - first["accuracy"]).groupby(["profile", "k"]).mean()
    return bool((lost > 0).all() and (_risen(points, "accuracy") > 0).all())
