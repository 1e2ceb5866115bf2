"""The records that ship, against the code as it is."""

import json
from functools import cache
from pathlib import Path

import pytest
import torch
from builders import evaluate

from cot2lib import runs
from cot2lib.kit import paths
from cot2lib.kit.files import load_meta
from cot2lib.runs import records, store
from cot2lib.specs import GRPOSpec, from_data
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS
from cot2lib.training.data import stack_data

STEPS = 10  # of those that records keep


@cache
def shipped():
    """Specs of all shipped runs, those of small tasks first."""
    specs = [from_data(json.loads(text)) for text in records.shipped_runs()["spec"]]
    return sorted(specs, key=lambda run: run.task.size)


def weighted():
    """Those whose weights are shipped."""
    files = Path(paths.records()).glob("*.weights.safetensors")
    ids = {run_id for path in files for run_id in load_meta(path)["runs"]}
    return [run for run in shipped() if run.id in ids]


def kind(run):
    """What makes a run's training another computation, besides its size."""
    target = "one budget" if run.supervision.budget else "all trajectories"
    if isinstance(run, GRPOSpec):
        rule = run.thought
        options = dict(
            kl=run.kl, mask=run.mask, dropout=run.recipe.dropout, first_k=run.first_k, centred=not run.scaled,
            masked=getattr(rule, "masked", False), whole=getattr(rule, "most", 1) is None,
            scaled_logits=isinstance(rule, MTS) and rule.temperature != 1,
        )  # fmt: skip
        target = " ".join([type(run.thought).__name__, run.ratio, *(name for name, given in options.items() if given)])
    return run.recipe.batch, run.method, run.fed, run.outputs, run.model.layers, target, run.model.embedding


def named(run):
    return "batch {}, {}, {}, {} tokens, {} layers, {}, {}".format(*kind(run))


def kinds(specs):
    """The first run of every kind."""
    first = {}
    for run in specs:
        first.setdefault(kind(run), run)
    return list(first.values())


def costly(run):
    """Whether its data take long to make."""
    return run.task.steps > 4 or not isinstance(run.task, MNNS)


def looked_at(specs, quick):
    """One run of each kind: every second that costs little, or all others."""
    return [run for place, run in enumerate(kinds(specs)) if (costly(run) or place % 2) != quick]


def replayable():
    """Shipped runs but those by reward whose start is not shipped: trained again, it would be another one."""
    known = {run.id for run in weighted()}
    return [run for run in shipped() if not isinstance(run, GRPOSpec) or run.start.id in known]


PARTS = pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.thorough)])


def test_rows_are_those_of_their_specs_and_curves():
    for stem in records.stems(paths.records()):
        rows = records.read_runs(stem, paths.records())
        curves = records.shipped_curves(rows["id"])
        assert [from_data(json.loads(text)).id for text in rows["spec"]] == rows["id"].tolist()
        assert rows["id"].is_unique and not curves.duplicated(["id", "step"]).any()
        assert not (curves.drop(columns="id") < 0).any(axis=None), "a gap that is not read as one"
        points = dict(tuple(curves.groupby("id")))
        assert points.keys() == set(rows["id"])
        for _, row in rows.iterrows():
            made = store.accuracies(points[row["id"]], row["inputs_a"], row["inputs_b"])
            assert row[list(made)].to_dict() == pytest.approx(made, abs=1e-9), row["id"]
            assert all(0 <= row[name] <= 1 for name in records.SHARES)


@PARTS
def test_shipped_records_replay(quick):
    """The first ten losses, trained again: a mismatch means the code has drifted from its records.

    Of policy gradients that is the share of failed rollouts. Rounding may turn one, after which the weights part.
    """
    rows, drifted = records.shipped_runs().set_index("id"), []
    for run in looked_at(replayable(), quick):
        trainer = runs.make_trainer([run], torch.device("cpu"), engine="torch")
        trainer.advance(STEPS)
        expected = torch.tensor(json.loads(rows.loc[run.id, "first_losses"]))[:STEPS]
        apart = (trainer.losses[0, :STEPS].double() - expected).abs()
        if isinstance(run, GRPOSpec):
            turned = (apart * run.recipe.batch * run.group).round()
            alike = turned[:5].max() <= 1 and turned.median() <= 1
        else:
            alike = apart.max() < 1e-3
        drifted += [] if alike else [named(run)]
    assert not drifted


@PARTS
def test_shipped_weights_give_their_record(quick):
    """Two inputs may fall the other way by rounding, or one in 200 in half precision; more means that decoding or data
    have drifted."""
    rows, drifted = records.shipped_runs().set_index("id"), []
    for run in looked_at(weighted(), quick):
        row = rows.loc[run.id]
        found = evaluate(runs.load(run, missing="error"), stack_data([run], "cpu"), [run])
        inputs = row["inputs_a"] + row["inputs_b"]
        right = found["correct_a"][0] + found["correct_b"][0]
        halved = any(value.dtype == torch.float16 for value in records.shipped_weights(run.id).values())
        alike = abs(right - row["last"] * inputs) < (inputs / 200 if halved else 2.5)
        drifted += [] if alike else [named(run)]
    assert not drifted


def test_records_stay_small():
    files = list(Path(paths.records()).iterdir())
    assert sum(path.stat().st_size for path in files) < 28 * 2**20
