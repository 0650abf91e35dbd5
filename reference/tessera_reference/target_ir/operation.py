"""The base of Target operations, and their form in LLVM IR (spec section 8)."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from ..ir.operation import Block, Operand, Refusal, Stated, operation
from ..ir.types import Pointer, Scalar, Type, Value, Vector
from ..kernel_machine.block import KernelOperation
from ..numerics.array import Array
from ..numerics.formats import DType

# Types and numbers as LLVM IR spells them.


NAMES = {
    "fp64": "double",
    **dict.fromkeys(("fp32", "tf32"), "float"),
    "fp16": "half",
    "bf16": "bfloat",
    **dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "int8"), "i8"),
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bool": "i1",
    "complex64": "i64",
    "complex128": "i128",
}
"""The type of a value of each dtype that kernels hold; for a complex number, one of as many bits (AMB-LANG-221)."""

SUFFIXES = {
    "fp64": "f64",
    **dict.fromkeys(("fp32", "tf32"), "f32"),
    "fp16": "f16",
    "bf16": "bf16",
    "fp8_e4m3": "e4m3",
    "fp8_e5m2": "e5m2",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}
"""Suffixes of functions and intrinsics."""


def llvm_type(type_: Type, flat: bool = False) -> str:
    """Return the name of a type; `flat` where there is only one address space, as on a host."""
    if isinstance(type_, Scalar):
        return NAMES[type_.dtype.name]
    if isinstance(type_, Vector):
        return f"<{type_.extent} x {NAMES[type_.dtype.name]}>"
    assert isinstance(type_, Pointer), type_
    return "ptr" if flat or type_.space == 0 else f"ptr addrspace({type_.space})"


def in_memory(dtype: DType) -> str:
    """Return the type of an element in memory: a bool takes a byte."""
    return "i8" if dtype.kind == "bool" else NAMES[dtype.name]


def literal(value: float | bool, dtype: DType) -> str:
    """Return a number in text; floats by their bits, so that the written value is read back."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.kind == "int":
        return str(value)
    code = Array(dtype, np.asarray(value, dtype.carrier)).to_bits()[::-1].hex().upper()
    if dtype.bits == 8:
        return str(int(code, 16))
    if dtype.bits == 16:
        return f"0x{'H' if dtype.name == 'fp16' else 'R'}{code}"
    if dtype.bits == 64:
        return f"0x{code}"
    return f"0x{struct.pack('>d', float(value)).hex().upper()}"  # a float is written as the double of its value


# Writing the body of one kernel as LLVM IR: names, lines, basic blocks, and the declarations it needs.


@dataclass(frozen=True)
class Entry:
    """The entry of a kernel as its operations see it."""

    vendor: str
    """`nvidia`, `amd`, or `host` for native code, where a thread is one call."""
    warp: int
    block: tuple[int, int, int]
    hidden: Mapping[str, str] = field(default_factory=dict)
    """The names of hidden parameters."""

    @property
    def is_host(self) -> bool:
        """True for native code, whose pointers are plain."""
        return self.vendor == "host"


