"""Programs of the dialect of collectives: the order of their combinations, and their run (collectives spec 2, 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ..abi.status import mismatch, violation
from ..graph.collectives import AllReduce, Collective, Reducing
from ..graph.execution import Combine, Disagreement, canonically, execute_on_mesh
from ..graph.futures import WIRES, FutureCollective, GroupCollective, loses
from ..graph.interpreter import InputMismatch, reachable
from ..ir.operation import Function, Module
from ..ir.types import Future
from ..numerics.array import Array
from .compression import read_compression
from .operations import ONE, combined, over_wire
from .schedules import algorithm
from .selection import select

# In which order the collectives of a program combine what ranks bring (LANG-09-05, -06; AMB-COLL-29, -96).
#
# Under strict over the canonical tree, whatever travels how. Under other levels a collective of the dialect has the
# order of its algorithm: the one that it names, or the one that is selected for its bytes where it leaves that to
# auto. Collectives of Graph IR, `dist.*`, name none and have the canonical tree at every level.


def combine_at(level: str) -> Combine:
    """Return the function by which the collectives of a program combine at a level."""
    if level == "fast":
        return as_sent
    return canonically if level == "strict" else _by_algorithm


def as_sent(operation: Collective, contributions: Sequence[Array]) -> Sequence[Array]:
    """Return every rank's result of data that travel as the operation's `dtype` (AMB-COLL-53, AMB-COLL-61)."""
    if not isinstance(operation, FutureCollective) or not loses(operation.dtype, operation.x.dtype):
        return _by_algorithm(operation, contributions)
    compression = read_compression(operation.name, operation.dtype, operation.qscheme)
    return over_wire(operation.short_name, contributions, compression, partial(_by_algorithm, operation))


def _by_algorithm(operation: Collective, contributions: Sequence[Array]) -> Sequence[Array]:
    """Return every rank's result: reductions of the dialect in the order of their algorithm, the others as they are.

    The share of a rank is what an all-reduce shares out, of a reduce-scatter the part that the rank is given.
    """
    plain = operation.plain() if isinstance(operation, GroupCollective) else operation
    if not isinstance(operation, GroupCollective) or not isinstance(plain, Reducing):
        return operation.combine(contributions)
    ranks, x = len(contributions), contributions[0]
    used = algorithm(_algorithm(operation, x.values.size, ranks), ranks)
    if isinstance(plain, AllReduce):
        return plain.distribute(combined(used, plain.op, "deterministic", ONE, contributions), ranks)
    parts = [[part.values for part in plain.distribute(contribution, ranks)] for contribution in contributions]
    total = combined(used, plain.op, "deterministic", ONE, [Array(x.dtype, np.stack(values)) for values in parts])
    return [Array(x.dtype, part) for part in total.values]


def _algorithm(operation: GroupCollective, size: int, ranks: int) -> str:
    """The algorithm that a collective names, or that the table by size has for its full buffer."""
    if operation.algo not in (None, "auto"):
        return str(operation.algo)
    return select(operation.short_name, size * operation.x.dtype.storage_bytes, ranks).algorithm


# Running a program on every rank of a mesh. What a wire may lose is decided before, for the whole program.
#
# Collectives spec 2; AMB-COLL-05, AMB-COLL-53.


_NAME = "collectives.execute"


def run_program(
    module: Module,
    function: Function,
    inputs: Sequence[Mapping[str, Array]],
    mesh: str | None = None,
    level: str = "strict",
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, inputs and results by rank, with the bits of a level (AMB-COLL-96).

    Under level fast data are rounded to the wire's dtype that the program names (AMB-COLL-61).

    Raises as `execute_on_mesh`, and `Failure`: TESS_ERR_DETERMINISM_VIOLATION for a wire that would lose bits,
    TESS_ERR_COLLECTIVE_MISMATCH for ranks that do not come together.
    """
    require_runnable(module, function, lossy=level == "fast")
    try:
        return execute_on_mesh(module, function.name, inputs, mesh, combine=combine_at(level))
    except Disagreement as disagreement:
        (diagnostic,) = disagreement.diagnostics
        actual = "; ".join((diagnostic.message, *diagnostic.operands))
        raise mismatch(_NAME, actual, diagnostic.requirement) from disagreement


def require_runnable(module: Module, function: Function, lossy: bool = False) -> None:
    """Refuse futures that leave a function, and, unless `lossy`, wires that lose bits.

    Raises `InputMismatch`, and `Failure` with TESS_ERR_DETERMINISM_VIOLATION.
    """
    parameters = [(parameter.name, parameter.type) for parameter in function.parameters]
    for name, type_ in (*parameters, *((f"a result of @{function.name}", result) for result in function.results)):
        if isinstance(type_, Future):
            raise InputMismatch(name, f"{type_.value}, which leaves the program", str(type_), "await it")
    if not lossy:
        _require_lossless(module, function)


def _require_lossless(module: Module, function: Function) -> None:
    for instruction in reachable(module, function):
        operation = instruction.operation
        if isinstance(operation, FutureCollective) and loses(operation.dtype, operation.x.dtype):
            scheme = f" and qscheme {operation.qscheme}" if operation.qscheme else ""
            wire = f"dtype {operation.dtype}{scheme}"
            actual = f"{operation.name} of {operation.x.dtype} over {wire} at {instruction.location}"
            wires = [name for name in WIRES if not loses(name, operation.x.dtype)]
            expected = f"one of {', '.join(wires)}, no dtype, or level fast" if wires else "no dtype, or level fast"
            raise violation(_NAME, actual, expected)
