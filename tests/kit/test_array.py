"""The place in an array, from the environment alone."""

import pytest

from cot2lib import cli
from cot2lib.cli import training
from cot2lib.errors import SpecError
from cot2lib.kit import array


def slurm(index, first, last, count=None):
    told = {"ID": index, "MIN": first, "MAX": last, "COUNT": last - first + 1 if count is None else count}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in told.items()}


def told(variable, index, given):
    return {variable: str(index), "COT2_ARRAY": given}


SKY = {"SKYPILOT_JOB_RANK": "2", "SKYPILOT_NUM_JOBS": "3"}


@pytest.mark.parametrize(
    "environ, place",
    [
        (slurm(0, 0, 7), (0, 8)),
        (slurm(7, 0, 7), (7, 8)),
        (slurm(1, 1, 8), (0, 8)),
        (slurm(8, 1, 8), (7, 8)),
        (slurm(1, 1, 1), (0, 1)),
        (slurm(5, 5, 5) | {"COT2_ARRAY": "1-8"}, (4, 8)),
        *((told(name, 0, "0-3"), (0, 4)) for name in ("PBS_ARRAY_INDEX", "PBS_ARRAYID", "JOB_COMPLETION_INDEX")),
        *((told(name, 4, "1-4"), (3, 4)) for name in ("PBS_ARRAY_INDEX", "PBS_ARRAYID", "JOB_COMPLETION_INDEX")),
        (SKY, (2, 3)),
        (SKY | {"JOB_COMPLETION_INDEX": "0"}, (2, 3)),
    ],
)
def test_a_place_is_counted_from_zero(environ, place):
    assert array.place(environ) == place


@pytest.mark.parametrize("first", [0, 1])
def test_an_array_has_every_shard_once(first):
    """Zero or one based, by every scheduler."""
    for name in ("PBS_ARRAY_INDEX", "JOB_COMPLETION_INDEX"):
        range_ = f"{first}-{first + 4}"
        assert [array.place(told(name, first + k, range_)) for k in range(5)] == [(k, 5) for k in range(5)]
    assert [array.place(slurm(first + k, first, first + 4)) for k in range(5)] == [(k, 5) for k in range(5)]


@pytest.mark.parametrize(
    "environ, says",
    [
        ({}, "no task of an array of Slurm, PBS, SkyPilot or Kubernetes; write --shard K/N"),
        ({"SGE_TASK_ID": "3"}, "no task of an array of Slurm"),
        ({"JOB_COMPLETION_INDEX": "2"}, "Kubernetes does not say how many tasks the array has; set COT2_ARRAY"),
        (told("PBS_ARRAY_INDEX", 9, "1-8"), "the index 9 of PBS is outside the array 1-8"),
        (told("PBS_ARRAY_INDEX", 0, "1-8"), "the index 0 of PBS is outside"),
        (slurm(9, 0, 7), "the index 9 of Slurm is outside the array 0-7"),
        (slurm(3, 3, 3), "are a part of an array; set COT2_ARRAY=FIRST-LAST"),
        (slurm(1, 1, 7, 3), "the 3 tasks of Slurm are a part"),
        (slurm(0, 0, 7) | {"SLURM_ARRAY_TASK_ID": "two"}, "SLURM_ARRAY_TASK_ID='two' is no index"),
        (told("PBS_ARRAY_INDEX", 1, "8"), "COT2_ARRAY=8: write FIRST-LAST"),
        (told("PBS_ARRAY_INDEX", 1, "8-1"), "COT2_ARRAY=8-1: write FIRST-LAST"),
    ],
)
def test_a_place_that_cannot_be_told_is_one_sentence(environ, says):
    with pytest.raises(SpecError) as raised:
        array.place(environ)
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_the_command_asks_the_environment(monkeypatch, capsys):
    for name in (one.index for one in array.SCHEDULERS):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["run", "csft", "--shard", "auto"]) == 2
    assert "write --shard K/N" in capsys.readouterr().err
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    monkeypatch.setenv("COT2_ARRAY", "0-3")
    assert training._shard("auto") == training._shard("3/4") == (2, 4)


def test_shards_are_printed_as_commands(capsys):
    given = ["--profile", "paper", "--where", "method=discrete CoT", "--device", "cpu", "--shards", "3"]
    assert cli.main(["shards", "csft", *given]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["1/3", "2/3", "3/3"]
    told = "cot2 run csft --profile paper --device cpu --engine auto --where 'method=discrete CoT' --shard 1/3"
    assert lines[0] == told
