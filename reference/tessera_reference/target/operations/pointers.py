"""Pointers and memory: address arithmetic, load, store, and the shared memory of a block (sections 8.1, 8.3).

Address spaces are those of LLVM for both vendors: 1 global, 3 shared (RT-09-02 to RT-09-05, AMB-LANG-35).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.operation import Attribute, Hidden, Operand, Refusal, Shown, operation, require
from ...ir.types import Memref, Pointer, Scalar, Vector
from ...numerics.array import Array
from ...numerics.formats import DType
from ...tile.block import BlockState
from .. import addresses
from ..addresses import Pointers
from ..emission.types import in_memory
from ..emission.writer import Writer
from ..operation import CLAUSES, TargetOperation, held_shown, require_dtype

GLOBAL, SHARED = 1, 3
SPACES = (0, 1, 3, 4, 5)
"""Every address space (RT-09-01 to RT-09-05)."""


def require_space(pointer: Pointer, spaces: tuple[int, ...], name: str = "pointer") -> None:
    """Refuse a pointer into another address space."""
    if pointer.space not in spaces:
        wanted = f"address space {' or '.join(map(str, spaces))}"
        raise Refusal("types", f"the {name} is {pointer}", wanted, "LANG-08.3-01", "")


@operation("llvm.mlir.addressof", clauses=(*CLAUSES, "LANG-08.1-05"))
class AddressOf(TargetOperation):
    """The beginning of a piece of the block's shared memory, which this names and declares."""

    global_name: Attribute[str]
    elements: Attribute[int]
    elem_type: Attribute[DType]
    alignment: Attribute[int] = 16

    effects = frozenset({"memory"})

    def infer(self) -> Pointer:
        """A pointer to shared memory."""
        require(self.elements >= 1, "shapes", f"{self.elements} elements", "at least 1", "LANG-08.1-05")
        require(
            self.alignment >= 1 and self.alignment & (self.alignment - 1) == 0,
            "tile",
            f"an alignment of {self.alignment}",
            "a power of two",
            "LANG-16-05",
        )
        return Pointer(SHARED)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.elements * self.elem_type.storage_bytes

    def run(self, block: BlockState) -> Pointers:
        """Fresh memory of the block."""
        return block.allocate(Memref((self.elements,), self.elem_type, "shared"))

    def emit(self, text: Writer) -> str:
        """A global in address space 3: on NVIDIA shared, on AMD the LDS."""
        name = f"@{text.kernel}.{self.global_name}"
        array = f"[{self.elements} x {in_memory(self.elem_type)}]"
        text.globals[f"{name} = internal addrspace(3) global {array} poison, align {self.alignment}"] = None
        return name


@operation("llvm.getelementptr", clauses=CLAUSES)
class GetElementPtr(TargetOperation):
    """The address so many elements on."""

    base: Operand[Pointer]
    index: Operand[Scalar]
    elem_type: Attribute[DType]

    def infer(self) -> Pointer:
        """A pointer into the same memory."""
        require_dtype(self.index.dtype, ("int32", "int64"), "index")
        return self.base

    def run(self, block: BlockState, base: Pointers, index: Array) -> Pointers:
        """The address of each lane."""
        return addresses.moved(block, base, index.values.astype(np.int64) * self.elem_type.storage_bytes)

    def emit(self, text: Writer, base: str, index: str) -> str:
        """The instruction; a narrow index is signed."""
        pointer, held = text.type(self.base), text.type(self.index)
        return text.value(f"getelementptr {in_memory(self.elem_type)}, {pointer} {base}, {held} {index}")


@operation("llvm.load", clauses=(*CLAUSES, "LANG-08.3-01"))
class Load(TargetOperation):
    """The element there, or several of them as a vector."""

    address: Operand[Pointer]
    returns: Hidden[Scalar | Vector]

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The type is that of the result."""
        return {"returns": held_shown(cls.name, shown)}

    def infer(self) -> Scalar | Vector:
        """What is stated."""
        require_space(self.address, (GLOBAL, SHARED))
        return self.returns

    def run(self, block: BlockState, address: Pointers) -> Array:
        """Read."""
        count = self.returns.extent if isinstance(self.returns, Vector) else 1
        values = addresses.load(block, address, self.returns.dtype, count)
        return Array(self.returns.dtype, values if isinstance(self.returns, Vector) else values[:, 0])

    def emit(self, text: Writer, address: str) -> str:
        """The instruction; a bool is a byte in memory."""
        pointer, held = text.type(self.address), self.returns
        if held.dtype.kind == "bool" and isinstance(held, Scalar):
            byte = text.value(f"load i8, {pointer} {address}, align 1")
            return text.value(f"icmp ne i8 {byte}, 0")
        return text.value(f"load {text.type(held)}, {pointer} {address}, align {alignment_of(held)}")


@operation("llvm.store", clauses=(*CLAUSES, "LANG-08.3-01"))
class Store(TargetOperation):
    """Writes the element there, or a vector of them."""

    value: Operand[Scalar | Vector]
    address: Operand[Pointer]

    effects = frozenset({"memory"})

    def infer(self) -> tuple[()]:
        """Nothing results."""
        require_space(self.address, (GLOBAL, SHARED))
        return ()

    def run(self, block: BlockState, value: Array, address: Pointers) -> tuple[()]:
        """Write."""
        addresses.store(block, address, value)
        return ()

    def emit(self, text: Writer, value: str, address: str) -> tuple[()]:
        """The instruction; a bool is a byte in memory."""
        pointer, held = text.type(self.address), text.type(self.value)
        if held == "i1":
            value, held = text.value(f"zext i1 {value} to i8"), "i8"
        text.do(f"store {held} {value}, {pointer} {address}, align {alignment_of(self.value)}")
        return ()


def alignment_of(held: Scalar | Vector) -> int:
    """The bytes at whose multiples a value lies: its own, of a vector at most 16."""
    size = held.dtype.storage_bytes * (held.extent if isinstance(held, Vector) else 1)
    return min(16, size & -size)
