"""Conversion between one run of a `GPT2Stack` and Hugging Face's `GPT2LMHeadModel`; needs the extra `llm`.

The parameter names are the same on both sides, so conversion adds or drops the run axis.
"""

from collections.abc import Sequence

import torch

from cot2lib.errors import SpecError
from cot2lib.kit import hugging_face

SIZES = dict(vocab_size="vocab_size", positions="n_positions", d_model="n_embd", layers="n_layer", heads="n_head")


def to_hf(stack, run: int):
    """Run `run` of `stack` as a `GPT2LMHeadModel` without dropout, in evaluation mode."""
    transformers = hugging_face.transformers()
    shape = {theirs: stack.shape[ours] for ours, theirs in SIZES.items()}
    no_dropout = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    config = transformers.GPT2Config(**shape, **no_dropout, bos_token_id=None, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config)
    state = {name: value[run] for name, value in stack.state_dict().items()}
    model.load_state_dict(state | {"lm_head.weight": state["transformer.wte.weight"]})
    return model.eval()


def from_hf(cls, models: Sequence):
    """A stack of class `cls` with the weights of `models`.

    Raises SpecError without models, if they differ in shape, or for a model that is no GPT-2 as the stack computes it,
    with tied embeddings, tanh GELU, an MLP of width 4d, plain scaled attention and layer norms with eps 1e-5.
    """
    if not models:
        raise SpecError("no models were given; a stack needs at least one.")
    states = [model.state_dict() for model in models]
    for config, state in zip((model.config for model in models), states):
        needed = {
            "activation_function": ("gelu_new",),
            "n_inner": (None, 4 * config.n_embd),
            "layer_norm_epsilon": (1e-5,),
            "scale_attn_weights": (True,),
            "scale_attn_by_inverse_layer_idx": (False,),
        }
        for name, values in needed.items():
            if getattr(config, name) not in values:
                allowed = " or ".join(map(repr, values))
                raise SpecError(f"{name}={getattr(config, name)!r}: only models with {allowed} can be stacked.")
        if not torch.equal(state["lm_head.weight"], state["transformer.wte.weight"]):
            raise SpecError(
                "lm_head.weight differs from the embedding table; only models that tie them can be stacked."
            )
    shapes = [{ours: getattr(model.config, theirs) for ours, theirs in SIZES.items()} for model in models]
    if any(shape != shapes[0] for shape in shapes):
        raise SpecError("The models differ in shape; only models of one shape stack.")
    stack = cls(len(models), **shapes[0])
    stack.load_state_dict({name: torch.stack([s[name] for s in states]) for name in stack.state_dict()})
    return stack
