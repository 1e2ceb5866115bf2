"""Tables and measured sentences of the chapter `search`."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from cot2lib.specs import GRPOSpec, RunSpec
from cot2lib.study.analysis import policies
from cot2lib.study.analysis.shortcuts import MOVED
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures.curves import unique
from cot2lib.study.figures.search.drawn import CLAIMED, NAMING, READING, paper_accuracy
from cot2lib.study.figures.style import METHOD
from cot2lib.study.figures.words import describe_mean, gain, mean_of, versus
from cot2lib.study.report import PERCENT, recipe
from cot2lib.study.searches import CHOSEN, TASKS
from cot2lib.tasks import ProsQA
from cot2lib.tasks.prontoqa import HOPS, READINGS

SECONDS_A_MINUTE = 60
PASSED = 0.6  # a share above a coin's
SHARES = ("strict", "pair")
SIDES = ("CoT2", "discrete CoT")
ENDS = {"CoT2 above by, at the end": "last", "on average over training": "curve_mean"}
DEPTHS = ("target deeper", "as deep", "other deeper")
TESTED = ("drawn names", "ages", "seen graphs", "seen graphs, new names")


def run_name(run: RunSpec) -> str:
    """What sentences call a run of this chapter, whatever its seed."""
    name = NAMING[run.task.naming] if isinstance(run.task, ProsQA) else run.task.name
    return f"{name}, d = {run.model.d_model}: {run.method}"


def reward_name(run: GRPOSpec) -> str:
    """What sentences call a run of policy gradients, whatever its seed."""
    return f"{run.task.name.partition(',')[0]}, {run.method}, K = {run.thought.k}"


def described(rows: pd.DataFrame, specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Rows with an `id` and what they say of their run: names, dimension, naming and reading."""
    known = pd.DataFrame(
        [
            {
                "id": spec.id,
                "names": spec.task.names,
                "d": spec.model.d_model,
                "naming": spec.task.naming,
                "reading": getattr(spec.task, "reading", ""),
            }
            for spec in dict.fromkeys(specs)
        ]
    )
    return rows.merge(known, on="id")


def methods_table(rows: pd.DataFrame, task: str, by: str) -> pd.DataFrame:
    """Last-epoch accuracies (%): a row for each method and value of `by`, the paper's, and ours for each recipe."""
    table = []
    for value in unique(rows[by]):
        for method in METHOD.looks(rows["method"]):
            entry = {by: (NAMING | READING)[value], "method": method, "paper": paper_accuracy(task, method)}
            cell = rows[(rows[by] == value) & (rows["method"] == method)]
            for profile in unique(rows["profile"]):
                entry[f"ours, {recipe(profile)}"] = describe_mean(cell.loc[cell["profile"] == profile, "last"])
            if len(cell):
                table.append(entry)
    return pd.DataFrame(table)


def dimensions_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracies (%) of both methods at the end, a row for each task, dimension and recipe.

    Beside them is by how many points CoT2 is above, at the end and on average over training.
    """
    table = []
    for (task, d, profile), cell in rows.groupby(["task", "d", "profile"], sort=False):
        sides = [cell[cell["method"] == method].set_index("seed") for method in SIDES]
        over = {name: gain(sides[0][column], sides[1][column]) for name, column in ENDS.items()}
        shares = {method: describe_mean(side["last"]) for method, side in zip(SIDES, sides)}
        entry = {"task": task.partition(",")[0], "d": int(d), "recipe": recipe(profile), **shares, **over}
        table.append(entry)
    return pd.DataFrame(table).sort_values(["task", "d"], kind="stable", key=_in_order)


def naming_table(tested: pd.DataFrame) -> pd.DataFrame:
    """Accuracies (%) of models by how their graphs were named in training, on each kind of test graphs."""
    return _by_naming(tested, "trained on", TESTED, "strict")


def depths_table(tested: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of pairs (%) by which option is farther from its nearest source: a row for each method and naming."""
    return _by_naming(tested, "names", DEPTHS, "pair")


