"""Exact and sampled gradients of small models under both policy ratios, and how far ratios go from one."""

from collections.abc import Callable, Sequence
from itertools import product

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib import losses, policy_gradient
from cot2lib.errors import SpecError
from cot2lib.kit.fields import positive
from cot2lib.model import GPT2Stack
from cot2lib.specs import GRPOSpec, Recipe, RunSpec
from cot2lib.specs.profiles import shortened, spec
from cot2lib.study.policy_ratio import clipping
from cot2lib.tasks import MNNS
from cot2lib.theory.one_parameter import Shared, entropies
from cot2lib.thoughts import MTS
from cot2lib.training.supervised import SupervisedTrainer

TASK = MNNS(1, 3, 2)
GROUP = 8  # samples per prompt
LISTED = 3  # largest K whose thoughts are all listed
LANE_BLOCKS = 8  # for standard errors by the jackknife
TIME = 20.0  # updates times learning rate of the second small example
SHOWN = ("geometric", "product")  # "per-draw" has the product's gradient at equal weights
UPDATES = Recipe(steps=12, batch=8, lr=1e-3, evaluate_every=12)

Starts = tuple[list[RunSpec], GPT2Stack]


def starts(seeds: Sequence[int], epochs: int) -> Starts:
    """Discrete models of two digits of 1-3, one layer, one head, d = 16, trained here for so many epochs.

    Raises:
        SpecError: without seeds or epochs.
    """
    if not seeds:
        raise SpecError("no seeds for the small models; give at least one, say [42].")
    specs = [shortened(spec("discrete", task=TASK, d_model=16, layers=1, heads=1, seed=s), epochs) for s in seeds]
    trainer = SupervisedTrainer(specs)
    trainer.train()
    return specs, trainer.stack


# Expected gradients


def exact_gradients(start: Starts, ks: Sequence[int]) -> pd.DataFrame:
    """Every ratio's expected gradient beside that of J, for each K whose thoughts can be listed and each model.

    Columns `k`, `ratio`, `seed`; `cosine` beside the gradient of J; `balance`, the thought part's length over the
    answer part's; `J`. Raises SpecError if no K can be listed.
    """
    if not any(1 <= k <= LISTED for k in ks):
        raise SpecError(
            f"exact_ks={list(ks)}: give at least one from 1 to {LISTED}, whose thoughts can all be listed."
        )
    specs, stack = start
    return pd.concat([_listed(stack, [s.seed for s in specs], k) for k in ks if k <= LISTED], ignore_index=True)


def _listed(stack: GPT2Stack, seeds: Sequence[int], k: int) -> pd.DataFrame:
    """`exact_gradients` of one K."""
    law = policy_gradient.law(stack, TASK, MTS(k))
    thought, answer = (policy_gradient.gradient(value.mean(1), stack) for value in policy_gradient.parts(law))
    parts = []
    for ratio, share in zip(SHOWN, (1 / k, 1.0)):
        columns = {
            "cosine": torch.cosine_similarity(share * thought + answer, thought + answer),
            "balance": share * thought.norm(dim=1) / answer.norm(dim=1),
            "J": policy_gradient.expected_reward(law).detach(),
        }
        parts.append(pd.DataFrame(columns).astype(float).assign(seed=seeds, k=k, ratio=ratio))
    return pd.concat(parts, ignore_index=True)


def sampled_gradients(start: Starts, ks: Sequence[int], lanes: int) -> pd.DataFrame:
    """The same of the first model from many sampled batches, with standard errors; rows by K, ratio and `measure`.

    Measures: `cosine` and `balance` as in `exact_gradients`; `noise`, one batch's standard deviation over its expected
    length; `along`, where thoughts can be listed, the mean's length along the gradient of J in units of it,
    over (G-1)/G: one if unbiased. SpecError for too few lanes.
    """
    if lanes < 2 * LANE_BLOCKS:
        raise SpecError(f"lanes={lanes}: standard errors need at least {2 * LANE_BLOCKS}.")
    specs, stack = start
    one, rows = stack.select([0]), []
    for k in ks:
        found = policy_gradient.sampled_gradients(one, TASK, MTS(k), SHOWN, GROUP, lanes=lanes, seed=specs[0].seed)
        right = found["product"].sum(0)
        if k <= LISTED:
            reward = policy_gradient.expected_reward(policy_gradient.law(one, TASK, MTS(k)))
            goal = policy_gradient.gradient(reward, one)[0] * (1 - 1 / GROUP)
        for ratio, mine in found.items():
            whole = mine.sum(0)
            measured = {
                "cosine": _jackknife(_cosine, whole, right),
                "balance": _jackknife(lambda thought, answer: _length(thought) / _length(answer), *mine),
                "noise": _jackknife(_noise, whole),
            }
            if k <= LISTED:
                along = whole @ goal / goal.square().sum()
                measured["along"] = float(along.mean()), float(along.std()) / lanes**0.5
            rows += [(k, ratio, name, value, error) for name, (value, error) in measured.items()]
    return pd.DataFrame(rows, columns=["k", "ratio", "measure", "value", "error"])


