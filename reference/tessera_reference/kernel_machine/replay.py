"""Launches that repeat, as a fast path beside running a kernel instruction by instruction (spec sections 7, 8).

In most kernels no address, condition or bound depends on the data. The third launch of such a kernel on arguments of
the same shapes is recorded. The kernel runs with all its checks, but a number represents every element of data, in the
bits of the carrier. Instructions that move elements move numbers; each that computes is recorded, and its results get
new numbers. A `Plan` is the result: which operation takes which elements. Operations of one kind that do not wait for
each other are one call. A product that continues a sum, or shares rows and columns with others, is part of a larger
product. Every element comes from the same operation on the same elements, so its bits are the same. Kernels that fail,
or take an address or a choice from data, are not recorded. Neither are those of too many elements, or whose elements
have no space for a number (complex, bool, int8). A replay in which an operation fails, such as a division by zero, is
dropped. The launch then runs without a plan, which checks and reports it. TESSERA_PLAIN_NUMERICS=1 disables plans;
`tests/tile/test_replay.py` holds both to the same bits and faults.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..ir.types import Memref, Pointer, Scalar
from ..numerics.array import Array
from ..numerics.formats import DType, NumericsFailure
from ..numerics.matmul import matmul
from .block import BlockState, Code, Program, Step, identity
from .storage import KernelFault, Values

Ids: TypeAlias = npt.NDArray[Any]
"""The numbers of elements; number 0 represents the values of inactive lanes."""

Carrier: TypeAlias = np.dtype[Any]

MOST_ELEMENTS = 1 << 25
"""The most elements of a recording: results of operations and terms of products."""

MOST_PLACES = 1 << 22
"""The most elements whose places a plan lists: 32 MiB."""

EVERY_LANE: Any = SimpleNamespace(mask=None, active=slice(None), spread=lambda values: values)
"""The block of an operation that computes all its lanes."""


class DependsOnData(KernelFault):
    """The launch cannot be recorded."""


class Traced(Array):
    """Elements of data, held as numbers in the bits of the carrier."""

    __slots__ = ()

    @property
    def ids(self) -> Ids:
        """The numbers."""
        return _ids(self)


def _numbering(dtype: DType) -> Carrier:
    """Return the carrier of a dtype. Raises `DependsOnData` where it has no space for a number."""
    if dtype.carrier.kind not in "fi" or dtype.carrier.itemsize < 4:
        raise DependsOnData
    return dtype.carrier


def _ids(array: Array) -> Ids:
    return array.values.view(f"u{array.dtype.carrier.itemsize}")


def _index(ids: Ids) -> Ids:
    """Return the numbers in numpy's own index type, since others take several times as long."""
    return ids.astype(np.int64)


@dataclass(frozen=True)
class Node:
    """An operation on rows of elements; each operand is in parts, which for products follow each other along k."""

    kind: Any
    call: Callable[..., Array]
    dtypes: tuple[DType, ...]
    operands: tuple[tuple[Ids, ...], ...]
    dtype: DType
    result: Ids

    def only(self, rows: npt.NDArray[np.bool_]) -> Node:
        """Return the operation on some of its rows."""
        operands = tuple(tuple(part[rows] for part in parts) for parts in self.operands)
        return replace(self, operands=operands, result=self.result[rows])

    def parts(self) -> Iterator[tuple[Carrier, Ids]]:
        """Yield the numbers of all operands with their carriers."""
        for dtype, parts in zip(self.dtypes, self.operands, strict=True):
            for part in parts:
                yield dtype.carrier, part


