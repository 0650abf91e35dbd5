"""Collectives over groups of ranks (collectives spec 2, 3, 4.4; runtime spec 4.6, 13).

All-reduce of the C API, stage one, the order of combination, the wire, results and messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import Failure, Status, invalid, mismatch, unsupported
from ..graph.futures import ALL_TO_ALL_ALGORITHMS, holds
from ..numerics.array import Array
from ..numerics.collectives import (
    REDUCTIONS,
    all_gather,
    all_to_all,
    alternative,
    broadcast,
    reduce_scatter,
    reduced,
    share_of,
)
from ..numerics.collectives import all_reduce as reduce_everywhere
from ..numerics.formats import DTYPES, DType, shown
from ..numerics.rounding import cast
from ..numerics.trees import PAIRWISE, Token, Tree
from .compression import Compression, compress, read_compression, require_fp32
from .delivery import Sent, delivered
from .schedules import Algorithm, Maker, Step, algorithm, maker, powers, require_known, steps

# All-reduce: every rank contributes a buffer, and every rank gets their combination, with the same bits.
#
# Contributions are combined in the accumulator type over the canonical tree, in order of the axis coordinate, and
# rounded once (AMB-LANG-109, AMB-RT-57), so that the result is the same on every run and on every rank (RT-06-03,
# RT-06-04, RT-13-01, LANG-15-10, LANG-15-16).


Operator: TypeAlias = Literal["sum", "max", "min"]

_ALL_REDUCE = "tessAllReduce"


def all_reduce(
    buffers: Sequence[Array],
    op: Operator,
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
    lossy = wire is not None and not holds(DTYPES[wire], dtype)
    if lossy and (policy or NumericsPolicy()).deterministic:
        actual = f"wire {wire} of {dtype} under a deterministic policy"
        allowed = f"no wire, one that holds every {dtype}, or deterministic = 0"
        raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, _ALL_REDUCE, actual, allowed)
    require_operator(op, dtype, _ALL_REDUCE)
    tree = descriptors[0].reduction_order if descriptors else None
    if tree is not None:
        tree.require_leaves(len(buffers))
    return reduced(op, buffers, None if tree is None else [(tree, slice(None))])


def require_operator(op: str, dtype: DType, function: str) -> None:
    """Raise `Failure` with TESS_ERR_UNSUPPORTED for an operator that a dtype does not have (AMB-RT-28, AMB-RT-57)."""
    if (instead := alternative(op, dtype)) is not None:
        raise unsupported(function, f"{op} of {dtype}", instead)


def _require_agreement(buffers: Sequence[Array], op: str, descriptors: Sequence[Descriptor] | None) -> None:
    if op not in get_args(Operator):
        allowed = " or ".join(get_args(Operator))
        raise invalid(_ALL_REDUCE, f"operator {shown(op)}", allowed)
    if not buffers:
        raise invalid(_ALL_REDUCE, "no rank takes part", "one buffer of each rank")
    for rank, buffer in enumerate(buffers):
        if (buffer.dtype, buffer.shape) != (buffers[0].dtype, buffers[0].shape):
            actual = f"rank {rank} has {buffer.dtype}{list(buffer.shape)}"
            expected = f"{buffers[0].dtype}{list(buffers[0].shape)}, as rank 0 does"
            raise mismatch(_ALL_REDUCE, actual, expected)
    if descriptors is None:
        return
    if len(descriptors) != len(buffers):
        actual = f"{len(descriptors)} descriptors of {len(buffers)} ranks"
        raise invalid(_ALL_REDUCE, actual, "one of each rank")
    for rank, descriptor in enumerate(descriptors):
        if descriptor != descriptors[0]:
            actual = f"rank {rank} has another determinism descriptor than rank 0"
            raise Failure(
                Status.TESS_ERR_DETERMINISM_VIOLATION, _ALL_REDUCE, actual, "the same descriptor on every rank"
            )


# What each rank of a group has after a collective (runtime spec 4.6; AMB-RT-02, AMB-RT-04, AMB-RT-57).


def combine(
    collective: str,
    buffers: Sequence[Array],
    *,
    op: Any = None,
    root: int | None = None,
    policy: NumericsPolicy | None = None,
    descriptor: Descriptor | None = None,
) -> list[Array]:
    """The flat buffers of all ranks of a group afterwards, in order of the axis coordinate. Raises `Failure`.

    A reduce-scatter gives each the whole combination, of which its own share counts.
    """
    ranks, count = len(buffers), buffers[0].values.size
    if collective == "broadcast":
        assert root is not None, "a broadcast has a root"
        return broadcast(buffers, root)
    if collective == "all_gather":
        return all_gather([Array(x.dtype, x.values[share_of(count, rank, ranks)]) for rank, x in enumerate(buffers)])
    descriptors = None if descriptor is None else [descriptor] * ranks
    return [all_reduce(buffers, op, policy=policy, descriptors=descriptors)] * ranks


# Stage one of a hierarchical collective: partial values of warps and blocks of a device (COLL-04.4-01; AMB-COLL-66).
#
# A device brings a partial value of each warp of each block. Under deterministic the warps of a block are combined
# first, then the blocks of a device, each along adjacent pairs; then devices, as the algorithm has it. Under strict
# the order is the canonical tree over all partial values. Nothing is rounded between stages, and stage one sends
# nothing.


ALGORITHM = "hierarchical"


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
        actual = f"partial values with algorithm {name!r}"
        raise unsupported(operation, actual, f"algorithm {ALGORITHM!r}")
    if travels:
        raise unsupported(operation, "partial values over a wire or by a seed", "neither")


def partial_values(operation: str, buffers: Sequence[Array], partials: Sequence[int]) -> list[Array]:
    """The partial values of all devices, in order of device, block and warp.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a buffer that does not begin with axes of blocks and warps.
    """
    blocks, warps = partials
    for rank, buffer in enumerate(buffers):
        if buffer.shape[:2] != (blocks, warps):
            actual = f"rank {rank} has {buffer.dtype}{list(buffer.shape)}"
            expected = f"[{blocks}, {warps}, ...], a partial value of each warp of each block"
            raise invalid(operation, actual, expected)
    places = [(block, warp) for block in range(blocks) for warp in range(warps)]
    return [Array(part.dtype, part.values[place]) for part in buffers for place in places]


def through_devices(tree: Tree, ranks: int, partials: Sequence[int]) -> Tree:
    """The tree over all partial values, whose innermost levels are warps and blocks, from one over devices."""
    blocks, warps = partials

    def block(number: int) -> str:
        return _tree_text(PAIRWISE, warps, lambda warp: str(number * warps + warp))

    def device(rank: int) -> str:
        return _tree_text(PAIRWISE, blocks, lambda number: block(rank * blocks + number))

    return Tree.parse(_tree_text(tree, ranks, device))


def _tree_text(tree: Tree, count: int, leaf: Callable[[int], str]) -> str:
    """The text of a tree over so many leaves, each of which may be a tree."""
    return tree.over(count).evaluate(leaf, lambda children: f"({' '.join(children)})", "c")


# Collectives over groups of ranks (collectives spec 2, 3; runtime spec 13).
#
# The order of combination, the wire, results and messages.


Values = npt.NDArray[Any]
Ranks = npt.NDArray[np.int64]

# In which order an algorithm combines the contributions to each share, found by following its messages.
#
# Under deterministic policies an algorithm has its own order, which `numerics.declared` tells; under strict ones
# every algorithm gives the bits of the canonical tree (AMB-RT-26, AMB-LANG-109). The order of an element depends on
# its place in its own tensor alone, not on chunks or on tensors that travel with it (AMB-COLL-29).


def order_of(
    name: str,
    ranks: int,
    count: int,
    element: int,
    per_node: int | None = None,
    partials: Sequence[int] | None = None,
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
    trees = _orders(maker(name), ranks, per_node or ranks)
    return trees if partials is None else tuple(through_devices(tree, ranks, partials) for tree in trees)


@lru_cache(maxsize=256)
def _orders(make: Maker, ranks: int, per_node: int) -> tuple[Tree, ...]:
    used = make(ranks, per_node)
    terms: list[list[Any]] = [[rank] * ranks for rank in range(ranks)]
    for step in used.combining:
        follow(step, terms)
    return tuple(Tree.from_json(_written(terms[owner][share])) for share, owner in enumerate(used.owners))


def follow(step: Step, terms: list[list[Any]]) -> None:
    """Carry the messages of a step out on what each rank holds of each share; two that are combined become a list."""
    sent = [terms[message.source][message.first : message.last] for message in step]
    for message, shares in zip(step, sent, strict=True):
        for share, value in enumerate(shares, start=message.first):
            own = terms[message.target][share]
            terms[message.target][share] = [own, value] if message.combines else value


def _written(order: Any) -> Any:
    """The order as JSON, or as a text where it is deep: a ring of many ranks is one long fold."""
    tokens: list[str] = []
    waiting = [order]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += [")", part[1], part[0], "("]
        else:
            tokens.append(str(part))
    return order if isinstance(order, int) else " ".join(tokens).replace("( ", "(").replace(" )", ")")


# The same orders without a message followed: one tree, whose leaves are other ranks from share to share.
#
# A tree for each share of thousands of ranks has millions of leaves. `run` evaluates the tree of share 0 alone, over
# rows in which each share has its own ranks; a test holds the trees to those of `orders`.

PATTERNS_FROM = 32
"""Ranks from which on `run` combines by the pattern of an algorithm; of fewer, by the tree of each share."""


RankOf = Callable[[int, Ranks], Ranks]
"""From a leaf of the tree of share 0, and shares: the ranks in its place in their trees."""


class Pattern(NamedTuple):
    """The tree of share 0, and how those of other shares differ from it; None where all shares have one tree."""

    tree: Tree
    rank_of: RankOf | None
    leaves: int
    """The number of leaves, at least that of ranks; a leaf without a rank changes nothing."""


def pattern(name: str, ranks: int, per_node: int | None = None) -> Pattern | None:
    """Return the pattern of the orders of an algorithm among two ranks or more, or None where it has none."""
    inside = per_node or ranks
    nodes, single = ranks // inside, [[rank] for rank in range(ranks)]
    match name:
        case "ring":
            spine = [token for rank in (0, *range(ranks - 1, 1, -1)) for token in ("(", rank)]
            return Pattern(_tree([*spine, 1, *")" * (ranks - 1)]), lambda leaf, share: (leaf + share) % ranks, ranks)
        case "direct":
            return Pattern(_tree(_from_those_behind(0, ranks)), lambda leaf, share: (leaf + share) % ranks, ranks)
        case "hierarchical":
            rows = [_from_those_behind(node * inside, inside) for node in range(nodes)]
            return Pattern(_tree(_binomial(rows, powers(nodes))), partial(_within_its_node, nodes, inside), ranks)
        case "tree":
            return Pattern(_tree(_binomial(single, powers(ranks))), None, ranks)
        case "halving_doubling":
            power = 1 << ranks.bit_length() - 1
            pairs: list[Sequence[Token]] = [["(", rank, power + rank, ")"] for rank in range(power)]
            owners = np.array(algorithm(name, ranks).owners)
            tree = _tree(_binomial(single if power == ranks else pairs, powers(power)[::-1]))
            return Pattern(tree, partial(_partner, power, owners), power if power == ranks else 2 * power)
    return None


def _within_its_node(nodes: int, inside: int, leaf: int, share: Ranks) -> Ranks:
    """Return the ranks in the place of a leaf, of which each node has its own, owned in turn."""
    return leaf - leaf % inside + (leaf % inside + share // nodes) % inside


def _partner(power: int, owners: Ranks, leaf: int, share: Ranks) -> Ranks:
    """Return the ranks in the place of a leaf, by the owner of the share; those from a power on hand all to others."""
    return leaf - leaf % power + (leaf % power ^ owners[share])


def _tree(tokens: Sequence[Token]) -> Tree:
    return Tree("explicit", 0, tuple(tokens))


def _from_those_behind(first: int, ranks: int) -> list[Token]:
    """Return the fold of a rank and of those behind it around a circle, the nearest first."""
    behind = [token for rank in range(first + ranks - 1, first, -1) for token in (rank, ")")]
    return [*"(" * (ranks - 1), first, *behind]


def _binomial(rows: Sequence[Sequence[Token]], distances: Sequence[int]) -> Sequence[Token]:
    """Return the tree in which every row takes in the one at a distance from it, one distance after another."""
    terms = dict(enumerate(rows))
    for distance in distances:
        for place in [place for place in terms if place & distance == 0 and place + distance in terms]:
            terms[place] = ["(", *terms[place], *terms.pop(place + distance), ")"]
    return terms[0]


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
        actual = f"wire {wire} under {level}"
        allowed = f"level fast, no wire, or one that holds every {buffers[0].dtype}"
        raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, operation, actual, allowed)
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
    dtype = inputs[0].dtype
    wide = [cast(array, dtype.accumulator) for array in inputs]
    results = collective([_rounded(operation, array, compression) for array in wide])
    if operation in ("all_reduce", "reduce_scatter"):
        results = [_rounded(operation, result, compression) for result in results]
    return [cast(result, dtype) for result in results]


def _rounded(operation: str, x: Array, compression: Compression) -> Array:
    """Return a tensor as it arrives at the other end of the wire, in its own dtype."""
    return compress(operation, x, compression).restored


# What each rank has after a collective over groups of ranks, and the messages by which it travelled.
#
# Collectives spec 2.1, 2.2, 3.1; language spec 9; runtime spec 4.6. Values are combined in the accumulator over a
# tree and rounded once, so that how a collective travels never changes what it computes (AMB-COLL-04, AMB-COLL-29).


OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")


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
    `wire`, `qscheme` and `block` say in what form data travel (`wire.over_wire`). With a `seed` messages are carried
    out on the data, in an order that it chooses (`delivery`), which changes no bit. `partials` are the blocks of a
    device and the warps of a block, whose partial values a buffer holds along its first two axes (`stage_one`).

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
    travelled: list[Callable[[], list[Sent]]] = []
    for group in _groups(groups, len(buffers)):
        inputs = [buffers[rank] for rank in group]
        used = algorithm(name, len(group), per_node)
        _require_fit(operation, used, inputs, root)
        ordered = level != "strict" and op in ("sum", "prod", "mean")
        shared = _shared_pattern(op, inputs, name, per_node) if ordered and partials is None else None
        trees: Sequence[Tree] = (shared.tree if shared else PAIRWISE,) * len(group)
        if ordered and shared is None:
            trees = orders(name, len(group), per_node, partials)
        inputs = inputs if partials is None else partial_values(operation, inputs, partials)
        count = sum(array.values.size for array in inputs) if operation == "all_gather" else inputs[0].values.size
        collective: Callable[[Sequence[Array]], Sequence[Array]]
        collective = partial(_afterwards, operation, op=op, root=root or 0, trees=trees)
        if shared is not None and shared.rank_of is not None:
            collective = partial(_by_leaf, collective, shared.rank_of, shared.leaves, op)
        travelled.append(partial(_sent, operation, used, group, root or 0, count, chunk))
        if seed is not None:
            moved = _sent(operation, used, range(len(group)), root or 0, count, chunk)
            reduce = REDUCTIONS[op].reduce if op else None
            collective = partial(delivered, operation, sent=moved, op=op, reduce=reduce, level=level, seed=seed)
        results = over_wire(operation, inputs, compression, collective) if compression else collective(inputs)
        outputs.update(zip(group, results, strict=True))
    return Result([outputs[rank] for rank in range(len(buffers))], lambda: [m for steps in travelled for m in steps()])


def _shared_pattern(op: str | None, inputs: Sequence[Array], name: str, per_node: int | None) -> Pattern | None:
    """Return the pattern of an algorithm among many ranks, or None where a leaf without a rank could change a value."""
    found = pattern(name, len(inputs), per_node) if len(inputs) >= PATTERNS_FROM else None
    has_neutral = op in ("sum", "prod") and inputs[0].dtype.kind != "complex"
    return found if found is None or has_neutral or found.leaves == len(inputs) else None


def _afterwards(
    operation: str, inputs: Sequence[Array], op: str | None, root: int, trees: Sequence[Tree]
) -> Sequence[Array]:
    """Return the results of a group's ranks, in their order; there is a tree for the share of each rank."""
    ranks, shape = len(trees), inputs[0].shape
    flat = [Array(array.dtype, array.values.reshape(-1)) for array in inputs]
    if operation == "broadcast":
        return broadcast(inputs, root)
    if operation == "all_gather":
        return all_gather(flat)
    if operation == "all_to_all":
        return [Array(array.dtype, array.values.reshape(shape)) for array in all_to_all(flat)]
    assert op is not None, "required before"
    order = [(tree, share_of(flat[0].values.size, rank, ranks)) for rank, tree in enumerate(trees)]
    order = [(trees[0], slice(None))] if all(tree == trees[0] for tree in trees) else order
    return (reduce_scatter if operation == "reduce_scatter" else reduce_everywhere)(inputs, op, order, ranks)


