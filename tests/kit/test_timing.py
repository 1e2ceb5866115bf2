"""Turns alternate, and threads come back."""

import os

import pytest
import torch
from jupyter_client.manager import start_new_kernel

from cot2lib.kit.timing import in_turns, threads


def test_turns_alternate_and_the_first_round_is_not_counted():
    order = []
    taken = in_turns({name: lambda name=name: order.append(name) for name in "ab"}, rounds=2)
    assert order == list("ababab") and [len(spent) for spent in taken.values()] == [2, 2]
    assert all(spent >= 0 for spent in taken["a"])


def test_threads_come_back_even_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise RuntimeError
    assert torch.get_num_threads() == before


COUNTED = """
from cot2lib.kit.timing import told
with told("training", 3) as tell:
    tell(2)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """A kernel's client, and the log of the command that began it."""
    log = tmp_path_factory.mktemp("kernel") / "log"
    plain = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}  # ipykernel reads it
    with log.open("wb") as stderr:
        started, client = start_new_kernel(kernel_name="python3", stderr=stderr, env=plain)
        yield client, log
        client.stop_channels()
        started.shutdown_kernel(now=True)


@pytest.mark.parametrize("attended", [True, False])
def test_a_notebook_shows_a_bar_to_a_person_and_the_log_has_lines_else(kernel, attended):
    """Nothing is left in a page, and a training under plain papermill is not silent."""
    client, log = kernel
    said, before = [], log.read_text()
    reply = client.execute_interactive(COUNTED, allow_stdin=attended, output_hook=said.append, timeout=60)
    assert reply["content"]["status"] == "ok"
    streams = "".join(message["content"]["text"] for message in said if message["msg_type"] == "stream")
    assert ("training:" in streams) == attended == bool(streams)
    logged = log.read_text().removeprefix(before)
    assert ("training: step 0 of 3\n" in logged) == (not attended)
