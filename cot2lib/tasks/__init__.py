"""Tasks: what goes in, which trajectories lead on from it, and which answers are right.

`task` is the contract and its base class; `mnns` the paper's arithmetic task.
"""

from cot2lib.tasks.mnns import MNNS
from cot2lib.tasks.prosqa import ProsQA
from cot2lib.tasks.task import Rows, Task

__all__ = ["MNNS", "ProsQA", "Rows", "Task"]
