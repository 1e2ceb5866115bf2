"""The component `two-minds` with its models and questions, made once for all tests of a session."""

import shutil

import pytest
from component import BOOK, extension


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
