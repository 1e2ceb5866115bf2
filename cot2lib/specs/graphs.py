"""The two ways of training models on questions about graphs, and their run specs.

The paper states batch, rate, optimiser and sizes of the first; 50 passes over the data are COCONUT's. It says "no
weight decay"; decay .01 and dropout .1 are what its public code for MNNS leaves on. Both recipes score the outputs
alone, as the paper's equations do. The second one comes from a pilot study that tried two rates and two scales of
embeddings, with CoT2 alone and on graphs that are not used here. It serves every method alike.
"""

from dataclasses import dataclass, replace

from cot2lib.errors import SpecError
from cot2lib.model.stack import GPT2_SD
from cot2lib.specs.policy import GRPOSpec
from cot2lib.specs.profiles import METHODS, PROFILES, epoch_steps, profile, staged
from cot2lib.specs.supervised import RunSpec
from cot2lib.tasks import ProsQA, Task
from cot2lib.thoughts import MTS
from cot2lib.training.settings import Model, Recipe


@dataclass(frozen=True)
class GraphProfile:
    """One recipe for questions about graphs.

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


GRAPH_METHODS = ("cot2", "discrete", "no-cot", "coconut")
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
    if method not in GRAPH_METHODS:
        raise SpecError(f"method {method!r}: on graphs choose one of {', '.join(GRAPH_METHODS)}.")
    supervision = PROFILES["quick"].formats[method]
    training = staged(replace(chosen.of(task), **recipe), supervision, task)
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
        lr, lr_6: learning rate, and that of K = 6; the paper's are 1e-5 and 1e-6 (app. B.4).
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
        evaluate_every=max(1, steps // chosen.evaluations),
        weight_decay=0.01,
    )
    return GRPOSpec(recipe, start, MTS(k))
