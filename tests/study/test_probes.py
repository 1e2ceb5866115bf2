import pytest
import torch
from builders import small_specs

from cot2lib import runs
from cot2lib.study import probes, sweeps


@pytest.fixture(scope="module")
def own(continuous):
    return probes.probed(continuous, small_specs("cot2"), inputs=12)


def laws_after(alone, prompt, before, last):
    """Laws of one run after a prompt, earlier thoughts and each of some last thoughts, all given as weights."""
    thoughts = [alone.mix(w.expand(1, len(last), 1, -1)) for w in before] + [alone.mix(last[None, :, None])]
    fed = torch.cat([alone.embed(prompt.expand(len(last), -1)), *thoughts], 2)
    return alone(fed)[0, :, -1].softmax(-1)


def mean_of_tokens(alone, prompt, before, law):
    """The law after each token, averaged by their weights."""
    return law @ laws_after(alone, prompt, before, torch.eye(len(law)))


def apart(one, other):
    return float((one - other).abs().sum() / 2)


@torch.no_grad()
def test_linearity_by_its_definition(continuous, own):
    table = probes.linearity(own).set_index(["seed", "step"])
    for run, step in ((0, 1), (1, 2)):
        alone, distances, reference = continuous.select([run]), [], []
        for row in range(12):
            prompt, law = own.prompts[run, row], own.laws[run, row, step - 1]
            before = list(own.weights[run, row, : step - 1])
            cut = torch.where(law >= probes.CUT, law, 0.0)
            cut = cut / cut.sum()
            mixture = laws_after(alone, prompt, before, cut[None])[0]
            distances.append(apart(mixture, mean_of_tokens(alone, prompt, before, cut)))
            reference.append(apart(own.laws[run, row, step], own.laws[run, (row + 6) % 12, step]))
        found = table.loc[(42 + run, step)]
        assert found["linear"] == pytest.approx(sum(distances) / 12, abs=1e-5) and found["linear"] > 0.01
        assert found["reference"] == pytest.approx(sum(reference) / 12, abs=1e-5)
    assert table["markov_other"].isna().tolist() == [True, True, False, False], "no thought before the first"
    assert table["reference"].min() > 0 and table.max().max() <= 1


@torch.no_grad()
def test_markov_by_its_definition(continuous, own):
    table = probes.linearity(own).set_index(["seed", "step"])
    alone, swapped, meant = continuous.select([1]), [], []
    for row in range(12):
        prompt, thought = own.prompts[1, row], own.weights[1, row, 1]
        for found, first in ((swapped, own.weights[1, (row + 6) % 12, 0]), (meant, own.weights[1, :, 0].mean(0))):
            found.append(apart(own.laws[1, row, 2], laws_after(alone, prompt, [first], thought[None])[0]))
    assert table.loc[(43, 2), "markov_other"] == pytest.approx(sum(swapped) / 12, abs=1e-5)
    assert table.loc[(43, 2), "markov_mean"] == pytest.approx(sum(meant) / 12, abs=1e-5)


@torch.no_grad()
def test_linear_answers_by_their_definition(continuous, own):
    table = probes.linear_answers(own).set_index("seed")
    alone, right = continuous.select([0]), {"base": 0, "linear": 0}
    for row in range(12):
        law, first = own.laws[0, row, 1], own.weights[0, row, 0]
        mean = mean_of_tokens(alone, own.prompts[0, row], [first], law * (law >= probes.CUT))
        right["linear"] += int(mean.argmax() == own.answers[0, row]) * 100 / 12
        right["base"] += int(own.laws[0, row, 2].argmax() == own.answers[0, row]) * 100 / 12
    assert {name: pytest.approx(float(table.loc[42, name])) for name in right} == right


@torch.no_grad()
def test_consistency_is_the_exact_bias(continuous, own):
    """One token a thought: MTS's mean law at step 2 is a sum over tokens, and few rollouts estimate it unbiased."""
    alone, exact = continuous.select([0]), []
    for row in range(12):
        mean = mean_of_tokens(alone, own.prompts[0, row], [], own.laws[0, row, 0])
        exact.append(float((mean - own.laws[0, row, 1]).square().sum()))
    expected = sum(exact) / 12
    many = probes.consistency(own, [1], rollouts=500).set_index(["seed", "step"])
    assert many.loc[(42, 2), "gap"] == pytest.approx(expected, rel=0.1) and expected > 5e-4


def test_probed_in_company_as_alone(continuous, own):
    alone = probes.probed(continuous.select([1]), small_specs("cot2")[1:], inputs=12)
    for measure in (probes.linearity, probes.linear_answers, lambda x: probes.consistency(x, [2], rollouts=4)):
        together = measure(own)
        mine = together[together["seed"] == 43].reset_index(drop=True)
        assert torch.allclose(
            torch.tensor(mine.to_numpy(float)), torch.tensor(measure(alone).to_numpy(float)), atol=1e-5, equal_nan=True
        )


def test_consistency_does_not_depend_on_the_number_of_rollouts():
    specs = sweeps.methods("quick", (42, 43), (24,), ("cot2",), layers=1)
    shipped = probes.probed(runs.load_stack(specs, missing="error"), specs, inputs=100)
    few = [probes.consistency(shipped, [1], rollouts=r).groupby("step")["gap"].mean() for r in (2, 3, 4, 5, 6)]
    exact = probes.consistency(shipped, [1], rollouts=64).groupby("step")["gap"].mean()
    assert (sum(few) / 5 - exact).abs().max() < 0.05 < 0.1 * exact.max(), "uncorrected, so few give far more"
