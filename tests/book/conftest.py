"""What tests of the book share: the ledger, the built pages, and the component `two-minds` with its models."""

import shutil

import pytest
from component import BOOK, extension

from cot2lib.study.book.ledger import of_records, reading_records


@pytest.fixture(scope="session")
def rows():
    """The ledger of the shipped records."""
    return of_records()


@pytest.fixture(scope="session")
def known(rows):
    """Its rows of the authors' recipe, by claim."""
    return rows[rows["profile"] == "paper"].set_index("id", drop=False)


@pytest.fixture(scope="session")
def read():
    """Answers queries on the shipped records, each once."""
    return reading_records()


@pytest.fixture(scope="session")
def built():
    """The folder of the built book."""
    folder = BOOK.parent / "_build" / "html"
    if not folder.exists():
        pytest.fail("the book is not here; build it first: make book", pytrace=False)
    return folder


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
