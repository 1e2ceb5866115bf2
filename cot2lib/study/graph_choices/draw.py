"""Figures and tables of the appendix `graph_choices`."""

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns

from cot2lib import runs
from cot2lib.specs import RunSpec
from cot2lib.study import frame, look, series, show
from cot2lib.study.graph_runs import CHOICES, CHOSEN
from cot2lib.study.graph_tests import UNSEEN
from cot2lib.study.graphs import CLAIMED, described
from cot2lib.study.samples import hours

PASSED = 60.0  # an accuracy (%) above a coin's
THOUSAND = 1000
GROUPS = tuple(dict.fromkeys(choice.about for choice in CHOICES.values()))


def chosen_rows(asked: Mapping[str, Sequence[RunSpec]], again: bool = False) -> pd.DataFrame:
    """Tidy rows of recorded runs by choice: columns `choice`, `about`, `words`, and `passed`, the thousands of graphs
    that a run had seen, each visit counted, when it was right on more than `PASSED`.

    With `again` they are read from the local store.
    """
    specs = {run: choice for choice, part in asked.items() for run in part}
    rows = described(frame.tidy(runs.recorded([*specs], again)), [*specs])
    made = rows["id"].map({run.id: choice for run, choice in specs.items()})
    known = set(rows["id"])
    curves = frame.tidy(runs.curves([run for run in specs if run.id in known], again))
    first = curves[curves["accuracy"] > PASSED].groupby("id")["step"].min()
    passed = rows["id"].map(first) * rows["batch"] / THOUSAND
    about = frame.ordered(made.map(lambda choice: CHOICES[choice].about), GROUPS)
    choice = frame.ordered(made, tuple(CHOICES))
    return rows.assign(choice=choice, about=about, words=made.map(lambda choice: CHOICES[choice].words), passed=passed)


def choices(rows: pd.DataFrame, finding: str = "") -> look.Shown:
    """Accuracy at the end by what was chosen, a panel for each kind of choice; lines are our recipe as it is."""
    usual, others = rows[rows["choice"] == "usual"], rows[rows["choice"] != "usual"]
    data, apart = series.told_apart(others.assign(about=others["about"].cat.remove_unused_categories()), "method")
    heights = data.groupby("about", observed=True)["words"].nunique().tolist()
    options = dict(x="last", y="words", hue="series", style="series", s=45)
    options |= {name: apart[name] for name in ("palette", "hue_order", "markers")}
    with look.plt.rc_context(look.SETTINGS):
        grid = sns.FacetGrid(
            data,
            row="about",
            sharey=False,
            height=1.35,
            aspect=4.6,
            despine=False,
            gridspec_kws={"height_ratios": heights},
        )
        grid.map_dataframe(sns.scatterplot, **options)
        grid.set_titles("")
        for (place, _, _), part in grid.facet_data():
            axis = grid.facet_axis(place, 0)
            for method, last in usual[["method", "last"]].itertuples(index=False):
                axis.axvline(last, color=apart["palette"][method], linewidth=1, alpha=0.6, zorder=0)
            axis.set_title(part["about"].iloc[0], fontsize=9.5, loc="left")
            axis.set_ylim(part["words"].nunique() - 0.5, -0.5)
        grid.set(xlim=(0, 102)).set_axis_labels("validation accuracy (%)", "")
        look.legend(grid.figure, apart, lines=False)
        look.finished(grid.figure)
    return look.Shown(grid.figure, rows[["about", "words", "method", "seed", "last"]], finding)


def choices_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy (%) at the end, and in brackets the thousands of graphs seen until `PASSED`, by choice."""
    told = rows.assign(cell=[_told(last, passed) for last, passed in zip(rows["last"], rows["passed"])])
    table = told.pivot(index=["about", "choice"], columns="method", values="cell").fillna("").reset_index()
    return table.assign(choice=[CHOICES[choice].words for choice in table["choice"]])


def _told(last: float, passed: float) -> str:
    return f"{last:.1f}" + ("" if pd.isna(passed) else f" ({passed:.0f})")


def best_table(rows: pd.DataFrame, tested: pd.DataFrame) -> pd.DataFrame:
    """Each method by the choice that served it best: accuracies (%) on validation graphs, and on unseen test graphs.

    Args:
        rows: of the runs.
        tested: what they answer.
    """
    unseen = tested[tested["test"] == UNSEEN].set_index("id")
    rows = rows.assign(chosen=[_words(CHOSEN[CLAIMED[method]]) for method in rows["method"]])
    rows = rows.assign(**{f"test, {name}": rows["id"].map(unseen[name]) for name in ("strict", "pair")})
    rows = rows.assign(examples=(rows["steps"] * rows["batch"]).floordiv(THOUSAND)).rename(
        columns={"last": "validation"}
    )
    by = ["heads", "method", "chosen", "examples"]
    table = show.groups(rows, by)[["validation", "test, strict", "test, pair"]].agg(show.counted)
    return table.reset_index().rename(columns={"examples": "examples (thousands)"})


def _words(choice: str) -> str:
    return f"{CHOICES[choice].about}: {CHOICES[choice].words}"


def shapes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with `shape`, the method and its heads in words."""
    return rows.assign(shape=rows["method"].astype(str) + rows["heads"].map(lambda n: f", {n} head{'s' * (n > 1)}"))


def costs_table(rows: pd.DataFrame, tested: pd.DataFrame) -> pd.DataFrame:
    """Core-minutes of a run (mean) and accuracies (%), strict on `tested` graphs, by names, dimension and method."""
    unseen = tested[tested["test"] == UNSEEN].set_index("id")["strict"]
    rows = rows.assign(test=rows["id"].map(unseen), minutes=60 * hours(rows))
    found = show.groups(rows, ["names", "d_model", "method"])
    told = {"last": "validation", "test": "test"}
    return show.headed(found[["minutes"]].mean().join(found[[*told]].agg(show.counted).rename(columns=told)))
