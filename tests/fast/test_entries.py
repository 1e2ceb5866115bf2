"""Entries of the fused engine: each is compiled once, for all that is trained and evaluated.

`make test` runs it beside its first chapters: in one process entries share what they call, and later ones find them.
"""

from dataclasses import replace

import pytest
from builders import SMALLER_SUMS, rewarded

from cot2lib import runs
from cot2lib.specs.profiles import spec
from cot2lib.targets import Apart, DrawnState, Frontier
from cot2lib.thoughts import Dirichlet

fast = pytest.importorskip("cot2lib.fast")


def short(**options):
    shape = dict(task=SMALLER_SUMS, d_model=16, layers=1, heads=1)
    return spec(**shape, steps=4, evaluate_every=4, warmup=1, **options)


def test_every_entry_has_one_signature(store, nothing_shipped):
    plain, dropped = short(), short(profile_name="paper", dropout=0.1)
    apart = replace(plain, supervision=replace(plain.supervision, targets=Apart(DrawnState(), Frontier())))
    fed = [short(method="coconut"), short(self_fed_from=0.5)]
    runs.run([plain, dropped, apart, *fed, rewarded(), rewarded(thought=Dirichlet(4.0))], device="cpu")
    entries = (fast.step.train, fast.forward.decode, fast.step.train_apart, fast.own.train_own, fast.reward.reward)
    assert {entry.__name__: len(entry.signatures) for entry in entries} == {entry.__name__: 1 for entry in entries}
