import numpy as np
import pytest
import torch
from scipy import stats

from cot2lib.kit import random
from cot2lib.kit.random import Site


def splitmix(x):
    """SplitMix64's finaliser in numpy's unsigned arithmetic."""
    x = np.uint64(x)
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def test_hash_is_splitmix64():
    values = torch.tensor([0, 1, -1, 42, 2**62, -(2**63)])
    expected = [splitmix(v % 2**64) for v in values.tolist()]
    assert random.splitmix64(values).tolist() == np.array(expected).astype(np.int64).tolist()


def test_draws_are_pinned():
    keys = random.run_keys([42, 43], Site.DROPOUT, 7)
    assert random.uniform(keys, 2).flatten().tolist() == pytest.approx(
        [0.9542925953865051, 0.2344185709953308, 0.6606733202934265, 0.7680423855781555], abs=0
    )


def test_fold_takes_tensors_as_it_takes_integers():
    keys = random.run_keys([1, 2], Site.DROPOUT)
    assert torch.equal(random.fold(keys, 5, 6), random.fold(keys, torch.tensor(5), torch.tensor(6)))
    assert not torch.equal(random.fold(keys, 5, 6), random.fold(keys, 6, 5))


def test_uniform_and_normal_distributions():
    keys = random.run_keys([0], Site.DECODE)
    assert stats.kstest(random.uniform(keys, 200_000)[0].numpy(), "uniform").pvalue > 1e-3
    assert stats.kstest(random.normal(keys, 200_000)[0].numpy(), "norm").pvalue > 1e-3


@pytest.mark.parametrize("path", ["seed", "site", "step", "shifted"])
def test_neighbouring_streams_are_uncorrelated(path):
    count, keys = 100_000, random.run_keys([7], Site.DROPOUT, 3)
    other = {
        "seed": random.run_keys([8], Site.DROPOUT, 3),
        "site": random.run_keys([7], Site.DECODE, 3),
        "step": random.run_keys([7], Site.DROPOUT, 4),
        "shifted": keys,
    }[path]
    a, b = random.uniform(keys, count)[0].numpy(), random.uniform(other, count)[0].numpy()
    a, b = (a[:-1], b[1:]) if path == "shifted" else (a, b)
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(count)
    joint = np.histogram2d(a, b, bins=8)[0].ravel()
    assert stats.chisquare(joint).pvalue > 1e-4


def test_lanes_of_one_draw_are_uncorrelated():
    keys = random.run_keys([0], Site.DROPOUT)
    lanes = random.dropout_scales(keys, random.counters(100_000), 0.5)[0].view(-1, 4).numpy()
    off_diagonal = np.corrcoef(lanes.T) - np.eye(4)
    assert abs(off_diagonal).max() < 4 / np.sqrt(100_000)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5])
def test_dropout_scales(probability):
    scales = random.dropout_scales(random.run_keys([1, 2], Site.DROPOUT), random.counters(50_000), probability)
    assert torch.equal(scales != 0, torch.isclose(scales, torch.tensor(1 / (1 - probability))))
    error = 4 * np.sqrt(probability * (1 - probability) / 200_000) + 2**-16
    assert ((scales == 0).double().mean(1) - probability).abs().max() <= error


def test_permutations_are_uniform():
    orders = random.permutations(random.run_keys(range(12_000), Site.ORDER), 3)
    assert torch.equal(orders.sort(1).values, torch.arange(3).expand(12_000, 3))
    codes = orders[:, 0] * 9 + orders[:, 1] * 3 + orders[:, 2]
    assert stats.chisquare(torch.unique(codes, return_counts=True)[1].numpy()).pvalue > 1e-3


def test_stream_is_an_endless_concatenation_of_shuffles():
    key, items = random.run_keys([5], Site.ORDER), torch.tensor([10, 20, 30, 40, 50])
    whole = random.stream(key, items, 0, 23)
    for first in range(0, 20, 5):
        assert sorted(whole[first : first + 5].tolist()) == items.tolist()
    assert torch.equal(random.stream(key, items, 7, 11), whole[7:18])
    assert not torch.equal(whole[:5], whole[5:10])
