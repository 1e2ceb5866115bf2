"""What each step reads: outcomes of the second block of predictions, and how they are drawn.

Runs are those of `steps`, by cell; `cot2 measure reads` asks trained ones what their steps read.
"""

from collections.abc import Sequence
from textwrap import fill

import pandas as pd

from cot2lib.study import frame, look, predicted
from cot2lib.study.controls import measure, steps
from cot2lib.study.controls.draw import by_edit, dots
from cot2lib.study.controls.outcomes import answered, recorded
from cot2lib.study.controls.runs import GRAPHS, NUMBERS
from cot2lib.study.look import Shown
from cot2lib.study.series import BLUE, GREEN, ORANGE, PINK

LATER = {NUMBERS: 10, GRAPHS: 5}  # seeds of this block, counted from the first block's
WORDS = {"csft": "CSFT", "fresh-path": "fresh paths", "discrete": "discrete CoT", "coconut": "COCONUT"}
COLOURS = {"csft": BLUE, "fresh-path": PINK, "discrete": ORANGE, "coconut": GREEN}
FORMS = {
    "all": "everything before it",
    "local": "thought before, digits up to its own",
    "strict": "thought before, own digit alone",
}
HOP_FORMS = {
    "all": "everything before it",
    "local": "thought before and edges",
    "strict": "the same, but no edge sees another",
}
MASKS = {  # on trained models, in the figure: the mask and the words for it
    "answer: no digits": "answer: no digits",
    "answer: own digit, <BOS>, arrow": "answer: own digit, arrow",
    "answer: no earlier thoughts": "answer: no earlier thoughts",
    "steps: no earlier thoughts": "each step: no earlier thoughts",
    "step 1: own digit, <BOS>": "first step: own digit",
    "steps: own digit, <BOS>": "each step: own digit",
    "steps: another digit, <BOS>": "each step: another digit",
}
HOPS = {  # cells of the fourth block's experiments, and those that are subtracted
    "hops-csft-local": ("csft", "csft local"),
    "hops-csft-strict": ("csft", "csft strict"),
    "hops-discrete-local": ("discrete", "discrete local"),
    "hops-discrete-strict": ("discrete", "discrete strict"),
    "hops-apart-strict": ("csft strict", "discrete strict"),
    "hops-fresh-strict": ("fresh-path strict", "discrete strict"),
}
EDITS = {  # of the table: the edit and the words for it
    **{f"swap {t}": f"another input's thought {t}" for t in (1, 2, 3)},
    **{f"ancestors {t}": f"thought {t} without states that lead to the answer" for t in (2, 3)},
    **{f"elsewhere {t}": f"thought {t}, as much weight removed from other states" for t in (2, 3)},
}


def read(seeds: Sequence[int], retrain: bool = False, device: str = "auto") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two frames: accuracies (%) of all cells (`last`), and answers after interventions.

    Both have `told` (the task), `control` (the cell) and `seed`; the first has the cell's fields as well. `seeds` are
    of the first block; these runs have seeds later by 10 on numbers and by 5 on graphs. With `retrain` they are
    trained and measured here.
    """
    known = {
        place: [run for run in some if run.seed - LATER[place[0]] in seeds]
        for place, some in steps.trained("quick").items()
    }
    rows = recorded(known, retrain, device)
    cells = pd.DataFrame([cell._asdict() | {"control": str(cell)} for cell in dict.fromkeys(steps.cells())])
    rows = rows.drop(columns=["method", "d_model", "budget", "sees"]).merge(cells, "left", "control")
    rows["budget"] = rows["budget"].where(rows["method"] != "discrete", 1)
    return rows, answered("reads", measure.steps, steps.asked, known, retrain=retrain)


def hops(seeds: Sequence[int], retrain: bool = False, device: str = "auto") -> pd.DataFrame:
    """Return final accuracies (%) on graphs by what a step sees; columns and arguments as `read`."""
    known = {
        (GRAPHS, cell): [run for run in some if run.seed - LATER[GRAPHS] in seeds]
        for cell, some in steps.hops().items()
    }
    rows = recorded(known, retrain, device)
    sees = {run.id: run.supervision.sees for some in known.values() for run in some}
    return rows.assign(method=rows["control"].str.split().str[0], sees=rows["id"].map(sees))


def hop_outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the outcome of each experiment on hops, judged by the predictions (`predicted.judged`)."""
    return predicted.of_pairs(rows.set_index(["control", "seed"])["last"], HOPS, predicted.HOPS)


