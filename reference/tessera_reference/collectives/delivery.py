"""The messages of a collective, carried out on data in an order that a seed chooses (AMB-COLL-65).

A message leaves with its sender's values once all messages of earlier steps to it have been combined. Messages to one
place are combined in their turn: the order of combining is the algorithm's and not that of arrival (RT-06-03, RT-06-04,
LANG-09-05). Under strict what travels are contributions, which every rank combines along the
canonical tree when it has all of them (LANG-09-06).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from graphlib import TopologicalSorter
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ..numerics.arithmetic import larger, smaller
from ..numerics.array import Array
from ..numerics.collectives import reduced, share_of
from ..numerics.formats import DType
from ..numerics.node_arithmetic import NodeArithmetic
from ..numerics.reductions import divided
from ..numerics.rounding import cast

Values: TypeAlias = npt.NDArray[Any]
Combine: TypeAlias = Callable[[Values, Values], Values]
Result: TypeAlias = Callable[[Values], Array]
Node = TypeVar("Node", bound=Hashable)


class Sent(NamedTuple):
    """A number of elements from `first` on of a buffer, sent in a step from one rank to another."""

    step: int
    source: int
    target: int
    first: int
    elements: int
    combines: bool

    @property
    def places(self) -> slice:
        """The elements as a range."""
        return slice(self.first, self.first + self.elements)


class Event(NamedTuple):
    """A message, by its number, leaves its sender, or is combined with what its target holds."""

    number: int
    kind: Literal["leaves", "combined"]


def deliver(sent: Sequence[Sent], buffers: Values, combine: Combine, seed: int) -> None:
    """Carry out messages, listed by step, on what ranks hold, (ranks, ..., places), in an order of a seed's choice."""
    under_way: dict[int, Values] = {}
    for number, kind in in_turn(_order(tuple(sent)), Random(seed)):
        message = sent[number]
        if kind == "leaves":
            under_way[number] = buffers[message.source, ..., message.places].copy()
        else:
            _finish(message, under_way.pop(number), buffers, combine)


def in_turn(order: Mapping[Node, Iterable[Node]], random: Random | None) -> Iterator[Node]:
    """Yield events in the order in which they become possible, or in one of random choice.

    `order` has the events for which each event waits.
    """
    sorter = TopologicalSorter(order)
    sorter.prepare()
    ready = list(sorter.get_ready())
    while ready:
        event = ready.pop(0 if random is None else random.randrange(len(ready)))
        yield event
        sorter.done(event)
        ready += sorter.get_ready()


def _finish(message: Sent, value: Values, buffers: Values, combine: Combine) -> None:
    """Combine what has come with what its target holds, or keep it there."""
    places = (message.target, ..., message.places)
    buffers[places] = combine(buffers[places], value) if message.combines else value


@lru_cache(maxsize=16)
def _order(sent: tuple[Sent, ...]) -> dict[Event, list[Event]]:
    """Return the events for which each event waits."""
    order: dict[Event, list[Event]] = {}
    for number, message in enumerate(sent):
        leaves = order[Event(number, "leaves")] = []
        combined = order[Event(number, "combined")] = [Event(number, "leaves")]
        for other, another in enumerate(sent):
            if _leaves_after(message, another):
                leaves.append(Event(other, "combined"))
            if other < number and _combines_after(message, another):
                combined.append(Event(other, "combined"))
            if other != number and _overwrites(message, another):
                combined.append(Event(other, "leaves"))
    return order


def _leaves_after(message: Sent, earlier: Sent) -> bool:
    """True if a message forwards data that an earlier step delivers to its sender."""
    return earlier.step < message.step and earlier.target == message.source and _overlap(earlier, message)


def _combines_after(message: Sent, earlier: Sent) -> bool:
    """True if two messages concern the same places of one rank, which takes them in the order of the algorithm."""
    return earlier.target == message.target and _overlap(earlier, message)


def _overwrites(message: Sent, leaving: Sent) -> bool:
    """True if a message would change places that another has yet to read, in this step or before."""
    return leaving.step <= message.step and leaving.source == message.target and _overlap(leaving, message)


