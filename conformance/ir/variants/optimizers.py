"""Front ends that drop, merge, repeat, move or fold pure operations of Graph IR (language specification, 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from math import isfinite
from typing import Any

from tessera_conformance.strength import varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.graph.constant import Constant
from tessera_reference.graph.control import Barrier, Directive
from tessera_reference.ir.operation import Block, Function, Instruction, Module
from tessera_reference.ir.types import Scalar, Value
from tessera_reference.language import CompiledModule
from tessera_reference.numerics.array import Array

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


def read_in(block: Block) -> set[Any]:
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
            used = read_in(body)

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


def renamed(block: Block, names: dict[Any, Any]) -> Block:
    """A block that reads other values in the place of some."""
    return replace(
        block,
        instructions=tuple(
            replace(
                instruction,
                operands=tuple(names.get(value, value) for value in instruction.operands),
                regions=tuple(renamed(region, names) for region in instruction.regions),
            )
            for instruction in block.instructions
        ),
        results=tuple(names.get(value, value) for value in block.results),
    )


@varies("LANG-04-02", "computes equal pure operations of equal operands once", *REACH)
class MergesEqual(Optimizing):
    """In each block; later equals become the first."""

    @staticmethod
    def optimized(body: Block) -> Block:
        """The body with the first of equal operations in the place of the others."""

        def merged(block: Block) -> Block:
            first: dict[Any, Instruction] = {}
            names: dict[Any, Any] = {}
            for instruction in block.instructions:
                operands = tuple(names.get(value, value) for value in instruction.operands)
                key = (repr(instruction.operation), repr(instruction.attributes), operands)
                equal = first.setdefault(key, instruction) if pure(instruction) else instruction
                if equal is not instruction:
                    names |= dict(zip(instruction.results, equal.results, strict=True))
            left = tuple(remaining for remaining in block.instructions if not names.keys() & set(remaining.results))
            return renamed(replace(block, instructions=left), names)

        return everywhere(merged, body)


@varies("LANG-04-02", "computes what depends on literals alone before the program runs", *REACH)
class FoldsConstants(Optimizing):
    """Scalars, by the reference arithmetic."""

    @staticmethod
    def optimized(body: Block) -> Block:
        """The body with constants in the place of what has constant operands."""
        known: dict[Any, Array] = {}

        def folded(block: Block) -> Block:
            return replace(block, instructions=tuple(map(constant_of, block.instructions)))

        def constant_of(instruction: Instruction) -> Instruction:
            foldable = pure(instruction) and all(value in known for value in instruction.operands)
            if not foldable or not isinstance(instruction.results[0].type, Scalar):
                return instruction
            operands = [known[value] for value in instruction.operands]
            result = instruction.operation.execute(*operands, env=None)
            value = result.values.item()
            if isinstance(value, complex) or not isfinite(value):
                return instruction
            known[instruction.results[0]] = result
            if isinstance(instruction.operation, Constant):
                return instruction
            return replace(instruction, operation=Constant(value, result.dtype), operands=())

        return everywhere(folded, body)


@varies("LANG-04-02", "computes pure operations as late as it can between barriers, directives and blocks", *REACH)
class Delays(Optimizing):
    """A pure operation goes behind operations that do not read it; the order of effects stays."""

    @staticmethod
    def optimized(body: Block) -> Block:
        """The body in another order."""

        def delayed(block: Block) -> Block:
            waiting: list[Instruction] = []
            order: list[Instruction] = []

            def release(instruction: Instruction) -> None:
                operands = {
                    *instruction.operands,
                    *(value for region in instruction.regions for value in read_in(region)),
                }
                for needed in [candidate for candidate in waiting if operands & set(candidate.results)]:
                    if needed in waiting:
                        waiting.remove(needed)
                        release(needed)
                order.append(instruction)

            for instruction in block.instructions:
                if pure(instruction):
                    waiting.append(instruction)
                    continue
                while waiting and (instruction.regions or isinstance(instruction.operation, Barrier | Directive)):
                    release(waiting.pop())
                release(instruction)
            while waiting:
                release(waiting.pop())
            return replace(block, instructions=tuple(order))

        return everywhere(delayed, body)


@varies("LANG-04-02", "has a literal of its own for each operation that reads one", *REACH)
class RepeatsLiterals(Optimizing):
    """No constant has two readers."""

    @staticmethod
    def optimized(body: Block) -> Block:
        """The body with a copy of a constant before each of its readers in the same block."""
        number = count()

        def repeated(block: Block) -> Block:
            made = {
                constant.results[0]: constant
                for constant in block.instructions
                if isinstance(constant.operation, Constant)
            }
            instructions: list[Instruction] = []
            for instruction in block.instructions:
                names = {}
                for value in [value for value in dict.fromkeys(instruction.operands) if value in made]:
                    names[value] = Value(f"again.{next(number)}", value.type)
                    instructions.append(replace(made[value], results=(names[value],)))
                operands = tuple(names.get(value, value) for value in instruction.operands)
                instructions.append(replace(instruction, operands=operands))
            return replace(block, instructions=tuple(instructions))

        return everywhere(repeated, body)
