"""Random operations that count as pure, share streams, or draw other numbers (language spec, 4; AMB-LANG-171)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import count
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import language as adapter
from tessera_reference.adapter import make, messages
from tessera_reference.graph.composites import Dropout, DropoutMask, Normal, Uniform
from tessera_reference.graph.control import While
from tessera_reference.graph.interpreter import Within
from tessera_reference.graph.term import Term, widened
from tessera_reference.ir.operation import Function, Instruction, Operation
from tessera_reference.ir.types import Value
from tessera_reference.numerics import random

from .changes import changed

SHOWN = adapter.function_message
DRAWS = (Uniform, Normal, Dropout)


# Effects


Cleaning = Callable[[list[Instruction], set[Value]], list[Instruction]]
"""The instructions that stay, given all and the values that the function returns."""


def cleaned(name: str, clause: str, description: str, clean: Cleaning) -> Violation:
    """Return a violation whose IR lacks some operations."""

    def function(given: Function) -> dict[str, Any]:
        kept = clean(list(given.body.walk()), set(given.body.results))
        return SHOWN(given) | {"operations": [messages._operation(operation) for operation in kept]}

    return replaced(clause, description, make, ("adapter.language.function_message", function), name=name)


def without_unused(*operations: type[Operation]) -> Cleaning:
    def clean(instructions: list[Instruction], returned: set[Value]) -> list[Instruction]:
        taken = returned.union(*(instruction.operands for instruction in instructions))
        return [
            instruction
            for instruction in instructions
            if type(instruction.operation) not in operations or taken & {*instruction.results}
        ]

    return clean


def without_twins(*operations: type[Operation]) -> Cleaning:
    def clean(instructions: list[Instruction], returned: set[Value]) -> list[Instruction]:
        known = set()
        kept = []
        for instruction in instructions:
            twin = (instruction.operation, instruction.operands)
            if type(instruction.operation) not in operations or twin not in known:
                kept.append(instruction)
            known.add(twin)
        return kept

    return clean


def streams(name: str, description: str, next_stream: Callable[..., int], clause: str = "LANG-04-06") -> Violation:
    """Return a violation that numbers draws differently."""
    return replaced(
        clause,
        description,
        make,
        ("graph.interpreter.Interpreter.next_stream", next_stream),
        ("graph.interpreter.Within.next_stream", lambda self: next_stream(self.interpreter)),
        name=name,
    )


_ever = count()


def explicit_counts_too(stream: int | None, env: Any) -> int:
    following: int = env.next_stream()
    return following if stream is None else stream


def once_more(self: While, *carried: Any, env: Any) -> Any:
    """The condition of a loop that ends is evaluated twice."""
    found = yield from _while_steps(self, *carried, env=env)
    yield from env.region(0, found)
    return found


def beginning_anew(self: Within, function: str, arguments: Any) -> Any:
    self.interpreter.stream = 0
    return _call(self, function, arguments)


_while_steps, _call, _decompose = While.steps, Within.call, Dropout.decompose

EFFECTS = [
    replaced("LANG-04-06", "evaluates a condition once more", make, ("graph.control.While.steps", once_more),
        name="conditions_once_more"),
    replaced("LANG-04-06", "numbers the draws of a call anew", make, ("graph.interpreter.Within.call", beginning_anew),
        name="calls_anew"),
    replaced("LANG-04-06", "draws nothing where nothing is dropped", make, ("graph.composites.Dropout.decompose",
        lambda self, build, x: x if self.rate == 0 else _decompose(self, build, x)), name="no_draw_of_rate_0"),
    cleaned("unused_draws_left_out", "LANG-04-06", "leaves out draws that nobody uses", without_unused(*DRAWS)),
    cleaned("equal_draws_merged", "LANG-04-06", "takes equal draws for one", without_twins(*DRAWS)),
    replaced("LANG-04-06", "says that draws have no effect", make, ("graph.composites.Draw.effects", frozenset()),
        ("graph.composites.Dropout.effects", frozenset()), name="pure_draws"),
    replaced("LANG-04-06", "counts draws that are told their stream", make,
        ("graph.composites.stream_of", explicit_counts_too), name="told_counts_too"),
]  # fmt: skip


# Numbers


def drawn(name: str, clause: str, description: str, change: Callable[..., Any]) -> Violation:
    """Return a violation whose draws have other settings; `change` maps seed, stream, shape, dtype and offset."""
    substitutions = [
        (operation, "draw", staticmethod(lambda *arguments, draw=draw: draw(*change(*arguments))))
        for operation, draw in ((Uniform, random.uniform), (Normal, random.normal))
    ]
    return changed(clause, name, description, *substitutions, only=["uniform", "normal"])


NUMBERS = [
    drawn("every_part_is_the_first", "RT-11-03", "begins every part with element 0",
        lambda seed, stream, shape, dtype, offset: (seed, stream, shape, dtype, 0)),
]  # fmt: skip


# Dropout


def dropped(name: str, description: str, compose: Callable[[Any, Term, Term], Term]) -> Violation:
    """Return a violation with another composition of dropout from x in the accumulator type and the mask."""

    def decompose(self: Any, build: Any, x: Any) -> Any:
        source = {"seed": self.seed, "stream": self.stream, "offset": self.offset}
        keeps = Term(build(DropoutMask, shape=self.x.shape, rate=self.rate, **source), build)
        return compose(self, widened(x, build), keeps).cast_to(self.x.dtype).value

    return changed("LANG-02-04", name, description, ("graph.composites.Dropout.decompose", decompose), only=["dropout"])


def share(self: Any) -> Fraction:
    """Return the kept share."""
    return 1 - Fraction(self.rate)


DROPOUT = [
    dropped("times_zero", "multiplies what is dropped by zero",
        lambda self, x, keeps: x / share(self) * keeps.cast(dtype=x.dtype)),
    dropped("by_reciprocal", "multiplies by 1 / (1 - rate)",
        lambda self, x, keeps: (x * (1 / share(self))).where(keeps)),
    replaced("LANG-05.5-01", "differentiates dropout with a mask of its own", make,
        ("graph.composites.Dropout.transparent", False), ("graph.composites.Dropout.adjoint",
        lambda self, at, build: (build(Dropout, at.dy, rate=self.rate, seed=self.seed, stream=self.stream),)),
        name="another_mask"),
]  # fmt: skip
