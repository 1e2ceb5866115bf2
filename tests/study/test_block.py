"""The construction's block from random weights: its parts against a plain reading, and that it trains."""

import math

import pandas as pd
import pytest
import torch

from cot2lib.study import construction_block as block
from cot2lib.study import measured
from cot2lib.study.construction_block import FEEDS, ExpertStack, targets, train
from cot2lib.supervision import hindsight_targets
from cot2lib.tasks import MNNS

TASK = MNNS(1, 5, 3)


def test_targets_are_all_sums_and_then_the_answer():
    """The first n - 1 are those of CSFT at the full budget; the n-th holds every final sum, the last the answer."""
    aims, chains = targets(TASK), hindsight_targets(TASK)[:, :, TASK.state_ids].float()
    assert torch.equal(aims[:, : TASK.length - 1], chains[:, :-1]) and torch.equal(aims[:, -1], chains[:, -1])
    finals = TASK.signed_sums()[:, :, -1] + TASK.start
    shares = torch.zeros(TASK.size, TASK.states).scatter_add_(1, finals, torch.full(finals.shape, 1 / 8))
    assert torch.allclose(aims[:, -2], shares)


def pass_by_hand(weight, tokens):
    """One pass of one run on one input, expert by expert."""
    query, n = tokens[-1], TASK.length
    scores = torch.stack([query @ weight["attend"] @ token for token in tokens])
    seen = (scores.softmax(0) @ tokens) @ weight["value"]
    routed = (seen @ weight["route"]).softmax(0)
    split = lambda name: weight[name].chunk(n, dim=1)
    parts = zip(split("previous"), split("current"), weight["write"].chunk(n, dim=0))
    summed = sum(routed[j] * ((query @ one) * (seen @ two)) @ three for j, (one, two, three) in enumerate(parts))
    kept = (query @ weight["cosine"]) * torch.sigmoid(query @ weight["sine"])
    chosen = kept.softmax(0)
    read = torch.cat([chosen * kept, chosen * (query @ weight["sine"])]) @ weight["emit"]
    return summed + routed[n] * read


@pytest.mark.parametrize("feed", FEEDS)
def test_roll_is_the_block_pass_by_pass(feed):
    stack = ExpertStack(TASK, [5, 6], feed).double()
    digits = TASK.digits[torch.tensor([[3, 77], [100, 8]])]
    logits = stack.roll(digits)
    weight = {name: value[1] for name, value in stack.named_parameters()}
    content = stack.table.shape[1]
    tokens = stack.prompts(digits)[1, 1]
    assert tokens.shape == (TASK.length + 2, content + TASK.length + 2)
    assert torch.equal(tokens[-1, :content], stack.table[TASK.start]) and tokens[-2, :content].abs().max() == 0
    for step in range(TASK.length + 1):
        written = pass_by_hand(weight, tokens)
        expected = math.sqrt(content) * stack.table @ written
        assert torch.allclose(logits[1, 1, step], expected)
        handed = written if feed == "output" else expected.softmax(0) @ stack.table
        tokens = torch.cat([tokens, torch.cat([handed, stack.positions[step]])[None]])


def test_roll_of_a_teacher_hands_on_the_targets_mixtures():
    stack, aims = ExpertStack(TASK, [5], "mixture"), targets(TASK)
    rows = torch.tensor([[3, 77]])
    taught, own = stack.roll(TASK.digits[rows], aims[rows]), stack.roll(TASK.digits[rows])
    assert torch.equal(taught[:, :, 0], own[:, :, 0]) and not torch.allclose(taught[:, :, 1], own[:, :, 1])
    free = ExpertStack(TASK, [5], "output")
    assert torch.equal(free.roll(TASK.digits[rows], aims[rows]), free.roll(TASK.digits[rows]))
    answers = own[0, :, -1].argmax(-1) - TASK.start
    assert torch.equal(block.answered(stack, TASK)[0, rows[0]], answers == TASK.answers[rows[0]])


def curve(*arguments):
    return pd.concat(train(*arguments), ignore_index=True)


@pytest.mark.parametrize("feed", FEEDS)
def test_train_in_a_stack_as_alone(feed):
    together, alone = curve(feed, 3e-3, (42, 43), 12, TASK), curve(feed, 3e-3, (43,), 12, TASK)
    ours = together[together["seed"] == 43].reset_index(drop=True)
    assert (ours["loss"] - alone["loss"]).abs().max() < 1e-4
    assert (ours[["accuracy", "seen"]] - alone[["accuracy", "seen"]]).abs().max().max() < 0.05


def test_train_learns():
    """Small as the task is, the block answers what it was trained on; guessing answers a fifth."""
    found = curve("output", 1e-2, (42,), 200, TASK)
    last = found[found["step"] == 200]
    assert last["seen"].item() > 0.9 and last["loss"].item() < 0.5 * found["loss"].max()
    assert found["step"].nunique() == block.EVALUATIONS


def test_train_says_shares_of_held_out_and_trained_inputs(monkeypatch):
    """Made up: a block that answers its first hundred inputs alone."""
    monkeypatch.setattr(block, "answered", lambda stack, task: (torch.arange(task.size) < 100).expand(2, -1))
    found = curve("output", 1e-3, (42, 43), 1, TASK).set_index("seed")
    for seed in (42, 43):
        seen, held_out = ((mask[:100].sum() / mask.sum()).item() for mask in (TASK.split(seed), ~TASK.split(seed)))
        assert found.loc[seed, ["accuracy", "seen"]].tolist() == pytest.approx([held_out, seen], abs=1e-5)


def test_measure_ships_the_blocks_training(nothing_shipped, monkeypatch):
    """A table of no runs."""
    short = curve("output", 1e-3, (42,), 1, TASK)
    monkeypatch.setattr(block, "measure", lambda: short)
    assert measured.measure("experts").name == "experts.quick.training.csv"
    assert measured.read("experts")[short.columns].equals(short)


@pytest.mark.thorough
def test_shipped_table_is_whole_and_replays():
    """Every feed, rate and seed; the first evaluation of one training, trained again."""
    table = measured.read("experts")
    kept = table.groupby(["feed", "lr", "step"])["seed"].agg(tuple)
    assert set(kept) == {block.SEEDS} and len(kept) == len(FEEDS) * len(block.RATES) * block.EVALUATIONS
    again = next(train("output", 1e-3))
    shipped = table[(table["feed"] == "output") & (table["lr"] == 1e-3) & (table["step"] == again["step"][0])]
    assert shipped["loss"].tolist() == pytest.approx(again["loss"].tolist(), abs=0.02)
    assert shipped["accuracy"].tolist() == pytest.approx(again["accuracy"].tolist(), abs=0.02)
