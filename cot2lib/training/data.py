"""Data that a stack of supervised runs is trained and evaluated on, as tensors on the device.

Each run has its own split and targets; the prompts are shared. Targets are kept once per distinct
(budget, ties), so a sweep over budgets holds a handful of tables and not one per run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from cot2lib.errors import SpecError
from cot2lib.kit import random
from cot2lib.kit.frozen import is_outside
from cot2lib.kit.random import Site
from cot2lib.locality import Mask, seen
from cot2lib.specs import Run, Supervision
from cot2lib.supervision import check_budget, check_targets_fit, hindsight_targets, steps_of
from cot2lib.targets import Visits
from cot2lib.tasks import Task
from cot2lib.tasks.task import on_device
from cot2lib.testing import check_rule, check_targets, check_task

Rows = Int[Tensor, "run batch"]
Outcomes = Float[Tensor, "run batch step vocab"]
Outputs = Float[Tensor, "row output vocab"]
Tables = Float[Tensor, "variant input step vocab"]
Names = Int[Tensor, "key batch vocab"]  # a permutation of the vocabulary for every input


@dataclass(frozen=True)
class HeldOut:
    """Validation inputs of every run, padded to one length."""

    index: Int[Tensor, "run input"]  # rows of the task's inputs; padding repeats row 0
    real: Bool[Tensor, "run input"]  # which are no padding
    half: Bool[Tensor, "run input"]  # which belong to the second half of the validation classes

    @property
    def sizes(self) -> list[list[int]]:
        """Inputs of each run in the first and the second half."""
        return [[int((r & ~h).sum()), int((r & h).sum())] for r, h in zip(self.real, self.half)]


@dataclass(frozen=True)
class Batch:
    """Inputs that one step trains on; what can be None is as in `StackData`."""

    prompts: Int[Tensor, "run batch token"]
    outputs: Outcomes  # target distributions; 0 in every entry after an input's outputs
    padding: Int[Tensor, "run batch"] | None = None
    last: Int[Tensor, "run batch"] | None = None
    ending: int = 0  # outputs after the answer
    fed: Outcomes | None = None
    sees: Mask | None = None

    def scored(self, first: int = 0, end: int | None = None) -> Bool[Tensor, "run batch step"] | None:
        """Outputs that exist, from the `first` on but always with the answer; None if all inputs have all of them.

        With `end`, of those the first `end` steps'.
        """
        steps = self.outputs.shape[2]
        if self.last is None and end in (None, steps):
            return None
        full = torch.full_like(self.prompts[..., 0], steps - 1 - self.ending)
        answer = (full if self.last is None else self.last)[..., None]
        step = torch.arange(steps, device=answer.device)
        return (step <= answer + self.ending) & (step >= answer.clamp(max=first)) & (step < (end or steps))


@dataclass(frozen=True)
class StackData:
    """Tensors of one stack.

    Where names are drawn anew at every visit, `names` draws them and `batch` and `shown` use them; what is held out
    keeps the names it has.
    """

    prompts: Int[Tensor, "input token"]
    padding: Int[Tensor, " input"] | None  # tokens on the left of each prompt that are padding; None if there are none
    tables: Callable[[], tuple[Tables, Tables | None]]  # makes `outputs` and `fed`; reward and evaluation need neither
    variant: Int[Tensor, " run"]  # which supervision each run uses
    answers: Int[Tensor, " input"]
    last: Int[Tensor, " input"] | None  # the output that is each input's answer; None if it is the last one for all
    steps: int  # outputs of the longest input
    ending: int  # outputs after the answer: 1 with an end token, else 0
    task: Task  # which says what answers are right
    train: list[Int[Tensor, " _"]]  # inputs that each run trains on
    held_out: HeldOut
    sees: Mask | None = None  # what each position may attend to; None for all before it

    @property
    def outputs(self) -> Tables:
        """Target distributions of every distinct supervision (variant) and input."""
        return self.tables()[0]

    @property
    def fed(self) -> Tables | None:
        """Mixtures that follow the outputs where they are no targets."""
        return self.tables()[1]

    @property
    def renames(self) -> bool:
        return self.task.renamed is not None

    def names(self, keys: Int[Tensor, " key"], batch: int) -> Names:
        """Permutations of the vocabulary that give every name another one, the same in all its roles."""
        roles = on_device(self.task, "renamed", keys.device)  # (role, name)
        order = random.bits(keys, batch * roles.shape[1]).view(len(keys), batch, -1).argsort(-1)  # (key, batch, name)
        table = torch.arange(self.task.vocab_size, device=keys.device).repeat(len(keys), batch, 1)
        for tokens in roles:
            table[..., tokens] = tokens[order]
        return table

    def shown(self, index: Rows, names: Names | None) -> Int[Tensor, "run batch token"]:
        prompts = self.prompts[index]
        return prompts if names is None else renamed(prompts, names)

    def batch(self, index: Rows, names: Names | None = None, drawn: tuple[Outcomes, Outcomes] | None = None) -> Batch:
        """The batch of the given rows, under some names; `drawn` are labels and fed mixtures of this visit alone."""
        variant = self.variant[:, None]  # (run, 1)
        outputs, fed = drawn or (self.outputs[variant, index], None if self.fed is None else self.fed[variant, index])
        return Batch(
            prompts=self.shown(index, names),
            outputs=outputs if names is None else renamed_outcomes(outputs, names),
            fed=fed if names is None or fed is None else renamed_outcomes(fed, names),
            padding=self.padding_of(index),
            last=self.last_of(index),
            ending=self.ending,
            sees=self.sees,
        )

    def padding_of(self, index: Rows) -> Int[Tensor, "run batch"] | None:
        return None if self.padding is None else self.padding[index]

    def last_of(self, index: Rows) -> Int[Tensor, "run batch"] | None:
        return None if self.last is None else self.last[index]

    def right(
        self, answers: Int[Tensor, "run batch"], index: Rows, names: Names | None = None
    ) -> Bool[Tensor, "run batch"]:
        if names is not None:
            answers = names.argsort(-1).gather(2, answers[..., None])[..., 0]  # under the names that the task knows
        return self.task.right(answers, index)

    def order(self, seeds: Sequence[int], start: int, steps: int, batch: int) -> Int[Tensor, "run step batch"]:
        """Rows of the batches of steps start..start+steps of every run's endless shuffled stream."""
        rows = [
            random.stream(random.run_keys([seed], Site.ORDER), items, start * batch, steps * batch)
            for seed, items in zip(seeds, self.train)
        ]
        return torch.stack(rows).view(len(rows), steps, batch).to(self.prompts.device)


