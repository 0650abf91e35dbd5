"""Symbols of kernels in the image of several modules: each once, since an image has one space of them (LANG-16-01)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir.module import Block, Instruction, Module
from ..ir.trampoline import Walk, trampoline
from ..tile.launch import Launch
from ..tile.verifier import SYMBOL

__all__ = ["joined"]


def joined(modules: Sequence[Module]) -> list[Module]:
    """The modules, with a kernel whose symbol one before has too under a symbol that names its module."""
    taken: set[str] = set()
    found = []
    for module in modules:
        symbols = [name for name, function in module.functions.items() if function.device]
        renamed = {name: _qualified(module, name, taken) for name in symbols if name in taken}
        found.append(_renamed(module, renamed) if renamed else module)
        taken.update(renamed.get(name, name) for name in symbols)
    return found


def _qualified(module: Module, symbol: str, taken: set[str]) -> str:
    """A symbol that is free, here and in the module."""
    name = re.sub("[^A-Za-z0-9_]", "_", f"{SYMBOL}{module.name}_{symbol.removeprefix(SYMBOL)}")
    while name in taken or name in module.functions:
        name += "_"
    return name


def _renamed(module: Module, names: Mapping[str, str]) -> Module:
    functions = {}
    for name, function in module.functions.items():
        new = names.get(name, name)
        body = function.body if function.device else trampoline(_block(function.body, names))
        functions[new] = replace(function, name=new, body=body)
    return replace(module, functions=functions)


def _block(block: Block, names: Mapping[str, str]) -> Walk[Block]:
    """A block of a host function, whose launches name kernels by their new symbols."""
    instructions = []
    for instruction in block.instructions:
        regions = []
        for region in instruction.regions:
            regions.append((yield _block(region, names)))
        instructions.append(replace(_launching(instruction, names), regions=tuple(regions)))
    return replace(block, instructions=tuple(instructions))


def _launching(instruction: Instruction, names: Mapping[str, str]) -> Instruction:
    operation = instruction.operation
    if not isinstance(operation, Launch) or operation.kernel not in names:
        return instruction
    return replace(instruction, operation=replace(operation, kernel=names[operation.kernel]))
