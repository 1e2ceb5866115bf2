"""What the chapter on Dirichlet thoughts draws and says, and which runs it stands on."""

import numpy as np
import pandas as pd
import torch
from test_grpo_chapter import heights, made

from cot2lib.specs.profiles import POLICIES
from cot2lib.study import sweeps
from cot2lib.study.analysis import policies, simplex
from cot2lib.study.checks.grpo_dirichlet import checks, later_checks
from cot2lib.study.claims import samples
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures import grpo_dirichlet
from cot2lib.study.figures.before_after import STEPS
from cot2lib.study.figures.style import GAMMA
from cot2lib.thoughts import MTS, Base, Dirichlet, Gumbel

SEEDS = (42, 43)
THOUGHT = torch.tensor([0.6, 0.3, 0.1])
ASKED = sweeps.dirichlet_tables("quick", SEEDS)


def points_of(specs, gain=10.0):
    """Made evaluations of real specs; `gain` is a number or a function of a spec."""
    gain_of = gain if callable(gain) else lambda _: gain
    parts = []
    for spec in specs:
        columns = policies.columns_of(spec)[["layers", "gamma", "started", "sampler"]].to_dict()
        parts.append(made(seeds=(spec.seed,), gain=gain_of(spec), **columns).assign(id=spec.id))
    return pd.concat(parts, ignore_index=True)


POINTS = points_of(ASKED, gain=lambda spec: spec.thought.gamma / 2)
CHOSEN = grpo_dirichlet.groups(POINTS)
HELD = pd.DataFrame(
    {"id": run, "when": when, "step": step, "base_entropy": value}
    for run in POINTS["id"].unique() for when, value in (("before", 0.9), ("after", 0.2)) for step in STEPS
)  # fmt: skip


def test_tables_are_the_papers_and_gamma_of_one():
    cells = {(run.start.method, run.model.layers): [] for run in ASKED}
    for run in ASKED:
        if run.seed == 42:
            cells[run.start.method, run.model.layers].append(run.thought.gamma)
    assert cells == {
        ("discrete CoT", 1): [1, 10, 20, 40], ("CoT2", 1): [1, 10, 20, 40], ("discrete CoT", 2): [20]
    }  # fmt: skip
    rates, chosen = {(run.start.method, run.recipe.lr) for run in ASKED}, POLICIES["quick"]
    assert rates == {("discrete CoT", chosen.dirichlet_lr), ("CoT2", chosen.cot2_lr)}
    assert {run.id for run in ASKED} <= {run.id for run in sweeps.sweep("grpo_dirichlet", "quick")}


def test_groups_stand_beside_their_claims():
    claims = {key: [group.claim for group in parts] for key, parts in CHOSEN.items()}
    assert claims["discrete CoT", 1] == [None, None, "dirichlet-discrete-1l", None]
    assert claims["CoT2", 1] == [None, "dirichlet-cot2-g10", "dirichlet-cot2-g20", "dirichlet-cot2-g40"]
    assert claims["discrete CoT", 2] == ["dirichlet-discrete-2l"]
    fewer = grpo_dirichlet.groups(POINTS[POINTS["id"] == ASKED[0].id])
    assert list(fewer) == [("discrete CoT", 1)] and [group.value for group in fewer["discrete CoT", 1]] == [1.0]


def test_figures_hold_what_they_say():
    figure = grpo_dirichlet.accuracy({"one": POINTS})
    stated = {paper_value(f"dirichlet-cot2-g{g}") for g in (10, 20, 40)}
    assert stated <= heights(figure.axes[2]) and {30.0, 50.0} <= heights(figure.axes[2])
    entropies = grpo_dirichlet.entropies(grpo_dirichlet.entropy_groups(CHOSEN, HELD))
    assert [axis.get_xlabel() for axis in entropies.axes] == [
        "token (discrete CoT, one layer)", "token (discrete CoT, two layers)"
    ]  # fmt: skip
    assert paper_value("dirichlet-discrete-2l-entropy4") in heights(entropies.axes[1])
    curves = grpo_dirichlet.gamma_curves(simplex.scales(THOUGHT, [1.0, 20.0], 500))
    assert [axis.get_ylabel() for axis in curves.axes] == ["entropy of a thought (nat)", "distance from its mean"]


