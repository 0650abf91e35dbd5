"""The kernel table of a module: the kernels that it offers, and the entry descriptor of each (runtime spec 8.1, 10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ..abi.fatbin import KernelEntry, KernelParameter
from ..abi.parameters import is_c_identifier
from ..graph.interpreter import reachable
from ..ir.diagnostics import Diagnostic, Location, Rejection, Span
from ..ir.operation import Function, Module
from ..ir.text import print_module
from ..ir.types import Memref, Pointer, Scalar, Tensor, Value
from ..kernel_machine.block import extents_of
from ..numerics.formats import DTYPES, DType
from ..target_ir.operations.memory import SHARED, GetElementPtr, Load, Store
from ..tile.interpreter import Launch, prepare
from ..tile.verifier import SYMBOL
from .extents import is_open, refusal_at, untellable

# The text of modules that an image carries and hashes (runtime spec 8.1).


def canonical_text(modules: Sequence[Module]) -> str:
    """Return the IR in the one spelling that a module's hash covers: generic form, without locations."""
    return "".join(print_module(module) for module in modules)


# Opaque pointers of kernels of Target IR: which of them are stored to, and the dtype of their memory (AMB-LANG-35).
#
# A pointer of Target IR does not state the type of its elements; the accesses do.


BYTE = DTYPES["int8"]
"""The dtype of memory without known accesses."""


def stored_to(kernel: Function) -> set[Value]:
    """Return the pointer parameters that a kernel may write; all of them if a store's address cannot be traced."""
    bases = _bases(kernel)
    pointers = {parameter for parameter in kernel.parameters if isinstance(parameter.type, Pointer)}
    places = [instruction.operands[1] for instruction in kernel.body.walk() if isinstance(instruction.operation, Store)]
    outside = [place for place in places if isinstance(place.type, Pointer) and place.type.space != SHARED]
    if any(place not in bases for place in outside):
        return pointers
    return {bases[place] for place in outside}


def accessed_dtypes(kernel: Function) -> dict[Value, DType]:
    """Return the dtype of each pointer parameter: that of its first load or store, else of its address arithmetic."""
    bases = _bases(kernel)
    dtypes: dict[Value, DType] = {}
    counted: dict[Value, DType] = {}
    for instruction in kernel.body.walk():
        operation = instruction.operation
        if isinstance(operation, Load):
            place, dtype, where = instruction.operands[0], operation.returns.dtype, dtypes
        elif isinstance(operation, Store):
            place, dtype, where = instruction.operands[1], operation.value.dtype, dtypes
        elif isinstance(operation, GetElementPtr):
            place, dtype, where = instruction.operands[0], operation.elem_type, counted
        else:
            continue
        if place in bases:
            where.setdefault(bases[place], dtype)
    return counted | dtypes


def _bases(kernel: Function) -> dict[Value, Value]:
    """Return the parameter from which each pointer derives, directly or by an element offset."""
    bases = {parameter: parameter for parameter in kernel.parameters if isinstance(parameter.type, Pointer)}
    for instruction in kernel.body.walk():
        if isinstance(instruction.operation, GetElementPtr) and instruction.operands[0] in bases:
            bases[instruction.results[0]] = bases[instruction.operands[0]]
    return bases


# The kernel table of a module: the kernels that it offers, and the entry descriptor of each (runtime spec 8.1, 10).
#
# Kernels of the language are *programs*: host functions that contain their own launches. Kernels of Tile and Target IR
# that no program launches are offered directly, under their symbol without its prefix (AMB-RT-18).


DEFAULT_BLOCK = (128, 1, 1)
"""The block of a program that is not lowered yet, where the host leaves it open (AMB-RT-08)."""


@dataclass(frozen=True, eq=False)
class Offered:
    """A kernel that a module offers to the host, under its public name."""

    name: str
    module: Module
    function: Function

    @property
    def is_open(self) -> bool:
        """True if it has dimensions that are known only at launch."""
        return is_open(self.function)


def offered(modules: Iterable[Module]) -> tuple[Offered, ...]:
    """Return the kernels of modules, in order."""
    kernels = []
    for module in modules:
        for function in module.functions.values():
            if function.kernel or (function.device and function.name not in _launched(module)):
                name = function.name.removeprefix(SYMBOL) if function.device else function.name
                kernels.append(Offered(name, module, function))
    return tuple(kernels)


def _launched(module: Module) -> set[str]:
    """Return the symbols of the kernels that programs of a module launch."""
    programs = [function for function in module.functions.values() if function.kernel]
    every = chain.from_iterable(reachable(module, program) for program in programs)
    return {instruction.operation.kernel for instruction in every if isinstance(instruction.operation, Launch)}


