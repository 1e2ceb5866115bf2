"""`GPT2Stack`: R independent GPT-2 models of one shape as one set of tensors with a leading `run` axis.

Architecture and initialisation are those of Hugging Face's `GPT2LMHeadModel` (pre-LN, learned positions, tanh GELU,
tied output embedding), the model that the paper and the authors' code train; with equal weights logits and gradients
are equal. Differences: the `run` axis; inputs are embeddings, because a continuous thought is a mixture of them
(paper, section 2: z_t = E^T alpha_t); prompts are padded on the left; the last layer computes queries and MLP only for
the positions that are needed; dropout multipliers come from `cot2lib.kit.random`.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.frozen import as_int, positive
from cot2lib.kit.random import Site
from cot2lib.model.branches import ONE, Branches

Hidden = Float[Tensor, "run batch position d"]
Outputs = Float[Tensor, "run batch output d"]
Padding = Int[Tensor, "#run #batch"] | None  # tokens on the left of each prompt that are padding
Positions = Float[Tensor, "#run #batch position d"]
Mask = Float[Tensor, "*lead query key"]  # 0 where a query may look, else the most negative float
Sees = Bool[Tensor, "depth depth"] | None  # which positions each may attend to, None for all before it
Heads = Float[Tensor, "run batch head _ d_head"]  # the axis _ holds positions
Scales = Float[Tensor, "run _"] | None  # dropout multipliers of one site, a row for each run; None for all one
Sites = Sequence[Scales]  # dropout of the attention weights, of the attention and of the MLP
GPT2_SD = 0.02  # of drawn weights


def drop(x: Float[Tensor, "run ..."], scales: Scales) -> Float[Tensor, "run ..."]:
    return x if scales is None else x * scales.view(x.shape)


class Dropout:
    """Dropout multipliers of one training step, keyed so that a run does not depend on what it was stacked with.

    `counter` has enough draws for the longest pass (`GPT2Stack.dropout_counter`).
    """

    def __init__(self, keys: Int[Tensor, " run"], counter: Int[Tensor, " draw"], probability: float):
        self.keys, self.counter, self.probability = keys, counter, probability
        self.passes = 0

    def scales(self, lanes: Sequence[int]) -> Sequence[Scales]:
        """The next pass's multipliers, (run, lanes of the site) for each site."""
        keys = random.fold(self.keys, self.passes) if self.passes else self.keys
        self.passes += 1
        counter = self.counter[: -(-sum(lanes) // random.LANES)]
        scales = random.dropout_scales(keys, counter, self.probability)
        return scales[:, : sum(lanes)].split(list(lanes), dim=1)


class Linear(nn.Module):
    """R linear maps; weight (run, input, output) as GPT-2 stores it."""

    def __init__(self, runs: int, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(runs, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(runs, outputs))

    def forward(
        self, x: Float[Tensor, "run batch position input"], columns: slice = slice(None)
    ) -> Float[Tensor, "run batch position output"]:
        flat = x.flatten(1, 2)
        out = torch.baddbmm(self.bias[:, None, columns], flat, self.weight[:, :, columns])
        return out.unflatten(1, x.shape[1:3])


class LayerNorm(nn.Module):
    """R layer norms over the last axis, eps 1e-5."""

    def __init__(self, runs: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(runs, d_model))
        self.bias = nn.Parameter(torch.zeros(runs, d_model))

    def forward(self, x: Hidden) -> Hidden:
        normed = F.layer_norm(x, x.shape[-1:])
        return torch.addcmul(self.bias[:, None, None], normed, self.weight[:, None, None])


class Embedding(nn.Module):
    """R embedding tables (run, row, d)."""

    def __init__(self, runs: int, rows: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(runs, rows, d_model))

    def forward(self, ids: Int[Tensor, "#run *index"]) -> Float[Tensor, "run *index d"]:
        runs = torch.arange(len(self.weight), device=ids.device)
        return self.weight[runs.view(-1, *[1] * (ids.ndim - 1)), ids]


class Cache:
    """Keys and values of every layer so far, grown position by position while decoding."""

    def __init__(self):
        self.layers: list[tuple[Heads, Heads]] = []

    @property
    def length(self) -> int:
        return self.layers[0][0].shape[-2] if self.layers else 0

    def extend(self, layer: int, keys: Heads, values: Heads) -> tuple[Heads, Heads]:
        """Append the new positions of `layer`; return all of its keys and values."""
        if layer == len(self.layers):
            self.layers.append((keys, values))
        else:
            old = self.layers[layer]
            self.layers[layer] = (torch.cat([old[0], keys], -2), torch.cat([old[1], values], -2))
        return self.layers[layer]

    def copy(self) -> "Cache":
        other = Cache()
        other.layers = list(self.layers)
        return other


class Attention(nn.Module):
    """Causal multi-head self-attention, queries only for the last `outputs` positions."""

    def __init__(self, runs: int, d_model: int, heads: int):
        super().__init__()
        self.heads = heads
        self.c_attn = Linear(runs, d_model, 3 * d_model)
        self.c_proj = Linear(runs, d_model, d_model)

    def split(self, x: Hidden) -> Heads:
        return x.unflatten(-1, (self.heads, -1)).transpose(2, 3)  # (run, batch, head, position, d_head)

    def qkv(self, x: Hidden, outputs: int) -> tuple[Heads, Heads, Heads]:
        """Queries of the last `outputs` positions, keys and values of all."""
        width = x.shape[-1]
        if outputs == x.shape[2]:
            query, key, value = self.c_attn(x).split(width, -1)
        else:
            query = self.c_attn(x[:, :, -outputs:], slice(0, width))
            key, value = self.c_attn(x, slice(width, None)).split(width, -1)
        return self.split(query), self.split(key), self.split(value)

    def forward(self, x: Hidden, outputs: int, mask: Mask, cache: Cache | None, layer: int, scales: Sites) -> Outputs:
        query, key, value = self.qkv(x, outputs)
        if cache is not None:
            key, value = cache.extend(layer, key, value)
        scores = (query @ key.transpose(-1, -2)) * query.shape[-1] ** -0.5  # (run, batch, head, output, key)
        weights = drop((scores + mask[..., -outputs:, :]).softmax(-1), scales[0])
        mixed = (weights @ value).transpose(2, 3).flatten(3)  # (run, batch, output, d)
        return drop(self.c_proj(mixed), scales[1])


class MLP(nn.Module):
    """Two linear maps around a tanh GELU, four times wider inside."""

    def __init__(self, runs: int, d_model: int):
        super().__init__()
        self.c_fc = Linear(runs, d_model, 4 * d_model)
        self.c_proj = Linear(runs, 4 * d_model, d_model)

    def forward(self, x: Hidden) -> Hidden:
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """Pre-LN transformer block; returns the last `outputs` positions only."""

    def __init__(self, runs: int, d_model: int, heads: int):
        super().__init__()
        self.ln_1 = LayerNorm(runs, d_model)
        self.attn = Attention(runs, d_model, heads)
        self.ln_2 = LayerNorm(runs, d_model)
        self.mlp = MLP(runs, d_model)

    def forward(self, x: Hidden, outputs: int, mask: Mask, cache: Cache | None, layer: int, scales: Sites) -> Outputs:
        attended = self.attn(self.ln_1(x), outputs, mask, cache, layer, scales)
        x = x[:, :, -outputs:] + attended
        return x + drop(self.mlp(self.ln_2(x)), scales[2])


class Parts(nn.ModuleDict):
    """The modules of a stack, under GPT-2's names."""

    wte: Embedding
    wpe: Embedding
    h: nn.ModuleList
    ln_f: LayerNorm


class GPT2Stack(nn.Module):
    """`runs` GPT-2 models side by side.

    Args:
        runs: number of models R.
        vocab_size, positions, d_model, layers, heads: shape of each model.
        seeds: one initialisation seed per run (default 0..runs-1); run r's weights depend on seeds[r] alone.
        pairs: whether ids may stand for two tokens (see `embed`).
        padding_counts: whether positions count the padding before a prompt.
    """

    def __init__(
        self,
        runs: int,
        vocab_size: int,
        positions: int,
        d_model: int,
        layers: int,
        heads: int,
        seeds: Sequence[int] | None = None,
        pairs: bool = False,
        padding_counts: bool = False,
    ):
        super().__init__()
        sizes: dict[str, Any] = dict(
            vocab_size=vocab_size, positions=positions, d_model=d_model, layers=layers, heads=heads
        )
        positive(runs=runs, **sizes)
        seeds = range(runs) if seeds is None else [as_int("seed", seed) for seed in seeds]
        if d_model % heads:
            raise SpecError(f"heads={heads} does not divide d_model={d_model}; choose a divisor.")
        if len(seeds) != runs:
            raise SpecError(f"{len(seeds)} seeds for {runs} runs; give one seed per run.")
        self.shape, self.reads = sizes, dict(pairs=pairs, padding_counts=padding_counts)
        self.transformer = Parts(
            dict(
                wte=Embedding(runs, vocab_size, d_model),
                wpe=Embedding(runs, positions, d_model),
                h=nn.ModuleList(Block(runs, d_model, heads) for _ in range(layers)),
                ln_f=LayerNorm(runs, d_model),
            )
        )
        self.initialise(seeds)

    @torch.no_grad()
    def initialise(self, seeds: Sequence[int]) -> None:
        """GPT-2's initialisation: normal(0, .02), residual projections .02/sqrt(2 layers), biases 0, norms 1."""
        for site, (name, parameter) in enumerate(self.named_parameters()):
            if name.endswith("bias") or ".ln_" in name:
                continue
            std = GPT2_SD / math.sqrt(2 * self.shape["layers"]) if "c_proj" in name else GPT2_SD
            keys = random.run_keys(seeds, Site.INIT, site)
            draws = random.normal(keys, parameter[0].numel())
            parameter.copy_((std * draws).view_as(parameter))

    @property
    def runs(self) -> int:
        return len(self.transformer.wte.weight)

    @property
    def device(self) -> torch.device:
        return self.transformer.wte.weight.device

    def embed(self, ids: Int[Tensor, "*runs batch position"]) -> Hidden:
        """Embeddings of token ids, the same for every run (batch, position) or one set per run.

        In a stack with pairs, id (1 + a) vocab_size + b is the sum of the embeddings of tokens a and b. On a CPU, ids
        outside the vocabulary raise SpecError.
        """
        vocab = self.shape["vocab_size"]
        if ids.device.type == "cpu" and ids.numel():
            low, high = ids.aminmax()
            most = vocab * (1 + vocab) if self.reads["pairs"] else vocab
            if low < 0 or high >= most:
                raise SpecError(f"ids {int(low)}..{int(high)}: the vocabulary is 0..{most - 1}.")
        ids = ids if ids.ndim == 3 else ids[None]
        if not self.reads["pairs"]:
            return self.transformer.wte(ids)
        first = ids // vocab - 1  # (run, batch, position)
        return self.transformer.wte(ids % vocab) + self.transformer.wte(first.clamp(min=0)) * (first >= 0)[..., None]

    def mix(self, weights: Float[Tensor, "run batch step vocab"]) -> Float[Tensor, "run batch step d"]:
        """Continuous tokens E^T alpha of mixture weights (paper, section 2)."""
        return torch.bmm(weights.flatten(1, 2), self.transformer.wte.weight).unflatten(1, weights.shape[1:3])

    def dropout_lanes(self, batch: int, length: int, outputs: int, past: int = 0) -> list[int]:
        """Count the dropout multipliers of each site in a pass, for a run: the embedding, then three in a block."""
        d_model, heads, layers = (self.shape[k] for k in ("d_model", "heads", "layers"))
        lanes = [batch * length * d_model]
        for queries in [length] * (layers - 1) + [outputs]:
            lanes += [batch * heads * queries * (past + length), batch * queries * d_model, batch * queries * d_model]
        return lanes

    def dropout_counter(self, batch: int, length: int) -> Int[Tensor, " draw"]:
        """Counters of `Dropout` for passes of up to `length` positions."""
        lanes = sum(self.dropout_lanes(batch, length, length))
        return random.counters(-(-lanes // random.LANES), self.device)

    def attention_mask(self, length: int, past: int, padding: Padding, branches: Branches, sees: Sees = None) -> Mask:
        """Additive mask: 0 where a query may look, the most negative float elsewhere."""
        keys = torch.arange(past + length, device=self.device)
        blocked = branches.blocked(keys[past:], keys)
        if padding is not None:
            blocked = blocked | (keys < padding[..., None, None, None])
        if sees is not None:
            depths = branches.depths(past + length, self.device)
            blocked = blocked | ~sees[depths[past:]][:, depths]
        return torch.zeros(blocked.shape, device=self.device).masked_fill(blocked, torch.finfo(torch.float32).min)

    def position_embedding(self, length: int, past: int, padding: Padding, branches: Branches) -> Positions:
        """Learned positions, counted along a branch from the first token, or from the first that is not padding."""
        places, deep = slice(past, past + length), branches.depth(past + length - 1) + 1
        if padding is None or self.reads["padding_counts"]:
            return branches.laid_out(self.transformer.wpe.weight[:, :deep])[:, None, places]
        positions = branches.depths(past + length, self.device)[past:]
        return self.transformer.wpe((positions - padding[..., None]).clamp(min=0))

    def hidden(
        self,
        x: Hidden,
        outputs: int | None = None,
        padding: Padding = None,
        cache: Cache | None = None,
        dropout: Dropout | None = None,
        branches: Branches = ONE,
        sees: Sees = None,
    ) -> Outputs:
        """States after the final layer norm at the last `outputs` positions (default: all).

        `branches` says how the positions, the cache included, branch; `sees`, which positions along a branch
        each may attend to, by default all before it.
        """
        length, past = x.shape[2], cache.length if cache else 0
        outputs = length if outputs is None else outputs
        if outputs < 1:
            raise SpecError(f"outputs={outputs}: give at least one, or None for all.")
        deep = branches.depth(past + length - 1) + 1
        if deep > self.shape["positions"]:
            raise SpecError(f"{deep} positions, but the model has {self.shape['positions']}.")
        mask = self.attention_mask(length, past, padding, branches, sees)
        lanes = self.dropout_lanes(x.shape[1], length, outputs, past)
        sites: Iterator[Tensor | None] = iter(dropout.scales(lanes) if dropout else ())
        x = drop(x + self.position_embedding(length, past, padding, branches), next(sites, None))
        for index, block in enumerate(self.transformer.h):
            last = index == self.shape["layers"] - 1
            x = block(x, outputs if last else length, mask, cache, index, [next(sites, None) for _ in range(3)])
        return self.transformer.ln_f(x)

    def logits(self, hidden: Hidden) -> Float[Tensor, "run batch position vocab"]:
        table = self.transformer.wte.weight.transpose(1, 2)
        return torch.bmm(hidden.flatten(1, 2), table).unflatten(1, hidden.shape[1:3])

    def forward(self, x: Hidden, **options) -> Float[Tensor, "run batch output vocab"]:
        """Logits for input embeddings; options as in `hidden`."""
        return self.logits(self.hidden(x, **options))

    def select(self, runs: Sequence[int]) -> "GPT2Stack":
        """A new stack with copies of the given runs."""
        chosen = GPT2Stack(len(runs), **self.shape, seeds=[0] * len(runs), **self.reads)
        chosen.load_state_dict({name: value[list(runs)] for name, value in self.state_dict().items()})
        return chosen.to(self.device)

    def to_hf(self, run: int):
        """Run `run` as a `transformers.GPT2LMHeadModel` in evaluation mode (needs the extra `llm`)."""
        from cot2lib.model.huggingface import to_hf

        return to_hf(self, run)

    @classmethod
    def from_hf(cls, models: Sequence) -> "GPT2Stack":
        """A stack of models of `transformers.GPT2LMHeadModel` of one shape (needs the extra `llm`)."""
        from cot2lib.model.huggingface import from_hf

        return from_hf(cls, models)
