"""The chapter `csft`: its figures (`drawn`), and its tables and sentences (`tables`)."""

from cot2lib.study.figures.csft.drawn import *  # noqa: F403
from cot2lib.study.figures.csft.tables import *  # noqa: F403
