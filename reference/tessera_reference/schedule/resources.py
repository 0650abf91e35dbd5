"""The resources of a nest: shared memory for its stages, registers of a thread (section 11; LANG-11-08, -09).

Shared memory is exact: the buffers of every staged operand, one for each stage of the pipeline. Registers are an
estimate (AMB-LANG-68), for the simulated targets alone: a thread holds its part of an output tile in accumulators, the
values of the other operations that it needs at once, and a few registers for addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..graph.matmul import MatMul
from ..ir.module import Value
from ..ir.targets import Target
from ..ir.types import Tensor, dtype_of
from ..numerics.formats import DType
from .defaults import THREADS
from .kinds import is_elementwise
from .nests import Nest

ADDRESSES = 16
"""Registers for addresses and counters."""


def shared_bytes(nest: Nest) -> int:
    """The bytes of shared memory that a block of the nest takes."""
    return sum(buffer for _, buffer in buffers(nest))


def buffers(nest: Nest) -> Iterator[tuple[Value, int]]:
    """Each read of a staged operand, and the bytes of all its buffers, each of which begins aligned."""
    for role, value in reads(nest):
        if value in nest.staged:
            held = dtype_of(value.type)
            assert held is not None
            size = prod(tile_of(nest, role, value)) * held.storage_bytes
            yield value, -(-size // nest.align) * nest.align * (nest.depth if role != "epilogue" else 1)


def reads(nest: Nest) -> tuple[tuple[str, Value], ...]:
    """Which tiles are read from memory: `left` and `right` of a product, `epilogue`, `rows`, `map`."""
    lead, inside = nest.lead, {value for each in nest.instructions for value in each.results}
    found = []
    if isinstance(lead.operation, MatMul):
        found += [("left", lead.operands[0]), ("right", lead.operands[1])]
    elif nest.kind == "rows":
        found += [("rows", lead.operands[0])]
    others = [value for each in nest.operations[len(found) > 0 :] for value in each.operands if value not in inside]
    role = "epilogue" if found else "map"
    return (*found, *((role, value) for value in dict.fromkeys(others)))


def tile_of(nest: Nest, role: str, value: Value) -> tuple[int, int]:
    """The extents of a buffer for a read."""
    m, n, k = nest.tile
    if role == "left":
        return m, k
    if role == "right":
        return k, n
    shape = value.type.shape if isinstance(value.type, Tensor) else ()
    if role != "rows" and is_elementwise(nest.operations[-1].operation):  # broadcast operands are smaller
        rows, columns = (1, 1, *shape)[-2:]
        return (1 if rows == 1 else m), (1 if columns == 1 else n)
    return m, n


def registers(nest: Nest, target: Target) -> int:
    """The 32-bit registers that a thread is estimated to need."""
    m, n, _ = nest.tile
    share = -(-m * n // min(THREADS, target.threads_per_block))
    lead = nest.lead.operation
    accumulators = share * words(lead.accum) if isinstance(lead, MatMul) else 0
    gathered = share * words(_held(nest.lead.operands[0])) if nest.kind == "rows" else 0
    return accumulators + gathered + at_once(nest) + ADDRESSES


def at_once(nest: Nest) -> int:
    """The most registers that the values of one element take at a time."""
    last: dict[Value, int] = {}
    for position, each in enumerate(nest.instructions):
        last.update(dict.fromkeys((*each.operands, *each.results), position))
    live: set[Value] = set()
    most = 0
    for position, each in enumerate(nest.instructions):
        live.update(each.operands, each.results)
        most = max(most, sum(words(_held(value)) for value in live))
        live = {value for value in live if last[value] > position}
    return most


def words(held: DType) -> int:
    """The registers of one value."""
    return -(-held.bits // 32)


def _held(value: Value) -> DType:
    held = dtype_of(value.type)
    assert held is not None
    return held
