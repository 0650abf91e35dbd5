"""Sends and receives: buffers that go from one rank to another, and no further (AMB-COLL-77)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..abi.status import Failure, Status
from ..numerics.array import Array
from ..numerics.errors import shown
from .delivery import Sent
from .operations import Result

__all__ = ["send_recv"]

_NAME = "send_recv"


def send_recv(buffers: Sequence[Array], pairs: Sequence[Sequence[int]], chunk: int | None = None) -> Result:
    """Send the buffer of the first rank of each pair to the second, all at once, `chunk` elements at a time.

    What is sent is what a rank brings, whatever it receives. A rank that receives nothing keeps what it has.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for a rank that is not there, that sends to itself or receives twice,
    TESS_ERR_COLLECTIVE_MISMATCH where a receiver's buffer has another dtype or shape.
    """
    outputs = list(buffers)
    sent = []
    received = Counter(target for _, target in pairs)
    for source, target in pairs:
        if not (0 <= source < len(buffers) and 0 <= target < len(buffers)) or source == target:
            expected = f"two different ranks of 0 to {len(buffers) - 1}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, _NAME, f"the pair {shown([source, target])}", expected)
        if received[target] > 1:
            raise Failure(Status.TESS_ERR_INVALID_VALUE, _NAME, f"{received[target]} sends to rank {target}", "one")
        brought, buffer = buffers[source], buffers[target]
        if (brought.dtype, brought.shape) != (buffer.dtype, buffer.shape):
            given = f"rank {source} sends {brought.dtype}{list(brought.shape)}"
            expected = f"{buffer.dtype}{list(buffer.shape)}, which rank {target} receives"
            raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, _NAME, given, expected)
        outputs[target] = brought
        count = brought.values.size
        length = chunk or max(count, 1)
        sent += [Sent(0, source, target, at, min(length, count - at), False) for at in range(0, count, length)]
    return Result(outputs, sent)
