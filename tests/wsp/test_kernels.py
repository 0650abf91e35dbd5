"""Instructions of kernels worked out by hand, and what the builder refuses."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.wsp.builder import Expr, Program
from tessera_reference.wsp.errors import ProgramRefused

Execute = Callable[..., dict[str, Any]]
TOP = 2**64 - 1


def bits(dtype: str, *values: Any) -> str:
    """Bytes of elements, little-endian."""
    form = {"i8": "b", "i32": "i", "u8": "B", "u64": "Q", "i64": "q", "fp32": "f", "fp64": "d", "bool": "?"}[dtype]
    return struct.pack(f"<{len(values)}{form}", *values).hex()


KERNELS = [
    ("i8", "add", (127, -128), (1, -1), (-128, 127)),
    ("u8", "sub", (0, 7), (1, 7), (255, 0)),
    ("i32", "mul", (2**31 - 1, -3), (2, 5), (-2, -15)),
    ("u64", "max", (TOP, 0), (1, 1), (TOP, 1)),
    ("i8", "min", (-128, 5), (127, 5), (-128, 5)),
    ("bool", "min", (True, False), (True, True), (True, False)),
    ("fp32", "add", (1.0, 16777216.0), (2.0**-24, 1.0), (1.0, 16777216.0)),
    ("fp64", "sub", (math.inf, -0.0), (1.0, 0.0), (math.inf, -0.0)),
    ("fp64", "max", (-0.0, 0.0), (0.0, -0.0), (0.0, 0.0)),
    ("fp64", "min", (-0.0, 0.0), (0.0, -0.0), (-0.0, -0.0)),
    ("fp32", "max", (math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)),
    ("fp64", "sub", (math.inf, math.nan), (math.inf, 1.0), (math.nan, math.nan)),
]


@pytest.mark.parametrize(("dtype", "op", "a", "b", "expected"), KERNELS)
def test_instructions(
    execute: Execute, program: Program, dtype: str, op: str, a: tuple[Any, ...], b: tuple[Any, ...], expected: Any
) -> None:
    kernel = getattr(program.kernel("k", a="tensor", b="tensor", to="tensor"), op)("to", "a", "b")
    tensors = [program.tensor("a", dtype, 2, a), program.tensor("b", dtype, 2, b), program.tensor("to", dtype, 2)]
    with program.process("p"):
        program.run(kernel, *tensors)
    assert execute(program)["statistics"]["tensors"]["to"] == bits(dtype, *expected)


@pytest.mark.parametrize(
    "decide", [bool, lambda x: x == 3, lambda x: x != 3, lambda x: x in (1, x + 1)], ids=["if", "==", "!=", "in"]
)
def test_an_expression_decides_nothing_while_the_program_is_built(decide: Callable[[Expr], object]) -> None:
    with pytest.raises(TypeError, match="an Expr has a value only"):
        decide(Expr({"slot": "x"}))


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (lambda p, k: p.send("c"), r"send: is given 'c', expected the Channel that program.channel\(...\) returned"),
        (lambda p, k: p.receive("c", "x"), "receive: is given 'c'"),
        (lambda p, k: p.close(3), "close: is given 3"),
        (lambda p, k: p.run("k"), r"run: is given 'k', expected the Kernel that program.kernel\(...\) returned"),
        (lambda p, k: p.task(k, waits=["c"]), "task: is given 'c'"),
        (lambda p, k: p.load("x", "t"), "load: is given 't', expected the Tensor"),
        (lambda p, k: p.run(k, 2.5), "value: is 2.5, expected an int or an Expr"),
        (lambda p, k: p.task(k, True), "value: is True, expected an int or an Expr"),
    ],
)
def test_what_a_statement_cannot_take_is_said(program: Program, state: Callable[..., None], sentence: str) -> None:
    kernel = program.kernel("k", by="scalar")
    with program.process("p"), pytest.raises(ProgramRefused, match=sentence):
        state(program, kernel)
