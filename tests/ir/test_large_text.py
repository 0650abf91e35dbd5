"""Illegal text of millions of characters or nested levels gets a diagnostic, and the reader does not recurse."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tessera_reference.ir.diagnostics import Diagnostic, UnsupportedConstruct
from tessera_reference.ir.operation import Walk, trampoline
from tessera_reference.ir.text_reader import read_modules

Reject = Callable[[str], list[Diagnostic]]
LARGE = 10_000_000


def module(body: str) -> str:
    return (
        f'"builtin.module"() ({{ "tessera.graph.func"() ({{ ^bb0():\n{body}\n}}) {{sym_name = "f", '
        'function_type = () -> ()} : () -> () }) {sym_name = "m"} : () -> ()'
    )


# Prefix, repeated part, how often, and end: made in the test, since parameters are kept as long as the run.


@pytest.mark.parametrize(
    ("parts", "message", "column"),
    [
        (("", " ", LARGE, "!"), "unexpected character '!'", LARGE + 1),
        (('"', "a", LARGE, ""), "a string does not end on its line", 1),
        (("", "%", LARGE, ""), "unexpected character '%'", 1),
        (("", "\x00", LARGE, ""), "unexpected character '\\x00'", 1),
        (("", "tensor<", LARGE // 7, ""), "expected '>' behind the properties", None),
        (('"a"(', "%x, ", LARGE // 40, ""), "expected an operand, found the end of the text", None),
        (('"a"() {a = ', "9", LARGE, "}"), f"a number of {LARGE} digits", 12),
        (('"a"() {a = 1', ", a = 1", 1000, "}"), "attribute 'a' is given twice", 15),
        (("", "a", LARGE, ""), f"{'a' * 40}: is in the place of a module", 1),
        (('"a"() {a = "', "\\5C", LARGE // 30, "\\"), "a string does not end on its line", 12),
    ],
    ids=["blanks", "string", "percent", "nul", "types", "operands", "digits", "attributes", "word", "escapes"],
)
def test_large_text_is_refused(
    parts: tuple[str, str, int, str], message: str, column: int | None, rejected: Reject
) -> None:
    (actual,) = rejected(repeated(*parts))
    assert message in actual.message
    assert len(actual.message) < 200
    assert column in (None, actual.span.column)


@pytest.mark.parametrize(
    ("start", "opening"),
    [("", '"a"() ({'), ('"a"() {a = ', "["), ('"a"() {a = ', "{a = "), ('"a"() : ', "fn("), ('"a"() {a = (', "fn(")],
    ids=["regions", "lists", "dictionaries", "functions", "signatures"],
)
def test_endless_nesting_is_beyond_the_reference(start: str, opening: str) -> None:
    with pytest.raises(UnsupportedConstruct) as caught:
        read_modules(repeated(start, opening, 1_000_000, ""))
    assert caught.value.feature == "ir.deep_nesting"
    assert caught.value.location.span.column < 50_000


def repeated(start: str, part: str, times: int, end: str) -> str:
    """A text whose middle is one part many times."""
    return start + part * times + end


def test_a_large_comment_says_nothing() -> None:
    assert read_modules("//" + "x" * LARGE) == ()
    assert read_modules("//\n" * 300_000) == ()


def test_many_mistakes_end_the_reading(rejected: Reject) -> None:
    lines = [f'%v{i} = "tessera.graph.negate"(%w{i}) : (fp32) -> fp32' for i in range(5000)]
    assert len(rejected(module("\n".join(lines)))) == 100


def test_many_operations_are_read() -> None:
    (actual,) = read_modules(module('"tessera.graph.barrier"() : () -> ()\n' * 20_000 + "tessera.graph.return"))
    assert len(actual.functions["f"].body.instructions) == 20_000


def test_a_chain_of_calls_is_read_in_its_order() -> None:
    """Each of 3,000 functions calls the next, the first one first: no recursion of the reader."""
    functions = [calling(f"f{i}", f"f{i + 1}") for i in range(3000)]
    last = calling("f3000", "f3000").replace(
        '%y = "tessera.graph.call"(%x) {callee = "f3000"}', "%y = tessera.graph.negate %x"
    )
    text = f'"builtin.module"() ({{ {" ".join([*functions, last])} }}) {{sym_name = "m"}} : () -> ()'
    (actual,) = read_modules(text)
    assert len(actual.functions) == 3001


def test_a_circle_of_many_calls_is_refused(rejected: Reject) -> None:
    functions = [calling(f"f{i}", f"f{(i + 1) % 2000}") for i in range(2000)]
    (actual,) = rejected(f'"builtin.module"() ({{ {" ".join(functions)} }}) {{sym_name = "m"}} : () -> ()')
    assert re.fullmatch(r"func: recursion: (@f\d+ calls ){7}\.\.\. calls @f\d+", actual.message)


def calling(name: str, callee: str) -> str:
    """A function that calls another."""
    return (
        f'"tessera.graph.func"() ({{ ^bb0(%x: fp32): %y = "tessera.graph.call"(%x) {{callee = "{callee}"}} : '
        f"(fp32) -> fp32 tessera.graph.return(%y) }}) "
        f'{{sym_name = "{name}", function_type = (fp32) -> (fp32)}} : () -> ()'
    )


def test_a_walk_uses_one_frame_however_deep_it_goes() -> None:
    def depth(rest: int) -> Walk[int]:
        return 1 + (yield depth(rest - 1)) if rest else 0

    assert trampoline(depth(100_000)) == 100_000


def test_an_error_in_a_walk_is_the_walks_error() -> None:
    def broken(rest: int) -> Walk[int]:
        if not rest:
            raise ArithmeticError("deep inside")
        return (yield broken(rest - 1))

    with pytest.raises(ArithmeticError, match="deep inside"):
        trampoline(broken(5000))
