"""Supervised training of a stack: CSFT with teacher forcing, discrete CoT, no-CoT.

With teacher forcing every prefix is known, so a training step is one parallel forward over the
prompt and the m-1 fed thoughts z*_t = E^T alpha*_t, for all runs at once; gradients flow into the
embedding table through the fed thoughts, as in the authors' code. Where it differs from theirs:
batches are always full (a run walks an endless concatenation of shuffles of its training inputs),
the loss is a cross-entropy, evaluation is batched, and all randomness is keyed (`cot2lib.random`),
so a run can be stopped, resumed and stacked with others without changing.
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
from cot2lib.model import GPT2Stack
from cot2lib.random import Site
from cot2lib.specs import Recipe, RunSpec, Supervision

SEGMENT = 250  # most steps between two looks at the clock
FIRST_LOSSES = 20
WARM_UP = 3  # eager steps before a CUDA graph is captured
PROMPTS_AT_ONCE = 128


def shape_of(spec: RunSpec) -> RunSpec:
    """The spec with everything reset that may differ between runs of one stack."""
    return replace(
        spec,
        seed=0,
        recipe=replace(spec.recipe, lr=1.0),
        supervision=replace(spec.supervision, budget=None, ties="minus-first"),
    )


def build_stack(specs: Sequence[RunSpec]) -> GPT2Stack:
    """Freshly initialised models of runs of one shape."""
    task, model = specs[0].task, specs[0].model
    seeds = [spec.seed for spec in specs]
    return GPT2Stack(
        len(specs), task.vocab_size, task.positions, model.d_model, model.layers, model.heads, seeds=seeds
    )


def batch_loss(
    stack: GPT2Stack,
    supervision: Supervision,
    prompts: Int[Tensor, "run batch token"],
    outputs: Float[Tensor, "run batch step vocab"],
    scales: Sequence[Tensor] | None = None,
) -> Float[Tensor, " run"]:
    """Teacher-forced loss of one batch per run, mean over the batch (paper, eqs. cont-obj and discrete-obj)."""
    inputs = torch.cat([stack.embed(prompts), stack.mix(outputs[:, :, :-1])], dim=2)
    if supervision.loss_on == "outputs":
        nll = losses.soft_nll(stack(inputs, outputs=outputs.shape[2], scales=scales), outputs)
    else:
        nll = losses.sequence_nll(stack(inputs, scales=scales), prompts, outputs)
    scored = nll.sum(-1) if supervision.reduction == "sum" else nll.mean(-1)
    return scored.mean(-1)


def learning_rates(recipe: Recipe, start: int, steps: int) -> Float[Tensor, " step"]:
    """Multiplier of the peak learning rate at steps start..start+steps."""
    step = torch.arange(start, start + steps, dtype=torch.float64)
    rate = ((step + 1) / (recipe.warmup + 1)).clamp(max=1.0)
    if recipe.schedule == "cosine":
        progress = ((step - recipe.warmup) / (recipe.steps - recipe.warmup)).clamp(min=0.0)
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
        self.recipe, self.supervision = specs[0].recipe, specs[0].supervision
        self.device = torch.device(device)
        self.stack = build_stack(specs).to(self.device)
        self.data: StackData = stack_data(specs, self.device)
        self.progress = Progress(loss_sum=[0.0] * len(specs))
        self.optimizer = self._optimizer()
        self.loss = torch.compile(self._loss, dynamic=False) if compile else self._loss
        self.graph: torch.cuda.CUDAGraph | None = None
        self._allocate()

    def _optimizer(self) -> torch.optim.AdamW:
        """Fused AdamW over blocks of neighbouring runs with one learning rate; gradients are allocated once."""
        parameters = list(self.stack.parameters())
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
        prompt, outputs = self.data.prompts.shape[1], self.data.outputs.shape[2]
        length = prompt + outputs - 1
        scored = outputs if self.supervision.loss_on == "outputs" else length
        self.lanes = self.stack.dropout_lanes(self.recipe.batch, length, scored)
        self.counter = random.counters(-(-sum(self.lanes) // random.LANES), device)

    def _scales(self) -> Sequence[Tensor] | None:
        if not self.recipe.dropout:
            return None
        keys = random.fold(self.dropout_keys, self.step)
        scales = random.dropout_scales(keys, self.counter, self.recipe.dropout)
        return scales[:, : sum(self.lanes)].split(self.lanes, dim=1)

    def _loss(self, prompts: Tensor, outputs: Tensor) -> Tensor:
        return batch_loss(self.stack, self.supervision, prompts, outputs, self._scales())

    def take_step(self) -> None:
        """One optimiser step of every run; touches nothing but tensors allocated before."""
        index = self.order.index_select(1, self.position)[:, 0]
        loss = self.loss(*self.data.batch(index))
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
        """Take `steps` (at most SEGMENT) steps."""
        start = self.progress.step
        self.order[:, :steps] = self.data.order([s.seed for s in self.specs], start, steps, self.recipe.batch)
        self.rates[:steps] = learning_rates(self.recipe, start, steps)
        self.position.zero_()
        self.step.fill_(start)
        self._take_steps(steps)
        self._log(steps)

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
            step, every = self.progress.step, self.recipe.evaluate_every
            ahead = min(SEGMENT, every - step % every, self.recipe.steps - step)
            self.advance(ahead)
            if self.progress.step % every == 0 or self.progress.step == self.recipe.steps:
                self._record()
            self.progress.seconds += time.perf_counter() - began
            after_segment(ahead)
        return self.progress

    def _record(self) -> None:
        progress = self.progress
        mean = [total / progress.loss_steps for total in progress.loss_sum]
        progress.curves.append({"step": progress.step, "loss": mean, **evaluate(self.stack, self.data, self.specs[0])})
        progress.loss_sum, progress.loss_steps = [0.0] * len(self.specs), 0


@torch.no_grad()
def evaluate(stack: GPT2Stack, data: StackData, spec: RunSpec) -> dict[str, list]:
    """Self-fed decoding of every run's held-out inputs.

    Returns per-run lists: `correct_a`, `correct_b`, right answers in the two halves of the validation
    classes, and `entropy_t`, mean entropy in nats of the step-t distribution.
    """
    held_out, steps = data.held_out, len(spec.supervision.output_steps(spec.task.steps))
    right, entropies = [], []
    for index in held_out.index.split(PROMPTS_AT_ONCE, dim=1):
        rollout = decode.decode(stack, data.prompts[index], steps, spec.thought)
        right.append(rollout.answers == data.answers[index])
        entropies.append(torch.special.entr(rollout.logits.softmax(-1)).sum(-1))
    right = torch.cat(right, 1) & held_out.real
    entropy = (torch.cat(entropies, 1) * held_out.real[..., None]).sum(1) / held_out.real.sum(1, keepdim=True)
    return {
        "correct_a": (right & ~held_out.half).sum(1).tolist(),
        "correct_b": (right & held_out.half).sum(1).tolist(),
        **{f"entropy_{t + 1}": entropy[:, t].tolist() for t in range(steps)},
    }
