"""Programs of the dialect of collectives: reading them, and running them on every rank of a mesh (collectives spec 2).

What a wire may lose is decided before anything runs, for the whole program (AMB-COLL-05, AMB-COLL-53).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..abi.status import Failure, Status
from ..graph.collective_hints import WIRES, loses
from ..graph.disagreement import Disagreement
from ..graph.execution import InputMismatch, UnknownFunction, execute_on_mesh
from ..graph.futures import FutureCollective
from ..graph.interpreter import reachable
from ..ir.module import Function, Module
from ..ir.types import Future
from ..numerics.array import Array
from .program_orders import combine_at

__all__ = ["find_function", "require_runnable", "run_program"]

_NAME = "collectives.execute"


def find_function(modules: Sequence[Module], name: str) -> tuple[Module, Function]:
    """The module and function that `function` or `module.function` names. Raises `UnknownFunction`."""
    owner, _, short = name.rpartition(".")
    found = [module for module in modules if short in module.functions and owner in ("", module.name)]
    if len(found) != 1:
        raise UnknownFunction(name, tuple(f"{module.name}.{each}" for module in modules for each in module.functions))
    return found[0], found[0].functions[short]


def run_program(
    module: Module,
    function: Function,
    inputs: Sequence[Mapping[str, Array]],
    mesh: str | None = None,
    level: str = "strict",
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, inputs and results by rank, with the bits of a level (AMB-COLL-96).

    This machine never quantizes on the wire: where level fast allows it, it is not demanded (RT-13-09).

    Raises as `execute_on_mesh`, and `Failure`: TESS_ERR_DETERMINISM_VIOLATION for a wire that would lose bits,
    TESS_ERR_COLLECTIVE_MISMATCH for ranks that do not come together.
    """
    require_runnable(module, function, lossy=level == "fast")
    try:
        return execute_on_mesh(module, function.name, inputs, mesh, combine=combine_at(level))
    except Disagreement as disagreement:
        (found,) = disagreement.diagnostics
        given = "; ".join((found.message, *found.operands))
        raise Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, _NAME, given, found.requirement) from disagreement


def require_runnable(module: Module, function: Function, lossy: bool = False) -> None:
    """Refuse futures that leave a function, and, unless `lossy`, wires that lose bits.

    Raises `InputMismatch`, and `Failure` with TESS_ERR_DETERMINISM_VIOLATION.
    """
    for name, type_ in [(each.name, each.type) for each in function.parameters] + [("", t) for t in function.results]:
        if isinstance(type_, Future):
            what = name or f"a result of @{function.name}"
            raise InputMismatch(what, f"{type_.value}, which leaves the program", str(type_), "await it")
    if not lossy:
        _require_lossless(module, function)


def _require_lossless(module: Module, function: Function) -> None:
    for each in reachable(module, function):
        operation = each.operation
        if isinstance(operation, FutureCollective) and loses(operation.dtype, operation.x.dtype):
            given = f"{operation.name} of {operation.x.dtype} over dtype {operation.dtype} at {each.location}"
            wires = [name for name in WIRES if not loses(name, operation.x.dtype)]
            expected = f"one of {', '.join(wires)}, no dtype, or level fast" if wires else "no dtype, or level fast"
            raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, _NAME, given, expected)
