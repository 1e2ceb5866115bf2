"""The chapter `grpo_mts`: runs before and after (`runs`), and which policy ratio is right (`ratios`)."""

from cot2lib.study.figures.grpo_mts.ratios import *  # noqa: F403
from cot2lib.study.figures.grpo_mts.runs import *  # noqa: F403
