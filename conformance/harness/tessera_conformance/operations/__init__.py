"""The operations of the language by name, and their calls in other libraries: `names.toml`, read once."""

from __future__ import annotations

import ast
import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType
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
        """Return operands by name; `*parts` is the rest of them."""
        if self.is_variadic:
            return {self.operands[0].lstrip("*"): list(arrays)}
        return dict(zip(self.operands, arrays, strict=False))

    def default_values(self, attributes: Mapping[str, Any], arrays: Sequence[Any]) -> dict[str, Any]:
        """Return the defaults of all attributes that have one, given these operands and attributes."""
        scope = {**self.bound(arrays), **self.defaults, **attributes}
        rules = {name: eval(_code(rule), dict(scope)) for name, rule in self.derived.items()}  # those of names.toml
        return {**self.defaults, **rules}


@cache
def _code(rule: str) -> CodeType:
    return compile(rule, TABLE.name, "eval")


def _read() -> tuple[Mapping[str, Operation], Mapping[str, Mapping[str, str]]]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    operations = {}
    for name, row in table["operations"].items():
        calls = {library: row.pop(library) for library in LIBRARIES if library in row}
        operations[name] = Operation(name, calls=calls, **row)
    return operations, table["dtypes"]


OPERATIONS, DTYPES = _read()
"""All operations by name; and the dtypes, by name and library."""


def nearest(name: str) -> Sequence[str]:
    """Return the names of operations that a misspelt one may mean."""
    return difflib.get_close_matches(name, OPERATIONS, n=3, cutoff=0.6)


def calls(library: str, scope: Mapping[str, Any], wrap: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """Return a table of callables for `--impl=ops:`, made of a library's calls: numpy, torch or jax.

    `scope` has the names that the calls use, such as `np`. `wrap` turns each function of the library's own arrays into
    one of numpy arrays.
    """
    table = {}
    for name, operation in OPERATIONS.items():
        if library in operation.calls:
            function = _function(operation, operation.calls[library], scope)
            table[name] = wrap(function) if wrap else function
    return table


def _function(operation: Operation, call: str, scope: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function of a call; it takes the attributes that the call uses."""
    used = {node.id for node in ast.walk(ast.parse(call, mode="eval")) if isinstance(node, ast.Name)}
    attributes = [name for name in operation.attributes if name in used]
    mark = ["*"] if attributes and not operation.is_variadic else []
    parameters = ", ".join([*operation.operands, *mark, *attributes])
    function: Callable[..., Any] = eval(f"lambda {parameters}: {call}", dict(scope))
    function.__name__ = function.__qualname__ = operation.name
    return function
