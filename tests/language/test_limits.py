"""Limits on nesting and length: within them a program is read, beyond them it is refused in bounded time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection, Span, UnsupportedConstruct
from tessera_reference.language import Diagnostic, compile_source, parse
from tessera_reference.language import syntax as s
from tessera_reference.language.parser import CHAIN_LIMIT, NESTING_LIMIT, decode, deep_recursion, without_collection
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

SyntaxErrors = Callable[[str], tuple[Diagnostic, ...]]
Children = Callable[[s.Node], list[s.Node]]
Depth = Callable[[s.Node], int]


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    """The tokens of a long text all live until it is read; the garbage collector would visit them again and again."""
    with without_collection():
        yield


DEEP = 10_000
MEGABYTES = 10_000_000
FUNCTION = "module m { func f(a: int32, c: bool) -> int32 { %s } }"


def returning(expression: str) -> str:
    return FUNCTION % f"return {expression};"


NESTINGS = {
    "parentheses": lambda depth: returning("(" * depth + "a" + ")" * depth),
    "calls": lambda depth: returning("f(" * depth + "a" + ")" * depth),
    "indices": lambda depth: returning("a[" * depth + "a" + "]" * depth),
    "signs": lambda depth: returning("-" * depth + "a"),
    "sums": lambda depth: returning("(a + " * depth + "a" + ")" * depth),
    "lists": lambda depth: returning(f"f(a, b={'[' * depth}{']' * depth})"),
    "blocks": lambda depth: FUNCTION % ("if (c) { " * depth + "}" * depth),
    "alternatives": lambda depth: FUNCTION % ("if (c) { } else { " * depth + "}" * depth),
    "loops": lambda depth: FUNCTION % ("for (i in a:a:a) { " * depth + "}" * depth),
    "function types": lambda depth: f"module m {{ type T = {'fn(' * depth}int8{') -> int8' * depth}; }}",
    "result types": lambda depth: f"module m {{ type T = {'fn() -> ' * depth}int8; }}",
    "attributes": lambda depth: FUNCTION % f"f() @{{a={'[' * depth}{']' * depth}}};",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("depth", [600, DEEP, 100_000])
def test_what_is_nested_too_deep_is_refused(
    syntax_errors: SyntaxErrors, drawn: Callable[[int], int], nesting: str, depth: int
) -> None:
    """One diagnostic, at the token that goes too deep, names the limit; it is the same however much follows."""
    (actual,) = syntax_errors(NESTINGS[nesting](drawn(depth) if depth > DEEP else depth))
    assert actual.message == "nested more than 500 levels deep"
    assert "500" in actual.requirement
    assert actual == syntax_errors(NESTINGS[nesting](600))[0]


@pytest.mark.parametrize("nesting", NESTINGS)
def test_what_is_nested_a_little_less_is_a_program(depth_of: Depth, nesting: str) -> None:
    assert depth_of(parse(NESTINGS[nesting](450))) > 450


@pytest.mark.parametrize(("brackets", "outside"), [("(", 2), ("[", 3)])
def test_the_limit_counts_what_is_open(syntax_errors: SyntaxErrors, brackets: str, outside: int) -> None:
    """The braces of module and function are two levels; the last bracket allowed is the 500th that is open."""
    closing = {"(": ")", "[": "]"}[brackets]
    wrap = "{}" if brackets == "(" else "f(b={})"

    def program(depth: int) -> str:
        return returning(wrap.format(brackets * depth + "a" * (brackets == "(") + closing * depth))

    assert syntax_errors(program(NESTING_LIMIT - outside)) == ()
    (actual,) = syntax_errors(program(NESTING_LIMIT - outside + 1))
    before = program(1).index(brackets, program(1).index("return") + (9 if brackets == "[" else 0))
    assert actual.span.column == before + 1 + NESTING_LIMIT - outside


def test_nesting_that_ends_does_not_count(syntax_errors: SyntaxErrors) -> None:
    """Signs, arrows and brackets that are closed make nothing deeper."""
    once = "-(a) + f(-a[0], b=[-1]) * (a)"
    assert syntax_errors(returning(" + ".join([once] * 1000))) == ()
    assert syntax_errors("module m {" + "func f(a: fn(fn() -> int8) -> int8) -> int8 { if (a) { } }" * 1000 + "}") == ()


CHAINS = {
    "sum": lambda length: returning("a" + " + a" * length),
    "mixture": lambda length: returning("a" + " * a - a" * (length // 2)),
    "products": lambda length: returning("a" + " @ a" * length),
    "subscripts": lambda length: returning("a" + "[0]" * length),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_long_chains_are_programs(depth_of: Depth, chain: str) -> None:
    """Operators of one level make a chain, which is no nesting; 5,000 of them are no rarity in generated text."""
    assert depth_of(parse(CHAINS[chain](5000))) > 2500


@pytest.mark.parametrize("chain", ["sum", "subscripts"])
def test_a_chain_has_a_limit_too(syntax_errors: SyntaxErrors, drawn: Callable[[int], int], chain: str) -> None:
    assert syntax_errors(CHAINS[chain](CHAIN_LIMIT)) == ()
    (actual,) = syntax_errors(CHAINS[chain](CHAIN_LIMIT + 1))
    assert actual.message == "a chain of more than 10000 operators"
    assert syntax_errors(CHAINS[chain](drawn(drawn(100)) * CHAIN_LIMIT)) == (actual,)


def test_chains_inside_chains_add_up(syntax_errors: SyntaxErrors) -> None:
    half = "a" + " + a" * 6000
    assert syntax_errors(returning(f"({half}) * ({half})")) == ()
    (actual,) = syntax_errors(returning(f"({half}){' + a' * 6000}"))
    assert actual.message == "a chain of more than 10000 operators"


def test_there_is_room_to_follow_a_tree(children: Children) -> None:
    """A function that calls itself, and another, for each node reaches the last one; afterwards all is as it was."""
    tree = parse(returning("a" + " + a" * 5000))
    before = sys.getrecursionlimit()

    def count(node: s.Node) -> int:
        total = 1
        for child in children(node):
            total += through(child)
        return total

    def through(node: s.Node) -> int:
        return count(node)

    with deep_recursion():
        assert count(tree) == 10 + 5001 + 5000  # all above the sum, its operands, its operators
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("source", [returning("a" + " + a" * 5000), NESTINGS["sums"](450), NESTINGS["blocks"](450)])
def test_later_passes_know_how_deep_they_go(source: str) -> None:
    """Compiling what parses ends with a module or in so many words, never with Python's stack."""
    with suppress(Rejection, UnsupportedConstruct):
        assert compile_source(source).modules


