"""Dirichlet thoughts of one base thought by their scale, and how large the embeddings are that noise is added to."""

from collections.abc import Sequence

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.random import Site
from cot2lib.specs import RunSpec
from cot2lib.theory import points as simplex
from cot2lib.thoughts import Base, Dirichlet, State
from cot2lib.training.data import stack_data


@torch.no_grad()
def base_thought(spec: RunSpec) -> Float[Tensor, " token"]:
    """The second thought of a shipped model that feeds its own base thoughts, on its first held-out prompt.

    Raises:
        RecordError: if its weights are neither shipped nor stored.
    """
    stack, data = runs.load_stack([spec], missing="error"), stack_data([spec], "cpu")
    prompt = data.prompts[data.held_out.index[:, :1]]
    return decode(stack, prompt, rules(Base(), spec.outputs)).weights[0, 0, 1]


def drawn(alpha: Float[Tensor, " token"], gamma: float, samples: int) -> Float[Tensor, "sample token"]:
    """Dirichlet thoughts of one base thought, on the whole vocabulary."""
    logits = alpha.log()[None, None].expand(1, samples, -1)
    keys = random.run_keys([0], Site.PROBE)
    draws = lambda count: random.uniform(keys, samples * count).view(1, samples, count)
    unused = lambda *_: None
    return Dirichlet(gamma, floor=0.0, most=None)(State(logits, logits, draws, unused, unused)).weights[0]


def scales(alpha: Float[Tensor, " token"], gammas: Sequence[float], samples: int) -> pd.DataFrame:
    """Per gamma: mean entropy (nat) of a point and distance from its mean, sampled, and by their formulas.

    The distance is the root of the summed variances. `alpha` is a base thought.

    Raises:
        SpecError: without scales or samples.
    """
    if not gammas or samples < 1:
        raise SpecError(f"drawn_gammas={list(gammas)}, drawn_samples={samples}: give at least one of each.")
    alpha = alpha.double()
    rows = []
    for gamma in gammas:
        found = drawn(alpha.float(), gamma, samples).double()
        apart = (found - alpha).square().sum(-1)
        rows.append(
            {
                "gamma": gamma,
                "entropy": torch.special.entr(found).sum(-1).mean().item(),
                "distance": apart.mean().sqrt().item(),
                "entropy, formula": simplex.entropy(alpha, gamma).item(),
                "distance, formula": simplex.variance(alpha, gamma).sum().sqrt().item(),
            }
        )
    return pd.DataFrame(rows).assign(most=torch.special.entr(alpha).sum().item())


def embedding_sizes(specs: Sequence[RunSpec]) -> Float[Tensor, " run"]:
    """Root mean square of the coordinates of each shipped model's embeddings.

    Raises:
        RecordError: if weights are neither shipped nor stored.
    """
    table = runs.load_stack(specs, missing="error").transformer.wte.weight.detach()
    return table.square().mean((1, 2)).sqrt()
