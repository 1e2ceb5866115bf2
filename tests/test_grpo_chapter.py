"""What the chapter on policy gradients draws and says, and which claims its runs stand beside."""

import numpy as np
import pandas as pd
import pytest

from cot2lib import paper, rewarded, runs, sweeps
from cot2lib.errors import SpecError
from cot2lib.figures import grpo as figures
from cot2lib.measured import Direction, Number
from cot2lib.profiles import grpo, shortened, spec
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS


def made(d_model=24, k=3, seeds=(42, 43), gain=10.0, **columns):
    """Two evaluations of some runs: from 30 % on, entropies from 1 down to .5."""
    rows = []
    for seed in seeds:
        for step, share in ((0, 0.0), (100, 1.0)):
            row = {
                "id": f"{d_model}-{k}-{seed}-{sorted(columns.items())}",
                "profile": "quick",
                "seed": seed,
                "step": step,
            }
            row |= {
                "d_model": d_model,
                "k": k,
                "epoch": step / 50,
                "loss": 0.7 - 0.1 * share,
                "reward": 30 + 10 * share,
            }
            row |= {name: 30 + gain * share + seed - 42 for name in ("own", "base", "discrete")}
            row |= {f"entropy_{t}": 1 - 0.5 * share for t in (1, 2, 3, 4)} | {"gradient_norm": 1.0}
            row |= {"lr": 3e-4, "temperature": 1.0, "ratio": "geometric", "kl": 0.0, "start": "s"}
            rows.append(row | columns)
    return pd.DataFrame(rows)


POINTS = pd.concat([made(d, k) for d in (24, 32) for k in (1, 3, 6)], ignore_index=True)


def test_evaluations_of_recorded_runs(store):
    task = MNNS(1, 4, 2)
    start = shortened(spec("discrete", task=task, d_model=16, layers=1, heads=1), 30)
    specs = [GRPOSpec(Recipe(steps=8, batch=4, lr=1e-3, evaluate_every=4), start, MTS(2))]
    runs.run(specs, retrain=True)
    points = figures.evaluations({"quick": specs}, "quick")
    rows = runs.run(specs, missing="error")
    held_out = rows["inputs_a"].item() + rows["inputs_b"].item()
    assert points["step"].tolist() == [0, 4, 8] and points["own"].iloc[-1] == pytest.approx(100 * rows["last"].item())
    assert points["base"].tolist() == ((points["base_a"] + points["base_b"]) * 100 / held_out).tolist()
    assert points["reward"].iloc[1:].between(0, 100).all() and np.isnan(points["reward"].iloc[0])
    first, last = figures.ends(points)
    assert (first["step"].item(), last["step"].item()) == (0, 8)


def test_figures_hold_what_they_say():
    figure = figures.accuracy_by_k(POINTS)
    assert [axis.get_xlabel() for axis in figure.axes] == [
        "tokens per thought (d = 24)",
        "tokens per thought (d = 32)",
    ]
    stated = {paper.paper_value(f"grpo-mts-d24-k{k}") for k in (1, 3, 6)}
    heights = {float(y) for points in figure.axes[0].collections for y in np.asarray(points.get_offsets())[:, 1]}
    assert stated <= heights and {30.0, 40.0} <= heights
    assert len(figures.entropies(POINTS).axes) == 6 and len(figures.learning(POINTS, 24).axes) == 3
    live = pd.DataFrame({42: np.linspace(20, 60, 30)})
    assert figures.live(live).axes[0].get_ylabel() == "right rollouts (%)"


def test_tables_and_sentences_give_the_means():
    row = figures.accuracy_table(POINTS).iloc[0]
    assert row["own sampler, before"].startswith("30.5") and row["own sampler, after"].startswith("40.5")
    assert figures.entropy_table(POINTS).loc[0, "token 1 (paper)"] == "1.00 to 0.50 (0.32 to 0.03)"
    said = figures.findings(POINTS)[0].replace("\xa0", " ")
    assert "30.5 % to 40.5 %, a gain of 10.0 [10.0, 10.0] points, on 2 of 2 seeds" in said