def test_tables_and_sentences_give_the_means():
    table = grpo_dirichlet.accuracy_table(POINTS).set_index(["start", "scale"])
    row = table.loc[("CoT2, one layer", GAMMA.named(20.0))]
    assert row["base, before"].startswith("30.5") and row["base, after"].startswith("40.5")
    entropies = grpo_dirichlet.entropy_table(grpo_dirichlet.entropy_groups(CHOSEN, HELD)).set_index("start")
    assert entropies.loc["discrete CoT, two layers", "token 1 (paper)"] == "0.90 to 0.20 (0.49 to 0.40)"
    said = grpo_dirichlet.findings(POINTS)[1].replace("\xa0", " ")
    assert said.startswith("**discrete CoT, two layers** (base decoding starts at 30.5 %)")
    assert "10.0 [10.0, 10.0]" in said


def test_runs_on_one_split_stand_beside_the_papers():
    discrete = POINTS[(POINTS["started"] == "discrete CoT") & (POINTS["gamma"] == 20.0)]
    table = grpo_dirichlet.split_table(discrete).set_index("start")
    assert table["paper, best epoch"].to_dict() == {
        "discrete CoT, one layer": "46.2",
        "discrete CoT, two layers": "75.8",
    }
    assert table["base, best epoch"].str.startswith("40.5").all()


def test_scales_agree_with_their_formulas():
    table = simplex.scales(THOUGHT, [1.0, 20.0], 20_000)
    for name in ("entropy", "distance"):
        assert np.allclose(table[name], table[f"{name}, formula"], rtol=0.05)
    assert table["entropy"].is_monotonic_increasing and table["distance"].is_monotonic_decreasing


def test_variants_differ_in_what_they_say_is_changed():
    found = {
        (one.specs[0].start.method, one.specs[0].thought.gamma, one.change): one.specs[0]
        for one in sweeps.dirichlet_variants("quick", (42,))
    }
    assert found["discrete CoT", 1.0, "masked"].thought == Dirichlet(1.0, masked=True)
    assert found["discrete CoT", 20.0, "whole vocabulary"].thought == Dirichlet(20.0, 0.0, most=None)
    rates = {key: run.recipe.lr for key, run in found.items()}
    usual = "discrete CoT", 20.0, "usual"
    assert rates["discrete CoT", 20.0, "half rate"] == rates[usual] / 2
    assert rates["discrete CoT", 20.0, "no learning"] == 0
    assert rates["discrete CoT", 20.0, "MTS rate"] == POLICIES["quick"].lr
    assert rates["CoT2", 20.0, "high rate"] == 10 * rates["CoT2", 20.0, "usual"]
    named = [
        grpo_dirichlet.variant_name(pd.concat([policies.columns_of(run), pd.Series({"change": change})]))
        for (_, _, change), run in found.items()
    ]
    assert len(set(named)) == len(found) == len(sweeps.dirichlet_variants("quick", (42,)))
    assert named[0] == "γ = 20, as usual" and named[-2:] == ["CoT2, γ = 20", "CoT2, γ = 20, ten times the rate"]


def test_rules_of_later_papers():
    later = sweeps.later("quick", (42,))
    named = [
        grpo_dirichlet.later_name(pd.concat([policies.columns_of(one.specs[0]), pd.Series({"change": one.change})]))
        for one in later
    ]
    assert named == [
        "MTS, K = 3", "MTS, K = 3, centred", "Dirichlet, γ = 20", "Gumbel, τ = 0.1", "Gumbel, τ = 1",
        "Gaussian, σ = 0.1", "Gaussian, σ = 0.3", "mask per rollout", "CoT2, mask per rollout",
    ]  # fmt: skip
    found = dict(zip(named, (one.specs[0] for one in later)))
    assert found["MTS, K = 3"].thought == MTS(3) and not found["MTS, K = 3, centred"].scaled
    assert found["mask per rollout"].mask and found["mask per rollout"].thought == Base()
    same_rate = {run.recipe.lr for name, run in found.items() if not name.startswith("CoT2")}
    assert same_rate == {POLICIES["quick"].lr}


def test_treatments_give_lengths_of_gradients():
    by_run = POINTS["id"].map({ASKED[0].id: 0, ASKED[2].id: 1})
    table = POINTS.assign(variant=by_run, change="usual", gradient_norm=1.0 + 6 * (by_run == 1)).dropna(
        subset="variant"
    )
    shown = grpo_dirichlet.treatments(table).set_index("variant")
    assert list(shown.index) == ["γ = 1, as usual", "γ = 10, as usual"]
    assert shown.loc["γ = 10, as usual", "gradient"].startswith("7.0")
    assert shown.loc["γ = 1, as usual", "gradient"].startswith("1.0")
    assert shown.loc["γ = 1, as usual", "base, before"].startswith("30.0")


