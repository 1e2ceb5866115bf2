"""The paper's training step by many ways, side by side on one core: `python benchmarks/train.py [--own] [--quick]`.

A plain loop with Hugging Face's model; `torch.func.vmap` and JAX, which batch it over runs; our stack, eager and
compiled, and our fused engine. All train the main experiment's CoT2 with dropout and AdamW on our trainer's batches.
`--own` times steps on the model's own thoughts. It needs the extra `llm`; JAX needs `peers`, and is left out without
it.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

import pandas as pd
import torch
import torch.nn.functional as F
from shared import (
    BASELINE,
    QUICK_ROUNDS,
    ROUNDS,
    STEPS,
    Variant,
    beside_the_limit,
    fused,
    options,
    show,
    stack,
    step_flops,
)
from torch import Tensor
from torch.func import functional_call, grad, vmap

from cot2lib.kit.timing import threads
from cot2lib.losses import soft_nll
from cot2lib.specs import RunSpec
from cot2lib.specs.profiles import spec
from cot2lib.training.data import Batch, stack_data
from cot2lib.training.supervised import SupervisedTrainer, build_stack

SIZES = (1, 16, 64)
MOST = 16  # runs of others that batch
Model = Callable[..., RunSpec]
Turn = Callable[[], None]
MAIN = partial(spec, "cot2", "paper")
OWN = partial(MAIN, self_fed_from=0.0)


def trainer(runs: int, model: Model = MAIN, compiled: bool = False) -> SupervisedTrainer:
    """Ours, of runs that differ in their seeds."""
    made = SupervisedTrainer([model(seed=42 + run) for run in range(runs)], torch.device("cpu"))
    if compiled:
        made.loss = torch.compile(made.loss, dynamic=False)
    return made


# Others


def hugging_face_model(run: RunSpec) -> torch.nn.Module:
    """A `transformers.GPT2LMHeadModel` that trains, dropout included; SpecError without the package."""
    model = build_stack([run]).to_hf(0).train()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = run.recipe.dropout
    return model


def taught_logits(model: torch.nn.Module, prompts: Tensor, outputs: Tensor) -> Tensor:
    """Scores (batch, step, vocab) of a Hugging Face model that is fed the outputs before, in one forward."""
    table = model.transformer.wte
    inputs = torch.cat([table(prompts), outputs[:, :-1] @ table.weight], dim=1)
    return model(inputs_embeds=inputs).logits[:, -outputs.shape[1] :]


def own_logits(model: torch.nn.Module, prompts: Tensor, outputs: Tensor) -> Tensor:
    """The same of one that is fed its own mixtures, step by step with its cache; gradients run through them."""
    table = model.transformer.wte
    out = model(inputs_embeds=table(prompts), use_cache=True)
    logits = [out.logits[:, -1]]
    for _ in range(outputs.shape[1] - 1):
        fed = (logits[-1].softmax(-1) @ table.weight)[:, None]
        out = model(inputs_embeds=fed, past_key_values=out.past_key_values, use_cache=True)
        logits.append(out.logits[:, -1])
    return torch.stack(logits, 1)


def hugging_face(model: Model = MAIN) -> Variant:
    """The same model, loss and optimiser the usual way: one model, one batch, fused AdamW."""
    run = model()
    data, plain = stack_data([run], "cpu"), hugging_face_model(run)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=run.recipe.lr, fused=True)
    batches = data.order([run.seed], 0, STEPS, run.recipe.batch)[0]
    scores = taught_logits if run.supervision.feeding == "teacher" else own_logits

    def turn() -> None:
        for index in batches:
            outputs = data.outputs[0, index]
            logits = scores(plain, data.prompts[index], outputs)
            optimizer.zero_grad()
            soft_nll(logits[None], outputs[None]).sum(-1).mean().backward()
            optimizer.step()

    return Variant(BASELINE, 1, turn, STEPS)


def batches_of(specs: Sequence[RunSpec]) -> list[Batch]:
    """Our trainer's batches of the first steps."""
    data = stack_data(specs, "cpu")
    order = data.order([spec.seed for spec in specs], 0, STEPS, specs[0].recipe.batch)
    return [data.batch(index) for index in order.unbind(1)]


