"""Texts of programs for vendors' tools: LLVM IR, PTX, AMDGCN of all kernels (LANG-08-01 to -03, LANG-16-01)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..ir.operation import Module, Operation, with_operations
from ..ir.targets import Target
from ..target_ir.emission import machine_code
from ..target_ir.emission.machine_code import VENDORS, assembly, llvm_module_text, require_vendor
from ..tile.interpreter import Launch
from ..tile.verifier import SYMBOL
from .execution import Options, lower

# Symbols of kernels in the image of several modules: each is unique, since an image has one namespace (LANG-16-01).


def joined(modules: Sequence[Module]) -> list[Module]:
    """Return the modules; a kernel with the symbol of an earlier one gets a symbol that names its module."""
    names: set[str] = set()
    parts = []
    for module in modules:
        symbols = [name for name, function in module.functions.items() if function.device]
        renamed = {name: _qualified(module, name, names) for name in symbols if name in names}
        parts.append(_renamed(module, renamed) if renamed else module)
        names.update(renamed.get(name, name) for name in symbols)
    return parts


def _qualified(module: Module, symbol: str, names: set[str]) -> str:
    """Return a symbol that is free, here and in the module."""
    name = re.sub("[^A-Za-z0-9_]", "_", f"{SYMBOL}{module.name}_{symbol.removeprefix(SYMBOL)}")
    while name in names or name in module.functions:
        name += "_"
    return name


def _renamed(module: Module, names: Mapping[str, str]) -> Module:
    functions = {}
    for name, function in module.functions.items():
        new = names.get(name, name)
        body = function.body if function.device else with_operations(function.body, partial(_launching, names))
        functions[new] = replace(function, name=new, body=body)
    return replace(module, functions=functions)


def _launching(names: Mapping[str, str], operation: Operation) -> Operation:
    """Return an operation of a host function; a launch names its kernel by the new symbol."""
    if isinstance(operation, Launch) and operation.kernel in names:
        return replace(operation, kernel=names[operation.kernel])
    return operation


# Texts of programs for the tools of vendors: LLVM IR, PTX, AMDGCN of all kernels (LANG-08-01 to -03).


TEXTS = ("llvm", *VENDORS)
"""The kinds of text."""


def emit(module: Module, to: str, target: Target) -> str:
    """Return the text of a module of Target IR. Raises `OtherVendor`, and `MissingTool` without llvmlite."""
    if to == "llvm":
        return llvm_module_text(module, target)
    require_vendor(to, target)
    return assembly(llvm_module_text(module, target), to, target)


def bitcode(module: Module, target: Target) -> bytes:
    """Return LLVM bitcode of a module of Target IR (RT-08.1-06). Raises `MissingTool` without llvmlite."""
    return machine_code.bitcode(llvm_module_text(module, target))


def emit_all(modules: Sequence[Module], to: str, target: Target, options: Options) -> str:
    """Return the kernels of modules of Graph IR as one text. Raises as `emit` and `lower`."""
    lowered = joined([lower(module, "target", target, options) for module in modules])
    kernels = {name: function for module in lowered for name, function in module.functions.items() if function.device}
    return emit(replace(lowered[0], functions=kernels), to, target) if lowered else ""
