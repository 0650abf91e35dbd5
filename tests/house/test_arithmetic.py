"""The reference uses only numpy operations whose bits are the same everywhere (DESIGN section 5)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

EXACT = frozenset(
    """
    add subtract multiply divide sqrt negative abs absolute copysign rint floor ceil trunc ldexp frexp nextafter
    equal not_equal less less_equal greater greater_equal isnan isinf isfinite signbit where array_equal
    logical_and logical_or logical_not any all count_nonzero flatnonzero nonzero argwhere
    bitwise_and bitwise_or bitwise_xor invert left_shift right_shift floor_divide remainder
    array asarray ascontiguousarray empty empty_like zeros zeros_like ones full full_like arange reshape transpose
    concatenate stack broadcast_to broadcast_arrays broadcast_shapes expand_dims squeeze moveaxis swapaxes take
    frombuffer from_dlpack ndindex unravel_index load save copyto shape ndim
    dtype ndarray generic number integer floating complexfloating unsignedinteger signedinteger inexact bool_ bool
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 intp
    iinfo finfo errstate newaxis nan inf issubdtype result_type typing lib
    """.split()
)
INEXACT_METHODS = frozenset("sum mean dot prod cumsum cumprod std var trace round matmul reduce accumulate".split())
"""Of numpy's arrays. A module that neither imports numpy nor takes the `values` of ours holds none; there
`x.sum(axis=0)` builds an operation of Graph IR."""

OUR_MODULES = frozenset({"reductions"})
"""Functions of these bear the names of methods of arrays."""

INTEGERS_ONLY = frozenset({"maximum", "minimum"})
"""Exact on integers; on floats the sign of a zero may differ. A line that uses one says `# integers`."""


def violations(source: str) -> Iterator[str]:
    """Every use of numpy in a module that the canon does not allow."""
    tree, lines = ast.parse(source), source.splitlines()
    aliases = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] == "numpy" and alias.name != "numpy.typing"
    }
    holds_arrays = aliases or any(isinstance(node, ast.Attribute) and node.attr == "values" for node in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            on_integers = node.attr in INTEGERS_ONLY and lines[node.lineno - 1].endswith("# integers")
            if node.attr not in EXACT and not on_integers:
                yield f"line {node.lineno}: np.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numpy":
            yield from (
                f"line {node.lineno}: from {node.module} import {alias.name}"
                for alias in node.names
                if node.module != "numpy.typing" and alias.name not in EXACT
            )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if holds_arrays and node.func.attr in INEXACT_METHODS and not _is_module_call(node.func):
                yield f"line {node.lineno}: .{node.func.attr}()"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield f"line {node.lineno}: the operator @"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow) and not _is_exact_power(node):
            yield f"line {node.lineno}: the operator **"


def _is_module_call(function: ast.Attribute) -> bool:
    """`reductions.sum(...)` calls our own module, not an array."""
    return isinstance(function.value, ast.Name) and function.value.id in OUR_MODULES


def _is_exact_power(node: ast.AST) -> bool:
    """A power of a written-out number or of a fraction is Python's own and exact: 2 ** n, Fraction(2) ** n."""
    base = node.left if isinstance(node, ast.BinOp) else None
    is_fraction = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "Fraction"
    return isinstance(base, ast.Constant) or is_fraction


def test_only_exact_numpy_operations(root: Path) -> None:
    found = [
        f"{path.relative_to(root)} {problem}"
        for path in sorted((root / "reference").rglob("*.py"))
        for problem in violations(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "np.exp(x)",
        "np.sum(x)",
        "x.sum()",
        "a @ b",
        "np.fft.fft(x)",
        "np.add.reduce(x)",
        "np.einsum('i,i->', x, y)",
        "x ** 2.5",
    ],
)
def test_an_inexact_operation_would_be_found(source: str) -> None:
    assert list(violations(f"import numpy as np\n{source}\n"))


def test_a_sum_of_the_values_of_an_array_would_be_found_without_numpy() -> None:
    assert list(violations("def total(x):\n    return x.values.sum()\n"))
    assert list(violations("def total(x):\n    return x.sum(axis=0)\n")) == []
