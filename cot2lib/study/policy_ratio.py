"""Chapter `policy_ratio`: gradients of small models under both policy ratios, and how far ratios go from one.

Rewards and gradients are exact where all thoughts can be listed (`cot2lib.policy_gradient`), else sampled.
With one update per batch and no dropout every ratio is one, whatever clip range is chosen. Dropout in the current
policy alone, as in the authors' code, moves it; this is measured on models that chapters ship.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
import seaborn as sns
import torch
from jaxtyping import Float
from matplotlib.ticker import NullLocator
from torch import Tensor

from cot2lib import losses, policy_gradient
from cot2lib.decode import ANSWER, decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.frozen import positive
from cot2lib.kit.random import Site
from cot2lib.model import Dropout, GPT2Stack
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import shortened, spec
from cot2lib.study import series
from cot2lib.study.frame import at, called
from cot2lib.study.look import Shown, panels, ticked
from cot2lib.study.report import recipe
from cot2lib.study.series import LOOKS, SKY
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS
from cot2lib.training.data import stack_data
from cot2lib.training.grpo import replayed
from cot2lib.training.supervised import SupervisedTrainer

TASK = MNNS(1, 3, 2)
GROUP = 8  # samples per prompt
CLIP, PROMPTS = 0.1, 32  # of the measurement with dropout
LISTED = 3  # largest K whose thoughts are all listed
LANE_BLOCKS = 8  # for standard errors by the jackknife
A, B = 0.5, 0.3  # of the first small example
VOCAB, UPDATES, TIME = 8, 2000, 20.0  # tokens, updates, and updates times learning rate of the second
SHOWN = ("geometric", "product")  # "per-draw" has the product's gradient at equal weights

MEASURES = {
    "cosine": "cosine with the gradient of J",
    "balance": "thought part / answer part",
    "noise": "noise of a batch / signal",
}
DRAWN = 200  # updates of an example that are drawn

Starts = tuple[list[RunSpec], GPT2Stack]


def starts(seeds: Sequence[int], epochs: int) -> Starts:
    """Discrete models of two digits of 1-3, one layer, one head, d = 16, trained here for so many epochs."""
    specs = [shortened(spec("discrete", task=TASK, d_model=16, layers=1, heads=1, seed=s), epochs) for s in seeds]
    trainer = SupervisedTrainer(specs)
    trainer.train()
    return specs, trainer.stack


# Expected gradients


def exact_gradients(start: Starts, ks: Sequence[int]) -> pd.DataFrame:
    """Every ratio's expected gradient beside that of J, for each K whose thoughts can be listed and each model.

    Columns `k`, `ratio`, `seed`; `cosine` beside the gradient of J; `balance`, the thought part's length over the
    answer part's. SpecError if no K can be listed.
    """
    if not any(1 <= k <= LISTED for k in ks):
        raise SpecError(
            f"exact_ks={list(ks)}: give at least one from 1 to {LISTED}, whose thoughts can all be listed."
        )
    specs, stack = start
    parts = []
    for k in (k for k in ks if k <= LISTED):
        law = policy_gradient.law(stack, TASK, MTS(k))
        thought, answer = (policy_gradient.gradient(value.mean(1), stack) for value in policy_gradient.parts(law))
        goal = policy_gradient.gradient(law.success.mean(1), stack)
        for ratio, share in zip(SHOWN, (1 / k, 1.0)):
            columns = {
                "cosine": torch.cosine_similarity(share * thought + answer, goal),
                "balance": share * thought.norm(dim=1) / answer.norm(dim=1),
            }
            seeds = [spec.seed for spec in specs]
            parts.append(pd.DataFrame(columns).astype(float).assign(seed=seeds, k=k, ratio=ratio))
    return pd.concat(parts, ignore_index=True)


def sampled_gradients(start: Starts, ks: Sequence[int], lanes: int) -> pd.DataFrame:
    """The same of the first model from many sampled batches, with standard errors; rows by K, ratio and `measure`.

    Measures: `cosine`, beside the mean gradient of the product; `balance`, as in `exact_gradients`; `noise`, one
    batch's standard deviation over its expected length. SpecError for too few lanes.
    """
    if lanes < 2 * LANE_BLOCKS:
        raise SpecError(f"lanes={lanes}: standard errors need at least {2 * LANE_BLOCKS}.")
    specs, stack = start
    one, rows, inner = stack.select([0]), [], policy_gradient.inner
    block = torch.arange(lanes) * LANE_BLOCKS // lanes
    length = lambda a: inner(a, a).clamp(min=0).sqrt()  # of the expectation, without what noise adds to the mean's
    spread = lambda a: (a.square().sum() / len(a) / inner(a, a) - 1).clamp(min=0).sqrt()

    def jackknife(measure: Callable[..., Tensor], *gradients: Float[Tensor, "lane parameter"]) -> tuple[float, float]:
        left = torch.stack([measure(*(g[block != b] for g in gradients)) for b in range(LANE_BLOCKS)])
        error = ((LANE_BLOCKS - 1) / LANE_BLOCKS * (left - left.mean()).square().sum()).sqrt()
        return float(measure(*gradients)), float(error)

    for k in ks:
        found = policy_gradient.sampled_gradients(one, TASK, MTS(k), SHOWN, GROUP, lanes=lanes, seed=specs[0].seed)
        right = found["product"].sum(0)
        for ratio, (thought, answer) in found.items():
            measured = {
                "cosine": jackknife(lambda a, b: inner(a, b) / (length(a) * length(b)), thought + answer, right),
                "balance": jackknife(lambda a, b: length(a) / length(b), thought, answer),
                "noise": jackknife(spread, thought + answer),
            }
            rows += [(k, ratio, name, value, error) for name, (value, error) in measured.items()]
    return pd.DataFrame(rows, columns=["k", "ratio", "measure", "value", "error"])


def gradients(listed: pd.DataFrame, sampled: pd.DataFrame, finding: str = "") -> Shown:
    """Direction, balance and noise of both ratios' gradients over K: exact ones as lines, sampled ones as marks."""
    known = listed.melt(["k", "ratio", "seed"], ["cosine", "balance"], "measure")
    figure, axes = panels(1, len(MEASURES), width=9.4, height=3.0)
    for axis, (measure, label) in zip(axes[0], MEASURES.items()):
        for ratio, points in at(sampled, measure=measure).groupby("ratio"):
            colour, marker, _ = LOOKS["ratio"][ratio]
            exact = at(known, measure=measure, ratio=ratio).pivot(index="k", columns="seed", values="value")
            axis.plot(exact, color=colour, linewidth=1.1, alpha=0.5)
            axis.errorbar(
                points["k"], points["value"], 2 * points["error"], color=colour, fmt=marker, markersize=5, capsize=2,
                linestyle="--" if measure == "noise" else "none", linewidth=1.2, label=called("ratio", ratio),
            )  # fmt: skip
        ticked([axis], sorted(sampled["k"].unique()), xlabel="tokens K", ylabel=label)
    axes[0, 1].set(yscale="log", yticks=[0.1, 0.3, 1, 3, 10], yticklabels=["0.1", "0.3", "1", "3", "10"])
    axes[0, 1].yaxis.set_minor_locator(NullLocator())
    axes[0, 2].set_ylim(bottom=0)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    return Shown(figure, pd.concat([known, sampled], ignore_index=True), finding)


