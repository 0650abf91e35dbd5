"""Expressions, slots, symbols, control and kernels; values follow from their definitions (section 4)."""

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


@pytest.mark.parametrize(
    ("op", "operands", "value"),
    [
        ("add", (TOP, 2), 1),
        ("sub", (1, 3), TOP - 1),
        ("mul", (2**63, 3), 2**63),
        ("div", (TOP, 2), 2**63 - 1),
        ("mod", (TOP, 10), 5),
        ("and", (12, 10), 8),
        ("or", (12, 10), 14),
        ("xor", (12, 10), 6),
        ("not", (0,), TOP),
        ("shl", (3, 63), 2**63),
        ("shl", (3, 64), 3),
        ("shr", (2**63, 63), 1),
        ("shr", (2**63, 65), 2**62),
        ("eq", (5, 5), 1),
        ("ne", (5, 5), 0),
        ("lt", (TOP, 0), 0),
        ("le", (7, 7), 1),
        ("gt", (TOP, 0), 1),
        ("ge", (6, 7), 0),
        ("min", (TOP, 1), 1),
        ("max", (TOP, 1), TOP),
        ("select", (0, 8, 9), 9),
        ("select", (2, 8, 9), 8),
    ],
)
def test_operators(execute: Execute, program: Program, op: str, operands: tuple[int, ...], value: int) -> None:
    """The operands are symbols, the value travels through a channel."""
    given = [program.symbol(f"s{place}") for place in range(len(operands))]
    channel = program.channel("c")
    with program.process("p"):
        program.send(channel, Expr({"op": op, "operands": [each.form for each in given]}))
        program.receive(channel, "value")
    symbols = {f"s{place}": each for place, each in enumerate(operands)}
    assert execute(program, symbols=symbols)["statistics"]["slots"] == {"value": str(value)}


@pytest.mark.parametrize("op", ["div", "mod"])
def test_division_by_zero_is_an_error_where_it_is_evaluated(execute: Execute, program: Program, op: str) -> None:
    channel, by = program.channel("c"), program.symbol("by", 3)
    quotient = Expr({"op": op, "operands": [{"constant": 7}, by.form]})
    with program.process("p"):
        program.send(channel, by.select(quotient, 1))
        with program.cond(by.eq(9)):
            program.send(channel, quotient)
        program.receive(channel, "x")
        program.send(channel, quotient)
    error = execute(program, symbols={"by": 0})["error"]
    assert (error["code"], error["statement"]) == ("DIVISION_BY_ZERO", "body/3")
    assert execute(program)["outcome"] == "completed"


@pytest.mark.parametrize(
    ("dtype", "element", "value"),
    [
        ("i8", -1, TOP),
        ("i32", -(2**31), 2**64 - 2**31),
        ("i64", -1, TOP),
        ("u8", 255, 255),
        ("u64", TOP, TOP),
        ("bool", True, 1),
        ("fp32", 16777216.0, 16777216),
        ("fp64", 2.0**63, 2**63),
        ("fp64", -0.0, 0),
    ],
)
def test_elements_become_u64(execute: Execute, program: Program, dtype: str, element: Any, value: int) -> None:
    tensor = program.tensor("t", dtype, 3)
    with program.process("p"):
        program.load("s", tensor, 2)
    data = bytes.fromhex(bits(dtype, 0, 0, element))
    assert execute(program, tensors={"t": data})["statistics"]["slots"] == {"s": str(value)}


@pytest.mark.parametrize("element", [0.5, -1.0, math.inf, math.nan, 2.0**64])
def test_floats_that_are_no_u64_are_an_error(execute: Execute, program: Program, element: float) -> None:
    tensor = program.tensor("t", "fp64", 1, [element])
    with program.process("p"):
        program.load("s", tensor)
    assert execute(program)["error"]["code"] == "SLOT_VALUE"


def test_an_element_that_is_not_there(execute: Execute, program: Program) -> None:
    tensor, which = program.tensor("t", "i32", 3), program.symbol("which", 3)
    with program.process("p"):
        program.load("s", tensor, which)
    assert execute(program)["error"]["code"] == "ELEMENT_OUT_OF_RANGE"
    assert execute(program, symbols={"which": 2})["outcome"] == "completed"


def test_control_follows_what_a_kernel_wrote(execute: Execute, program: Program) -> None:
    """A kernel writes how often the loop goes, and a symbol, changed between runs of one package, what it writes."""
    count, wanted = program.tensor("count", "i32", 1), program.symbol("wanted", 2)
    write = program.kernel("write", cycles=1, t="tensor", value="scalar").fill("t", "value")
    step, other = program.kernel("step", cycles=10), program.kernel("other", cycles=1000)
    with program.process("p"):
        program.task(write, count, wanted)
        n = program.load("n", count)
        with program.repeat(n, index="i"):
            program.run(step)
        with program.cond(n.gt(2)):
            program.run(other)
        with program.otherwise():
            program.run(step)
    first = execute(program)["statistics"]
    assert (first["total_cycles"], first["slots"]) == (1 + 2 * 10 + 10, {"n": "2", "i": "1"})
    assert execute(program, symbols={"wanted": 5})["statistics"]["total_cycles"] == 1 + 5 * 10 + 1000
    assert execute(program)["statistics"] == first


def test_keys_read_slots(execute: Execute, program: Program) -> None:
    tensor = program.tensor("t", "u8", 2, [2, 1])
    kernel = program.kernel("k")
    program.dispatch("affinity", workers=3)
    with program.process("p"):
        for place in range(2):
            program.task(kernel, key=program.load("key", tensor, place))
    assert execute(program)["statistics"]["assignments"] == [2, 1]


def test_a_count_is_that_of_the_beginning(execute: Execute, program: Program) -> None:
    tensor, kernel = program.tensor("t", "u8", 1, [1]), program.kernel("k", cycles=1)
    channel = program.channel("c")
    with program.process("p"):
        program.send(channel, 3)
        n = program.receive(channel, "n")
        with program.repeat(n):
            program.load("n", tensor)
            program.run(kernel)
        with program.repeat(0, index="never"):
            program.run(kernel)
    assert execute(program)["statistics"]["total_cycles"] == 3


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
    kernel = program.kernel("k", a="tensor", b="tensor", to="tensor")._add(op, "to", "a", "b")
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
        "y": bits("u8", *(2 * each % 256 for each in numbers)),
        "z": bits("fp32", 16777216.0),
    }


def test_a_kernel_reports_by_its_largest_tensor(execute: Execute, program: Program) -> None:
    kernel = program.kernel("k", cycles=3, per_element=2, a="tensor", b="tensor").sum("a", "b")
    with program.process("p"):
        program.run(kernel, program.tensor("a", "i32", 1), program.tensor("b", "i32", 13))
    assert execute(program)["statistics"]["total_cycles"] == 3 + 2 * 13


def test_the_end_of_time(execute: Execute, program: Program) -> None:
    kernel = program.kernel("k", cycles=2**32 - 1, per_element=2**32 - 1, t="tensor")
    with program.process("p"), program.repeat(200):
        program.run(kernel, program.tensor("t", "u8", 2**24))
    assert execute(program)["error"]["code"] == "TIME_OVERFLOW"


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