def counted(tested: pd.DataFrame) -> str:
    """How many graphs each test by depth has, in the order of the table's columns."""
    sizes = tested.drop_duplicates("test").set_index("test")["inputs"]
    first, *others = (str(int(sizes[test])) for test in DEPTHS if test in sizes)
    return " and ".join([", ".join([first, *others[:-1]]), *others[-1:]])


def _by_naming(tested: pd.DataFrame, heading: str, tests: Sequence[str], measure: str) -> pd.DataFrame:
    """A row for each method and way of naming in training, a column for each test."""
    table = []
    for method in METHOD.looks(tested["method"]):
        for naming in NAMING:
            cell = tested[(tested["method"] == method) & (tested["naming"] == naming)]
            if len(cell):
                table.append({"method": method, heading: NAMING[naming], **_shares(cell, tests, measure)})
    return pd.DataFrame(table)


def far_table(tested: pd.DataFrame) -> pd.DataFrame:
    """Accuracies (%), strict and of pairs, on graphs unlike those of training."""
    table = []
    for test in unique(tested["test"]):
        for method in METHOD.looks(tested["method"]):
            cell = tested[(tested["test"] == test) & (tested["method"] == method)]
            if len(cell):
                shares = {name: describe_mean(cell[name]) for name in SHARES}
                table.append({"graphs": test, "method": method, **shares})
    return pd.DataFrame(table)


def reached_table(tested: pd.DataFrame) -> pd.DataFrame:
    """Strict accuracies (%) on ProntoQA by reading, dimension and method, and the last thought's share (%)
    on its frontier."""
    table = []
    for asked, cell in _by_asked(tested):
        shares = _shares(cell, (TESTED[0], *TESTED[2:]))
        last = describe_mean(cell.loc[cell["test"] == TESTED[0], f"frontier_{HOPS}"].dropna())
        table.append(asked | shares | {"thought on its frontier": last})
    return pd.DataFrame(table)


def blocked_table(tested: pd.DataFrame) -> pd.DataFrame:
    """Strict accuracies (%) on unseen questions of ProntoQA, as they are and where rules without a search are blocked,
    by dimension and method."""
    reachable = tested[tested["reading"] == READINGS[0]]
    table = pd.DataFrame([asked | _shares(cell, (TESTED[0], *MOVED)) for asked, cell in _by_asked(reachable)])
    return table.drop(columns="asked").rename(columns={TESTED[0]: "as in training"})


def _by_asked(tested: pd.DataFrame) -> Iterator[tuple[dict, pd.DataFrame]]:
    """Rows of each reading, dimension and method, in order."""
    keys, places = ["reading", "d", "method"], {name: place for place, name in enumerate((*READING, *METHOD.known))}
    in_order = lambda column: column if column.name == "d" else column.map(places)
    for (reading, d, method), cell in tested.sort_values(keys, kind="stable", key=in_order).groupby(keys, sort=False):
        yield {"asked": READING[reading], "d": int(d), "method": method}, cell


def _shares(cell: pd.DataFrame, tests: Sequence[str], measure: str = "strict") -> dict[str, str]:
    """A mean (%) for each test."""
    return {test: describe_mean(cell.loc[cell["test"] == test, measure]) for test in tests}


def published_table(tested: pd.DataFrame) -> pd.DataFrame:
    """Accuracies (%) on the published questions and on generated graphs: a row for each number of hops, naming of the
    questions and method, a column for each measure and naming of the training graphs."""
    table = []
    for (asked, names, method), cell in _questions(tested).groupby(["asked", "names", "method"], sort=False):
        shares = {
            f"{NAMING[naming]}, {name}": describe_mean(cell.loc[cell["naming"] == naming, name])
            for naming in unique(tested["naming"])
            for name in SHARES
        }
        table.append({"questions": asked, "asked with": names, "method": method} | shares)
    return pd.DataFrame(table)


