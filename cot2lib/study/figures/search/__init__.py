"""The chapter `search`: its figures (`drawn`), its tables and sentences (`tables`)."""

from cot2lib.study.figures.search.drawn import *  # noqa: F403
from cot2lib.study.figures.search.tables import *  # noqa: F403
