import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.errors import RecordError, SpecError
from cot2lib.runs import manifest, records
from cot2lib.specs.profiles import spec
from cot2lib.study import passk, sweeps
from cot2lib.study.book import all_runs
from cot2lib.study.book.collect import collect
from cot2lib.study.frame import tidy
from cot2lib.study.passk import answer_chances, answer_counts, measure
from cot2lib.study.sampling import draw as sampling
from cot2lib.study.sampling import measure as sampling_measure
from cot2lib.tasks import MNNS
from cot2lib.thoughts import MTS, Base, Discrete
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import SupervisedTrainer, build_stack

TASK = MNNS(1, 5, 3)
RECIPE = dict(steps=150, evaluate_every=150, warmup=10)


def specs_of(method, seeds=(42, 43)):
    return [spec(method, task=TASK, d_model=16, layers=1, heads=1, seed=seed, **RECIPE) for seed in seeds]


def trained(specs):
    trainer = SupervisedTrainer(specs)
    trainer.train()
    return trainer.stack


@pytest.fixture(scope="module")
def discrete():
    return trained(specs_of("discrete"))


@pytest.fixture(scope="module")
def continuous():
    return trained(specs_of("cot2"))


def _odds(alone, prompt, chains, temperature):
    """Distribution of the token after a prompt and each of some chains."""
    ids = torch.cat([prompt.expand(len(chains), -1), chains], 1)
    return (alone(alone.embed(ids))[0, :, -1] / temperature).softmax(-1)


@torch.no_grad()
def exact_chances(stack, specs, place, temperature):
    """Probability that sampled discrete CoT answers right, by summing over every chain of tokens."""
    data, alone = stack_data(specs, "cpu"), stack.select([place])
    index = data.held_out.index[place][data.held_out.real[place]][:6]
    chances = []
    for row in index:
        chains, weights = torch.zeros(1, 0, dtype=torch.int64), torch.ones(1)  # (chain, token), (chain,)
        for _ in range(2):
            joint = weights[:, None] * _odds(alone, data.prompts[row], chains, temperature)  # (chain, vocab)
            which, token = (joint > 1e-5).nonzero().unbind(1)
            chains, weights = torch.cat([chains[which], token[:, None]], 1), joint[which, token]
        answered = _odds(alone, data.prompts[row], chains, temperature)[:, data.answers[row]]
        chances.append(float(weights @ answered))
    return torch.tensor(chances)


def test_sampled_frequencies_are_the_exact_chances(discrete):
    specs = specs_of("discrete")
    counts = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 1000)[1][:6, 0] / 1000
    exact = exact_chances(discrete, specs, 1, 1.0)
    assert ((counts - exact).abs() < 4 * (exact * (1 - exact) / 1000).sqrt() + 2e-3).all()
    assert 0.02 < exact.mean() < 0.98


def test_counts_put_the_right_answer_first_and_lose_none(discrete):
    specs = specs_of("discrete")
    data = stack_data(specs, "cpu")
    greedy = answer_counts(discrete, data, specs, Discrete(), 3)
    made = decode(discrete, data.prompts[data.held_out.index], rules(Discrete(), 3)).answers
    right = (made == data.answers[data.held_out.index]) & data.held_out.real
    for place, counts in enumerate(greedy):
        assert (counts.sum(1) == 3).all() and len(counts) == int(data.held_out.real[place].sum())
        assert torch.equal(counts[:, 0], 3 * right[place][data.held_out.real[place]].long())


def test_a_models_samples_do_not_depend_on_the_company(discrete):
    specs = specs_of("discrete")
    together = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 4)[1]
    alone = answer_counts(discrete.select([1]), stack_data(specs[1:], "cpu"), specs[1:], Discrete(1.0), 4)[0]
    assert torch.equal(together[:, 0], alone[:, 0])


