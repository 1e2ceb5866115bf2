"""What the chapter `search` claims of the shipped records."""

import pandas as pd

from cot2lib.study.analysis import policies
from cot2lib.study.analysis.distractors import LEAVES
from cot2lib.study.analysis.shortcuts import BOTH, MOVED, NEITHER
from cot2lib.study.checks.claims import decided, part
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.searches import CHOSEN
from cot2lib.tasks.prontoqa import READINGS, TWINS

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


def checks(rows: pd.DataFrame, tested: pd.DataFrame, guessed: pd.DataFrame, trained: pd.DataFrame) -> dict[str, bool]:
    """The claims on methods and namings, on what can be guessed, and on the live training."""
    shares = lambda **columns: part(rows, profile="quick", **columns).set_index("seed")["last"]
    stated = lambda naming: 100 * part(rows, profile="paper", naming=naming).groupby("method")["last"].mean()
    mean = lambda test: 100 * part(tested, test=test, method="CoT2", naming="fresh")["strict"].mean()
    pairs = lambda test: 100 * part(tested, test=test, method="CoT2", naming="age")["pair"].mean()
    depth = lambda test: 100 * part(tested, test=test, method="CoT2", naming="fresh")["pair"].mean()
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
                abs(depth("target deeper") - depth("as deep")) < MARGIN
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
    by_method = lambda: 100 * signs().groupby("method")["last"].mean()
    by_width = lambda: part(wide, names=19, heads=2, method="CoT2").groupby("d_model")["last"].mean()
    narrow = lambda: wide[wide["d_model"].isin((24, 32)) & (wide["method"] == "CoT2")]
    by_heads = lambda: narrow().pivot_table("last", ["names", "d_model"], "heads")
    large = part(wide, names=28, d_model=64, heads=2, method="CoT2")
    changed = choices.set_index("changed")
    usual = changed.loc["usual", "CoT2"]
    gained = changed[["CoT2", "discrete CoT"]] - changed.loc["usual", ["CoT2", "discrete CoT"]]
    rule = shortcuts["sign"].iloc[0]  # what the question alone says
    return decided(
        {
            "CoT2 of 28 names and d = 64 is above 97 % on average": lambda: large["last"].mean() > 0.97,
            "on 19 names accuracy rises with d up to 32, and is above 97 % from there on (two heads)": lambda: (
                by_width().loc[:32].is_monotonic_increasing and by_width().loc[32:].min() > 0.97
            ),
            "at d = 24 and 32 four heads do worse than one and two, whatever the names": lambda: (
                by_heads()[4] < by_heads()[[1, 2]].min(axis=1)
            ).all(),
            "28 names at d = 32 are below 80 % with any number of heads": lambda: (
                100 * part(wide, names=28, d_model=32, method="CoT2")["last"].max() < 80
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
            "at a rate that stays constant they cost both 10 points or more, and less than that": lambda: (
                (changed.loc["constant rate"] - changed.loc[list(STEADY)])[list(gained)].min(axis=None) > 2 * MARGIN
                and (
                    changed.loc[list(STEADY), list(gained)].to_numpy() > changed.loc[list(CURRICULA), list(gained)]
                ).all(axis=None)
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
    published = lambda column, naming, names, method="CoT2": mean(
        column, sized, method=method, naming=naming, test=f"published, 4 hops, {names}"
    )
    generated = lambda method, naming, names: mean("strict", sized, method=method, naming=naming, test=names)
    by_heart = lambda naming, unseen: (
        right("discrete CoT", naming, "seen graphs") - right("discrete CoT", naming, unseen)
    )
    of_task = lambda task: rewards[rewards["task"].str.startswith(task)]
    prosqa, cot2 = of_task("ProsQA"), lambda: part(of_task("ProsQA"), method="CoT2 + GRPO")
    stated = lambda task: part(of_task(task), profile="paper", method="CoT2 + GRPO")
    return decided(
        {
            "discrete CoT profits more than CoT2 from ages as names": lambda: (
                profits("discrete CoT") > profits("CoT2")
            ),
            "CoT2 that learnt with ages follows edges under ages, and not under drawn names": lambda: (
                frontier("ages") > 90 and frontier("drawn names") < CHANCE
            ),
            "with fewer hops the target is seldom likeliest of all tokens, and mostly of both options": lambda: (
                mean("pair", **fewer) - mean("strict", **fewer) > 4 * MARGIN and mean("pair", **fewer) > 90
            ),
            "CoT2 answers published questions of four hops nearly as often as generated ones": lambda: all(
                abs(published("strict", naming, names) - generated("CoT2", naming, names)) < MARGIN
                for naming, names in (("fresh", "drawn names"), ("age", "ages"))
            ),
            "trained with ages it does so only if they keep their names": lambda: (
                abs(published("pair", "age", "drawn names") - CHANCE) < MARGIN
            ),
            "of that size, by age, discrete CoT is within 3 points of the paper's accuracy, and CoT2 above": lambda: (
                abs(generated("discrete CoT", "age", "ages") - paper_value("main-prosqa-discrete")) < LITTLE
                and generated("CoT2", "age", "ages") > paper_value("main-prosqa-cot2")
            ),
            "discrete CoT is right more often on five hops, which it never learnt": lambda: (
                right("discrete CoT", "fresh", "5 hops") > right("discrete CoT", "fresh", "drawn names")
            ),
            "discrete CoT learns graphs by heart where names are ages or drawn once": lambda: (
                min(by_heart("age", "ages"), by_heart("once", "drawn names")) > MARGIN
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
            "by discrete decoding the discrete start on ProsQA changes by less than two points": lambda: (
                _gains(part(prosqa, method="discrete CoT + GRPO"), "discrete").abs().max() < 2
            ),
            "CoT2 loses by sampled thoughts, and reward wins some of it back on average": lambda: _wins_back(cot2()),
        }
    )


def width_checks(rows: pd.DataFrame) -> dict[str, bool]:
    """The claims on both methods over dimensions."""

    def gaps(profile: str, task: str) -> pd.DataFrame:
        """How far CoT2 is above discrete CoT at the end (points), by seed and dimension."""
        cell = part(rows[rows["task"].str.startswith(task)], profile=profile)
        return 100 * _gap(cell, ["seed", "d"]).unstack()

    stated = lambda task: part(rows[rows["task"].str.startswith(task)], profile="paper")
    means = lambda task: 100 * stated(task).groupby(["method", "d"])["last"].mean().unstack()
    return decided(
        {
            "by our recipe CoT2 is above on ProsQA at every dimension and seed": lambda: (
                gaps("quick", "ProsQA") > 0
            ).all(axis=None),
            "on ProntoQA it is above on average at d = 32 and 40, and below at d = 24": lambda: (
                gaps("quick", "ProntoQA").mean().loc[[32, 40]].min() > 0 > gaps("quick", "ProntoQA").mean()[24]
            ),
            "by the authors' recipe both methods gain with d on ProsQA": lambda: (
                means("ProsQA").diff(axis=1).iloc[:, 1:] > 0
            ).all(axis=None),
            "and at d = 40 neither is above on every seed": lambda: (
                gaps("paper", "ProsQA")[40].min() < 0 < gaps("paper", "ProsQA")[40].max()
            ),
            "by the authors' recipe both methods stay within 5 points of chance on ProntoQA": lambda: (
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


def reached_checks(tested: pd.DataFrame) -> dict[str, bool]:
    """The claims on what models answer, and think, on ProntoQA as the paper reads it, and on its control."""
    mean = lambda column, **columns: 100 * part(tested, reading=READINGS[0], **columns)[column].mean()
    right = lambda d, method, test: mean("strict", d=d, method=method, test=test)
    by_heart = lambda d, method: right(d, method, "seen graphs") - right(d, method, "drawn names")
    on_frontier = lambda d: mean("frontier_6", d=d, method="CoT2", test="drawn names")
    coconut = lambda: part(tested, reading=READINGS[0], method="COCONUT", test="drawn names")
    searching = lambda: 100 * coconut()[["strict", "frontier_6"]]
    means = lambda: 100 * part(tested, reading=READINGS[0]).groupby(["method", "d", "test"])["strict"].mean().unstack()
    moved = lambda: means()[list(MOVED)].sub(means()["drawn names"], axis=0)
    wide = lambda: moved().loc[["CoT2", "discrete CoT"]].query("d > 24")
    alike = lambda: 100 * part(tested, reading=TWINS, test="drawn names").groupby("method")["strict"].mean()
    return decided(
        {
            "on ProntoQA discrete CoT learns questions by heart": lambda: (
                min(by_heart(d, "discrete CoT") for d in (32, 40)) > 3 * MARGIN
            ),
            "and CoT2 does not": lambda: max(by_heart(d, "CoT2") for d in (24, 32, 40)) < MARGIN,
            "there CoT2 is right about as often as its last thought lies on the frontier, from d = 32 on": lambda: (
                max(abs(on_frontier(d) - right(d, "CoT2", "drawn names")) for d in (32, 40)) < MARGIN
            ),
            "COCONUT leaves chance there if, and only if, most of its last thought lies on the frontier": lambda: (
                (searching()["strict"] > CHANCE + MARGIN) == (searching()["frontier_6"] > CHANCE)
            ).all(),
            "no mean changes by 4 points or more where rules without a search are blocked": lambda: (
                moved().drop(columns=NEITHER).abs().max(axis=None) < 4
            ),
            "another moved edge costs CoT2 and discrete CoT more than both rules, at d = 32 and 40": lambda: (
                wide()[NEITHER] < wide()[BOTH]
            ).all(),
            "models with thoughts answer 95 % or more of the control, others are within 5 points of chance": lambda: (
                alike()[["CoT2", "discrete CoT"]].min() >= 95 and abs(alike()["no-CoT"] - CHANCE) < MARGIN
            ),
        }
    )


def thought_checks(tested: pd.DataFrame) -> dict[str, bool]:
    """The claims on COCONUT's thoughts, and on what wider frontiers cost each method; fresh names in training."""
    usual = lambda method: part(tested, naming="fresh", method=method, test="drawn names").set_index("seed")
    kept = lambda: 100 * usual("COCONUT").filter(regex="^frontier_[1-4]$").min(axis=1).sort_values()  # (run,)
    right = lambda test: 100 * part(tested, naming="fresh", test=test).groupby("method")["strict"].mean()
    lost = lambda where: right("few nodes") - right(f"few nodes, {LEAVES} leaves {where}")
    ends = lambda naming: 100 * part(tested, naming=naming, test="drawn names").groupby("method")["strict"].mean()
    return decided(
        {
            "COCONUT is between CoT2 and discrete CoT where names are drawn": lambda: all(
                ends(naming)["CoT2"] > ends(naming)["COCONUT"] > ends(naming)["discrete CoT"] for naming in DRAWN
            ),
            "most of its first thought lies on the frontier on every seed, though no target says so": lambda: (
                100 * usual("COCONUT")["frontier_1"].min() > CHANCE
            ),
            "one model of it keeps 90 % of every thought there, and each other less than 55 % of one": lambda: (
                kept().iloc[-1] > 90 and kept().iloc[:-1].max() < 55
            ),
            "its last thought lies on the target more than CoT2's": lambda: (
                usual("COCONUT")["in_time_4"].min() > usual("CoT2")["in_time_4"].max()
            ),
            "leaves elsewhere change no method by three points": lambda: lost("elsewhere").abs().max() < LITTLE,
            "leaves on the way cost CoT2 less than 4 points, and discrete CoT more than 30": lambda: (
                lost("on the way")["CoT2"] < 4 and lost("on the way")["discrete CoT"] > 30
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
    ordered = points.assign(share=_share(points, decoding)).sort_values("step")
    by_run = ordered.groupby(["profile", "task", "k", "seed"])["share"]
    return 100 * (by_run.last() - by_run.first()).groupby(["profile", "task", "k"]).mean()


def _share(points: pd.DataFrame, decoding: str) -> pd.Series:
    """Share of inputs that a decoding answers."""
    return policies.decoded(points, points["inputs_a"] + points["inputs_b"])[decoding]


def _wins_back(points: pd.DataFrame) -> bool:
    """Whether own sampling is below base decoding before training and higher after it, in each setting on average."""
    ordered = points.sort_values("step").groupby(["profile", "k", "seed"])
    first, last = ordered.first(), ordered.last()
    base, settings = _share(first, "base"), ["profile", "k"]
    lost = (base - first["accuracy"]).groupby(settings).mean()
    won = (last["accuracy"] - first["accuracy"]).groupby(settings).mean()
    return bool((lost > 0).all() and (won > 0).all())
