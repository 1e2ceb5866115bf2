"""Supervised training of a stack: CSFT, discrete CoT, no-CoT, COCONUT's curriculum.

With teacher forcing every prefix is known, so a training step is one parallel forward over the
prompt and the m-1 fed thoughts z*_t = E^T alpha*_t, for all runs at once; gradients flow into the
embedding table through the fed thoughts, as in the authors' code. Where the first few thoughts are the
model's own (self-feeding, COCONUT's stages), those are made one by one, gradients flowing through
them, and the rest follows in one forward.

Where it differs from the authors' code: batches are always full (a run walks an endless
concatenation of shuffles of its training inputs), the loss is a cross-entropy, evaluation is
batched, and all randomness is keyed (`cot2lib.random`), so a run can be stopped, resumed and stacked
with others without changing. Their trainer never switches from the teacher to the model's own
thoughts, though an option says so; ours does. COCONUT there thinks with `ZeroSlot`.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import decode, losses, random
from cot2lib.data import StackData, stack_data
from cot2lib.embedding import trigonometric_table
from cot2lib.errors import SpecError
from cot2lib.model import Cache, Dropout, GPT2Stack
from cot2lib.random import Site
from cot2lib.specs import Recipe, RunSpec
from cot2lib.thoughts import Discrete, Rule

SEGMENT = 250  # most steps between two looks at the clock
FIRST_LOSSES = 20
WARM_UP = 3  # eager steps before a CUDA graph is captured


def shape_of(spec: RunSpec) -> RunSpec:
    """The spec with everything reset that may differ between runs of one stack."""
    return replace(
        spec,
        seed=0,
        recipe=replace(spec.recipe, lr=1.0),
        supervision=replace(spec.supervision, budget=None, ties="minus-first"),
    )


def by_shape(specs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Distinct runs in groups that can be stacked, in the order they come."""
    shapes: dict[RunSpec, list[RunSpec]] = {}
    for spec in dict.fromkeys(specs):
        shapes.setdefault(shape_of(spec), []).append(spec)
    return list(shapes.values())


def build_stack(specs: Sequence[RunSpec]) -> GPT2Stack:
    """Freshly initialised models of runs of one shape; a frozen embedding table asks for no gradient."""
    task, model = specs[0].task, specs[0].model
    seeds = [spec.seed for spec in specs]
    stack = GPT2Stack(
        len(specs), task.vocab_size, task.positions, model.d_model, model.layers, model.heads, seeds=seeds
    )
    if model.embedding != "learned":
        table = stack.transformer.wte.weight
        with torch.no_grad():
            table.copy_(trigonometric_table(task.numbers, task.kinds, model.d_model))
        table.requires_grad_(model.embedding != "cosine, frozen")
    return stack


def batch_loss(
    stack: GPT2Stack,
    spec: RunSpec,
    prompts: Int[Tensor, "run batch token"],
    outputs: Float[Tensor, "run batch step vocab"],
    padding: Int[Tensor, "run batch"] | None = None,
    own: int = 0,
    dropout: Dropout | None = None,
) -> Float[Tensor, " run"]:
    """Loss of one batch per run, mean over the batch (paper, eqs. cont-obj and discrete-obj).

    Args:
        stack: the models.
        spec: any run of the stack; its supervision says what is scored, its thought rule what is fed.
        prompts: token ids.
        outputs: target distributions.
        padding: tokens on the left of each prompt that are padding.
        own: how many leading thoughts the models make themselves; the rest are the targets.
        dropout: multipliers of this step, or none.
    """
    supervision, cache = spec.supervision, Cache() if own else None
    inputs, logits = stack.embed(prompts), []
    for _ in range(own):
        hidden = stack.hidden(inputs, outputs=1, padding=padding, cache=cache, dropout=dropout)[:, :, 0]
        scores, _, inputs = decode.think(stack, spec.thought, hidden, _no_draws, cache, padding, dropout)
        logits.append(scores[:, :, None])
    inputs = torch.cat([inputs, stack.mix(outputs[:, :, own:-1])], dim=2)
    scored = outputs.shape[2] - own if supervision.loss_on == "outputs" else None
    logits.append(stack(inputs, outputs=scored, padding=padding, cache=cache, dropout=dropout))
    if supervision.loss_on == "sequence":
        nll = losses.sequence_nll(logits[0], prompts, outputs)
    else:
        first = own if supervision.feeding == "stages" else 0
        nll = losses.soft_nll(torch.cat(logits, dim=2), outputs)[:, :, first:]
    return (nll.sum(-1) if supervision.reduction == "sum" else nll.mean(-1)).mean(-1)


def _no_draws(count: int) -> Tensor:
    raise SpecError("a run that is fed its own thoughts in training needs a rule that does not sample.")


