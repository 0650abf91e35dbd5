"""The numerics methods of the reference: single operations by name, and their declared arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.dsl import program, type_of
from tessera_conformance.tensors import Tensor

from ..abi.policy import Descriptor
from ..abi.status import invalid, unsupported
from ..collectives import order_of
from ..collectives.operations import require_stage_one
from ..graph.execution import execute
from ..ir.operation import SPELLINGS
from ..numerics import formats
from ..numerics.catalogue import OPERATIONS, evaluate, read_attributes
from ..numerics.formats import UnsupportedDType
from ..numerics.node_arithmetic import NodeArithmetic
from ..numerics.trees import FOLD, PAIRWISE, Tree
from .messages import array, checked, outcomes, tensor
from .session_state import SessionState

# Operations of the language by name, without a program of the caller's: the reference writes a program of one line.
#
# `numerics.evaluate` computes the operations of the numerics package; all others that a vector may name, operators,
# movements, normalizations and optimizers, are operations of Graph IR.


OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "greater": ">",
    "less_or_equal": "<=",
    "greater_or_equal": ">=",
}

WORD = re.compile(r"[a-z][a-z0-9_]*")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def is_of_language(operation: str) -> bool:
    """True if the language has an operator or a pure function of that name."""
    return operation == "negate" or operation in OPERATORS or f"op.{operation}" in SPELLINGS


def program_of(
    operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any]
) -> tuple[str, dict[str, Tensor]]:
    """Return a program whose function `f` is the operation, and its inputs by name.

    Raises `Refusal` for an attribute that cannot be written, or that an operator does not take.
    """
    named = {f"x{place}": value for place, value in enumerate(inputs)}
    written = [f"{name}={_written(operation, name, value)}" for name, value in attributes.items()]
    if operation in OPERATORS or operation == "negate":
        operands = 1 if operation == "negate" else 2
        if len(inputs) != operands:
            raise _refusal(operation, "number of operands", len(inputs), str(operands))
        if written:
            raise _refusal(operation, "attribute", next(iter(attributes)), "none")
        expression = f"-{next(iter(named))}" if operands == 1 else f" {OPERATORS[operation]} ".join(named)
    else:
        expression = f"op.{operation}({', '.join([*named, *written])})"
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in named.items())
    return program(f"return {expression};", parameters=parameters), named


def _written(operation: str, name: str, value: Any) -> str:
    """Return an attribute in the language's form; a decimal number may be text, which keeps its digits."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(operation, name, element) for element in value)}]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, str) and (WORD.fullmatch(value) or NUMBER.fullmatch(value)):
        return value
    raise _refusal(operation, name, value, "a number, a word or a list of them")


def _refusal(operation: str, name: str, value: Any, allowed: str) -> Refusal:
    return Refusal("TESS_ERR_INVALID_VALUE", "call", f"{operation}: {name} is {value!r}, allowed is {allowed}")


# The numerics methods of the reference: single operations by name, and their declared arithmetic.


DECLARED: Mapping[str, Tree] = {
    "matmul": FOLD,
    **dict.fromkeys(("sum", "mean", "prod", "logsumexp", "softmax", "all_reduce", "fft", "ifft"), PAIRWISE),
}
"""The order of each reducing operation; every node computes by the reference arithmetic."""

KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("matmul", "sum", "prod", "all_reduce"), ("float", "int", "complex")),
    "mean": ("float", "complex"),
    **dict.fromkeys(("logsumexp", "softmax"), ("float",)),
    **dict.fromkeys(("fft", "ifft"), ("float", "complex")),
}
"""The kinds of dtypes that each of them takes."""

RANDOM = ("uniform", "normal", "dropout")
FIXED = ("fft", "ifft")
"""The operations that reduce in their own order only."""