def _by_leaf(
    collective: Callable[[Sequence[Array]], Sequence[Array]],
    rank_of: RankOf,
    leaves: int,
    op: str | None,
    inputs: Sequence[Array],
) -> Sequence[Array]:
    """Return the results of a collective over leaves of a pattern, each with the shares of the ranks in its place."""
    ranks, dtype, shape = len(inputs), inputs[0].dtype, inputs[0].shape
    count = inputs[0].values.size
    neutral = np.full(count, 1 if op == "prod" else -0.0).astype(dtype.carrier)
    every = np.stack([*(array.values.reshape(-1) for array in inputs), neutral])
    sizes = [share_of(count, share, ranks) for share in range(ranks)]
    share = np.concatenate([np.full(interval.stop - interval.start, rank) for rank, interval in enumerate(sizes)])
    flat, places = every.reshape(-1), np.arange(count)
    sources = [np.minimum(rank_of(leaf, share), ranks) for leaf in range(leaves)]  # integers
    return collective([Array(dtype, flat.take(chosen * count + places).reshape(shape)) for chosen in sources])


def messages(
    operation: str,
    name: str,
    ranks: int,
    count: int,
    *,
    root: int = 0,
    per_node: int | None = None,
    chunk: int | None = None,
) -> list[Sent]:
    """The messages of a group in elements of a buffer of `count`, cut where its chunks end. Raises `Failure`."""
    return _sent(operation, algorithm(name, ranks, per_node), range(ranks), root, count, chunk)


