"""Collectives over groups of ranks (collectives spec 2, 3, 4.4; runtime spec 4.6, 13).

All-reduce of the C API, the order of combination, stage one, the wire, results and messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ..abi.fatbin.metadata import PLANNED_COLLECTIVES
from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import invalid, mismatch, unsupported, violation
from ..graph.collectives import OPERATORS
from ..graph.futures import ALL_TO_ALL_ALGORITHMS, holds
from ..numerics.array import Array
from ..numerics.collectives import REDUCTIONS, alternative, group_results, reduced, share_of
from ..numerics.formats import DTYPES, DType, shown
from ..numerics.rounding import cast
from ..numerics.trees import Tree
from ..numerics.trees import pairwise as along_pairs
from .compression import Compression, compress, read_compression, require_fp32
from .delivery import Combine, Sent, Values, accumulators, delivered
from .schedules import Algorithm, Maker, algorithm, maker, require_known, steps

# All-reduce: every rank contributes a buffer, and every rank gets their combination, with the same bits.
#
# Contributions are combined in the accumulator type over the canonical tree, in order of the axis coordinate, and
# rounded once (AMB-LANG-109, AMB-RT-57), so that the result is the same on every run and on every rank (RT-06-03,
# RT-06-04, RT-13-01, LANG-15-10, LANG-15-16).


_ALL_REDUCE = "tessAllReduce"


def all_reduce(
    buffers: Sequence[Array],
    op: str,
    *,
    policy: NumericsPolicy | None = None,
    wire: str | None = None,
    descriptors: Sequence[Descriptor] | None = None,
) -> Array:
    """Combine the buffers of all ranks, in order of the axis coordinate; every rank is given the result.

    This machine never quantizes on the wire: where `policy` permits it, it is allowed, not demanded (RT-13-09).

    Raises `Failure`: TESS_ERR_INVALID_VALUE for an unknown operator or wire, or no rank, TESS_ERR_COLLECTIVE_MISMATCH
    where ranks differ in count or dtype, TESS_ERR_DETERMINISM_VIOLATION where they differ in descriptor or a wire that
    lacks values of the data is asked for under a deterministic policy (AMB-RT-13, AMB-RT-27, AMB-COLL-54),
    TESS_ERR_UNSUPPORTED where `op` is not defined.
    """
    _require_agreement(buffers, op, descriptors)
    if wire is not None and (not isinstance(wire, str) or wire not in DTYPES):
        raise invalid(_ALL_REDUCE, f"unknown dtype {shown(wire)} as wire", ", ".join(DTYPES))
    dtype = buffers[0].dtype
    if wire is not None and not holds(DTYPES[wire], dtype) and (policy or NumericsPolicy()).deterministic:
        allowed = f"no wire, one that holds every {dtype}, or deterministic = 0"
        raise violation(_ALL_REDUCE, f"wire {wire} of {dtype} under a deterministic policy", allowed)
    require_operator(op, dtype, _ALL_REDUCE)
    tree = descriptors[0].reduction_order if descriptors else None
    if tree is not None:
        tree.require_leaves(len(buffers))
    return reduced(op, buffers, tree)


def require_operator(op: str, dtype: DType, function: str) -> None:
    """Raise `Failure` with TESS_ERR_UNSUPPORTED for an operator that a dtype does not have (AMB-RT-28, AMB-RT-57)."""
    if (instead := alternative(op, dtype)) is not None:
        raise unsupported(function, f"{op} of {dtype}", instead)


def _require_agreement(buffers: Sequence[Array], op: str, descriptors: Sequence[Descriptor] | None) -> None:
    if op not in OPERATORS:
        raise invalid(_ALL_REDUCE, f"operator {shown(op)}", " or ".join(OPERATORS))
    if not buffers:
        raise invalid(_ALL_REDUCE, "no rank takes part", "one buffer of each rank")
    first = buffers[0]
    for rank, buffer in enumerate(buffers):
        if (buffer.dtype, buffer.shape) != (first.dtype, first.shape):
            raise mismatch(_ALL_REDUCE, f"rank {rank} has {_type(buffer)}", f"{_type(first)}, as rank 0 does")
    if descriptors is not None and len(descriptors) != len(buffers):
        raise invalid(_ALL_REDUCE, f"{len(descriptors)} descriptors of {len(buffers)} ranks", "one of each rank")
    for rank, descriptor in enumerate(descriptors or ()):
        if descriptors and descriptor != descriptors[0]:
            actual = f"rank {rank} has another determinism descriptor than rank 0"
            raise violation(_ALL_REDUCE, actual, "the same descriptor on every rank")


def _type(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


# In which order an algorithm combines: as its messages come (AMB-RT-26, AMB-LANG-109).
#
# Under deterministic policies contributions are combined on the way, under strict ones over the canonical tree. The
# same messages, carried out on texts instead of values, give the order that `numerics.declared` tells. It depends on
# the place of an element in its own tensor alone, not on chunks or on tensors that travel with it (AMB-COLL-29).


ROTATED_FROM = 32
"""Ranks of a ring from which on a step of all of them is one operation; of fewer, one for each message."""


def totals(used: Algorithm, buffers: Values, starts: Sequence[int], combine: Combine) -> Values:
    """Return the combination of every place of the ranks' buffers, as the owners of its share have it.

    `buffers` is (ranks, places) and changes; `starts` are the first places of the shares, and the number of places.
    """
    if used.name == "ring" and used.ranks >= ROTATED_FROM:
        every = np.arange(starts[-1])
        owners = np.repeat(np.arange(used.ranks), [last - first for first, last in pairwise(starts)])
        total = buffers[(owners + 1) % used.ranks, every]
        for ahead in range(2, used.ranks + 1):
            total = combine(buffers[(owners + ahead) % used.ranks, every], total)
        return total
    for step in used.combining:
        ranges = [slice(starts[message.first], starts[message.last]) for message in step]
        sent = [buffers[message.source, places].copy() for message, places in zip(step, ranges, strict=True)]
        for message, places, value in zip(step, ranges, sent, strict=True):
            buffers[message.target, places] = combine(buffers[message.target, places], value)
    return np.concatenate([buffers[owner, starts[s] : starts[s + 1]] for s, owner in enumerate(used.owners)])


def order_of(
    name: str, ranks: int, count: int, element: int, per_node: int | None = None, partials: Sequence[int] | None = None
) -> Tree:
    """The tree of one of `count` elements. Raises `Failure` as `schedules.algorithm` does."""
    trees = orders(name, ranks, per_node, partials)
    return trees[next((share for share in range(ranks) if element < share_of(count, share, ranks).stop), 0)]


def orders(
    name: str, ranks: int, per_node: int | None = None, partials: Sequence[int] | None = None
) -> tuple[Tree, ...]:
    """The tree of each share. Its leaves are the ranks, or the partial values of all ranks where there are such.

    Raises `Failure` as `schedules.algorithm` does.
    """
    return _orders(maker(name), ranks, per_node or ranks, tuple(partials or ONE))


@lru_cache(maxsize=256)
def _orders(make: Maker, ranks: int, per_node: int, partials: tuple[int, ...]) -> tuple[Tree, ...]:
    leaves = np.arange(ranks * prod(partials)).reshape(ranks, *partials, 1)
    texts = np.repeat(leaves.astype(str).astype(object), ranks, axis=-1)
    node = np.frompyfunc(lambda own, value: f"({own} {value})", 2, 1)
    return tuple(map(Tree.parse, totals(make(ranks, per_node), by_device(texts, node), range(ranks + 1), node)))


# Stage one of a hierarchical collective: partial values of warps and blocks of a device (COLL-04.4-01; AMB-COLL-66).
#
# A device brings a partial value of each warp of each block. Under deterministic the warps of a block are combined
# first, then the blocks of a device, each along adjacent pairs; then devices, as the algorithm has it. Under strict the
# order is the canonical tree over all partial values. Nothing is rounded between stages, and stage one sends nothing.


ALGORITHM = "hierarchical"

ONE = (1, 1)
"""The blocks and warps of a device that brings one value."""


def require_stage_one(operation: str, name: str, partials: Sequence[int], travels: bool) -> None:
    """Raise `Failure` where there is no stage one.

    TESS_ERR_INVALID_VALUE for an operation that combines nothing and for other than two numbers from 1 on;
    TESS_ERR_UNSUPPORTED for another algorithm, and where data travel compressed or in a seeded order (`travels`).
    """
    if operation not in ("all_reduce", "reduce_scatter"):
        raise invalid(operation, "partial values", "all_reduce or reduce_scatter")
    if len(partials) != 2 or min(partials) < 1:
        expected = "blocks of a device and warps of a block, 1 or more"
        raise invalid(operation, f"partials {shown(list(partials))}", expected)
    if name != ALGORITHM:
        raise unsupported(operation, f"partial values with algorithm {name!r}", f"algorithm {ALGORITHM!r}")
    if travels:
        raise unsupported(operation, "partial values over a wire or by a seed", "neither")


def partial_values(operation: str, buffers: Sequence[Array], partials: Sequence[int]) -> list[Array]:
    """The partial values of all devices, in order of device, block and warp.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a buffer that does not begin with axes of blocks and warps.
    """
    for rank, buffer in enumerate(buffers):
        if buffer.shape[:2] != tuple(partials):
            blocks, warps = partials
            expected = f"[{blocks}, {warps}, ...], a partial value of each warp of each block"
            raise invalid(operation, f"rank {rank} has {_type(buffer)}", expected)
    return [Array(part.dtype, part.values[place]) for part in buffers for place in np.ndindex(*partials)]


def by_device(values: Values, combine: Combine) -> Values:
    """Combine (devices, blocks, warps, places) to (devices, places): the warps of each block, then the blocks."""
    return along_pairs(along_pairs(values, 2, combine), 1, combine)


# Collectives whose data travel in another dtype than their own (COLL-02.4-03, -05, COLL-02.5-03, RT-13-09).
#
# Every contribution, a rank's own too, is rounded to the wire once; contributions are combined in the wider of fp32
# and the data's dtype; a result is rounded to the wire once and given back in the data's dtype (AMB-COLL-61). What
# only moves is rounded once.


def read_wire(
    operation: str, buffers: Sequence[Array], wire: Any, qscheme: Any, block: Any, level: str
) -> Compression | None:
    """The compression of a collective, None where nothing is lost without asking for any (AMB-COLL-62).

    Raises `Failure`: TESS_ERR_INVALID_VALUE for an unknown wire or scheme, TESS_ERR_UNSUPPORTED for data that the wire
    does not take, TESS_ERR_DETERMINISM_VIOLATION where data would lose on the wire under another level than fast.
    """
    if wire is None:
        if qscheme is not None or block is not None:
            raise invalid(operation, "a qscheme or a block without a wire", "a wire, or neither")
        return None
    read = read_compression(operation, wire, qscheme, block)
    for buffer in buffers:
        if buffer.dtype.kind != "float":
            raise unsupported(operation, f"wire {wire} for {buffer.dtype}", "float data")
        if read.block is not None:
            require_fp32(operation, buffer)
    if read.block is None and all(holds(read.wire, buffer.dtype) for buffer in buffers):
        return None
    if level != "fast":
        allowed = f"level fast, no wire, or one that holds every {buffers[0].dtype}"
        raise violation(operation, f"wire {wire} under {level}", allowed)
    return read


def over_wire(
    operation: str,
    inputs: Sequence[Array],
    compression: Compression,
    collective: Callable[[Sequence[Array]], Sequence[Array]],
) -> Sequence[Array]:
    """Return the results of a collective over a wire; `collective` is the one of whole accumulators.

    Raises `NonFinite` for a NaN or an infinity that would need a scale.
    """

    def arriving(x: Array) -> Array:
        return compress(operation, x, compression).restored

    dtype = inputs[0].dtype
    results = collective([arriving(cast(array, dtype.accumulator)) for array in inputs])
    if operation in ("all_reduce", "reduce_scatter"):
        results = list(map(arriving, results))
    return [cast(result, dtype) for result in results]


# What each rank has after a collective over groups of ranks, and the messages by which it travelled.
#
# Collectives spec 2.1, 2.2, 3.1; language spec 9; runtime spec 4.6. Values are combined in the accumulator and
# rounded once. How a collective travels changes no more than the order of a combination (AMB-COLL-04, AMB-COLL-29).


OPERATIONS = PLANNED_COLLECTIVES


@dataclass(frozen=True)
class Result:
    """The results of a collective on every rank, and the messages sent for it, which are listed on demand."""

    outputs: list[Array]
    travelled: Callable[[], list[Sent]]

    @cached_property
    def sent(self) -> list[Sent]:
        """The messages in order of their steps; those of a ring are twice the square of its ranks."""
        return sorted(self.travelled(), key=lambda message: message.step)


def run(
    operation: str,
    buffers: Sequence[Array],
    *,
    op: str | None = None,
    root: int | None = None,
    name: str = "ring",
    groups: Sequence[Sequence[int]] | None = None,
    per_node: int | None = None,
    chunk: int | None = None,
    level: str = "strict",
    wire: str | None = None,
    qscheme: str | None = None,
    block: int | None = None,
    seed: int | None = None,
    partials: Sequence[int] | None = None,
) -> Result:
    """Run a collective among the ranks of each group, `chunk` elements of a buffer at a time.

    Arrays are taken as flat buffers. A reduce-scatter gives each rank its share, an all-gather takes the shares of all
    (`share_of`), an all-to-all exchanges blocks of one size; the others keep the shape. `root` is a place in the group.
    `wire`, `qscheme` and `block` say in what form data travel (`over_wire`). With a `seed` messages are carried out on
    the data, in an order that it chooses (`delivery`), which changes no bit. `partials` are the blocks of a device and
    the warps of a block, whose partial values a buffer holds along its first two axes (`partial_values`).

    Raises `Failure`: TESS_ERR_INVALID_VALUE for unknown names, a root, groups or blocks that do not fit,
    TESS_ERR_COLLECTIVE_MISMATCH where buffers of a group differ, TESS_ERR_UNSUPPORTED for an operator that a dtype does
    not have and an algorithm that the ranks cannot run, and what `read_wire` and `require_stage_one` raise.
    """
    require_known("collective", "operation", operation, OPERATIONS)
    _require_operator(operation, op, buffers)
    compression = read_wire(operation, buffers, wire, qscheme, block, level)
    if partials is not None:
        require_stage_one(operation, name, partials, travels=wire is not None or seed is not None)
    outputs: dict[int, Array] = {}
    travels: list[tuple[Sequence[int], Callable[[], list[Sent]]]] = []
    for group in _groups(groups, len(buffers)):
        inputs = [buffers[rank] for rank in group]
        used = algorithm(name, len(group), per_node)
        _require_fit(operation, used, inputs, root)
        inputs = inputs if partials is None else partial_values(operation, inputs, partials)
        count = sum(array.values.size for array in inputs) if operation == "all_gather" else inputs[0].values.size
        sent = partial(messages, operation, used, count, root=root or 0, chunk=chunk)
        travels.append((group, sent))
        collective: Callable[[Sequence[Array]], Sequence[Array]]
        if seed is None:
            whole = partial(combined, used, op or "", level, partials or ONE)
            collective = partial(group_results, operation, ranks=len(group), root=root or 0, whole=whole)
        else:
            collective = partial(delivered, operation, sent=sent(), op=op, level=level, seed=seed)
        results = over_wire(operation, inputs, compression, collective) if compression else collective(inputs)
        outputs.update(zip(group, results, strict=True))
    return Result(
        [outputs[rank] for rank in range(len(buffers))],
        lambda: [message.between(group) for group, sent in travels for message in sent()],
    )


def combined(used: Algorithm, op: str, level: str, partials: Sequence[int], inputs: Sequence[Array]) -> Array:
    """Return the combination of the partial values of all devices, in order of device, block and warp.

    Under strict it is that over the canonical tree, which the order of maxima and minima does not change.
    """
    if level == "strict" or op in ("max", "min"):
        return reduced(op, inputs)
    first = inputs[0]
    flat = np.stack([array.values.reshape(-1) for array in inputs])
    values, node, result = accumulators(first, flat, op, len(inputs))
    values = by_device(values.reshape(used.ranks, *partials, -1 if values.size else 0), node)
    starts = [share_of(values.shape[1], share, used.ranks).start for share in range(used.ranks + 1)]
    return Array(first.dtype, result(totals(used, values, starts, node)).values.reshape(first.shape))


def messages(operation: str, used: Algorithm, count: int, *, root: int = 0, chunk: int | None = None) -> list[Sent]:
    """Return the messages of a group in elements of a buffer of `count`, cut where its chunks end."""
    starts = [share_of(count, share, used.ranks).start for share in range(used.ranks + 1)]
    transfers: list[Sent] = []
    for number, step in enumerate(steps(operation, used, root)):
        transfers += [
            Sent(number, source, target, starts[first], starts[last] - starts[first], combines)
            for source, target, first, last, combines in step
            if starts[first] < starts[last]
        ]
    return transfers if chunk is None else [piece for transfer in transfers for piece in _pieces(transfer, chunk)]


def _pieces(whole: Sent, chunk: int) -> Iterator[Sent]:
    """A message, cut where chunks of the buffer end."""
    first, last = whole.first, whole.first + whole.elements
    while first < last:
        end = min(last, (first // chunk + 1) * chunk)
        yield whole._replace(first=first, elements=end - first)
        first = end


def _groups(groups: Sequence[Sequence[int]] | None, ranks: int) -> Sequence[Sequence[int]]:
    """The groups, in which every rank must occur once (AMB-COLL-32)."""
    if not ranks:
        raise invalid("collective", "no rank takes part", "one buffer of each rank")
    if groups is None:
        return [range(ranks)]
    if sorted(rank for group in groups for rank in group) != list(range(ranks)) or not all(groups):
        raise invalid("collective", f"groups {shown(groups)}", f"each of 0 to {ranks - 1} once")
    return groups


def _require_operator(operation: str, op: str | None, buffers: Sequence[Array]) -> None:
    """An operator where values are combined, and none elsewhere; one that the dtypes have."""
    combines = operation in ("all_reduce", "reduce_scatter")
    if combines and op is None:
        raise invalid(operation, "no operator", f"one of {', '.join(REDUCTIONS)}")
    if not combines and op is not None:
        raise invalid(operation, f"operator {shown(op)}", "no operator")
    if op is not None:
        require_known(operation, "operator", op, tuple(REDUCTIONS))
        for buffer in buffers:
            require_operator(op, buffer.dtype, operation)


def _require_fit(operation: str, used: Algorithm, inputs: Sequence[Array], root: int | None) -> None:
    """Buffers of one dtype and shape, shares of a whole where they are gathered, a root where there is one."""
    ranks, first = len(inputs), inputs[0]
    gathers, total = operation == "all_gather", sum(array.values.size for array in inputs)
    for rank, buffer in enumerate(inputs):
        own = share_of(total, rank, ranks)
        expected = (own.stop - own.start,) if gathers else first.shape
        if (buffer.dtype, (buffer.values.size,) if gathers else buffer.shape) != (first.dtype, expected):
            raise mismatch(operation, f"rank {rank} has {_type(buffer)}", f"{first.dtype}{list(expected)}")
    if (operation == "broadcast") != (root is not None) or not 0 <= (root or 0) < ranks:
        raise invalid(operation, f"root {shown(root)}", f"0 to {ranks - 1} for a broadcast, none for the others")
    if operation == "all_to_all" and first.values.size % ranks:
        actual = f"{first.values.size} elements for {ranks} ranks"
        raise invalid(operation, actual, "blocks of one size (AMB-COLL-34)")
    if operation == "all_to_all" and used.name not in ALL_TO_ALL_ALGORITHMS:
        raise unsupported(operation, f"algorithm {used.name!r}", "ring or direct")


# Sends and receives: buffers that go from one rank to another, and no further (AMB-COLL-77).


_SEND_RECV = "send_recv"


def send_recv(buffers: Sequence[Array], pairs: Sequence[Sequence[int]], chunk: int | None = None) -> Result:
    """Send the buffer of the first rank of each pair to the second, all at once, `chunk` elements at a time.

    A rank sends its own data, whatever it receives. A rank that receives nothing keeps what it has.

    Raises `Failure`: TESS_ERR_INVALID_VALUE for a rank that is not there, that sends to itself or receives twice,
    TESS_ERR_COLLECTIVE_MISMATCH where a receiver's buffer has another dtype or shape.
    """
    outputs = list(buffers)
    sent: list[Sent] = []
    received = Counter(target for _, target in pairs)
    for source, target in pairs:
        if not (0 <= source < len(buffers) and 0 <= target < len(buffers)) or source == target:
            expected = f"two different ranks of 0 to {len(buffers) - 1}"
            raise invalid(_SEND_RECV, f"the pair {shown([source, target])}", expected)
        if received[target] > 1:
            raise invalid(_SEND_RECV, f"{received[target]} sends to rank {target}", "one")
        payload, buffer = buffers[source], buffers[target]
        if (payload.dtype, payload.shape) != (buffer.dtype, buffer.shape):
            expected = f"{_type(buffer)}, which rank {target} receives"
            raise mismatch(_SEND_RECV, f"rank {source} sends {_type(payload)}", expected)
        outputs[target] = payload
        whole = Sent(0, source, target, 0, payload.values.size, False)
        sent += _pieces(whole, chunk or max(whole.elements, 1))
    return Result(outputs, lambda: sent)
