"""Texts of programs for the tools of vendors: LLVM IR, PTX, AMDGCN of all kernels (LANG-08-01 to -03)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.module import Module
from ..ir.targets import Target
from ..target.emission import machine_code
from ..target.emission.entry import llvm_module_text
from ..target.emission.machine_code import VENDORS, OtherVendor, assembly, require_vendor
from .execution import Options, lower
from .symbols import joined

__all__ = ["TEXTS", "OtherVendor", "bitcode", "emit", "emit_all"]

TEXTS = ("llvm", *VENDORS)
"""The kinds of text."""


def emit(module: Module, to: str, target: Target) -> str:
    """The text of a module of Target IR. Raises `OtherVendor`, and `MissingTool` without llvmlite."""
    if to == "llvm":
        return llvm_module_text(module, target)
    require_vendor(to, target)
    return assembly(llvm_module_text(module, target), to, target)


def bitcode(module: Module, target: Target) -> bytes:
    """LLVM bitcode of a module of Target IR (RT-08.1-06). Raises `MissingTool` without llvmlite."""
    return machine_code.bitcode(llvm_module_text(module, target))


def emit_all(modules: Sequence[Module], to: str, target: Target, options: Options) -> str:
    """The kernels of modules of Graph IR as one text. Raises as `emit` and `lower`."""
    lowered = joined([lower(module, "target", target, options) for module in modules])
    kernels = {name: each for module in lowered for name, each in module.functions.items() if each.device}
    return emit(replace(lowered[0], functions=kernels), to, target) if lowered else ""