class Writer:
    """The lines of one kernel, written from the first to the last."""

    def __init__(self, entry: Entry, kernel: str) -> None:
        self.entry = entry
        self.kernel = kernel
        self.lines: list[str] = []
        self.declarations: dict[str, None] = {}
        self.globals: dict[str, None] = {}
        self.label = "entry"
        self._names: dict[Value, str] = {}
        self._regions: tuple[Block, ...] = ()
        self._count = 0

    def fresh(self, hint: str = "") -> str:
        """Return an unused name."""
        self._count += 1
        return f"{hint}{self._count}"

    def type(self, type_: Type) -> str:
        """Return the spelling of a type."""
        return llvm_type(type_, self.entry.is_host)

    def value(self, instruction: str) -> str:
        """Append an instruction with a result, and return its name."""
        name = f"%v{self.fresh()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def later(self) -> int:
        """Leave a line open for `fill`, since a phi names values that come after it."""
        self.lines.append("")
        return len(self.lines) - 1

    def fill(self, line: int, instruction: str) -> None:
        """Write an open line."""
        self.lines[line] = f"  {instruction}"

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def call(self, result: str, function: str, *arguments: str) -> str:
        """Call a function or intrinsic, declaring it, and return its result; arguments are `type name`."""
        types = ", ".join(_type_of(argument) for argument in arguments)
        self.declarations[f"declare {result} @{function}({types})"] = None
        call = f"call {result} @{function}({', '.join(arguments)})"
        if result == "void":
            self.do(call)
            return ""
        return self.value(call)

    def region(self, index: int, *arguments: str) -> tuple[str, ...]:
        """Write a region of the current instruction, and return the names of the values it yields."""
        return self.block(self._regions[index], arguments)

    def block(self, block: Block, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Write the instructions of a block, and return the names of its results."""
        self._names.update(zip(block.arguments, arguments, strict=True))
        outer = self._regions
        for instruction in block.instructions:
            self._regions = instruction.regions
            operands = [self._names[operand] for operand in instruction.operands]
            emitted = cast(TargetOperation, instruction.operation).emit(self, *operands)
            names = emitted if isinstance(emitted, tuple) else (emitted,) if instruction.results else ()
            self._names.update(zip(instruction.results, names, strict=True))
        self._regions = outer
        return tuple(self._names[result] for result in block.results)


def _type_of(argument: str) -> str:
    """Return the type of `type name`."""
    return argument.rpartition(" ")[0]


# Operations of kernels at the Target level: each executes on the simulated device, and each is LLVM IR (section 8).
#
# They have the names of the LLVM, NVVM and ROCDL dialects. Types are ours: `fp32` is LLVM's float, `bf16` its bfloat,
# fp8 its i8, `bool` its i1, which memory holds as a byte; `!llvm.ptr<1>` and vectors are unchanged.


CLAUSES = ("LANG-08-01",)
"""The clauses of every operation of this level: lowering ends in the LLVM dialect."""


class TargetOperation(KernelOperation):
    """An operation of a kernel at the Target level."""

    vendor: ClassVar[str] = ""
    """The only vendor whose devices have it (LANG-11-10); "" for instructions that LLVM has everywhere."""

    @property
    def mnemonic(self) -> str:
        """The name of the instruction or intrinsic in LLVM: the last part of the name."""
        return self.name.rpartition(".")[2]

    @abstractmethod
    def emit(self, text: Writer, *operands: Any, **nothing: Any) -> Any:
        """Write it as LLVM IR, given its operands' names; return its result's name, or a tuple of names."""


@dataclass(frozen=True)
class Conversion(TargetOperation):
    """An operation on one scalar whose result's dtype only the printed type states, as in MLIR."""

    x: Operand[Scalar]
    to: Stated[DType]


B = TypeVar("B", bound=TargetOperation)


def declared(base: type[B], name: str, meaning: str, clauses: tuple[str, ...] = CLAUSES, **facts: Any) -> type[B]:
    """Return the operation `name`, which differs from others of its family by these members of its class."""
    subclass = type(name.replace(".", "_"), (base,), {"__doc__": meaning, **facts})
    return operation(name, clauses=clauses)(subclass)


def require_dtype(dtype: DType, allowed: Sequence[str], name: str = "operand") -> None:
    """Refuse a dtype that is not among those allowed."""
    if dtype.name not in allowed:
        raise Refusal("types", f"the {name} is {dtype}", f"one of {', '.join(allowed)}", "LANG-11-01", "")


def require_type(actual: Type, expected: Type, name: str) -> None:
    """Refuse a type other than the expected one."""
    if actual != expected:
        raise Refusal("types", f"{name} is {actual}, not {expected}", str(expected), "LANG-11-01", "")


def require_alike(a: Type, b: Type) -> None:
    """Refuse operands of two types."""
    if a != b:
        raise Refusal("types", f"operands are {a} and {b}", "operands of one type", "LANG-11-01", "")
