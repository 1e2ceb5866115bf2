"""What `cot2 measure` measures on models of the controls: `edits`, and `reads` (by `steps`).

Edits come from `cot2lib.interventions`. Models that were fed arrows have no thoughts to edit, and are only decoded, as
are models of several lengths. The paper has nothing of the kind.
"""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import torch

from cot2lib import interventions, runs
from cot2lib.decode import rules
from cot2lib.interventions import Edit, Thinking, Tokens, Where
from cot2lib.locality import masks
from cot2lib.specs import GRPOSpec, Run, RunSpec
from cot2lib.study.controls.runs import own_rule
from cot2lib.supervision import ancestors, graph_of
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Always, Base, Discrete, Rule
from cot2lib.training.data import StackData, stack_data
from cot2lib.training.evaluation import accuracy, evaluate

COLUMNS = ["id", "edit", "dose", "inputs", "before", "right", "follows"]
DECODERS = (Base(), Discrete())
LONGER = 5000  # inputs of one digit more, of which a fifth are asked


def edits(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """Measure answers of trained runs of one shape after each edit: a row for each run, edit and dose.

    Columns: the number of `inputs`; shares (%) of right answers `before` the edit and after it (`right`), and of
    answers that follow what is fed (`follows`); missing where an edit has no such answer. "decoded by" names
    the rule that makes the thoughts; "longer" means inputs of one digit more. With `retrain` no shipped weights count;
    RecordError if the weights of a run are not here.
    """
    own = own_rule(specs[0])
    with torch.no_grad():
        questions = [as_asked(spec) for spec in specs]
        thinking = interventions.thought(runs.load_stack(specs, missing="error", retrain=retrain), questions)
        alike = thinking.task.lengths is None  # edits are of inputs with as many steps
        chosen = interventions.edits(thinking) if alike and not isinstance(own, Always) else ()
        parts = [_edited(thinking, edit, thinking.answered(edit.fed, edit.rows)) for edit in chosen]
        for rule in () if thinking.weights is None else dict.fromkeys([*DECODERS, own]):
            parts.append(_decoded(thinking, thinking.data, questions, rule, f"decoded by {rule.label}"))
        if alike and isinstance(task := thinking.task, MNNS):
            length = task.length + 1
            high = task.bound // length  # whose sums are in the vocabulary
            more = MNNS(task.low, high, length, inputs=LONGER, max_sum=task.bound)
            longer = [replace(spec, task=more) for spec in questions]
            data = stack_data(longer, thinking.stack.device)
            parts.append(_decoded(thinking, data, longer, questions[0].thought, "longer"))
    return _table(parts, specs)


def as_asked(run: Run) -> RunSpec:
    """Return a run without its targets, which only training needs; a run trained by reward becomes its start, with the
    run's own thought rule."""
    asked = replace(run.start, thought=run.thought) if isinstance(run, GRPOSpec) else run
    return replace(asked, supervision=replace(asked.supervision, targets=None))


def _edited(thinking: Thinking, edit: Edit, answers: Tokens, kept: str = "") -> pd.DataFrame:
    """Return shares of each run's answers after an edit."""
    found = {"before": thinking.answers == thinking.right, "right": answers == edit.right}
    found |= {"follows": answers == edit.wanted}
    return _shares(edit.where & thinking.real, edit=edit.name + kept, dose=edit.dose, **found)


def _shares(where: Where, edit: str, dose: float = 1.0, **found: torch.Tensor) -> pd.DataFrame:
    """Return the mean (%) of each outcome, (run, input), over the inputs that are asked."""
    shares = {name: (100 * (so * where).sum(1) / where.sum(1)).tolist() for name, so in found.items()}  # NaN for none
    return pd.DataFrame({"edit": edit, "dose": dose, "inputs": where.sum(1).tolist()} | shares)


def steps(specs: Sequence[Run], retrain: bool = False) -> pd.DataFrame:
    """Measure what each step of trained runs of one shape reads: a row for each run and intervention.

    Columns as `edits`. "swap 2" exchanges the second thought and lets the models compute the others from it; after
    "swap 2, kept" the others stay. Masks on attention have the names of `cot2lib.locality.masks`, and act in every
    step of the evaluation. "walks" and "first thought" ask models that feed single tokens: the share of thoughts that
    follow from the one before, and whether the right answer is reached from the first.
    """
    questions = [as_asked(spec) for spec in specs]
    with torch.no_grad():
        thinking = interventions.thought(runs.load_stack(specs, missing="error", retrain=retrain), questions)
        task, parts = thinking.task, []
        for taken in range(1, task.steps):
            for edit in interventions.earlier(thinking, taken):
                parts.append(_edited(thinking, edit, thinking.recomputed(edit.fed, taken)))
                if taken < task.steps - 1:
                    parts.append(_edited(thinking, edit, thinking.answered(edit.fed), ", kept"))
        if isinstance(questions[0].thought, Discrete):
            parts += _walked(thinking)
        if task.reads is not None and (data := thinking.data).sees is None:
            seeds, before = [run.seed for run in questions], thinking.answers == thinking.right
            for name, some in masks(task, data.prompts.shape[1]).items():  # the mean over masks of one kind
                under = [evaluate(thinking.stack, replace(data, sees=mask), seeds, thinking.steps) for mask in some]
                right = 100 * torch.stack([accuracy(data, found) for found in under]).mean(0)
                parts.append(_shares(thinking.real, name, before=before).assign(right=right.tolist()))
    return _table(parts, specs)


def _walked(thinking: Thinking) -> list[pd.DataFrame]:
    """Return how many thoughts of single tokens are steps of a walk, and how many first ones lead to the answer."""
    task, rows = thinking.task, thinking.rows
    assert thinking.weights is not None
    states = interventions.as_states(task, thinking.weights.argmax(-1))  # (run, input, thought)
    start = torch.as_tensor(task.start).expand(task.size)[rows]
    before = torch.cat([start[..., None], states[..., :-1]], 2)
    follows = (before >= 0) & (states >= 0)
    for step, children in enumerate(graph_of(task, rows.flatten())[: states.shape[2]]):
        to = children[torch.arange(rows.numel()), before[..., step].flatten().clamp(min=0)]
        follows[..., step] &= (to.unflatten(0, rows.shape) == states[..., step, None]).any(-1)
    leads = ancestors(task, 1, rows, interventions.as_states(task, thinking.right))
    first = leads.gather(2, states[..., :1].clamp(min=0))[..., 0] & (states[..., 0] >= 0)
    correct = thinking.answers == thinking.right
    walks = _shares(thinking.real, "walks", before=correct, follows=follows.double().mean(2))
    return [walks, _shares(thinking.real, "first thought", before=correct, right=first)]


def _decoded(thinking: Thinking, data: StackData, specs: Sequence[RunSpec], rule: Rule, edit: str) -> pd.DataFrame:
    """Return right answers to held-out inputs of some data by a rule, and to the models' own inputs."""
    found = evaluate(thinking.stack, data, [spec.seed for spec in specs], rules(rule, specs[0].outputs))
    own = _shares(thinking.real, edit, before=thinking.answers == thinking.right)
    return own.assign(inputs=data.held_out.real.sum(1).tolist(), right=(100 * accuracy(data, found)).tolist())


def _table(parts: Sequence[pd.DataFrame], specs: Sequence[Run]) -> pd.DataFrame:
    ids = [spec.id for spec in specs]
    found = pd.concat([part.assign(id=ids) for part in parts], ignore_index=True).reindex(columns=COLUMNS)
    return found.round({"before": 2, "right": 2, "follows": 2})
