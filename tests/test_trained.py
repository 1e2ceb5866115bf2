"""Figures and tables of training with trigonometric embeddings, from small frames whose answers are known by hand."""

import pandas as pd
import pytest

from cot2lib.study.analysis import experts
from cot2lib.study.checks.construction import trained_checks
from cot2lib.study.figures import construction
from cot2lib.tasks import MNNS

SHARES = {("learned", 24): (0.98, 0.985), ("cosine", 24): (0.99, 1.0), ("cosine, frozen", 24): (1.0, 1.0),
          ("cosine", 32): (0.9, 0.92)}  # fmt: skip
ROWS = pd.DataFrame(
    [
        {"profile": profile, "embedding": embedding, "d_model": d, "seed": seed, "last": share}
        for profile in ("quick", "paper") for (embedding, d), shares in SHARES.items()
        for seed, share in zip((42, 43), shares) if profile == "quick" or embedding == "learned"
    ]
)  # fmt: skip
BLOCKS = pd.DataFrame(
    [
        {"feed": feed, "lr": lr, "seed": seed, "step": step, 
         "accuracy": level - 0.2 * (step < 200) + 0.01 * (seed - 42), "seen": 1.0 if step == 200 else 0.5}
        for (feed, lr), level in {("output", 0.01): 0.8, ("output", 0.001): 0.9, ("mixture", 0.01): 0.7}.items()
        for step in (100, 200) for seed in (42, 43)
    ]
)  # fmt: skip


def test_best_rates_are_those_of_the_closing_mean():
    kept = experts.best_rates(BLOCKS)
    assert set(zip(kept["feed"], kept["lr"])) == {("output", 0.001), ("mixture", 0.01)} and len(kept) == 8


def test_tables():
    models = construction.model_table(ROWS[ROWS["profile"] == "quick"]).set_index(["d", "embedding"])
    assert models.loc[(24, "cosine"), "perfect seeds"] == "1 of 2"
    assert models.loc[(24, "cosine, frozen"), "perfect seeds"] == "2 of 2"
    assert models.loc[(32, "cosine"), "accuracy (%)"].startswith("91.0")
    blocks = construction.block_table(BLOCKS).set_index(["fed its", "rate"])
    assert blocks.loc[("output", "0.001"), "best seed"] == pytest.approx(91)
    assert blocks.loc[("output", "0.001"), "accuracy (%)"].startswith("90.5")
    assert blocks.loc[("mixture", "0.01"), "perfect seeds"] == "0 of 2"
    assert blocks.loc[("output", "0.01"), "trained on (%)"].startswith("100.0") and len(blocks) == 3


def marks(axis):
    return {round(float(y), 2) for part in axis.collections for _, y in part.get_offsets()}


def test_final_figure_shows_every_seed_and_the_papers_perfect():
    figure = construction.trained_accuracies(ROWS, BLOCKS)
    (axis,) = figure.axes  # without a trigonometric run the paper profile is left out
    assert axis.lines[0].get_ydata()[0] == 100
    wanted = {round(100 * share, 2) for shares in SHARES.values() for share in shares} | {
        90,
        91,
        70,
        71,
        100,
    }  # the last of the inputs trained on
    assert wanted <= marks(axis)
    assert [label.get_text() for label in axis.get_xticklabels()] == [
        "GPT-2, d = 24", "GPT-2, d = 32", "block", "block,\ninputs trained on"
    ]  # fmt: skip


def test_curves_count_epochs_of_the_training_inputs():
    curves = ROWS.assign(step=100, epoch=1.0, accuracy=ROWS["last"])
    figure = construction.trained_curves(curves, BLOCKS)
    ends = [line.get_xdata()[-1] for line in figure.axes[2].lines]
    assert max(ends) == pytest.approx(200 * experts.BATCH / MNNS().split(42).sum().item(), rel=0.02)


def test_findings_count_the_perfect_ones():
    quick = ROWS[ROWS["profile"] == "quick"]
    first, below, output, mixture = construction.trained_findings(quick, BLOCKS)
    assert first.startswith(
        "Of the 6 trigonometric GPT-2 runs 3 reach 100 %; the highest mean of all is that of cosine, "
    )
    assert "frozen, d = 24, quick recipe: 100.0" in first
    assert below.startswith("Beside a learned table at d = 24, quick recipe: cosine 1.2 [")
    assert "points above; cosine, frozen 1.8" in below
    assert construction.costs(quick.assign(last=1.9 - quick["last"]))[0].count("points below") == 2
    assert (
        output.startswith("The block fed its output reaches 90.5") and "perfect are 0 of 2 and 2 of 2 seeds" in output
    )
    assert mixture.startswith("The block fed its mixture reaches 70.5")


def test_checks_turn_with_the_rows():
    """In order: none perfect, quick as good, authors' worse, frozen worse, less so in more dimensions, the block."""
    holds = lambda rows, blocks=BLOCKS: list(trained_checks(rows, blocks).values())
    quick = ROWS[(ROWS["profile"] == "quick") & (ROWS["d_model"] == 24)]
    below = quick.assign(profile="paper", last=quick["last"].where(quick["embedding"] == "learned", 0.9))
    assert holds(pd.concat([quick, below])) == [False, True, True, False, True, True, True]
    less = quick.assign(last=quick["last"].where(quick["embedding"] != "cosine, frozen", 0.8))
    both = pd.concat([less, less.assign(profile="paper", last=less["last"].where(less["embedding"] != "cosine", 0.9))])
    assert holds(both) == [True] * 7
    perfect = BLOCKS.assign(accuracy=BLOCKS["accuracy"].where(BLOCKS["feed"] != "mixture", 1.0))
    assert holds(both, perfect) == [False, True, True, True, True, False, True]
    assert holds(ROWS[ROWS["profile"] == "paper"]) == [True, False, False, False, False, True, True]
    assert holds(less) == [True, True, False, True, True, True, True]
    more = both.assign(d_model=32, last=both["last"].where(both["embedding"] != "cosine, frozen", 0.5))
    assert holds(pd.concat([both, more]))[4] is False
    unsure = BLOCKS.assign(seen=BLOCKS["seen"].where(BLOCKS["seed"] != 43, 0.999))
    assert holds(both, unsure) == [True] * 6 + [False]
