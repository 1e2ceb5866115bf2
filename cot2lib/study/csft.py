"""Chapter `csft`: training on superpositions; the paper's numbers, and both recipes field by field."""

import pandas as pd

from cot2lib.specs.profiles import PROFILES, REWARD, rows_of, spec
from cot2lib.study import printed
from cot2lib.study.printed import paper_value
from cot2lib.study.report import recipe
from cot2lib.tasks import MNNS

AT_ONE_DIMENSION = {  # the article does not say which COCONUT, nor which no-CoT, it ran; d = 32
    "COCONUT": "main-mnns-coconut",
    "COCONUT, zero slot": "main-mnns-coconut",
    "no-CoT": "main-mnns-nocot",
    "no-CoT, pauses": "main-mnns-nocot",
}
ONE_LAYER = {"CoT2": "passk-cot2", "discrete CoT": "passk-discrete-t0.0-k1"}  # d = 24


PAPER_SAYS = {
    "batch": "16 for four digits (app. B.1)",
    "large_batch": "64 for five digits (app. B.1)",
    "epochs": "not stated; 1000 is used as an example for COCONUT's stages (app. B.3)",
    "most_steps": "not stated; five digits have about ten times the data (apps. B and B.4)",
    "evaluations": "not stated; the public code evaluates after every epoch and averages the last results over seeds",
    "lr": "1e-4 (app. B.1)",
    "schedule": "not stated; the public code has none",
    "warmup": "not stated; the public code has none",
    "weight_decay": "none (app. B.1); the public code leaves AdamW's default of .01",
    "dropout": "not mentioned; the public code leaves GPT-2's default of .1",
    "cycles": "not stated; a constant rate has no cycles",
    "arrow": "the prompt ends in an arrow (sec. 3.1.1); the public CoT2 code has none",
    "eos": "the output ends in EOS (sec. 3.1.1); the public CoT2 code never trains it",
    "loss_on": "the m output tokens (eqs. 1 and 2); the public discrete code adds prompt and EOS",
    "reduction": "sum over steps (eqs. 1 and 2); the public discrete code takes the mean",
    "pauses": "not mentioned; the public code has an encoding with m arrows, and no trainer for it",
    "feeding": "teacher forcing; COCONUT in stages of equal length (app. B.3)",
    "curriculum": "none but COCONUT's stages (row feeding), in the text and in the public code",
    "ties": "not stated; the public code is plus-first at B=1 and minus-first above",
}


def stated(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) of a method on MNNS 4 x 1-9, two layers, where it gives one."""
    if method in AT_ONE_DIMENSION:
        return paper_value(AT_ONE_DIMENSION[method]) if d_model == 32 else None
    return printed.stated(f"budget-b{16 if method == 'CoT2' else 1}-d{d_model}")


def stated_one_layer(method: str, d_model: int) -> float | None:
    """The paper's accuracy (%) with one layer and one head, which its Pass@k experiment gives for d = 24."""
    return paper_value(ONE_LAYER[method]) if d_model == 24 and method in ONE_LAYER else None


def comparison() -> pd.DataFrame:
    """Both profiles on numbers, field by field, beside what the paper says; method by method where they differ."""
    rows = []
    for name, says in PAPER_SAYS.items():
        ours = {recipe(profile): _value(name, profile) for profile in PROFILES}
        rows.append({"field": name, **ours, "what the paper says": says})
    return pd.DataFrame(rows).replace("None", "no limit")  # of `most_steps`


def _value(name: str, profile: str) -> str:
    values = {}
    for method, row in rows_of(MNNS(), profile).items():
        if method != REWARD:
            run = spec(method, profile)
            parts = row, run.recipe, run.supervision
            values[method] = str(next(getattr(part, name) for part in parts if hasattr(part, name)))
    same = len(set(values.values())) == 1
    return next(iter(values.values())) if same else ", ".join(f"{m}: {v}" for m, v in values.items())