def _questions(tested: pd.DataFrame) -> pd.DataFrame:
    """Rows of published questions by hops, of all, and of generated graphs; `asked` says which and how many."""
    by_hops = tested[tested["test"].str.startswith("published")].sort_values("test", kind="stable")
    parts = by_hops["test"].str.split(", ")
    by_hops = by_hops.assign(asked=parts.str[1], names=parts.str[2])
    run = ["names", "method", "naming", "seed"]
    weighed = by_hops.assign(**{name: by_hops[name] * by_hops["inputs"] for name in SHARES})
    whole = weighed.groupby(run, sort=False)[["inputs", *SHARES]].sum().reset_index()
    whole = whole.assign(asked="all", **{name: whole[name] / whole["inputs"] for name in SHARES})
    generated = tested[tested["test"].isin(TESTED[:2])].assign(asked="generated")
    generated = generated.assign(names=generated["test"])
    rows = pd.concat([by_hops, whole, generated], ignore_index=True)
    return rows.assign(asked=rows["asked"] + " (" + rows["inputs"].astype(int).astype(str) + ")")


def findings(rows: pd.DataFrame) -> list[str]:
    """A sentence for each recipe and way of naming: how far CoT2 is from discrete CoT."""
    sentences = []
    for profile in unique(rows["profile"]):
        for naming in NAMING:
            cell = rows[(rows["profile"] == profile) & (rows["naming"] == naming)]
            sides = [cell[cell["method"] == method].set_index("seed")["last"] for method in SIDES]
            if gap := versus(*sides, "{} points above", "{} points below"):
                sentences.append(f"CoT2 is {gap} discrete chain of thought ({NAMING[naming]}, {recipe(profile)}).")
    return sentences


def bare_findings(rows: pd.DataFrame, bare: pd.DataFrame) -> list[str]:
    """A sentence for each way of naming and method: how far it is from the authors' recipe without dropout and decay
    (`bare`)."""
    stated, sentences = rows[rows["profile"] == "paper"], []
    for naming in NAMING:
        for method in () if bare.empty else SIDES:
            cells = (part[(part["method"] == method) & (part["naming"] == naming)] for part in (bare, stated))
            without, usual = (cell.set_index("seed")["last"] for cell in cells)
            if gap := versus(without, usual, "{} points higher", "{} points lower"):
                ends = mean_of(PERCENT * without)
                what = f"({NAMING[naming]}, authors' recipe)"
                sentences.append(f"Without dropout and decay {method} ends at {ends} %, {gap} {what}.")
    return sentences


