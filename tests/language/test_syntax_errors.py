"""Syntax errors: their phase, place and words, and several of them in one pass (sections 2.1, 2.3, 12, 14)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from tessera_reference.language import Diagnostic
from tessera_reference.language.parser import Lexer

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
        ("return f(c=1, A);", "parse", (3, 15), "a positional argument follows a keyword argument", "come first"),
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
        ("return f(a=1, b=2, 3 + c);", "parse", (3, 20), "a positional argument follows", "come first"),
        ("x = = 3;", "parse", (3, 5), "found '=', expected an expression", ""),
        ("return A }", "parse", (3, 10), "found '}', expected ',', ';' or an operator", ""),
    ],
)
def test_errors_in_a_body(
    rejects_body: Rejects, body: str, phase: str, place: tuple[int, int], message: str, remedy: str
) -> None:
    actual = rejects_body(body)
    assert (actual.category, actual.phase, (actual.span.line, actual.span.column)) == ("syntax", phase, place)
    assert message in actual.message
    assert remedy in actual.remedy
    assert actual.clause


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
    actual = rejects(source)
    assert (actual.category, actual.phase, (actual.span.line, actual.span.column)) == ("syntax", "parse", place)
    assert actual.message == message


SyntaxErrors = Callable[[str], tuple[Diagnostic, ...]]
PROGRAM = """// Everything that the grammar has.
module alpha {
  type Row = tensor<?x64xbf16; layout=row_major>;
  let scale: fp32 = -1.5e-3;
  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;

  @schedule(m=128, n=128)
  func step(X: tensor<LxDxbf16>, W: tensor<DxDxbf16; layout=blocked(bm=128, bn=64)>, f: fn(int8) -> bool, e: fp32 = 1.)
      -> tensor<LxDxbf16> @schedule(k=64) @{numerics_profile="strict", tags=[1, -2, [x, true]]} {
    numerics.profile("strict");
    let Y: tensor<LxDxbf16> = op.matmul(X, W) @{accum="fp32"} + dist.all_reduce(f(X, W), axis=dp, op="sum") * 0.125;
    schedule.tile(Y, m=128, n=128) @{k=64};
    /* a loop */
    for (i in 0:10:2) {
      Y[i, 1:2, :, ::2] = -X[i] + (Y[i, 0] - 3) / 2;
      if (i == 4) { return Y; } else { barrier("here"); Y = op.relu(Y); }
    }
    while (e < 1.5) { e = e * 2.; assert(e > 0, "positive"); }
    let Z: tensor<LxDxbf16> = tensor<4x4xfp32>;
    return Y @ W + Z, op.transpose(X, perm=[1, 0]);
  }

  kernel copy(A: memref<128x64xbf16>[addrspace=shared], F: fragment<16,16,16,bf16; layout=row_major>) {
    let t: int32; // no value
    barrier();
  }
}

module beta {
  func softmax(x: tensor<Lxfp32>) -> tensor<Lxfp32> {
    for (i, j in a:b) { if (k > 2) { x[i] = 3; } }
    return op.softmax(x, axis=1);
  }
}
"""
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\s+|"[^"]*"|[A-Za-z_]\w*|\d+\.\d*(?:[eE]-?\d+)?|\d+|->|[=!<>]=|.""", re.DOTALL
)
PIECES = TOKEN.findall(PROGRAM)
PLACES = [index for index, piece in enumerate(PIECES) if not piece.isspace() and not piece.startswith(("//", "/*"))]


def edited(*changes: tuple[int, str]) -> str:
    """The program with tokens exchanged for others."""
    pieces = list(PIECES)
    for place, text in changes:
        pieces[PLACES[place]] = f" {text} "
    return "".join(pieces)


def token(place: int) -> str:
    return PIECES[PLACES[place]]


def line(place: int) -> int:
    return "".join(PIECES[: PLACES[place]]).count("\n") + 1


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("change", "usual", "whole"),
    [
        ("deleted", (2, 7), (1, 7)),
        ("doubled", (2, 0), (2, 0)),
        ("semicolon", (5, 7), (1, 13)),
        ("brace", (5, 5), (1, 11)),
        ("word", (5, 6), (1, 13)),
    ],
)
def test_one_wrong_token_is_one_error(
    syntax_errors: SyntaxErrors,
    pytestconfig: pytest.Config,
    change: str,
    usual: tuple[int, int],
    whole: tuple[int, int],
) -> None:
    """Tokens taken out, doubled or exchanged, one at a time: one finding, not before the change.

    Most exceptions are a `;`, `}` or `return` that reads as the end or the beginning of a statement:
    nothing tells that from a statement with an error of its own. The text has 448 tokens: a change is made at the first
    of so many, more often with `--whole`.
    """
    every, exceptions = whole if pytestconfig.getoption("--whole") else usual
    texts = {"deleted": "", "semicolon": ";", "brace": "}", "word": "return"}
    several = 0
    for place in range(0, len(PLACES), every):
        text = texts.get(change, f"{token(place)} {token(place)}")
        actual = syntax_errors(edited((place, text)))
        several += len(actual) > 1
        assert all(line(max(place - 1, 0)) <= error.span.line for error in actual)
    assert several <= exceptions