class NumericsMethods(SessionState):
    """Operations under contexts and descriptors. Every level has the strict bits."""

    @checked
    def numerics_evaluate(
        self,
        *,
        operation: str,
        inputs: Sequence[Tensor],
        attributes: Mapping[str, Any],
        level: str = "strict",
        context: int | None = None,
        flags: int = 0,
        descriptor: Descriptor | None = None,
    ) -> dict[str, Any]:
        """Return the result of one operation by name; no policy, flag or level loosens it here."""
        if operation not in OPERATIONS and is_of_language(operation):
            return self._by_program(operation, inputs, attributes)
        if context is not None:
            self.policy(context, "tessLaunch")
        policy = descriptor or Descriptor()
        arguments = _under(policy, operation, attributes)
        results = evaluate(operation, [array(operand) for operand in inputs], arguments)
        used = {
            "reduction_order": _order_taken(operation, policy, arguments),
            "seed": arguments.get("seed", policy.seed),
            "stream": arguments.get("stream", policy.stream),
            "stable": asdict(policy.stable),
        }
        used = {name: value for name, value in used.items() if value is not None}
        return {"outputs": [tensor(result) for result in results], "descriptor": used}

    def _by_program(self, operation: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any]) -> dict[str, Any]:
        source, named = program_of(operation, inputs, attributes)
        with outcomes():
            (module,) = self.compiler.program(source).modules
            results = execute(module, "f", {name: array(value) for name, value in named.items()})
        return {"outputs": [tensor(result) for result in results]}

    @checked
    def numerics_declared(
        self,
        *,
        operation: str,
        dtype: str,
        shapes: Sequence[Sequence[int]],
        attributes: Mapping[str, Any] | None = None,
        element: int | None = None,
    ) -> dict[str, Any]:
        """Return the reference arithmetic's order and arithmetic, or those that the attributes request.

        They are the same for every element, except for a named algorithm of collectives (AMB-COLL-29).
        """
        if operation not in DECLARED:
            raise NotSupported(f"numerics.declared.{operation}")
        arguments = {} if operation == "all_reduce" else read_attributes(operation, attributes or {})
        operands = formats.dtype(dtype)
        if operands.kind not in KINDS[operation]:
            raise UnsupportedDType(operation, operands)
        if arguments.get("order", "tree") != "tree":
            raise NotSupported(f"numerics.declared.{operation}.{arguments['order']}")
        if operation == "all_reduce" and "algorithm" in (requested := attributes or {}):
            arguments = {"tree": _order_by_algorithm(requested, shapes, element or 0)}
        tree, accumulator = arguments.get("tree", DECLARED[operation]), arguments.get("accum", operands.accumulator)
        return {"tree": tree.to_json(), "arithmetic": NodeArithmetic(accumulator).to_json()}


def _order_by_algorithm(requested: Mapping[str, Any], shapes: Sequence[Sequence[int]], element: int) -> Tree:
    """Return the tree of an all-reduce by an algorithm, over contributions of some shapes, each partial by itself.

    Raises `Failure` where the contributions do not form whole devices.
    """
    partials = requested.get("partials")
    if partials is not None:
        require_stage_one("all_reduce", requested["algorithm"], partials, travels=False)
    ranks, rest = divmod(len(shapes), prod(partials or ()))
    if rest or not ranks:
        expected = f"a multiple of {prod(partials or ())}, one for each warp of each block of each device"
        raise invalid("all_reduce", f"{len(shapes)} contributions", expected)
    return order_of(requested["algorithm"], ranks, prod(shapes[0]), element, requested.get("per_node"), partials)


def _under(descriptor: Descriptor, operation: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes, completed by those that the descriptor fixes.

    Raises `Failure` where the descriptor requests an order that the operation cannot take.
    """
    arguments = dict(attributes)
    if operation in RANDOM:
        arguments = {"seed": descriptor.seed, "stream": descriptor.stream} | arguments
    order = descriptor.reduction_order
    if order is None or operation not in DECLARED:
        return arguments
    if arguments.get("order") == "kahan" or (operation in FIXED and order != DECLARED[operation]):
        raise unsupported(operation, f"the reduction order {order}", "its own order")
    return arguments if operation in FIXED else {"tree": order.to_json()} | arguments


def _order_taken(operation: str, descriptor: Descriptor, arguments: Mapping[str, Any]) -> Any:
    """Return the tree that was followed; a compensated sum has none."""
    if arguments.get("order") == "kahan":
        return None
    order = descriptor.reduction_order or DECLARED.get(operation, PAIRWISE)
    return arguments.get("tree", order.to_json())