def learning_rates(recipe: Recipe, start: int, steps: int) -> Float[Tensor, " step"]:
    """Multiplier of the peak learning rate at steps start..start+steps."""
    cycle = torch.arange(start, start + steps) * recipe.cycles // recipe.steps
    first, beyond = (-(-(cycle + ahead) * recipe.steps // recipe.cycles) for ahead in (0, 1))
    step = (torch.arange(start, start + steps) - first).double()
    rate = ((step + 1) / (recipe.warmup + 1)).clamp(max=1.0)
    if recipe.schedule == "cosine":
        progress = ((step - recipe.warmup) / (beyond - first - recipe.warmup)).clamp(min=0.0)
        rate = rate * (1 + torch.cos(math.pi * progress)) / 2
    return rate.float()


@dataclass
class Progress:
    """What training has produced so far; saved in checkpoints and in finished stacks.

    Attributes:
        step: steps taken.
        first_losses: losses of the first 20 steps, (run, step).
        curves: one dict per evaluation: its step, and per-run lists.
        seconds: wall time spent training and evaluating.
        loss_sum, loss_steps: training loss since the last evaluation.
    """

    step: int = 0
    first_losses: list[list[float]] = field(default_factory=list)
    curves: list[dict] = field(default_factory=list)
    seconds: float = 0.0
    loss_sum: list[float] = field(default_factory=list)
    loss_steps: int = 0


class StackTrainer:
    """Trains runs of one shape together.

    Args:
        specs: runs whose `shape_of` agree.
        device: where to train.
        compile: compile forward and loss (worth it above some minutes of CPU work).
    """

    def __init__(self, specs: Sequence[RunSpec], device: torch.device | str = "cpu", compile: bool = False):
        self.specs = list(specs)
        self.spec, self.recipe = specs[0], specs[0].recipe
        self.device = torch.device(device)
        self.stack = build_stack(specs).to(self.device)
        self.data: StackData = stack_data(specs, self.device)
        self.progress = Progress(loss_sum=[0.0] * len(specs))
        self.optimizer = self._optimizer()
        if compile:
            torch.compiler.reset()  # compilations of earlier stacks count against torch's limit per function
        self.loss = torch.compile(batch_loss, dynamic=False) if compile else batch_loss
        self.own = 0  # thoughts the models make themselves at the step to come
        self.graph: torch.cuda.CUDAGraph | None = None
        self._allocate()

    def _optimizer(self) -> torch.optim.AdamW:
        """Fused AdamW over blocks of neighbouring runs with one learning rate, without what stays as it is.

        Gradients are allocated once.
        """
        parameters = [parameter for parameter in self.stack.parameters() if parameter.requires_grad]
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.gradients = [parameter.grad for parameter in parameters]
        peaks = [spec.recipe.lr for spec in self.specs]
        edges = [0, *(r for r in range(1, len(peaks)) if peaks[r] != peaks[r - 1]), len(peaks)]
        self.peaks = [peaks[edge] for edge in edges[:-1]]
        groups = []
        for first, last, peak in zip(edges, edges[1:], self.peaks):
            block = [parameter.detach()[first:last] for parameter in parameters]
            for view, gradient in zip(block, self.gradients):
                view.grad = gradient[first:last]
            groups.append({"params": block, "lr": torch.tensor(peak, device=self.device)})
        on_gpu = self.device.type == "cuda"
        return torch.optim.AdamW(groups, weight_decay=self.recipe.weight_decay, fused=True, capturable=on_gpu)

    def _allocate(self) -> None:
        """Tensors a step reads and writes, so that it can be captured once and replayed."""
        runs, device = len(self.specs), self.device
        self.order = torch.zeros(runs, SEGMENT, self.recipe.batch, dtype=torch.int64, device=device)
        self.rates = torch.ones(SEGMENT, device=device)
        self.losses = torch.zeros(runs, SEGMENT, device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.dropout_keys = random.run_keys([spec.seed for spec in self.specs], Site.DROPOUT, device=device)
        length = self.data.prompts.shape[1] + self.data.outputs.shape[2] - 1
        most = self.stack.dropout_lanes(self.recipe.batch, length, length)
        self.counter = random.counters(-(-sum(most) // random.LANES), device)

    def dropout(self) -> Dropout | None:
        """The multipliers of the step to come."""
        if not self.recipe.dropout:
            return None
        return Dropout(random.fold(self.dropout_keys, self.step), self.counter, self.recipe.dropout)

    def take_step(self) -> None:
        """One optimiser step of every run; touches nothing but tensors allocated before."""
        index = self.order.index_select(1, self.position)[:, 0]
        loss = self.loss(self.stack, self.spec, *self.data.batch(index), self.own, self.dropout())
        torch._foreach_zero_(self.gradients)
        loss.sum().backward()
        rate = self.rates.index_select(0, self.position)[0]
        for group, peak in zip(self.optimizer.param_groups, self.peaks):
            group["lr"].copy_(rate * peak)
        self.optimizer.step()
        self.losses.index_copy_(1, self.position, loss.detach()[:, None])
        self.position += 1
        self.step += 1

    def advance(self, steps: int) -> None:
        """Take `steps` steps: at most SEGMENT, and none beyond a change of who feeds (see `ahead`)."""
        start = self.progress.step
        if (own := self._own(start)) != self.own:
            self.own, self.graph = own, None
        self.order[:, :steps] = self.data.order([s.seed for s in self.specs], start, steps, self.recipe.batch)
        self.rates[:steps] = learning_rates(self.recipe, start, steps)
        self.position.zero_()
        self.step.fill_(start)
        self._take_steps(steps)
        self._log(steps)

    def ahead(self) -> int:
        """Steps until the next evaluation, the end or a change of who feeds, at most SEGMENT."""
        step, every = self.progress.step, self.recipe.evaluate_every
        most = min(SEGMENT, every - step % every, self.recipe.steps - step)
        return next((k for k in range(1, most) if self._own(step + k) != self._own(step)), most)

    def _own(self, step: int) -> int:
        return self.spec.supervision.own_thoughts(self.spec.outputs, step, self.recipe.steps)

    def _take_steps(self, steps: int) -> None:
        """On CUDA the step is captured once, after a few eager ones on a side stream, and replayed."""
        if self.device.type != "cuda":
            for _ in range(steps):
                self.take_step()
            return
        if self.graph is None:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            eager = min(steps, WARM_UP)
            with torch.cuda.stream(side):
                for _ in range(eager):
                    self.take_step()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.take_step()
            steps -= eager
        for _ in range(steps):
            self.graph.replay()

    def _log(self, steps: int) -> None:
        progress, taken = self.progress, self.losses[:, :steps].cpu()
        missing = FIRST_LOSSES - progress.step
        if missing > 0:
            earlier = progress.first_losses or [[] for _ in self.specs]
            progress.first_losses = [a + b for a, b in zip(earlier, taken[:, :missing].tolist())]
        progress.loss_sum = [a + b for a, b in zip(progress.loss_sum, taken.double().sum(1).tolist())]
        progress.loss_steps += steps
        progress.step += steps

    def optimizer_tensors(self) -> dict[str, Tensor]:
        """AdamW's state, by place of the parameter block and name."""
        blocks = [block for group in self.optimizer.param_groups for block in group["params"]]
        return {f"{place}.{name}": t for place, b in enumerate(blocks) for name, t in self.optimizer.state[b].items()}

    def restore(self, weights: dict[str, Tensor], optimizer: dict[str, Tensor], progress: Progress) -> None:
        """Go on from a checkpoint: what the three were when it was taken."""
        self.stack.load_state_dict(weights)
        blocks = [block for group in self.optimizer.param_groups for block in group["params"]]
        for key, tensor in optimizer.items():
            place, name = key.split(".")
            self.optimizer.state[blocks[int(place)]][name] = tensor.to(self.device)
        self.progress = progress

    def train(self, after_segment: Callable[[int], None] = lambda steps: None) -> Progress:
        """Train to the end, evaluating as the recipe says; `after_segment(steps)` is called between segments."""
        while self.progress.step < self.recipe.steps:
            began = time.perf_counter()
            ahead = self.ahead()
            self.advance(ahead)
            if self.progress.step % self.recipe.evaluate_every == 0 or self.progress.step == self.recipe.steps:
                self._record()
            self.progress.seconds += time.perf_counter() - began
            after_segment(ahead)
        return self.progress

    def _record(self) -> None:
        progress = self.progress
        mean = [total / progress.loss_steps for total in progress.loss_sum]
        found = evaluate(self.stack, self.data, self.specs, self.own)
        progress.curves.append({"step": progress.step, "loss": mean, **found})
        progress.loss_sum, progress.loss_steps = [0.0] * len(self.specs), 0


def evaluation_rules(spec: RunSpec, own: int) -> list[Rule]:
    """How a run is evaluated: its own rule before the answer; in a stage of COCONUT, tokens after `own` thoughts."""
    if spec.supervision.feeding == "stages":
        return [*[spec.thought] * own, *[Discrete()] * (spec.outputs - own)]
    return decode.rules(spec.thought, spec.outputs)


@torch.no_grad()
def evaluate(stack: GPT2Stack, data: StackData, specs: Sequence[RunSpec], own: int = 0) -> dict[str, list]:
    """Self-fed decoding of every run's held-out inputs.

    Returns per-run lists: `correct_a`, `correct_b`, right answers in the two halves of the validation
    classes, and `entropy_t`, mean entropy in nats of the step-t distribution.
    """
    held_out, steps = data.held_out, evaluation_rules(specs[0], own)
    keys = random.run_keys([spec.seed for spec in specs], Site.DECODE, device=stack.device)
    right, entropies = [], []
    for chunk, index in enumerate(held_out.index.split(decode.PROMPTS_AT_ONCE, dim=1)):
        padding = data.padding_of(index)
        rollout = decode.decode(stack, data.prompts[index], steps, random.fold(keys, chunk), padding)
        right.append(rollout.answers == data.answers[index])
        entropies.append(torch.special.entr(rollout.logits.softmax(-1)).sum(-1))
    right = torch.cat(right, 1) & held_out.real
    entropy = (torch.cat(entropies, 1) * held_out.real[..., None]).sum(1) / held_out.real.sum(1, keepdim=True)
    return {
        "correct_a": (right & ~held_out.half).sum(1).tolist(),
        "correct_b": (right & held_out.half).sum(1).tolist(),
        **{f"entropy_{t + 1}": entropy[:, t].tolist() for t in range(len(steps))},
    }
