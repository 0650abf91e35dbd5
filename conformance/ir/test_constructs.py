"""Control cases: the plainest program with each construct that other cases use on the way (LANG 2.3, 14.2).

`conformance/clauses/constructs.toml` names the case of each construct. Where it fails, or follows another reading, the
cases that fail on a program with the construct are blocked by it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.marks import clause, title
from tessera_conformance.protocol import Rejected, Returned

FUNCTION = "module m {{ func f(a: {type}) -> {type} {{ {body} }} }}"


def function(body: str = "return a;", type_: str = "int32") -> str:
    """A module with one function, which takes and returns a value of one type."""
    return FUNCTION.format(type=type_, body=body)


def construct(name: str, clause_id: str, about: str, source: str) -> Any:
    """The program of a construct."""
    return pytest.param(source, id=name, marks=[clause(clause_id), title(about)])


MATRIX = "tensor<2x2xfp32>"
PAIR = "func g(a: int32) -> int32 {{ return a; }} func f(a: int32) -> int32 {{ return {}; }}"
MESH = "mesh g = mesh<axes=[dp], shape=[2]>;"


@pytest.mark.parametrize(
    "source",
    [
        construct("function", "LANG-02.3-07", "A function with a parameter, a result and a return.", function()),
        construct("comment", "LANG-02.1-06", "A comment up to the end of its line.", "// a comment\n" + function()),
        construct("block-comment", "LANG-02.1-07", "A block comment.", "/* a comment */ " + function()),
        construct("float-literal", "LANG-02.3-72", "A float literal.", function("return 1.5;", "fp32")),
        construct("truth-value", "LANG-02.3-74", "The literal true.", function("return true;", "bool")),
        construct("variable", "LANG-02.3-18", "A local variable.", function("let b: int32 = a; return b;")),
        construct("assignment", "LANG-02.3-19", "An assignment to a variable.", function("a = 1; return a;")),
        construct("operator", "LANG-02.3-30", "A binary operator.", function("return a + a;")),
        construct("group", "LANG-02.3-77", "A group in parentheses.", function("return (a);")),
        construct("tensor", "LANG-02.3-56", "A tensor type.", function(type_=MATRIX)),
        construct(
            "layout", "LANG-02.3-39", "A layout in a tensor type.", function(type_="tensor<2x2xfp32; layout=row_major>")
        ),
        construct(
            "unknown-dimension", "LANG-02.3-37", "A dimension that is not known.", function(type_="tensor<?x2xfp32>")
        ),
        construct("matrix-product", "LANG-02.3-65", "The operator @.", function("return a @ a;", MATRIX)),
        construct("call", "LANG-02.3-32", "A call of an operator.", function("return op.softmax(a);", MATRIX)),
        construct(
            "several-functions", "LANG-02.3-02", "Two functions in a module.", f"module m {{ {PAIR.format('a')} }}"
        ),
        construct(
            "call-of-a-function", "LANG-02.3-33", "A call of another function.", f"module m {{ {PAIR.format('g(a)')} }}"
        ),
        construct(
            "function-without-result",
            "LANG-02.3-07",
            "A function without a result annotation.",
            "module m { func f(a: int32) { return; } }",
        ),
        construct("empty-body", "LANG-02.3-15", "A function without statements.", "module m { func f(a: int32) { } }"),
        construct(
            "no-parameters",
            "LANG-02.3-07",
            "A function without parameters.",
            "module m { func f() -> int32 { return 1; } }",
        ),
        construct("empty-module", "LANG-02.3-02", "A module without declarations.", "module m { }"),
        construct(
            "constant",
            "LANG-02.3-05",
            "A constant of a module.",
            "module m { let n: int32 = 1; func f(a: int32) -> int32 { return a; } }",
        ),
        construct(
            "alias",
            "LANG-02.3-04",
            "A type alias that nothing uses.",
            "module m { type t = int32; func f(a: int32) -> int32 { return a; } }",
        ),
        construct("if", "LANG-02.3-23", "An if statement.", function("if (true) { a = 1; } return a;")),
        construct(
            "else",
            "LANG-02.3-23",
            "An if statement with an else block.",
            function("if (true) { a = 1; } else { a = 2; } return a;"),
        ),
        construct("for", "LANG-02.3-24", "A for statement.", function("for (i in 0:2) { a = i; } return a;")),
        construct("while", "LANG-02.3-25", "A while statement.", function("while (a < 2) { a = a + 1; } return a;")),
        construct("barrier", "LANG-02.3-45", "A barrier statement.", function("barrier(); return a;")),
        construct("assert", "LANG-02.3-46", "An assert statement.", function("assert(a == a); return a;")),
        construct(
            "function-attributes",
            "LANG-02.3-07",
            "Attributes of a function (AMB-LANG-15).",
            'module m { func f(a: int32) -> int32 @{numerics_profile="strict"} { return a; } }',
        ),
        construct(
            "mesh",
            "LANG-02.3-06",
            "A mesh declaration.",
            f"module m {{ {MESH} func f(a: int32) -> int32 {{ return a; }} }}",
        ),
        construct(
            "schedule-statement",
            "LANG-02.3-43",
            "A schedule statement.",
            function(f"let c: {MATRIX} = a @ a; schedule.tile(c) @{{m=2, n=2}}; return c;", MATRIX),
        ),
        construct(
            "distributed-statement",
            "LANG-02.3-44",
            "A dist statement.",
            f"module m {{ {MESH} func f(a: {MATRIX}) -> {MATRIX} "
            '{ dist.all_reduce(a) @{axis=dp, op="sum"}; return a; } }',
        ),
    ],
)
def test_the_plainest_program_with_a_construct_is_legal(impl, check, source):
    """A program with nothing but the construct is accepted."""
    check.accepts(impl.language.verify(source=source))


@clause("LANG-02.3-32", "LANG-02.3-34")
def test_a_keyword_argument_is_legal(impl, check):
    """An attribute is given by its name among the arguments (AMB-LANG-14)."""
    answer = impl.language.verify(source=function("return op.softmax(a, axis=0);", MATRIX))
    check.reading("AMB-LANG-14", "attribute block only", isinstance(answer, Rejected))
    check.accepts(answer)


@clause("LANG-02.3-14")
def test_a_signed_number_in_an_attribute_is_legal(impl, check):
    """The value of an attribute has a sign (AMB-LANG-21)."""
    answer = impl.language.verify(source=function("return op.softmax(a) @{axis=-1};", MATRIX))
    check.reading("AMB-LANG-21", "unsigned numbers only", isinstance(answer, Rejected))
    check.accepts(answer)


@clause("LANG-14.2-02")
@pytest.mark.parametrize("operator", ["-", "+"], ids=["minus", "plus"])
def test_a_sign_before_an_operand_is_legal(impl, check, operator):
    """The operators of one operand that section 14.2 has and section 2.3 lacks (AMB-LANG-19)."""
    answer = impl.language.verify(source=function(f"return {operator}a;"))
    check.reading("AMB-LANG-19", "refuse both", isinstance(answer, Rejected))
    check.accepts(answer)


@clause("LANG-14.2-07")
def test_an_index_behind_an_operand_is_legal(impl, check):
    """The indexing that section 14.2 has and section 2.3 lacks (AMB-LANG-19)."""
    source = "module m { func f(a: tensor<4xfp32>) -> fp32 { return a[1]; } }"
    answer = impl.language.verify(source=source)
    check.reading("AMB-LANG-19", "refuse both", isinstance(answer, Rejected))
    check.accepts(answer)


@clause("LANG-02.1-03")
def test_an_exponent_without_a_point_is_legal(impl, check):
    """Section 2.1 has a point or an exponent, the token of section 14.1 asks for the point (AMB-LANG-04)."""
    answer = impl.language.verify(source=function("return 1e2;", "fp32"))
    check.reading("AMB-LANG-04", "1e5 refused", isinstance(answer, Rejected))
    check.accepts(answer)


@clause("LANG-02.3-08")
def test_a_kernel_is_legal(impl, check):
    """A kernel assigns one of its parameters, which nothing marks as an output (AMB-LANG-98)."""
    idle, assigning = (
        impl.language.verify(source=f"module m {{ kernel k(a: {MATRIX}, b: {MATRIX}) {{ {body} }} }}")
        for body in ("return;", "b = a;")
    )
    unmarked = isinstance(idle, Returned) and isinstance(assigning, Rejected)
    check.reading("AMB-LANG-98", "mark output parameters explicitly", unmarked)
    check.accepts(assigning)


SHAPED = "module m {{ func f(a: {type}) -> {type} {{ return a; }} }}"
MESHED = "module m {{ mesh g = mesh<axes=[dp], shape=[2]>; func f(a: fp32) -> fp32 {{ {} }} }}"
INTERPRETED = {
    "inferred-result": (
        ("AMB-LANG-12", "such a func returns nothing"),
        "LANG-02.3-07",
        "module m { func f(a: int32) { return a; } }",
    ),
    "attribute-block": (
        ("AMB-LANG-15", "literal reading: pairs only"),
        "LANG-02.3-12",
        function("return op.softmax(a) @{axis=0};", MATRIX),
    ),
    "several-results": (
        ("AMB-LANG-26", "refuse lists"),
        "LANG-02.3-28",
        "module m { func f(a: int32) { return a, a; } }",
    ),
    "named-dimension": (
        ("AMB-LANG-08", "names are metasyntax only"),
        "LANG-02.3-37",
        SHAPED.format(type="tensor<Nx2xfp32>"),
    ),
    "layout-parameter": (
        ("AMB-LANG-24", "typed parameters only"),
        "LANG-02.3-82",
        SHAPED.format(type="tensor<4x4xfp32; layout=blocked(bm=2, bn=2)>"),
    ),
    "fragment-comma": (
        ("AMB-LANG-25", "semicolon only"),
        "LANG-02.2-15",
        "module m { type t = fragment<16, 8, 4, bf16, layout=col_major>; }",
    ),
    "alias-as-a-type": (
        ("AMB-LANG-50", "aliases are write-only"),
        "LANG-02.3-04",
        "module m { type t = int32; func f(a: t) -> t { return a; } }",
    ),
    "slice-down": (
        ("AMB-LANG-155", "the step of a slice is positive"),
        "LANG-14.2-07",
        "module m { func f(a: tensor<4xfp32>) -> tensor<2xfp32> { return a[3:1:-1]; } }",
    ),
    "distributed-value": (
        ("AMB-LANG-13", "expression use refused"),
        "LANG-02.3-44",
        MESHED.format('return dist.all_reduce(a) @{axis=dp, op="sum"};'),
    ),
}
"""Constructs that a listed alternative refuses: the alternative, the clause, and the plainest program."""


ALSO = {"slice-down": "AMB-LANG-19, "}
"""Other interpretations on which a construct hangs: a slice stands behind an operand, and its step has a sign."""


def legal(name: str, interpretation: str) -> str:
    """The title of a construct's case, which names the interpretations."""
    cited = ALSO.get(name, "") + interpretation
    return f"The plainest program of this kind is accepted: {name.replace('-', ' ')} ({cited})."


@pytest.mark.parametrize(
    ("reading", "source"),
    [
        pytest.param(reading, source, id=name, marks=[clause(clause_id), title(legal(name, reading[0]))])
        for name, (reading, clause_id, source) in INTERPRETED.items()
    ],
)
def test_a_construct_that_an_alternative_refuses_is_legal(impl, check, reading, source):
    """A program with nothing but the construct is accepted; where it is refused, a listed alternative is followed."""
    answer = impl.language.verify(source=source)
    check.reading(*reading, isinstance(answer, Rejected))
    check.accepts(answer)
