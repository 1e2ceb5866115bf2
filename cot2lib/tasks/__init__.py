"""The tasks: what goes in, what trajectories lead from it, and the one right answer.

A further task is a frozen dataclass with what `Task` lists here and the trajectory graph that
`cot2lib.supervision.TrajectoryGraph` reads:

* `name`, `size` (inputs), `steps` (m), `vocab_size`, `positions`, `eos_id`;
* `prompt(arrow, pauses)`: token ids (input, token), padded on the left where inputs differ in length,
  and `padding`: how many tokens of each are padding, or None;
* `numbers`, `kinds` (token,): which number of which kind each token is, for a trigonometric embedding;
* `answer_ids` (input,), `classes` (input,): inputs of one class are never divided by a split;
* `split(seed)`: train mask (input,).
"""

from cot2lib.tasks.mnns import MNNS

Task = MNNS

__all__ = ["MNNS", "Task"]
