"""The chapter `sampling`: many samples of a discrete model (`many`), and one trace of a continuous one (`one`)."""

from cot2lib.study.figures.sampling.many import *  # noqa: F403
from cot2lib.study.figures.sampling.one import *  # noqa: F403
