"""Claims as rows: what `claims.csv` says of how each is measured.

`above` is a query (see `queries`), `value` the column that it is about, `chapter` whose runs these are.

| kind               | `above`                 | `below`                  | `given`                    |
|--------------------|-------------------------|--------------------------|----------------------------|
| number, start      | the runs                | -                        | the reading that is meant  |
| gain               | the runs                | the claim it is since    | -                          |
| half stated        | by what the paper says  | by our recipe            | the reading that is meant  |
| untested (start)   | the runs                | -                        | why there is no verdict    |
| direction, no gain | what is above           | what is below, or `above` | the reading that is meant |
| reaches            | each way to read it     | -                        | -                          |
| any other          | `coded` has the claim   | -                        | -                          |

Queries of several cells stand with a semicolon between. Each stands for a cell for every combination of the values of
`over`: `d_model = 24 | 32; less more = 1 3 | 3 6` fills {d_model}, and {less} together with {more}. A value
`entropy_3 > entropy_1` compares two columns. `paper_runs` says of how many runs a number is a mean, and `judged` which
epoch it is of where epochs are chosen, the last or the best.
"""

from collections.abc import Callable, Iterator
from itertools import product

from cot2lib.study.claims.coded import CODED, REFUTED
from cot2lib.study.claims.comparisons import Cell, Direction, NoGain, Reaches
from cot2lib.study.claims.kinds import HalfStated, Kind, Number, OfStart
from cot2lib.study.printed import claims

CHANCE = {"prosqa": 0.5, "prontoqa": 0.5}  # of a guess between two options, by task


def number(row: tuple, kind: type[Number] = Number, **options) -> Number:
    known = dict(judged=row.judged, given=row.given, chance=CHANCE.get(row.task))
    return kind(row.chapter, row.above, row.value, int(row.paper_runs), **known | options)


def cells(row: tuple) -> tuple[str, list[Cell]]:
    """The chapter of a comparison and its cells."""
    column, _, beside = row.value.partition(" > ")
    sides = zip(row.above.split("; "), (row.below or row.above).split("; "))
    return row.chapter, [
        Cell(*parts) for pair in sides for parts in filled((pair[0], column, pair[1], beside or column), row.over)
    ]


def filled(texts: tuple[str, ...], over: str) -> list[tuple[str, ...]]:
    """Texts with every combination of the values of `over` in them, each once."""
    return list(dict.fromkeys(tuple(text.format(**values) for text in texts) for values in combinations(over)))


def combinations(over: str) -> Iterator[dict[str, str]]:
    axes = []
    for names, _, values in (axis.partition(" = ") for axis in over.split("; ") if axis):
        names = names.split()
        axes.append([dict(zip(names, value.split(maxsplit=len(names) - 1))) for value in values.split(" | ")])
    for parts in product(*axes):
        yield {name: value for part in parts for name, value in part.items()}


MADE: dict[str, Callable[[tuple], Kind]] = {
    "number": number,
    "gain": lambda row: number(row, since=row.below, start=claims().loc[row.below, "above"]),
    "start": lambda row: number(row, OfStart, refuted=REFUTED.get(row.Index, str)),
    "half stated": lambda row: number(row, HalfStated, best=row.below),
    "untested": lambda row: number(row, untested=row.given, given=""),
    "untested start": lambda row: number(row, untested=row.given, given="", trained="quick"),
    "direction": lambda row: Direction(*cells(row), given=row.given),
    "no gain": lambda row: NoGain(*cells(row), given=row.given),
    "reaches": lambda row: Reaches(
        row.chapter, [query for part in row.above.split("; ") for (query,) in filled((part,), row.over)]
    ),
    "setting": lambda row: Kind(),
}
KINDS: dict[str, Kind] = {row.Index: CODED.get(row.Index) or MADE[row.kind](row) for row in claims().itertuples()}
