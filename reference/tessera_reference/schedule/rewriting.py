"""Functions with every nest replaced by instructions: one that executes it, or the launch of its kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..ir.module import Block, Function, Instruction, Module
from ..ir.targets import Target
from ..ir.trampoline import Walk, trampoline
from .annotations import host_functions
from .nests import Nest, Plan

Replacement = Callable[[Nest], Sequence[Instruction]]
"""Instructions that define the nest's outputs, the values themselves, from its inputs."""


def with_nests_replaced(module: Module, target: Target, replacement: Replacement) -> Module:
    """A module without schedule operations and composites, each nest replaced; device kernels stay as they are.

    Raises `Rejection` for a fusion that no order of execution allows.
    """
    host = host_functions(module)
    functions = {
        name: function if function.device else rewritten(function, Plan(function, target, name in host), replacement)
        for name, function in module.functions.items()
    }
    return replace(module, functions=functions)


def rewritten(function: Function, plan: Plan, replacement: Replacement) -> Function:
    """A function with the nests of its plan replaced."""
    return replace(function, body=trampoline(_block(function.body, plan, replacement)))


def _block(block: Block, plan: Plan, replacement: Replacement) -> Walk[Block]:
    made: list[Instruction] = []
    for each in plan.block(block):
        if isinstance(each, Nest):
            made += replacement(each)
        else:
            regions = []
            for region in each.regions:
                regions.append((yield _block(region, plan, replacement)))
            made.append(replace(each, regions=tuple(regions)))
    return Block(block.arguments, tuple(made), tuple(map(plan.root, block.results)), block.exit)
