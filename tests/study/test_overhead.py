"""What a continuous token costs beside a discrete one, counted."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from cot2lib.model import Cache, GPT2Stack
from cot2lib.study import overhead


class Flop(TorchDispatchMode):
    """Counts by torch's formulas; `FlopCounterMode` does so too, but loads the compiler."""

    total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out, formula = function(*args, **kwargs or {}), flop_registry.get(function.overloadpacket)
        self.total += formula(*args, **kwargs or {}, out_val=out) if formula else 0
        return out


def test_step_agrees_with_torchs_formulas():
    """Blocks at a context that attention really has, the query itself included."""
    stack, past = GPT2Stack(1, 50, 20, 16, 2, 2), Cache()
    stack.hidden(torch.rand(1, 1, 7, 16), cache=past)
    step = overhead.Step("small", 50, 16, 2, context=8)
    for flop, work in (
        (step.blocks, lambda: stack.hidden(torch.rand(1, 1, 1, 16), cache=past.copy())),
        (step.mixture, lambda: stack.logits(torch.rand(1, 1, 1, 16))),
        (step.mixture, lambda: stack.mix(torch.rand(1, 1, 1, 50))),
    ):
        with Flop() as counter:
            work()
        assert counter.total == flop