# Examples of what a factor 1/K on a thought's gradient does, small enough to follow exactly: the gradient of the ratio
# of Section 5.1, the geometric mean over K draws, is 1/K of the likelihood ratio's. Neither example is in the paper.


def shares(ks: Sequence[int], ratio: str) -> Float[Tensor, " k"]:
    """The gradient of a `ratio` over that of the likelihood ratio, for a thought of K draws at equal weights."""
    counts = torch.tensor(ks, dtype=torch.float64)
    return 1 / counts if ratio == "geometric" else torch.ones_like(counts)


def reward(theta: Float[Tensor, "*lead"]) -> Float[Tensor, "*lead"]:
    """J of the example in which thought and answer share the parameter theta.

    Each draw is token 1 with probability sigma(theta), and q is the share of token 1 among the draws. The answer is
    right with probability a (1 - q) + b sigma(theta). So J = a - (a - b) sigma(theta), and highest without token 1.
    """
    return A - (A - B) * theta.sigmoid()


def climb(ks: Sequence[int], ratio: str, updates: int) -> Float[Tensor, "step k"]:
    """J at theta = 0 and after each update along GRPO's expected gradient, with one update per batch.

    The gradient has a thought part -a sigma' and an answer part b sigma'. A factor 1/K on the thought part reverses
    the sign of the sum for K > a/b: with the geometric mean the expected reward falls.
    """
    slopes = B - A * shares(ks, ratio)
    theta = torch.zeros(len(ks), dtype=torch.float64)
    rewards = [reward(theta)]
    for _ in range(updates):
        theta = theta + slopes * theta.sigmoid() * (-theta).sigmoid()
        rewards.append(reward(theta))
    return torch.stack(rewards)


