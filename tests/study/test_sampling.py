import numpy as np
import pytest
import torch
from builders import small_specs

from cot2lib import passk, runs
from cot2lib.decode import decode, rules
from cot2lib.errors import RecordError
from cot2lib.passk import answer_chances, answer_counts, measure
from cot2lib.runs import records
from cot2lib.study import measured, sampling, sweeps
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


def test_answer_counts_have_the_exact_chances(discrete):
    specs = small_specs("discrete")
    counts = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 300)[1][:6, 0] / 300
    exact = exact_chances(discrete, specs, 1, 1.0)
    assert ((counts - exact).abs() < 4 * (exact * (1 - exact) / 300).sqrt() + 2e-3).all()
    assert 0.02 < exact.mean() < 0.98


def test_answer_counts_put_the_right_answer_first_and_lose_none(discrete):
    specs = small_specs("discrete")
    data = stack_data(specs, "cpu")
    greedy = answer_counts(discrete, data, specs, Discrete(), 3)
    made = decode(discrete, data.prompts[data.held_out.index], rules(Discrete(), 3)).answers
    right = (made == data.answers[data.held_out.index]) & data.held_out.real
    for place, counts in enumerate(greedy):
        assert (counts.sum(1) == 3).all() and len(counts) == int(data.held_out.real[place].sum())
        assert torch.equal(counts[:, 0], 3 * right[place][data.held_out.real[place]].long())


def test_answer_counts_in_company_as_alone(discrete):
    specs = small_specs("discrete")
    together = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0), 4)[1]
    alone = answer_counts(discrete.select([1]), stack_data(specs[1:], "cpu"), specs[1:], Discrete(1.0), 4)[0]
    assert torch.equal(together[:, 0], alone[:, 0])


def test_answer_chances_of_the_answer_alone(continuous):
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


def test_measure_of_discrete_samples(discrete, monkeypatch):
    """One token kept is greedy; two are neither greedy nor free, and give at most eight answers at three steps."""
    monkeypatch.setattr(passk, "TEMPERATURES", (0.0, 1.0))
    specs = small_specs("discrete")
    table = measure(discrete, specs, samples=20, kept=(None, 1, 2))
    assert set(table["id"]) == {s.id for s in specs} and len(table) == 2 * (1 + 3) * 14
    once = table[table["k"] == 1].set_index(["id", "temperature", "top_k"])
    for top_k in (None, 2):
        counts = answer_counts(discrete, stack_data(specs, "cpu"), specs, Discrete(1.0, top_k), 20)
        for run, mine in zip(specs, counts):
            row = once.loc[run.id, 1.0, top_k or 0]
            assert row["pass_at_k"] == pytest.approx(100 * float((mine[:, 0] / 20).mean()))
            assert row["maj_at_k"] == pytest.approx(row["pass_at_k"]), "one vote is a sample"
            assert top_k is None or ((mine > 0).sum(1) <= 2**3).all()
    for run in specs:
        greedy, free, one, two = (once.loc[(run.id, *case), "pass_at_k"] for case in ((0, 0), (1, 0), (1, 1), (1, 2)))
        assert one == pytest.approx(greedy) and abs(two - greedy) > 0.5 and abs(two - free) > 0.5
    level = table[table["temperature"] == 0].groupby("id")["pass_at_k"]
    assert (level.max() - level.min() < 1e-9).all()


def test_measure_of_one_trace_is_exact(continuous):
    specs = small_specs("cot2")
    ours = measure(continuous, specs)
    chances = answer_chances(continuous, stack_data(specs, "cpu"), specs, 0.8)[0]
    row = ours[(ours["id"] == specs[0].id) & (ours["temperature"] == 0.8) & (ours["k"] == 5)]
    assert row["pass_at_k"].item() == pytest.approx(100 * float((1 - (1 - chances) ** 5).mean()))


def test_collect_measures_and_ships(store, nothing_shipped, monkeypatch):
    monkeypatch.setattr(passk, "TEMPERATURES", (0.0, 1.0))
    specs = [*small_specs("discrete"), *small_specs("cot2")]
    monkeypatch.setattr(sampling, "models", lambda profile: specs)
    monkeypatch.setattr(passk, "measure", lambda stack, runs: measure(stack, runs, 14))
    with pytest.raises(RecordError, match="no trained weights of run"):
        measured.measure("sampling")
    runs.run(specs)
    path = measured.measure("sampling")
    assert path.name == "sampling.quick.passk.csv" and "sampling.quick.passk.csv" in records.listed(nothing_shipped)
    table = measured.read("sampling")
    assert set(table["id"]) == {s.id for s in specs} and {"device", "torch", "commit", "date"} <= set(table.columns)


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
    table = measured.read("sampling")
    again = measure(runs.load_stack(specs, missing="error"), specs)
    key = ["id", "temperature", "top_k", "k"]
    both = again.merge(table, on=key, suffixes=("", "_shipped"))
    assert len(both) == len(again) == models * rows * 14
    for name in ("pass_at_k",) if method == "CoT2" else ("pass_at_k", "maj_at_k"):
        assert (both[name] - both[f"{name}_shipped"]).abs().max() < most


def test_read_names_a_command_for_models_that_it_measures(nothing_shipped):
    commands = "make it with `cot2 run sampling --profile quick` and `cot2 measure.*`, or "
    for seed, remedy in ((42, f"{commands}ask"), (99, "ask")):
        specs = sweeps.small("quick", [seed])
        with pytest.raises(RecordError, match=rf"under quick; {remedy} with retrain=True"):
            sampling.read("quick", {"CoT2": (build_stack(specs), specs)})


# What the chapter reads and measures


def test_accuracies_of_other_thoughts(continuous):
    specs = small_specs("cot2")
    table = sampling.accuracies([(continuous, specs)], [Base(), Base(5.0), Base(), Base(top=2)])
    greedy = [float(chances.mean()) for chances in answer_chances(continuous, stack_data(specs, "cpu"), specs, 0.0)]
    plain = sampling.varied(table)
    assert plain["accuracy"].tolist() == pytest.approx([100 * share for share in greedy]) and len(table) == 6
    assert not np.allclose(table["accuracy"][:2], table["accuracy"][2:4])
