"""CoT2 companion: continuous chain of thought on tiny GPT-2 models.

A small core to build on, and apart from it the study that this book is made of.

| package | what it holds |
| --- | --- |
| `tasks`, `supervision` | what goes in, which trajectories lead on, and the soft targets made of them |
| `targets` | other targets: what is scored and what is fed, for controls |
| `oracles` | which states a thought may hold, and which ones an answer needs, for interventions |
| `thoughts` | thought rules: how a step's distribution becomes the next input |
| `model`, `decode` | stacked GPT-2s, and the one autoregressive loop |
| `losses`, `metrics` | cross-entropies, surrogate and ratios of GRPO; Pass@k, intervals |
| `training`, `specs`, `runs` | trainers; runs as frozen data; train what is missing, look up what is known |
| `theory` | the paper's propositions as mathematics |
| `kit` | keyed random numbers, checked fields, ids, whole files, provenance |
| `study` | this book: its sweeps, measurements, claims, figures and records; the core never imports it |

The names below load on first use, so that importing the package costs no more than importing torch.
"""

import importlib

__version__ = "0.1.0"

FACE = {
    "MNNS": "cot2lib.tasks",
    "ProsQA": "cot2lib.tasks",
    "ProntoQA": "cot2lib.tasks",
    "Task": "cot2lib.tasks",
    "Rule": "cot2lib.thoughts",
    "Sampled": "cot2lib.thoughts",
    "State": "cot2lib.thoughts",
    "Thought": "cot2lib.thoughts",
    "Base": "cot2lib.thoughts",
    "Discrete": "cot2lib.thoughts",
    "MTS": "cot2lib.thoughts",
    "Dirichlet": "cot2lib.thoughts",
    "Targets": "cot2lib.targets",
    "Visits": "cot2lib.targets",
    "Shown": "cot2lib.targets",
    "GPT2Stack": "cot2lib.model",
    "hindsight_targets": "cot2lib.supervision",
    "Run": "cot2lib.specs",
    "RunSpec": "cot2lib.specs",
    "GRPOSpec": "cot2lib.specs",
    "spec": "cot2lib.specs.profiles",
    "grpo": "cot2lib.specs.profiles",
    "run": "cot2lib.runs",
    "curves": "cot2lib.runs",
    "load": "cot2lib.runs",
}


def __getattr__(name: str):
    """The object of that name, from the module that defines it."""
    if name not in FACE:
        raise AttributeError(f"module 'cot2lib' has no attribute {name!r}")
    return getattr(importlib.import_module(FACE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *FACE])