def test_variants_are_named_by_what_differs():
    start = next(s.id for s in sweeps.small("quick"))
    changes = [
        {},
        dict(ratio="product"),
        dict(ratio="product", temperature=3.0, gain=0.0),
        dict(kl=0.1),
        dict(lr=0.0, gain=0.0),
    ]
    parts = [made(**columns) for columns in [*changes, dict(lr=3e-5), dict(start=start)]]
    labelled = figures.variants(pd.concat([*parts, made(32)], ignore_index=True))
    names = set(labelled["variant"])
    assert names == {"K = 3, " + what for what in (
        "as usual", "product", "logits / K", "\N{GREEK SMALL LETTER BETA} = 0.1", "no learning",
        "a tenth of the rate", "better start",
    )}  # fmt: skip
    gains = figures.gain_table(labelled).set_index("variant")["gain, own sampler"]
    assert gains["K = 3, no learning"].startswith("0.0") and gains["K = 3, product"].startswith("10.0")
    assert len(figures.gains(labelled).axes) == 2
    scaled = labelled["variant"].str.contains("logits")
    low = labelled.assign(own=labelled["own"] - 10 * scaled)
    assert all(figures.checks(POINTS, low).values())
    worse = POINTS.assign(own=-POINTS["own"], entropy_4=-POINTS["entropy_4"])
    apart = labelled["own"] + 5 * (labelled["variant"] == "K = 3, product")
    moved = labelled.assign(discrete=labelled["discrete"] + labelled["step"], own=apart)
    assert not any(figures.checks(worse, moved).values())


def test_claims_of_policy_gradients_exist_and_are_read():
    claims = paper.claims()
    assert set(rewarded.REWARDED) <= set(claims.index)
    table = [c for c in claims.index if c.startswith("grpo-mts-")]
    assert set(table) <= set(rewarded.REWARDED) and len(table) == 8 + 48
    kinds = {type(rewarded.REWARDED[claim]) for claim in rewarded.REWARDED}
    assert kinds == {Number, Direction}


def test_samples_of_policy_gradients_read_their_curves(monkeypatch):
    points = made(seeds=(42, 43)).assign(base_a=[10, 30, 25, 20], base_b=20)
    held_out = dict(inputs_a=60, inputs_b=40)
    rows = pd.DataFrame({"id": points["id"].unique(), "seed": [42, 43], "last": 0.4, "best": 0.5, **held_out})
    monkeypatch.setattr(rewarded.runs, "recorded", lambda specs, retrain=False: rows)
    monkeypatch.setattr(rewarded.runs, "curves", lambda specs: points)
    before, after = (rewarded.sampled(3, 24, first)("quick", [42, 43]) for first in (True, False))
    assert before["entropy_2"].tolist() == [1.0, 1.0] and after["entropy_2"].tolist() == [0.5, 0.5]
    assert after["best"].tolist() == [0.5, 0.5] and after["lost"].tolist() == pytest.approx([0.1, 0.1])
    assert after["base_best"].tolist() == [0.5, 0.45], "of the best evaluation, not the last"


def test_recipes_of_policy_gradients():
    start = spec("discrete", "paper", d_model=24, layers=1, heads=1)
    one = grpo(start, "paper")
    assert (one.recipe.batch, one.recipe.lr, one.group, one.clip, one.thought) == (16, 5e-5, 8, 0.1, MTS(3))
    assert one.recipe.steps == 100 * one.recipe.evaluate_every and one.recipe.weight_decay == 0.01
    with pytest.raises(SpecError, match="profile 'slow'"):
        grpo(start, "slow")
    assert len({run.id for run in sweeps.sweep("grpo_mts", "quick")}) == len(sweeps.sweep("grpo_mts", "quick"))


def test_live_training_is_short_and_checked():
    starts = [s for s in sweeps.small("quick", (42,)) if s.method == "discrete CoT"]
    rewards = figures.live_rewards(starts, MTS(2), 3, 1e-3)
    assert rewards.shape == (3, 1) and rewards.to_numpy().min() >= 0 and rewards.to_numpy().max() <= 100
    with pytest.raises(SpecError, match="live_steps=1"):
        figures.live_rewards(starts, MTS(2), 1, 1e-3)
