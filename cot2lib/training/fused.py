"""The fused CPU engine (`cot2lib.fast`) in a trainer's hands: it trains each run alone, on several threads.

All weights of a run lie in one flat array, AdamW's moments in two more. The stack's parameters and the trainer's
moments are views of them, so checkpoints and evaluation by other rules stay the trainer's, and a run may change
engines at any checkpoint. Data order, draws and learning rates are the trainer's, too.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, cached_property
from itertools import pairwise, product
from queue import Empty, SimpleQueue

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from cot2lib import fast
from cot2lib.kit import random
from cot2lib.locality import Mask
from cot2lib.losses import RATIOS
from cot2lib.thoughts import MTS, Base, Dirichlet, Discrete, Hidden, Rule, ZeroSlot
from cot2lib.training import evaluation
from cot2lib.training.data import Names, shown_outputs
from cot2lib.training.grpo import GRPOTrainer
from cot2lib.training.supervised import SupervisedTrainer
from cot2lib.training.trainer import Engine, StackTrainer

Order = Int[Tensor, "step batch"]  # inputs that steps visit

WIDTH, HEAD_WIDTH = 8, 2  # d and d / h are multiples of these
AT_ONCE = 32  # inputs that are decoded side by side
PIECES = 8  # of a segment, between which runs take turns
DECODED = (Base(), Discrete())  # rules that the engine decodes by
KINDS = (Base(), Hidden(), ZeroSlot())  # own thoughts that it trains on, in its order


def sparse(outputs: Float[Tensor, "input step vocab"], names: Names | None = None) -> dict[str, np.ndarray]:
    """Distributions without their zeros, under names of each input, as `cot2lib.fast.Data` has them: where the entries
    of each begin and the last one's end, their tokens and their weights."""
    dense = outputs.flatten(0, 1)
    place, token = dense.nonzero().unbind(1)
    weights = dense[place, token]
    starts = torch.cat([place.new_zeros(1), torch.bincount(place, minlength=len(dense)).cumsum(0)])
    if names is not None:
        token = names.flatten(0, 1)[place // outputs.shape[1], token]
    return {"starts": starts.numpy(), "tokens": token.numpy(), "weights": weights.numpy()}


def additive(sees: Mask | None) -> np.ndarray:
    """A mask as the engine reads it: 0 where a query may look, rows padded to whole vectors; empty for none."""
    if sees is None:
        return np.zeros((0, 0), np.float32)
    seen = torch.nn.functional.pad(sees, (0, -len(sees) % fast.PADDED))
    return torch.where(seen, 0.0, fast.HIDDEN).numpy()


class FusedEngine(Engine):
    """Takes the steps of a trainer that has not begun.

    Args:
        trainer: whose weights and moments move into flat arrays.
        threads: how many runs are computed at a time.

    Attributes:
        function: what the engine calls a step of this kind of training.
        shape, lanes: sizes of a step, and how many dropout multipliers it has.
        updates: of AdamW in a step.
    """

    name = "fused"
    function: str
    shape: fast.Shape
    lanes: int
    updates = 1
    threads = 1

    def __init__(self, trainer: StackTrainer, threads: int):
        super().__init__(trainer)
        self.threads = min(threads, trainer.stack.runs)
        parameters = list(trainer.stack.parameters())
        self.weights = torch.cat([parameter.detach().flatten(1) for parameter in parameters], 1)  # (run, parameter)
        self.means, self.squares, self.gradients = (torch.zeros_like(self.weights) for _ in range(3))
        means, squares, gradients = map(self.views, (self.means, self.squares, self.gradients))
        for parameter, view in zip(parameters, self.views(self.weights)):
            parameter.data = view
        trained = [place for place, parameter in enumerate(parameters) if parameter.requires_grad]
        trainer.gradients = [gradients[place] for place in trained]
        for state, (block, place) in zip(trainer.moments, product(trainer.blocks, trained)):
            state["exp_avg"], state["exp_avg_sq"] = means[place][block], squares[place][block]
        self.data = self._inputs()
        self.last = torch.from_numpy(self.data.outputs) - 1 - self.data.ending  # the output that is each answer

    def views(self, flat: Float[Tensor, "run parameter"]) -> list[Tensor]:
        """A flat array as the stack's parameters."""
        shapes = [parameter.shape[1:] for parameter in self.trainer.stack.parameters()]
        parts = flat.split([shape.numel() for shape in shapes], dim=1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, shapes)]

    @abstractmethod
    def given(self, run: int, part: slice) -> tuple:
        """What the function reads besides: inputs of some of a run's steps, and how they are trained on."""

    def noted(self, run: int) -> tuple:
        """What it writes besides losses."""
        return ()

    def sized(self, positions: int, scored: int, shared: int = 0, branches: int = 1, own: int = 0) -> fast.Shape:
        sizes = dict(self.trainer.stack.shape)
        model = sizes["vocab_size"], sizes["positions"], sizes["d_model"], sizes["layers"], sizes["heads"]
        return fast.Shape(*model, self.trainer.recipe.batch, positions, scored, shared, branches, own)

    @property
    def decoding(self) -> fast.Shape:
        positions = self.data.prompts.shape[1] + self.trainer.spec.outputs - 1
        return self.sized(positions, 1)._replace(batch=AT_ONCE)

    @cached_property
    def works(self) -> list[tuple[fast.Work, fast.Work]]:
        """Arrays of every thread: of a training step, and of decoding."""
        return [(fast.work(self.shape, self.lanes), fast.work(self.decoding, 0)) for _ in range(self.threads)]

    def _inputs(self) -> fast.Data:
        data, supervision = self.trainer.data, self.trainer.spec.supervision
        whole = lambda value, other: torch.full((len(data.prompts),), other) if value is None else value
        padding = whole(data.padding, 0).numpy()
        return fast.Data(
            prompts=data.prompts.numpy(),
            padding=padding,
            shift=padding * (not self.trainer.stack.reads["padding_counts"]),
            outputs=whole(data.last, data.steps - 1 - data.ending).numpy() + 1 + data.ending,
            **sparse(torch.zeros(0, data.steps, data.task.vocab_size)),  # no targets yet
            steps=data.steps,
            ending=data.ending,
            mean=supervision.reduction == "mean",
            sequence=supervision.loss_on == "sequence",
            mask=additive(data.sees),
        )

    def visited(self, run: int, part: slice) -> tuple[fast.Data, Names | None, Order]:
        """The inputs of some steps as inputs of their own, under the names of their visits; names; an order."""
        trainer, names = self.trainer, None
        order = trainer.order[run, part]
        rows = order.flatten()
        if trainer.data.renames:
            steps = trainer.progress.step + torch.arange(part.start, part.stop)
            names = trainer.data.names(random.fold(trainer.name_keys[run : run + 1], steps), order.shape[1])
        prompts = trainer.data.shown(order, names).flatten(0, 1).numpy()
        kept = {name: getattr(self.data, name)[rows] for name in ("padding", "shift", "outputs")}
        return self.data._replace(prompts=prompts, **kept), names, torch.arange(len(rows)).view_as(order)

    def take_steps(self, steps: int) -> None:
        trainer, recipe, pieces = self.trainer, self.trainer.recipe, min(PIECES, steps)  # no piece is empty
        table = trainer.stack.transformer.wte.weight
        frozen = 0 if table.requires_grad else table[0].numel()
        dropout = round(recipe.dropout * 2**16), 1 / (1 - recipe.dropout)
        keys = trainer.dropout_keys.numpy().view(np.uint64)

        def train(run: int, piece: int, works: tuple) -> None:
            part = slice(piece * steps // pieces, (piece + 1) * steps // pieces)
            weights, mean, square = (flat[run].numpy() for flat in (self.weights, self.means, self.squares))
            rates = (trainer.rates[part] * trainer.specs[run].recipe.lr).numpy()
            optimiser = fast.Optimiser(mean, square, rates, recipe.weight_decay, recipe.beta2, frozen)
            how = optimiser, fast.Noise(keys[run], *dropout), trainer.progress.step + part.start
            out = trainer.losses[run, part].numpy(), *self.noted(run), works[0]
            fast.call(self.function, weights, self.shape, *self.given(run, part), *how, *out)
            self.gradients[run] = torch.from_numpy(works[0].gradient)

        self._each(train, pieces)
        for state in trainer.moments:
            state["step"] += steps * self.updates

    def decoded(self, steps: Sequence[Rule]) -> dict[str, list]:
        """The trainer's evaluation, by the engine where all thoughts are base ones or the likeliest tokens."""
        if steps[0] not in DECODED or {*steps[:-1]} > {steps[0]} or steps[-1] != Discrete():
            return super().decoded(steps)
        data, held_out = self.trainer.data, self.trainer.data.held_out
        answers, means = torch.zeros_like(held_out.index), torch.zeros(len(held_out.index), len(steps)).double()
        greedy, last = steps[0] == Discrete(), self.last

        def decode(run: int, _: int, works: tuple) -> None:
            inputs = held_out.index[run][held_out.real[run]]  # (input,)
            ends, sums = last[inputs], np.zeros(len(steps))
            given = self.weights[run].numpy(), self.decoding, self.data, inputs.numpy(), ends.numpy(), greedy
            fast.call("decode", *given, answers[run].numpy(), sums, works[1])
            means[run] = torch.from_numpy(sums) / torch.tensor([(ends >= step).sum() for step in range(len(steps))])

        self._each(decode)
        return evaluation.summary(data, data.right(answers, held_out.index), means)

    def _each(self, task: Callable[[int, int, tuple], None], pieces: int = 1) -> None:
        """Calls a function of a run, a piece and a thread's work arrays for the pieces of every run, in their order.

        Runs take turns, so that no thread is idle for longer than a piece where runs do not divide by threads.
        """
        ready: SimpleQueue[tuple[int, int]] = SimpleQueue()
        for run in range(len(self.trainer.specs)):
            ready.put((run, 0))

        def take_turns(arrays: tuple) -> None:
            with suppress(Empty):  # what is left is in the hands of other threads
                while True:
                    run, piece = ready.get_nowait()
                    task(run, piece, arrays)
                    if piece + 1 < pieces:
                        ready.put((run, piece + 1))

        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(take_turns, self.works))  # raises what a turn raised


