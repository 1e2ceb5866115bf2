"""Stores that are trained once a session: tests copy them, and damage the copy."""

import shutil

import pytest
import torch
from builders import SPECS
from parity import stop_at_a_checkpoint

from cot2lib import runs
from cot2lib.kit import provenance
from cot2lib.runs import store as stores
from cot2lib.training.supervised import SupervisedTrainer


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A store in which three runs are finished, and one where they were trained again, to other results."""
    first, again = (tmp_path_factory.mktemp(name) for name in ("trained", "again"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COT2_RECORDS", str(first / "none"))
        patched.setenv("COT2_STORE", str(first))
        runs.run(SPECS)
        patched.setenv("COT2_STORE", str(again))
        for trainer in [SupervisedTrainer([spec]) for spec in SPECS]:
            trainer.train()
            with torch.no_grad():
                for parameter in trainer.stack.parameters():
                    parameter.add_(1.0)
            trainer.progress.curves[-1]["loss"] = [7.0]
            made = {"device": "another", "threads": 1, "commit": "newer", "date": "2026-01-01"}
            stores.Entry([trainer.spec.id]).finish(*stores.results(trainer, made))
    return first, again


@pytest.fixture
def kept(store, nothing_shipped, trained):
    """A copy of the store of three finished runs; nothing is shipped."""
    shutil.copytree(trained[0], store)
    return store


@pytest.fixture
def starts(monkeypatch):
    """Seeds and first step of every stack that is trained."""
    seen, train = [], SupervisedTrainer.train

    def noted(trainer, after_segment):
        seen.append(([spec.seed for spec in trainer.specs], trainer.progress.step))
        return train(trainer, after_segment)

    monkeypatch.setattr(SupervisedTrainer, "train", noted)
    return seen


@pytest.fixture
def interrupted(store, nothing_shipped, monkeypatch):
    """Interrupt training of some runs right after a checkpoint at step 20 of 60; returns the checkpoint."""

    def interrupt(specs):
        with monkeypatch.context() as patched:
            patched.setattr(provenance, "commit", lambda: "before")
            stop_at_a_checkpoint(monkeypatch, *specs)
        return next(store.glob("*.checkpoint.safetensors"))

    return interrupt