def test_two_wrong_tokens_are_two_errors(syntax_errors: SyntaxErrors, pytestconfig: pytest.Config) -> None:
    """Two changes that are refused each, at least thirty tokens apart: two are found, in three pairs of four.

    A statement or heading is cut out whole at its first error, and some have more than thirty tokens.
    """
    choose = random.Random(4)
    marks = ["", ";", ")", "}", "let", "*", "=", "5"]
    tried = both = 0
    pairs = 100 if pytestconfig.getoption("--whole") else 40
    while tried < pairs:
        first, second = choose.randrange(len(PLACES) - 60), choose.randrange(len(PLACES) - 30)
        changes = [(first, choose.choice(marks)), (max(second, first + 30), choose.choice(marks))]
        if all(syntax_errors(edited(change)) for change in changes):
            tried += 1
            both += len(syntax_errors(edited(*changes))) == 2
    assert both >= pairs * 0.77


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            "module m { func f(A fp32) { return A +; }\nfunc g() { let x = 1;\nreturn )x; }\n}",
            [(1, 21, "expected ':'"), (1, 39, "found ';'"), (2, 18, "expected ':'"), (3, 8, "found ')'")],
            id="several",
        ),
        pytest.param(
            "module m { func f() { x = 1 % 2;\ny = 'a';\nz = f(c=1, A, B);\nw = 3 3; } }",
            [(1, 29, "'%'"), (2, 5, '"\'"'), (3, 12, "positional"), (4, 7, "found '3'")],
            id="lexical-ones-among-them",
        ),
        pytest.param(
            "mesh g = mesh<axes=[a], shape=[1]>;\nfunc f() { }\n", [(1, 1, "expected 'module'")], id="no-module"
        ),
        pytest.param(
            "module m { func f() { return 1; } }\nreturn 2; }\nfunc g() { } }\nmodule n { }",
            [(2, 1, "the reserved word 'return', expected 'module'")],
            id="brace-too-many-twice",
        ),
        pytest.param(
            "module m { func f() { if (c) { x = 1; }\nreturn 2; } }\nfunc g() { return 1; }\n}",
            [(3, 1, "the reserved word 'func', expected 'module'")],
            id="module-closed-too-early",
        ),
        pytest.param(
            "module m { func f() { if (c) { x = 1;\nreturn 2; }\nfunc g() { return 1; }\n}",
            [(3, 1, "the reserved word 'func', expected a statement or '}'")],
            id="brace-missing",
        ),
        pytest.param("module m { func f() {\nx = 1;\n", [(2, 7, "the end of the text")], id="two-braces-missing"),
        pytest.param(
            "module m { func f() {\nif (c) { } else if (d) { } else { }\nx = = 1; } }",
            [(2, 17, "the reserved word 'if', expected '{'"), (3, 5, "found '='")],
            id="else-if",
        ),
        pytest.param(
            "module m { func f() {\nfor i in 0:3 { x = 1; }\nx = ;\n} }",
            [(2, 5, "expected '('"), (3, 5, "expected an expression")],
            id="for-without-parentheses",
        ),
        pytest.param(
            "module m { func f(A: tensor 4x4xbf16>, B: tensor<4xfp32>) {\nlet x int8; } }",
            [(1, 29, "found '4'"), (2, 7, "expected ':'")],
            id="angle-bracket-missing",
        ),
        pytest.param(
            "module m { func f() @(note=1) { }\nfunc g() @{note=} { } }",
            [(1, 22, "expected 'schedule'"), (2, 17, "expected a value")],
            id="attributes",
        ),
        pytest.param(
            'module m { func f() { g("a);\ng(b);\ng("c");\n} }',
            [(3, 5, "this string is never closed")],
            id="quotes-out-of-step",
        ),
        pytest.param("module m { func f() { let te$nsor: int8 = 1; } }", [(1, 29, "'$'")], id="stray-in-a-word"),
        pytest.param("module m { fu nc f() { } }", [(1, 12, "expected a declaration")], id="word-in-two"),
        pytest.param(
            "module m { func f() {\nlet 5 tensor x;\ny = ;\nz = [1, 2];\ny = ; } }",
            [(2, 5, "expected a name"), (3, 5, "found ';'"), (4, 5, "found '['"), (5, 5, "found ';'")],
            id="statements-beyond-repair",
        ),
        pytest.param(
            "module m {\nfunc f() { x = 1; }\ny = 2; return y; }\nfunc g() { z = ; } }\n",
            [(3, 1, "found 'y', expected a declaration"), (4, 16, "found ';'")],
            id="statements-behind-their-function",
        ),
        pytest.param("x = 1;\ny = ;\n", [(1, 1, "expected 'module'"), (2, 5, "found ';'")], id="statements-alone"),
        pytest.param(
            "module m { func 5 7 (a: b c d) {\ny = ; }\nfunc g() { z = ; } }",
            [(1, 17, "expected a name"), (2, 5, "found ';'"), (3, 16, "found ';'")],
            id="heading-beyond-repair",
        ),
        pytest.param(
            "module m { func f() { if c d e { y = 1;\nz = ; }\nw = ; } }",
            [(1, 26, "expected '('"), (2, 5, "found ';'"), (3, 5, "found ';'")],
            id="condition-beyond-repair",
        ),
        pytest.param(
            "module 5 6 {\nfunc g() { z = ; } }\nmodule n { func h() { w = ; } }",
            [(1, 8, "expected a name"), (2, 16, "found ';'"), (3, 27, "found ';'")],
            id="module-beyond-repair",
        ),
        pytest.param(
            "module m { func f() { a b c d\nmodule n { func g() { y = ; } }",
            [(1, 25, "found 'b'"), (2, 27, "found ';'")],
            id="module-never-closed",
        ),
        pytest.param(
            "module m { func$f(A: tensor<8x8xfp32>) { }\nfunc g(A: te*sor<4xfp32>) { }\nfunc h() { x = ; } }",
            [(1, 16, "'$'"), (2, 13, "found '*'"), (3, 16, "found ';'")],
            id="words-in-pieces",
        ),
        pytest.param(
            "module m { func f( { return " + "-" * 600 + "1; } }",
            [(1, 20, "expected ')' or a name"), (1, 527, "nested more than 500 levels deep")],
            id="too-deep-behind-an-error",
        ),
        pytest.param("/* a\nmodule m { }", [(1, 1, "never closed")], id="comment"),
    ],
)
def test_what_is_told(syntax_errors: SyntaxErrors, source: str, expected: list[tuple[int, int, str]]) -> None:
    actual = syntax_errors(source)
    assert [(finding.span.line, finding.span.column) for finding in actual] == [place[:2] for place in expected]
    for error, (_, _, message) in zip(actual, expected, strict=True):
        assert message in error.message