def variants_with(gain):
    """Made evaluations of every variant; `gain` of its change and gamma."""
    parts = [
        points_of(one.specs, gain(one.change, one.specs[0].thought.gamma)).assign(variant=place, change=one.change)
        for place, one in enumerate(sweeps.dirichlet_variants("quick", SEEDS))
    ]
    return pd.concat(parts, ignore_index=True)


def held_with(one, two):
    """Entropies before training at so many nats from the paper's, of one and of two layers."""
    away = {run.id: (run.model.layers, {1: one, 2: two}[run.model.layers]) for run in ASKED}
    stated = lambda layers, step: paper_value(f"dirichlet-discrete-{layers}l-entropy{step}-sft")
    return pd.DataFrame(
        {"id": run, "when": "before", "step": step, "base_entropy": stated(layers, step) + far}
        for run, (layers, far) in away.items()
        for step in STEPS
    )


def test_checks_can_fail():
    learnt = variants_with(lambda change, gamma: 0.0 if change == "no learning" else 10.0)
    late = learnt["step"] > 0
    whole = (learnt["change"] == "whole vocabulary") * late
    longer = learnt.assign(gradient_norm=1.0 + 2 * whole + whole * (learnt["gamma"] == 1), base=learnt["base"] - whole)
    rising = lambda run: run.thought.gamma - 5.0 if run.start.method == "CoT2" else 10.0
    good = checks(points_of(ASKED, rising), longer, held_with(0.4, 0.1))
    assert len(good) == 10 and all(good.values()), good
    falling = points_of(ASKED, lambda run: -rising(run) * run.thought.gamma / 10)
    masked = (learnt["change"] == "masked") * late
    moved = learnt.assign(own=learnt["own"] + learnt["step"], base=learnt["base"] + 9 * masked)
    bad = checks(falling, moved, held_with(0.1, 0.4))
    assert good.keys() == bad.keys() and not any(bad.values()), bad


GAINED = {"MTS": 25.0, "Dirichlet": 23.0, "Gumbel": 3.0, "Gaussian": 15.0, "Base": 18.0}  # by sampler


def later_with(start=lambda sigma: -50 * sigma, length=4.0, collapse=True, **gains):
    """Made evaluations of later rules; Gaussian noise moves the start, and the larger one ends at one answer."""
    parts = []
    for place, one in enumerate(sweeps.later("quick", SEEDS)):
        of_cot2 = one.specs[0].start.method == "CoT2"
        gain = 3.0 if of_cot2 else (GAINED | gains)[type(one.specs[0].thought).__name__]
        part = points_of(one.specs, gain + gains.get(one.change, 0.0)).assign(variant=place, change=one.change)
        sigma = getattr(one.specs[0].thought, "sigma", None)
        part["gradient_norm"] = length if isinstance(one.specs[0].thought, Gumbel) else 1.0
        if sigma is not None:
            part["sigma"] = sigma
            part["own"] += start(sigma) * (part["step"] == 0)
        if sigma == sweeps.SIGMAS[1] and collapse:
            for decoder in policies.DECODERS:
                part.loc[part["step"] > 0, decoder] = part["split"].map(policies.constant_answer)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def test_checks_of_later_rules_can_fail():
    beside = variants_with(lambda change, gamma: 2.0)
    good = later_checks(later_with(), beside)
    assert len(good) == 5 and all(good.values()), good
    worse = later_with(lambda sigma: 50 * sigma, 2.0, False, Gumbel=24.0, centred=-5.0, Base=5.0)
    bad = later_checks(worse, beside)
    assert good.keys() == bad.keys() and not any(bad.values()), bad


def test_checks_leave_out_what_is_not_recorded():
    few = variants_with(lambda change, gamma: 0.0)
    found = checks(POINTS[POINTS["started"] == "CoT2"], few[few["change"] == "no learning"], HELD.iloc[:0])
    assert list(found) == [
        "from CoT2 a larger gamma gains more", "and gamma = 1 loses",
        "from CoT2 gamma = 1 loses more of its best than gamma = 20, on every seed",
        "without a learning rate nothing changes",
    ]  # fmt: skip


def test_untreated_runs_are_those_of_the_whole_vocabulary(monkeypatch):
    seen = []
    monkeypatch.setattr(samples.runs, "recorded", lambda specs: seen.extend(specs) or pd.DataFrame())
    assert samples.untreated(1.0)("quick", (42,)).empty and seen[0].thought == Dirichlet(1.0, 0.0, most=None)
