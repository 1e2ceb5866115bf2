"""The same training step as others would batch it over runs: `torch.func.vmap`, and JAX's `jit` of a `vmap`.

Both train R models of one shape on the batches of our own trainer, with dropout, teacher forcing and AdamW. Dropout
masks are the framework's own.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch.func import functional_call, grad, vmap

from cot2lib.losses import soft_nll
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.training.data import Batch, stack_data
from cot2lib.training.supervised import build_stack

Turn = Callable[[], None]


def hugging_face_model() -> torch.nn.Module:
    """The main model as a `transformers.GPT2LMHeadModel` that trains, dropout included; SpecError without it."""
    run = spec("cot2", "paper")
    model = build_stack([run]).to_hf(0).train()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = run.recipe.dropout
    return model


def taught_logits(
    model: torch.nn.Module, prompts: Int[torch.Tensor, "batch token"], outputs: Float[torch.Tensor, "batch step vocab"]
) -> Float[torch.Tensor, "batch step vocab"]:
    """Scores of every output of a Hugging Face model that is fed the outputs before it, in one forward."""
    table = model.transformer.wte
    inputs = torch.cat([table(prompts), outputs[:, :-1] @ table.weight], dim=1)
    return model(inputs_embeds=inputs).logits[:, -outputs.shape[1] :]


def own_logits(
    model: torch.nn.Module, prompts: Int[torch.Tensor, "batch token"], outputs: Float[torch.Tensor, "batch step vocab"]
) -> Float[torch.Tensor, "batch step vocab"]:
    """The same of one that is fed its own mixtures, step by step with its cache; gradients run through them."""
    table = model.transformer.wte
    out = model(inputs_embeds=table(prompts), use_cache=True)
    logits = [out.logits[:, -1]]
    for _ in range(outputs.shape[1] - 1):
        fed = (logits[-1].softmax(-1) @ table.weight)[:, None]
        out = model(inputs_embeds=fed, past_key_values=out.past_key_values, use_cache=True)
        logits.append(out.logits[:, -1])
    return torch.stack(logits, 1)


def batches(specs: Sequence[RunSpec], steps: int) -> list[Batch]:
    """Our trainer's batches of the first steps."""
    data = stack_data(specs, "cpu")
    order = data.order([spec.seed for spec in specs], 0, steps, specs[0].recipe.batch)
    return [data.batch(index) for index in order.unbind(1)]


