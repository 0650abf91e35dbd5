"""Execution of Graph IR: a function of a module on named inputs, on one rank or on a mesh (spec section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.diagnostics import UnsupportedConstruct
from ..ir.module import Function, Instruction, Module
from ..numerics.array import Array
from .binding import InputMismatch, bind, describe
from .interpreter import FROM_ZERO, Interpreter, Observer, RandomSource
from .ranks import Choice, Combine, RankObserver, canonically, meets, mesh_in_force, run_on_mesh

__all__ = [
    "FROM_ZERO",
    "InputMismatch",
    "RandomSource",
    "UnknownFunction",
    "bind_on_mesh",
    "describe",
    "execute",
    "execute_on_mesh",
]


class UnknownFunction(Exception):
    """The module has no function of that name."""

    def __init__(self, name: str, available: tuple[str, ...]) -> None:
        super().__init__(f"no function {name!r}; there is {', '.join(available) or 'none'}")


def execute(
    module: Module,
    function: str,
    inputs: Mapping[str, Array],
    observer: Observer | None = None,
    source: RandomSource = FROM_ZERO,
) -> tuple[Array, ...]:
    """Run a function on named inputs; its results in order, of a kernel its tensor parameters as it leaves them.

    A function that meets other ranks runs on every rank of its mesh, on the same inputs; the results are rank 0's.

    Raises `UnknownFunction`, `InputMismatch`, `Rejection` with phase execute for an error of the running program, or
    `UnsupportedConstruct` where it goes beyond this interpreter.
    """
    target = _find(module, function)
    arguments = bind(target, inputs)
    if meets(module, target):
        mesh = mesh_in_force(module, target, None)
        every = [arguments] * module.meshes[mesh].size
        return run_on_mesh(module, target, every, mesh, observer and _of_rank_0(observer), source=source)[0]
    try:
        next(Interpreter(module, observer, source=source).run(target, arguments))
    except StopIteration as finished:
        results: tuple[Array, ...] = finished.value
        return results
    except RecursionError:
        raise UnsupportedConstruct("execute.deep_calls", target.location) from None
    raise AssertionError(f"@{function} met other ranks")  # which `meets` has ruled out


def execute_on_mesh(
    module: Module,
    function: str,
    inputs: Sequence[Mapping[str, Array]],
    mesh: str | None = None,
    observer: RankObserver | None = None,
    choice: Choice = min,
    combine: Combine = canonically,
    source: RandomSource = FROM_ZERO,
) -> tuple[tuple[Array, ...], ...]:
    """Run a function on every rank of a mesh, named inputs and results by rank, row-major over the mesh.

    Raises as `execute` does, and `Rejection` where ranks do not come together; what it says names the ranks.
    """
    target = _find(module, function)
    mesh, arguments = bind_on_mesh(module, target, inputs, mesh)
    return run_on_mesh(module, target, arguments, mesh, observer, choice, combine, source)


def bind_on_mesh(
    module: Module, function: Function, inputs: Sequence[Mapping[str, Array]], mesh: str | None = None
) -> tuple[str, list[tuple[Array, ...]]]:
    """The mesh that runs a function, and the arguments of each of its ranks. Raises `InputMismatch`, `Rejection`."""
    mesh = mesh_in_force(module, function, mesh)
    ranks = module.meshes[mesh].size
    if len(inputs) != ranks:
        raise InputMismatch(
            "ranks", f"one set of inputs for each of the {ranks} ranks of mesh {mesh}", str(len(inputs))
        )
    return mesh, [_bind_on_rank(function, rank, given) for rank, given in enumerate(inputs)]


def _find(module: Module, function: str) -> Function:
    if function not in module.functions:
        raise UnknownFunction(function, tuple(module.functions))
    return module.functions[function]


def _bind_on_rank(function: Function, rank: int, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
    try:
        return bind(function, inputs)
    except InputMismatch as found:
        raise InputMismatch(f"{found.name} of rank {rank}", found.expected, found.given, found.why) from None


def _of_rank_0(observer: Observer) -> RankObserver:
    def observe(rank: int, instruction: Instruction, results: tuple[Array, ...]) -> None:
        if rank == 0:
            observer(instruction, results)

    return observe
