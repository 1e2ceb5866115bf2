"""How far trained models are from Assumption 1 (paper, section 4.2): linear, Markov, and unbiased under sampling.

Step t turns the thought z_t = E^T alpha_t into the distribution LM(. | X, z_1..z_t) of step t + 1; the thoughts are
the model's own, made with the rule it is evaluated with. Held-out inputs and the total variation distance TV measure:

* linearity, part (ii): TV between the distribution after the mixture alpha and the alpha-weighted mean of the
  distributions after its tokens; alpha is the model's own distribution at that step, cut and renormalised, or random
  weights on the same tokens (a discrete model has such a distribution too, though it feeds one token of it);
* Markov, part (i): TV between the distributions after the same z_t with the earlier thoughts of another input, or
  with the mean thought in their place;
* consistency: the squared distance between MTS's mean distribution and base CoT2's, unbiased for the number of
  rollouts. It is zero for every K under the assumption;
* the last step made linear: the accuracy of the arg max of the weighted mean of the token-wise distributions.

The paper assumes the property and measures nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.decode import decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.model import GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.study.frame import called, tidy
from cot2lib.thoughts import MTS
from cot2lib.training.data import stack_data

CUT = 1e-3  # weights below it are no part of a thought's support
KIND = ["method", "layers", "d_model"]  # columns
INPUTS_AT_ONCE = 50  # sampled together; part of the draws' keys

Laws = Float[Tensor, "run input vocab"]


@dataclass(frozen=True)
class Probed:
    """A stack's own thoughts on some validation inputs: `weights` as fed, `laws`: distributions of every step."""

    stack: GPT2Stack
    specs: Sequence[RunSpec]
    prompts: Int[Tensor, "run input token"]
    answers: Int[Tensor, "run input"]
    weights: Float[Tensor, "run input thought vocab"]
    laws: Float[Tensor, "run input step vocab"]

    @property
    def seeds(self) -> list[int]:
        return [spec.seed for spec in self.specs]

    @property
    def kind(self) -> tuple[int, int]:
        return self.specs[0].model.layers, self.specs[0].model.d_model


@torch.no_grad()
def probed(stack: GPT2Stack, specs: Sequence[RunSpec], inputs: int) -> Probed:
    """Own thoughts of runs of one shape on so many of each run's validation inputs, evenly spaced.

    SpecError for fewer than two inputs or more than a run has held out, or runs with latent or no thoughts.
    """
    data = stack_data(specs, stack.device)
    held_out = data.held_out.real.sum(1, keepdim=True)
    if not 2 <= inputs <= int(held_out.min()):
        raise SpecError(f"inputs={inputs}: choose 2 to {int(held_out.min())}, the validation inputs of each run.")
    places = torch.arange(inputs, device=held_out.device) * held_out // inputs  # evenly spaced
    index = data.held_out.index.gather(1, places)
    if specs[0].outputs < 2 or specs[0].method not in ("CoT2", "discrete CoT"):
        raise SpecError(f"{specs[0].method} has no mixtures of tokens as thoughts; probe CoT2 or discrete CoT.")
    prompts = data.prompts[index]
    made = decode(stack, prompts, rules(specs[0].thought, specs[0].outputs))
    return Probed(stack, specs, prompts, data.answers[index], made.weights[:, :, :-1], made.logits.softmax(-1))


def of_each(own: Sequence[Probed], measure: Callable[..., pd.DataFrame], *options) -> pd.DataFrame:
    """One of the measures below of several groups of models, tidy, with columns `KIND` and `models`, their name."""
    parts = []
    for one in own:
        shape = dict(zip(("layers", "d_model"), one.kind))
        name = ", ".join(called(column, size) for column, size in shape.items())
        parts.append(measure(one, *options).assign(method=one.specs[0].method, **shape, models=name))
    return tidy(pd.concat(parts, ignore_index=True))


def distance(one: Float[Tensor, "*law vocab"], other: Float[Tensor, "*law vocab"]) -> Float[Tensor, "*law"]:
    return (one - other).abs().sum(-1) / 2


