"""Calls of the table of names as graphs: `Not(Equal(a, b))` becomes two nodes of whatever an engine's graph is made of.

An expression of the table is Python. Its operands and attributes are names; every other name is an operator of the
engine, and calling one adds a node to the graph. What a call takes by position is an operand, what it takes by name is
an attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from tessera_conformance.adapter import NotSupported
from tessera_conformance.operations import OPERATIONS


@dataclass(frozen=True)
class Value:
    """A value of a graph: its name there and, as far as they are known, its dtype and shape."""

    name: str
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


@dataclass(frozen=True)
class Call:
    """A call of the table: its expression, and the names of its operands; one that begins with a star takes all."""

    expression: str
    operands: Sequence[str]


def accumulator(x: Value) -> np.dtype[Any]:
    """The dtype in which the language accumulates x: fp32 of narrower floats, int32 of narrower integers."""
    narrow = x.dtype is not None and x.dtype.itemsize < 4
    return np.dtype(np.int32 if x.dtype == np.int8 or x.dtype == np.int16 else np.float32) if narrow else x.dtype


def reduced(x: Value, axis: int, keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction's result."""
    axis %= x.ndim
    return (*x.shape[:axis], *([1] if keepdims else []), *x.shape[axis + 1 :])


def resolved(shape: Sequence[int], x: Value) -> tuple[int, ...]:
    """The shape of a reshaped operand, in which one extent may be -1."""
    known = prod(extent for extent in shape if extent >= 0)
    return tuple(extent if extent >= 0 else prod(x.shape) // known for extent in shape)


BUILTINS: Mapping[str, Any] = {
    **{function.__name__: function for function in (accumulator, reduced, resolved, all, float, len, list, range, zip)},
    "inf": float("inf"),
}


class Graph(Protocol):
    """The functions that build an engine's graph."""

    def operand(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Value:
        """Declare the next operand."""

    def node(self, operator: str, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Add a node; its result, or its results where there are several."""


Form = tuple[np.dtype[Any], tuple[int, ...]]
"""The dtype and shape of an operand."""
Compiled = Callable[[Sequence[Any]], Any]
"""Runs what was built on its operands, arrays; its results."""


def table(engine: str, compile_: Callable[[Call, Sequence[Form], Mapping[str, Any]], Compiled]) -> dict[str, Any]:
    """The operations that the table of names has a call of the engine for, as callables on arrays.

    What is compiled for operands of the same dtypes and shapes and the same attributes is kept.
    """
    return {name: _callable(call, compile_) for name, call in _calls(engine).items()}


def _callable(call: Call, compile_: Callable[[Call, Sequence[Form], Mapping[str, Any]], Compiled]) -> Any:
    kept: dict[Any, Compiled] = {}

    def run(*arrays: Any, **attributes: Any) -> Any:
        forms = tuple((array.dtype, array.shape) for array in arrays)
        key = (forms, repr(attributes))
        if key not in kept:
            kept[key] = compile_(call, forms, attributes)
        return kept[key](arrays)

    return run


def codes(array: Any) -> Any:
    """The array in row-major order; its codes, where the dtype is none of numpy's own."""
    return np.array(array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}"), order="C")


def built(graph: Graph, call: Call, forms: Sequence[Form], attributes: Mapping[str, Any]) -> tuple[Value, ...]:
    """The results of a call on operands of these forms, as values of the graph.

    Raises:
        NotSupported: the call adds no node.
    """
    values = [graph.operand(*form) for form in forms]
    scope = {**BUILTINS, **attributes, "__builtins__": {}}
    for place, name in enumerate(call.operands):
        scope[name.lstrip("*")] = values[place:] if name.startswith("*") else values[place]
    tree = ast.parse(call.expression, mode="eval")
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in stored:
            scope.setdefault(node.id, _operator(graph, node.id))
    results = eval(compile(tree, call.expression, "eval"), scope)
    results = results if isinstance(results, tuple) else (results,)
    if not all(isinstance(result, Value) for result in results) or set(results) & set(values):
        raise NotSupported("an operation that is no node of the engine's graph")
    return results


def _operator(graph: Graph, name: str) -> Callable[..., Any]:
    return lambda *operands, **attributes: graph.node(name, operands, attributes)


def _calls(engine: str) -> dict[str, Call]:
    known = {name: row for name, row in OPERATIONS.items() if engine in row.calls}
    return {name: Call(row.calls[engine], row.operands) for name, row in known.items()}
