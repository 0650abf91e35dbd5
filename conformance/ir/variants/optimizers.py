"""Front ends that drop pure operations of Graph IR (language specification, 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.ir.module import Block, Function, Instruction, Module
from tessera_reference.language import CompiledModule

REACH = ("ir/*",)
MAY_FAIL = ("tessera.graph.divide", "tessera.graph.remainder", "tessera.graph.floor_divide")
"""Operations without effects that end an execution for some operands."""

Pass = Callable[[Block], Block]


class Optimizing(ReferenceAdapter):
    """The reference with a pass over the blocks of each function that its front end makes."""

    @staticmethod
    def optimized(body: Block) -> Block:
        """The body of a function after the pass."""
        return body

    def _compile(self, source: str) -> CompiledModule:
        compiled = super()._compile(source)
        return replace(compiled, modules=tuple(map(self._module, compiled.modules)))

    def _module(self, module: Module) -> Module:
        functions = {name: self._function(function) for name, function in module.functions.items()}
        return replace(module, functions=functions)

    def _function(self, function: Function) -> Function:
        return function if function.kernel else replace(function, body=self.optimized(function.body))


def pure(instruction: Instruction) -> bool:
    """True if an instruction has no effect but its results, and always has them."""
    operation = instruction.operation
    impure = operation.effects or operation.calls or instruction.regions or operation.name in MAY_FAIL
    return bool(instruction.results) and not impure


def everywhere(change: Pass, block: Block) -> Block:
    """Apply a pass to the blocks inside a block, then to itself."""
    inner = (
        replace(instruction, regions=tuple(everywhere(change, region) for region in instruction.regions))
        if instruction.regions
        else instruction
        for instruction in block.instructions
    )
    return change(replace(block, instructions=tuple(inner)))


def used_in(block: Block) -> set[Any]:
    """The values that a block and those inside it read."""
    instructions = list(block.walk())
    used = {operand for instruction in instructions for operand in instruction.operands}
    blocks = [block, *(region for instruction in instructions for region in instruction.regions)]
    return used | {value for part in blocks for value in part.results}


@varies("LANG-04-02", "drops pure operations whose results nothing reads", *REACH)
class DropsDeadCode(Optimizing):
    """Until nothing more is dropped."""

    @staticmethod
    def optimized(body: Block) -> Block:
        """The body without them."""
        while True:
            used = used_in(body)

            def kept(block: Block, used: set[Any] = used) -> Block:
                return replace(
                    block,
                    instructions=tuple(
                        instruction
                        for instruction in block.instructions
                        if not pure(instruction) or used.intersection(instruction.results)
                    ),
                )

            smaller = everywhere(kept, body)
            if len(list(smaller.walk())) == len(list(body.walk())):
                return body
            body = smaller
