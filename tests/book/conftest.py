"""What tests of the book share: the component `two-minds` with its models and questions, and a lack of runs."""

import shutil

import pandas as pd
import pytest
from component import BOOK, extension

from cot2lib.study.book import ledger


@pytest.fixture(scope="session")
def explorer():
    return extension("explorer")


@pytest.fixture(scope="session")
def shown(explorer):
    return {"mnns": explorer.mnns(), "prosqa": explorer.prosqa()}


@pytest.fixture(scope="session")
def site(explorer, shown, tmp_path_factory):
    """The scripts of the book, with models and questions."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(BOOK / "_static", folder / "_static")
    for name, given in shown.items():
        explorer.write_script(folder / "_static", name, given)
    return folder


@pytest.fixture
def quick_alone():
    """A reader that finds no runs of the authors' recipe, and a claim's rows by it."""
    shipped = ledger.reading_records()
    read = lambda sample, profile: shipped(sample, profile)[: 0 if profile == "paper" else None]
    return read, pd.DataFrame(ledger.rows_of("sparse-11-19", read), columns=list(ledger.COLUMNS))
