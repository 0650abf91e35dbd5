"""One rank's part in a collective that an engine of ranks carries out, whichever engine it is."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from conformance.adapters.collective_requests import COMBINING, Request, share_sizes

Array = np.ndarray[Any, np.dtype[Any]]


class Group(Protocol):
    """The ranks of one group as an engine has them: flat arrays in, flat arrays out, called by every rank of it."""

    size: int
    place: int

    def all_reduce(self, own: Array, op: str) -> Array:
        """All contributions combined; `op` is sum, prod, max or min."""
        ...

    def reduce_scatter(self, own: Array, op: str, counts: list[int]) -> Array:
        """This rank's share of all contributions combined."""
        ...

    def all_gather(self, own: Array, counts: list[int]) -> Array:
        """The shares of all, in order of their places."""
        ...

    def broadcast(self, own: Array, root: int) -> Array:
        """Return the root's data."""
        ...

    def all_to_all(self, own: Array) -> Array:
        """Block s of place r as block r of place s."""
        ...

    def send_recv(self, own: Array, targets: list[int], source: int | None) -> Array:
        """Return the source's data, or `own` without a source; `own` goes to all targets."""
        ...


def taken_part(group: Group, request: Request, own: Array) -> Array:
    """Return this rank's result from its contribution `own`, both flat. Data that is only moved travels as bytes."""
    if request.operation not in COMBINING:
        return _moved(group, request, own)
    if request.operation == "reduce_scatter":
        return group.reduce_scatter(own, request.op, share_sizes(own.size, group.size))
    return _in_chunks(own, request.chunk, lambda part: group.all_reduce(part, request.op))


def _moved(group: Group, request: Request, own: Array) -> Array:
    width, data = own.dtype.itemsize, own.view(np.uint8)
    if request.operation == "all_gather":
        result = group.all_gather(data, _bytes_of_shares(group, data))
    elif request.operation == "broadcast":
        result = _in_chunks(data, request.chunk * width, lambda part: group.broadcast(part, request.root))
    elif request.operation == "send_recv":
        targets = [target for source, target in request.pairs if source == group.place]
        sender = next((source for source, target in request.pairs if target == group.place), None)
        result = _in_chunks(data, request.chunk * width, lambda part: group.send_recv(part, targets, sender))
    else:
        result = group.all_to_all(data)
    return result.view(own.dtype)


def _in_chunks(flat: Array, chunk: int, carry: Any) -> Array:
    """The engine is given so many elements at a time, all of them if 0."""
    if not chunk or flat.size <= chunk:
        return carry(flat)  # type: ignore[no-any-return]
    return np.concatenate([carry(flat[first : first + chunk]) for first in range(0, flat.size, chunk)])


def _bytes_of_shares(group: Group, own: Array) -> list[int]:
    """Return the number of bytes that each place contributes; every rank learns it, as users of all-gather must."""
    brought = np.zeros(group.size, np.int64)
    brought[group.place] = own.size
    return [int(size) for size in group.all_reduce(brought, "sum")]
