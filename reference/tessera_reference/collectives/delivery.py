"""The messages of a collective, carried out on data in an order that a seed chooses (AMB-COLL-65).

A message leaves with its sender's values once all messages of earlier steps to it have been combined. Messages to one
place are combined in their turn: the order of combining is the algorithm's and not that of arrival (RT-06-03, RT-06-04,
LANG-09-05). Under strict what travels are contributions, which every rank combines along the
canonical tree when it has all of them (LANG-09-06).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from graphlib import TopologicalSorter
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ..numerics.arithmetic import larger, smaller
from ..numerics.array import Array
from ..numerics.collectives import reduced, share_of
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

    def between(self, ranks: Sequence[int]) -> Sent:
        """Return the message whose ends are the ranks at these places."""
        return self._replace(source=ranks[self.source], target=ranks[self.target])


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
    """Return the results of a group's ranks after the messages of a collective, in their order.

    Partial values travel, or, under strict, contributions. Of these messages carry marks: `known`, by rank,
    contribution and place, is True where a rank has a contribution, from which it computes its result.
    """
    if op is None:
        return _moved(operation, contributions, sent, seed)
    ranks, first = len(contributions), contributions[0]
    flat = np.stack([array.values.reshape(-1) for array in contributions])
    if level == "strict":
        known = np.repeat(np.eye(ranks, dtype=np.bool_)[:, :, None], flat.shape[1], axis=2)
        deliver(sent, known, np.logical_or, seed)
        owned = (np.where(marks, flat, np.zeros_like(flat)) for marks in known)
        totals = [reduced(op, [Array(first.dtype, row) for row in rows]).values for rows in owned]
    else:
        values, combine, rounded = accumulators(first, flat, op, ranks)
        deliver(sent, values, combine, seed)
        totals = [rounded(own).values for own in values]
    if operation == "reduce_scatter":
        return [Array(first.dtype, x[share_of(x.size, rank, ranks)]) for rank, x in enumerate(totals)]
    return [Array(first.dtype, x.reshape(first.shape)) for x in totals]


def _moved(operation: str, contributions: Sequence[Array], sent: Sequence[Sent], seed: int) -> list[Array]:
    """Return the results where nothing is combined; data travel in buffers with places for what each source sends."""
    ranks, first, count = len(contributions), contributions[0], contributions[0].values.size
    places, shape = [slice(0, count)] * ranks, first.shape
    if operation == "all_gather":
        total = sum(array.values.size for array in contributions)
        places, shape = [share_of(total, source, ranks) for source in range(ranks)], (total,)
    if operation == "all_to_all":
        places = [slice(source * count, (source + 1) * count) for source in range(ranks)]
        sent = [message._replace(first=places[message.source].start + message.first) for message in sent]
    values = np.zeros((ranks, places[-1].stop), first.dtype.carrier)
    for own, at, array in zip(values, places, contributions, strict=True):
        own[at] = array.values.reshape(-1)
    deliver(sent, values, lambda _, value: value, seed)
    if operation == "all_to_all":  # of what each source has, the block for this rank
        values = values.reshape(ranks, ranks, ranks, count // ranks)[range(ranks), :, range(ranks)]
    return [Array(first.dtype, own.reshape(shape)) for own in values]


def accumulators(first: Array, flat: Values, op: str, number: int) -> tuple[Values, Combine, Result]:
    """Return contributions, of that number, in the accumulator, how two combine there, and how a total is rounded.

    Max and min have no accumulator.
    """
    if op in ("max", "min"):
        ordered = {"max": larger, "min": smaller}[op]
        logical: Any = {"max": np.logical_or, "min": np.logical_and}[op]
        return flat, logical if first.dtype.kind == "bool" else ordered, partial(Array, first.dtype)
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