def vmap_turn(specs: Sequence[RunSpec]) -> Turn:
    """Hugging Face's GPT-2, its parameters stacked, gradients by `vmap(grad(...))`, fused AdamW."""
    model, recipe = hugging_face_model(specs[0]), specs[0].recipe
    stacked = {
        name: torch.stack([value.detach()] * len(specs)).requires_grad_() for name, value in model.named_parameters()
    }
    optimizer = torch.optim.AdamW(stacked.values(), lr=recipe.lr, weight_decay=recipe.weight_decay, fused=True)
    given = batches_of(specs)

    def loss(parameters: dict, prompts: Tensor, outputs: Tensor) -> Tensor:
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


def jax_turn(specs: Sequence[RunSpec]) -> Turn:
    """A plain GPT-2 in JAX: `jit` of a `vmap` over runs of loss, gradients and AdamW."""
    import jax
    from jax import numpy as jnp

    run, d, heads, layers = specs[0], specs[0].model.d_model, specs[0].model.heads, specs[0].model.layers
    rate, decay, keep = run.recipe.lr, run.recipe.weight_decay, 1 - run.recipe.dropout

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
    state = [jax.tree.map(lambda value: jnp.stack([value] * len(specs)), jax_weights(run))]
    state += [jax.tree.map(jnp.zeros_like, state[0]) for _ in range(2)]
    given = [(jnp.array(batch.prompts.numpy()), jnp.array(batch.outputs.numpy())) for batch in batches_of(specs)]
    draws = jax.random.split(jax.random.key(1), STEPS * len(specs)).reshape(STEPS, len(specs))

    def turn() -> None:
        now = state
        for count, (prompts, outputs) in enumerate(given):
            now = every(*now, count + 1.0, prompts, outputs, draws[count])
        jax.block_until_ready(now)

    return turn


def jax_weights(run: RunSpec) -> dict:
    """The parameters of that GPT-2, as it begins."""
    import jax
    from jax import numpy as jnp

    d, layers = run.model.d_model, run.model.layers
    sizes = {"wte": (run.task.vocab_size, d), "wpe": (run.task.positions, d)}
    for k in range(layers):
        sizes |= {f"{k}.qkv": (d, 3 * d), f"{k}.proj": (d, d), f"{k}.fc": (d, 4 * d), f"{k}.out": (4 * d, d)}
    widths = {"qkv": 3 * d, "proj": d, "fc": 4 * d, "out": d}
    keys = jax.random.split(jax.random.key(0), len(sizes))
    drawn = {name: 0.02 * jax.random.normal(key, size) for key, (name, size) in zip(keys, sizes.items())}
    drawn |= {f"{k}.{name}.bias": jnp.zeros(width) for k in range(layers) for name, width in widths.items()}
    norms = [f"{k}.ln{i}" for k in range(layers) for i in (1, 2)] + ["ln"]
    return drawn | {f"{norm}.{part}": jnp.full(d, value) for norm in norms for part, value in (("w", 1.0), ("b", 0.0))}


# Tables


def peers_of_ours() -> list[Variant]:
    """Other ways to batch over runs, as far as they are installed."""
    specs = [MAIN(seed=42 + run) for run in range(MOST)]
    made = {"torch.func.vmap": vmap_turn(specs)} | ({"JAX": jax_turn(specs)} if find_spec("jax") else {})
    return [Variant(f"{name}, {MOST} runs", MOST, turn, STEPS) for name, turn in made.items()]


def steps(rounds: int, compiled: bool, model: Model = MAIN) -> pd.DataFrame:
    """Steps of a run in a second by every way, with `minutes` of a run by the authors' recipe."""
    stacks = [stack(trainer(n, model, fast), fast) for fast in ([False, True] if compiled else [False]) for n in SIZES]
    engines = [way for runs in SIZES[:2] for way in fused(trainer(runs, model))]
    peers = peers_of_ours() if model is MAIN else []  # taught ones alone
    rows = beside_the_limit([hugging_face(model), *stacks, *peers, *engines], rounds, step_flops(trainer(1, model)))
    return rows.assign(minutes=model().recipe.steps / rows["rate"] / 60)


if __name__ == "__main__":
    parser = options(__doc__.partition(":")[0])
    parser.add_argument("--own", action="store_true", help="steps on own thoughts")
    asked = parser.parse_args()
    with threads(1):
        show(steps(QUICK_ROUNDS if asked.quick else ROUNDS, not asked.quick, OWN if asked.own else MAIN))
