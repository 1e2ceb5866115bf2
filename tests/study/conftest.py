"""Two small models of each kind, trained once for all files that take them apart."""

import pytest
from builders import small_specs

from cot2lib.training.supervised import SupervisedTrainer


def trained(method):
    trainer = SupervisedTrainer(small_specs(method))
    trainer.train()
    return trainer.stack


@pytest.fixture(scope="session")
def continuous():
    return trained("cot2")


@pytest.fixture(scope="session")
def discrete():
    return trained("discrete")
