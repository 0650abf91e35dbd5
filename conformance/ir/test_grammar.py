"""Programs, modules, declarations, statements and attribute blocks (language spec, section 2.3).

Each refused text has a twin beside it that is accepted and differs by a token or by the part in question.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, declared, evaluate, syntax_twins, value_of
from tessera_conformance.dsl import func, module, program, tensor_of
from tessera_conformance.marks import clause, feature, pair

ONE, TWO, THREE = (tensor_of("int32", value) for value in (1, 2, 3))


@clause("LANG-02.3-01")
@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(" \n// nothing\n/* at all */", [], id="comments-only"),
        pytest.param("module a { }", ["a"], id="one"),
        pytest.param("module a { } module b { } module c { }", ["a", "b", "c"], id="three"),
    ],
)
def test_a_program_is_a_sequence_of_modules(impl, check, source, names):
    """No module, one module or several, in order, are a legal program."""
    check.accepts(impl.language.verify(source=source))
    check.equal(list(declared(impl, check, source)), names)


@clause("LANG-02.3-01")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("func", "module m { func f() -> int32 { return 1; } }", "func f() -> int32 { return 1; }"),
        pair("statement", "module m { }", "module m { } return;"),
        pair("semicolon", "module m { } module n { }", "module m { }; module n { }"),
        pair("brace", "module m { }", "module m { } }"),
    ],
)
def test_only_modules_stand_at_the_top(impl, check, legal, illegal):
    """Declarations, statements and stray tokens outside a module are refused (AMB-LANG-11)."""
    syntax_twins(impl, check, legal, illegal)


@clause("LANG-02.3-02")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_module_has_a_name_and_a_list_of_declarations(impl, check, count):
    """A module may be empty or hold several declarations, kept in order."""
    names = [f"f{number}" for number in range(count)]
    source = module(*(func(name=name) for name in names), name="demo")
    check.equal(declared(impl, check, source), {"demo": names})


@clause("LANG-02.3-02")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("keyword", "module m { }", "modul m { }"),
        pair("name", "module m { }", "module { }"),
        pair("two-names", "module m { }", "module m n { }"),
        pair("opening-brace", "module m { }", "module m }"),
        pair("closing-brace", "module m { }", "module m {"),
        pair("parentheses", "module m { }", "module m ( )"),
        pair("nested", "module m { } module n { }", "module m { module n { } }"),
        pair("statement-inside", "module m { }", "module m { return; }"),
    ],
)
def test_a_malformed_module_is_refused(impl, check, legal, illegal):
    """Word, name and both braces are needed, and only declarations are inside."""
    syntax_twins(impl, check, legal, illegal)


@clause("LANG-02.3-12")
@pytest.mark.parametrize(
    "attributes", ["{}", "{ }", "{a=1}", "{a=1, b=2}", "{a=1,b=2,c=3}"], ids=["empty", "blank", "one", "two", "three"]
)
def test_an_attribute_block_is_an_at_sign_and_braces(impl, check, attributes):
    """Any number of attributes with commas between them is in braces after an at-sign (AMB-LANG-15)."""
    check.accepts(impl.language.parse(source=program("return;", attributes=attributes)))
    check.accepts(impl.language.parse(source=program(f"g() @{attributes};")))


@clause("LANG-02.3-12")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("at-sign", "@{a=1}", "{a=1}"),
        pair("brackets", "@{a=1}", "@[a=1]"),
        pair("parentheses", "@{a=1}", "@(a=1)"),
        pair("closing-brace", "@{a=1}", "@{a=1"),
        pair("comma-after", "@{a=1, b=2}", "@{a=1, b=2,}"),
        pair("comma-before", "@{a=1, b=2}", "@{, a=1, b=2}"),
        pair("no-comma", "@{a=1, b=2}", "@{a=1 b=2}"),
        pair("semicolon", "@{a=1, b=2}", "@{a=1; b=2}"),
    ],
)
def test_a_malformed_attribute_block_is_refused(impl, check, legal, illegal):
    """At-sign and braces are needed, and one comma between attributes; none may follow the last (AMB-LANG-15)."""
    syntax_twins(impl, check, module(f"func f() {legal} {{ }}"), module(f"func f() {illegal} {{ }}"))


@clause("LANG-02.3-13")
@pytest.mark.parametrize(
    "illegal",
    [
        pytest.param("a", id="name-only"),
        pytest.param("a=", id="no-value"),
        pytest.param("=1", id="no-name"),
        pytest.param("a: 1", id="colon"),
        pytest.param("a == 1", id="two-equals-signs"),
        pytest.param('"a"=1', id="string-for-name"),
        pytest.param("a.b=1", id="dotted-name"),
        pytest.param("a=1 + 2", id="sum"),
        pytest.param("a=g()", id="call"),
        pytest.param("a=(1)", id="parentheses"),
    ],
)
def test_an_attribute_is_a_name_an_equals_sign_and_a_value(impl, check, illegal):
    """Name, equals sign and one constant value make an attribute; nothing is computed in it."""
    syntax_twins(impl, check, program(attributes="{a=1}"), program(attributes="{" + illegal + "}"))


@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("12", "1 2", id="integer", marks=clause("LANG-02.3-14")),
        pytest.param("0", "0x0", id="zero", marks=clause("LANG-02.3-14")),
        pytest.param("-1", "--1", id="negative-integer", marks=clause("LANG-02.3-14")),
        pytest.param("1.5", "1.5.5", id="float", marks=clause("LANG-02.3-57")),
        pytest.param("1.", ".1", id="float-without-fraction", marks=clause("LANG-02.3-57")),
        pytest.param("1e-5", "1e-", id="float-with-exponent", marks=clause("LANG-02.3-57")),
        pytest.param("-2.5", "--2.5", id="negative-float", marks=clause("LANG-02.3-57")),
        pytest.param('"text"', '"text', id="string", marks=clause("LANG-02.3-58")),
        pytest.param('""', '"" ""', id="empty-string", marks=clause("LANG-02.3-58")),
        pytest.param("fast", "9fast", id="identifier", marks=clause("LANG-02.3-59")),
        pytest.param("row_major", "row-major", id="identifier-with-underscore", marks=clause("LANG-02.3-59")),
        pytest.param("true", "true false", id="true", marks=clause("LANG-02.3-59")),
        pytest.param("false", "false.", id="false", marks=clause("LANG-02.3-59")),
        pytest.param("[1]", "[1", id="list-of-one", marks=clause("LANG-02.3-60")),
        pytest.param("[1, 2, 3]", "[1, 2 3]", id="list-of-three", marks=clause("LANG-02.3-60")),
        pytest.param("[dp, tp]", "[dp, tp,]", id="list-of-identifiers", marks=clause("LANG-02.3-60")),
        pytest.param('[1, 2.5, "a", b, -1]', '[1, 2.5; "a", b, -1]', id="mixed-list", marks=clause("LANG-02.3-60")),
        pytest.param("[[1, 2], [3]]", "[[1, 2], [3]", id="list-of-lists", marks=clause("LANG-02.3-60")),
        pytest.param("[]", "[,]", id="empty-list", marks=clause("LANG-02.3-60")),
    ],
)
def test_an_attribute_value_is_a_number_a_string_an_identifier_or_a_list(impl, check, legal, illegal):
    """The five kinds of values, signed numbers and booleans among them (AMB-LANG-15, AMB-LANG-21, AMB-LANG-22)."""
    for form in ("func f() @{{a={}}} {{ }}", "func f() {{ g() @{{b=1, a={}}}; }}"):
        syntax_twins(impl, check, module(form.format(legal)), module(form.format(illegal)))


FLOATS = {"0.25": 0.25, "2.5e-1": 0.25, "-1.5": -1.5, "12.": 12.0, "1e3": 1000.0, "0.0625": 0.0625, "1.5E+2": 150.0}


@feature("tensor-ops")
@clause("LANG-02.3-57")
@pytest.mark.parametrize("literal", FLOATS)
def test_a_float_in_an_attribute_block_has_its_value(impl, check, literal):
    """The elements of a constant are the number, rounded once to fp32 (AMB-LANG-21)."""
    source = program(f"return op.const_tensor() @{{shape=[2], dtype=fp32, value={literal}}};", parameters="")
    check.bits(value_of(impl, check, source), tensor_of("fp32", [FLOATS[literal]] * 2))


@clause("LANG-02.3-15")
@pytest.mark.parametrize("count", [0, 1, 4, 600])
def test_a_block_holds_any_number_of_statements(impl, check, count):
    """Statements run from the first to the last; a block may be empty."""
    check.accepts(impl.language.verify(source=program(*(f"let a{number}: int32 = 1;" for number in range(count)))))
    statements = [f"let a{number + 1}: int32 = (a{number} + 1);" for number in range(count)]
    source = program(*statements, f"return a{count};", parameters="a0: int32", result="int32")
    check.bits(value_of(impl, check, source, a0=ONE), tensor_of("int32", 1 + count))


@clause("LANG-02.3-15")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("opening-brace", "func f() -> int32 { return 1; }", "func f() -> int32 return 1; }"),
        pair("closing-brace", "func f() -> int32 { return 1; }", "func f() -> int32 { return 1;"),
        pair("parentheses", "func f() -> int32 { return 1; }", "func f() -> int32 ( return 1; )"),
        pair("brackets", "func f() -> int32 { return 1; }", "func f() -> int32 [ return 1; ]"),
        pair("doubled", "func f() -> int32 { return 1; }", "func f() -> int32 {{ return 1; }}"),
        pair("second-block", "func f() -> int32 { return 1; }", "func f() -> int32 { return 1; } { return 1; }"),
    ],
)
def test_a_malformed_block_is_refused(impl, check, legal, illegal):
    """A block opens and closes with one brace each."""
    syntax_twins(impl, check, module(legal), module(illegal))


@clause("LANG-02.3-16")
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("let b: int32 = 1", id="variable"),
        pytest.param("let b: int32", id="variable-without-value"),
        pytest.param("g(a)", id="call"),
        pytest.param("g(a) @{b=1}", id="call-with-attributes"),
        pytest.param("return", id="bare-return"),
        pytest.param("return a", id="return"),
        pytest.param("return a, a", id="return-list"),
    ],
)
@pytest.mark.parametrize("place", ["{}", "let c: int32 = 1; {}", "{} return a;"], ids=["only", "last", "first"])
def test_a_statement_ends_with_a_semicolon(impl, check, statement, place):
    """Without its semicolon a statement is refused at any place of the block; one semicolon is enough."""
    whole, broken, doubled = (place.format(statement + end) for end in (";", "", ";;"))
    syntax_twins(impl, check, program(whole, parameters="a: int32"), program(broken, parameters="a: int32"))
    check.rejects(impl.language.parse(source=program(doubled, parameters="a: int32")), **SYNTAX)


@clause("LANG-02.3-18")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pair("type", "let a: int32 = 1;", "let a = 1;"),
        pair("colon", "let a: int32 = 1;", "let a int32 = 1;"),
        pair("name", "let a: int32 = 1;", "let : int32 = 1;"),
        pair("keyword", "let a: int32 = 1;", "a: int32 = 1;"),
        pair("other-keyword", "let a: int32 = 1;", "var a: int32 = 1;"),
        pair("value", "let a: int32 = 1;", "let a: int32 = ;"),
        pair("sign", "let a: int32 = 1;", "let a: int32 := 1;"),
        pair("two-names", "let a: int32 = 1;", "let a, b: int32 = 1;"),
        pair("two-values", "let a: int32 = 1;", "let a: int32 = 1, 2;"),
        pair("no-initializer", "let a: int32;", "let a;"),
    ],
)
def test_a_local_variable_is_let_name_colon_type_and_value(impl, check, legal, illegal):
    """A local variable names its type; its initializer alone may be left out."""
    syntax_twins(impl, check, program(legal), program(illegal))


@clause("LANG-02.3-18")
def test_a_local_variable_holds_the_value_of_its_initializer(impl, check):
    """A name has the value of its initializer."""
    source = program("let b: int32 = a + 1;", "let c: int32 = b + b;", "return c - a;", parameters="a: int32")
    check.bits(value_of(impl, check, source, a=ONE), THREE)


@clause("LANG-02.3-28")
@pytest.mark.parametrize(
    ("statement", "values"),
    [("return;", []), ("return a;", [ONE]), ("return b, a;", [TWO, ONE]), ("return a, a + b, b;", [ONE, THREE, TWO])],
    ids=["none", "one", "two", "three"],
)
def test_a_return_carries_any_number_of_values(impl, check, statement, values):
    """None, one or several values are returned in order by a func without result annotation (AMB-LANG-26)."""
    outputs = evaluate(impl, check, program(statement, parameters="a: int32, b: int32"), a=ONE, b=TWO)
    check.equal(len(outputs), len(values), "the number of returned values")
    for output, value in zip(outputs, values, strict=True):
        check.bits(output, value)


@clause("LANG-02.3-29")
@pytest.mark.parametrize(
    "illegal",
    [
        pytest.param("return a b;", id="nothing-between"),
        pytest.param("return a; b;", id="semicolon"),
        pytest.param("return a,, b;", id="two-commas"),
        pytest.param("return a, b,;", id="comma-after"),
        pytest.param("return , a, b;", id="comma-before"),
    ],
)
def test_an_expression_list_has_one_comma_between_expressions(impl, check, illegal):
    """Expressions in a list are separated by exactly one comma."""
    outputs = evaluate(impl, check, program("return a, b;", parameters="a: int32, b: int32"), a=ONE, b=TWO)
    check.equal(len(outputs), 2, "the number of returned values")
    check.rejects(impl.language.parse(source=program(illegal, parameters="a: int32, b: int32")), **SYNTAX)
