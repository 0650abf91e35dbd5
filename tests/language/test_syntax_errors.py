"""Syntax errors: their phase, their place, and what they tell the reader (language spec sections 2.1, 2.3, 12, 14)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.language import Diagnostic
from tessera_reference.language.grammar import RESERVED

Rejects = Callable[[str], Diagnostic]


@pytest.mark.parametrize(
    ("body", "phase", "place", "message", "remedy"),
    [
        ("return A && A;", "lex", (3, 10), "unexpected character '&'", "nest two ifs"),
        ("return A % A;", "lex", (3, 10), "unexpected character '%'", "no remainder operator"),
        ("return A !A;", "lex", (3, 10), "unexpected character '!'", "'!='"),
        ("return é;", "lex", (3, 8), "unexpected character 'é'", ""),
        ("return \u00a0A;", "lex", (3, 8), r"unexpected character '\xa0'", "no-break space"),
        ("return A \u2212 A;", "lex", (3, 10), "unexpected character '\u2212'", "'-'"),
        ("# a comment", "lex", (3, 1), "unexpected character '#'", "begin with //"),
        ("f(\u201ca\u201d);", "lex", (3, 3), "unexpected character '\u201c'", "double quotes"),
        ("f('a');", "lex", (3, 3), 'unexpected character "\'"', "double quotes"),
        ('f("abc', "lex", (3, 3), "this string is never closed", ""),
        ('f("a\nb\\q");', "lex", (4, 2), r"unknown escape \q", r"\n"),
        ("\n /* never", "lex", (4, 2), "this comment is never closed", "*/"),
        ("let x = 1;", "parse", (3, 7), "found '=', expected ':'", ""),
        ("return 1 < 2 < 3;", "parse", (3, 14), "found '<'", "comparisons do not chain"),
        ("return .5;", "parse", (3, 8), "found '.', expected an expression or ';'", "0.5"),
        ("return 0xff;", "parse", (3, 9), "found 'xff'", "integers are decimal"),
        ("if (c) {} else if (c) {}", "parse", (3, 16), "the reserved word 'if', expected '{'", "else takes a block"),
        ("return A\nreturn B;", "parse", (4, 1), "found the reserved word 'return'", "is a ';' missing"),
        ("A + 1;", "parse", (3, 3), "found '+'", ""),
        ("1;", "parse", (3, 1), "found '1', expected a statement or '}'", ""),
        ("return f(c=1, A);", "parse", (3, 15), "a positional argument stands after a keyword argument", "come first"),
        ("return f(A,);", "parse", (3, 12), "found ')', expected an expression", ""),
        ("f(A) @{axis=1,};", "parse", (3, 15), "found '}', expected a name", ""),
        ("f(A) @{axis=};", "parse", (3, 13), "found '}', expected a value", ""),
        ("let x: ;", "parse", (3, 8), "found ';', expected a type", ""),
        ("let x: tensor<?,Dxfp32>;", "parse", (3, 16), "found ',', expected 'x'", "tensor<128x64xbf16>"),
        ("let x: tensor<fp32>;", "parse", (3, 19), "found '>', expected 'x'", ""),
        ("let 1x: fp32 = 1;", "parse", (3, 5), "found '1', expected a name", ""),
        ("return f(A;", "parse", (3, 11), "found ';', expected ')', ',' or an operator", ""),
        ("let x: fp32 = 1_000;", "parse", (3, 16), "found '_000'", "ends with its last digit"),
        ("let x: fp32 = 1.5f;", "parse", (3, 18), "found 'f'", "ends with its last digit"),
        ("int32 x = 1;", "parse", (3, 7), "found 'x'", "declared with let"),
        ("x += 1;", "parse", (3, 3), "found '+', expected '(', '.', '=' or '['", "there is no '+='"),
        ("return f(a=1, b=2, 3 + c);", "parse", (3, 20), "a positional argument stands after", "come first"),
        ("x = = 3;", "parse", (3, 5), "found '=', expected an expression", ""),
        ("return A }", "parse", (3, 10), "found '}', expected ',', ';' or an operator", ""),
    ],
)
def test_errors_in_a_body(
    rejects_body: Rejects, body: str, phase: str, place: tuple[int, int], message: str, remedy: str
) -> None:
    found = rejects_body(body)
    assert (found.category, found.phase, (found.span.line, found.span.column)) == ("syntax", phase, place)
    assert message in found.message
    assert remedy in found.remedy
    assert found.clause


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("func f() {}", (1, 1), "found the reserved word 'func', expected 'module' or the end of the text"),
        ("module m { // c\n\n", (1, 11), "found the end of the text, expected a declaration or '}'"),
        ("module m {\n", (1, 11), "found the end of the text, expected a declaration or '}'"),
        ("modul m {}", (1, 1), "found 'modul', expected 'module' or the end of the text"),
        ("module m { func f(A fp32) {} }", (1, 21), "found 'fp32', expected ':'"),
        ("module m { func f() {} } }", (1, 26), "found '}', expected 'module' or the end of the text"),
        ("module m { return 1; }", (1, 12), "found the reserved word 'return', expected a declaration or '}'"),
    ],
)
def test_errors_outside_a_body(rejects: Rejects, source: str, place: tuple[int, int], message: str) -> None:
    found = rejects(source)
    assert (found.category, found.phase, (found.span.line, found.span.column)) == ("syntax", "parse", place)
    assert found.message == message


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_no_names(rejects_body: Rejects, word: str) -> None:
    found = rejects_body(f"let {word}: fp32 = 1;")
    assert found.message == f"found the reserved word {word!r}, expected a name"
    assert (found.phase, found.span.line, found.span.column) == ("parse", 3, 5)


def test_a_word_that_only_begins_like_a_reserved_one_is_a_name(accepts_body: Callable[[str], object]) -> None:
    accepts_body("let lets: fp32 = 1; let as_: fp32 = lets; return as_;")