def test_chances_of_the_answer_alone(continuous):
    specs = specs_of("cot2")
    data = stack_data(specs, "cpu")
    with torch.no_grad():
        logits = decode(continuous, data.prompts[data.held_out.index], rules(specs[0].thought, 3)).logits[:, :, -1]
    for temperature in (0.4, 1.0):
        expected = (logits / temperature).softmax(-1).gather(-1, data.answers[data.held_out.index][..., None])[..., 0]
        for place, chances in enumerate(answer_chances(continuous, data, specs, temperature)):
            assert torch.allclose(chances.float(), expected[place][data.held_out.real[place]], atol=1e-5)
    greedy = answer_chances(continuous, data, specs, 0.0)[0]
    assert set(greedy.tolist()) <= {0.0, 1.0} and 0 < greedy.mean() < 1


def test_the_likeliest_tokens_alone_are_sampled(discrete, monkeypatch):
    """Keeping one token is greedy; keeping two is neither greedy nor free, and gives at most eight answers."""
    specs = specs_of("discrete")
    by_k = {}
    for top_k in (1, 2):
        monkeypatch.setattr(passk, "TOP_K", top_k)
        table = measure(discrete, specs, samples=20)
        assert set(table["top_k"]) == {0, top_k}
        rows = table[(table["temperature"] == 1.0) & (table["top_k"] == top_k) & (table["k"] == 1)]
        by_k[top_k] = rows.set_index("id")["pass_at_k"]
    flat = table[(table["k"] == 1) & (table["top_k"] == 0)]
    greedy, free = (flat[flat["temperature"] == t].set_index("id")["pass_at_k"] for t in (0.0, 1.0))
    assert np.allclose(by_k[1], greedy[by_k[1].index])
    counts = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0, 2), 20)
    for run, mine in zip(specs, counts):
        assert by_k[2][run.id] == pytest.approx(5 * float(mine[:, 0].double().mean()))
        assert ((mine > 0).sum(1) <= 2**3).all(), "two tokens at each of three steps"
        assert abs(by_k[2][run.id] - greedy[run.id]) > 0.5 and abs(by_k[2][run.id] - free[run.id]) > 0.5


@pytest.mark.parametrize("method", ["discrete", "cot2"])
def test_fewer_samples_than_the_largest_k_are_named(method, discrete, continuous):
    stack = {"discrete": discrete, "cot2": continuous}[method]
    with pytest.raises(SpecError, match="samples=13: Pass@k up to k = 14 needs at least 14 samples"):
        measure(stack, specs_of(method), samples=13)
    with pytest.raises(SpecError, match="k=6 of 5 samples"):
        passk._at_every_k(torch.tensor([[2, 3]]), 1.0, None, 14)


def test_measure_agrees_with_its_definitions(discrete, continuous):
    table = measure(discrete, specs_of("discrete"), samples=20)
    assert set(table["id"]) == {s.id for s in specs_of("discrete")} and len(table) == 2 * 7 * 14
    first = table[(table["k"] == 1) & (table["temperature"] == 1.0) & (table["top_k"] == 0)].set_index("id")
    counts = answer_counts(discrete, stack_data(specs_of("discrete"), "cpu"), specs_of("discrete"), Discrete(1.0), 20)
    for run, mine in zip(specs_of("discrete"), counts):
        assert first.loc[run.id, "pass_at_k"] == pytest.approx(100 * float((mine[:, 0] / 20).mean()))
        assert first.loc[run.id, "maj_at_k"] == pytest.approx(first.loc[run.id, "pass_at_k"]), "one vote is a sample"
    level = table[table["temperature"] == 0].groupby("id")["pass_at_k"]
    assert (level.max() - level.min() < 1e-9).all()
    ours = measure(continuous, specs_of("cot2"))
    chances = answer_chances(continuous, stack_data(specs_of("cot2"), "cpu"), specs_of("cot2"), 0.8)[0]
    row = ours[(ours["id"] == specs_of("cot2")[0].id) & (ours["temperature"] == 0.8) & (ours["k"] == 5)]
    assert row["pass_at_k"].item() == pytest.approx(100 * float((1 - (1 - chances) ** 5).mean()))