def renamed_outcomes(outcomes: Outcomes, names: Names) -> Outcomes:
    return torch.zeros_like(outcomes).scatter_(3, names[:, :, None].expand_as(outcomes), outcomes)


def renamed(prompts: Int[Tensor, "key batch token"], names: Names) -> Int[Tensor, "key batch token"]:
    """Prompts under other names; ids of pairs (`GPT2Stack.embed`) are renamed in both parts."""
    vocab = names.shape[-1]
    first, second = prompts // vocab - 1, prompts % vocab
    pair = vocab * (1 + names.gather(2, first.clamp(min=0)))
    return names.gather(2, second) + pair * (first >= 0)


def stack_data(specs: Sequence[Run], device: torch.device | str) -> StackData:
    """The data of runs that share task, prompt format and output steps (only seed, budget and ties may differ)."""
    task, supervision = specs[0].task, specs[0].supervision
    variants = [_variant(spec) for spec in specs]
    firsts = {variant: variants.index(variant) for variant in variants}  # the first run of each
    if supervision.loss_on == "sequence" and task.pairs:
        raise SpecError(f"loss_on='sequence' needs prompts of single tokens; {task.name} has pairs.")
    if supervision.loss_on == "sequence" and not (task.padding is None and task.lengths is None):
        raise SpecError(f"loss_on='sequence' needs inputs of one length; those of {task.name} differ.")
    masks = [task.split(spec.split_seed) for spec in specs]
    train = [mask.nonzero()[:, 0] for mask in masks]
    last = None if task.lengths is None else answer_steps(task, supervision).to(device)
    prompts = task.prompt(supervision.arrow, supervision.pauses).to(device)
    mask = seen(task, supervision.sees, prompts.shape[1])

    @cache
    def tables() -> tuple[Tables, Tables | None]:
        scored, fed = zip(*(_tables(specs[place], train[place]) for place in firsts.values()))
        alike = all(one is other for one, other in zip(scored, fed))
        return torch.stack(scored).to(device), None if alike else torch.stack(fed).to(device)

    return StackData(
        prompts=prompts,
        padding=None if task.padding is None else task.padding.to(device),
        tables=tables,
        variant=torch.tensor([list(firsts).index(variant) for variant in variants], device=device),
        answers=task.answer_ids.to(device),
        last=last,
        steps=len(supervision.output_steps(task.steps)) + supervision.eos,
        ending=int(supervision.eos),
        task=task,
        train=train,
        held_out=_held_out(task, masks, device),
        sees=None if mask is None else mask.to(device),
    )


def _variant(spec: Run) -> tuple:
    """Runs that agree in it have the same targets; a rule's own may depend on the seed and the split."""
    supervision = spec.supervision
    own = (spec.seed, spec.split_seed) if supervision.targets is not None else ()
    return supervision.budget, supervision.ties, *own


