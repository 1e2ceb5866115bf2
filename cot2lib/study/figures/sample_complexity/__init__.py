"""The chapter `sample_complexity`: on chains whose laws are known (`chains`), and on trained models (`models`)."""

from cot2lib.study.figures.sample_complexity.chains import *  # noqa: F403
from cot2lib.study.figures.sample_complexity.models import *  # noqa: F403
