import pytest
import torch
from builders import moved

from cot2lib.model import Cache, Dropout, GPT2Stack
from cot2lib.model.branches import Branches

transformers = pytest.importorskip("transformers")


@pytest.fixture
def stack():
    torch.manual_seed(0)
    return moved(GPT2Stack(3, 89, 11, 32, 2, 2, seeds=[5, 6, 7]), 0.1)


def hugging_face_loss(model, ids):
    return model(input_ids=ids, labels=ids).loss


def test_logits_equal_hugging_face(stack):
    ids = torch.randint(0, 89, (3, 4, 9))
    ours = stack(stack.embed(ids))
    for run in range(3):
        assert torch.allclose(ours[run], stack.to_hf(run)(input_ids=ids[run]).logits, rtol=0, atol=1e-5)


def test_gradients_equal_hugging_face(stack):
    ids = torch.randint(0, 89, (3, 4, 9))
    logits = stack(stack.embed(ids))[:, :, :-1]
    nll = torch.nn.functional.cross_entropy(logits.flatten(0, 2), ids[:, :, 1:].flatten(), reduction="none")
    nll.view(3, -1).mean(1).sum().backward()
    gradients = {name: parameter.grad for name, parameter in stack.named_parameters()}
    for run in range(3):
        model = stack.to_hf(run)
        hugging_face_loss(model, ids[run]).backward()
        for name, parameter in model.named_parameters():
            assert torch.allclose(gradients[name][run], parameter.grad, rtol=1e-4, atol=1e-5), name


def test_left_padding_equals_hugging_face(stack):
    ids, padding = torch.randint(0, 89, (1, 3, 9)), torch.tensor([[0, 2, 5]])
    ours = stack(stack.embed(ids), padding=padding)
    mask = torch.arange(9) >= padding[0][:, None]
    positions = (torch.arange(9) - padding[0][:, None]).clamp(min=0)
    theirs = stack.to_hf(1)(input_ids=ids[0], attention_mask=mask.long(), position_ids=positions).logits
    assert torch.allclose(ours[1][mask], theirs[mask], rtol=0, atol=1e-5)


def test_padding_that_counts_moves_the_places(stack):
    """Three places of padding before a prompt that count: the model whose places begin at the fourth, without them."""
    counting = GPT2Stack(stack.runs, **stack.shape, padding_counts=True).eval()
    counting.load_state_dict(stack.state_dict())
    moved = stack.select(range(stack.runs)).eval()
    with torch.no_grad():
        moved.transformer.wpe.weight[:, :4] = stack.transformer.wpe.weight[:, 3:7]
    ids, padded = torch.randint(0, 89, (1, 2, 4)), torch.zeros(1, 2, 7, dtype=torch.int64)
    padded[..., 3:] = ids
    found = counting(counting.embed(padded), outputs=4, padding=torch.tensor([[3, 3]]))
    assert torch.allclose(found, moved(moved.embed(ids)), atol=1e-5)
    assert not torch.allclose(found, stack(stack.embed(ids)), atol=1e-2)
    assert counting.select([0]).reads == counting.reads != stack.reads


def test_initialisation_is_gpt2s():
    stack = GPT2Stack(4, 200, 11, 64, 4, 4)
    for name, parameter in stack.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all()
        elif ".ln_" in name:
            assert (parameter == 1).all()
        else:
            std = 0.02 / 8**0.5 if "c_proj" in name else 0.02
            assert parameter.std().item() == pytest.approx(std, rel=0.05), name


@pytest.mark.parametrize(
    "layers, heads, d_model, parameters",
    [(1, 1, 16, 4912), (1, 1, 24, 9672), (2, 2, 24, 16896), (2, 2, 32, 28672), (4, 4, 32, 54080)],
)
def test_parameter_counts_are_the_public_codes(layers, heads, d_model, parameters):
    stack = GPT2Stack(2, 89, 11, d_model, layers, heads)
    assert sum(parameter[0].numel() for parameter in stack.parameters()) == parameters


def test_select_copies_runs(stack):
    chosen = stack.select([2, 0])
    ids = torch.randint(0, 89, (4, 9))
    assert torch.allclose(chosen(chosen.embed(ids)), stack(stack.embed(ids))[[2, 0]], rtol=0, atol=1e-6)


class Given(Dropout):
    """Stands in for `Dropout`: hands out the given multipliers and remembers what was asked for."""

    def __init__(self, change=lambda site, scale: scale):
        self.change, self.asked = change, []

    def scales(self, lanes):
        self.asked.append(list(lanes))
        return [self.change(site, torch.ones(3, n)) for site, n in enumerate(lanes)]


def test_dropout_lanes_fill_every_site(stack):
    """A scale of 2 everywhere doubles what each site carries; a lane too many or too few would not fit."""
    inputs = stack.embed(torch.randint(0, 89, (4, 9)))
    assert torch.allclose(stack(inputs, outputs=3, dropout=Given()), stack(inputs, outputs=3), rtol=0, atol=1e-6)
    for site in range(len(stack.dropout_lanes(4, 9, 3))):
        double = Given(lambda place, scale, site=site: 2 * scale if place == site else scale)
        assert not torch.allclose(stack(inputs, outputs=3, dropout=double), stack(inputs, outputs=3), atol=1e-3)


def test_dropout_with_a_cache_fits_what_is_new(stack):
    inputs, given, cache = stack.embed(torch.randint(0, 89, (4, 9))), Given(), Cache()
    stack(inputs[:, :, :6], cache=cache)
    cached = stack(inputs[:, :, 6:], cache=cache, dropout=given)
    assert torch.allclose(cached, stack(inputs)[:, :, 6:], rtol=0, atol=1e-5)
    assert given.asked == [stack.dropout_lanes(4, 3, 3, past=6)]


@torch.no_grad()
@pytest.mark.parametrize("padding", [None, torch.tensor([[0, 2, 1, 0]])])
def test_branches_are_sequences_of_their_own(stack, padding):
    """All at once and step by step; the model's positions bound a branch's length, not the layout's."""
    shared, steps, layout = 4, 3, Branches(4, 5)
    ids = torch.randint(0, 89, (4, 5, shared + steps), generator=torch.Generator().manual_seed(0))
    ids[..., :shared] = ids[:, :1, :shared]
    apart = stack.hidden(
        stack.embed(ids.flatten(0, 1)), padding=None if padding is None else padding.repeat_interleave(5, 1)
    )
    apart = apart.unflatten(1, (4, 5))  # run prompt branch position d
    expected = torch.cat([apart[:, :, 0, :shared], apart[:, :, :, shared:].transpose(2, 3).flatten(2, 3)], dim=2)
    laid = stack.embed(torch.cat([ids[:, 0, :shared], ids[..., shared:].transpose(1, 2).flatten(1)], dim=1))
    assert laid.shape[2] > stack.shape["positions"]
    real = slice(2, None)  # what padding computes is nobody's
    whole = stack.hidden(laid, padding=padding, branches=layout)
    assert torch.allclose(whole[:, :, real], expected[:, :, real], rtol=0, atol=1e-5)
    cache = Cache()
    parts = laid.split([shared, 5, 5, 5], dim=2)
    found = [stack.hidden(part, padding=padding, cache=cache, branches=layout) for part in parts]
    assert torch.allclose(torch.cat(found, dim=2)[:, :, real], expected[:, :, real], rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="12 positions, but the model has 11"):
        stack.hidden(stack.embed(torch.zeros(1, 4 + 5 * 7 + 1, dtype=torch.int64)), branches=layout)
