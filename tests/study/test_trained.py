"""Figures and tables of training with trigonometric embeddings, from small frames whose answers are known by hand."""

import pandas as pd
import pytest

from cot2lib.study import frame
from cot2lib.study.construction import block, draw
from cot2lib.tasks import MNNS

SHARES = {("learned", 24): (0.98, 0.985), ("cosine", 24): (0.99, 1.0), ("cosine, frozen", 24): (1.0, 1.0),
          ("cosine", 32): (0.9, 0.92)}  # fmt: skip
ROWS = frame.tidy(
    pd.DataFrame(
        [
            {"profile": profile, "embedding": embedding, "d_model": d, "seed": seed, "last": share}
            for profile in ("quick", "paper") for (embedding, d), shares in SHARES.items()
            for seed, share in zip((42, 43), shares) if profile == "quick" or embedding == "learned"
        ]
    )
)  # fmt: skip
BLOCKS = frame.tidy(
    pd.DataFrame(
        [
            {"feed": feed, "lr": lr, "seed": seed, "step": step,
             "accuracy": level - 0.2 * (step < 200) + 0.01 * (seed - 42), "seen": 1.0 if step == 200 else 0.5}
            for (feed, lr), level in {("output", 0.01): 0.8, ("output", 0.001): 0.9, ("mixture", 0.01): 0.7}.items()
            for step in (100, 200) for seed in (42, 43)
        ]
    )
)  # fmt: skip


def test_best_rates_are_those_of_the_closing_mean():
    kept = block.best_rates(BLOCKS)
    assert set(zip(kept["feed"], kept["lr"])) == {("output", 0.001), ("mixture", 0.01)} and len(kept) == 8


def test_tables_count_perfect_seeds():
    quick = ROWS[ROWS["profile"] == "quick"]
    models = draw.accuracies(quick, ["d_model", "embedding"], "last").set_index(["d", "embedding"])
    assert models.loc[(24, "cosine"), "perfect seeds"] == "1 of 2"
    assert models.loc[(24, "cosine, frozen"), "perfect seeds"] == "2 of 2"
    assert models.loc[(32, "cosine"), "accuracy (%)"].startswith("91.0")
    blocks = draw.block_table(BLOCKS).set_index(["fed its", "rate"])
    assert blocks.loc[("output", "0.001"), "best seed"] == pytest.approx(91)
    assert blocks.loc[("mixture", "0.01"), ["perfect seeds", "perfect there"]].tolist() == ["0 of 2", "2 of 2"]
    assert blocks.loc[("output", "0.01"), "trained on (%)"].startswith("100.0") and len(blocks) == 3


def test_the_figure_has_every_seed_and_leaves_out_a_recipe_without_trigonometric_runs():
    shown = draw.trained_accuracies(ROWS, BLOCKS)
    assert not shown.numbers["model"].str.contains("authors").any()
    wanted = {100 * share for shares in SHARES.values() for share in shares} | {90, 91, 70, 71, 100}
    assert {round(float(y), 6) for y in shown.numbers["last"]} == {round(share, 6) for share in wanted}
    ticks = [label.get_text() for label in shown.figure.axes[0].get_xticklabels()]
    assert ticks == ["GPT-2, d = 24\nquick recipe", "GPT-2, d = 32\nquick recipe", draw.BLOCK, draw.SEEN]


def test_curves_count_epochs_of_the_training_inputs():
    curves = ROWS.assign(step=100, epoch=1.0, accuracy=ROWS["last"])
    numbers = draw.trained_curves(curves, BLOCKS).numbers
    last = numbers.loc[(numbers["model"] == draw.BLOCK) & (numbers["seed"] == 42), "epoch"].max()
    assert last == pytest.approx(200 * block.BATCH / MNNS().split(42).sum().item(), rel=0.02)


def test_the_best_mean_is_named():
    assert draw.best_of(ROWS).startswith("Of the 6 trigonometric GPT-2 runs 3 reach 100 %; the highest mean of all is")
    assert "frozen, d = 24, quick recipe: 100.0" in draw.best_of(ROWS)
