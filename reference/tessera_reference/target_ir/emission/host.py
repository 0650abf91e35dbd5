"""Kernels as native code: those in which threads work independently, one thread after another.

LLVM's just-in-time compiler runs the very operations of a kernel on the host, so that the bits are those of the
interpreter. Functions of the library call back into the reference's numerics. Nothing checks addresses here: kernels
come from the lowering, and the interpreter finds the faults of a kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ...ir.operation import Function, Module, Operation, with_operations
from ...ir.types import Pointer
from ...kernel_machine.block import extents_of
from ...numerics.array import Array
from ...numerics.errors import DivisionByZero
from ...numerics.formats import DType
from ...tile.interpreter import Launch, Uninitialised
from ...tile.operations import AXES
from ..operation import Entry, TargetOperation, Writer, llvm_type
from ..operations.llvm import CALLEES, Call, passed_type
from ..operations.memory import AddressOf
from ..operations.vendors import Register
from .machine_code import HIDDEN, binding, checked, parameter_names

_PASSED: Mapping[str, Any] = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "i16": ctypes.c_uint16,
    "i8": ctypes.c_uint8,
}
"""The types of C for the types that functions take and return."""

IDS = tuple(f"{quantity}_{axis}" for quantity in ("thread", "block") for axis in AXES)
"""The parameters after those of the kernel, which identify the thread of a call."""

FAULT = "fault"
"""The last parameter: the address of a number that a division by zero makes nonzero."""


class NotNative(Exception):
    """A kernel cannot run as native code; the message gives the reason."""


def run_native(kernel: Function, arguments: Sequence[Array | Uninitialised]) -> tuple[Array, ...]:
    """Return the buffers of a kernel of Target IR after it has run natively over its grid.

    Raises `NotNative`, `MissingTool`, and `DivisionByZero` as the interpreter does.
    """
    run = _compiled(kernel)
    memories: list[tuple[Array | Uninitialised, Any]] = []
    passed: list[Any] = []
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if isinstance(parameter.type, Pointer):
            memory = _memory_of(argument)
            memories.append((argument, memory))
            passed.append(ctypes.addressof(memory))
        else:
            assert isinstance(argument, Array)
            passed.append(argument.values.item())
    fault = ctypes.c_int32(0)
    run(*passed, ctypes.addressof(fault))
    if fault.value:
        raise DivisionByZero
    return tuple(Array.from_bits(like.dtype, like.shape, _bytes_of(like, memory)) for like, memory in memories)


def native(module: Module) -> Module:
    """Return a module of Target IR whose launches run natively where their kernels can."""

    def launching(operation: Operation) -> Operation:
        if isinstance(operation, Launch) and refusal(module.functions[operation.kernel]) is None:
            return NativeLaunch(operation.arguments, operation.kernel, operation.returns)
        return operation

    functions = {
        name: function if function.device else replace(function, body=with_operations(function.body, launching))
        for name, function in module.functions.items()
    }
    return replace(module, functions=functions)


class NativeLaunch(Launch):
    """A launch that runs natively."""

    def over_grid(self, kernel: Function, buffers: Sequence[Array | Uninitialised]) -> tuple[Array, ...]:
        """Return the buffers after the kernel has run natively."""
        return run_native(kernel, buffers)


def refusal(kernel: Function) -> str | None:
    """Return the reason why a kernel cannot run as native code; None where it can."""
    for instruction in kernel.body.walk():
        operation = instruction.operation
        if isinstance(operation, AddressOf):
            return "its threads share memory"
        if not isinstance(operation, TargetOperation) or (operation.vendor and not isinstance(operation, Register)):
            return f"{operation.name} is of several threads"
    dtypes = {value.type.dtype.name for value in _values(kernel) if hasattr(value.type, "dtype")}
    if "fp16" in dtypes and "+f16c" not in _host_features():
        return "this machine does not convert fp16"
    return None


def _values(kernel: Function) -> Iterator[Any]:
    for instruction in kernel.body.walk():
        yield from instruction.operands
        yield from instruction.results


def host_text(kernel: Function) -> str:
    """Return LLVM IR of a kernel for a host: a function for a thread, and one for all threads. Raises `NotNative`."""
    reason = refusal(kernel)
    if reason is not None:
        raise NotNative(f"@{kernel.name}: {reason}")
    grid = dict(zip(HIDDEN, map(str, extents_of(kernel, "grid")), strict=True))
    hidden = {**grid, **{name: f"%{name}" for name in (*IDS, FAULT)}}
    text = Writer(Entry("host", 1, extents_of(kernel, "block"), hidden), kernel.name)
    names = parameter_names(kernel.parameters)
    text.block(kernel.body, names)
    own = [f"{llvm_type(value.type, flat=True)} {name}" for value, name in zip(kernel.parameters, names, strict=True)]
    ids = [f"i32 %{name}" for name in IDS]
    head = f"define internal void @{kernel.name}({', '.join([*own, *ids, f'ptr %{FAULT}'])}) {{"
    one = "\n".join([head, "entry:", *text.lines, "  ret void", "}"])
    return "\n".join([*text.declarations, "", one, "", _over_the_grid(kernel, own), ""])


def _over_the_grid(kernel: Function, own: list[str]) -> str:
    """Return a loop over all threads, counted with x fastest, those of a block together."""
    extents = (*extents_of(kernel, "block"), *extents_of(kernel, "grid"))
    parts, rest = [], "%i"
    for number, (name, extent) in enumerate(zip(IDS, extents, strict=True)):
        parts += [f"  %part.{number} = urem i64 {rest}, {extent}", f"  %{name} = trunc i64 %part.{number} to i32"]
        parts.append(f"  %rest.{number} = udiv i64 {rest}, {extent}")
        rest = f"%rest.{number}"
    passed = ", ".join([*own, *(f"i32 %{name}" for name in IDS), f"ptr %{FAULT}"])
    lines = [
        f"define void @{kernel.name}.grid({', '.join([*own, f'ptr %{FAULT}'])}) {{",
        "entry:",
        "  br label %each",
        "each:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %each ]",
        *parts,
        f"  call void @{kernel.name}({passed})",
        "  %next = add i64 %i, 1",
        f"  %more = icmp ult i64 %next, {prod(extents)}",
        "  br i1 %more, label %each, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


# Compiling

_ENGINES: dict[str, Any] = {}
"""The compiled engines by their text: code lives as long as its engine."""


def _compiled(kernel: Function) -> Callable[..., None]:
    """Return the kernel as a function of its buffers' addresses, its scalars, and the address of the fault."""
    text = host_text(kernel)
    engine = _ENGINES.get(text)
    if engine is None:
        engine = _ENGINES[text] = _engine(kernel, text)
    types: list[Any] = [
        ctypes.c_void_p if isinstance(parameter.type, Pointer) else _PASSED[llvm_type(parameter.type)]
        for parameter in kernel.parameters
    ]
    function: Callable[..., None] = ctypes.CFUNCTYPE(None, *types, ctypes.c_void_p)(
        engine.get_function_address(f"{kernel.name}.grid")
    )
    return function


