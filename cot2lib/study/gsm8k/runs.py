"""Which trainings of language models the chapter on word problems stands on, per profile.

`paper` is the paper's table, on Qwen3-0.6B and GSM8K. `quick` is the same table on a small model and stories that are
made here, and SmolLM2 on stories of one sum.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from cot2lib.llm.policy import PolicyRecipe
from cot2lib.llm.settings import GSM8K, SMALL, SMOLLM2, LanguageRun, WarmStart
from cot2lib.specs import table
from cot2lib.specs.profiles import SEEDS

LIMITS = {40: 8, 32: 8, 24: 4, 16: 3}  # most tokens of a response, and the continuous ones that MTS has among them
PAPER_LIMITS = {160: 32, 128: 32, 96: 16, 80: 16}
EARLY = 0.3  # share of the training by which all thoughts are there, where they begin with it
# The paper's limit that each of a profile's limits stands for.
BESIDE = {"quick": dict(zip(LIMITS, PAPER_LIMITS)), "paper": {limit: limit for limit in PAPER_LIMITS}}
K = 4  # tokens that a thought is the mean of
QWEN, TESTED = "Qwen/Qwen3-0.6B", 1319  # and GSM8K's test problems
MAIN = {"quick": SMALL, "paper": QWEN}  # whose table a profile makes
THREE = SEEDS[:3]


def small(seeds: Sequence[int] = THREE, limits: Mapping[int, int] = LIMITS) -> list[LanguageRun]:
    """The small model on stories of up to six sums, by limit; a start and a set of stories for each seed."""
    recipes = _recipes(limits, steps=150, prompts=32, group=8, lr=3e-4, warmup=15)
    starts = {seed: WarmStart(sums=6, steps=3000, seed=seed) for seed in seeds}
    how = dict(held_out=300, evaluations=3)
    return [LanguageRun(recipe, starts[seed], seed=seed, **how) for seed in seeds for recipe in recipes]


def early() -> list[LanguageRun]:
    """`small` by MTS at one limit, with thoughts that begin to come at the first step, not in the second half."""
    usual = [run for run in small(limits={24: LIMITS[24]}) if run.recipe.thoughts]
    return [replace(run, recipe=replace(run.recipe, enter=0.0, full=EARLY)) for run in usual]


def pretrained() -> list[LanguageRun]:
    """SmolLM2 on stories of one sum; its last two layers are trained."""
    recipes = _recipes({24: 4}, steps=40, prompts=4, group=8, lr=1e-4)
    start = WarmStart(sums=1, problems=1000)
    how = dict(model=SMOLLM2, layers=2, shots=4, held_out=100, evaluations=1)
    return [LanguageRun(recipe, start, seed=seed, **how) for seed in THREE for recipe in recipes]


def printed(seeds: Sequence[int] = SEEDS[:1], limits: Mapping[int, int] = PAPER_LIMITS) -> list[LanguageRun]:
    """The paper's table; its 24 responses a step are read as six problems with four each."""
    recipes = _recipes(limits, steps=2000, prompts=6, group=4, lr=3e-6, by_token=True, decay=0.01)
    return [LanguageRun(r, model=QWEN, data=GSM8K, held_out=TESTED, seed=seed) for seed in seeds for r in recipes]


def _recipes(limits: Mapping[int, int], **options) -> list[PolicyRecipe]:
    """Discrete CoT and MTS at each limit; MTS has its continuous tokens within the limit, as in the paper."""
    return [
        PolicyRecipe(limit=limit - thoughts, thoughts=thoughts, k=K, **options)
        for limit, continuous in limits.items()
        for thoughts in (0, continuous)
    ]


PROFILES: dict[str, Callable[[], list[LanguageRun]]] = {
    "quick": lambda: [*small(), *early(), *pretrained()],
    "paper": printed,
}


def word_problems(profile: str = "quick") -> list[LanguageRun]:
    """All trainings of a profile.

    Raises:
        SpecError: for an unknown profile.
    """
    return PROFILES[table.profile(profile)]()
