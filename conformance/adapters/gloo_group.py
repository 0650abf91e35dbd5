"""The collectives of gloo among the ranks of a group, and numbers as tensors of PyTorch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.distributed as distributed
from conformance.adapters.rank_collectives import Array

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
OPERATORS = {
    "sum": distributed.ReduceOp.SUM,
    "prod": distributed.ReduceOp.PRODUCT,
    "max": distributed.ReduceOp.MAX,
    "min": distributed.ReduceOp.MIN,
}


class GlooGroup:
    """A group of ranks as gloo has it."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self.size, self.place = group.size(), group.rank()

    def all_reduce(self, own: Array, op: str) -> Array:
        """allreduce."""
        buffer, options = given(own), distributed.AllreduceOptions()
        options.reduceOp = OPERATORS[op]
        self.group.allreduce([buffer], options).wait()
        return taken(buffer)

    def reduce_scatter(self, own: Array, op: str, counts: list[int]) -> Array:
        """reduce_scatter, of shares of one size or not."""
        options = distributed.ReduceScatterOptions()
        options.reduceOp = OPERATORS[op]
        whole = given(own)
        result = torch.empty(counts[self.place], dtype=whole.dtype)
        self.group.reduce_scatter([result], [list(torch.split(whole, counts))], options).wait()
        return taken(result)

    def all_gather(self, own: Array, counts: list[int]) -> Array:
        """allgather, which has blocks of one size: shorter ones are filled up, and cut again."""
        longest = max(counts)
        filled = torch.zeros(longest, dtype=torch.uint8)
        filled[: own.size] = given(own)
        blocks = [torch.empty(longest, dtype=torch.uint8) for _ in counts]
        self.group.allgather([blocks], [filled]).wait()
        return np.concatenate([taken(block)[:count] for block, count in zip(blocks, counts, strict=True)])

    def broadcast(self, own: Array, root: int) -> Array:
        """broadcast."""
        buffer, options = given(own), distributed.BroadcastOptions()
        options.rootRank = root
        self.group.broadcast([buffer], options).wait()
        return taken(buffer)

    def all_to_all(self, own: Array) -> Array:
        """alltoall_base, of blocks of one size."""
        result = torch.empty(own.size, dtype=torch.uint8)
        self.group.alltoall_base(result, given(own), [], [], distributed.AllToAllOptions()).wait()
        return taken(result)

    def send_recv(self, own: Array, targets: list[int], source: int | None) -> Array:
        """send and recv, all under way before any is waited for."""
        sent, result = given(own), given(own)
        works = [self.group.send([sent], target, 0) for target in targets]
        works += [] if source is None else [self.group.recv([result], source, 0)]
        for work in works:
            work.wait()
        return taken(result)


def given(array: Array) -> Any:
    """A tensor of torch with a copy of the numbers, which torch may write to."""
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def taken(tensor: Any) -> Array:
    """The numbers of a tensor of torch."""
    if tensor.dtype == torch.bfloat16:
        words: Array = tensor.contiguous().view(torch.int16).numpy().view(BFLOAT16)
        return words
    numbers: Array = tensor.contiguous().numpy()
    return numbers