def entropies(ks: Sequence[int], ratio: str, time: float) -> Float[Tensor, " k"]:
    """Final entropies (nat) of one of a thought's K draws, whose reward is the share of one right token among them.

    Training starts uniform over `VOCAB` tokens and follows the expected gradient. `time` is the number of updates
    times the learning rate, the same for every K. The thought is all there is, and with the geometric mean it learns K
    times more slowly: by the ratio alone, entropies fall less for larger K. The paper reads that as exploration.
    """
    right = torch.zeros(VOCAB, dtype=torch.float64)
    right[0] = 1.0
    rates = shares(ks, ratio)[:, None] * time / UPDATES
    logits = torch.zeros(len(ks), VOCAB, dtype=torch.float64)
    for _ in range(UPDATES):
        alpha = logits.softmax(-1)  # (k, vocab)
        logits = logits + rates * alpha * (right - alpha[:, :1])
    return torch.distributions.Categorical(logits=logits).entropy()


def example_climbs(ks: Sequence[int], updates: int) -> pd.DataFrame:
    """Expected reward `J` after each `update`, by `k` and `ratio`, where thought and answer share one parameter."""
    positive(**{f"example_ks[{place}]": k for place, k in enumerate(ks)})
    climbs = [pd.DataFrame(climb(ks, ratio, updates).numpy(), columns=list(ks)) for ratio in SHOWN]
    long = [part.rename_axis("update").melt(var_name="k", value_name="J", ignore_index=False) for part in climbs]
    return pd.concat([part.reset_index().assign(ratio=ratio) for part, ratio in zip(long, SHOWN)], ignore_index=True)


def example_ends(climbs: pd.DataFrame) -> pd.DataFrame:
    """Reward after all updates of `climbs`, and the entropy (nat) of a draw after a fixed time where thought and
    answer share no parameter: columns `k`, `ratio`, `J`, `entropy`."""
    ends = climbs[climbs["update"] == climbs["update"].max()][["k", "ratio", "J"]].reset_index(drop=True)
    ks = ends["k"].unique().tolist()
    return ends.assign(entropy=torch.cat([entropies(ks, ratio, TIME) for ratio in SHOWN]).tolist())


def examples(climbs: pd.DataFrame, ends: pd.DataFrame, finding: str = "") -> Shown:
    """Expected reward over updates where thought and answer share a parameter; final entropy where they do not."""
    figure, axes = panels(1, 2, width=8.6, height=3.2)
    left, right = axes[0]
    kept = np.unique(np.geomspace(1, climbs["update"].max(), DRAWN).round())
    data = climbs[climbs["update"].isin(kept)]
    alike = at(data, ratio="product", k=data["k"].max())
    sns.lineplot(alike, x="update", y="J", linewidth=5, alpha=0.4, color=SKY, label="product, every K", ax=left)
    rooted = at(data, ratio="geometric")
    named = rooted.assign(series=rooted["k"].map("geometric mean, K = {}".format))
    sns.lineplot(named, x="update", y="J", hue="series", style="series", palette="flare", ax=left)
    left.axhline(climbs.loc[climbs["update"] == 0, "J"].iloc[0], color="black", linewidth=1, ls=":", label="start")
    left.set(xscale="log", ylabel="expected reward J")
    marks, apart = series.told_apart(ends, "ratio")
    shown = {name: apart[name] for name in ("hue", "hue_order", "palette", "markers")}
    sns.lineplot(marks, x="k", y="entropy", style="series", style_order=apart["hue_order"], ax=right, **shown)
    right.legend(frameon=False, loc="center right")
    right.axhline(np.log(VOCAB), color="black", linewidth=1, linestyle=":")
    ticked([right], sorted(ends["k"].unique()), xlabel="tokens K")
    right.set(ylabel="entropy of a draw (nat)", ylim=(0, None))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    left.get_legend().remove()
    return Shown(figure, pd.concat([data, ends.drop(columns="J")], ignore_index=True), finding)