@pytest.mark.slow
def test_a_long_chain_of_calls() -> None:
    """Hundreds of functions that call one another run; thousands are unsupported, in so many words."""
    calls = "\n".join(f"func f{i}(a: int32) -> int32 {{ return f{i - 1}(a); }}" for i in range(1, 3000))
    module = compile_source(f"module m {{ func f0(a: int32) -> int32 {{ return a; }}\n{calls} }}").module
    one = Array(dtype("int32"), np.array(1, np.int32))
    assert execute(module, "f99", {"a": one})[0].values == 1
    with pytest.raises(UnsupportedConstruct) as stop:
        execute(module, "f2999", {"a": one})
    assert stop.value.feature == "execute.deep_calls"


GARBAGE = {
    "comment": lambda size: "module m { /* " + "*" * size,
    "string": lambda size: 'module m { func f() @{a="' + r"\n" * (size // 2),
    "nul": lambda size: "\0" * size,
    "foreign": lambda size: "é" * size,
    "stray": lambda size: "a$" * (size // 2),
    "closing": lambda size: "}" * size,
    "opening": lambda size: "{" * size,
    "words": lambda size: "tensor /*" * (size // 9),
    "semicolons": lambda size: "module m {" + ";" * size,
    "quotes": lambda size: '"' * (size + 1),
    "name": lambda size: "a" * size,
    "shape": lambda size: "module m { type T = tensor<4x" + "ax" * (size // 100) + "x",
}


@pytest.mark.parametrize(
    ("garbage", "message", "place"),
    [
        ("comment", "this comment is never closed", (1, 12)),
        ("string", "this string is never closed", (1, 25)),
        ("nul", r"unexpected character '\x00'", (1, 1)),
        ("foreign", "unexpected character 'é'", (1, 1)),
        ("stray", "unexpected character '$'", (1, 2)),
        ("closing", "found '}', expected 'module' or the end of the text", (1, 1)),
        ("opening", "found '{', expected 'module' or the end of the text", (1, 1)),
        ("words", "found 'tensor', expected 'module' or the end of the text", (1, 1)),
        ("semicolons", "found ';', expected a declaration or '}'", (1, 11)),
        ("quotes", "this string is never closed", None),
        ("name", f"found '{'a' * 60}...', expected 'module' or the end of the text", (1, 1)),
        ("shape", "found 'x', expected a dimension", None),
    ],
)
def test_megabytes_of_garbage(
    syntax_errors: SyntaxErrors, drawn: Callable[[int], int], garbage: str, message: str, place: tuple[int, int] | None
) -> None:
    text = GARBAGE[garbage](drawn(MEGABYTES // 20))
    first, *rest = syntax_errors(text)
    assert (first.message, (first.span.line, first.span.column)) == (message, place or (1, len(text)))
    assert len(rest) < 10


@pytest.mark.parametrize("space", [" ", "\n", "\r\n", "// c\n", "/**/"])
def test_a_megabyte_of_nothing(space: str) -> None:
    assert parse(space * (1_000_000 // len(space))).modules == ()


@pytest.mark.slow
@pytest.mark.parametrize(("size", "error"), [(MEGABYTES, ""), (MEGABYTES // 10, "let ")])
def test_megabytes_of_a_program(
    syntax_errors: SyntaxErrors, drawn: Callable[[int], int], size: int, error: str
) -> None:
    """A long program is read whole, the error at its end is found: ten megabytes with `--whole`, else a sixteenth."""
    function = "func f(A: tensor<8x8xbf16>) -> tensor<8x8xbf16> {\n  return op.matmul(A, A) * 0.5 + A;\n}\n"
    count = drawn(drawn(size)) // len(function)
    places = [
        (found.span.line, found.span.column) for found in syntax_errors("module m {" + function * count + error + "}")
    ]
    assert places == ([(3 * count + 1, 5)] if error else [])


@pytest.mark.parametrize("digits", [10_000, MEGABYTES])
def test_integers_may_be_long(digits: int) -> None:
    text = "9" * digits
    constant = parse(f"module m {{ let a: int32 = {text}; }}").modules[0].declarations[0]
    assert isinstance(constant, s.Let)
    assert isinstance(constant.value, s.IntLiteral)
    assert constant.value.text == text


@pytest.mark.parametrize(
    ("data", "byte", "place"),
    [
        (b"\xff", "0xff", (1, 1)),
        (b"module m {\n  // caf\xc3\xa9 \xe9\n}", "0xe9", (2, 11)),
        (b"module m {}\n\xc3", "0xc3", (2, 1)),
        (b"module m {} // \xed\xa0\x80", "0xed", (1, 16)),
        (b"\xef\xbb\xbfmodule \x80", "0x80", (1, 9)),
    ],
)
def test_bytes_that_are_no_text(data: bytes, byte: str, place: tuple[int, int]) -> None:
    """The first byte that is not UTF-8, and its place in characters."""
    with pytest.raises(Rejection) as stop:
        decode(data, "b.tsr")
    (actual,) = stop.value.diagnostics
    assert (actual.category, actual.phase, actual.filename) == ("syntax", "lex", "b.tsr")
    assert actual.span == Span(*place, place[0], place[1] + 1)
    assert byte in actual.message


def test_bytes_that_are_text() -> None:
    assert parse(decode("module m {} // é".encode())) == parse("module m {} // é")
    assert decode(b"a\r\nb") == "a\r\nb"


def test_a_nul_byte_and_a_byte_order_mark_are_told(syntax_errors: SyntaxErrors) -> None:
    (actual,) = syntax_errors("module m { func\0 f() {} }")
    assert (actual.phase, actual.span.column, "NUL" in actual.remedy) == ("lex", 16, True)
    (actual,) = syntax_errors("\ufeffmodule m { }")
    assert (actual.phase, actual.span.column, "byte order mark" in actual.remedy) == ("lex", 1, True)