def vmap_turn(specs: Sequence[RunSpec], steps: int) -> Turn:
    """Hugging Face's GPT-2, its parameters stacked, gradients by `vmap(grad(...))`, fused AdamW."""
    model, recipe = hugging_face_model(), specs[0].recipe
    stacked = {
        name: torch.stack([value.detach()] * len(specs)).requires_grad_() for name, value in model.named_parameters()
    }
    optimizer = torch.optim.AdamW(stacked.values(), lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    given = batches(specs, steps)

    def loss(parameters: dict, prompts: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        table = parameters["transformer.wte.weight"]
        inputs = torch.cat([F.embedding(prompts, table), outputs[:, :-1] @ table], dim=1)
        logits = functional_call(model, parameters, (), dict(inputs_embeds=inputs, use_cache=False)).logits
        return soft_nll(logits[None, :, -outputs.shape[1] :], outputs[None]).sum(-1).mean()

    gradients = vmap(grad(loss), randomness="different")

    def turn() -> None:
        for batch in given:
            detached = {name: value.detach() for name, value in stacked.items()}
            for name, gradient in gradients(detached, batch.prompts, batch.outputs).items():
                stacked[name].grad = gradient
            optimizer.step()

    return turn


def jax_turn(specs: Sequence[RunSpec], steps: int) -> Turn:
    """A plain GPT-2 in JAX: `jit` of a `vmap` over runs of loss, gradients and AdamW."""
    import jax
    from jax import numpy as jnp

    run, d, heads, layers = specs[0], specs[0].model.d_model, specs[0].model.heads, specs[0].model.layers
    rate, decay, keep = run.recipe.lr, run.recipe.weight_decay, 1 - run.recipe.dropout
    sizes = {"wte": (run.task.vocab_size, d), "wpe": (run.task.positions, d)}
    for k in range(layers):
        sizes |= {f"{k}.qkv": (d, 3 * d), f"{k}.proj": (d, d), f"{k}.fc": (d, 4 * d), f"{k}.out": (4 * d, d)}
    widths = {"qkv": 3 * d, "proj": d, "fc": 4 * d, "out": d}
    keys = jax.random.split(jax.random.key(0), len(sizes))
    drawn = {name: 0.02 * jax.random.normal(key, size) for key, (name, size) in zip(keys, sizes.items())}
    drawn |= {f"{k}.{name}.bias": jnp.zeros(width) for k in range(layers) for name, width in widths.items()}
    norms = [f"{k}.ln{i}" for k in range(layers) for i in (1, 2)] + ["ln"]
    drawn |= {f"{name}.{part}": value for name in norms for part, value in (("w", jnp.ones(d)), ("b", jnp.zeros(d)))}

    def norm(p, name, x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p[f"{name}.w"] + p[f"{name}.b"]

    def loss(p, prompts, outputs, key):
        keys = iter(jax.random.split(key, 1 + 3 * layers))
        drop = lambda x: jnp.where(jax.random.bernoulli(next(keys), keep, x.shape), x / keep, 0.0)
        linear = lambda name, x: x @ p[name] + p[f"{name}.bias"]
        x = jnp.concatenate([p["wte"][prompts], outputs[:, :-1] @ p["wte"]], 1)
        x = drop(x + p["wpe"][: x.shape[1]])
        ahead = jnp.triu(jnp.full((x.shape[1], x.shape[1]), -1e30), 1)
        for k in range(layers):
            split = lambda part: part.reshape(*part.shape[:2], heads, -1).swapaxes(1, 2)
            query, key_, value = map(split, jnp.split(linear(f"{k}.qkv", norm(p, f"{k}.ln1", x)), 3, -1))
            weights = drop(jax.nn.softmax(query @ key_.swapaxes(2, 3) / math.sqrt(d // heads) + ahead))
            x = x + drop(linear(f"{k}.proj", (weights @ value).swapaxes(1, 2).reshape(x.shape)))
            x = x + drop(linear(f"{k}.out", jax.nn.gelu(linear(f"{k}.fc", norm(p, f"{k}.ln2", x)))))
        logits = norm(p, "ln", x[:, -outputs.shape[1] :]) @ p["wte"].T
        return -(outputs * jax.nn.log_softmax(logits)).sum((1, 2)).mean()

    def step(p, mean, square, count, prompts, outputs, key):
        gradient = jax.grad(loss)(p, prompts, outputs, key)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, gradient)
        size, root = rate / (1 - 0.9**count), 1 / jnp.sqrt(1 - 0.999**count)
        move = lambda w, m, v: w * (1 - rate * decay) - size * m / (jnp.sqrt(v) * root + 1e-8)
        return jax.tree.map(move, p, mean, square), mean, square

    every = jax.jit(jax.vmap(step, in_axes=(0, 0, 0, None, 0, 0, 0)))
    state = [jax.tree.map(lambda value: jnp.stack([value] * len(specs)), drawn)]
    state += [jax.tree.map(jnp.zeros_like, state[0]) for _ in range(2)]
    given = [(jnp.array(batch.prompts.numpy()), jnp.array(batch.outputs.numpy())) for batch in batches(specs, steps)]
    draws = jax.random.split(jax.random.key(1), steps * len(specs)).reshape(steps, len(specs))

    def turn() -> None:
        now = state
        for count, (prompts, outputs) in enumerate(given):
            now = every(*now, count + 1.0, prompts, outputs, draws[count])
        jax.block_until_ready(now)

    return turn
