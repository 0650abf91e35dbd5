"""Pointers, memory, vectors and control flow at the Target level (spec sections 8.1, 8.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from ...ir.operation import Attribute, Operand, Refusal, Stated, operation
from ...ir.types import Memref, Pointer, Scalar, Vector
from ...kernel_machine.block import BlockState
from ...kernel_machine.storage import KernelFault, Misaligned, Offsets, Storage
from ...numerics.array import Array
from ...numerics.formats import DType
from ...tile.operations import For as TileFor
from ...tile.operations import If as TileIf
from ..operation import CLAUSES, TargetOperation, Writer, in_memory, require_dtype, require_type

# Pointers of lanes, and reads and writes through them (section 8.3; LANG-08.1-02, AMB-LANG-35).
#
# A pointer is a memory and an offset in bytes for each lane; that of a parameter is the memory itself. Memory is typed:
# an access has the dtype of the memory, and covers one element or several adjacent ones, which then begin at a multiple
# of their bytes, at most 16. Complex numbers are accessed whole, as themselves or as two adjacent floats, their parts
# (AMB-LANG-221).


@dataclass(frozen=True, eq=False)
class Address:
    """An address for each lane: all into one memory, each at an offset in bytes."""

    memory: Storage
    bytes: Offsets

    def merged(self, condition: npt.NDArray[np.bool_], other: Pointers) -> Address:
        """Return for each lane this address where the condition holds, else the other. Raises `OtherMemory`."""
        there = pointing(other, self.bytes.size)
        if there.memory is not self.memory:
            raise OtherMemory(self.memory.name, there.memory.name)
        return Address(self.memory, np.where(condition, self.bytes, there.bytes))


Pointers: TypeAlias = Storage | Address
"""A pointer in each lane."""


def pointing(pointers: Pointers, lanes: int) -> Address:
    """Return the address of each lane; a memory is its own beginning."""
    return Address(pointers, np.zeros(lanes, np.int64)) if isinstance(pointers, Storage) else pointers


def moved(block: BlockState, pointers: Pointers, by: Offsets) -> Address:
    """Return the pointers moved by some bytes."""
    if isinstance(pointers, Storage):
        return Address(pointers, by)
    return Address(pointers.memory, pointers.bytes + by)


class OtherMemory(KernelFault):
    """The choice between two pointers would point into two memories."""

    requirement = "pointers into one memory"
    clause = "LANG-08.3-01"

    def __init__(self, memory: str, other: str) -> None:
        super().__init__(memory, other)
        self.memory, self.other = memory, other

    def __str__(self) -> str:
        return f"a pointer into {self.memory} in some lanes and into {self.other} in others"


class OtherDType(KernelFault):
    """An access of `accessed` to `memory`, which has another dtype."""

    requirement = "accesses of the dtype that the memory holds"
    clause = "LANG-11-01"

    def __init__(self, memory: str, stored: DType, accessed: DType) -> None:
        super().__init__(memory, stored, accessed)
        self.memory, self.held, self.accessed = memory, stored, accessed

    def __str__(self) -> str:
        return f"{self.memory} holds {self.held} and is accessed as {self.accessed}"


def elements(block: BlockState, pointers: Pointers, alignment: int) -> tuple[Storage, Offsets]:
    """Return the memory, and each lane's offset in elements. Raises `Misaligned`, `alignment` in bytes."""
    address = pointing(pointers, block.lanes)
    lanes, memory, size = block.holding(address.bytes), address.memory, address.memory.dtype.storage_bytes
    offsets = np.asarray(address.bytes // size)
    odd = (lanes.of_active(address.bytes) % max(size, alignment)).nonzero()[0]
    if odd.size:
        lane = int(lanes.active[odd[0]])
        where = memory.address(int(offsets[lane]))
        raise Misaligned(lanes.thread(lane), where, int(address.bytes[lane]), max(size, alignment))
    return memory, offsets


def load(block: BlockState, pointers: Pointers, dtype: DType, count: int) -> npt.NDArray[Any]:
    """Return the elements that each active lane reads: [lanes, count]. Raises `KernelFault`."""
    return np.ascontiguousarray(block.load(*_places(block, pointers, dtype, count))).view(dtype.carrier)


def store(block: BlockState, pointers: Pointers, values: Array) -> None:
    """Write the elements of each active lane: `values` is [lanes] or [lanes, count]. Raises `KernelFault`."""
    rows = np.ascontiguousarray(values.values.reshape(values.shape[0], -1))
    memory, places = _places(block, pointers, values.dtype, rows.shape[1])
    block.store(memory, places, rows.view(memory.dtype.carrier))


def require_stored_dtype(memory: Storage, dtype: DType) -> None:
    """Raise `OtherDType` unless the memory has this dtype, as which tf32 is fp32."""
    if dtype.storage != memory.dtype.storage:
        raise OtherDType(memory.name, memory.dtype, dtype)


def _places(block: BlockState, pointers: Pointers, dtype: DType, count: int) -> tuple[Storage, Offsets]:
    """Return the elements that each lane accesses, [lanes, count]."""
    size = count * dtype.storage_bytes
    memory, begin = elements(block, pointers, min(16, size & -size))
    if memory.dtype.kind == "complex" and dtype.storage == memory.dtype.component and count % 2 == 0:
        count //= 2
    else:
        require_stored_dtype(memory, dtype)
    block.require_within(memory, begin, count)
    return memory, np.asarray(begin[:, None] + np.arange(count))


# Pointers and memory: address arithmetic, load, store, and the shared memory of a block (sections 8.1, 8.3).
#
# Address spaces are those of LLVM for both vendors: 1 global, 3 shared (RT-09-02 to RT-09-05, AMB-LANG-35).


GLOBAL, SHARED = 1, 3
SPACES = (0, 1, 3, 4, 5)
"""Every address space (RT-09-01 to RT-09-05)."""


def require_space(pointer: Pointer, spaces: tuple[int, ...], name: str = "pointer") -> None:
    """Refuse a pointer into another address space."""
    if pointer.space not in spaces:
        requirement = f"address space {' or '.join(map(str, spaces))}"
        raise Refusal("types", f"the {name} is {pointer}", requirement, "LANG-08.3-01", "")


@operation("llvm.mlir.addressof", clauses=(*CLAUSES, "LANG-08.1-05"))
class AddressOf(TargetOperation):
    """The beginning of a piece of the block's shared memory, which this names and declares."""

    global_name: Attribute[str]
    elements: Attribute[int]
    elem_type: Attribute[DType]
    alignment: Attribute[int] = 16

    effects = frozenset({"memory"})

    def infer(self) -> Pointer:
        if self.elements < 1:
            raise Refusal("shapes", f"{self.elements} elements", "at least 1", "LANG-08.1-05")
        if self.alignment < 1 or self.alignment & self.alignment - 1 != 0:
            raise Refusal("tile", f"an alignment of {self.alignment}", "a power of two", "LANG-16-05")
        return Pointer(SHARED)

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.elements * self.elem_type.storage_bytes

    def run(self, block: BlockState) -> Pointers:
        return block.allocate(Memref((self.elements,), self.elem_type, "shared"))

    def emit(self, text: Writer) -> str:
        """Write a global in address space 3: on NVIDIA shared, on AMD the LDS."""
        name = f"@{text.kernel}.{self.global_name}"
        array = f"[{self.elements} x {in_memory(self.elem_type)}]"
        text.globals[f"{name} = internal addrspace(3) global {array} poison, align {self.alignment}"] = None
        return name


@operation("llvm.getelementptr", clauses=CLAUSES)
class GetElementPtr(TargetOperation):
    """The address a number of elements further on."""

    base: Operand[Pointer]
    index: Operand[Scalar]
    elem_type: Attribute[DType]

    is_total = True

    def infer(self) -> Pointer:
        require_dtype(self.index.dtype, ("int32", "int64"), "index")
        return self.base

    def run(self, block: BlockState, base: Pointers, index: Array) -> Pointers:
        return moved(block, base, index.values.astype(np.int64) * self.elem_type.storage_bytes)

    def emit(self, text: Writer, base: str, index: str) -> str:
        """Write the instruction; a narrow index is signed."""
        pointer, index_type = text.type(self.base), text.type(self.index)
        return text.value(f"getelementptr {in_memory(self.elem_type)}, {pointer} {base}, {index_type} {index}")


@operation("llvm.load", clauses=(*CLAUSES, "LANG-08.3-01"))
class Load(TargetOperation):
    """The element at the address, or several of them as a vector."""

    address: Operand[Pointer]
    returns: Stated[Scalar | Vector]

    spaces: ClassVar[tuple[int, ...]] = (GLOBAL, SHARED)

    def infer(self) -> Scalar | Vector:
        require_space(self.address, self.spaces)
        return self.returns

    def run(self, block: BlockState, address: Pointers) -> Array:
        count = self.returns.extent if isinstance(self.returns, Vector) else 1
        values = load(block, address, self.returns.dtype, count)
        return Array(self.returns.dtype, values if isinstance(self.returns, Vector) else values[:, 0])

    def emit(self, text: Writer, address: str) -> str:
        """Write the instruction; a bool is a byte in memory."""
        pointer, type_ = text.type(self.address), self.returns
        if type_.dtype.kind == "bool" and isinstance(type_, Scalar):
            byte = text.value(f"load i8, {pointer} {address}, align 1")
            return text.value(f"icmp ne i8 {byte}, 0")
        return text.value(f"load {text.type(type_)}, {pointer} {address}, align {alignment_of(type_)}")


@operation("llvm.store", clauses=(*CLAUSES, "LANG-08.3-01"))
class Store(TargetOperation):
    """Writes the element at the address, or a vector of elements."""

    value: Operand[Scalar | Vector]
    address: Operand[Pointer]

    effects = frozenset({"memory"})
    moved = (0,)
    spaces: ClassVar[tuple[int, ...]] = (GLOBAL, SHARED)

    def infer(self) -> None:
        require_space(self.address, self.spaces)

    def run(self, block: BlockState, value: Array, address: Pointers) -> None:
        store(block, address, value)

    def emit(self, text: Writer, value: str, address: str) -> None:
        """Write the instruction; a bool is a byte in memory."""
        pointer, type_ = text.type(self.address), text.type(self.value)
        if type_ == "i1":
            value, type_ = text.value(f"zext i1 {value} to i8"), "i8"
        text.do(f"store {type_} {value}, {pointer} {address}, align {alignment_of(self.value)}")


def alignment_of(type_: Scalar | Vector) -> int:
    """Return the alignment of a value in bytes: its own size, for a vector at most 16."""
    size = type_.dtype.storage_bytes * (type_.extent if isinstance(type_, Vector) else 1)
    return min(16, size & -size)


# Vectors that one lane holds: the registers of a fragment (LANG-08.2-05).


def _require_position(position: int, vector: Vector) -> None:
    if not 0 <= position < vector.extent:
        message = f"position {position} of {vector}"
        raise Refusal("shapes", message, f"a position from 0 to {vector.extent - 1}", "LANG-11-03")


@operation("llvm.mlir.zero", clauses=CLAUSES)
class Zero(TargetOperation):
    """Zeros: +0 in every element."""

    returns: Stated[Vector]

    def infer(self) -> Vector:
        return self.returns

    def run(self, block: BlockState) -> Array:
        return Array(self.returns.dtype, np.zeros((block.lanes, self.returns.extent), self.returns.dtype.carrier))

    def emit(self, text: Writer) -> str:
        """Return the zeros, which are written where they are used."""
        return "zeroinitializer"


@operation("llvm.insertelement", clauses=CLAUSES)
class InsertElement(TargetOperation):
    """The vector with another element at one position."""

    vector: Operand[Vector]
    value: Operand[Scalar]
    position: Attribute[int]

    moved = (0, 1)

    def infer(self) -> Vector:
        _require_position(self.position, self.vector)
        require_type(self.value, Scalar(self.vector.dtype), "the value")
        return self.vector

    def run(self, block: BlockState, vector: Array, value: Array) -> Array:
        """Return a copy that differs at the position."""
        values = np.array(vector.values)
        values[:, self.position] = value.values
        return Array(vector.dtype, values)

    def emit(self, text: Writer, vector: str, value: str) -> str:
        type_, element = text.type(self.vector), text.type(self.value)
        return text.value(f"insertelement {type_} {vector}, {element} {value}, i32 {self.position}")


@operation("llvm.extractelement", clauses=CLAUSES)
class ExtractElement(TargetOperation):
    """The element at one position."""

    vector: Operand[Vector]
    position: Attribute[int]

    moved = (0,)

    def infer(self) -> Scalar:
        _require_position(self.position, self.vector)
        return Scalar(self.vector.dtype)

    def run(self, block: BlockState, vector: Array) -> Array:
        return Array(vector.dtype, vector.values[:, self.position])

    def emit(self, text: Writer, vector: str) -> str:
        return text.value(f"extractelement {text.type(self.vector)} {vector}, i32 {self.position}")


@operation("llvm.shufflevector", clauses=CLAUSES)
class ShuffleVector(TargetOperation):
    """The elements at the positions of `mask`, in that order."""

    vector: Operand[Vector]
    mask: Attribute[tuple[int, ...]]

    moved = (0,)

    def infer(self) -> Vector:
        """Return a vector with an element for each position of the mask."""
        if not self.mask:
            raise Refusal("shapes", "the mask is empty", "at least one position", "LANG-11-03")
        for position in self.mask:
            _require_position(position, self.vector)
        return Vector(len(self.mask), self.vector.dtype)

    def run(self, block: BlockState, vector: Array) -> Array:
        return Array(vector.dtype, vector.values[:, list(self.mask)])

    def emit(self, text: Writer, vector: str) -> str:
        """Write the instruction, whose second vector is unused."""
        type_ = text.type(self.vector)
        mask = ", ".join(f"i32 {position}" for position in self.mask)
        return text.value(f"shufflevector {type_} {vector}, {type_} poison, <{len(self.mask)} x i32> <{mask}>")


# Control flow of a kernel in MLIR's scf dialect: it executes as that of Tile IR, and becomes blocks and phis.


_CLAUSES = ("LANG-08-01", "LANG-01-06")


@operation("scf.for", clauses=_CLAUSES)
class For(TileFor, TargetOperation):
    """Counts from start to stop, excluded, by step, which may be negative."""

    def emit(self, text: Writer, start: str, stop: str, step: str, *carried: str) -> tuple[str, ...]:
        """Write a header that tests the index, a body, and an exit; the header's phis are the loop-carried values."""
        head, body, leave = (text.fresh(f"{part}_") for part in ("head", "body", "leave"))
        before = text.label
        text.do(f"br label %{head}")
        text.start(head)
        index = f"%v{text.fresh()}"
        here = tuple(f"%v{text.fresh()}" for _ in carried)
        phis = [text.later() for _ in (index, *here)]
        text.do(f"br i1 {_goes_on(text, index, stop, step)}, label %{body}, label %{leave}")
        text.start(body)
        yielded = text.region(0, index, *here)
        following = text.value(f"add i32 {index}, {step}")
        types = ("i32", *(text.type(type_) for type_ in self.carried))
        incoming = zip((start, *carried), (following, *yielded), strict=True)
        for line, name, type_, (first, next_) in zip(phis, (index, *here), types, incoming, strict=True):
            text.fill(line, f"{name} = phi {type_} [ {first}, %{before} ], [ {next_}, %{text.label} ]")
        text.do(f"br label %{head}")
        text.start(leave)
        return here


def _goes_on(text: Writer, index: str, stop: str, step: str) -> str:
    """Return the condition that the index is before the end, in the direction of the step."""
    if not step.startswith("%"):
        return text.value(f"icmp {'slt' if int(step) > 0 else 'sgt'} i32 {index}, {stop}")
    below, above = (text.value(f"icmp {predicate} i32 {index}, {stop}") for predicate in ("slt", "sgt"))
    rises = text.value(f"icmp sgt i32 {step}, 0")
    return text.value(f"select i1 {rises}, i1 {below}, i1 {above}")


@operation("scf.if", clauses=_CLAUSES)
class If(TileIf, TargetOperation):
    """Runs one of two regions, whose yielded values are the results."""

    def emit(self, text: Writer, condition: str) -> tuple[str, ...]:
        """Write a branch, two blocks, and phis in the block that joins them."""
        then, otherwise, join = (text.fresh(f"{part}_") for part in ("then", "else", "join"))
        text.do(f"br i1 {condition}, label %{then}, label %{otherwise}")
        ends = []
        for index, label in enumerate((then, otherwise)):
            text.start(label)
            yielded = text.region(index)
            ends.append((yielded, text.label))
            text.do(f"br label %{join}")
        text.start(join)
        (first, from_first), (second, from_second) = ends
        return tuple(
            text.value(f"phi {text.type(type_)} [ {a}, %{from_first} ], [ {b}, %{from_second} ]")
            for type_, a, b in zip(self.returns, first, second, strict=True)
        )
