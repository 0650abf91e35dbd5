"""The messages of a collective, carried out on data in an order that a seed chooses (AMB-COLL-65).

A message leaves with its sender's values once all messages of earlier steps to it have been combined. It arrives
when the seed says so, and waits for its turn: the order of combining is the algorithm's and not that of arrival
(RT-06-03, RT-06-04, LANG-09-05). Under strict what travels are contributions, which every rank combines along the
canonical tree when it has all of them (LANG-09-06).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..numerics.arithmetic import larger, smaller
from ..numerics.array import Array
from ..numerics.collectives import share_of
from ..numerics.node_arithmetic import NodeArithmetic
from ..numerics.reductions import divided
from ..numerics.rounding import cast
from ..numerics.trees import PAIRWISE, Tree

Values: TypeAlias = npt.NDArray[Any]
Combine: TypeAlias = Callable[[Values, Values], Values]
Reduce: TypeAlias = Callable[[Array, Tree], Array]
Result: TypeAlias = Callable[[Values], Array]


class Sent(NamedTuple):
    """A number of elements from `first` on of a buffer, sent in a step from one rank to another."""

    step: int
    source: int
    target: int
    first: int
    elements: int
    combines: bool


@dataclass(frozen=True, slots=True)
class Move:
    """`count` places read from `read` on at the source, and written or combined from `write` on at the target."""

    step: int
    source: int
    target: int
    read: int
    write: int
    count: int
    combines: bool


def deliver(moves: Sequence[Move], buffers: Values, combine: Combine, seed: int) -> None:
    """Carry moves, listed by step, out on what ranks hold, (ranks, ..., places), in an order of a seed's choice."""
    random, order = Random(seed), _order(tuple(moves))
    waiting = [list(counts) for counts in order.waits]
    ready = [("leave", number) for number, count in enumerate(waiting[0]) if not count]
    under_way: dict[int, Values] = {}
    while ready:
        chosen = random.randrange(len(ready))
        ready[chosen], ready[-1] = ready[-1], ready[chosen]
        event, number = ready.pop()
        if event == "leave":
            move = moves[number]
            under_way[number] = buffers[move.source, ..., move.read : move.read + move.count].copy()
            ready.append(("arrive", number))
            done = _released(order.after_leaving[number], waiting[1])
        else:
            done = _released([number], waiting[1])
        while done:
            number = done.pop()
            _finish(moves[number], under_way.pop(number), buffers, combine)
            done += _released(order.after_combining[number], waiting[1])
            ready += [("leave", message) for message in _released(order.opens[number], waiting[0])]


def _finish(move: Move, value: Values, buffers: Values, combine: Combine) -> None:
    """Combine what has come with what its target holds, or keep it there."""
    places = (move.target, ..., slice(move.write, move.write + move.count))
    buffers[places] = combine(buffers[places], value) if move.combines else value


def _released(numbers: Sequence[int], counts: list[int]) -> list[int]:
    """Those that wait for nothing any more, after one that each of them waited for."""
    for number in numbers:
        counts[number] -= 1
    return [number for number in numbers if not counts[number]]


class _Order(NamedTuple):
    """For how many events each message waits before it leaves and before it is combined, and who waits for it."""

    waits: tuple[list[int], list[int]]
    opens: list[list[int]]
    after_combining: list[list[int]]
    after_leaving: list[list[int]]


@lru_cache(maxsize=16)
def _order(moves: tuple[Move, ...]) -> _Order:
    count = len(moves)
    opens: list[list[int]] = [[] for _ in moves]
    after_combining: list[list[int]] = [[] for _ in moves]
    after_leaving: list[list[int]] = [[] for _ in moves]
    waits = ([0] * count, [1] * count)
    for number, move in enumerate(moves):
        for other, later in enumerate(moves):
            if _leaves_after(move, later):
                opens[other].append(number)
                waits[0][number] += 1
            if other < number and _combines_after(move, later):
                after_combining[other].append(number)
                waits[1][number] += 1
            if other != number and _spares(move, later):
                after_leaving[other].append(number)
                waits[1][number] += 1
    return _Order(waits, opens, after_combining, after_leaving)


def _leaves_after(move: Move, earlier: Move) -> bool:
    """True if a message forwards data that an earlier step delivers to its sender."""
    here = earlier.step < move.step and earlier.target == move.source
    return here and _overlap(earlier.write, earlier.count, move.read, move.count)


def _combines_after(move: Move, earlier: Move) -> bool:
    """True if two messages concern the same places of one rank, which takes them in the order of the algorithm."""
    return earlier.target == move.target and _overlap(earlier.write, earlier.count, move.write, move.count)


def _spares(move: Move, leaving: Move) -> bool:
    """True if a message would change places that another has yet to read, in this step or before."""
    here = leaving.step <= move.step and leaving.source == move.target
    return here and _overlap(leaving.read, leaving.count, move.write, move.count)


def _overlap(first: int, count: int, other: int, others: int) -> bool:
    return first < other + others and other < first + count


