"""What stands beside the claims on questions about graphs (chapter `search`).

ProsQA is judged on graphs of at most 19 names that are ages: as many as the paper's vocabulary holds, named as the
published files name them. ProntoQA is judged as the paper reads it.
"""

from cot2lib.study.claims.comparisons import Cell, Direction, against
from cot2lib.study.claims.kinds import Kind, NotMeasured
from cot2lib.study.claims.samples import Sample, prontoqa, prosqa
from cot2lib.study.claims.training import accuracy
from cot2lib.study.searches import D_MODELS

CHAPTER = "search"
METHODS = {"cot2": "cot2", "coconut": "coconut", "discrete": "discrete", "nocot": "no-cot"}
COSTLY = NotMeasured("not run: policy gradients on graphs have no runs yet")
UNSAMPLED = NotMeasured("not run: answers of several samples were not counted on graphs yet")


def _above(cot2: Sample, discrete: Sample) -> list[Cell]:
    """CoT2 above discrete CoT at the end, and on average over the training."""
    return [against(cot2, discrete, column) for column in ("last", "curve_mean")]


SEARCHING: dict[str, Kind] = {
    **{f"main-prosqa-{name}": accuracy(prosqa(method), 5, CHAPTER) for name, method in METHODS.items()},
    **{f"main-prontoqa-{name}": accuracy(prontoqa(method), 5, CHAPTER) for name, method in METHODS.items()},
    "convergence-prosqa": Direction(
        CHAPTER, [cell for d in D_MODELS for cell in _above(prosqa("cot2", d), prosqa("discrete", d))]
    ),
    "convergence-prontoqa": Direction(
        CHAPTER, _above(prontoqa("cot2"), prontoqa("discrete")), given="d = 32 is above the threshold"
    ),
    **{
        f"grpo-{task}-{start}-{row}": COSTLY
        for task in ("prosqa", "prontoqa")
        for start in ("cot2", "discrete")
        for row in ("sft", "k6", "k8", "k12")
    },
    **{f"majk-{task}": UNSAMPLED for task in ("prosqa", "prontoqa")},
    "k-larger-better-qa": COSTLY,
    "rl-helps-discrete-more": COSTLY,
}
