"""Tables of what is printed on policy gradients: gains in the paper's own tables, recipes of text and code."""

import pandas as pd

from cot2lib.specs.profiles import POLICIES
from cot2lib.study.printed import paper_value
from cot2lib.study.report import recipe

SMALL, LARGE = (1, 3, 6), (6, 8, 12)  # tokens K of the paper's tables
GAINS = {  # stems of the claims, and tokens K
    "MNNS, discrete CoT, d = 24": ("grpo-mts-d24", SMALL),
    "MNNS, discrete CoT, d = 32": ("grpo-mts-d32", SMALL),
    "ProsQA, discrete CoT": ("grpo-prosqa-discrete", LARGE),
    "ProntoQA, discrete CoT": ("grpo-prontoqa-discrete", LARGE),
    "ProsQA, CoT2": ("grpo-prosqa-cot2", LARGE),
    "ProntoQA, CoT2": ("grpo-prontoqa-cot2", LARGE),
}


def gains(model: str) -> pd.Series:
    """The paper's accuracies after policy gradients less that of the start (points), by K."""
    stem, ks = GAINS[model]
    return pd.Series({k: paper_value(f"{stem}-k{k}") - paper_value(f"{stem}-sft") for k in ks})


def paper_gains() -> pd.DataFrame:
    """Gains (points) by policy gradients over each start in the paper's tables, for every K and on average."""
    rows = []
    for model, (stem, _) in GAINS.items():
        gained = gains(model)
        each = ", ".join(f"{gain:.2f} (K = {k})".replace("-", "\N{MINUS SIGN}") for k, gain in gained.items())
        before = paper_value(f"{stem}-sft")
        rows.append({"model": model, "before (%)": before, "gains (points)": each, "mean gain": gained.mean()})
    return pd.DataFrame(rows)


# Recipes of policy gradients

SOURCES = {  # field: the paper's text, the public code
    "batch": ("16 prompts (app. B.4)", "16"),
    "epochs": ("not stated", "100 in the launch script, 50 by default"),
    "lr": ("5e-5 (app. B.4)", "5e-6"),
    "dirichlet_lr": ("1e-5 (app. B.4)", "5e-6"),
    "cot2_lr": ("1e-6 (app. B.4)", "5e-6"),
    "weight_decay": ("0.01 (app. B.4)", "0.01"),
}
NAMES = {
    "batch": "prompts per step",
    "lr": "learning rate, MTS",
    "dirichlet_lr": "learning rate, Dirichlet, discrete start",
    "cot2_lr": "learning rate, Dirichlet, CoT2 start",
    "weight_decay": "weight decay",
}
CHOICES = [  # what, the paper's text, the public code, both recipes of this book
    ("rollouts per prompt G", "8 (app. B.4)", "8", "8"),
    ("clip range", "0.1 (app. B.4)", "0.1", "0.1"),
    (
        "weight of the divergence",
        "0, in a few runs 0.1",
        "0 in the launch script, 0.1 by default",
        "0; 0.1 as a variant",
    ),
    ("updates per batch", "1 (app. B.4)", "1", "1"),
    ("tokens K of MTS", "1, 3, 6 (Table 1)", "2, 3, 6 in the launch script", "1, 3, 6; 12 as a variant"),
    (
        "ratio of a thought",
        "geometric mean (sec. 5.1)",
        "by default the product, with logits / K",
        "geometric mean; the others as variants",
    ),
    ("dropout", "not mentioned", "0.1 in the current policy, 0 in the old one", "0; one-sided as a variant"),
    ("gradient of the answer's divergence", "part of the objective", "none", "part of the objective"),
    ("start of MTS", "discrete CoT (Table 1)", "CoT2; the discrete start is commented out", "discrete CoT"),
    ("scale of Dirichlet thoughts", "20 best (app. C.2)", "1", "1, 10, 20, 40"),
    (
        "tiny Dirichlet weights",
        "not mentioned",
        "below 1e-3 dropped, others raised",
        "share one entry; others as variants",
    ),
    ("decoding after MTS", "same sampler", "same sampler, with logits / K", "same sampler, and two others"),
    ("decoding after Dirichlet", "base", "K sampled tokens with logits / K", "base, and two others"),
    ("evaluation before the first step", "in the tables", "none", "yes"),
]


def policy_recipes() -> pd.DataFrame:
    """Recipes of policy gradients: the paper's text, its public code, and both recipes of this book."""
    rows = [
        (NAMES.get(field, field), *says, " / ".join(f"{getattr(chosen, field):g}" for chosen in POLICIES.values()))
        for field, says in SOURCES.items()
    ]
    here = f"here ({' / '.join(map(recipe, POLICIES))})"
    return pd.DataFrame([*rows, *CHOICES], columns=["what", "the paper's text", "its public code", here])