def choices_table(found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each thing changed (curves by change): accuracy (%) at the end, and how many thousand graphs were seen
    when it passed `PASSED`."""
    table = []
    for change, curves in found.items():
        entry: dict[str, object] = {"changed": change}
        for method, curve in curves.groupby("method", sort=False):
            passed = curve.loc[curve["accuracy"] > PASSED, "seen"]
            entry[method] = PERCENT * curve["accuracy"].iloc[-1]
            entry[f"{method}, graphs"] = passed.min() / 1000
        table.append(entry)
    return pd.DataFrame(table)


def chosen_table(rows: pd.DataFrame, tested: pd.DataFrame) -> pd.DataFrame:
    """Each method by the change chosen for it: accuracies (%) on validation graphs, and on test graphs, names drawn.

    Args:
        rows: of the runs.
        tested: `cot2lib.study.analysis.searched` of them.
    """
    table, unseen = [], tested[tested["test"] == TESTED[0]]
    for (heads, method), ours in rows.groupby(["heads", "method"]):
        test = unseen[unseen["id"].isin(ours["id"])]
        seen = int((ours["steps"] * ours["batch"]).mean()) // 1000
        shares = {f"test, {name}": describe_mean(test[name]) for name in SHARES}
        entry = {"heads": heads, "method": method, "changed": CHOSEN[CLAIMED[method]], "examples (thousands)": seen}
        table.append(entry | {"validation": describe_mean(ours["last"])} | shares)
    return pd.DataFrame(table)


def costs_table(rows: pd.DataFrame, tested: pd.DataFrame) -> pd.DataFrame:
    """What training took, and what it gave: a row for each number of names, dimension, heads and method.

    Core-minutes are means over seeds; examples are visits of a graph, in thousands. Accuracies (%) are those of
    validation, and strict ones on test graphs with drawn names (`tested`, of the same runs).
    """
    unseen = tested[tested["test"] == TESTED[0]].set_index("id")["strict"]
    sizes = ["names", "d_model", "heads", "method", "train_inputs", "steps", "batch"]
    table = []
    for (names, d, heads, method, graphs, steps, batch), cell in rows.groupby(sizes, sort=True):
        minutes = (cell["seconds"] * cell["threads"]).mean() / SECONDS_A_MINUTE
        table.append(
            {
                "names": names,
                "d": d,
                "heads": heads,
                "method": method,
                "graphs": graphs,
                "examples (thousands)": steps * batch // 1000,
                "core-minutes": minutes,
                "validation": describe_mean(cell["last"]),
                "test": describe_mean(unseen[unseen.index.isin(cell["id"])]),
            }
        )
    return pd.DataFrame(table)


def rewards_table(curves: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) before and after policy gradients: a row for each task, start, K and recipe, the paper's and ours.

    Gains are of the last evaluation over the one before training, paired by seed; the paper prints the best epoch.

    Args:
        curves: of the runs, evaluated before their first step too, with a column `profile`.
    """
    table = []
    tasks = curves["task"].str.partition(",")[0]
    for (task, method, k, profile), points in curves.groupby([tasks, "method", "k", "profile"], sort=False):
        claim = f"grpo-{task.lower()}-{CLAIMED[method.removesuffix(' + GRPO')]}"
        held_out = points["inputs_a"] + points["inputs_b"]
        points = points.assign(**policies.decoded(points, held_out)).sort_values("step")
        first, last = (getattr(points.groupby("seed"), end)() for end in ("first", "last"))
        best = points.groupby("seed")["accuracy"].max()
        table.append(
            {
                "task": task,
                "start": method.removesuffix(" + GRPO"),
                "K": int(k),
                "recipe": recipe(profile),
                "paper before": paper_value(f"{claim}-sft"),
                "paper after": paper_value(f"{claim}-k{int(k)}"),
                "own, before": describe_mean(first["accuracy"]),
                "own, best": describe_mean(best),
                "own, gain": gain(last["accuracy"], first["accuracy"]),
                **{
                    f"{name}, {when}": describe_mean(at[name])
                    for name in policies.DECODERS[1:]
                    for when, at in (("before", first), ("after", last))
                },
            }
        )
    return pd.DataFrame(table).sort_values(["task", "start", "K"], kind="stable", key=_in_order)


def _in_order(column: pd.Series) -> pd.Series:
    """ProsQA comes before ProntoQA."""
    return column.map(TASKS.index) if column.name == "task" else column


def naming_findings(tested: pd.DataFrame) -> list[str]:
    """A sentence for CoT2, for discrete CoT and each way of naming: right answers on unseen graphs with ages, and with
    drawn names."""
    sentences = []
    for method in SIDES:
        for naming in NAMING:
            cell = tested[(tested["method"] == method) & (tested["naming"] == naming)]
            shares = {(t, name): cell.loc[cell["test"] == t, name] for t in TESTED[:2] for name in SHARES}
            if all(map(len, shares.values())):
                said = {key: mean_of(PERCENT * share) for key, share in shares.items()}
                drawn, ages = ({name: said[test, name] for name in SHARES} for test in TESTED[:2])
                sentences.append(
                    f"Trained on {NAMING[naming]}, {method} is right on {ages['strict']} % of unseen graphs whose "
                    f"names are ages, and on {drawn['strict']} % of those with drawn names; of pairs on "
                    f"{ages['pair']} % and {drawn['pair']} %."
                )
    return sentences