class SupervisedEngine(FusedEngine):
    """Supervised training, fed by the teacher or with own thoughts."""

    trainer: SupervisedTrainer
    function = "train"

    def __init__(self, trainer: SupervisedTrainer, threads: int):
        super().__init__(trainer, threads)
        data, spec = trainer.data, trainer.spec
        positions = data.prompts.shape[1] + data.steps - 1
        own = 0 if spec.supervision.feeding == "teacher" else spec.outputs - 1  # most that a model makes itself
        scored = positions if spec.supervision.loss_on == "sequence" else data.steps
        self.shape = self.sized(positions, scored, own=own)
        self.lanes = max(int(self.passes(count)[-1, 4]) for count in range(own + 1))
        # Data that is scored, and data that is fed; one object where both are the same.
        self.scored = self.data._replace(**sparse(data.outputs.flatten(0, 1)))
        fed = None if data.fed is None else self.data._replace(**sparse(data.fed.flatten(0, 1)))
        self.fed = self.scored if fed is None else fed

    def passes(self, own: int) -> Int[np.ndarray, "pass 6"]:
        """Passes of a step with so many own thoughts, as of `cot2lib.fast.Thoughts`."""
        shape, tokens, stack = self.shape, self.trainer.data.prompts.shape[1], self.trainer.stack
        slots = own and isinstance(self.trainer.spec.thought, ZeroSlot)
        edges = [0, *range(tokens, tokens + own), shape.positions]  # where passes begin, and the end
        rows, lane = [], 0
        for number, (low, high) in enumerate(pairwise(edges)):
            scored = shape.scored if not own else 1 if number < own else high - low
            here = [(low, low + 1, 1, True)] if slots and number else []
            for begin, end, count, slot in [*here, (low, high, scored, False)]:
                first, lane = lane, lane + sum(stack.dropout_lanes(shape.batch, end - begin, count, begin))
                lane += -lane % random.LANES
                rows.append((begin, end, count, first, lane, slot))
        return np.array(rows, np.int64)

    def taught_anew(self, run: int, part: slice) -> tuple[fast.Data, fast.Data, Order]:
        """`scored` and `fed` of visits, where these draw names or targets, and their order."""
        trainer, data = self.trainer, self.trainer.data
        shown, names, places = self.visited(run, part)
        rows, variant = trainer.order[run, part].flatten(), data.variant[run]
        outputs, fed = data.outputs[variant, rows], None if data.fed is None else data.fed[variant, rows]
        if trainer.drawn_anew:
            steps = trainer.progress.step + torch.arange(part.start, part.stop).repeat_interleave(self.shape.batch)
            outputs, fed = shown_outputs(trainer.specs[run], rows, data.train[run], steps)
        scored = shown._replace(**sparse(outputs, names))
        if fed is None or fed is outputs:
            return scored, scored, places
        return scored, scored._replace(**sparse(fed, names)), places

    def given(self, run: int, part: slice) -> tuple:
        trainer, (own, end) = self.trainer, self.trainer.phase
        kind = KINDS.index(trainer.spec.thought) if own else 0
        skipped = own * (trainer.spec.supervision.feeding == "stages")
        data, fed, order, variant = self.scored, self.fed, trainer.order[run, part], int(trainer.data.variant[run])
        if trainer.data.renames or trainer.drawn_anew:
            (data, fed, order), variant = self.taught_anew(run, part), 0
        scored = data._replace(outputs=np.minimum(data.outputs, end))
        fed = scored if fed is data else fed
        return scored, fed, order.numpy(), variant, fast.Thoughts(self.passes(own), own, kind, skipped)


