"""Kernels of the reference worked out by hand: instructions, sums in element order, workers by FNV-1a; the builder."""

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
    ("dtype", "values", "expected"),
    [
        ("i8", (100, 100, -1), -57),
        ("fp32", (16777216.0, 1.0, 1.0), 16777216.0),
        ("fp32", (1.0, 1.0, 16777216.0), 16777218.0),
        ("fp64", (-0.0,), -0.0),
    ],
)
def test_sum_is_in_element_order(
    execute: Execute, program: Program, dtype: str, values: tuple[Any, ...], expected: Any
) -> None:
    kernel = program.kernel("k", source="tensor", to="tensor").sum("to", "source")
    with program.process("p"):
        program.run(kernel, program.tensor("s", dtype, len(values), values), program.tensor("to", dtype, 1))
    assert execute(program)["statistics"]["tensors"]["to"] == bits(dtype, expected)


def test_fill_iota_copy_and_scalars(execute: Execute, program: Program) -> None:
    kernel = program.kernel("k", x="tensor", y="tensor", by="scalar").iota("x", 250).copy("y", "x").mul("y", "y", "by")
    fill = program.kernel("f", x="tensor", by="scalar").fill("x", "by")
    x, y, z = program.tensor("x", "u8", 7), program.tensor("y", "u8", 7), program.tensor("z", "fp32", 1)
    with program.process("p"):
        program.run(kernel, x, y, 258)
        program.run(fill, z, 2**24 + 1)
    tensors = execute(program)["statistics"]["tensors"]
    numbers = [250, 251, 252, 253, 254, 255, 0]
    assert tensors == {
        "x": bits("u8", *numbers),
        "y": bits("u8", *(2 * number % 256 for number in numbers)),
        "z": bits("fp32", 16777216.0),
    }


def test_a_kernel_reports_by_its_largest_tensor(execute: Execute, program: Program) -> None:
    kernel = program.kernel("k", cycles=3, per_element=2, a="tensor", b="tensor").sum("a", "b")
    with program.process("p"):
        program.run(kernel, program.tensor("a", "i32", 1), program.tensor("b", "i32", 13))
    assert execute(program)["statistics"]["total_cycles"] == 3 + 2 * 13


@pytest.mark.parametrize(
    "decide", [bool, lambda x: x == 3, lambda x: x != 3, lambda x: x in (1, x + 1)], ids=["if", "==", "!=", "in"]
)
def test_an_expression_decides_nothing_while_the_program_is_built(decide: Callable[[Expr], object]) -> None:
    with pytest.raises(TypeError, match=r"an Expr has a value only|an expression that compares in a run"):
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


@pytest.mark.parametrize(
    ("policy", "parameters", "workers"),
    [("round_robin", {}, [0, 1, 2, 0, 1, 2]), ("affinity", {}, [2, 2, 0, 1, 1, 0]), ("hash", {}, [0, 0, 0, 2, 1, 0])],
)
def test_policies_choose_their_workers(
    execute: Execute, program: Program, policy: str, parameters: dict[str, int], workers: list[int]
) -> None:
    """Keys 5, 5, 0, 7, 2^64 - 3 and none, which is 0; for hash the workers follow from FNV-1a, computed apart."""
    kernel = program.kernel("k")
    program.dispatch(policy, workers=3, **parameters)
    with program.process("p"):
        for key in (5, 5, 0, 7, 2**64 - 3):
            program.task(kernel, key=key)
        program.task(kernel)
    expected = [_fnv1a(key) % 3 for key in (5, 5, 0, 7, 2**64 - 3, 0)] if policy == "hash" else workers
    assert execute(program)["statistics"]["assignments"] == expected


def _fnv1a(key: int) -> int:
    digest = 14695981039346656037
    for place in range(8):
        digest = (digest ^ (key >> 8 * place & 255)) * 1099511628211 % 2**64
    return digest