def require_kernels(kernels: Sequence[Offered], filename: str) -> None:
    """Raise `Rejection` unless these can be the kernels of one module image."""
    if not kernels:
        start = Location(filename, Span(1, 1, 1, 1))
        remedy = "declare what the host launches as kernel, not as func"
        raise Rejection([refusal_at(start, "types", "there is no kernel", "at least one kernel", "RT-02-01", remedy)])
    problems = [diagnostic for kernel in kernels for diagnostic in _unfit(kernel)]
    names = [kernel.name for kernel in kernels]
    for position, kernel in enumerate(kernels):
        if kernel.name in names[:position]:
            message = f"two kernels are called {kernel.name}"
            place = kernel.function.location
            problems.append(refusal_at(place, "types", message, "kernels of different names", "RT-08.1-07"))
    if problems:
        raise Rejection(problems)


def _unfit(kernel: Offered) -> Iterator[Diagnostic]:
    """Yield the reasons why a C host cannot call a kernel."""
    place = kernel.function.location
    if not is_c_identifier(kernel.name):
        message = f"the kernel is called {kernel.name}"
        yield refusal_at(place, "types", message, "a C identifier", "RT-10.3-01", "give it another name")
    for parameter in [] if kernel.function.device else kernel.function.parameters:
        if not is_c_identifier(parameter.name):
            message = f"a parameter of @{kernel.name} is called {parameter.name}"
            yield refusal_at(place, "types", message, "a C identifier", "RT-10.3-01", "give it another name")
        if not isinstance(parameter.type, Tensor | Scalar):
            message = f"{parameter.name} of @{kernel.name} is {parameter.type}"
            yield refusal_at(place, "types", message, "tensors and scalars", "RT-10.1-01")
    yield from untellable(kernel.function)


def entry_of(kernel: Offered) -> KernelEntry:
    """Return the entry descriptor of a kernel that `require_kernels` passed; that of a program has no resources."""
    function = kernel.function
    written = _written_on_device(function) if function.device else _written_by_program(function)
    parameters = tuple(
        _parameter(parameter, _name(parameter, position, function), parameter in written)
        for position, parameter in enumerate(function.parameters)
    )
    if not function.device:
        return KernelEntry(kernel.name, kernel.module.name, parameters, None, DEFAULT_BLOCK)
    block, memory = extents_of(function, "block"), _shared(function)
    return KernelEntry(kernel.name, kernel.module.name, parameters, None, block, *memory, level="tile")


def with_resources(entry: KernelEntry, lowered: Sequence[Module]) -> KernelEntry:
    """Return the entry of a program with the largest block and the most shared memory of its launches."""
    launched = [
        module.functions[function.operation.kernel]
        for module in lowered
        if entry.name in module.functions
        for function in reachable(module, module.functions[entry.name])
        if isinstance(function.operation, Launch)
    ]
    if not launched:
        return entry
    x, y, z = (max(extents) for extents in zip(*(extents_of(kernel, "block") for kernel in launched), strict=True))
    shared = max(_shared(kernel)[0] for kernel in launched)
    return replace(entry, block=(x, y, z), shared_bytes=shared)


def _shared(kernel: Function) -> tuple[int, bool]:
    """Return the static shared memory in bytes, and True if dynamic shared memory follows."""
    declared = kernel.attributes["smem_bytes"]
    assert isinstance(declared, int)
    return declared, bool(kernel.attributes.get("dynamic_smem"))


def _name(parameter: Value, position: int, function: Function) -> str:
    """Return the name of a parameter, or `p` and its position where IR text uses a number, which C does not allow."""
    usable = not function.device or is_c_identifier(parameter.name)
    return parameter.name if usable else f"p{position}"


def _parameter(parameter: Value, name: str, written: bool) -> KernelParameter:
    type_ = parameter.type
    if isinstance(type_, Scalar):
        return KernelParameter(name, type_.dtype.storage.name)
    if isinstance(type_, Tensor | Memref):
        return KernelParameter(name, "ptr", type_.dtype.name, type_.shape, written)
    return KernelParameter(name, "ptr", written=written)


def _written_by_program(function: Function) -> set[Value]:
    """Return the tensor parameters whose value a kernel of the language changes (RT-10.2-02)."""
    tensors = [parameter for parameter in function.parameters if isinstance(parameter.type, Tensor)]
    return {
        parameter
        for block in function.body.blocks()
        if block.exit == "return"
        for parameter, result in zip(tensors, block.results, strict=True)
        if result is not parameter
    }


def _written_on_device(kernel: Function) -> set[Value]:
    """Return the buffers that a device kernel stores to."""
    if kernel.device == "target":
        return stored_to(kernel)
    written = prepare(kernel, 1).written
    return {value for value in kernel.parameters if value in written and isinstance(value.type, Memref | Pointer)}
