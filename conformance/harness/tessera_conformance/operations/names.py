"""The operations of the language by name, and how other libraries call them: `names.toml`, read once."""

from __future__ import annotations

import ast
import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("names.toml")
LIBRARIES = ("numpy", "torch", "jax", "onnx", "tosa", "stablehlo")


@dataclass(frozen=True)
class Operation:
    """One operation: its operands, its attributes with defaults, and its call in other libraries."""

    name: str
    operands: Sequence[str] = ()
    attributes: Sequence[str] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    derived: Mapping[str, str] = field(default_factory=dict)
    feature: str = "core"
    calls: Mapping[str, str] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_variadic(self) -> bool:
        """True if it takes any number of operands."""
        return any(name.startswith("*") for name in self.operands)

    def bound(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """Operands by name; `*parts` is the rest of them."""
        if self.is_variadic:
            return {self.operands[0].lstrip("*"): list(arrays)}
        return dict(zip(self.operands, arrays, strict=False))

    def with_defaults(self, attributes: Mapping[str, Any], arrays: Sequence[Any]) -> dict[str, Any]:
        """All attributes: those that are said, and for the others their default."""
        return {**self.default_values(attributes, arrays), **attributes}

    def default_values(self, attributes: Mapping[str, Any], arrays: Sequence[Any]) -> dict[str, Any]:
        """The defaults of all attributes that have one, as they follow from these operands and attributes."""
        scope = {**self.bound(arrays), **self.defaults, **attributes}
        rules = {name: _evaluated(rule, scope) for name, rule in self.derived.items()}
        return {**self.defaults, **rules}


def _evaluated(rule: str, scope: Mapping[str, Any]) -> Any:
    return eval(rule, dict(scope))  # rules are those of names.toml


def _read() -> tuple[Mapping[str, Operation], Mapping[str, Mapping[str, str]]]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    operations = {}
    for name, row in table["operations"].items():
        known = {library: row.pop(library) for library in LIBRARIES if library in row}
        operations[name] = Operation(name, calls=known, **row)
    return operations, table["dtypes"]


OPERATIONS, DTYPES = _read()
"""All operations by name; and the dtypes, by name and library."""


def nearest(name: str) -> Sequence[str]:
    """The names of operations that a misspelt one may stand for."""
    return difflib.get_close_matches(name, OPERATIONS, n=3, cutoff=0.6)


def calls(library: str, scope: Mapping[str, Any], wrap: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """A table of callables for `--impl=ops:`, made of a library's calls: numpy, torch or jax.

    `scope` has the names that the calls use, such as `np`. `wrap` makes of each function of the library's own arrays
    one of numpy arrays.
    """
    table = {}
    for name, operation in OPERATIONS.items():
        if library in operation.calls:
            function = _function(operation, operation.calls[library], scope)
            table[name] = wrap(function) if wrap else function
    return table


def _function(operation: Operation, call: str, scope: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of a call; it takes the attributes that the call uses."""
    used = {node.id for node in ast.walk(ast.parse(call, mode="eval")) if isinstance(node, ast.Name)}
    attributes = [name for name in operation.attributes if name in used]
    mark = ["*"] if attributes and not operation.is_variadic else []
    parameters = ", ".join([*operation.operands, *mark, *attributes])
    function: Callable[..., Any] = eval(f"lambda {parameters}: {call}", dict(scope))
    function.__name__ = function.__qualname__ = operation.name
    return function


@dataclass(frozen=True)
class GraphCall:
    """One operator of ONNX, TOSA or StableHLO: its operands, names, calls or values, and its attributes with values."""

    operator: str
    operands: Sequence[Any]
    attributes: Mapping[str, Any]


def graph_call(
    operation: Operation, library: str, arrays: Sequence[Any], attributes: Mapping[str, Any]
) -> GraphCall | None:
    """The call of an operation of these operands in a library of graphs, its attributes evaluated.

    An operand that is one of the operation is the name of it, `"a"`, or `("parts", 0)` of many; another is a
    `GraphCall` or a value. None where the library has no such operation.
    """
    if library not in operation.calls:
        return None
    values = operation.with_defaults(attributes, arrays)
    scope = {**operation.bound(arrays), **values, "inf": float("inf")}
    parsed = ast.parse(operation.calls[library], mode="eval").body
    assert isinstance(parsed, ast.Call)
    return _graph_call(parsed, operation, scope)


def _graph_call(call: ast.Call, operation: Operation, scope: Mapping[str, Any]) -> GraphCall:
    assert isinstance(call.func, ast.Name)
    operands: list[Any] = []
    for node in call.args:
        if isinstance(node, ast.Starred):
            assert isinstance(node.value, ast.Name)
            operands += [(node.value.id, place) for place in range(len(scope[node.value.id]))]
        elif isinstance(node, ast.Name) and node.id in operation.operands:
            operands.append(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in ("range", "list"):
            operands.append(_graph_call(node, operation, scope))
        else:
            operands.append(_evaluated(ast.unparse(node), scope))
    named = {word.arg: _evaluated(ast.unparse(word.value), scope) for word in call.keywords if word.arg}
    return GraphCall(call.func.id, operands, named)
