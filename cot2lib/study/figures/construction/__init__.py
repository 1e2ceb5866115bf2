"""The chapter `construction`: one input (`circle`), all inputs (`solved`), and what training gives (`trained`)."""

from cot2lib.study.figures.construction.circle import *  # noqa: F403
from cot2lib.study.figures.construction.solved import *  # noqa: F403
from cot2lib.study.figures.construction.trained import *  # noqa: F403
