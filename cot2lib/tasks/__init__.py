"""Tasks: what goes in, which trajectories lead on from it, and which answers are right.

`Task` is the base; a task of your own subclasses it. `MNNS` is the paper's arithmetic task; `ProsQA` and
`ProntoQA` are questions about graphs.
"""

from cot2lib.tasks.mnns import MNNS, MNNSLengths
from cot2lib.tasks.prontoqa import ProntoQA
from cot2lib.tasks.prosqa import ProsQA, PublishedProsQA
from cot2lib.tasks.task import Rows, Task

__all__ = ["MNNS", "MNNSLengths", "ProntoQA", "ProsQA", "PublishedProsQA", "Rows", "Task"]
