"""Tasks: what goes in, which trajectories lead on from it, and which answers are right.

`task` is the contract and its base class; `mnns` the paper's arithmetic task. `prosqa` and `prontoqa` are questions
about graphs, which share `reachability`; `published` reads those of COCONUT.
"""

from cot2lib.tasks.lengths import MNNSLengths
from cot2lib.tasks.mnns import MNNS
from cot2lib.tasks.prontoqa import ProntoQA
from cot2lib.tasks.prosqa import ProsQA
from cot2lib.tasks.published import PublishedProsQA
from cot2lib.tasks.task import Rows, Task

__all__ = ["MNNS", "MNNSLengths", "ProntoQA", "ProsQA", "PublishedProsQA", "Rows", "Task"]