def test_collect_measures_and_ships(store, nothing_shipped, monkeypatch):
    specs = [*specs_of("discrete"), *specs_of("cot2")]
    monkeypatch.setitem(all_runs.SWEEPS, "sampling", lambda profile: specs)
    monkeypatch.setattr(passk, "measure", lambda stack, runs: measure(stack, runs, 20))
    with pytest.raises(RecordError, match="no trained weights of run"):
        collect("sampling", "quick")
    runs.run(specs)
    (path,) = collect("sampling", "quick")
    assert path.name == "sampling.quick.passk.csv" and "sampling.quick.passk.csv" in manifest.listed(nothing_shipped)
    for options in ({"sources": [path.parent]}, {"replace": True}):
        with pytest.raises(SpecError, match="sampling is measured anew"):
            collect("sampling", "quick", **options)
    table = sampling_measure.shipped("quick")
    assert set(table["id"]) == {s.id for s in specs} and {"device", "torch", "commit", "date"} <= set(table.columns)
    path.write_bytes(path.read_bytes()[:-30])
    records._shipped_table.cache_clear()
    with pytest.raises(RecordError, match=r"passk\.csv is truncated or changed"):
        sampling_measure.shipped("quick")


@pytest.mark.parametrize(
    "method, models, temperatures, rows, most",
    [
        ("CoT2", 2, passk.TEMPERATURES, 4, 0.1),
        pytest.param("discrete CoT", 5, (0.0,), 1, 0.1, marks=pytest.mark.thorough),
        pytest.param("discrete CoT", 1, (0.4,), 2, 0.5, marks=pytest.mark.thorough),  # both with and without top-k
    ],
)
def test_shipped_table_is_what_the_shipped_weights_give(method, models, temperatures, rows, most, monkeypatch):
    """A mismatch means that weights, decoding or the table have drifted; draws may differ where rounding ties."""
    monkeypatch.setattr(passk, "TEMPERATURES", temperatures)
    specs = [s for s in sweeps.small("quick") if s.method == method][:models]
    table = sampling_measure.shipped("quick")
    again = measure(runs.load_stack(specs, missing="error"), specs)
    key = ["id", "temperature", "top_k", "k"]
    both = again.merge(table, on=key, suffixes=("", "_shipped"))
    assert len(both) == len(again) == models * rows * 14
    for name in ("pass_at_k",) if method == "CoT2" else ("pass_at_k", "maj_at_k"):
        assert (both[name] - both[f"{name}_shipped"]).abs().max() < most


def test_a_command_is_named_only_for_models_that_it_measures(nothing_shipped):
    for seed, command in (
        (42, "make it with `cot2 run sampling --profile quick` and `cot2 collect.*`, or "),
        (99, ""),
    ):
        specs = sweeps.small("quick", [seed])
        stacks = {"CoT2": (build_stack(specs), specs)}
        with pytest.raises(RecordError, match=rf"under quick; {command}ask with retrain=True"):
            sampling_measure.read("quick", stacks)


# Tables and sentences of the chapter


def by_hand(discrete_values, seeds=(42,), profile="quick"):
    """CoT2: 60 % greedy, 59, 60, 61 sampled; discrete CoT: 50 % at T = 0, the given values at T = 1."""
    rows = [("CoT2", 0.0, 0, k, 60.0) for k in (1, 2, 3)] + [("discrete CoT", 0.0, 0, k, 50.0) for k in (1, 2, 3)]
    rows += [("CoT2", 1.0, 0, k, 58.0 + k) for k in (1, 2, 3)]
    rows += [("discrete CoT", 1.0, top, k, v) for top in (0, 50) for k, v in zip((1, 2, 3), discrete_values)]
    columns = ["method", "temperature", "top_k", "tries", "pass_at_k"]
    table = pd.DataFrame(rows, columns=columns)
    table["maj_at_k"] = np.where(table["method"] == "CoT2", np.nan, 50.0)
    parts = [table.assign(seed=seed) for seed in seeds]
    return tidy(pd.concat(parts, ignore_index=True).assign(profile=profile))


def drawn(*given, **options):
    return sampling_measure.sampled_from(by_hand(*given, **options), 0)