def _tables(spec: Run, train: Int[Tensor, " _"]) -> tuple[Outputs, Outputs]:
    """Labels and fed mixtures of all inputs; CSFT's where targets are drawn anew at every visit, for their sizes.

    A rule's are 0 for inputs that the run does not train on.
    """
    task, supervision = spec.task, spec.supervision
    if supervision.targets is None or supervision.targets.fresh:
        targets = hindsight_targets(task, supervision.budget, supervision.ties)
        outputs = formatted(task, supervision, targets, torch.arange(task.size))
        return outputs, outputs
    of_all = lambda outputs: outputs.new_zeros(task.size, *outputs.shape[1:]).index_copy_(0, train, outputs)
    scored, fed = shown_outputs(spec, train, train)
    table = of_all(scored)
    return table, table if fed is scored else of_all(fed)


def answer_steps(task: Task, supervision: Supervision) -> Int[Tensor, " input"]:
    """Which of its outputs is each input's answer."""
    outputs = torch.tensor([0] + [len(supervision.output_steps(steps)) for steps in range(1, task.steps + 1)])
    return outputs[steps_of(task)] - 1


def formatted(
    task: Task, supervision: Supervision, targets: Float[Tensor, "row step vocab"], rows: Int[Tensor, " row"]
) -> Outputs:
    """Distributions of the output tokens that exist, with the end token where the format has one."""
    steps = len(supervision.output_steps(task.steps)) + supervision.eos
    outputs = torch.zeros(len(targets), steps, task.vocab_size)
    lengths = steps_of(task, rows)  # (row,)
    for length in lengths.unique().tolist():
        kept = supervision.output_steps(length)
        alike = slice(None) if task.lengths is None else lengths == length  # a mask would copy all
        outputs[alike, : len(kept)] = targets[alike][:, kept].float()
    if supervision.eos:
        last = answer_steps(task, supervision)[rows]  # (row,)
        outputs[torch.arange(len(outputs)), last + 1, task.eos_id] = 1.0
    return outputs


def shown_outputs(
    run: Run, rows: Int[Tensor, " row"], train: Int[Tensor, " train"], steps: Int[Tensor, " row"] | None = None
) -> tuple[Outputs, Outputs]:
    """A targets rule's labels and fed mixtures of the inputs that a run visits; one tensor where the rule has one.

    `train` are all inputs that the run trains on, `steps` the training steps of visits that draw anew.
    """
    task, supervision = run.task, run.supervision
    assert supervision.targets is not None
    visits = Visits(task, rows, train, random.run_keys([run.seed], Site.TARGETS), steps)
    scored, fed = supervision.targets(visits)
    outputs = formatted(task, supervision, scored, rows)
    return outputs, outputs if fed is scored else formatted(task, supervision, fed, rows)


def check_run(spec: Run) -> None:
    """Raise SpecError for a run that cannot be trained: before anything is trained."""
    task, supervision = spec.task, spec.supervision
    budget, ties = supervision.budget, supervision.ties
    if is_outside(type(task)):
        shown = supervision.arrow, supervision.pauses, int(supervision.eos)
        check_task(task, *shown, spec.split_seed, budget, ties)
    if is_outside(type(spec.thought)):
        check_rule(spec.thought, task.vocab_size, spec.model.d_model)
    check_budget(task, budget, ties)
    check_targets_fit(task, task.size)
    if spec.model.embedding != "learned" and task.numbers is None:
        raise SpecError(f"embedding={spec.model.embedding!r}: the tokens of {task.name} are no numbers; learn them.")
    if supervision.sees != "all" and task.reads is None:
        raise SpecError(f"sees={supervision.sees!r}: {task.name} does not say what its steps read (`Task.reads`).")
    if supervision.pauses:  # a task has positions for all else
        prompt = task.prompt(supervision.arrow, supervision.pauses).shape[1]
        tokens = prompt + spec.outputs - 1 + int(supervision.eos)
        if tokens > task.positions:
            raise SpecError(f"prompt and outputs take {tokens} positions, but {task.name} has {task.positions}.")
    if len(task.split(spec.split_seed).unique()) < 2:
        raise SpecError(f"{task.name} has too few kinds of input to train on some and hold out others; widen it.")
    if supervision.targets is not None:
        check_targets(supervision.targets, task, spec.seed, spec.split_seed)


def _held_out(task: Task, masks: Sequence[Bool[Tensor, " input"]], device: torch.device | str) -> HeldOut:
    rows = [(~mask).nonzero()[:, 0] for mask in masks]
    # every other class, in the order of their numbers
    halves = [torch.unique(task.classes[r], return_inverse=True)[1] % 2 == 1 for r in rows]
    pad = lambda parts: torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).to(device)
    return HeldOut(index=pad(rows), real=pad([torch.ones_like(r, dtype=torch.bool) for r in rows]), half=pad(halves))