class RewardEngine(FusedEngine):
    """Policy gradients, for thoughts of K tokens and Dirichlet points."""

    trainer: GRPOTrainer
    function = "grpo"

    def __init__(self, trainer: GRPOTrainer, threads: int):
        super().__init__(trainer, threads)
        self.updates, stack = trainer.spec.updates, trainer.stack
        tokens, thoughts = trainer.data.prompts.shape[1], trainer.group * (trainer.spec.outputs - 1)
        self.shape = self.sized(tokens + thoughts, 1 + thoughts, tokens, trainer.group, thoughts)
        lanes = stack.dropout_lanes(self.shape.batch, self.shape.positions, self.shape.scored)
        self.lanes = sum(lanes) if trainer.recipe.dropout else 0
        inputs, vocab = len(trainer.data.prompts), self.shape.vocab
        rows, answers = torch.arange(inputs).expand(vocab, -1), torch.arange(vocab)[:, None].expand(-1, inputs)
        self.right = trainer.data.right(answers, rows).T.contiguous()  # (input, token)
        reference = stack if trainer.reference is None else trainer.reference  # which nothing asks for without one
        self.start = torch.cat([value.detach().flatten(1) for value in reference.parameters()], 1).numpy()

    def policy(self) -> fast.Policy:
        thought, vocab = self.trainer.thought, self.shape.vocab
        if isinstance(thought, Dirichlet):
            most = min(thought.most or vocab, vocab)
            return fast.Policy(1, 1, most, 1.0, float(thought.gamma), float(thought.floor), thought.masked)
        assert isinstance(thought, MTS | Discrete)
        k = thought.k if isinstance(thought, MTS) else 1
        return fast.Policy(0, k, k, float(thought.temperature), 0.0, 0.0, False)

    def traces(self) -> fast.Traces:
        policy = self.policy()
        thoughts, rollouts = self.trainer.spec.outputs - 1, self.trainer.group * self.trainer.recipe.batch
        return fast.Traces(
            np.zeros((thoughts, rollouts, policy.most), np.int64),
            np.zeros((thoughts, rollouts), np.int64),
            np.zeros((thoughts, rollouts, policy.most + 1)),
            np.zeros(rollouts, np.int64),
            *(np.zeros((thoughts + 1, rollouts, policy.draws)) for _ in range(3)),
        )

    def given(self, run: int, part: slice) -> tuple:
        trainer, spec = self.trainer, self.trainer.spec
        data, right, last, order = self.data, self.right, self.last, trainer.order[run, part]
        if trainer.data.renames:
            rows = order.flatten()
            data, names, order = self.visited(run, part)
            assert names is not None
            right, last = torch.zeros_like(right[rows]).scatter_(1, names.flatten(0, 1), right[rows]), last[rows]
        terms = fast.Terms(RATIOS.index(spec.ratio), float(spec.clip), float(spec.kl), spec.scaled, spec.updates)
        key = trainer.keys.numpy().view(np.uint64)[run]
        return data, right.numpy(), last.numpy(), order.numpy(), self.policy(), terms, self.start[run], key

    def noted(self, run: int) -> tuple:
        return self.trainer.clip_fraction.numpy()[run : run + 1], self.traces()


