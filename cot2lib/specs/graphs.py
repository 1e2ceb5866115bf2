"""The two ways of training models on questions about graphs, and their run specs.

The paper states batch, rate, optimiser and sizes of the first; 50 passes over the data are COCONUT's, and weight decay
and dropout are what its public code for MNNS leaves on. The second one comes from a pilot study that tried two rates
and two scales of embeddings, with CoT2 alone and on graphs that are not used here. It serves every method alike.
"""

from dataclasses import dataclass, replace

from cot2lib.specs.policy import GRPOSpec
from cot2lib.specs.profiles import METHODS, PROFILES, check_method, epoch_steps, profile
from cot2lib.specs.supervised import RunSpec
from cot2lib.tasks import ProsQA, Task
from cot2lib.thoughts import MTS
from cot2lib.training.settings import GPT2_SD, Model, Recipe


@dataclass(frozen=True)
class GraphProfile:
    """One recipe for questions about graphs; the authors' is as far as the paper states it.

    Attributes:
        recipe: for the published 17,886 training graphs of ProsQA.
        heads, embedding_sd: of the model.
        passes: how often a run sees its training data, evaluated after each pass; None for the recipe's steps. The
            paper takes 50 from COCONUT (app. B.2).
    """

    recipe: Recipe
    heads: int
    embedding_sd: float
    passes: int | None = None

    def of(self, task: Task) -> Recipe:
        """The recipe in steps for a task's number of questions."""
        each = epoch_steps(task, self.recipe.batch)
        return replace(self.recipe, steps=self.passes * each, evaluate_every=each) if self.passes else self.recipe


GRAPHS = {
    "paper": GraphProfile(Recipe(14_000, 64, 1e-4, 280, weight_decay=0.01, dropout=0.1), 4, GPT2_SD, passes=50),
    "quick": GraphProfile(Recipe(20_000, 32, 3e-3, 400, schedule="cosine", warmup=1000), 2, 0.15),
}


def graph_spec(
    method: str = "cot2",
    profile_name: str = "quick",
    *,
    task: Task = ProsQA(),
    d_model: int = 32,
    layers: int = 4,
    heads: int | None = None,
    seed: int = 42,
    **recipe,
) -> RunSpec:
    """One run of a method on questions about graphs.

    Every method is scored on its outputs alone, and its prompt ends in the root.

    Args:
        method: "cot2", "discrete", "no-cot", or "coconut".
        profile_name: "paper" or "quick".
        task: what to learn.
        d_model, layers: of the model.
        heads: by default the profile's.
        seed: see `cot2lib.specs.supervised.RunSpec`.
        **recipe: fields of `cot2lib.training.settings.Recipe` to override.

    Raises:
        SpecError: for an unknown method or profile.
    """
    profile(profile_name)
    chosen = GRAPHS[profile_name]
    check_method(method)
    supervision, training = PROFILES["quick"].formats[method], replace(chosen.of(task), **recipe)
    if supervision.feeding == "stages" and training.schedule == "cosine":
        training = replace(training, cycles=task.steps)
    return RunSpec(
        recipe=training,
        task=task,
        model=Model(d_model, layers, heads or chosen.heads, embedding_sd=chosen.embedding_sd),
        supervision=replace(supervision, arrow=False),
        thought=METHODS[method],
        seed=seed,
    )


@dataclass(frozen=True)
class GraphPolicy:
    """One recipe of policy gradients on graphs.

    Attributes:
        lr, lr_6: learning rates; 1e-5, and 1e-6 for K = 6 (app. B.4).
        batch: questions per step; 16 as in the paper's other runs.
        passes: over the training graphs; not stated.
        evaluations: how often a run is evaluated.
    """

    lr: float
    lr_6: float
    batch: int = 16
    passes: int = 1
    evaluations: int = 10


GRAPH_POLICIES = {"paper": GraphPolicy(1e-5, 1e-6), "quick": GraphPolicy(1e-4, 1e-4)}


def graph_grpo(start: RunSpec, profile_name: str = "quick", k: int = 8) -> GRPOSpec:
    """One policy-gradient run on graphs with thoughts of `k` tokens; its start may be of the other recipe.

    Raises:
        SpecError: for an unknown profile, or what `GRPOSpec` does not take.
    """
    profile(profile_name)
    chosen = GRAPH_POLICIES[profile_name]
    steps = chosen.passes * epoch_steps(start.task, chosen.batch)
    recipe = Recipe(
        steps=steps,
        batch=chosen.batch,
        lr=chosen.lr_6 if k == 6 else chosen.lr,
        evaluate_every=steps // chosen.evaluations,
        weight_decay=0.01,
    )
    return GRPOSpec(recipe, start, MTS(k))
