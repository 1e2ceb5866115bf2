"""Work that a GPU repeats: its kernels are captured once as a CUDA graph, and then replayed as one launch."""

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

WARM_UP = 3  # eager calls before a graph is captured
T = TypeVar("T")


class Captured(Generic[T]):
    """A function without arguments: eager in its first calls, then captured and replayed.

    Args:
        work: reads and writes tensors that stay where they are, and never waits for the GPU.

    Attributes:
        graph: the CUDA graph, None before the capture.
    """

    def __init__(self, work: Callable[[], T]):
        self.work, self.calls = work, 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.result: T

    def __call__(self) -> T:
        """The result of the work; that of a replay is overwritten by the next one."""
        if self.calls < WARM_UP:
            self.calls += 1
            return self._aside()
        if self.graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.result = self.work()
            self.graph = graph
        self.graph.replay()
        return self.result

    def _aside(self) -> T:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = self.work()
        torch.cuda.current_stream().wait_stream(side)
        return result