def _length(a: Float[Tensor, "lane parameter"]) -> Float[Tensor, ""]:
    """Length of an expected gradient, without what noise adds to that of the mean."""
    return policy_gradient.inner(a, a).clamp(min=0).sqrt()


def _cosine(a: Float[Tensor, "lane parameter"], b: Float[Tensor, "lane parameter"]) -> Float[Tensor, ""]:
    return policy_gradient.inner(a, b) / (_length(a) * _length(b))


def _noise(a: Float[Tensor, "lane parameter"]) -> Float[Tensor, ""]:
    """Standard deviation of one lane's gradient over the expected length."""
    return (a.square().sum() / len(a) / policy_gradient.inner(a, a) - 1).clamp(min=0).sqrt()


def _jackknife(
    measure: Callable[..., Float[Tensor, ""]], *gradients: Float[Tensor, "lane parameter"]
) -> tuple[float, float]:
    """A measure of lanes of gradients, and its standard error from leaving out one block of lanes at a time."""
    lanes = len(gradients[0])
    block = torch.arange(lanes) * LANE_BLOCKS // lanes
    left = torch.stack([measure(*(g[block != b] for g in gradients)) for b in range(LANE_BLOCKS)])
    error = ((LANE_BLOCKS - 1) / LANE_BLOCKS * (left - left.mean()).square().sum()).sqrt()
    return float(measure(*gradients)), float(error)


# Examples of one parameter


def example_climbs(ks: Sequence[int], updates: int) -> pd.DataFrame:
    """Expected reward `J` after each `update`, by `k` and `ratio`, where thought and answer share one parameter."""
    positive(**{f"example_ks[{place}]": k for place, k in enumerate(ks)})
    parts = []
    for ratio in SHOWN:
        rewards = pd.DataFrame(Shared().climb(ks, ratio, updates).numpy(), columns=list(ks))
        parts.append(rewards.rename_axis("update").melt(var_name="k", value_name="J", ignore_index=False))
    return pd.concat([part.reset_index().assign(ratio=ratio) for part, ratio in zip(parts, SHOWN)], ignore_index=True)


def example_ends(climbs: pd.DataFrame) -> pd.DataFrame:
    """Ends of two examples of one parameter, by K and ratio: columns `k`, `ratio`, `J`, `entropy` (nat).

    `J` is the expected reward after all updates of `climbs`, where thought and answer share the parameter; `entropy`
    that of a thought after a fixed time where they do not.
    """
    ends = climbs[climbs["update"] == climbs["update"].max()][["k", "ratio", "J"]].reset_index(drop=True)
    ks = ends["k"].unique().tolist()
    return ends.assign(entropy=torch.cat([entropies(ks, ratio, TIME) for ratio in SHOWN]).tolist())


# Dropout in the current policy alone


def dropout(models: dict[str, Starts], ks: Sequence[int], probability: float) -> pd.DataFrame:
    """`clipping.one_sided_dropout` of each profile's models, by K.

    Columns besides: `profile`, `k`, and `divided`, whether logits were divided by K (under the product alone).

    Raises:
        SpecError: for a probability outside 0..1.
    """
    if not 0 <= probability < 1:
        raise SpecError(f"dropout={probability}: choose 0 <= dropout < 1.")
    parts = []
    for (profile, (specs, stack)), k in product(models.items(), ks):
        plain = clipping.one_sided_dropout(stack, specs, MTS(k), probability=probability)
        over_k = clipping.one_sided_dropout(stack, specs, MTS(k, float(k)), ["product"], probability)
        parts += [part.assign(divided=part is over_k, profile=profile, k=k) for part in (plain, over_k)]
    return pd.concat(parts, ignore_index=True)


# Several updates on a batch


def several_updates(start: Starts, k: int, updates: Sequence[int], recipe: Recipe = UPDATES) -> pd.DataFrame:
    """`clipping.several_updates` by ratio and number of updates per batch; equally many batches for all.

    Raises:
        SpecError: for a K whose thoughts are too many to list.
    """
    if not 1 <= k <= LISTED:
        raise SpecError(f"updates_k={k}: choose 1 to {LISTED}, whose thoughts can all be listed.")
    specs, stack = start
    parts = []
    for ratio, count in product(losses.RATIOS, updates):
        runs = [GRPOSpec(recipe, one, MTS(k), ratio, updates=count) for one in specs]
        parts.append(clipping.several_updates(runs, stack).assign(ratio=ratio, updates=count))
    return pd.concat(parts, ignore_index=True)