SPENT = pd.DataFrame(
    {"method": ["CoT2", *["discrete CoT"] * 3], "tries": [1, 1, 2, 3], "positions": [9, 9, 12, 18],
     "ratio": [1.0, 1.0, 1.5, 2.5]}
)  # fmt: skip


@pytest.mark.parametrize(
    "values, above_one, alike",
    [((40, 50, 55), "never", "never"), ((40, 60.5, 60.9), "2", "never"), ((40, 61, 61.5), "2", "2"),
     ((61, 59, 62), "3", "3")],
)  # fmt: skip
def test_overtaking(values, above_one, alike):
    rows = drawn(values)
    table = sampling.overtaking(rows, sampling.beside_one_trace(rows))
    found = table.set_index(["numbers", "discrete samples against"])["T = 1"]
    assert found["quick recipe", sampling.ONE_TRACE] == above_one
    assert found["quick recipe", sampling.AS_OFTEN] == alike and found["paper", "its level CoT2 line"] == "never"


def test_the_paper_overtakes_its_line_at_ten_samples():
    stated = pd.Series({k: sampling.stated(1.0, k) for k in range(1, passk.MOST + 1)})
    assert sampling.first(stated - 88.61) == "10", "88.98 at k = 10 beside 88.61"


def test_discrete_samples_are_compared_with_one_trace_seed_by_seed():
    rows = drawn((40, 61, 61.5), seeds=(42, 43, 44))
    rows.loc[(rows["seed"] == 44) & (rows["method"] == "discrete CoT") & (rows["tries"] == 3), "pass_at_k"] = 57.0
    found = sampling.beside_one_trace(rows).set_index(["temperature", "tries"])
    warm, cold = found.loc[(1.0, 3)], found.loc[(0.0, 3)]
    assert (warm["mean"], warm["ahead"], warm["n"], warm["below"]) == pytest.approx((0, 2, 3, 60))
    assert warm["told"].replace("\xa0", " ") == "0.0 [-6.5, 6.5] points above"
    assert cold["told"].replace("\xa0", " ") == "7.7 [-2.4, 17.7] points below" and cold["ahead"] == 0


def test_the_crossing_is_priced():
    costs = lambda values: sampling.crossing_costs(sampling.beside_one_trace(drawn(values)), SPENT).to_dict("records")
    (passes,), (never,) = costs((40, 61, 62)), costs((40, 50, 55))
    assert (passes["tries"], passes["dearer"], passes["ratio"]) == (2, pytest.approx(12 / 9), 1.5)
    assert (never["tries"], never["dearer"], never["ratio"]) == (3, 2.0, 2.5) and "5.0 points below" in never[
        "told"
    ].replace("\xa0", " ")


def test_the_table_tells_ways_to_sample_apart():
    table = sampling.pass_table(by_hand((40, 50, 55), seeds=(42, 43)), [1, 3])
    assert [*table][4:] == ["Pass@1", "Pass@3", "Maj@3"] and len(table) == 5
    kept = table.set_index(["method", "T", "sampled from"])
    assert kept.loc["discrete CoT", 1.0, "the 50 likeliest tokens"]["Pass@3"].startswith("55.0")
    assert pd.isna(kept.loc["CoT2", 1.0, "all tokens"]["Maj@3"])


@pytest.mark.parametrize(
    "given, says",
    [((10, [1], 1.0), "top_k=10"), ((0, [], 1.0), "ks="), ((0, [20], 1.0), "ks="), ((0, [1], 0.5), "temperature 0.5")],
)
def test_unmeasured_parameters_are_named(given, says):
    sampling_measure.checked(50, [1, 14], 0.4)
    with pytest.raises(SpecError, match=re.escape(says)):
        sampling_measure.checked(*given)


def test_figures_of_the_chapter_are_drawn():
    rows = pd.concat([drawn((40, 50, 55), seeds=(42, 43), profile=profile) for profile in ("paper", "quick")])
    shown = sampling.pass_at_k(rows, "a finding")
    assert len(shown.figure.axes) == 4 and len(shown.numbers) == len(rows) and shown.finding == "a finding"
    lines = [line.get_ydata() for line in shown.figure.axes[3].lines]
    assert any(np.allclose(line, [40, 50, 55]) for line in lines if len(line) == 3)
    costs = sampling.cost_curves(drawn((40, 50, 55), seeds=(42, 43)), SPENT, 1.0)
    assert set(costs.numbers["counted"]) == {"discrete CoT, Pass@k", "discrete CoT, Maj@k", "CoT2, one trace"}
    assert costs.numbers.query("counted == 'discrete CoT, Pass@k' and tries == 3")["positions"].tolist() == [18, 18]


