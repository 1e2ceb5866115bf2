import numpy as np
import pandas as pd
import pytest
import torch

from cot2lib import measured, records, runs, sampling, sweeps
from cot2lib.collect import collect
from cot2lib.data import stack_data
from cot2lib.decode import decode, rules
from cot2lib.errors import RecordError, SpecError
from cot2lib.figures import decoding
from cot2lib.figures import sampling as figures
from cot2lib.profiles import spec
from cot2lib.sampling import answer_chances, answer_counts, measure
from cot2lib.supervised import StackTrainer
from cot2lib.tasks import MNNS
from cot2lib.thoughts import Discrete

TASK = MNNS(1, 5, 3)
RECIPE = dict(steps=150, evaluate_every=150, warmup=10)


def specs_of(method, seeds=(42, 43)):
    return [spec(method, task=TASK, d_model=16, layers=1, heads=1, seed=seed, **RECIPE) for seed in seeds]


def trained(specs):
    trainer = StackTrainer(specs)
    trainer.train()
    return trainer.stack


@pytest.fixture(scope="module")
def discrete():
    return trained(specs_of("discrete"))


@pytest.fixture(scope="module")
def continuous():
    return trained(specs_of("cot2"))


@torch.no_grad()
def exact_chances(stack, specs, place, temperature):
    """Probability that sampled discrete CoT answers right, by summing over every chain of tokens."""
    data, alone = stack_data(specs, "cpu"), stack.select([place])
    index = data.held_out.index[place][data.held_out.real[place]][:6]
    chances = []
    for row in index:
        chains = {(): 1.0}
        prompt = alone.embed(data.prompts[row][None])
        for _ in range(2):
            longer = {}
            for chain, weight in chains.items():
                fed = torch.tensor([list(chain)], dtype=torch.int64)
                inputs = torch.cat([prompt, alone.embed(fed)], dim=2) if chain else prompt
                odds = (alone(inputs)[0, 0, -1] / temperature).softmax(-1)
                longer |= {(*chain, t): weight * float(odds[t]) for t in range(len(odds)) if weight * odds[t] > 1e-5}
            chains = longer
        total = 0.0
        for chain, weight in chains.items():
            inputs = torch.cat([prompt, alone.embed(torch.tensor([list(chain)]))], dim=2)
            total += weight * float((alone(inputs)[0, 0, -1] / temperature).softmax(-1)[data.answers[row]])
        chances.append(total)
    return torch.tensor(chances)


def test_sampled_frequencies_are_the_exact_chances(discrete):
    specs = specs_of("discrete")
    counts = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 2000)[1][:6, 0] / 2000
    exact = exact_chances(discrete, specs, 1, 1.0)
    assert ((counts - exact).abs() < 4 * (exact * (1 - exact) / 2000).sqrt() + 2e-3).all()
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
        monkeypatch.setattr(sampling, "TOP_K", top_k)
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
        sampling._at_every_k(torch.tensor([[2, 3]]), 1.0, None)


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
    monkeypatch.setitem(sweeps.SWEEPS, "sampling", lambda profile: specs)
    monkeypatch.setattr(sampling, "measure", lambda stack, runs: measure(stack, runs, 20))
    with pytest.raises(RecordError, match="no record of run"):
        collect("sampling", "quick")
    runs.run(specs)
    (path,) = collect("sampling", "quick")
    assert path.name == "sampling.quick.passk.csv" and "sampling.quick.passk.csv" in records.manifest(nothing_shipped)
    for options in ({"sources": [path.parent]}, {"replace": True}):
        with pytest.raises(SpecError, match="sampling measures trained models: collect"):
            collect("sampling", "quick", **options)
    table = measured.passed("quick")
    assert set(table["id"]) == {s.id for s in specs} and {"device", "torch", "commit", "date"} <= set(table.columns)
    path.write_bytes(path.read_bytes()[:-30])
    records._shipped_table.cache_clear()
    with pytest.raises(RecordError, match=r"passk\.csv is truncated or changed"):
        measured.passed("quick")


@pytest.mark.parametrize(
    "method, models, temperatures, rows, most",
    [
        ("CoT2", 5, sampling.TEMPERATURES, 4, 0.1),
        ("discrete CoT", 5, (0.0,), 1, 0.1),
        ("discrete CoT", 1, (0.4,), 2, 0.5),  # both with and without top-k
    ],
)
def test_shipped_table_is_what_the_shipped_weights_give(method, models, temperatures, rows, most, monkeypatch):
    """A mismatch means that weights, decoding or the table have drifted; draws may differ where rounding ties."""
    monkeypatch.setattr(sampling, "TEMPERATURES", temperatures)
    specs = [s for s in sweeps.small("quick") if s.method == method][:models]
    table = measured.passed("quick")
    again = measure(runs.load_stack(specs, missing="error"), specs)
    key = ["id", "temperature", "top_k", "k"]
    both = again.merge(table, on=key, suffixes=("", "_shipped"))
    assert len(both) == len(again) == models * rows * 14
    for name in ("pass_at_k",) if method == "CoT2" else ("pass_at_k", "maj_at_k"):
        assert (both[name] - both[f"{name}_shipped"]).abs().max() < most


# What the chapter says of the table

METHOD = {"a": "CoT2", "b": "discrete CoT"}


def by_hand(discrete_values):
    rows = [("a", 0.0, 0, k, 60.0) for k in (1, 2, 3)] + [("b", 0.0, 0, k, 50.0) for k in (1, 2, 3)]
    rows += [("a", 1.0, 0, k, 58.0 + k) for k in (1, 2, 3)]
    rows += [("b", 1.0, top, k, v) for top in (0, 50) for k, v in zip((1, 2, 3), discrete_values)]
    return pd.DataFrame(rows, columns=["id", "temperature", "top_k", "k", "pass_at_k"]).assign(maj_at_k=50.0)


@pytest.mark.parametrize(
    "values, above_one, alike",
    [((40, 50, 55), "never", "never"), ((40, 60.5, 60.9), "2", "never"), ((40, 61, 61.5), "2", "2"),
     ((61, 59, 62), "3", "3")],
)  # fmt: skip
def test_overtaking(values, above_one, alike):
    table = figures.overtaking(by_hand(values), METHOD, 0).set_index("T").loc["1"]
    assert table["one greedy CoT2 trace (%)"] == 60
    assert table["discrete above it from k ="] == above_one
    assert table["discrete above CoT2 sampled alike from k ="] == alike


def test_findings_name_the_crossing():
    found = figures.findings(by_hand((40, 61, 61.5)), METHOD, 0)
    assert "passes it from k = 2 on" in found[1] and "does not pass it up to k = 3" in found[0]


def test_decoding_accuracies_and_costs(continuous, discrete):
    from cot2lib.thoughts import Base

    specs = specs_of("cot2")
    table = decoding.decoding_accuracies(continuous, specs, [Base(), Base(temperature=5.0)])
    greedy = [float(chances.mean()) for chances in answer_chances(continuous, stack_data(specs, "cpu"), specs, 0.0)]
    plain = table[[thought == Base() for thought in table["thought"]]]
    assert plain["accuracy"].tolist() == pytest.approx(greedy)
    assert not np.allclose(table["accuracy"][:2], table["accuracy"][2:])
    stacks = {"CoT2": (continuous, specs), "discrete CoT": (discrete, specs_of("discrete"))}
    cost = figures.costs(stacks, (1, 3), prompts=4)
    assert cost.set_index(["method", "k"])["positions"].to_dict() == {
        ("CoT2", 1): 7, ("discrete CoT", 1): 7, ("discrete CoT", 3): 11,
    }  # fmt: skip
