"""Supervised training of a stack: CSFT, discrete CoT, no-CoT, COCONUT's curriculum.

With teacher forcing every prefix is known, so a training step is one parallel forward over the
prompt and the m-1 fed thoughts z*_t = E^T alpha*_t, for all runs at once; gradients flow into the
embedding table through the fed thoughts, as in the authors' code. Where the first few thoughts are the
model's own (self-feeding, COCONUT's stages), those are made one by one, gradients flowing through
them, and the rest follows in one forward.

Where it differs from the authors' code: batches are always full (a run walks an endless
concatenation of shuffles of its training inputs), the loss is a cross-entropy, evaluation is
batched, and all randomness is keyed (`cot2lib.kit.random`), so a run can be stopped, resumed and stacked
with others without changing. Their trainer never switches from the teacher to the model's own
thoughts, though an option says so; ours does. COCONUT there thinks with `ZeroSlot`. AdamW's state passes from stage to
stage, as there; COCONUT's own code resets it.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import decode, losses
from cot2lib.errors import SpecError
from cot2lib.model import Cache, Dropout, GPT2Stack
from cot2lib.model.stack import GPT2_SD
from cot2lib.model.trigonometric import trigonometric_table
from cot2lib.specs import Run, trained_once
from cot2lib.thoughts import Discrete, Rule
from cot2lib.training.data import Batch, Outcomes, shown_outputs, stack_data
from cot2lib.training.trainer import StackTrainer


def build_stack(specs: Sequence[Run]) -> GPT2Stack:
    """Freshly initialised models of runs of one shape; a frozen embedding table asks for no gradient."""
    task, model = specs[0].task, specs[0].model
    seeds = [spec.seed for spec in specs]
    shape = task.vocab_size, task.positions, model.d_model, model.layers, model.heads
    stack = GPT2Stack(len(specs), *shape, seeds=seeds, pairs=task.pairs, padding_counts=task.padding_counts)
    table = stack.transformer.wte.weight
    with torch.no_grad():
        if model.embedding != "learned":
            assert task.numbers is not None
            table.copy_(trigonometric_table(task.numbers, task.kinds, model.d_model))
        elif model.embedding_sd != GPT2_SD:
            table.mul_(model.embedding_sd / GPT2_SD)
    table.requires_grad_(model.embedding != "cosine, frozen")
    return stack


def batch_loss(
    stack: GPT2Stack, spec: Run, batch: Batch, own: int = 0, end: int | None = None, dropout: Dropout | None = None
) -> Float[Tensor, " run"]:
    """Loss of one batch per run, mean over the batch (paper, eqs. cont-obj and discrete-obj).

    Args:
        spec: any run of the stack; its supervision says what is scored, its thought rule what is fed.
        batch: prompts, targets, and what is fed where that is another thing.
        own: how many leading thoughts the models make themselves; the rest are the teacher's.
        end: how many leading outputs are scored, where a curriculum says so; None for all.
    """
    supervision, targets = spec.supervision, batch.outputs  # (run, batch, step, vocab)
    options: dict[str, Any] = dict(
        padding=batch.padding, cache=Cache() if own else None, dropout=dropout, sees=batch.sees
    )
    teacher = targets if batch.fed is None else batch.fed  # (run, batch, step, vocab)
    fed, logits = stack.embed(batch.prompts), []  # (run, batch, token, d)
    for step in range(own):
        hidden = stack.hidden(fed, outputs=1, **options)
        scores, _, fed = decode.think(stack, spec.thought, hidden, _no_draws, step, **options)
        logits.append(scores[:, :, None])
    fed = torch.cat([fed, stack.mix(teacher[:, :, own:-1])], dim=2)
    scored = targets.shape[2] - own if supervision.loss_on == "outputs" else None
    logits.append(stack(fed, outputs=scored, **options))
    if supervision.loss_on == "sequence":
        nll = losses.sequence_nll(logits[0], batch.prompts, targets)
        return losses.reduce(nll, supervision.reduction)
    score = losses.set_nll if supervision.scoring == "set" else losses.soft_nll
    nll = score(torch.cat(logits, dim=2), targets)  # (run, batch, step)
    first = own if supervision.feeding == "stages" else 0
    there = batch.scored(first, end)
    return losses.reduce(nll[:, :, first:] if there is None else nll, supervision.reduction, there)


def _no_draws(count: int) -> Float[Tensor, "run batch draw"]:
    raise SpecError("a run that is fed its own thoughts in training needs a rule that does not sample.")


class SupervisedTrainer(StackTrainer):
    """Trains supervised runs of one shape; runs of one training share a model, which each reads by its rule."""

    def __init__(self, specs: Sequence[Run], device: torch.device | str = "cpu"):
        once = trained_once(specs)
        super().__init__(specs, build_stack(once).to(device), stack_data(once, device))
        self.data.tables()  # which a captured step could not make
        self.loss: Callable = batch_loss

    def phase_at(self, step: int) -> tuple:
        """How many leading thoughts the models make themselves, and how many leading outputs are scored."""
        supervision, steps = self.spec.supervision, self.recipe.steps
        own = supervision.own_thoughts(self.spec.outputs, step, steps)
        return own, supervision.scored(self.data.steps, step, steps)

    @cached_property
    def drawn_anew(self) -> bool:
        targets = self.spec.supervision.targets
        return targets is not None and targets.fresh

    @cached_property
    def drawn(self) -> tuple[Outcomes, Outcomes] | None:
        """Labels and fed mixtures of the step to come, where they are drawn anew at every visit."""
        if not self.drawn_anew:
            return None
        size = len(self.specs), self.recipe.batch, *self.data.outputs.shape[2:]
        return torch.zeros(size, device=self.device), torch.zeros(size, device=self.device)

    def prepare(self, place: int) -> None:
        if self.drawn is None:
            return
        for run, spec in enumerate(self.specs):
            rows = self.order[run, place].cpu()
            steps = torch.full_like(rows, self.progress.step + place)
            made = shown_outputs(spec, rows, self.data.train[run], steps)
            for tensor, values in zip(self.drawn, made):
                tensor[run].copy_(values)

    def update(self, index: Int[Tensor, "run batch"]) -> Float[Tensor, " run"]:
        batch = self.data.batch(index, self.names(index), self.drawn)
        loss = self.loss(self.stack, self.spec, batch, *self.phase, self.dropout())
        self.descend(loss)
        return loss

    def evaluate(self) -> dict[str, list]:
        by = lambda rule: self.engine.decoded(evaluation_rules(self.spec, rule, self.phase[0]))
        found = {rule: by(rule) for rule in dict.fromkeys(run.thought for run in self.asked)}
        each = list(zip((run.thought for run in self.asked), self.model_of))
        return {name: [found[rule][name][model] for rule, model in each] for name in found[self.spec.thought]}


def evaluation_rules(spec: Run, rule: Rule, own: int) -> list[Rule]:
    """How a run is evaluated by a rule before the answer; in a stage of COCONUT, tokens follow `own` thoughts."""
    if spec.supervision.feeding == "stages":
        return [*[rule] * own, *[Discrete()] * (spec.outputs - own)]
    return decode.rules(rule, spec.outputs)
