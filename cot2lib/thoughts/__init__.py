"""Thought rules: how the distribution of a step becomes the next input.

`rules` has the bases `Rule` and `Sampled`, what a rule sees (`State`) and gives (`Thought`), and most rules; `simplex`
has random points of the simplex, `Dirichlet` and `Gumbel`.
"""

from cot2lib.thoughts.rules import (  # isort: skip
    MTS, Always, Base, Discrete, Gaussian, Hidden, Rule, Sampled, State, Systematic, Thought, ZeroSlot,
    inverse_cdf, systematic_counts, token_mean,
)  # fmt: skip
from cot2lib.thoughts.simplex import Dirichlet, Gumbel

__all__ = [
    "MTS", "Always", "Base", "Dirichlet", "Discrete", "Gaussian", "Gumbel", "Hidden",
    "Rule", "Sampled", "State", "Systematic", "Thought", "ZeroSlot", "inverse_cdf", "systematic_counts", "token_mean",
]  # fmt: skip
