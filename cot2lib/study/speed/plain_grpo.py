"""The opponent of `bench grpo`: GRPO with multi-token sampling as one writes it with Hugging Face's GPT-2.

One model, its key-value cache, a batch of all prompts times all rollouts, and one forward with gradients over
what was sampled. The arithmetic is that of `cot2lib.training.grpo` for the geometric-mean ratio without divergence;
tests hold the two against each other.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib.specs import GRPOSpec

Draw = Callable[[Float[Tensor, "rollout vocab"], int], Int[Tensor, "rollout draw"]]
Densities = tuple[Float[Tensor, "rollout thought draw"], Float[Tensor, "rollout one"]]


def multinomial(chances: Float[Tensor, "rollout vocab"], count: int) -> Int[Tensor, "rollout draw"]:
    """Tokens drawn with replacement."""
    return torch.multinomial(chances, count, replacement=True)


class PlainGRPO:
    """Takes the steps of one run.

    Args:
        spec: a run by `MTS` at temperature 1.
        model: a `transformers.GPT2LMHeadModel` to train.
    """

    def __init__(self, spec: GRPOSpec, model: torch.nn.Module):
        self.spec, self.model = spec, model
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=spec.recipe.lr, weight_decay=spec.recipe.weight_decay, fused=True
        )

    def step(self, prompts: Int[Tensor, "prompt token"], answers: Int[Tensor, " prompt"]) -> None:
        """Roll out, reward, and descend once."""
        group = self.spec.group
        prompts, answers = prompts.repeat_interleave(group, 0), answers.repeat_interleave(group)
        thoughts, answered = self.roll_out(prompts)
        rewards = (answered[:, 0] == answers).float().view(-1, group)
        centred = rewards - rewards.mean(1, keepdim=True)
        gain = (centred / rewards.std(1, correction=0, keepdim=True).clamp(min=1e-12)).flatten()
        new = self.log_densities(prompts, thoughts, answered)
        self.optimizer.zero_grad()
        self.objective(new, tuple(part.detach() for part in new), gain).backward()
        self.optimizer.step()

    @torch.no_grad()
    def roll_out(
        self, prompts: Int[Tensor, "rollout token"], draw: Draw = multinomial
    ) -> tuple[Int[Tensor, "rollout thought draw"], Int[Tensor, "rollout one"]]:
        """The tokens of every thought and the answer."""
        out, thoughts = self.model(input_ids=prompts, use_cache=True), []
        for _ in range(self.spec.outputs - 1):
            thoughts.append(draw(out.logits[:, -1].softmax(-1), self.spec.thought.k))
            fed = self.mean_embedding(thoughts[-1])[:, None]
            out = self.model(inputs_embeds=fed, past_key_values=out.past_key_values, use_cache=True)
        return torch.stack(thoughts, 1), draw(out.logits[:, -1].softmax(-1), 1)

    def mean_embedding(self, tokens: Int[Tensor, "*lead draw"]) -> Float[Tensor, "*lead d"]:
        """The embedding that is fed for a thought."""
        return self.model.transformer.wte(tokens).mean(-2)

    def log_densities(
        self,
        prompts: Int[Tensor, "rollout token"],
        thoughts: Int[Tensor, "rollout thought draw"],
        answered: Int[Tensor, "rollout one"],
    ) -> Densities:
        """Log-densities of what was drawn, in one forward with gradients."""
        inputs = torch.cat([self.model.transformer.wte(prompts), self.mean_embedding(thoughts)], 1)
        scores = self.model(inputs_embeds=inputs, use_cache=False).logits[:, -self.spec.outputs :].log_softmax(-1)
        return scores[:, :-1].gather(-1, thoughts), scores[:, -1].gather(-1, answered)

    def objective(self, new: Densities, old: Densities, gain: Float[Tensor, " rollout"]) -> Float[Tensor, ""]:
        """Minus the clipped surrogate, mean over steps and rollouts."""
        change = torch.cat([(new[0] - old[0]).mean(-1), new[1] - old[1]], 1)
        ratio, gain = change.exp(), gain[:, None]
        return -torch.minimum(ratio * gain, ratio.clamp(1 - self.spec.clip, 1 + self.spec.clip) * gain).mean()