def test_a_string_that_may_be_another_says_so(syntax_errors: SyntaxErrors) -> None:
    """Strings may run over lines: what is never closed began, perhaps, much earlier."""
    (actual,) = syntax_errors('module m { func f() {\ng("a);\ng("c");\n} }')
    assert "the one that begins in line 2" in actual.remedy


@pytest.mark.parametrize("mistake", ["let x = 1;", "x = 1 & 2;", "x = ) ;", "f(a=1, b);"])
def test_ten_are_told_at_most(syntax_errors: SyntaxErrors, mistake: str) -> None:
    actual = syntax_errors("module m { func f() {\n" + f"{mistake}\n" * 50 + "} }")
    assert [error.span.line for error in actual] == list(range(2, 12))


def test_reading_ends_after_ten_lexical_errors() -> None:
    lexer = Lexer("% x " * 1000)
    assert len(list(lexer)) < 30
    assert (len(lexer.problems), lexer.cut_short) == (10, True)


@pytest.mark.parametrize("source", ["module m { ) } module n { ( } module o { ] }", "a b c d e f g h i j k l m n o p"])
def test_nothing_is_told_twice(syntax_errors: SyntaxErrors, source: str) -> None:
    actual = syntax_errors(source)
    assert len({error.span for error in actual}) == len(actual)


def test_any_mutation_gets_an_answer_inside_the_text(syntax_errors: SyntaxErrors, drawn: Callable[[int], int]) -> None:
    """Bytes and tokens exchanged at random: findings lie in the text, in order, and say what is required."""
    choose = random.Random(7)
    letters = "\0\t\n\r \"'(){}[];:,.=<>+-*/@?&#$0x9éa\u00a0\U0001f600"
    for _ in range(drawn(600)):
        text = edited(*((choose.randrange(len(PLACES)), choose.choice(letters)) for _ in range(choose.randrange(1, 4))))
        at = choose.randrange(len(text))
        text = text[:at] + choose.choice(letters) + text[at + choose.randrange(3) :]
        lines = text.split("\n")
        actual = syntax_errors(text)
        assert len(actual) <= 10
        assert sorted(actual, key=lambda finding: finding.span) == list(actual)
        for error in actual:
            assert 1 <= error.span.line <= len(lines)
            assert 1 <= error.span.column <= len(lines[error.span.line - 1]) + 1
            assert (error.span.end_line, error.span.end_column) > (error.span.line, error.span.column)
            assert error.message and error.requirement and error.clause