def _engine(kernel: Function, text: str) -> Any:
    llvm = binding()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for instruction in kernel.body.walk():
        if isinstance(instruction.operation, Call):
            name = instruction.operation.callee
            llvm.add_symbol(name, ctypes.cast(_callback(name), ctypes.c_void_p).value)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_host_features(), opt=2
    )
    engine = llvm.create_mcjit_compiler(checked(text), machine)
    engine.finalize_object()
    return engine


@cache
def _host_features() -> str:
    features: str = binding().get_host_cpu_features().flatten()
    return features


@cache
def _callback(name: str) -> Any:
    """Return a function of the library for C, taking codes where C has no such float."""
    callee = CALLEES[name]
    types = [_PASSED[passed_type(element)] for element in callee.operands]

    def call(*values: Any) -> Any:
        operands = [_value_of(element, value) for element, value in zip(callee.operands, values, strict=True)]
        result = callee.compute(*operands)
        return int.from_bytes(result.to_bits(), "little") if result.dtype.bits <= 16 else result.values.item()

    return ctypes.CFUNCTYPE(_PASSED[passed_type(callee.result)], *types)(call)


def _value_of(dtype: DType, value: Any) -> Array:
    if dtype.bits <= 16:
        return Array.from_bits(dtype, (1,), int(value).to_bytes(dtype.storage_bytes, "little"))
    return Array(dtype, np.asarray([value], dtype.carrier))


# Memory


def _memory_of(argument: Array | Uninitialised) -> Any:
    """Return the bytes of a buffer; zeros for one that the kernel must fill."""
    size = prod(argument.shape) * argument.dtype.storage_bytes
    memory = (ctypes.c_char * max(1, size))()
    if isinstance(argument, Array):
        ctypes.memmove(memory, argument.to_bits(), size)
    return memory


def _bytes_of(like: Array | Uninitialised, memory: Any) -> bytes:
    return bytes(memory)[: prod(like.shape) * like.dtype.storage_bytes]
