"""Tables and sentences from tidy frames: one cell for each group of runs, one gap for each pair of groups.

Groups follow the order of their categories; a group without runs has no row, and in a column an empty cell.
"""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from cot2lib.metrics import Interval, mean_interval, paired_interval
from cot2lib.study.frame import NAMES, called
from cot2lib.study.printed import Paper, number_at
from cot2lib.study.report import PERCENT, describe

HEADS = {"d_model": "d", "k": "K", "tries": "k", "temperature": "T", "gamma": "scale"}
HEADS |= {"origin": "start", "started": "start"}  # the model that reward trains further
PLAIN = {"d_model", "k", "temperature"}  # whose heading says what their values are
ABOVE, ADDS = ("{} points above", "{} points below"), ("adds {} points", "costs {} points")


def groups(rows: pd.DataFrame, by: str | Sequence[str]):
    """The groups of a frame that have runs, in the order of their categories."""
    return rows.groupby([by] if isinstance(by, str) else list(by), observed=True, sort=True)


def mean_of(values: pd.Series, low: float = 0.0, high: float = PERCENT, digits: int = 1) -> str:
    """Mean with its 95 % t-interval, cut to a range."""
    return shown(mean_interval(values, low, high), digits)


def counted(values: pd.Series) -> str:
    """`mean_of` and the number of runs."""
    return f"{mean_of(values)}, n={len(values)}"


def cells(
    rows: pd.DataFrame,
    index: Sequence[str],
    columns: str = "recipe",
    value: str = "last",
    told: Callable[[pd.Series], object] = counted,
    paper: Paper | None = None,
) -> pd.DataFrame:
    """A table of groups of runs: a row for each `index`, a column for each value of `columns`.

    A cell says what `told` makes of the `value` of its runs. With `paper` a column has the paper's number of a row, by
    its index, and ours are called so.
    """
    table = groups(rows, [*index, columns])[value].agg(told).unstack(columns)
    table.columns = [called(columns, name) for name in table.columns]
    if paper:
        table = table.add_prefix("ours, ")
        places = table.index.to_frame().to_dict("records")
        table.insert(0, "paper", [number_at(paper, place) for place in places])
    return headed(table)


def headed(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose index stands in columns, under the headings that readers see."""
    table = table.reset_index()
    for name in set(table.columns) & set(NAMES) - PLAIN:
        table[name] = [called(name, value) for value in table[name]]
    return table.rename(columns=HEADS)


def gaps(
    rows: pd.DataFrame,
    by: Sequence[str],
    column: str,
    above: object,
    below: object,
    value: str = "last",
    words: tuple[str, str] = ABOVE,
) -> pd.DataFrame:
    """How far one side is above the other in each group, paired by seed.

    Columns are `by`; `above`, `below` (means of the seeds that both have); `mean`, `low`, `high` of the difference;
    `ahead` of `n` seeds; and `told`, the difference in words. A group without a common seed has no row.
    """
    found = []
    for key, part in groups(rows, by):
        wide = part.pivot_table(index="seed", columns=column, values=value, observed=True)
        sides = wide[[above, below]].dropna() if {above, below} <= {*wide} and above != below else ()
        if len(sides):
            interval = paired_interval(sides[above], sides[below])
            found.append(
                dict(zip(by, key))
                | {"above": sides[above].mean(), "below": sides[below].mean()}
                | {"mean": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}
                | {"ahead": int((sides[above] > sides[below]).sum()), "told": in_words(interval, words)}
            )
    names = [*by, "above", "below", "mean", "low", "high", "n", "ahead", "told"]
    return pd.DataFrame(found, columns=names)


def gap_table(
    rows: pd.DataFrame,
    index: Sequence[str],
    column: str,
    pairs: Mapping[str, tuple[object, object]],
    value: str = "last",
) -> pd.DataFrame:
    """Return a table of differences of `value` between two values of `column`, paired by seed, with 95 % t-intervals.

    Rows are told apart by `index`; a column for each of the `pairs`, its heading to the two values (above, below).
    """
    table = pd.DataFrame({name: [] for name in index}).set_index([*index])
    for heading, sides in pairs.items():
        found = gaps(rows, index, column, *sides, value=value).set_index([*index])
        ends = zip(found["mean"], found["low"], found["high"])
        told = pd.Series([describe(*each) for each in ends], found.index, name=heading, dtype=object)
        table = table.join(told, how="outer")
    return headed(table.fillna(""))


def in_words(found: Interval, words: tuple[str, str] = ABOVE) -> str:
    """A difference without a sign before its mean, in words for one above 0 and for one below."""
    low, high = (found.low, found.high) if found.mean >= 0 else (-found.high, -found.low)
    return words[found.mean < 0].format(describe(abs(found.mean), low, high))


def shown(found: Interval, digits: int = 1) -> str:
    return describe(found.mean, found.low, found.high, digits)


def finding(rows: pd.DataFrame, template: str) -> str:
    """A sentence for each row: the template with the row's entries in its places."""
    return " ".join(template.format(**row) for row in rows.to_dict("records"))
