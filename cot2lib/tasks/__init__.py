"""The tasks: what goes in, what trajectories lead from it, and the one right answer."""

from cot2lib.tasks.mnns import MNNS

__all__ = ["MNNS"]
