"""Kernels with named dimensions, lowered ahead of a launch for one choice of extents (runtime spec 8.1; AMB-RT-60).

Kernels have extents that are numbers, so that the code which a launch runs is made for its arguments. The image holds
code all the same: that for the first of a few extents, every dimension the same, with which the kernel can be lowered.
The Target IR beside the binary says which these are, in the types of the program.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..ir.module import Module
from ..ir.operation import Refusal
from ..ir.targets import Target
from ..ir.types import Tensor, Type
from ..levels.execution import lower
from ..schedule.specialize import specialized_alone
from .kernels import Offered

__all__ = ["EXTENTS", "example"]

EXTENTS = (16, 8, 32, 64, 4, 128, 2, 1)
"""In the order in which they are tried: most kernels take any, some a multiple of their tile."""


def example(kernel: Offered, target: Target) -> Module | None:
    """A kernel with named dimensions, and what it calls, at Target IR; nothing where none of the extents fits."""
    for extent in EXTENTS:
        try:
            return lower(_specialized(kernel, extent), "target", target)
        except (Refusal, Rejection, UnsupportedConstruct):
            continue
    return None


def _specialized(kernel: Offered, extent: int) -> Module:
    """The kernel with every named dimension of this extent. Raises `Refusal` and `Rejection`."""
    types = tuple(_closed(each.type, extent) for each in kernel.function.parameters)
    return specialized_alone(kernel.module, {kernel.function.name: types})


def _closed(type_: Type, extent: int) -> Type:
    if not isinstance(type_, Tensor):
        return type_
    return replace(type_, shape=tuple(each if isinstance(each, int) else extent for each in type_.shape))