class Recorder:
    """A recorder of the operations of one launch."""

    def __init__(self) -> None:
        self.sizes: dict[Carrier, int] = defaultdict(lambda: 1)
        self.nodes: list[Node] = []
        self.constants: list[tuple[Array, Traced]] = []
        self.known: dict[int, Traced] = {}
        self.products: dict[tuple[Carrier, int], Node] = {}
        self.factors: dict[int, Ids] = {}
        self.may_fail: list[Traced] = []
        self.room = MOST_ELEMENTS

    def fresh(self, dtype: DType, shape: tuple[int, ...]) -> Traced:
        """Return elements with new numbers. Raises `DependsOnData` where there is no space for them."""
        carrier, count = _numbering(dtype), prod(shape)
        self.room -= count
        if self.room < 0:
            raise DependsOnData
        first = self.sizes[carrier]
        self.sizes[carrier] += count
        return Traced(dtype, np.arange(first, first + count, dtype=f"u{carrier.itemsize}").view(carrier).reshape(shape))

    def numbered(self, array: Array) -> Traced:
        """Return an array of numbers; one that does not depend on data becomes constants."""
        if isinstance(array, Traced):
            return array
        if id(array) not in self.known:
            self.known[id(array)] = self.fresh(array.dtype, array.shape)
            self.constants.append((array, self.known[id(array)]))
        return self.known[id(array)]

    def program(self, program: Program) -> Program:
        """Return the program that records itself."""
        return replace(program, code=self._code(program.code), product=self.product, alike=self.alike)

    def _code(self, code: Code) -> Code:
        return replace(code, steps=tuple(map(self._step, code.steps)))

    def _step(self, step: Step) -> Step:
        return step._replace(call=partial(self.run, step), regions=tuple(map(self._code, step.regions)))

    def run(self, step: Step, block: BlockState, *operands: Any) -> Any:
        """Run or record an instruction. Raises `DependsOnData`."""
        is_data = [isinstance(operand, Traced) for operand in operands]
        moved: tuple[int, ...] = getattr(step.instruction.operation, "moved", ())
        accesses = any(isinstance(value.type, Memref | Pointer) for value in step.instruction.operands)
        if step.regions:
            if any(is_data[:3]):  # a condition, or bounds
                raise DependsOnData
            return step.call(block, *operands)
        if not moved and not accesses and any(is_data):
            return self.computed(step, block, *operands)
        if any(one and place not in moved for place, one in enumerate(is_data)):
            raise DependsOnData
        numbers = bool(moved) and (accesses or any(is_data) or operands[moved[0]].rank > 1)
        if numbers:
            operands = tuple(self.numbered(x) if place in moved else x for place, x in enumerate(operands))
        result = step.call(block, *operands)
        return Traced(result.dtype, result.values) if isinstance(result, Array) and (numbers or accesses) else result

    def computed(self, step: Step, block: BlockState, *operands: Array) -> Array:
        """Return the results of an operation of the active lanes. Raises `DependsOnData`."""
        result, *more = (value.type for value in (*step.instruction.results, *step.instruction.operands))
        if len(step.results) != 1 or not isinstance(result, Scalar) or not all(isinstance(x, Scalar) for x in more):
            raise DependsOnData
        ids = [block.of_active(self.numbered(operand).ids) for operand in operands]
        output = self.fresh(result.dtype, ids[0].shape)
        if result.dtype.kind == "int" and not step.is_total:
            self.may_fail.append(output)
        kind, call = identity(step.instruction.operation), partial(step.call, EVERY_LANE)
        dtypes, parts = tuple(operand.dtype for operand in operands), tuple((number,) for number in ids)
        self.nodes.append(Node(kind, call, dtypes, parts, result.dtype, output.ids))
        return Traced(output.dtype, block.spread(output.values))

    def product(self, a: Array, b: Array, out: DType, *, addend: Array, accumulator: DType) -> Array:
        """Return products of matrices, by `matmul`; one that continues the sum of another takes over its terms."""
        dtypes, start = (a.dtype, b.dtype, addend.dtype), _ids(addend)
        rows: tuple[Ids, ...] = (self.shared(_ids(a)),)
        columns: tuple[Ids, ...] = (self.shared(_ids(b)),)
        starts: tuple[Ids, ...] = (start,)
        before = self.products.get((addend.dtype.carrier, int(start.flat[0])))
        continues = before is not None and before.dtypes == dtypes and np.array_equal(before.result, start)
        if before and continues and addend.dtype == accumulator == out == a.dtype.accumulator:
            rows, columns, starts = before.operands[0] + rows, before.operands[1] + columns, before.operands[2]
        output = self.fresh(out, addend.shape)
        call = partial(_product, out, accumulator)
        node = Node((out, accumulator), call, dtypes, (rows, columns, starts), out, output.ids)
        self.nodes.append(node)
        self.products[out.carrier, int(output.ids.flat[0])] = node
        return Array(out, output.values)

    def shared(self, part: Ids) -> Ids:
        """Return the same numbers, in one array for all products of them."""
        factor = self.factors.setdefault(hash(part.tobytes()), part)
        if factor is part:
            self.room -= part.size
        return factor if np.array_equal(factor, part) else part

    def alike(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Return two values between which lanes choose: both of numbers, or neither."""
        if isinstance(a, Traced) or isinstance(b, Traced):
            return self.numbered(a), self.numbered(b)
        return a, b


def _product(out: DType, accumulator: DType, a: Array, b: Array, addend: Array) -> Array:
    return matmul(a, b, out, addend=addend, accumulator=accumulator)


@dataclass(frozen=True)
class Selection:
    """Elements of a pool: `first` and others in steps, or those at `places`."""

    dtype: DType
    first: int
    shape: tuple[int, ...]
    step: int = 1
    places: Ids | None = None

    def of(self, pools: dict[Carrier, Values]) -> Array:
        """Return the elements."""
        pool = pools[self.dtype.carrier]
        if self.places is not None:
            return Array(self.dtype, pool.take(self.places))
        end = self.first + self.step * prod(self.shape)
        return Array(self.dtype, pool[self.first : end : self.step].reshape(self.shape))


@dataclass(frozen=True)
class Call:
    """One call of a plan, whose results follow the elements that the pool already has."""

    call: Callable[..., Array]
    operands: tuple[Selection, ...]
    result: Selection


class Plan:
    """A recorded launch: the elements of each carrier in one pool, which begins with inputs and constants."""

    def __init__(self, recorder: Recorder, inputs: Sequence[Traced], outputs: Sequence[Array]) -> None:
        self.ends: dict[Carrier, int] = dict.fromkeys(recorder.sizes, 1)
        self._places: dict[Carrier, Ids] = {c: np.zeros(size, np.int64) for c, size in recorder.sizes.items()}
        self._room = MOST_PLACES
        nodes, live = _needed(recorder, outputs)
        self.inputs = [self._placed(array.dtype, array.ids) for array in inputs]
        self.constants = []
        for array, traced in recorder.constants:
            kept = live[array.dtype.carrier][_index(traced.ids)]
            self.constants.append((self._placed(array.dtype, traced.ids[kept]), array.values[kept]))
        self.calls = [call for group in _levels(recorder, nodes) for call in self._calls(group)]
        self.outputs = [self._selected(array.dtype, _ids(array)) for array in outputs]
        del self._places, self._room

    def run(self, arguments: Sequence[Any]) -> tuple[Array, ...] | None:
        """Return the buffers that the launch leaves on these arguments; None where an operation fails."""
        pools = {carrier: np.empty(end, carrier) for carrier, end in self.ends.items()}
        for pool in pools.values():
            pool[0] = 0
        arrays = [array.values for array in arguments if isinstance(array, Array)]
        for where, values in (*self.constants, *zip(self.inputs, arrays, strict=True)):
            self._put(pools, where, values)
        try:
            with np.errstate(all="ignore"):
                for step in self.calls:
                    result = step.call(*[operand.of(pools) for operand in step.operands])
                    self._put(pools, step.result, result.values)
        except NumericsFailure:
            return None
        return tuple(Array(result.dtype, np.array(result.of(pools).values)) for result in self.outputs)

    def _put(self, pools: dict[Carrier, Values], where: Selection, values: Values) -> None:
        pools[where.dtype.carrier][where.first : where.first + values.size] = values.reshape(-1)

    def _placed(self, dtype: DType, ids: Ids) -> Selection:
        """Put elements at the end of their pool."""
        first = self.ends[dtype.carrier]
        self.ends[dtype.carrier] += ids.size
        self._places[dtype.carrier][_index(ids)] = np.arange(first, first + ids.size).reshape(ids.shape)
        return Selection(dtype, first, ids.shape)

    def _selected(self, dtype: DType, ids: Ids) -> Selection:
        places = self._places[dtype.carrier][_index(ids)]
        first, second = (int(places.flat[place % places.size]) if places.size else 0 for place in (0, 1))
        step = second - first or 1
        end = first + step * places.size
        if step > 0 and np.array_equal(places.reshape(-1), np.arange(first, end, step)):
            return Selection(dtype, first, places.shape, step)
        self._room -= places.size
        if self._room < 0:
            raise DependsOnData
        return Selection(dtype, first, places.shape, step, places)

    def _calls(self, group: Sequence[Node]) -> Iterator[Call]:
        """Yield the calls for operations of one kind that do not wait for each other."""
        first, merged = group[0], _merged_products(group)
        if first.result.ndim == 1:
            columns = zip(*[(*(part for (part,) in node.operands), node.result) for node in group], strict=True)
            every = [np.concatenate(column) for column in columns]
            order = self._places[first.dtypes[0].carrier][_index(every[0])].argsort(kind="stable")
            merged = iter([tuple(ids[order] for ids in every)])
        for *operands, results in merged:
            selections = tuple(map(self._selected, first.dtypes, operands))
            yield Call(first.call, selections, self._placed(first.dtype, results))


def _needed(recorder: Recorder, outputs: Sequence[Array]) -> tuple[list[Node], dict[Carrier, npt.NDArray[np.bool_]]]:
    """Return the rows of operations that may fail or that the outputs depend on, and a mask of these elements."""
    live = {carrier: np.zeros(size, bool) for carrier, size in recorder.sizes.items()}
    for array in (*outputs, *recorder.may_fail):
        live[_numbering(array.dtype)][_index(_ids(array))] = True
    nodes: list[Node] = []
    seen: set[int] = set()
    for node in reversed(recorder.nodes):
        rows = np.asarray(live[node.dtype.carrier][_index(node.result)].reshape(len(node.result), -1).any(axis=1))
        if rows.any():
            nodes.append(node if rows.all() else node.only(rows))
            for carrier, ids in nodes[-1].parts():
                if id(ids) not in seen:
                    seen.add(id(ids))
                    live[carrier][_index(ids)] = True
    return nodes[::-1], live


def _levels(recorder: Recorder, nodes: Sequence[Node]) -> list[list[Node]]:
    """Return operations grouped by kind, each group after all operations for which it waits."""
    levels = {carrier: np.zeros(size, np.int64) for carrier, size in recorder.sizes.items()}
    latest: dict[int, int] = {}
    groups: dict[Any, list[Node]] = {}
    for node in nodes:
        for carrier, ids in node.parts():
            if id(ids) not in latest:
                latest[id(ids)] = int(levels[carrier][_index(ids)].max())
        level = 1 + max(latest[id(ids)] for _, ids in node.parts())
        levels[node.dtype.carrier][_index(node.result)] = level
        terms = sum(part.shape[-1] for part in node.operands[0]) if node.result.ndim == 3 else 0
        groups.setdefault((level, node.kind, node.dtypes, node.result.shape[1:], terms), []).append(node)
    return [groups[key] for key in sorted(groups, key=lambda key: key[0])]


def _merged_products(group: Sequence[Node]) -> Iterator[tuple[Ids, ...]]:
    """Yield products as fewer, larger ones, of all that share rows and columns, in the order of their elements.

    Yields operands and results, [products, m, k], [products, k, n], [products, m, n] and again [products, m, n].
    """
    numbers: dict[bytes, int] = {}
    distinct_numbers: dict[int, list[int]] = {}

    def distinct(part: Ids) -> list[int]:
        """Return a number for each matrix, the same for equal ones."""
        if id(part) not in distinct_numbers:
            distinct_numbers[id(part)] = [numbers.setdefault(matrix.tobytes(), len(numbers)) for matrix in part]
        return distinct_numbers[id(part)]

    pairs: dict[Any, dict[Any, tuple[Node, int]]] = defaultdict(dict)
    starts: dict[Any, int] = defaultdict(int)
    for node in group:
        rows, columns = (zip(*map(distinct, parts), strict=True) for parts in node.operands[:2])
        for i, (row, column) in enumerate(zip(rows, columns, strict=True)):
            starts[row, column] += 1  # products of the same operands have several starts
            pairs[row][column, starts[row, column]] = (node, i)

    def first(place: tuple[Node, int], operand: int) -> int:
        return int(place[0].operands[operand][0][place[1]].flat[0])

    together: dict[Any, list[Any]] = defaultdict(list)
    for row, by_column in pairs.items():
        together[tuple(sorted(by_column, key=lambda column: first(by_column[column], 1)))].append(row)
    batches: dict[tuple[int, int], list[list[list[tuple[Node, int]]]]] = defaultdict(list)
    for shared, members in together.items():
        members.sort(key=lambda row: first(pairs[row][shared[0]], 0))
        batches[len(members), len(shared)].append([[pairs[row][column] for column in shared] for row in members])

    def joined(places: Sequence[tuple[Node, int]], operand: int, along: int, across: int) -> Ids:
        wholes = [np.concatenate([part[i] for part in node.operands[operand]], axis=along) for node, i in places]
        return np.concatenate(wholes, axis=across)

    for batch in batches.values():
        yield (
            np.stack([joined([line[0] for line in square], 0, 1, 0) for square in batch]),
            np.stack([joined(square[0], 1, 0, 1) for square in batch]),
            np.stack([np.concatenate([joined(line, 2, 0, 1) for line in square]) for square in batch]),
            np.stack(
                [
                    np.concatenate([np.concatenate([node.result[i] for node, i in line], axis=1) for line in square])
                    for square in batch
                ]
            ),
        )
