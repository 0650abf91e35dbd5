"""How a diagnostic reads (language spec section 12)."""

from __future__ import annotations

from collections.abc import Callable

from tessera_reference.ir.diagnostics import Diagnostic, Span, render
from tessera_reference.language import Diagnostic as SameDiagnostic

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


def test_no_remedy_is_offered_that_would_not_help(rejects: Callable[[str], Diagnostic]) -> None:
    assert rejects(SOURCE).remedy == ""


def test_tabs_keep_the_caret_under_its_place() -> None:
    text = render(Diagnostic("types", "verify", "no", Span(1, 3, 1, 5)), "\t\tab")
    assert text.splitlines()[2:4] == ["   1 | \t\tab", "     | \t\t^^"]


def test_a_span_over_lines_is_marked_to_the_end_of_the_first() -> None:
    text = render(Diagnostic("types", "verify", "no", Span(1, 3, 2, 2)), "abcd\r\nef")
    assert text.splitlines()[3] == "     |   ^^"


def test_a_place_behind_the_text_is_still_shown() -> None:
    assert "--> <source>:9:1" in render(Diagnostic("syntax", "parse", "no", Span(9, 1, 9, 2)), "x")


def test_the_language_hands_on_the_type() -> None:
    assert SameDiagnostic is Diagnostic