def authors() -> pd.DataFrame:
    """Return final accuracies (%) by the authors' recipe: a row for each seed, a column for each cell."""
    return recorded(steps.trained("paper")).pivot_table("last", "seed", "control")


def why(rows: pd.DataFrame, on_graphs: pd.DataFrame, answers: pd.DataFrame, finding: str) -> Shown:
    """Draw accuracy by what steps see: of models trained so, on digits and graphs, and of others that see less."""
    on_digits = rows.query("told == @NUMBERS and d_model == 32 and digits == 4 and budget in (1, 16)")
    less = frame.at(answers, told=NUMBERS, edit=[*MASKS])
    whole = frame.at(less, edit="steps: own digit, <BOS>").assign(edit="nothing", right=lambda part: part["before"])
    less = pd.concat([whole, less]).rename(columns={"control": "method", "edit": "sees", "right": "last"})
    wrapped = lambda forms: {form: fill(words, 16) for form, words in forms.items()}
    panels = (
        ("digits", on_digits, wrapped(FORMS), "four digits, trained under the mask"),
        ("graphs", on_graphs, wrapped(HOP_FORMS), "graphs, trained under the mask"),
        ("evaluated", less, {"nothing": "everything before it"} | MASKS, "four digits, masked afterwards"),
    )
    figure, axes = look.panels(1, 3, width=10.0, height=4.4, width_ratios=[1, 1, 1.2])
    palette, drawn = {WORDS[name]: colour for name, colour in COLOURS.items()}, []
    for axis, (panel, some, words, title) in zip(axes[0], panels):
        some = some.assign(panel=panel, control=some["sees"], trained=some["method"].map(WORDS), value=some["last"])
        drawn.append(frame.at(some, trained=[*palette]))
        dots(axis, drawn[-1], words, "trained", palette)
        axis.set(xlabel="right held-out answers (%)", xlim=(0, 102))
        axis.set_title(title, fontsize="medium")
    for axis in axes[0, 1:]:
        axis.get_legend().remove()
    return Shown(figure, pd.concat(drawn)[["panel", "sees", "trained", "seed", "value"]], finding)


def budgets(rows: pd.DataFrame, finding: str) -> Shown:
    """Draw accuracy by budget and dimension, with everything in sight and strictly local; B = 1 is discrete CoT."""
    known = rows.query("told == @NUMBERS and digits == 4 and method in ('csft', 'discrete') and sees != 'local'")
    words = {"all": "each step sees everything before it", "strict": "the thought before it and its own digit alone"}
    known = known.assign(sees=frame.ordered(known["sees"].map(words), [*words.values()]), B=known["budget"])
    shown = look.ends(known, "sees", "B", "d_model", finding=finding, label="held-out accuracy (%)")
    shown.figure.supxlabel("budget B", fontsize="medium")
    return shown


def edit_table(answers: pd.DataFrame) -> pd.DataFrame:
    """Tabulate what follows each edit of `EDITS`: answers that follow an exchanged thought, or right ones (%)."""
    swapped = answers["edit"].str.startswith("swap")
    answers = answers.assign(shown=answers["follows"].where(swapped, answers["right"]))
    after = lambda told, cell, end="": [*by_edit(answers, told, cell, "shown").reindex([edit + end for edit in EDITS])]
    columns = {
        "edit": EDITS.values(),
        "answers": ["follow it" if edit.startswith("swap") else "right" for edit in EDITS],
        "CSFT, computed again": after(NUMBERS, "csft"),
        "CSFT, kept": after(NUMBERS, "csft", ", kept"),
        "discrete CoT": after(NUMBERS, "discrete"),
        "COCONUT": after(NUMBERS, "coconut"),
        "CSFT on graphs": after(GRAPHS, "csft"),
    }
    return pd.DataFrame(columns).fillna("")
