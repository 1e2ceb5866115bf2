"""Claims as rows: what `claims.csv` says of how each is measured.

`above` is a query (`cot2lib.study.queries`), `value` the column that it is about, `chapter` whose runs these are.

| kind                          | `above`                | `below`                   | `given`                       |
|-------------------------------|------------------------|---------------------------|-------------------------------|
| number, start                 | the runs               | -                         | the reading that is meant     |
| gain                          | the runs               | the claim it is since     | "                             |
| half stated                   | by what the paper says | by our recipe             | "                             |
| untested                      | the runs               | -                         | why there is no verdict       |
| direction, no gain            | what is above          | what is below (or `above`) | the reading that is meant    |
| reaches                       | one way to read it     | -                         | -                             |
| any other                     | `coded` has the claim  | -                         | -                             |

A comparison has a cell for each combination of the values of `over`: `d_model = 24 | 32; less more = 1 3 | 3 6` fills
{d_model}, and {less} with {more}. Several queries stand with a semicolon between. `entropy_3 > entropy_1` compares two
columns. `paper_runs` is of how many runs a number is a mean. `judged` says where epochs are chosen which one is
printed, the last or the best.
"""

from collections.abc import Callable, Iterator
from itertools import product

from cot2lib.study.claims.coded import CODED, REFUTED
from cot2lib.study.claims.comparisons import Cell, Direction, NoGain, Reaches
from cot2lib.study.claims.kinds import HalfStated, Kind, Number, OfStart, Setting
from cot2lib.study.printed import claims

CHANCE = {"prosqa": 0.5, "prontoqa": 0.5}  # of a guess between two options, by task


def kind(claim: str) -> Kind:
    """How a claim is measured.

    Raises:
        KeyError: for a kind that is neither known nor coded.
    """
    return CODED.get(claim) or MADE[claims().loc[claim, "kind"]](claim)


def number(claim: str, kind: type[Number] = Number, **options) -> Number:
    row = claims().loc[claim]
    epochs = dict(chosen=True, judged=row["judged"]) if row["judged"] else {}
    options = {"given": row["given"], "chance": CHANCE.get(row["task"])} | epochs | options
    return kind(row["chapter"], row["above"], row["value"], int(row["paper_runs"]), **options)


def gain(claim: str) -> Number:
    since = claims().loc[claim, "below"]
    return number(claim, since=since, start=claims().loc[since, "above"])


MADE: dict[str, Callable[[str], Kind]] = {
    "number": number,
    "gain": gain,
    "half stated": lambda claim: number(claim, HalfStated, best=claims().loc[claim, "below"]),
    "start": lambda claim: number(claim, OfStart, refuted=REFUTED.get(claim, str)),
    "untested": lambda claim: number(claim, untested=claims().loc[claim, "given"], given=""),
    "direction": lambda claim: Direction(*cells(claim), given=claims().loc[claim, "given"]),
    "no gain": lambda claim: NoGain(*cells(claim)),
    "reaches": lambda claim: Reaches(claims().loc[claim, "chapter"], filled(claim, "above")),
    "setting": lambda claim: Setting(),
}


def cells(claim: str) -> tuple[str, list[Cell]]:
    """The chapter of a comparison and its cells, each once."""
    row = claims().loc[claim]
    column, _, beside = row["value"].partition(" > ")
    sides = zip(row["above"].split("; "), (row["below"] or row["above"]).split("; "))
    found = [
        Cell(*(text.format(**values) for text in (above, column, below, beside or column)))
        for above, below in sides
        for values in combinations(row["over"])
    ]
    return row["chapter"], list(dict.fromkeys(found))


def filled(claim: str, column: str) -> list[str]:
    """The queries of a column for every combination of the values of `over`, each once."""
    row = claims().loc[claim]
    found = [query.format(**values) for query in row[column].split("; ") for values in combinations(row["over"])]
    return list(dict.fromkeys(found))


def combinations(over: str) -> Iterator[dict[str, str]]:
    axes = []
    for names, _, values in (axis.partition(" = ") for axis in over.split("; ") if axis):
        names = names.split()
        axes.append([dict(zip(names, value.split(maxsplit=len(names) - 1))) for value in values.split(" | ")])
    for parts in product(*axes):
        yield {name: value for part in parts for name, value in part.items()}


KINDS: dict[str, Kind] = {claim: kind(claim) for claim in claims().index}
