"""`to_tile`: a module whose nests have become kernels, and host functions that launch them (sections 8.1, 8.2, 16)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from ...ir.diagnostics import UnsupportedConstruct
from ...ir.operation import Function, Instruction, Module, Names, Refusal
from ...ir.targets import Target
from ...ir.types import own_dims
from ...schedule.lowering import lowering_refused
from ...schedule.nests import Nest, Plan, rewritten
from ...schedule.operations import host_functions
from ..interpreter import Launch
from ..verifier import SYMBOL
from . import elements  # noqa: F401  its rules register themselves
from .contractions import contraction_kernel
from .elements import NestKernel
from .kernel import Extents, ceiling, extents_of
from .maps import map_kernel
from .rows import rows_kernel

Lowered: TypeAlias = tuple[NestKernel, Extents, int]
"""A kernel, its grid and the threads of its blocks."""

GENERATORS: Mapping[str, Callable[[Nest, Target], Lowered]] = {
    "contract": contraction_kernel,
    "map": map_kernel,
    "rows": rows_kernel,
}
"""Generators of kernels by the kind of nest."""


def to_tile(module: Module, target: Target) -> Module:
    """Lower a module of Graph or Schedule IR to Tile IR; kernels, and functions that launch some, stay unchanged.

    Raises `Rejection` for a function with unknown extents, and for a nest that cannot become a kernel.
    """
    host = host_functions(module)
    names = Names()
    for name in (*module.functions, *module.meshes):
        names.unique(name)
    functions: dict[str, Function] = {}
    kernels: dict[str, Function] = {}
    for name, function in module.functions.items():
        if is_at_tile_ir(function):
            functions[name] = function
        else:
            plan = Plan(function, target, name in host)
            require_known_extents(function)
            functions[name] = rewritten(function, plan, _Launches(function, plan, target, names, kernels))
    return replace(module, functions={**functions, **kernels})


def is_at_tile_ir(function: Function) -> bool:
    """True if a function is a kernel, or launches one."""
    return bool(function.device) or any(isinstance(step.operation, Launch) for step in function.body.walk())


def require_known_extents(function: Function) -> None:
    """Refuse a function with `?` or a name in place of an extent (LANG-11-02). Raises `Rejection`."""
    open_ = own_dims(parameter.type for parameter in function.parameters)
    if open_:
        message = f"@{function.name} has extents that are not known"
        remedy = "give inputs, whose shapes become those of the parameters"
        refusal = Refusal("shapes", message, "known extents before Tile IR", "LANG-11-02", remedy)
        raise lowering_refused(refusal, function.location)


MOST_ELEMENTS = 1 << 31
"""The most elements, since kernels compute indices in int32, as GPUs do where they can."""


@dataclass
class _Launches:
    """A replacement of one function's nests by launches, which keeps their kernels."""

    function: Function
    plan: Plan
    target: Target
    taken: Names
    kernels: dict[str, Function]
    count: int = 0

    def __call__(self, nest: Nest) -> Sequence[Instruction]:
        """Return a nest's host instructions. Raises `Rejection`, and `UnsupportedConstruct` past `MOST_ELEMENTS`."""
        if _reach(nest) > MOST_ELEMENTS:
            raise UnsupportedConstruct(f"lower.more_than_{MOST_ELEMENTS}_elements", nest.location)
        name = self.taken.unique(f"{SYMBOL}{mangled(self.function.name)}_{self.count}")
        self.count += 1
        try:
            kernel, grid, threads = GENERATORS[nest.kind](nest, self.target)
            self.kernels[name] = kernel.finish(name, grid, threads)
        except Refusal as refusal:
            raise lowering_refused(refusal, nest.location) from refusal
        return kernel.launch(name, self.plan.names)


def _reach(nest: Nest) -> int:
    """Return the most elements that whole tiles of a tensor of a nest cover, including the last tile's padding."""
    m, n, _ = nest.tile
    if nest.kind == "rows":  # rows may lie along either of the last two dimensions
        return max(prod(extents_of(value.type)) for value in (*nest.inputs, *nest.outputs)) + m * n
    most = 0
    for value in (*nest.inputs, *nest.outputs):
        *batch, rows, columns = (1, 1, *extents_of(value.type))
        most = max(most, prod(batch) * ceiling(rows, m) * m * ceiling(columns, n) * n)
    return most


def mangled(name: str) -> str:
    """Return a name with every character replaced that a C identifier cannot contain (LANG-16-01)."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)