def _overlap(one: Sent, other: Sent) -> bool:
    return one.first < other.first + other.elements and other.first < one.first + one.elements


# The results of collectives whose messages are delivered so.


def delivered(
    operation: str, contributions: Sequence[Array], sent: Sequence[Sent], *, op: str | None, level: str, seed: int
) -> list[Array]:
    """Return the results of a group's ranks after the messages of a collective, in their order."""
    ranks, first = len(contributions), contributions[0]
    if operation == "all_gather":
        return _gathered(contributions, sent, seed)
    flat = np.stack([array.values.reshape(-1) for array in contributions])
    if operation == "all_to_all":
        return _exchanged(first, flat, sent, seed)
    buffers: Values
    combine: Combine
    if op is None:
        buffers, combine, result = flat, _replace, _as_is(first)
    elif level == "strict":
        buffers, combine, result = _contributions(ranks, flat.shape[1]), np.logical_or, _reduced(first.dtype, op, flat)
    else:
        buffers, combine, result = accumulators(first, flat, op, ranks)
    deliver(sent, buffers, combine, seed)
    results = [result(buffer).values for buffer in buffers]
    if operation == "reduce_scatter":
        return [Array(first.dtype, x[share_of(x.size, rank, ranks)]) for rank, x in enumerate(results)]
    return [Array(first.dtype, x.reshape(first.shape)) for x in results]


def accumulators(first: Array, flat: Values, op: str, number: int) -> tuple[Values, Combine, Result]:
    """Return contributions, of that number, in the accumulator, how two combine there, and how a total is rounded.

    Max and min have no accumulator.
    """
    if op in ("max", "min"):
        ordered = {"max": larger, "min": smaller}[op]
        logical: Any = {"max": np.logical_or, "min": np.logical_and}[op]
        return flat, logical if first.dtype.kind == "bool" else ordered, _as_is(first)
    model = NodeArithmetic.canonical(first.dtype)
    node = model.multiply if op == "prod" else model.add

    def combine(own: Values, value: Values) -> Values:
        with np.errstate(all="ignore"):
            return node([own, value])

    def result(total: Values) -> Array:
        if op == "mean":
            total = divided(total, number, model.accumulator)
        return cast(Array(model.accumulator, total), first.dtype)

    return model.enter(flat, first.dtype), combine, result


def _contributions(ranks: int, count: int) -> Values:
    """(ranks, contributions, places): True where a rank has a contribution; at first each has its own."""
    return np.repeat(np.eye(ranks, dtype=np.bool_)[:, :, None], count, axis=2)


def _reduced(dtype: DType, op: str, flat: Values) -> Result:
    """Return the function from the contributions that a rank has to their combination along the canonical tree."""
    return lambda known: reduced(op, [Array(dtype, row) for row in np.where(known, flat, np.zeros_like(flat))])


def _replace(own: Values, value: Values) -> Values:
    return value


def _as_is(first: Array) -> Result:
    return lambda values: Array(first.dtype, values)


def _gathered(contributions: Sequence[Array], sent: Sequence[Sent], seed: int) -> list[Array]:
    """The shares of all ranks, on each."""
    dtype, total = contributions[0].dtype, sum(array.values.size for array in contributions)
    buffers = np.zeros((len(contributions), total), dtype.carrier)
    for rank, share in enumerate(contributions):
        buffers[rank, share_of(total, rank, len(contributions))] = share.values.reshape(-1)
    deliver(sent, buffers, _replace, seed)
    return [Array(dtype, values) for values in buffers]


def _exchanged(first: Array, flat: Values, sent: Sequence[Sent], seed: int) -> list[Array]:
    """The blocks that all ranks have for each, in buffers with places for the blocks of every source."""
    ranks, count = flat.shape
    buffers = np.zeros((ranks, ranks, count), flat.dtype)
    buffers[range(ranks), range(ranks)] = flat
    moved = [message._replace(first=message.source * count + message.first) for message in sent]
    deliver(moved, buffers.reshape(ranks, ranks * count), _replace, seed)
    blocks = buffers.reshape(ranks, ranks, ranks, count // ranks)
    return [Array(first.dtype, blocks[rank, :, rank].reshape(first.shape)) for rank in range(ranks)]