# Dropout in the current policy alone


def dropout(models: dict[str, Starts], ks: Sequence[int], probability: float) -> pd.DataFrame:
    """`one_sided_dropout` of each `profile`'s models, by `k`, and `divided`: by the product with logits over K."""
    if not 0 <= probability < 1:
        raise SpecError(f"dropout={probability}: choose 0 <= dropout < 1.")
    parts = []
    for (profile, (specs, stack)), k in product(models.items(), ks):
        for divided, ratios in ((False, losses.RATIOS), (True, ["product"])):
            found = one_sided_dropout(stack, specs, MTS(k, float(k) if divided else 1.0), ratios, probability)
            parts.append(found.assign(divided=divided, profile=profile, k=k))
    return pd.concat(parts, ignore_index=True)


@torch.no_grad()
def one_sided_dropout(
    stack: GPT2Stack, specs: Sequence[RunSpec], thought: MTS, ratios: Sequence[str], probability: float
) -> pd.DataFrame:
    """Ratios at equal weights if the current policy alone drops out, on held-out prompts of trained models.

    One row per ratio and run: `ratio`, `seed`; `thoughts`, `answers`, shares of ratios outside 1 - clip .. 1 + clip.
    `PROMPTS` of each run are rolled out `GROUP` times.
    """
    data, seeds = stack_data(specs, stack.device), [spec.seed for spec in specs]
    index = data.held_out.index[:, :PROMPTS]
    inputs, padding, steps = data.prompts[index], data.padding_of(index), rules(thought, specs[0].outputs, ANSWER)
    rollout = decode(stack, inputs, steps, random.run_keys(seeds, Site.ROLLOUT), padding, GROUP)
    keys = random.run_keys(seeds, Site.DROPOUT, device=stack.device)
    counter = stack.dropout_counter(index.shape[1] * GROUP, inputs.shape[2] + len(steps))
    dropout = Dropout(keys, counter, probability) if probability else None
    old, new = (replayed(stack, thought, inputs, padding, rollout, mask) for mask in (None, dropout))
    parts = []
    for ratio in ratios:
        moved = [losses.outside_clip(losses.log_ratios(*pair, ratio), CLIP) for pair in zip(new, old)]
        thoughts, answers = (part.double().mean((1, 2, 3)).tolist() for part in moved)
        parts.append(pd.DataFrame({"ratio": ratio, "seed": seeds, "thoughts": thoughts, "answers": answers}))
    return pd.concat(parts, ignore_index=True)


def dropout_table(found: pd.DataFrame) -> pd.DataFrame:
    """Shares (%) of ratios outside the clip range, mean and range over seeds, by models, rule and K."""
    divided = found["divided"].map({True: ", logits / K", False: ""})
    rules = [called("ratio", ratio) for ratio in found["ratio"]] + divided
    named = found.assign(models=found["profile"].map(recipe), rule=rules)
    long = named.melt(["models", "rule", "k", "seed"], ["thoughts", "answers"], "step")
    shown = lambda shares: "{:.0f} ({:.0f}\N{EN DASH}{:.0f})".format(*(100 * shares.agg(["mean", "min", "max"])))
    wide = long.groupby(["models", "rule", "step", "k"], sort=False)["value"].agg(shown).unstack(["step", "k"])
    wide.columns = [f"{step}, K = {k}" for step, k in wide.columns]
    return wide.reset_index()
