"""Kernels with named dimensions or made of functions, programs that cannot be modules (runtime spec 4.5, 10.1, 18)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..abi.fatbin import KernelEntry
from ..abi.status import invalid
from ..ir.diagnostics import Category, Diagnostic, Location, Rejection
from ..ir.operation import Function, Module, Refusal, diagnostic_of
from ..ir.types import Scalar, Tensor, Type, Value, is_unknown, own_dims
from ..ir.verifier import verify

# Diagnostics of programs that are legal in the language but cannot be modules of the runtime.


def refusal_at(
    location: Location, category: Category, message: str, requirement: str, clause: str, remedy: str = ""
) -> Diagnostic:
    """Return the diagnostic of a program that is legal in the language but cannot be a module of the runtime."""
    return diagnostic_of(Refusal(category, message, requirement, clause, remedy), location, phase="lower")


# Named dimensions of a kernel, whose extents its int parameters give at launch (runtime spec 4.5, 10.1, 18).
#
# The sample's `Q: tensor<BxHxLxDxbf16>` takes its extents from the arguments `B`, `H`, `L` and `D`: a parameter buffer
# holds pointers and scalars only, so nothing else can provide them.


def is_open(function: Function) -> bool:
    """True if a kernel has dimensions that are known only at launch."""
    return bool(own_dims(parameter.type for parameter in function.parameters))


def untellable(function: Function) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each dimension of a kernel that no parameter provides."""
    types = {parameter.name: parameter.type for parameter in function.parameters}
    counts = {name for name, type_ in types.items() if isinstance(type_, Scalar) and type_.dtype.kind == "int"}
    for dimension in own_dims(parameter.type for parameter in function.parameters):
        if dimension not in counts:
            unknown = is_unknown(dimension)
            named = "a dimension ?" if unknown else f"the dimension {dimension}"
            remedy = "name the dimension" if unknown else f"add a parameter {dimension}: int32"
            message = f"@{function.name} has {named}, which no parameter gives at launch"
            requirement = "dimensions that are numbers, or the names of int parameters"
            yield refusal_at(function.location, "shapes", message, requirement, "RT-10.1-01", remedy)


def named_dimensions(entry: KernelEntry) -> tuple[str, ...]:
    """Return the names in the shapes of a kernel's parameters, in order."""
    names = [extent for parameter in entry.parameters for extent in parameter.shape or () if isinstance(extent, str)]
    return tuple(dict.fromkeys(names))


def shapes_of(entry: KernelEntry, extents: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the known shape of every pointer parameter, with `extents` for its names.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a name that is not among them, or a negative extent.
    """
    for name in named_dimensions(entry):
        if name not in extents:
            raise invalid("tessLaunch", f"no extent {name} for kernel {entry.name}", f"a value of the parameter {name}")
        if extents[name] < 0:
            raise invalid("tessLaunch", f"{name} is {extents[name]}", "an extent of at least 0")
    return {
        parameter.name: tuple(extents[extent] if isinstance(extent, str) else extent for extent in parameter.shape)
        for parameter in entry.parameters
        if parameter.shape is not None
    }


# A kernel made from a function, so that a host can launch it (runtime spec 4.5; RT-02-01).


def as_kernel(module: Module, function: Function) -> tuple[Module, Function]:
    """Return the module with the function made a kernel, which takes one more tensor for each result: r0, r1, ...

    A kernel is returned unchanged. Raises `Rejection` for results that are not tensors, and for a function that returns
    from within a branch or loop.
    """
    if function.kernel:
        return module, function
    others = [result for result in function.results if not isinstance(result, Tensor)]
    if others or any(block.exit == "return" for block in function.body.blocks() if block is not function.body):
        problem = f"a result is {others[0]}" if others else "it returns from within a branch or loop"
        message = f"@{function.name} cannot be made a kernel: {problem}"
        remedy = "declare what the host launches as kernel, not as func"
        refusal = refusal_at(function.location, "types", message, "results that are tensors", "RT-02-01", remedy)
        raise Rejection([refusal])
    kernel = _kernel(function)
    with_kernel = replace(module, functions={**module.functions, function.name: kernel})
    verify(with_kernel)
    return with_kernel, kernel


def _kernel(function: Function) -> Function:
    """Return a function that leaves its results in parameters."""
    names = {parameter.name for parameter in function.parameters}
    outputs = tuple(Value(_free(f"r{place}", names), type_) for place, type_ in enumerate(function.results))
    tensors = tuple(parameter for parameter in function.parameters if isinstance(parameter.type, Tensor))
    results = (*tensors, *function.body.results)
    body = replace(function.body, arguments=(*function.parameters, *outputs), results=results)
    types: tuple[Type, ...] = tuple(tensor.type for tensor in (*tensors, *outputs))
    return replace(function, body=body, results=types, kernel=True)


def _free(name: str, names: set[str]) -> str:
    return name if name not in names else _free(f"{name}_", names)
