"""GRPO on a language model that thinks in continuous tokens (paper, appendix on GSM8K).

A step lets the model respond to a few prompts, `group` times each. A response that gives the right number is rewarded
with 1. One forward replays the responses, and AdamW takes a step down the objective of `cot2lib.training.grpo`. In
the first half of a training there are no thoughts. Then their number rises evenly, until four fifths of it
(`PolicyRecipe.thoughts_at`).

The chapter on word problems lists what the paper leaves open, and our choices for its table. The ratio of a thought is
the geometric mean, as in the paper's other trainings. On our own models each response counts alike, and nothing decays
(`by_token`, `decay`). A rollout serves one update, so every ratio is one and nothing is clipped; the surrogate's
gradient is that of advantage times log-density.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib import losses
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.frozen import Count, Frozen, Natural, Several
from cot2lib.kit.hugging_face import LanguageModel, Tokenizer
from cot2lib.kit.random import Site
from cot2lib.llm import answers
from cot2lib.llm.responses import Keys, Plan, Prompts, Responses, replay, respond
from cot2lib.llm.stories import Story
from cot2lib.testing import samples
from cot2lib.thoughts import MTS, Rule
from cot2lib.training import grpo
from cot2lib.training.grpo import Densities

AT_ONCE = 64  # prompts that are evaluated side by side
Log = dict[str, float | int]
Gains = Float[Tensor, "prompt sample"]  # advantages


@dataclass(frozen=True)
class PolicyRecipe(Frozen):
    """One policy-gradient training of a language model."""

    steps: Count  # of the optimiser
    prompts: Count  # problems of a step
    group: Several  # responses to each
    lr: float
    limit: Count  # most discrete tokens of a response
    thoughts: Natural = 0  # continuous tokens at the end of the curriculum; 0 for discrete chain of thought
    k: Count = 4  # tokens that each is the mean of
    enter: float = 0.5  # share of the training at which thoughts begin
    full: float = 0.8  # and at which they are all there
    clip: float = 0.1  # of the surrogate
    warmup: Natural = 0  # steps over which the rate rises evenly, since AdamW's first ones are long and all noise
    by_token: bool = False  # a mean over all steps of a group (the paper's equation), not over those of each response
    decay: float = 0.0  # AdamW's weight decay
    thought: Rule | None = None  # any that samples, in place of the mean of `k` tokens

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.enter < self.full <= 1:
            raise SpecError(f"enter={self.enter}, full={self.full}: choose 0 <= enter < full <= 1.")
        if self.thoughts and not samples(self.rule):
            raise SpecError(f"thought={self.rule}: policy gradients need a rule that samples and has a density.")

    @property
    def rule(self) -> Rule:
        return MTS(self.k) if self.thought is None else self.thought

    def thoughts_at(self, step: int) -> int:
        """Continuous tokens of a response at a training step, counted from 0."""
        share = (step / self.steps - self.enter) / (self.full - self.enter)
        return round(self.thoughts * min(1.0, max(0.0, share)))

    def plan(self, step: int, ends: tuple[int, ...]) -> Plan:
        return Plan(self.rule, self.thoughts_at(step), self.limit, ends=ends)


class PolicyTrainer:
    """Trains those weights of a model that ask for gradients, on problems as the model is asked them.

    `at_once` is the number of prompts whose gradients are taken together, by default all; fewer need less memory.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        problems: Sequence[Story],
        recipe: PolicyRecipe,
        seed: int,
        at_once: int | None = None,
    ):
        if len(problems) < recipe.prompts:
            raise SpecError(f"{len(problems)} problems for {recipe.prompts} prompts a step; give at least as many.")
        self.model, self.tokenizer, self.problems, self.recipe = model.eval(), tokenizer, problems, recipe
        self.at_once = recipe.prompts if at_once is None else at_once
        self.device, self.ends = next(model.parameters()).device, end_tokens(model, tokenizer)
        self.order_key, self.draw_key = (random.run_keys([seed], site) for site in (Site.ORDER, Site.ROLLOUT))
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=recipe.lr, weight_decay=recipe.decay)
        self.taken = 0
        self.log: list[Log] = []

    def rows(self) -> list[int]:
        """Problems of the step to come: the training set, shuffled anew each time it is through."""
        batch = self.recipe.prompts
        return random.stream(self.order_key, torch.arange(len(self.problems)), self.taken * batch, batch).tolist()

    def step(self) -> Log:
        """Respond, reward, and descend once; what is logged of it."""
        problems, recipe = [self.problems[row] for row in self.rows()], self.recipe
        plan, keys = recipe.plan(self.taken, self.ends), random.fold(self.draw_key, self.taken)
        prompts = Prompts.of(self.tokenizer, [problem.text for problem in problems], self.device)
        made = respond(self.model, prompts, plan, keys, recipe.group)
        each = [problem.answer for problem in problems for _ in range(recipe.group)]
        right = torch.tensor(answers.rewards(made.texts(self.tokenizer), each), device=self.device)
        right = right.view(-1, recipe.group)  # (prompt, sample)
        self.descend(prompts, plan, made, losses.advantages(right[None])[0])
        self.taken += 1
        self.log.append({"step": self.taken, "reward": float(right.mean()), **response_stats(made)})
        return self.log[-1]

    def objective(self, new: Densities, old: Densities, made: Responses, advantages: Gains) -> Float[Tensor, " one"]:
        """Minus the surrogate: the mean over the steps of each response, or of each group, and over those."""
        together = advantages.shape[1] if self.recipe.by_token else 1
        return grpo.objective(
            new, old, advantages.view(1, -1), clip=self.recipe.clip, there=made.there, together=together
        )

    def descend(self, prompts: Prompts, plan: Plan, made: Responses, advantages: Gains) -> None:
        """One step of AdamW, by gradients that are summed over parts of the prompts."""
        self.optimizer.zero_grad()
        self.optimizer.param_groups[0]["lr"] = self.recipe.lr * min(1.0, (self.taken + 1) / max(1, self.recipe.warmup))
        count, samples = advantages.shape
        for first in range(0, count, self.at_once):
            some = slice(first, first + self.at_once)
            theirs = made.rows(slice(first * samples, (first + self.at_once) * samples))
            new = replay(self.model, prompts.rows(some), plan, theirs)
            value = self.objective(new, [part.detach() for part in new], theirs, advantages[some])
            (value.sum() * len(advantages[some]) / count).backward()
        self.optimizer.step()