def other_inputs(x: Float[Tensor, "run input *rest"]) -> Float[Tensor, "run input *rest"]:
    """The same quantity of another input, half the inputs away."""
    return x.roll(x.shape[1] // 2, dims=1)


# Assumption 1, step by step


@torch.no_grad()
def linearity(own: Probed) -> pd.DataFrame:
    """Distances from Assumption 1 of every run and step: columns `seed`, `step` (t, of the thought that is fed),
    `linear`, `markov_other`, `markov_mean` (empty at t = 1), `reference` (other inputs)."""
    parts = []
    for step in range(1, own.weights.shape[2] + 1):
        before = own.stack.mix(own.weights[:, :, : step - 1])
        fed, law = own.weights[:, :, step - 1], own.laws[:, :, step]
        cut = supported(own.laws[:, :, step - 1])
        tokenwise = token_laws(own, before, cut > 0)
        found = {
            "linear": distance(law_after(own, before, cut), _mixed(cut, tokenwise)),
            "reference": distance(law, other_inputs(law)),
        }
        if step > 1:
            mean = before.mean(1, keepdim=True).expand_as(before)
            found["markov_other"] = distance(law, law_after(own, other_inputs(before), fed))
            found["markov_mean"] = distance(law, law_after(own, mean, fed))
        means = {name: value.mean(1).tolist() for name, value in found.items()}
        parts.append(pd.DataFrame({"seed": own.seeds, "step": step} | means))
    return pd.concat(parts, ignore_index=True)


def supported(weights: Laws) -> Laws:
    """Weights of at least `CUT`, renormalised."""
    kept = weights * (weights >= CUT)
    return kept / kept.sum(-1, keepdim=True)


def law_after(own: Probed, before: Float[Tensor, "run input thought d"], weights: Laws) -> Laws:
    """LM(. | X, earlier thoughts, E^T weights)."""
    fed = torch.cat([own.stack.embed(own.prompts), before, own.stack.mix(weights[:, :, None])], 2)
    return own.stack(fed, outputs=1)[:, :, 0].softmax(-1)


def token_laws(
    own: Probed, before: Float[Tensor, "run input thought d"], support: Bool[Tensor, "run input vocab"]
) -> Float[Tensor, "run input vocab out"]:
    """LM(. | X, earlier thoughts, e_j) for every token j of each support.

    As many tokens are run for each input as the widest support has; those that are never run have zeros.
    """
    width = int(support.sum(-1).max())
    tokens = support.float().topk(width, dim=-1).indices
    runs, inputs, _ = tokens.shape
    prefix = torch.cat([own.stack.embed(own.prompts), before], 2).repeat_interleave(width, 1)
    fed = torch.cat([prefix, own.stack.embed(tokens.view(runs, inputs * width, 1))], 2)
    laws = own.stack(fed, outputs=1)[:, :, 0].softmax(-1).view(runs, inputs, width, -1)
    table = torch.zeros(runs, inputs, support.shape[-1], laws.shape[-1], device=laws.device)
    return table.scatter(2, tokens[..., None].expand_as(laws), laws)


def _mixed(weights: Laws, laws: Float[Tensor, "run input vocab out"]) -> Laws:
    return (weights[:, :, None] @ laws)[:, :, 0]


@torch.no_grad()
def linear_answers(own: Probed) -> pd.DataFrame:
    """Accuracy (%) with the last step as it is and made linear; columns `seed`, `base`, `linear`."""
    weights = supported(own.laws[:, :, -2])
    mixed = _mixed(weights, token_laws(own, own.stack.mix(own.weights[:, :, :-1]), weights > 0))
    right = lambda laws: (100 * (laws.argmax(-1) == own.answers).float().mean(1)).tolist()
    return pd.DataFrame({"seed": own.seeds, "base": right(own.laws[:, :, -1]), "linear": right(mixed)})


# Sampled thoughts


@torch.no_grad()
def consistency(own: Probed, ks: Sequence[int], rollouts: int) -> pd.DataFrame:
    """Squared bias of MTS's mean distribution against base CoT2's, for each K, run and step (2..m).

    Columns `seed`, `k`, `step`, `gap` (mean over inputs; may fall below 0 where there is no bias). SpecError for fewer
    than two rollouts.
    """
    if rollouts < 2:
        raise SpecError(f"rollouts={rollouts}: give two or more, to compare.")
    parts, inputs = [], torch.arange(own.prompts.shape[1]).split(INPUTS_AT_ONCE)
    for k in ks:
        steps, biases = rules(MTS(k), own.laws.shape[2]), []
        for chunk, index in enumerate(inputs):
            keys = random.run_keys(own.seeds, Site.PROBE, k, chunk, device=own.stack.device)
            made = decode(own.stack, own.prompts[:, index], steps, keys, samples=rollouts)
            laws = made.logits.softmax(-1).unflatten(1, (len(index), rollouts))
            noise = laws.var(2).sum(-1) / rollouts
            biases.append((laws.mean(2) - own.laws[:, index]).square().sum(-1) - noise)  # (run, input, step)
        gaps = torch.cat(biases, 1).mean(1)
        for step in range(2, own.laws.shape[2] + 1):
            parts.append(pd.DataFrame({"seed": own.seeds, "k": k, "step": step, "gap": gaps[:, step - 1].tolist()}))
    return pd.concat(parts).sort_values(["k", "seed", "step"], ignore_index=True)
