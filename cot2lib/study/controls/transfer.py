"""One digit more, after a few examples: do trained models carry over what they learnt of four digits?

Models are trained on four digits, asked five that fit their vocabulary, and then trained on a share of these. Beside
them fresh models are trained on the same few inputs. The paper asks nothing of the kind.
"""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from cot2lib import runs
from cot2lib.errors import RecordError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.runs import How, make_trainer
from cot2lib.specs import RunSpec
from cot2lib.study import measured, show
from cot2lib.study.controls.runs import FIVE, GROWING, name, numbers, one_more, own_rule
from cot2lib.study.frame import at, ordered
from cot2lib.tasks import MNNS
from cot2lib.training.evaluation import accuracy
from cot2lib.training.trainer import StackTrainer

NAMES = (*GROWING[:2], "path-fed", "nothing-fed", *GROWING[2:])
MORE = one_more(MNNS())
STEPS = 2000
SHARES = (0.01, 0.1)  # of the inputs that are not held out
TRAINED, FRESH = "trained on four digits", "fresh"  # models that a few examples are shown to
COLUMNS = ["control", "seed", "start", "share", "shown", "before", "right"]


def measure() -> pd.DataFrame:
    """A row for each control, seed, share and start: right answers (%) to held-out inputs, before and after."""
    return pd.concat([_carried(control) for control in NAMES], ignore_index=True)[COLUMNS]


def _carried(control: str) -> pd.DataFrame:
    """The rows of one control."""
    specs = numbers(control, FIVE)
    trained, found = runs.load_stack(specs), []
    for share in SHARES:
        for start, stack in ((TRAINED, trained), (FRESH, None)):
            found.append(tuned(specs, stack, share).assign(control=control, start=start, share=share))
    return pd.concat(found)


def tuned(specs: Sequence[RunSpec], stack: GPT2Stack | None, share: float) -> pd.DataFrame:
    """Train models on a share of `MORE` at a constant rate: each run's right answers before and after.

    Args:
        specs: runs of one shape; what is scored and fed stays as it was.
        stack: their models; None for fresh ones.
        share: of the inputs that are not held out.
    """
    recipe = replace(specs[0].recipe, steps=STEPS, evaluate_every=STEPS, schedule="constant", warmup=0)
    asked = [replace(run, task=MORE, recipe=recipe, thought=own_rule(run)) for run in specs]
    trainer = make_trainer(asked, How(torch.device("cpu")))
    few = [some(rows, run.seed, share) for rows, run in zip(trainer.data.train, asked)]
    trainer.data = replace(trainer.data, train=few)
    if stack is not None:
        _take_over(trainer.stack, stack)
    before = _right(trainer)
    trainer.train()
    made = {"seed": [run.seed for run in asked], "shown": [len(rows) for rows in few]}
    return pd.DataFrame(made | {"before": before, "right": _right(trainer)})


def some(rows: Int[Tensor, " row"], seed: int, share: float) -> Int[Tensor, " shown"]:
    """A share of the rows, drawn by the seed."""
    order = random.permutations(random.run_keys([seed], Site.PROBE), len(rows))[0]
    return rows[order[: round(share * len(rows))]]


@torch.no_grad()
def _take_over(stack: GPT2Stack, trained: GPT2Stack) -> None:
    """The weights of trained models; they have no more than the positions that are read."""
    theirs = trained.state_dict()
    for key, value in stack.state_dict().items():
        value[:, : theirs[key].shape[1]].copy_(theirs[key])


def _right(trainer: StackTrainer) -> list[float]:
    """Right answers (%) of each run."""
    return (100 * accuracy(trainer.data, trainer.evaluate())).tolist()


def asked(seeds: Sequence[int]) -> pd.DataFrame:
    """The recorded rows of some seeds, controls in the order of `NAMES`.

    Raises:
        RecordError: if nothing is recorded of these seeds.
    """
    rows = measured.read("transfer")
    rows = rows[rows["seed"].isin(seeds)]
    if rows.empty:
        raise RecordError(f"no transfer is recorded for the seeds {list(seeds)}; choose 62 to 66.")
    return rows.assign(control=ordered(rows["control"], NAMES), start=ordered(rows["start"], (TRAINED, FRESH)))


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Means with their intervals: a row for each control and start, a column for each share."""
    rows = rows.set_index(["control", "start"])
    parts = {"asked at once (%)": at(rows, share=SHARES[0])["before"]}
    parts |= {f"{100 * share:.0f} % shown (%)": at(rows, share=share)["right"] for share in SHARES}
    means = {words: part.groupby(level=[0, 1], observed=True).agg(show.mean_of) for words, part in parts.items()}
    found = pd.DataFrame(means).reset_index()
    return found.assign(control=found["control"].map(name)).rename(
        columns={"control": "labels | fed", "start": "model"}
    )
