"""What the chapter on Dirichlet thoughts draws and says, and which runs it stands on."""

import numpy as np
import pandas as pd
import torch
from test_grpo_chapter import heights, made

from cot2lib.specs.profiles import POLICIES
from cot2lib.study import sweeps
from cot2lib.study.claims import samples
from cot2lib.study.claims.printed import paper_value
from cot2lib.study.figures import dirichlet as figures
from cot2lib.study.figures import policies
from cot2lib.thoughts import MTS, Base, Dirichlet

SEEDS = (42, 43)
THOUGHT = torch.tensor([0.6, 0.3, 0.1])
ASKED = figures.requests("quick", SEEDS)


def points_of(specs, gain=10.0):
    """Made evaluations of real specs."""
    table = made(seeds=SEEDS, gain=gain)
    wanted = {spec.seed: spec.id for spec in specs}
    return table.assign(id=table["seed"].map(wanted))


POINTS = pd.concat(
    [points_of(specs, gain=g / 2) for by_gamma in ASKED.values() for g, specs in by_gamma.items()], ignore_index=True
)
CHOSEN = figures.groups(POINTS, ASKED)
HELD = pd.DataFrame(
    {"id": run, "when": when, "step": step, "base_entropy": value}
    for run in POINTS["id"].unique() for when, value in (("before", 0.9), ("after", 0.2)) for step in policies.STEPS
)  # fmt: skip


def test_requests_are_those_of_the_papers_tables():
    gammas = {title: list(by_gamma) for title, by_gamma in ASKED.items()}
    assert gammas.pop("discrete CoT, two layers") == [20] and len(gammas) == 2
    assert all(found == [1, 10, 20, 40] for found in gammas.values())
    rates, chosen = {t: next(iter(g.values()))[0].recipe.lr for t, g in ASKED.items()}, POLICIES["quick"]
    assert rates["discrete CoT, two layers"] == chosen.dirichlet_lr and rates["CoT2, one layer"] == chosen.cot2_lr
    assert ASKED["discrete CoT, two layers"][20.0][0].model.layers == 2
    recorded = {run.id for run in sweeps.sweep("grpo_dirichlet", "quick")}
    assert {run.id for g in ASKED.values() for specs in g.values() for run in specs} <= recorded


def test_groups_stand_beside_their_claims():
    claims = {title: [group.claim for group in parts] for title, parts in CHOSEN.items()}
    assert claims["discrete CoT, one layer"] == [None, None, "dirichlet-discrete-1l", None]
    assert claims["CoT2, one layer"] == [None, "dirichlet-cot2-g10", "dirichlet-cot2-g20", "dirichlet-cot2-g40"]
    fewer = figures.groups(POINTS[POINTS["id"] != "?"].iloc[:4], ASKED)
    assert list(fewer) == ["discrete CoT, one layer"] and len(fewer["discrete CoT, one layer"]) == 1


def test_figures_hold_what_they_say():
    figure = figures.accuracy(CHOSEN)
    stated = {paper_value(f"dirichlet-cot2-g{g}") for g in (10, 20, 40)}
    assert stated <= heights(figure.axes[2]) and {30.0, 50.0} <= heights(figure.axes[2])
    entropies = policies.entropies(figures.entropy_groups(CHOSEN, HELD))
    assert [axis.get_xlabel() for axis in entropies.axes] == [
        "token (discrete CoT, one layer)", "token (discrete CoT, two layers)"
    ]  # fmt: skip
    assert paper_value("dirichlet-discrete-2l-entropy4") in heights(entropies.axes[1])
    curves = figures.gamma_curves(figures.scales(THOUGHT, [1.0, 20.0], 500))
    assert [axis.get_ylabel() for axis in curves.axes] == ["entropy of a thought (nat)", "distance from its mean"]


def test_tables_and_sentences_give_the_means():
    table = figures.accuracy_table(CHOSEN).set_index(["start", "scale"])
    row = table.loc[("CoT2, one layer", figures.name(20.0))]
    assert row["base, before"].startswith("30.5") and row["base, after"].startswith("40.5")
    entropies = policies.entropy_table(figures.entropy_groups(CHOSEN, HELD), ("scale", "start")).set_index("start")
    assert entropies.loc["discrete CoT, two layers", "token 1 (paper)"] == "0.90 to 0.20 (0.49 to 0.40)"
    said = figures.findings(CHOSEN)[1].replace("\xa0", " ")
    assert said.startswith("**discrete CoT, two layers** (base decoding starts at 30.5 %)")
    assert "10.0 [10.0, 10.0]" in said


