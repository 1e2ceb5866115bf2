"""Thought rules: how the distribution of a step becomes the next input.

| file | rules |
| --- | --- |
| `rule` | the bases `Rule` and `Sampled`, and what a rule sees (`State`) and gives (`Thought`) |
| `mixtures` | `Base`, the paper's deterministic continuous token; `Edited`, whose mixtures an `Edit` changes |
| `sampled` | `Discrete`, `MTS`, `Systematic`: one token, or the mean of K |
| `simplex` | `Dirichlet`, `Gumbel`: random points of the simplex |
| `latent` | `Hidden`, `ZeroSlot` (COCONUT both ways), `Gaussian` |
"""

from cot2lib.thoughts.latent import Gaussian, Hidden, ZeroSlot
from cot2lib.thoughts.mixtures import Always, Base, Edit, Edited
from cot2lib.thoughts.rule import Rule, Sampled, State, Thought
from cot2lib.thoughts.sampled import MTS, Discrete, Systematic, inverse_cdf, systematic_counts, token_mean
from cot2lib.thoughts.simplex import Dirichlet, Gumbel

__all__ = [
    "MTS", "Always", "Base", "Dirichlet", "Discrete", "Edit", "Edited", "Gaussian", "Gumbel", "Hidden",
    "Rule", "Sampled", "State", "Systematic", "Thought", "ZeroSlot", "inverse_cdf", "systematic_counts", "token_mean",
]  # fmt: skip