def test_a_recipe_without_all_seeds_is_named():
    assert "**Not drawn, authors' recipe**" in sampling_measure.lacking(by_hand((40, 50, 55))).text
    both = pd.concat([by_hand((40, 50, 55), profile=profile) for profile in ("paper", "quick")])
    assert sampling_measure.lacking(both) is None


def test_decoding_accuracies_and_costs(continuous, discrete):
    specs = specs_of("cot2")
    table = sampling_measure.accuracies([(continuous, specs)], [Base(), Base(5.0), Base(), Base(top=2)])
    greedy = [float(chances.mean()) for chances in answer_chances(continuous, stack_data(specs, "cpu"), specs, 0.0)]
    with pytest.raises(SpecError, match="no thought rules"):
        sampling_measure.accuracies([(continuous, specs)], [])
    plain = sampling_measure.varied(table)
    assert plain["accuracy"].tolist() == pytest.approx([100 * share for share in greedy]) and len(table) == 6
    assert not np.allclose(table["accuracy"][:2], table["accuracy"][2:4])
    stacks = {"CoT2": (continuous, specs), "discrete CoT": (discrete, specs_of("discrete"))}
    cost = sampling_measure.rollout_costs(stacks, (1, 3))
    assert cost.set_index(["method", "tries"])["positions"].to_dict() == {
        ("CoT2", 1): 7, ("discrete CoT", 1): 7, ("discrete CoT", 3): 11,
    }  # fmt: skip


def fed(*shares):
    """Accuracies of one seed by the rule that feeds it."""
    of_run = {"layers": 1, "d_model": 24, "seed": 42}
    rows = [of_run | {"sampler": type(t).__name__, **asdict(t), "accuracy": share} for t, share in shares]
    return tidy(pd.DataFrame(rows))


def test_other_thoughts_are_compared_with_the_trained_ones():
    rows = fed((Base(), 0.9), (Base(temperature=2.0), 0.95), (Base(threshold=0.2), 0.4))
    gained = sampling.other_thoughts(rows).set_index(["temperature", "threshold"])["mean"]
    assert gained.to_dict() == pytest.approx({(1.0, 0.2): -50.0, (2.0, 0.0): 5.0})
    shown = sampling.sharpened(rows, sampling.other_thoughts(rows))
    assert "1 layer" in shown.finding and "temperature 2, threshold 0" in shown.finding
    assert np.allclose(shown.figure.axes[0].lines[0].get_ydata(), [90, 95])


def test_sampled_thoughts_are_compared_with_whole_distributions():
    rows = fed((Base(), 0.9), (MTS(1), 0.3), (MTS(16), 0.6))
    few = sampling.fewer_tokens(rows)
    assert few["mean"].tolist() == pytest.approx([-60, -30])
    shown = sampling.sampled_thoughts(rows, few)
    assert np.allclose(shown.figure.axes[0].lines[0].get_ydata(), [30, 60])


def test_one_trace_thinks_by_the_runs_rule_and_rollouts_sample(discrete, continuous, monkeypatch):
    seen = []
    monkeypatch.setattr(
        sampling_measure, "in_turns", lambda turns, rounds: {name: [turn() or 1.0] for name, turn in turns.items()}
    )
    monkeypatch.setattr(sampling_measure, "decode", lambda *given, samples: seen.append((given[2][0], samples)))
    stacks = {"CoT2": (continuous, specs_of("cot2")), "discrete CoT": (discrete, specs_of("discrete"))}
    sampling_measure.rollout_costs(stacks, (1, 3))
    assert seen == [(Base(), 1), (Discrete(), 1), (Discrete(1.0), 3)]
