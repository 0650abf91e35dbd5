"""The content of a diagnostic: the location, the operand shapes, a remedy (language spec, section 12)."""

import re

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX
from tessera_conformance.dsl import FIRST_STATEMENT, program
from tessera_conformance.marks import clause

PARAMETERS = "A: tensor<2x3xfp32>, B: tensor<4x5xfp32>, C: tensor<5x3xfp32>, D: tensor<3x5xfp32>"
MISMATCHES = [
    pytest.param("op.matmul(A, B)", ["2x3", "4x5"], id="matmul"),
    pytest.param("A @ C", ["2x3", "5x3"], id="at-sign"),
    pytest.param("A + B", ["2x3", "4x5"], id="sum"),
    pytest.param("C == A", ["5x3", "2x3"], id="comparison"),
]


def verified(impl, *statements):
    """The outcome of verifying statements over the parameters A, B and C."""
    return impl.language.verify(source=program(*statements, parameters=PARAMETERS))


def text_of(rejected):
    """All that the errors of a rejection say, as one text."""
    errors = [entry for entry in rejected.diagnostics if entry.severity == "error"]
    return " ".join([rejected.message, *(text for entry in errors for text in (entry.message, *entry.operands))])


@clause("LANG-12-01")
@pytest.mark.parametrize("before", [0, 1, 7])
@pytest.mark.parametrize(("expression", "shapes"), MISMATCHES)
def test_a_diagnostic_names_the_line_of_the_operation(impl, check, expression, shapes, before):
    """The line is that of the offending operation, at any place of the text, also behind a comment of three lines."""
    statements = ["let d: int32 = 1; // legal" if index == 0 else "// nothing" for index in range(before)]
    statements[4:7] = ["/* nothing\n\n*/"] * len(statements[6:])
    check.accepts(verified(impl, *statements, "return A;"))
    check.rejects(
        verified(impl, *statements, f"return {expression};"),
        category="shapes",
        at_line=FIRST_STATEMENT + before,
    )


@clause("LANG-12-01")
def test_a_diagnostic_names_the_line_of_a_syntax_error(impl, check):
    """A stray token is found on its line."""
    check.accepts(verified(impl, "let a: int32 = 1;", "let b: int32 = 2;", "return a;"))
    check.rejects(
        verified(impl, "let a: int32 = 1;", "let b: int32 = ) 2;", "return a;"),
        category="syntax",
        at_line=FIRST_STATEMENT + 1,
    )


@clause("LANG-12-02")
@pytest.mark.parametrize(("expression", "shapes"), MISMATCHES)
def test_a_diagnostic_names_the_operand_shapes(impl, check, expression, shapes):
    """The shapes of both operands are in the message or in its list of operands."""
    check.accepts(verified(impl, "return A + A;"))
    text = text_of(check.rejects(verified(impl, f"return {expression};"), category="shapes"))
    for shape in shapes:
        rows, columns = shape.split("x")
        actual = re.search(rf"(?<!\d){rows}\s*[x,\u00d7]\s*{columns}(?!\d)", text)
        check.true(actual is not None, f"the diagnostic names the shape {shape}", text)


@clause("LANG-12-03")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("return op.matmul(A, D);", "return op.matmul(A, C);", id="transposed-operand"),
        pytest.param("return op.softmax(A);", "return op.sofmax(A);", id="misspelled-operator"),
        pytest.param("return A;", "return AA;", id="misspelled-name"),
        pytest.param("let a: fp32 = 1;", "let a: pf32 = 1;", id="misspelled-dtype"),
        pytest.param("let a: fp32 = 1;", "let a: FP32 = 1;", id="dtype-in-capitals"),
    ],
)
def test_a_diagnostic_suggests_a_remedy(impl, check, legal, illegal):
    """The diagnostic suggests a near spelling or a transposition that would make the program legal."""
    check.accepts(verified(impl, legal))
    rejected = check.rejects(verified(impl, illegal), category=("shapes", "types"))
    remedies = [entry.remedy for entry in rejected.diagnostics if entry.remedy]
    check.true(bool(remedies), "a diagnostic has a remedy", rejected.message)


@clause("LANG-12-01", "LANG-02.1-04", "LANG-02.1-07")
@pytest.mark.parametrize("opening", ["/* never closed", '@{note="never closed'], ids=["comment", "string"])
def test_a_diagnostic_names_the_line_of_something_never_closed(impl, check, opening):
    """The line is that of the start, or the last of the text (AMB-LANG-120)."""
    legal = "module m {\n  func f()\n  @{note=1} { }\n}\n"
    illegal = f"module m {{\n  func f()\n  {opening} {{ }}\n}}"
    check.accepts(impl.language.parse(source=legal))
    rejected = check.rejects(impl.language.parse(source=illegal), **SYNTAX)
    lines = [entry.line for entry in rejected.diagnostics]
    check.true(3 in lines or 4 in lines, "the diagnostic is at line 3 or 4", lines)
