"""CoT2 companion: continuous chain of thought on tiny GPT-2 models.

A small core to build on, and apart from it the study that this book is made of.

| package | what it holds |
| --- | --- |
| `tasks`, `supervision` | what goes in, which trajectories lead on, and the soft targets made of them |
| `targets` | other targets: what is scored and what is fed, for controls |
| `thoughts` | thought rules: how a step's distribution becomes the next input |
| `model`, `decode` | stacked GPT-2s, and the one autoregressive loop |
| `losses`, `metrics` | cross-entropies, surrogate and ratios of GRPO; Pass@k, intervals |
| `training`, `specs`, `runs` | trainers; runs as frozen data; train what is missing, look up what is known |
| `theory` | the paper's propositions as mathematics |
| `testing` | `check_task`, `check_rule`, `check_targets` for classes of your own |
| `kit` | keyed random numbers, frozen data and ids, whole files, provenance |
| `study` | this book: its sweeps, measurements, claims, figures and records; the core never imports it |

The names of `__init__.pyi` load on first use, so that importing the package costs no more than importing torch.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