def test_scales_agree_with_their_formulas():
    table = figures.scales(THOUGHT, [1.0, 20.0], 20_000)
    for name in ("entropy", "distance"):
        assert np.allclose(table[name], table[f"{name}, formula"], rtol=0.05)
    assert table["entropy"].is_monotonic_increasing and table["distance"].is_monotonic_decreasing


def test_variants_differ_in_what_their_names_say():
    named, gamma = sweeps.dirichlet_variants("quick", (42,)), sweeps.GAMMA
    thoughts = {name: found[0].thought for name, found in named.items()}
    assert thoughts[f"{gamma} = 1, masked"] == Dirichlet(1.0, masked=True)
    assert thoughts[f"{gamma} = 20, whole vocabulary"] == Dirichlet(20.0, 0.0, most=None)
    rates = {name: found[0].recipe.lr for name, found in named.items()}
    assert rates[f"{gamma} = 20, half the rate"] == rates[f"{gamma} = 20, as usual"] / 2
    assert rates[f"{gamma} = 20, no learning"] == 0 and rates[f"{gamma} = 20, the rate of MTS"] == POLICIES["quick"].lr
    assert rates[f"CoT2, {gamma} = 20, ten times the rate"] == 10 * rates[f"CoT2, {gamma} = 20"]
    assert all(found[0].method == "CoT2 + GRPO" for name, found in named.items() if name.startswith("CoT2"))
    later = sweeps.later("quick", (42,))
    assert later["MTS, K = 3"][0].thought == MTS(3) and not later["MTS, K = 3, centred"][0].scaled
    assert later["mask per rollout"][0].mask and later["mask per rollout"][0].thought == Base()
    same_rate = {name: f[0].recipe.lr for name, f in later.items() if not name.startswith("CoT2")}
    assert set(same_rate.values()) == {POLICIES["quick"].lr}


def test_treatments_give_lengths_of_gradients():
    table = pd.concat([POINTS.iloc[:4].assign(variant="a"), POINTS.iloc[4:8].assign(variant="b", gradient_norm=7.0)])
    shown = figures.treatments(table).set_index("variant")
    assert shown.loc["b", "gradient"].startswith("7.0") and shown.loc["a", "gradient"].startswith("1.0")
    assert shown.loc["b", "base, before"].startswith("30.5")


def test_checks_can_fail():
    runs_of = sweeps.dirichlet_variants("quick", SEEDS)
    variants = pd.concat(
        [
            points_of(specs, gain=0.0 if "no learning" in name else 10.0).assign(variant=name)
            for name, specs in runs_of.items()
        ]
    )
    even = lambda title, g: -5.0 + g if title.startswith("CoT2") else 10.0
    table = pd.concat([points_of(s, gain=even(t, g)) for t, by in ASKED.items() for g, s in by.items()])
    whole = variants["variant"].str.contains("whole") * (variants["step"] > 0)
    ones = variants["variant"].str.contains(" 1,")
    longer = variants.assign(gradient_norm=1.0 + 2 * whole + whole * ones, base=variants["base"] - whole)
    claim = "dirichlet-discrete-2l"
    near = made().assign(**{f"entropy_{t}": paper_value(f"{claim}-entropy{t}-sft") for t in policies.STEPS})
    apart, close = policies.Group("one", made(), "dirichlet-discrete-1l"), policies.Group("two", near, claim)
    good = figures.checks(figures.groups(table, ASKED), longer, [apart, close])
    worse = pd.concat([points_of(s, gain=-even(t, g) * g / 10) for t, by in ASKED.items() for g, s in by.items()])
    masked = variants["variant"].str.contains("masked") * (variants["step"] > 0)
    moved = variants.assign(own=variants["own"] + variants["step"], base=variants["base"] + 9 * masked)
    bad = figures.checks(figures.groups(worse, ASKED), moved, [close, apart])
    assert all(good.values()), good
    assert good.keys() == bad.keys() and not any(bad.values()), bad


def test_untreated_runs_are_those_of_the_whole_vocabulary(monkeypatch):
    seen = []
    monkeypatch.setattr(samples.runs, "recorded", lambda specs: seen.extend(specs) or pd.DataFrame())
    assert samples.untreated(1.0)("quick", (42,)).empty and seen[0].thought == Dirichlet(1.0, 0.0, most=None)
