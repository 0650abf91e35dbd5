"""IR text of any level: reading, verifying, and running it (sections 6, 7, 8, 11).

A text of a level holds operations of that level. Operations of Graph IR may appear at every level; a kernel computes
with the elementwise ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.execution import find_function
from ..graph.grad import missing_adjoints
from ..graph.interpreter import InputMismatch, describe
from ..ir.operation import Function, Module, Problems, Refusal
from ..ir.targets import Target
from ..ir.text_reader import read_modules
from ..ir.types import Memref, Pointer, Scalar, Value
from ..numerics.array import Array
from ..schedule.nests import verify_schedule
from ..target_ir.verifier import verify_target_kernel
from ..tile.interpreter import Argument, Uninitialised, run_kernel
from ..tile.verifier import verify_kernel
from .execution import LEVELS, Level, run_lowered

HOST: Mapping[str, tuple[str, ...]] = {
    "graph": ("tessera.graph.", "tessera.collective.", "tessera.await"),
    "schedule": ("tessera.graph.", "tessera.schedule."),
    "tile": ("tessera.graph.", "tessera.tile.launch"),
    "target": ("tessera.graph.", "tessera.tile.launch"),
}
"""The prefixes of the operations in functions of the host."""
VERIFIERS = {"tile": verify_kernel, "target": verify_target_kernel}
"""The verifiers of kernels by level."""


def read_at(level: Level, text: str, target: Target, filename: str = "<ir>") -> tuple[Module, ...]:
    """Return the modules of a text of a level, verified for a target.

    Raises `Rejection` for a malformed or invalid text, `UnsupportedConstruct` for one that is nested too deep.
    """
    modules = read_modules(text, filename)
    problems = Problems()
    for module in modules:
        problems.found += missing_adjoints(module)
        for function in module.functions.values():
            _require_level(problems, level, function)
    problems.require_none()
    for module in modules:
        verify_at(level, module, target)
    return modules


def level_of(text: str) -> Level:
    """Return the lowest level of which a text has operations."""
    return next((level for level in reversed(LEVELS) if f"tessera.{level}." in text), LEVELS[0])


def require_names(modules: Sequence[Module]) -> None:
    """Require that the modules of a user's text have distinct names; those of an image share one.

    Raises `Rejection`.
    """
    names, problems = set[str](), Problems()
    for module in modules:
        if module.name and module.name in names:
            message = f"module: @{module.name} is declared twice"
            problems.add(Refusal("types", message, "one module of a name", "AMB-LANG-86"), module.location)
        names.add(module.name)
    problems.require_none()


def verify_at(level: Level, module: Module, target: Target) -> None:
    """Check the rules of the levels below Graph IR for a module. Raises `Rejection`."""
    problems = Problems()
    for function in module.functions.values():
        with problems.at(function.location):
            if function.device:
                VERIFIERS[function.device](function, target)
            elif level == "schedule":
                verify_schedule(function, target)
    problems.require_none()


def _require_level(problems: Problems, level: Level, function: Function) -> None:
    """Require operations of this level; the verifier of kernels checks those of a kernel."""
    if function.device:
        if function.device != level:
            message = f"@{function.name} is a kernel of {function.device.capitalize()} IR"
            problems.add(Refusal("types", message, f"{level.capitalize()} IR", "LANG-05.2-01"), function.location)
        return
    allowed = HOST[level]
    requirement = f"operations of {', '.join(prefix.rstrip('.') for prefix in allowed)}"
    for instruction in function.body.walk():
        if not instruction.operation.name.startswith(allowed):
            message = f"{instruction.operation.name} is no operation of this level"
            problems.add(Refusal("types", message, requirement, "LANG-05.2-01"), instruction.location)


def run_text(
    level: Level, modules: tuple[Module, ...], name: str, inputs: Mapping[str, Array], target: Target
) -> tuple[Array, ...]:
    """Run the function `name`, or `module.name`; return a function's results, or a kernel's buffers afterwards.

    Raises `UnknownFunction`, `InputMismatch`, `Rejection` with phase execute and `UnsupportedConstruct`.
    """
    module, function = find_function(modules, name)
    if not function.device:
        return run_lowered(level, module, function.name, inputs, target)
    return run_kernel(function, bind_kernel(function, inputs), target)


def bind_kernel(kernel: Function, inputs: Mapping[str, Array]) -> tuple[Argument, ...]:
    """Return arguments of a kernel by name; it must fill a memref that is left out. Raises `InputMismatch`."""
    names = [parameter.name for parameter in kernel.parameters]
    for name, array in inputs.items():
        if name not in names:
            raise InputMismatch(name, "", describe(array), f"@{kernel.name} takes {', '.join(names) or 'none'}")
    return tuple(_bind_one(parameter, inputs.get(parameter.name)) for parameter in kernel.parameters)


def _bind_one(parameter: Value, array: Array | None) -> Argument:
    type_ = parameter.type
    if array is None:
        if isinstance(type_, Memref):
            return Uninitialised(type_.dtype, tuple(dim for dim in type_.shape if isinstance(dim, int)))
        raise InputMismatch(parameter.name, str(type_), "")
    fits = isinstance(type_, Pointer) or (
        isinstance(type_, Memref | Scalar) and (type_.dtype, type_.shape) == (array.dtype, array.shape)
    )
    if not fits:
        raise InputMismatch(parameter.name, str(type_), describe(array))
    return array