def end_tokens(model: LanguageModel, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Tokens that end a response: the tokenizer's and those of the model's own generation."""
    said = model.generation_config.eos_token_id
    found = {tokenizer.eos_token_id, *(said if isinstance(said, list) else [said])} - {None}
    if not found:
        raise SpecError("neither the tokenizer nor the model's generation settings name an end token; set one.")
    return tuple(sorted(found))


def response_stats(made: Responses) -> Log:
    """Mean length in discrete tokens alone, continuous tokens, and the share that the limit cut."""
    return {
        "length": float(made.lengths.float().mean()),
        "thoughts": made.thoughts.shape[1],
        "cut": float((~made.ended).float().mean()),
    }


def evaluate(model: LanguageModel, tokenizer: Tokenizer, problems: Sequence[Story], plan: Plan, keys: Keys) -> Log:
    """The accuracy of one response to each problem, and what `response_stats` says of all of them together."""
    texts, parts = [], []
    device = next(model.parameters()).device
    for first in range(0, len(problems), AT_ONCE):
        part = [problem.text for problem in problems[first : first + AT_ONCE]]
        made = respond(model, Prompts.of(tokenizer, part, device), plan, random.fold(keys, first))
        texts += made.texts(tokenizer)
        parts.append((len(part), response_stats(made)))
    total = len(problems)
    means = {name: sum(count * said[name] for count, said in parts) / total for name in parts[0][1]}
    return {"accuracy": sum(answers.rewards(texts, [problem.answer for problem in problems])) / total, **means}
