"""Mistakes reported once, remedies, and the text of a diagnostic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Span, render
from tessera_reference.language import CompiledModule, Diagnostic, Rejection, compile_source

Rejects = Callable[[str], Diagnostic]
Accepts = Callable[[str], CompiledModule]


def parameters(signature: str, result: str) -> str:
    return f"module m {{\nfunc f({signature}) {{ return {result}; }}\n}}"


@pytest.mark.parametrize(
    ("declarations", "category", "message"),
    [
        ("func f() @{numerics_profile=exact} {}", "numerics", "'exact' is no numerics profile"),
        (
            "func f() @{numerics_profile=strict, numerics_profile=fast} {}",
            "numerics",
            "numerics_profile is given twice and differs",
        ),
        (
            "func f() @{numerics_profile=strict} { g(); } func g() @{numerics_profile=fast} {}",
            "numerics",
            "which is fast",
        ),
        ("func f() { schedule.tile(m=2); }", "schedule", "names nothing to schedule"),
        ("func f(X: tensor<2x2xfp32>) { schedule.layout_cast(X); }", "schedule", "takes a name and the layout"),
        (
            'func f(X: tensor<2x2xfp32>) { schedule.layout_cast(X, to="col_major"); let Y: tensor<2x2xfp32> = X; }',
            "layouts",
            "found tensor<2x2xfp32; layout=col_major>",
        ),
        ("@schedule(m=2, m=4) func f() {}", "schedule", "m is given twice and differs"),
        ("mesh g = mesh<axes=[dp], shape=[2]>; func f() @{mesh_axes=[tp]} {}", "distributed", "has the axis 'tp'"),
        ("type t = fragment<16, 0, 16, bf16>;", "tile", "a fragment has an extent of 0"),
    ],
)
def test_refused_declarations(rejects: Rejects, declarations: str, category: str, message: str) -> None:
    actual = rejects(f"module m {{ {declarations} }}")
    assert (actual.category, actual.phase) == (category, "verify")
    assert message in actual.message


@pytest.mark.parametrize(
    ("expression", "reading"),
    [("A + A @ T", "this is (A + A) @ T"), ("A @ T + T", "this is A @ (T + T)"), ("A @ T * 2", "this is A @ (T * 2)")],
)
def test_loose_matmul_is_warned_about(accepts: Accepts, expression: str, reading: str) -> None:
    compiled = accepts(parameters("A: tensor<4x4xfp32>, T: tensor<4x4xfp32>", expression))
    (warning,) = compiled.warnings
    assert (warning.severity, warning.clause) == ("warning", "LANG-14.2-05")
    assert reading in warning.message


def test_a_chain_of_doubling_constants_is_computed_once() -> None:
    doubled = " ".join(f"let a{i}: int32 = a{i - 1} + a{i - 1};" for i in range(1, 31))
    module = compile_source(f"module m {{ let a0: int32 = 1; {doubled} func f() {{ return a30; }} }}", "t.tsr").module
    assert len(module.functions["f"].body.instructions) == 1
    (result,) = execute(module, "f", {})
    assert result.values.item() == 2**30


@pytest.mark.parametrize(
    ("declarations", "messages"),
    [
        ("let K: int32 = L; let L: int32 = K; func f() { return K; }", ["the constant 'K' depends on itself"]),
        ("let Z: int32 = 1 / 0; func f() { }", ["divide: integer division by zero"]),
        ("func f(x: T) { } type T = fp32;", ["unknown dtype 'T'"]),
        ("func g() { return q; } func h() { return g(); } func f() { return h(); }", ["unknown name 'q'"]),
        ("func f() { w = 1; w = w + w; }", ["unknown name 'w'"]),
        ("func f() { let y: int32 = 1; let y: fp32 = 1.0; y = 2.0; }", ["'y' is declared twice; first in line 1"]),
        (
            'func g() { numerics.profile("fast"); } func f() @{numerics_profile=strict} { g(); }',
            ["a strict function calls g, which is fast"],
        ),
        ("func f(x: fp32 = op.grad(1.0, 1.0)) { let y: fp32 = x; return y + z; }", ["unknown name 'z'"]),
    ],
)
def test_one_mistake_is_told_once(declarations: str, messages: list[str]) -> None:
    with pytest.raises(Rejection) as caught:
        compile_source(f"module m {{ {declarations} }}", "t.tsr")
    assert [found.message for found in caught.value.diagnostics] == messages


SOURCE = """module demo {

  func attention(Q: tensor<128x64xbf16>, K: tensor<32x128xbf16>) {


    // a comment
    let S: tensor<4x4xbf16> = op.matmul(Q, K);
  }
}
"""


def test_a_shape_error_reads_like_the_sample(rejects: Callable[[str], Diagnostic]) -> None:
    source = SOURCE.replace("32x128", "128x64")
    assert render(rejects(source), source) == "\n".join(
        [
            "error[shapes]: matmul: inner dimensions differ: 64 and 128",
            "  --> t.tsr:7:31",
            "   7 |     let S: tensor<4x4xbf16> = op.matmul(Q, K);",
            "     |                               ^^^^^^^^^^^^^^^ a is tensor<128x64xbf16>, b is tensor<128x64xbf16>",
            "   = requires a.shape[-1] == b.shape[-2]   (LANG-05.4-01)",
            "   = did you mean op.matmul(Q, op.transpose(K))?",
        ]
    )


def test_no_transpose_is_offered_that_would_not_help(rejects: Callable[[str], Diagnostic]) -> None:
    assert rejects(SOURCE).remedy == "K is the last dimension of Q and the last but one of K"


def test_tabs_keep_the_caret_under_its_place() -> None:
    text = render(Diagnostic("types", "verify", "no", Span(1, 3, 1, 5)), "\t\tab")
    assert text.splitlines()[2:4] == ["   1 | \t\tab", "     | \t\t^^"]


def test_a_span_over_lines_is_marked_to_the_end_of_the_first() -> None:
    text = render(Diagnostic("types", "verify", "no", Span(1, 3, 2, 2)), "abcd\r\nef")
    assert text.splitlines()[3] == "     |   ^^"


def test_a_place_behind_the_text_is_still_shown() -> None:
    assert "--> <source>:9:1" in render(Diagnostic("syntax", "parse", "no", Span(9, 1, 9, 2)), "x")


MISTAKES = {
    "types in a circle": ("module m { type A = B; type B = A; func f() { } }", "types in a circle: A = B = A", ""),
    "a tensor as the condition of an if": (
        "module m { func f(x: tensor<4xbool>) { if (x) { } } }",
        "the condition is tensor<4xbool>, not bool",
        "take one element, as in x[0]",
    ),
    "a tensor as the condition of a while": (
        "module m { func f(x: tensor<4xfp32>) { while (x > 1.0) { } } }",
        "the condition is tensor<4xbool>, not bool",
        "take one element, as in x[0]",
    ),
    "a comment in a comment": (
        "module m { func f() { /* a /* b */ c */ return; } }",
        "found '*', expected",
        "comments do not nest (LANG-14.1-10): one ends at its first */",
    ),
    "let without a type": (
        "module m { func f() { let x = 1; } }",
        "found '='",
        "let names a type: let name: type = value;",
    ),
    "no parentheses": ("module m { func f() { for i in 0:3 { } } }", "found 'i'", "parentheses are missing: for (...)"),
    "a misspelt word": ("module m { func f() { retrun 1; } }", "found '1'", "did you mean return?"),
    "a word as near to two": ("module m { klernt f() { } }", "found 'klernt'", "did you mean kernel?"),
    "a misspelt dtype": ("module m { func f(x: pf32) { } }", "unknown dtype 'pf32'", "did you mean fp32?"),
    "a dtype of C": ("module m { func f(x: double) { } }", "unknown dtype 'double'", "did you mean fp64?"),
    "an argument too many": ("module m { func f() { } func g() { f(1); } }", "f: takes 0 arguments, 1 given", ""),
    "two wrong arguments": (
        "module m { func f(x: int32, y: int32) { } func g() { f(1, x=2, yy=3); } }",
        "f: argument x is given twice",
        "",
    ),
    "another K": (
        "module m { func f(x: tensor<4x5xfp32>, y: tensor<6x3xfp32>) { return x @ y; } }",
        "inner dimensions differ: 5 and 6",
        "K is the last dimension of x and the last but one of y",
    ),
    "a transposed first operand": (
        "module m { func f(x: tensor<6x4xfp32>, y: tensor<6x3xfp32>) { return x @ y; } }",
        "inner dimensions differ: 4 and 6",
        "did you mean op.matmul(op.transpose(x), y)?",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_common_mistake_is_told_with_a_remedy(name: str) -> None:
    source, message, remedy = MISTAKES[name]
    with pytest.raises(Rejection) as caught:
        compile_source(source, "t.tsr")
    first = caught.value.diagnostics[0]
    assert message in first.message
    assert first.remedy == remedy


@pytest.mark.parametrize("at", [0, 40, 500, 990])
def test_of_a_long_line_160_columns_are_quoted(at: int) -> None:
    line = "a" * at + "!bad!" + "a" * (995 - at)
    text = render(Diagnostic("syntax", "lex", "no", Span(1, at + 1, 1, at + 6), "t.tsr"), line)
    label = "   1 | "
    (quoted,) = (word for word in text.split("\n") if word.startswith(label))
    (carets,) = (word for word in text.split("\n") if word.startswith("     | "))
    assert len(quoted) - len(label) == 160
    start, stop = carets.index("^"), carets.rindex("^") + 1
    assert quoted[start:stop] == "!bad!"


def test_no_hidden_character_of_a_program_reaches_the_terminal() -> None:
    """Each is shown as one sign, so that carets keep their places."""
    acting = "\x1b[2J\x9b\u202e\u2066\u200b"
    text = render(Diagnostic("types", "verify", f"no {acting}", Span(1, 9, 1, 12), f"{acting}.tsr"), f"{acting}!bad!")
    assert not set("\x1b\x9b\u202e\u2066\u200b") & set(text)
    quoted, carets = text.split("\n")[2:4]
    assert quoted[carets.index("^") :][:3] == "!ba"