# Collectives


def delivered(
    operation: str,
    contributions: Sequence[Array],
    sent: Sequence[Sent],
    *,
    op: str | None,
    reduce: Reduce | None,
    level: str,
    seed: int,
) -> list[Array]:
    """Return the results of a group's ranks after the messages of a collective, in their order.

    `reduce` is the operator over contributions, ranks first, as strict has it.
    """
    ranks, first = len(contributions), contributions[0]
    flat = np.stack([array.values.reshape(-1) for array in contributions]) if operation != "all_gather" else None
    if flat is None:
        return _gathered(contributions, sent, seed)
    count = flat.shape[1]
    moves = [Move(m.step, m.source, m.target, m.first, m.first, m.elements, m.combines) for m in sent]
    if operation == "all_to_all":
        return _exchanged(first, flat, moves, seed)
    buffers: Values
    combine: Combine
    if op is None or reduce is None:
        buffers, combine, result = flat, _kept, _as_is(first)
    elif level == "strict":
        buffers, combine, result = _contributions(flat), _joined, _reduced(first, reduce)
    else:
        buffers, combine, result = _accumulators(first, flat, op, ranks)
    deliver(moves, buffers, combine, seed)
    if operation == "reduce_scatter":
        return [result(buffers[rank][..., share_of(count, rank, ranks)]) for rank in range(ranks)]
    return [Array(first.dtype, result(chunk).values.reshape(first.shape)) for chunk in buffers]


def _accumulators(first: Array, flat: Values, op: str, ranks: int) -> tuple[Values, Combine, Result]:
    """Partial results in the accumulator, rounded at the end; max and min have none."""
    if op in ("max", "min"):
        ordered = {"max": larger, "min": smaller}[op]
        logical: Any = {"max": np.logical_or, "min": np.logical_and}[op]
        return flat, logical if first.dtype.kind == "bool" else ordered, _as_is(first)
    model = NodeArithmetic.canonical(first.dtype)

    def combine(own: Values, value: Values) -> Values:
        with np.errstate(all="ignore"):
            return model.multiply([own, value]) if op == "prod" else model.add([own, value])

    def result(total: Values) -> Array:
        total = model.settle(total)
        if op == "mean":
            total = divided(total, ranks, model.accumulator)
        return cast(Array(model.accumulator, total), first.dtype)

    return model.enter(flat, first.dtype), combine, result


def _contributions(flat: Values) -> Values:
    """(ranks, contributions, places): each rank's contributions of the others, and a flag for those that it has."""
    ranks, count = flat.shape
    buffers = np.zeros((ranks, ranks, count), [("value", flat.dtype), ("known", np.bool_)])
    for rank in range(ranks):
        buffers[rank, rank]["value"], buffers[rank, rank]["known"] = flat[rank], True
    return buffers


def _joined(own: Values, value: Values) -> Values:
    """Return the union of the elements that two ranks know."""
    merged = own.copy()  # np.where works out the common type of records anew each time
    np.copyto(merged, value, where=value["known"])
    return merged


def _reduced(first: Array, reduce: Reduce) -> Result:
    """The contributions of all ranks, along the canonical tree: once for the ranks that know the same ones."""
    sums: dict[bytes, Array] = {}

    def result(buffers: Values) -> Array:
        values = np.ascontiguousarray(buffers["value"])
        key = values.tobytes()
        if key not in sums:
            sums[key] = reduce(Array(first.dtype, values), PAIRWISE)
        return sums[key]

    return result


def _kept(own: Values, value: Values) -> Values:
    return value


def _as_is(first: Array) -> Result:
    return lambda buffers: Array(first.dtype, buffers)


def _gathered(contributions: Sequence[Array], sent: Sequence[Sent], seed: int) -> list[Array]:
    """The shares of all ranks, on each."""
    dtype, sizes = contributions[0].dtype, [array.values.size for array in contributions]
    buffers = np.zeros((len(contributions), sum(sizes)), contributions[0].values.dtype)
    for rank, share in enumerate(contributions):
        buffers[rank, share_of(sum(sizes), rank, len(contributions))] = share.values.reshape(-1)
    deliver([Move(m.step, m.source, m.target, m.first, m.first, m.elements, False) for m in sent], buffers, _kept, seed)
    return [Array(dtype, values) for values in buffers]


def _exchanged(first: Array, flat: Values, moves: Sequence[Move], seed: int) -> list[Array]:
    """The blocks that all ranks have for each, in a buffer behind the one that they are sent from."""
    ranks, count = flat.shape
    block = count // ranks
    buffers = np.concatenate([flat, np.zeros_like(flat)], axis=1)
    for rank in range(ranks):
        own = slice(rank * block, (rank + 1) * block)
        buffers[rank, count:][own] = flat[rank, own]
    behind = [replace(move, write=count + move.read + (move.source - move.target) * block) for move in moves]
    deliver(behind, buffers, _kept, seed)
    return [Array(first.dtype, values[count:].reshape(first.shape)) for values in buffers]