def _sent(
    operation: str, used: Algorithm, group: Sequence[int], root: int, count: int, chunk: int | None
) -> list[Sent]:
    """The messages of a group in elements, cut where chunks of the buffer end."""
    starts = [share_of(count, share, used.ranks).start for share in range(used.ranks + 1)]
    transfers: list[Sent] = []
    for number, step in enumerate(steps(operation, used, root)):
        transfers += [
            Sent(number, group[source], group[target], starts[first], starts[last] - starts[first], combines)
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
    if groups is None:
        return [range(ranks)]
    if sorted(rank for group in groups for rank in group) != list(range(ranks)) or not all(groups):
        raise invalid("collective", f"groups {shown(groups)}", f"each of 0 to {ranks - 1} once")
    return groups


def _require_operator(operation: str, op: str | None, buffers: Sequence[Array]) -> None:
    """An operator where values are combined, and none elsewhere; one that the dtypes have."""
    combines = operation in ("all_reduce", "reduce_scatter")
    if combines != (op is not None):
        allowed = "no operator" if op is not None else f"one of {', '.join(REDUCTIONS)}"
        actual = "no operator" if op is None else f"operator {shown(op)}"
        raise invalid(operation, actual, allowed)
    if op is None:
        return
    require_known(operation, "operator", op, tuple(REDUCTIONS))
    for buffer in buffers:
        require_operator(op, buffer.dtype, operation)


def _require_fit(operation: str, used: Algorithm, inputs: Sequence[Array], root: int | None) -> None:
    """Buffers of one dtype and shape, shares of a whole where they are gathered, a root where there is one."""
    ranks, first = len(inputs), inputs[0]
    total = sum(array.values.size for array in inputs)
    for rank, buffer in enumerate(inputs):
        own = share_of(total, rank, ranks)
        expected_shape: object = (own.stop - own.start,) if operation == "all_gather" else first.shape
        shape: object = (buffer.values.size,) if operation == "all_gather" else buffer.shape
        if (buffer.dtype, shape) != (first.dtype, expected_shape):
            actual = f"rank {rank} has {buffer.dtype}{list(buffer.shape)}"
            expected = f"{first.dtype}{list(expected_shape)}"  # type: ignore[call-overload]
            raise mismatch(operation, actual, expected)
    if (operation == "broadcast") != (root is not None) or not 0 <= (root or 0) < ranks:
        allowed = f"0 to {ranks - 1} for a broadcast, none for the others"
        raise invalid(operation, f"root {shown(root)}", allowed)
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
    sent = []
    received = Counter(target for _, target in pairs)
    for source, target in pairs:
        if not (0 <= source < len(buffers) and 0 <= target < len(buffers)) or source == target:
            expected = f"two different ranks of 0 to {len(buffers) - 1}"
            raise invalid(_SEND_RECV, f"the pair {shown([source, target])}", expected)
        if received[target] > 1:
            raise invalid(_SEND_RECV, f"{received[target]} sends to rank {target}", "one")
        payload, buffer = buffers[source], buffers[target]
        if (payload.dtype, payload.shape) != (buffer.dtype, buffer.shape):
            actual = f"rank {source} sends {payload.dtype}{list(payload.shape)}"
            expected = f"{buffer.dtype}{list(buffer.shape)}, which rank {target} receives"
            raise mismatch(_SEND_RECV, actual, expected)
        outputs[target] = payload
        count = payload.values.size
        length = chunk or max(count, 1)
        sent += [Sent(0, source, target, at, min(length, count - at), False) for at in range(0, count, length)]
    return Result(outputs, lambda: sent)
