"""What stands beside the claims on policy gradients over points of the simplex (chapter `grpo_dirichlet`)."""

from cot2lib.study.claims.comparisons import Direction, against
from cot2lib.study.claims.kinds import Kind, Number
from cot2lib.study.claims.samples import base_entropies, dirichlet, single, untreated
from cot2lib.study.claims.tokens import entropies
from cot2lib.study.claims.training import accuracy
from cot2lib.study.sweeps import BEST_GAMMA, GAMMAS

CHAPTER = "grpo_dirichlet"
LAYERS = {"1l": 1, "2l": 2}
SMALLEST, *OTHERS = GAMMAS


def _best(gamma: float, method: str = "discrete", layers: int = 1) -> Number:
    """Accuracy after training with Dirichlet thoughts: the paper decodes without noise, and takes the best epoch."""
    chosen = dict(last="base_last", best="base_best", split_half="base_split_half", judged="best")
    one_split = method == "discrete"  # from CoT2 every run has a split of its own
    return Number(CHAPTER, dirichlet(gamma, method, layers, one_split=one_split), 1, **chosen)


SIMPLEX: dict[str, Kind] = {
    **{
        f"dirichlet-discrete-{name}-sft": accuracy(single("discrete", 24, layers), 1, "one_split")
        for name, layers in LAYERS.items()
    },
    **{f"dirichlet-discrete-{name}": _best(BEST_GAMMA, layers=layers) for name, layers in LAYERS.items()},
    **{
        claim: kind
        for name, layers in LAYERS.items()
        for claim, kind in entropies(f"dirichlet-discrete-{name}", CHAPTER, base_entropies(layers)).items()
    },
    "dirichlet-cot2-sft": accuracy(single("cot2", 24), 1, "one_split"),
    **{f"dirichlet-cot2-g{gamma:g}": _best(gamma, "cot2") for gamma in OTHERS},
    "gamma-optimum": Direction(
        CHAPTER,
        [
            against(dirichlet(BEST_GAMMA, "cot2"), dirichlet(gamma, "cot2"), "base_best")
            for gamma in OTHERS
            if gamma != BEST_GAMMA
        ],
    ),
    "dirichlet-unscaled": Direction(
        CHAPTER,
        [
            against(untreated(SMALLEST), untreated(BEST_GAMMA), "base_lost"),
            against(dirichlet(SMALLEST, "cot2"), dirichlet(BEST_GAMMA, "cot2"), "base_lost"),
        ],
        given="unstable training is that whose last epoch loses more of the best, by base decoding",
    ),
}
