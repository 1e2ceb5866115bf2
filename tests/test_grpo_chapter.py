"""What the chapter on policy gradients draws and says, and which claims its runs stand beside."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cot2lib import runs
from cot2lib.errors import RecordError, SpecError
from cot2lib.specs import GRPOSpec, Recipe
from cot2lib.specs.profiles import grpo, shortened, spec
from cot2lib.study import sweeps
from cot2lib.study.analysis import live, policies
from cot2lib.study.checks.grpo_mts import checks, recipe_checks, split_checks
from cot2lib.study.checks.live import reward_checks
from cot2lib.study.claims import samples
from cot2lib.study.claims.comparisons import Direction, NoGain, Parts
from cot2lib.study.claims.kinds import Number, OfStart
from cot2lib.study.claims.printed import claims, paper_value
from cot2lib.study.claims.simplex import SIMPLEX
from cot2lib.study.claims.tokens import TOKENS
from cot2lib.study.figures import before_after, grpo_mts
from cot2lib.study.figures.live import live_rewards
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
                "split": seed,
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
            row |= {"lr": 3e-4, "temperature": 1.0, "ratio": "geometric", "kl": 0.0, "dropout": 0.0, "start": "s"}
            rows.append(row | columns)
    return pd.DataFrame(rows)


STEPS = before_after.STEPS
POINTS = pd.concat([made(d, k) for d in (24, 32) for k in (1, 3, 6)], ignore_index=True)


def test_evaluations_of_recorded_runs(store):
    task = MNNS(1, 4, 2)
    start = shortened(spec("discrete", task=task, d_model=16, layers=1, heads=1), 30)
    specs = [GRPOSpec(Recipe(steps=8, batch=4, lr=1e-3, evaluate_every=4), start, MTS(2))]
    runs.run(specs, retrain=True)
    points = policies.evaluations({"quick": specs}, "quick")
    rows = runs.run(specs, missing="error")
    held_out = rows["inputs_a"].item() + rows["inputs_b"].item()
    assert points["step"].tolist() == [0, 4, 8] and points["own"].iloc[-1] == pytest.approx(100 * rows["last"].item())
    assert points["base"].tolist() == ((points["base_a"] + points["base_b"]) * 100 / held_out).tolist()
    assert points["reward"].iloc[1:].between(0, 100).all() and np.isnan(points["reward"].iloc[0])
    first, last = policies.ends(points)
    assert (first["step"].item(), last["step"].item()) == (0, 8)


def test_figures_hold_what_they_say():
    figure = grpo_mts.accuracy_by_k({"one recipe": POINTS[POINTS["d_model"] == 24], "another": POINTS})
    assert [axis.get_xlabel() for axis in figure.axes] == [
        "", "", "tokens per thought (d = 24)", "tokens per thought (d = 32)"
    ]  # fmt: skip
    assert [axis.get_ylabel() for axis in figure.axes[::2]] == ["accuracy (%), one recipe", "accuracy (%), another"]
    assert not figure.axes[1].collections and figure.axes[3].collections, "what was not run has an empty panel"
    stated = {paper_value(f"grpo-mts-d24-k{k}") for k in (1, 3, 6)}
    assert stated <= heights(figure.axes[0]) and {30.0, 40.0} <= heights(figure.axes[0])
    entropies = grpo_mts.entropies_by_k({"one recipe": POINTS})
    assert len(entropies.axes) == 6 and paper_value("grpo-mts-d24-k1-entropy3") in heights(entropies.axes[0])
    assert [axis.get_ylabel() for axis in before_after.learning(grpo_mts.by_k(POINTS, 24)).axes] == [
        "reward of rollouts (%)", "accuracy (%), own sampler", "gradient norm"
    ]  # fmt: skip
    rewards = pd.DataFrame({42: np.linspace(20, 60, 30)})
    axis = live_rewards(rewards, 12.0).axes[0]
    assert axis.get_ylabel() == "right rollouts (%)" and list(axis.lines[-1].get_ydata()) == [12.0, 12.0]


def heights(axis):
    return {float(y) for points in axis.collections for y in np.asarray(points.get_offsets())[:, 1]}


def test_what_thoughts_hold_is_drawn_by_moment():
    group = grpo_mts.by_k(POINTS, 24)[0]
    rows = [
        {"id": i, "when": when, "step": step, "support": 2.0 + step, "reachable": 90.0, "on_the_way": value + step}
        for i in group.points["id"].unique() for when, value in (("before", 20.0), ("after", 40.0)) for step in STEPS
    ]  # fmt: skip
    figure = before_after.held([group], pd.DataFrame(rows))
    assert len(figure.axes) == 3 and heights(figure.axes[0]) == {3.0, 4.0, 5.0, 6.0}
    assert figure.axes[0].get_ylim()[1] > 6.0 and figure.axes[0].get_ylim()[0] == 0
    assert heights(figure.axes[2]) == {21.0, 22.0, 23.0, 24.0, 41.0, 42.0, 43.0, 44.0}


def test_tables_and_sentences_give_the_means():
    row = before_after.over_recipes({"one": POINTS, "two": POINTS}, grpo_mts.accuracy_table).iloc[0]
    assert row["recipe"] == "one" and row["own sampler, before"].startswith("30.5")
    assert row["own sampler, after"].startswith("40.5")
    assert grpo_mts.entropy_table(POINTS).loc[0, "token 1 (paper)"] == "1.00 to 0.50 (0.32 to 0.03)"
    said = before_after.said_of({"one recipe": POINTS}, grpo_mts.findings)[0].replace("\xa0", " ")
    assert said.startswith("One recipe, **d = 24, K = 1**")
    assert "30.5 % to 40.5 %, a gain of 10.0 [10.0, 10.0] points, on 2 of 2 seeds" in said


def test_runs_on_one_split_stand_beside_the_papers():
    two = pd.concat([POINTS, POINTS.assign(id=POINTS["id"] + "x", own=POINTS["own"] - 5, dropout=0.1)])
    table = grpo_mts.split_table(two.assign(discrete=two["own"] - 1)).set_index(["dropout", "tokens"])
    assert len(table) == 6, "d = 24 alone"
    assert table.loc[("0.1", "K = 3"), "own sampler, best epoch"].startswith("35.5")
    row = table.loc[("0", "K = 3")]
    assert row["paper, best epoch"] == "52.6"
    assert row["collapsed"] == "0 of 2"
    assert row["discrete, before"].startswith("29.5") and row["own sampler, best epoch"].startswith("40.5")


def test_runs_with_dropout_on_one_split_end_near_the_papers():
    """Of made runs: without dropout far above or with one answer to everything, with it a little below."""
    stated, level = paper_value("grpo-mts-d24-k3"), policies.constant_answer(44)
    found = made(k=3, seeds=(43, 44))
    ends = {(0.0, 43): stated + 15, (0.0, 44): level, (0.1, 43): stated - 3, (0.1, 44): level - 4}
    points = pd.concat([found.assign(dropout=dropout, id=found["id"] + str(dropout)) for dropout in (0.0, 0.1)])
    own = pd.Series([ends[key] for key in zip(points["dropout"], points["seed"])], points.index)
    points = points.assign(**dict.fromkeys(policies.DECODERS, own)).reset_index(drop=True)
    assert list(split_checks(points).values()) == [True, True]
    assert list(split_checks(points.assign(own=points["own"] - 8)).values()) == [False, False]
    said = grpo_mts.split_findings(points)[1].replace("\xa0", " ")
    at = f"{level - 4:.1f}, {stated - 3:.1f} %; the paper's is at {stated:.1f} %."
    assert said == f"**K = 3, dropout 0.1**: best epochs at {at}"


def test_the_runs_of_the_ledger_are_on_one_split():
    chosen = [*sweeps.sampled("paper", d_models=(24,), one_split=True), *sweeps.dirichlet("paper", one_split=True)]
    assert {run.start.split_seed for run in chosen} == {42} and {run.seed for run in chosen} == set(sweeps.SEEDS)
    usual = {*sweeps.sampled("paper"), *sweeps.dirichlet("paper")}
    assert {run.seed for run in chosen if run in usual} == {42}, "that seed's own split"
    named = grpo_mts.run_name([])
    assert [named(run) for run in chosen[:2]] == ["K = 1, d = 24", "K = 1, d = 24, one split"]
    shipped = sweeps.sweep("one_split", "paper")
    assert {run for run in chosen[:15] if run.seed != 42} < set(shipped)
    assert not any(sweeps.ships_weights("one_split", run) for run in shipped if isinstance(run, GRPOSpec))


GAINS = {
    **{(k, "usual"): 20.0 for k in (1, 3, 6)},
    **{(k, "divergence"): 12.0 for k in (1, 3, 6)},
    **{(k, "product"): 20.0 for k in (3, 6)},
    **{(k, "logits / K"): 0.0 for k in (3, 6)},
    **{(3, change): 21.0 for change in ("high rate", "product, high rate")},
    (3, "no learning"): 0.0,
    (3, "one-sided dropout"): 2.0,
    (6, "rising"): 21.0,
}
LEFT = {"usual": 0.3, "product": 0.2}  # nat more that K = 6 leaves


def variants_with(seeds=(42, 43, 44), **more):
    """Made evaluations of variants, of which runs of seed 42 collapse; `more` adds to the gains of a change."""
    parts = []
    for place, ((k, change), gain) in enumerate(GAINS.items()):
        ratio = "product" if change == "product" else "geometric"
        part = made(k=k, seeds=seeds, gain=gain + more.get(change, 0.0), change=change, ratio=ratio)
        after = part["step"] > 0
        part.loc[after, [f"entropy_{t}" for t in STEPS]] += LEFT.get(change, 0.0) * (k == 6)
        parts.append(part.assign(variant=place))
    table = pd.concat(parts, ignore_index=True)
    return fallen(fallen(table, "usual", 42), "product", 42)


def fallen(table, change, *seeds, ks=(1, 3, 6)):
    """The same, where the runs of a change end at one answer to everything."""
    those = (table["change"] == change) & table["seed"].isin(seeds) & table["k"].isin(ks) & (table["step"] > 0)
    for decoder in policies.DECODERS:
        table.loc[those, decoder] = table.loc[those, "split"].map(policies.constant_answer)
    return table


def gain_table(points):
    return before_after.gain_table(points, grpo_mts.variant_name).set_index("variant")


def test_gains_are_by_variant():
    table = variants_with()
    gains = gain_table(table)
    assert gains["gain, own sampler"]["K = 3, no learning"].startswith("0.0")
    assert gains["gain, own sampler"]["K = 6, rising from 1"].startswith("21.0")
    assert gains["lost at the end"].str.startswith("0.0").all()
    falling = table.assign(own=table["own"] - 31 * (table["change"] == "rising") * (table["step"] > 0))
    assert gain_table(falling)["lost at the end"]["K = 6, rising from 1"].startswith("10.0")
    few = table[table["change"] != "product"]
    figure = before_after.gains_by_variant({"authors' recipe": few, "quick recipe": table}, grpo_mts.variant_name)
    assert [axis.get_xlabel() for axis in figure.axes] == ["gain (points), own sampler", "gain (points), discrete"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(gains.index)


def test_gain_is_drawn_against_the_start():
    better = made(gain=4.0).assign(change="better start")
    groups = grpo_mts.by_start(POINTS, better)
    assert [group.label for group in groups] == ["d = 24", "d = 32", "d = 24, better start"]
    axis = grpo_mts.gain_against_start(groups).axes[0]
    dots = [np.asarray(points.get_offsets()).tolist() for points in axis.collections]
    assert dots[0] == [[30, 10], [31, 10]] and dots[2] == [[30, 4], [31, 4]]


def test_checks_can_fail():
    table = fallen(variants_with(), "logits / K", 42, 43, 44, ks=[6])
    divided, first = table["change"] == "logits / K", table["step"] == 0
    low = table.assign(own=table["own"] - 10 * (divided & (table["k"] == 3)))
    low["discrete"] += 10.0 * (divided & first)
    good = checks(POINTS, low)
    assert len(good) == 10 and all(good.values()), good
    worse = POINTS.assign(own=-POINTS["own"], entropy_4=-POINTS["entropy_4"])
    moved = variants_with(**{"product": 5, "rising": -20, "divergence": 19, "one-sided dropout": 17})
    moved = fallen(moved, "usual", 43)
    moved = moved.assign(discrete=moved["discrete"] + moved["step"], entropy_2=1.0)
    bad = checks(worse, moved)
    assert bad.keys() == good.keys() and not any(bad.values()), bad


def test_checks_of_either_recipe_can_fail():
    quick, authors = variants_with(), fallen(variants_with(), "high rate", 42)
    for change in ("high rate", "product, high rate"):
        quick, authors = fallen(quick, change, 42, 43, 44), fallen(authors, change, 42)
    near = quick["own"] + 10 * ((quick["change"] == "divergence") & (quick["seed"] == 43) & (quick["step"] > 0))
    divided = (authors["change"] == "logits / K") & (authors["seed"] == 43) & (authors["step"] > 0)
    good = recipe_checks(quick.assign(own=near), authors.assign(discrete=authors["discrete"] + 12 * divided))
    assert len(good) == 5 and all(good.values()), good
    assert len(recipe_checks(quick, None)) == 3
    moved = variants_with(**{"divergence": 9, "logits / K": 30, "usual": -1})
    moved.loc[(moved["change"] == "usual") & (moved["k"] == 6) & (moved["step"] > 0), "own"] = 70.0
    bad = recipe_checks(moved, variants_with(**{"high rate": -15}))
    assert bad.keys() == good.keys() and not any(bad.values()), bad


def test_checks_leave_out_what_is_not_recorded():
    few = variants_with()
    few = few[few["change"].isin(["usual", "rising"])]
    assert list(checks(POINTS, few)) == [
        "policy gradients raise accuracy by the own sampler on most runs",
        "the first and the last token become more certain on most runs",
        "a rising K gains no less than K = 6 throughout",
        "of the usual runs the same start collapses under every K",
    ]


def test_collapsed_runs_are_those_at_the_most_frequent_answer():
    near = policies.constant_answer(42) + 0.2
    last = pd.DataFrame(
        {"split": [42, 42, 43], "own": [near, near, 60.0], "base": near, "discrete": [near, 50.0, 60.0]}
    )
    assert policies.collapsed(last).tolist() == [True, False, False]
    answers = MNNS().answers[~MNNS().split(43)]
    assert policies.constant_answer(43) == pytest.approx(100 * (answers == 1).double().mean().item())
    same = lambda table: table["split"].map(policies.constant_answer)
    steady = made(gain=0.0).assign(variant=0, change="usual", own=same, base=same, discrete=same)
    assert gain_table(steady)["collapsed"].tolist() == ["2 of 2"]


def test_variants_differ_in_what_they_say_is_changed():
    found = {(one.specs[0].thought.k, one.change): one.specs for one in sweeps.variants("quick", (42,))}
    usual = {k: found[k, "usual"][0] for k in (1, 3, 6, 12)}
    assert len(found) == len(sweeps.variants("quick", (42,))) and all(len(specs) == 1 for specs in found.values())
    changes = {
        (3, "product"): dict(ratio="product"),
        (1, "divergence"): dict(kl=0.1),
        (6, "rising"): dict(first_k=1),
        (3, "logits / K"): dict(ratio="product", thought=MTS(3, temperature=3.0)),
    }
    for (k, change), fields in changes.items():
        assert found[k, change][0] == replace(usual[k], **fields)
    rates = {key: specs[0].recipe.lr for key, specs in found.items()}
    assert rates[3, "high rate"] == pytest.approx(10 * rates[3, "usual"]) and rates[3, "no learning"] == 0
    assert rates[3, "low rate"] == pytest.approx(rates[3, "usual"] / 10)
    assert found[3, "one-sided dropout"][0].recipe.dropout == 0.1
    assert found[3, "better start"][0].start.recipe != usual[3].start.recipe
    assert len({specs[0].id for specs in found.values()}) == len(found)


def test_variants_have_their_runs():
    points = made().assign(id=lambda t: ["a", "a", "b", "b"])
    a, b, c = sweeps.sampled("quick", (42, 43, 44), (24,), (3,))
    points["id"] = points["id"].map({"a": a.id, "b": b.id})
    variants = [sweeps.Variant("none", (c,)), sweeps.Variant("one", (a,)), sweeps.Variant("both", (a, b))]
    found = policies.by_variant(points, variants)
    assert found["change"].value_counts().to_dict() == {"one": 2, "both": 4}
    assert found.groupby("change")["variant"].unique().map(list).to_dict() == {"one": [1], "both": [2]}


def test_another_profile_is_drawn_where_nothing_is_recorded():
    runs_of = {name: sweeps.sampled(name, (42,), (24,), (3,)) for name in ("paper", "quick")}
    points = made(seeds=(42,)).assign(id=runs_of["quick"][0].id)
    assert (
        policies.drawn_profile(points, runs_of, "paper") == policies.drawn_profile(points, runs_of, "quick") == "quick"
    )
    both = pd.concat([points, points.assign(profile="paper", id=runs_of["paper"][0].id)])
    assert policies.drawn_profile(both, runs_of, "paper") == "paper"
    with pytest.raises(RecordError, match="none of these runs is recorded"):
        policies.drawn_profile(points.assign(id="?"), runs_of, "paper")


def test_claims_of_policy_gradients_exist_and_are_read():
    known, kinds = claims().index, TOKENS | SIMPLEX
    assert set(kinds) <= set(known)
    table = [claim for claim in known if claim.startswith(("grpo-mts-", "dirichlet-"))]
    assert set(table) <= set(kinds) and len(table) == 8 + 48 + 8 + 16 + 1
    assert {type(kind) for kind in kinds.values()} == {Number, OfStart, Direction, NoGain, Parts}


def test_samples_of_policy_gradients_read_their_curves(monkeypatch):
    points = made(seeds=(42, 43)).assign(base_a=[10, 30, 25, 20], base_b=20)
    held_out = dict(inputs_a=60, inputs_b=40, seconds=1.0, threads=1, device="cpu")
    rows = pd.DataFrame({"id": points["id"].unique(), "seed": [42, 43], "last": 0.4, "best": 0.5, **held_out})
    monkeypatch.setattr(samples.runs, "recorded", lambda specs, retrain=False: rows)
    monkeypatch.setattr(samples.runs, "curves", lambda specs: points)
    found = samples.sampled(3, 24)("quick", [42, 43])
    assert found["entropy_2_before"].tolist() == [1.0, 1.0] and found["entropy_2"].tolist() == [0.5, 0.5]
    assert found["best"].tolist() == [0.5, 0.5] and found["lost"].tolist() == pytest.approx([0.1, 0.1])
    assert found["base_best"].tolist() == [0.5, 0.45], "of the best evaluation, not the last"
    assert found["base_last"].tolist() == [0.5, 0.4] and found["base_lost"].tolist() == pytest.approx([0.0, 0.05])
    assert found["base_split_half"].tolist() == pytest.approx([0.2 + (10 + 30) / 2 / 100, 0.2 + (25 + 20) / 2 / 100])


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
    rewards = live.rewards(starts, MTS(2), 3, 1e-3)
    assert rewards.shape == (3, 1) and rewards.to_numpy().min() >= 0 and rewards.to_numpy().max() <= 100
    with pytest.raises(SpecError, match="live_steps=1"):
        live.rewards(starts, MTS(2), 1, 1e-3)


def test_the_start_level_is_what_an_untrained_policy_earns(monkeypatch):
    starts = sweeps.starts([42])
    monkeypatch.setattr(live, "STILL_STEPS", 5)
    still = live.rewards(starts, MTS(2), 5, 0.0)
    level = live.start_level(starts, MTS(2))
    assert level == pytest.approx(float(still.to_numpy().mean())) and 0 < level < 100
    gained = still * 0 + level
    assert list(reward_checks(gained + 6, level).values()) == [True]
    gained.iloc[:3] += 50
    assert list(reward_checks(gained, level).values()) == [False]
