"""From Tile IR to Target IR: every kernel in the dialects of its vendor; functions of the host stay (section 8.2)."""

from __future__ import annotations

from dataclasses import replace

from ...ir.module import Function, Module
from ...ir.targets import Target, target_of
from .. import operations as operations  # declares them, so that what is printed can be read
from .kernel import lowered_kernel


def to_target(module: Module, target: Target) -> Module:
    """The module with its kernels lowered. Raises `UnsupportedConstruct` for what the Target level cannot express."""
    return replace(module, functions={name: _lowered(each, target) for name, each in module.functions.items()})


def _lowered(function: Function, target: Target) -> Function:
    if function.device != "tile":
        return function
    own = function.attributes.get("target")
    return lowered_kernel(function, target_of(own) if isinstance(own, str) else target)
