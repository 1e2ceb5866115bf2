"""Edits along training: when does a model begin to read its thought?

Models are trained once more, and their last thought is edited on the way (`cot2lib.study.controls.edits`). A model may
be right before it follows what it is fed, or follow before it is right. Jin, Yang and Wang (arXiv:2607.06648) ask
fine-tuned models so while they train. The paper asks nothing of the kind.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch

from cot2lib.runs import How, make_trainer
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import epoch_steps
from cot2lib.study import frame, measured
from cot2lib.study.controls import edits
from cot2lib.study.controls.runs import SEEDS, numbers
from cot2lib.study.report import RECIPES

NAMES = ("csft", "fresh-path")
POINTS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40, 50)  # evaluations of the training after which it is asked
ASKED = ("swap", "ancestors", "elsewhere")  # edits at full dose
COLUMNS = ["id", "step", *edits.COLUMNS[1:]]
RIGHT, FOLLOWS, WITHOUT = ("swap", "before"), ("swap", "follows"), ("ancestors", "right")  # columns of edits
MEASURES: Mapping[tuple[str, str], str] = {
    RIGHT: "right, nothing edited",
    FOLLOWS: "follow another input's thought",
    WITHOUT: "right, without the states that lead to it",
}


def measure() -> pd.DataFrame:
    """Answers of `NAMES` on their way; it takes a training of each."""
    return pd.concat([along(numbers(name)) for name in NAMES], ignore_index=True)


def along(specs: Sequence[RunSpec]) -> pd.DataFrame:
    """Train runs of one shape on the CPU and edit their thoughts: a row for each run, point and edit of `ASKED`."""
    trainer, found = make_trainer(specs, How(torch.device("cpu"))), []
    steps = {point * specs[0].recipe.evaluate_every for point in POINTS}

    def ask(_: int) -> None:
        if trainer.progress.step in steps:
            found.append(edits.answers(trainer.stack, specs, ASKED).assign(step=trainer.progress.step))

    trainer.train(ask)
    return pd.concat(found, ignore_index=True)[COLUMNS]


def asked(seeds: Sequence[int] = SEEDS) -> pd.DataFrame:
    """The recorded rows of some seeds, with `control`, `seed` and `epoch`."""
    known = {run.id: (name, run.seed) for name in NAMES for run in numbers(name, seeds)}
    rows = measured.read("along")
    rows = rows[rows["id"].isin(known)]
    told = pd.DataFrame([known[name] for name in rows["id"]], columns=["control", "seed"], index=rows.index)
    run = numbers(NAMES[0])[0]
    return rows.join(told).assign(epoch=rows["step"] / epoch_steps(run.task, run.recipe.batch))


def shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Shares (%) of answers by epoch: a row for each point, control, seed and measure of `MEASURES` in `asked`."""
    parts = [
        frame.at(rows, edit=edit).rename(columns={column: "share"}).assign(answers=words)
        for (edit, column), words in MEASURES.items()
    ]
    found = pd.concat(parts)[["control", "seed", "epoch", "answers", "share"]]
    return found.assign(answers=frame.ordered(found["answers"], [*MEASURES.values()]), recipe=RECIPES["quick"])
