"""Memory, copies, barriers and shuffles of a kernel in the dialects of its vendor (LANG-08.2-07 to -09, -11, -12).

Row-major addresses are 32-bit arithmetic where offsets fit, else 64-bit. AMD has no asynchronous copies of this kind: a
copy is a load and a store to the LDS, which the next barrier makes visible, as on NVIDIA (AMB-LANG-225).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...ir.module import Instruction, Value
from ...ir.types import Memref, Scalar, Vector
from ...tile.copies import CopyAsync, CopyWait
from ...tile.memory import SharedAlloc
from ...tile.synchronization import ShuffleSync
from ..operations import comparisons, conversions, nvvm, pointers, rocdl
from .body import INT64, Body, Buffer, Number, Pair

LANE_BYTES = 4
"""ds_bpermute counts lanes in bytes, four for each."""


def extents_of(memref: Memref) -> tuple[int, ...]:
    """The shape of a memref, whose extents are numbers at this level."""
    return tuple(int(dim) for dim in memref.shape)


def allocated(body: Body, instruction: Instruction) -> Buffer:
    """A piece of shared memory, named after its value."""
    operation = instruction.operation
    assert isinstance(operation, SharedAlloc)
    memref = operation.returns
    shape, held = extents_of(memref), memref.dtype.storage
    name = f"shared{sum(isinstance(each.operation, pointers.AddressOf) for each in body.before)}"
    with body.within(body.before):
        pointer = body(pointers.AddressOf, global_name=name, elements=prod(shape), elem_type=held)
    return Buffer(pointer, shape, held, "shared")


def offset(body: Body, buffer: Buffer, indices: Sequence[Value]) -> Value:
    """The row-major offset of the element at some indices; of the first one without any."""
    total = body.index(0, buffer.index_dtype)
    for axis, index in enumerate(indices):
        total = body.plus(total, body.times(as_offset(body, buffer, index), prod(buffer.shape[axis + 1 :])))
    return total


def as_offset(body: Body, buffer: Buffer, index: Value) -> Value:
    """An index in the dtype of the buffer's offsets."""
    if buffer.index_dtype != INT64:
        return index
    known = body.number_of(index)
    return body(conversions.SExt, index, to=INT64) if known is None else body.index(known, INT64)


def address(body: Body, buffer: Buffer, at: Value) -> Value:
    """A pointer to the element at an offset."""
    if body.number_of(at) == 0:
        return buffer.pointer
    return body(pointers.GetElementPtr, buffer.pointer, at, elem_type=buffer.dtype)


def load(body: Body, buffer: Buffer, at: Value, held: Scalar | Vector) -> Value:
    """Load from an offset; AMD has its own instructions for the LDS."""
    kind = rocdl.DsRead if _is_lds(body, buffer) else pointers.Load
    return body(kind, address(body, buffer, at), returns=held)


def store(body: Body, buffer: Buffer, at: Value, value: Value) -> None:
    """Write at an offset."""
    body.all(rocdl.DsWrite if _is_lds(body, buffer) else pointers.Store, value, address(body, buffer, at))


def _is_lds(body: Body, buffer: Buffer) -> bool:
    return body.target.vendor == "amd" and buffer.space == "shared"


def copy(body: Body, instruction: Instruction) -> None:
    """An asynchronous copy."""
    operation = instruction.operation
    assert isinstance(operation, CopyAsync)
    source, destination = (body.buffer(value) for value in instruction.operands[:2])
    indices = [body.scalar(value) for value in instruction.operands[2:]]
    rank = len(source.shape) if indices else 0
    begin, end = offset(body, source, indices[:rank]), offset(body, destination, indices[rank:])
    if body.target.vendor == "nvidia":
        to, from_ = address(body, destination, end), address(body, source, begin)
        body.all(nvvm.CopyAsync, to, from_, size=operation.bytes)
        return
    count = operation.bytes // source.dtype.storage_bytes
    store(body, destination, end, load(body, source, begin, Vector(count, source.dtype)))


def commit(body: Body, instruction: Instruction) -> None:
    """The end of a group of copies."""
    if body.target.vendor == "nvidia":
        body.all(nvvm.CopyCommit)


def wait(body: Body, instruction: Instruction) -> None:
    """Wait until copies are finished; on AMD, where they are loads and stores, they already are."""
    assert isinstance(instruction.operation, CopyWait)
    if body.target.vendor == "nvidia":
        body.all(nvvm.CopyWait, n=instruction.operation.pending)


def barrier(body: Body, instruction: Instruction) -> None:
    """Synchronize all threads of the block."""
    body.all(nvvm.Barrier if body.target.vendor == "nvidia" else rocdl.Barrier)


def shuffled(body: Body, instruction: Instruction) -> Number:
    """The value of the lane `delta` further on in the warp, part by part."""
    operation, value = instruction.operation, body.element(instruction.operands[0])
    assert isinstance(operation, ShuffleSync)
    if isinstance(value, Pair):
        return Pair(_shuffled(body, operation, value.real), _shuffled(body, operation, value.imaginary))
    return _shuffled(body, operation, value)


def _shuffled(body: Body, operation: ShuffleSync, value: Value) -> Value:
    """The value of the lane `delta` further on, the lane's own beyond the end of the warp; on AMD by lane number."""
    if body.target.vendor == "nvidia":
        mask = nvvm.FULL if operation.mask is None else operation.mask & nvvm.FULL
        return body(nvvm.ShuffleDown, value, delta=min(operation.delta, body.target.warp - 1), mask=mask)
    later = body.plus(body.lane, body.index(operation.delta))
    exists = body(comparisons.ICmp, later, body.index(body.target.warp), predicate="slt")
    source = body(comparisons.Select, exists, later, body.lane)
    return body(rocdl.BPermute, body.times(source, LANE_BYTES), value)
