"""Funcs: their declaration, parameters and results (language spec, section 2.3).

Each refused text has a twin beside it that is accepted and differs by a token or by the part in question.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, declared, returns, syntax_twins, value_of
from tessera_conformance.dsl import func, integers, module, program, returning, tensor_of
from tessera_conformance.marks import clause, pair

ONE, TWO, THREE = (tensor_of("int32", value) for value in (1, 2, 3))


FUNCS = [
    pytest.param("func f() { }", id="bare"),
    pytest.param("func f(a: int32) { }", id="parameter"),
    pytest.param("func f() -> int32 { return 1; }", id="result"),
    pytest.param('func f() @{numerics_profile="strict"} { }', id="attributes"),
    pytest.param('func f(a: int32) @{numerics_profile="strict"} { }', id="parameter-attributes"),
    pytest.param('func f() -> int32 @{numerics_profile="strict"} { return 1; }', id="result-attributes"),
    pytest.param('func f(a: int32) -> int32 @{numerics_profile="strict"} { return a; }', id="all"),
]


@clause("LANG-02.3-07")
@pytest.mark.parametrize("declaration", FUNCS)
def test_parameters_result_and_attributes_of_a_func_are_optional(impl, check, declaration):
    """A func has a name, parentheses and a block; parameters, result and attributes may each be left out."""
    check.equal(declared(impl, check, module(declaration)), {"m": ["f"]})
    check.accepts(impl.language.verify(source=module(declaration)))


@clause("LANG-02.3-07")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("name", "func f() -> int32 { return 1; }", "func () -> int32 { return 1; }"),
        pair("parentheses", "func f() -> int32 { return 1; }", "func f -> int32 { return 1; }"),
        pair("closing-parenthesis", "func f() -> int32 { return 1; }", "func f( -> int32 { return 1; }"),
        pair("block", "func f() -> int32 { return 1; }", "func f() -> int32;"),
        pair("keyword", "func f() -> int32 { return 1; }", "f() -> int32 { return 1; }"),
        pair("other-keyword", "func f() -> int32 { return 1; }", "def f() -> int32 { return 1; }"),
        pair("attributes-first", "func f() -> int32 @{a=1} { return 1; }", "func f() @{a=1} -> int32 { return 1; }"),
        pair(
            "two-attribute-blocks",
            "func f() -> int32 @{a=1} { return 1; }",
            "func f() -> int32 @{a=1} @{b=1} { return 1; }",
        ),
        pair("semicolon-after", "func f() -> int32 { return 1; }", "func f() -> int32 { return 1; };"),
        pair(
            "nested",
            "func f() -> int32 { return 1; } func g() -> int32 { return 1; }",
            "func f() -> int32 { func g() -> int32 { return 1; } return 1; }",
        ),
    ],
)
def test_a_malformed_func_is_refused(impl, check, legal, illegal):
    """The parts of a func are in their order, once."""
    syntax_twins(impl, check, module(legal), module(illegal))


@clause("LANG-02.3-07", "LANG-13.2-04")
def test_a_func_without_result_annotation_returns_a_value(impl, check):
    """The type of the result is inferred (AMB-LANG-12)."""
    check.bits(value_of(impl, check, returning("a", "a: int32"), a=TWO), TWO)


@clause("LANG-02.3-07", "LANG-02.3-32")
def test_a_func_may_be_called_before_it_is_declared(impl, check):
    """The order of declarations in a module does not matter to calls (AMB-LANG-97)."""
    source = module(
        func("return twice(a) - 1;", parameters="a: int32", result="int32"),
        func("return a + a;", parameters="a: int32", result="int32", name="twice"),
    )
    check.bits(value_of(impl, check, source, a=TWO), THREE)


@clause("LANG-02.3-09")
def test_parameters_are_bound_by_position(impl, check):
    """There is a comma between two parameters; a call binds its arguments in their order."""
    source = module(
        func("return a - b - c;", parameters="a: int32, b: int32, c: int32", result="int32", name="minus"),
        func("return minus(a, b, 1);", parameters="a: int32, b: int32", result="int32"),
    )
    check.bits(value_of(impl, check, source, a=tensor_of("int32", 9), b=TWO), tensor_of("int32", 6))


@clause("LANG-02.3-09")
@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param("a: int32 b: int32", id="nothing-between"),
        pytest.param("a: int32; b: int32", id="semicolon"),
        pytest.param("a: int32,, b: int32", id="two-commas"),
        pytest.param("a: int32, b: int32,", id="comma-after"),
        pytest.param(", a: int32, b: int32", id="comma-before"),
    ],
)
def test_a_malformed_parameter_list_is_refused(impl, check, parameters):
    """There is exactly one comma between parameters, none before or after."""
    syntax_twins(impl, check, program(parameters="a: int32, b: int32"), program(parameters=parameters))


@clause("LANG-02.3-10")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("type", "a: int32", "a"),
        pair("colon", "a: int32", "a int32"),
        pair("name", "a: int32", ": int32"),
        pair("order", "a: int32", "int32 a"),
        pair("empty-type", "a: int32", "a:"),
        pair("default", "a: int32 = 1", "a: int32 ="),
        pair("default-sign", "a: int32 = 1", "a: int32 := 1"),
        pair("default-without-type", "a: int32 = 1", "a = 1"),
    ],
)
def test_a_parameter_is_a_name_a_colon_and_a_type(impl, check, legal, illegal):
    """A name, a colon, a type, and where wanted an equals sign with a default expression."""
    syntax_twins(impl, check, program(parameters=legal), program(parameters=illegal))


@clause("LANG-02.3-11")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("arrow", "-> int32", "int32"),
        pair("colon", "-> int32", ": int32"),
        pair("split-arrow", "-> int32", "- > int32"),
        pair("double-arrow", "-> int32", "=> int32"),
        pair("type", "-> int32", "->"),
        pair("two-types", "-> int32", "-> int32, int32"),
        pair("two-arrows", "-> int32", "-> int32 -> int32"),
        pair("value", "-> int32", "-> 1"),
    ],
)
def test_a_result_annotation_is_an_arrow_and_one_type(impl, check, legal, illegal):
    """An arrow, undivided, with exactly one type behind it."""
    check.accepts(impl.language.parse(source=module(f"func f() {legal} {{ return 1; }}")))
    check.rejects(impl.language.parse(source=module(f"func f() {illegal} {{ return 1; }}")), **SYNTAX)


@clause("LANG-02.3-11")
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("return 1, 2;", id="two-values"),
        pytest.param("return;", id="no-value"),
        pytest.param("let a: int32 = 1;", id="no-return"),
    ],
)
def test_a_func_with_a_result_annotation_returns_one_value(impl, check, statement):
    """Two values, none, or no return at all do not fit an annotated result (AMB-LANG-26, AMB-LANG-93)."""
    check.accepts(impl.language.verify(source=program("return 1;", result="int32")))
    check.rejects(impl.language.verify(source=program(statement, result="int32")), category=("types", "syntax"))


@clause("LANG-02.3-28")
@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_several_values_are_returned_in_their_order(impl, check, count):
    """The values are of one type; a func returns them, or the call of another func that does (AMB-LANG-26)."""
    names = [f"v{place}" for place in range(count)]
    parameters = ", ".join(f"{name}: int32" for name in names)
    source = module(
        func(f"return {', '.join(reversed(names))};", parameters=parameters, name="g"),
        func(f"return g({', '.join(names)});", parameters=parameters),
    )
    values = {name: 10 + place for place, name in enumerate(names)}
    expected = list(reversed(values.values()))
    returns(impl, check, source, expected, "g", **integers(**values))
    returns(impl, check, source, expected, **integers(**values))
