"""A vector's program as calls of `numerics.evaluate`, for an implementation without a parser (`--door=operations`).

The oracle function that confirms a vector names the operation, its operands in order and its attributes: those of the
call. A program of several operations is as many calls, each taking results of those before it; a literal is a scalar
operand, rounded to the dtype of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tessera_conformance.oracle.formats import tensor_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.model import Vector

Evaluate = Callable[["Step", Sequence[Tensor]], Sequence[Tensor]]
"""Asks for one operation of these operands; its results."""

LITERAL = "literal"
"""Stands for the literal of the program as an operand."""


@dataclass(frozen=True)
class Step:
    """One operation; an operand is the place of an input of the vector, the name of an earlier step, or `LITERAL`."""

    operation: str
    operands: Sequence[int | str]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


PROGRAMS: Mapping[str, Sequence[Step]] = {
    "scale": [Step("multiply", [0, LITERAL])],
    "multiply_add": [Step("multiply", [0, 1], name="product"), Step("add", ["product", 2])],
    "add_to_product": [Step("matmul", [0, 1], name="product"), Step("add", [2, "product"])],
    "attention": [
        Step("transpose", [1], name="keys"),
        Step("matmul", [0, "keys"], name="products"),
        Step("multiply", ["products", LITERAL], name="scores"),
        Step("softmax", ["scores"], {"axis": -1}, name="weights"),
        Step("matmul", ["weights", 2]),
    ],
}
"""The programs of vectors that are no single operation, by the oracle function that confirms them."""


def run_steps(vector: Vector, evaluate: Evaluate) -> Sequence[Tensor]:
    """The results of a vector's program, asked for operation by operation."""
    check = vector.provenance.check
    inputs = [vector.call.inputs[name] for name in check.operands]
    function = check.function.removeprefix("oracle.")
    steps = PROGRAMS.get(function) or [Step(function, range(len(inputs)), check.arguments)]
    values: dict[int | str, Tensor] = dict(enumerate(inputs))
    outputs: Sequence[Tensor] = ()
    for step in steps:
        operands = [
            _literal(check.arguments["factor"], values[step.operands[0]].dtype) if name == LITERAL else values[name]
            for name in step.operands
        ]
        outputs = evaluate(step, operands)
        if step.name:
            (values[step.name],) = outputs
    return outputs


def _literal(factor: str, dtype: str) -> Tensor:
    return tensor_of(dtype, (), [Fraction(factor)])
