"""A language model's responses for a reader: the tokens that each thought is the mean of, and what is written."""

from collections.abc import Callable

import pandas as pd
from torch import nn

from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.llm import policy
from cot2lib.llm.policy import Asked, greedy
from cot2lib.llm.responses import Prompts, respond
from cot2lib.llm.stories import Story
from cot2lib.thoughts import MTS


def responses(
    model: nn.Module, tokenizer: Callable, told: list[Story], k: int, thoughts: int, limit: int, seed: int
) -> pd.DataFrame:
    """A row for each story: its answer, the tokens of each thought, and the text; greedy but for the thoughts."""
    asked = Asked.of(told)
    plan = greedy(MTS(k), thoughts, limit, policy.end_tokens(model, tokenizer))
    made = respond(model, Prompts.of(tokenizer, asked.texts), plan, random.run_keys([seed], Site.ROLLOUT))
    drawn = [[]] * len(told) if made.actions is None else made.actions.tolist()  # (response, thought, draw)
    names = lambda tokens: "{" + " ".join(sorted(tokenizer.convert_ids_to_tokens(tokens))) + "}"
    return pd.DataFrame(
        {
            "story": asked.texts,
            "answer": asked.answers,
            "thoughts": [" ".join(map(names, each)) for each in drawn],
            "written": made.texts(tokenizer),
        }
    )
