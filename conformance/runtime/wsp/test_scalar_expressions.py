"""ScalarExpr: values over constants, symbols and slots, evaluated while a package runs (PTO-WSP v10, 4.1)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    channel,
    note,
    op,
    process,
    program,
    receive,
    repeat,
    send,
    slot,
    symbol,
    symbol_of,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import compiled, ends_with_error, ran, statistics
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

TOP = (1 << 64) - 1
PAIRS = [
    *[(0, 0), (0, 1), (7, 3), (3, 7), (TOP, 1), (1, TOP), (TOP, TOP), (1 << 63, 2), (TOP - 4, 64), (5, 63), (12, 65)],
    *[(12345678901234567890, 10), (12345678901234567890, 987654321), (10, 0xFF00FF00FF00FF00)],
]

MEANING = {
    "add": lambda a, b: (a + b) % (1 << 64),
    "sub": lambda a, b: (a - b) % (1 << 64),
    "mul": lambda a, b: (a * b) % (1 << 64),
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: (a << b % 64) % (1 << 64),
    "shr": lambda a, b: a >> b % 64,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b),
    "ge": lambda a, b: int(a >= b),
    "min": min,
    "max": max,
}
"""Operators of two u64 values, by their definitions (AMB-WSP-60)."""


def valued(*expressions, symbols=()):
    """A program that sends values, each of which ends in a slot of its own, x0, x1, ..."""
    return program(
        process("producer", *(send("c", expression) for expression in expressions)),
        process("consumer", *(receive("c", f"x{place}") for place in range(len(expressions)))),
        channels=[channel("c", 3)],
        symbols=symbols,
    )


def values(actual, count):
    """Return the slots' values."""
    return [int(actual["slots"][f"x{place}"]) for place in range(count)]


@feature("wsp-expressions")
@clause("WSP-04.1-01", "WSP-04.1-02", "WSP-04.1-03")
@pytest.mark.parametrize("name", sorted(MEANING))
def test_an_operator_has_its_value_in_64_bits(impl, check, name):
    """Wrapping, unsigned, shifts modulo 64: on constants, and on symbols, which nothing could have folded."""
    pairs = [pair for pair in PAIRS if pair[1] or name not in ("div", "mod")]
    expected = [MEANING[name](*pair) for pair in pairs]
    actual = statistics(impl, check, valued(*(op(name, *pair) for pair in pairs)))
    check.equal(values(actual, len(pairs)), expected, f"{name} of constants")
    package = compiled(impl, check, valued(op(name, symbol("a"), symbol("b")), symbols=map(symbol_of, "ab")))
    for (a, b), value in zip(pairs, expected, strict=True):
        given = statistics(impl, check, package, symbols={"a": str(a), "b": str(b)})
        check.equal(values(given, 1), [value], f"{name} of {a} and {b} as symbols")


@feature("wsp-expressions")
@clause("WSP-04.1-01")
def test_not_inverts_and_select_chooses(impl, check):
    """`not` is of all 64 bits; of the operands of `select` only the chosen one is evaluated (AMB-WSP-60)."""
    wrong = op("div", 1, 0)
    made = valued(op("not", 0), op("not", 5), op("select", 1 << 40, 7, wrong), op("select", 0, wrong, op("add", 4, 5)))
    check.equal(values(statistics(impl, check, made), 4), [TOP, TOP - 5, 7, 9], "the values")


@feature("wsp-expressions")
@clause("WSP-04.1-01")
def test_a_program_has_as_many_expressions_as_it_needs(impl, check):
    """None of them is nested in another."""
    made = valued(*(op("add", place, 1000) for place in range(150)))
    check.equal(values(statistics(impl, check, made), 150), list(range(1000, 1150)), "the values")


@feature("wsp-expressions")
@clause("WSP-04.1-01")
@pytest.mark.parametrize("name", ["div", "mod"])
def test_a_division_by_zero_ends_the_run(impl, check, name):
    """An error of the process that evaluates it (AMB-WSP-58, AMB-WSP-60)."""
    result = ran(impl, check, valued(op(name, 6, op("sub", 3, 3))))
    ends_with_error(check, result, "DIVISION_BY_ZERO", "producer")


@clause("WSP-04.1-02")
def test_constants_are_of_64_bits(impl, check):
    """Constants from 0 to 2^64 - 1 are accepted, and no others."""
    constants = [0, 1, (1 << 32) - 1, 1 << 32, (1 << 53) + 1, 1 << 63, TOP]
    check.equal(values(statistics(impl, check, valued(*constants)), len(constants)), constants, "the constants")
    for constant in (1 << 64, -1):
        check.rejects(impl.wsp.compile(program=valued(constant), target="cpu_sim"), category="INVALID_PROGRAM")


@feature("wsp-expressions")
@clause("WSP-04.1-03")
def test_a_symbol_has_the_value_of_its_run(impl, check):
    """One package, four runs: the defaults, one symbol given, both, and the defaults again (AMB-WSP-12)."""
    made = valued(symbol("a"), symbol("b"), symbols=[symbol_of("a", 11), symbol_of("b", 22, 8)])
    package = compiled(impl, check, made)
    for given, expected in (
        ({}, [11, 22]),
        ({"b": "255"}, [11, 255]),
        ({"b": "3", "a": str(TOP)}, [TOP, 3]),
        ({}, [11, 22]),
    ):
        check.equal(values(statistics(impl, check, package, symbols=given), 2), expected, f"with {given}")


@feature("wsp-expressions", "wsp-slots")
@clause("WSP-04.1-04")
def test_a_slot_has_the_value_that_it_has_when_it_is_read(impl, check):
    """The index of a repeat and a token change it; each reading has the newest."""
    source = program(
        process("p", repeat(4, send("c", op("mul", slot("i"), slot("i"))), index="i"), send("c", slot("i"))),
        process("q", repeat(5, receive("c", "x"), note(slot("x")), note(op("add", slot("x"), 1)))),
        channels=[channel("c")],
    )
    actual = statistics(impl, check, source)
    check.equal(actual["tensors"]["log"], (0x01124_59A_34).to_bytes(8, "little").hex(), "what the slot held")
    check.equal(actual["slots"], {"i": "3", "x": "3"}, "the slots at the end")
