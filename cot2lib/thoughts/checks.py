"""Whether a thought rule from outside the package gives what a rule must give.

`check_rule` lets it think for made-up scores, flat and peaked ones, before anything is trained. `check_thoughts` looks
at what it thought as a run was evaluated.
"""

from collections.abc import Sequence
from functools import lru_cache

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from cot2lib.kit.identity import is_outside, outsiders
from cot2lib.kit.members import answer, refuse, tensor
from cot2lib.thoughts.rule import Rule, Sampled, State, Thought

RUNS, BATCH = 2, 3
SCALES = (0.02, 1.0, 10.0)  # of scores, from flat to peaked: one for each of the batch
NEAR = 1e-3  # the most that rounding takes from a sum of one


@lru_cache(maxsize=64)
def check_rule(rule: Rule, vocab: int, d_model: int) -> None:
    """Raise SpecError, with the rule's name and one fault, for a rule from outside the package that cannot be run."""
    if not is_outside(type(rule)):
        return
    owner = f"rule {type(rule).__name__}"
    told = answer(owner, "columns()", rule.columns)
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told):
        refuse(owner, "columns()", "gives no dictionary by name; give one, or leave the member out")
    state = _state(vocab, d_model)
    thought = _first_thought(owner, rule, state)
    again = _first_thought(owner, rule, state)
    if not torch.equal(state.logits, _state(vocab, d_model).logits):
        refuse(owner, "its first thought", "changes the logits in place; work on a copy")
    if not all(torch.equal(*pair) for pair in zip(_drawn(thought), _drawn(again), strict=True)):
        refuse(owner, "its first thought", "differs for one state; draw from state.draws alone, and keep nothing")
    if samples(rule):
        _check_density(owner, rule, thought, state)


def samples(rule: Rule) -> bool:
    """Whether a rule says that it samples; raises SpecError if it does not say."""
    return answer(f"rule {type(rule).__name__}", "samples", lambda: bool(rule.samples))


def _drawn(thought: Thought) -> list[Shaped[Tensor, "run batch _"]]:
    return [value for value in (thought.weights, thought.latent, thought.action) if value is not None]


def _state(vocab: int, d_model: int) -> State:
    made = torch.Generator().manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, generator=made)
    table, hidden, beyond = normal(vocab, d_model), normal(RUNS, BATCH, d_model), normal(RUNS, BATCH, d_model)
    logits = normal(RUNS, BATCH, vocab) * torch.tensor(SCALES)[:, None]

    def draws(count: int) -> Float[Tensor, "run batch draw"]:
        uniform = torch.rand(RUNS, BATCH, count, generator=torch.Generator().manual_seed(count))
        return uniform.clamp(min=torch.finfo(uniform.dtype).tiny)

    return State(logits, hidden, draws, lambda: beyond, lambda weights: weights @ table)


def _first_thought(owner: str, rule: Rule, state: State) -> Thought:
    thought = answer(owner, "its first thought", lambda: rule(state))
    if not isinstance(thought, Thought):
        refuse(owner, "its first thought", f"is of type {type(thought).__name__}; give a cot2lib.Thought")
    tensor(owner, "weights", thought.weights, torch.float32, tuple(state.logits.shape))
    if thought.latent is not None:
        tensor(owner, "latent", thought.latent, torch.float32, tuple(state.hidden.shape))
    if isinstance(thought.action, Tensor):
        kind = torch.float32 if thought.action.is_floating_point() else torch.int64
        tensor(owner, "action", thought.action, kind, (RUNS, BATCH, None))
    elif thought.action is not None:
        refuse(owner, "action", f"is of type {type(thought.action).__name__}; give a tensor (run, batch, draw)")
    _check_values(owner, thought.weights, thought.latent)
    return thought


def _check_values(
    owner: str, weights: Float[Tensor, "run batch *step vocab"], latent: Float[Tensor, "... dim"] | None
) -> None:
    for name, value in (("weights", weights), ("latent", latent)):
        if value is not None and not value.isfinite().all():
            refuse(owner, name, "are not finite; mind logarithms of 0 and divisions by 0")
    if (weights < 0).any():
        refuse(owner, "weights", f"fall to {float(weights.min()):.3g}; a mixture has none below 0")
    if ((total := weights.sum(-1)) - 1).abs().max() > NEAR:
        refuse(owner, "weights", f"add up to {float(total.min()):.3g}..{float(total.max()):.3g}; a mixture's to 1")


@torch.enable_grad()
def _check_density(owner: str, rule: Rule, thought: Thought, state: State) -> None:
    if not isinstance(rule, Sampled):
        refuse(owner, "samples", "is true; a rule that samples subclasses cot2lib.Sampled")
    action = thought.action
    if action is None:
        refuse(owner, "action", "is missing; a rule that samples gives what it drew")
    logits = state.logits.clone().requires_grad_()
    parameters = answer(owner, "parameters()", lambda: rule.parameters(logits, state.mix))
    if not isinstance(parameters, Tensor):
        refuse(owner, "parameters()", f"is of type {type(parameters).__name__}; give a tensor")
    density = answer(owner, "log_densities()", lambda: rule.log_densities(parameters, action))
    tensor(owner, "log_densities()", density, torch.float32, (RUNS, BATCH, None))
    if not density.isfinite().all():
        refuse(owner, "log_densities()", "are not finite; mind logarithms of 0 and divisions by 0")
    if not density.requires_grad:
        refuse(owner, "log_densities()", "carry no gradient to the logits, so that nothing could be learnt")


def check_thoughts(
    rule: Rule, weights: Float[Tensor, "run batch step vocab"], latents: Sequence[Shaped[Tensor, "..."] | None]
) -> None:
    """Raise SpecError if what a rule from outside the package thought is no mixture, or not finite."""
    if outsiders(rule):
        fed = [latent for latent in latents if latent is not None]
        _check_values(f"rule {type(rule).__name__}", weights, torch.stack(fed) if fed else None)
