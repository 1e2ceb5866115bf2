import re

import numpy as np
import pandas as pd
import pytest
import torch
from builders import small_specs

from cot2lib import runs
from cot2lib.decode import decode, rules
from cot2lib.errors import RecordError, SpecError
from cot2lib.runs import manifest, records
from cot2lib.study import passk, sweeps
from cot2lib.study.book import all_runs
from cot2lib.study.book.collect import collect
from cot2lib.study.passk import answer_chances, answer_counts, measure
from cot2lib.study.sampling import draw as sampling
from cot2lib.study.sampling import measure as sampling_measure
from cot2lib.thoughts import Base, Discrete
from cot2lib.training.data import stack_data
from cot2lib.training.supervised import build_stack


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
    specs = small_specs("discrete")
    counts = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 1000)[1][:6, 0] / 1000
    exact = exact_chances(discrete, specs, 1, 1.0)
    assert ((counts - exact).abs() < 4 * (exact * (1 - exact) / 1000).sqrt() + 2e-3).all()
    assert 0.02 < exact.mean() < 0.98


def test_counts_put_the_right_answer_first_and_lose_none(discrete):
    specs = small_specs("discrete")
    data = stack_data(specs, "cpu")
    greedy = answer_counts(discrete, data, specs, Discrete(), 3)
    made = decode(discrete, data.prompts[data.held_out.index], rules(Discrete(), 3)).answers
    right = (made == data.answers[data.held_out.index]) & data.held_out.real
    for place, counts in enumerate(greedy):
        assert (counts.sum(1) == 3).all() and len(counts) == int(data.held_out.real[place].sum())
        assert torch.equal(counts[:, 0], 3 * right[place][data.held_out.real[place]].long())


def test_a_models_samples_do_not_depend_on_the_company(discrete):
    specs = small_specs("discrete")
    together = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 4)[1]
    alone = answer_counts(discrete.select([1]), stack_data(specs[1:], "cpu"), specs[1:], Discrete(1.0), 4)[0]
    assert torch.equal(together[:, 0], alone[:, 0])


def test_chances_of_the_answer_alone(continuous):
    specs = small_specs("cot2")
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
    specs = small_specs("discrete")
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
        measure(stack, small_specs(method), samples=13)
    with pytest.raises(SpecError, match="k=6 of 5 samples"):
        passk._at_every_k(torch.tensor([[2, 3]]), 1.0, None, 14)


def test_measure_agrees_with_its_definitions(discrete, continuous):
    specs = small_specs("discrete")
    table = measure(discrete, specs, samples=20)
    assert set(table["id"]) == {s.id for s in specs} and len(table) == 2 * 7 * 14
    first = table[(table["k"] == 1) & (table["temperature"] == 1.0) & (table["top_k"] == 0)].set_index("id")
    counts = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 20)
    for run, mine in zip(specs, counts):
        assert first.loc[run.id, "pass_at_k"] == pytest.approx(100 * float((mine[:, 0] / 20).mean()))
        assert first.loc[run.id, "maj_at_k"] == pytest.approx(first.loc[run.id, "pass_at_k"]), "one vote is a sample"
    level = table[table["temperature"] == 0].groupby("id")["pass_at_k"]
    assert (level.max() - level.min() < 1e-9).all()
    specs = small_specs("cot2")
    ours = measure(continuous, specs)
    chances = answer_chances(continuous, stack_data(specs, "cpu"), specs, 0.8)[0]
    row = ours[(ours["id"] == specs[0].id) & (ours["temperature"] == 0.8) & (ours["k"] == 5)]
    assert row["pass_at_k"].item() == pytest.approx(100 * float((1 - (1 - chances) ** 5).mean()))


def test_collect_measures_and_ships(store, nothing_shipped, monkeypatch):
    specs = [*small_specs("discrete"), *small_specs("cot2")]
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


# What the chapter reads, refuses and measures


@pytest.mark.parametrize("rise, tries, ratio", [(30.0, 2, 1.5), (0.0, 3, 2.5)])
def test_the_crossing_is_priced(rise, tries, ratio):
    """Where discrete samples pass one trace, or at the most samples if they never do: no golden file has it."""
    spent = pd.DataFrame(
        {"method": ["CoT2", *["discrete CoT"] * 3], "tries": [1, 1, 2, 3], "positions": [9, 9, 12, 18],
         "ratio": [1.0, 1.0, 1.5, 2.5]}
    )  # fmt: skip
    one = pd.DataFrame({"temperature": [0.0] * 3 + [1.0] * 3, "tries": [1, 2, 3] * 2})
    one["mean"] = np.where(one["temperature"] > 0, rise * (one["tries"] - 1) - 20.0, -5.0)
    (found,) = sampling.crossing_costs(one, spent).to_dict("records")
    assert (found["tries"], found["ratio"]) == (tries, ratio) and found["dearer"] == spent["positions"][tries] / 9


@pytest.mark.parametrize(
    "given, says",
    [((10, [1], 1.0), "top_k=10"), ((0, [], 1.0), "ks="), ((0, [20], 1.0), "ks="), ((0, [1], 0.5), "temperature 0.5")],
)
def test_unmeasured_parameters_are_named(given, says):
    sampling_measure.checked(50, [1, 14], 0.4)
    with pytest.raises(SpecError, match=re.escape(says)):
        sampling_measure.checked(*given)


def test_a_recipe_without_all_seeds_is_named():
    assert "**Not drawn, authors' recipe**" in sampling_measure.lacking(pd.DataFrame({"profile": ["quick"]})).text
    assert sampling_measure.lacking(pd.DataFrame({"profile": ["quick", "paper"]})) is None


def test_decoding_accuracies_and_costs(continuous, discrete):
    specs = small_specs("cot2")
    table = sampling_measure.accuracies([(continuous, specs)], [Base(), Base(5.0), Base(), Base(top=2)])
    greedy = [float(chances.mean()) for chances in answer_chances(continuous, stack_data(specs, "cpu"), specs, 0.0)]
    with pytest.raises(SpecError, match="no thought rules"):
        sampling_measure.accuracies([(continuous, specs)], [])
    plain = sampling_measure.varied(table)
    assert plain["accuracy"].tolist() == pytest.approx([100 * share for share in greedy]) and len(table) == 6
    assert not np.allclose(table["accuracy"][:2], table["accuracy"][2:4])
    stacks = {"CoT2": (continuous, specs), "discrete CoT": (discrete, small_specs("discrete"))}
    cost = sampling_measure.rollout_costs(stacks, (1, 3))
    assert cost.set_index(["method", "tries"])["positions"].to_dict() == {
        ("CoT2", 1): 7, ("discrete CoT", 1): 7, ("discrete CoT", 3): 11,
    }  # fmt: skip


def test_one_trace_thinks_by_the_runs_rule_and_rollouts_sample(discrete, continuous, monkeypatch):
    seen = []
    monkeypatch.setattr(
        sampling_measure, "in_turns", lambda turns, rounds: {name: [turn() or 1.0] for name, turn in turns.items()}
    )
    monkeypatch.setattr(sampling_measure, "decode", lambda *given, samples: seen.append((given[2][0], samples)))
    stacks = {"CoT2": (continuous, small_specs("cot2")), "discrete CoT": (discrete, small_specs("discrete"))}
    sampling_measure.rollout_costs(stacks, (1, 3))
    assert seen == [(Base(), 1), (Discrete(), 1), (Discrete(1.0), 3)]
