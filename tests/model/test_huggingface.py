import pytest
import torch
from builders import moved

from cot2lib.errors import SpecError
from cot2lib.model import GPT2Stack

transformers = pytest.importorskip("transformers")


def model(**options):
    torch.manual_seed(0)
    shape = dict(vocab_size=11, n_positions=6, n_embd=8, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape | options)).eval()


def test_what_is_accepted_computes_the_same():
    one, two = model(), moved(model(n_inner=32, reorder_and_upcast_attn=True), 0.1)
    stack = GPT2Stack.from_hf([one, two]).eval()
    ids = torch.arange(6)[None]
    logits = stack(stack.embed(ids))
    for run, source in enumerate((one, two)):
        assert torch.allclose(logits[run], source(ids).logits, atol=1e-5)


@pytest.mark.parametrize(
    "options, names",
    [
        (dict(activation_function="relu"), "activation_function='relu': only models with 'gelu_new'"),
        (dict(n_inner=16), "n_inner=16: only models with None or 32"),
        (dict(layer_norm_epsilon=1e-6), "layer_norm_epsilon=1e-06"),
        (dict(scale_attn_weights=False), "scale_attn_weights=False"),
        (dict(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse_layer_idx=True"),
        (dict(tie_word_embeddings=False), "differs from the embedding table"),
    ],
)
def test_other_models_are_refused(options, names):
    with pytest.raises(SpecError, match=names):
        GPT2Stack.from_hf([model(), model(**options)])


def test_models_of_two_shapes_are_refused():
    with pytest.raises(SpecError, match="differ in shape"):
        GPT2Stack.from_hf([model(), model(n_embd=16)])