# Which engine trains


def preferred(trainer: StackTrainer, threads: int | None = None) -> StackTrainer:
    """The trainer, with the fused engine where it is on a CPU and the engine knows its runs.

    Where torch trains on a CPU, a line on stderr says why.

    Args:
        trainer: one that has not begun.
        threads: how many runs are computed at a time; None for as many as torch has threads.
    """
    if trainer.device.type != "cpu" or trainer.engine.name != "torch":
        return trainer
    if reason := unfit(trainer):
        _say(f"torch trains here: {reason}")
        return trainer
    threads = threads or torch.get_num_threads()
    if isinstance(trainer, SupervisedTrainer):
        trainer.engine = SupervisedEngine(trainer, threads)
    elif isinstance(trainer, GRPOTrainer):
        trainer.engine = RewardEngine(trainer, threads)
    return trainer


@cache
def _say(line: str) -> None:
    print(line, file=sys.stderr)


def unfit(trainer: StackTrainer) -> str | None:
    """Why the engine cannot train a trainer's runs, or nothing at all here; None if it can."""
    spec, width, heads = trainer.spec, trainer.spec.model.d_model, trainer.spec.model.heads
    thought, supervision = spec.thought, spec.supervision
    if type(trainer) is GRPOTrainer:
        one = type(thought) is Discrete and thought.samples and thought.top_k is None
        if not one and type(thought) not in (MTS, Dirichlet):
            return f"the fused engine does not sample {thought.label} in training."
    elif type(trainer) is not SupervisedTrainer:
        return f"the fused engine has no {type(trainer).__name__}."
    elif supervision.scoring != "shares":
        return "the fused engine does not score sets."
    elif supervision.feeding != "teacher" and thought not in KINDS:
        return f"the fused engine does not feed {thought.label} in training."
    if width % WIDTH or width // heads % HEAD_WIDTH:
        return f"the fused engine needs d in eights and heads of even width, not d={width} with {heads} heads."
    try:
        fast.library()
    except OSError as error:
        return f"the fused engine cannot be built here ({error})."
    return None
