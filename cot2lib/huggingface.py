"""Conversion between one run of a `GPT2Stack` and Hugging Face's `GPT2LMHeadModel`.

The parameter names are the same on both sides, so conversion is adding or dropping the run axis.
Needs `transformers` (the extra `llm`).
"""

from collections.abc import Sequence

import torch

from cot2lib.errors import SpecError


def _transformers():
    try:
        import transformers
    except ImportError as error:
        raise ImportError("transformers is not installed: pip install 'cot2lib[llm]'.") from error
    return transformers


def to_hf(stack, run: int):
    """Run `run` of `stack` as a `GPT2LMHeadModel`, dropout 0, evaluation mode."""
    transformers = _transformers()
    shape = stack.shape
    config = transformers.GPT2Config(
        vocab_size=shape["vocab_size"],
        n_positions=shape["positions"],
        n_embd=shape["d_model"],
        n_layer=shape["layers"],
        n_head=shape["heads"],
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = transformers.GPT2LMHeadModel(config)
    state = {name: value[run] for name, value in stack.state_dict().items()}
    missing = set(model.state_dict()) - set(state) - {"lm_head.weight"}
    if missing:
        raise RuntimeError(f"transformers {transformers.__version__} expects weights this stack lacks: {missing}.")
    model.load_state_dict(state, strict=False)
    model.tie_weights()
    return model.eval()


def from_hf(cls, models: Sequence):
    """A stack of class `cls` with the weights of `models`.

    Raises:
        SpecError: if the models differ in shape, or use an activation other than the tanh GELU.
    """
    shapes = [_shape(model.config) for model in models]
    if any(shape != shapes[0] for shape in shapes):
        raise SpecError("The models differ in shape; only models of one shape stack.")
    stack = cls(len(models), **shapes[0])
    states = [model.state_dict() for model in models]
    stack.load_state_dict({name: torch.stack([s[name] for s in states]) for name in stack.state_dict()})
    return stack


def _shape(config) -> dict[str, int]:
    if config.activation_function != "gelu_new":
        raise SpecError(f"activation {config.activation_function!r}: only GPT-2's 'gelu_new' is supported.")
    return dict(
        vocab_size=config.vocab_size,
        positions=config.n_positions,
        d_model=config.n_embd,
        layers=config.n_layer,
        heads=config.n_head,
    )
