"""Primaries, calls and operators (language spec, section 2.3)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, evaluate, syntax_twins, value_of
from tessera_conformance.dsl import func, module, parameters_of, program, returning, tensor_of
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Rejected

SCALARS = parameters_of("ab", "int32")
MATRICES = parameters_of("AB", "tensor<2x2xint32>")
TWICE = func("return a + a;", parameters="a: int32", result="int32", name="twice")
MINUS = func("return a - b;", parameters=SCALARS, result="int32", name="minus")
NINE, FOUR = tensor_of("int32", 9), tensor_of("int32", 4)


def calling(*statements):
    """A module in which `f(a, b)` can call `twice(a)` and `minus(a, b)`."""
    return module(TWICE, MINUS, func(*statements, parameters=SCALARS, result="int32"))


@clause("LANG-02.3-30")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("a + b", "a b", id="operator"),
        pytest.param("a + b", "a +", id="right-operand"),
        pytest.param("a * b", "* b", id="left-operand"),
        pytest.param("a * b", "a * / b", id="two-operators"),
        pytest.param("a * b * a", "a * b a", id="second-operator"),
        pytest.param("a - b", "a b -", id="postfix"),
    ],
)
def test_a_binary_operator_stands_between_two_primaries(impl, check, legal, illegal):
    """Primaries and operators alternate, beginning and ending with a primary."""
    check.accepts(impl.language.verify(source=returning(legal, SCALARS, "int32")))
    check.rejects(impl.language.parse(source=returning(illegal, SCALARS, "int32")), **SYNTAX)


@clause("LANG-02.3-30")
@pytest.mark.parametrize("count", [10, 600])
def test_operators_join_any_number_of_primaries(impl, check, count):
    """Ten primaries in one expression, and six hundred."""
    source = returning(" + ".join(["a"] * (count - 1) + ["b"]), SCALARS, "int32")
    check.bits(value_of(impl, check, source, a=NINE, b=FOUR), tensor_of("int32", 9 * count - 5))


@clause("LANG-02.3-31")
@pytest.mark.parametrize(
    ("primary", "value"),
    [("3", 3), ("a", 9), ("twice(a)", 18), ("(a - b)", 5), ("((a))", 9), ("twice((a - b))", 10)],
    ids=["literal", "name", "call", "group", "nested-group", "group-in-call"],
)
def test_a_primary_is_a_literal_a_name_a_call_or_a_group(impl, check, primary, value):
    """Each kind of primary may be alone and on both sides of an operator."""
    for expression, expected in ((primary, value), (f"{primary} * b", value * 4), (f"b - {primary}", 4 - value)):
        result = value_of(impl, check, calling(f"return {expression};"), a=NINE, b=FOUR)
        check.bits(result, tensor_of("int32", expected), expression)


@clause("LANG-02.3-31")
@pytest.mark.parametrize(
    "illegal",
    [
        pytest.param("return {a};", id="braces"),
        pytest.param("return [a];", id="brackets"),
        pytest.param("return (a, b);", id="pair"),
        pytest.param("return let;", id="keyword"),
        pytest.param("return (return a);", id="statement"),
        pytest.param("return int32 a;", id="type"),
    ],
)
def test_nothing_else_is_a_primary(impl, check, illegal):
    """Braces, brackets, pairs and keywords give no value; the name in parentheses does."""
    syntax_twins(impl, check, program("return (a);", parameters=SCALARS), program(illegal, parameters=SCALARS))


@clause("LANG-02.3-32")
def test_a_call_gives_the_value_of_its_function(impl, check):
    """Calls take expressions and calls as arguments."""
    source = calling("return minus(twice(a), minus(b, 1) + 1);")
    check.bits(value_of(impl, check, source, a=NINE, b=FOUR), tensor_of("int32", 14))


@clause("LANG-02.3-32")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("twice(a)", "twice a", id="parentheses"),
        pytest.param("twice(a)", "twice(a", id="closing-parenthesis"),
        pytest.param("twice(a)", "twice[a)", id="bracket"),
        pytest.param("twice(a)", "(twice)(a)", id="group-for-name"),
        pytest.param("twice(a) @{b=1}", "twice(a) {b=1}", id="attributes-without-at-sign"),
        pytest.param("twice(a) @{b=1}", "twice @{b=1} (a)", id="attributes-first"),
        pytest.param("op.softmax(a) @{axis=0}", "op.softmax(a) @{axis}", id="attribute-without-value"),
    ],
)
def test_a_malformed_call_is_refused(impl, check, legal, illegal):
    """A name, parentheses, and the attribute block last."""
    syntax_twins(impl, check, returning(legal, SCALARS), returning(illegal, SCALARS))


@clause("LANG-02.3-32")
def test_the_attribute_block_of_a_call_belongs_to_the_call(impl, check):
    """Axis 1 of a matrix is legal and axis 2 is not, also when the attribute block gives it (AMB-LANG-17)."""
    tensor = "A: tensor<2x3xfp32>"
    check.accepts(impl.language.verify(source=returning("op.softmax(A) @{axis=1}", tensor)))
    check.rejects(impl.language.verify(source=returning("op.softmax(A) @{axis=2}", tensor)), category="shapes")


@clause("LANG-02.3-32")
def test_a_call_can_stand_as_a_statement(impl, check):
    """A call whose value is not used is a statement; another expression is not."""
    check.bits(value_of(impl, check, calling("twice(a);", "return b;"), a=NINE, b=FOUR), FOUR)
    check.rejects(impl.language.parse(source=calling("a + a;", "return b;")), **SYNTAX)


@clause("LANG-02.3-33", "LANG-02-04")
def test_a_dotted_name_joins_identifiers_with_points(impl, check):
    """An operator is called by the word op, a point and its name; white space around the point changes nothing."""
    for name in ("op.matmul", "op . matmul", "op.\nmatmul"):
        check.accepts(impl.language.verify(source=returning(f"{name}(A, B)", MATRICES)), f"{name} is legal")


@clause("LANG-02.3-33")
@pytest.mark.parametrize(
    "name",
    ["op..matmul", ".matmul", "op.matmul.", "op.1", "op->matmul", "op::matmul"],
    ids=["two-points", "leading-point", "trailing-point", "number", "arrow", "colons"],
)
def test_a_malformed_dotted_name_is_refused(impl, check, name):
    """A dotted name has exactly one point between two identifiers."""
    syntax_twins(impl, check, returning("op.matmul(A, B)", MATRICES), returning(f"{name}(A, B)", MATRICES))


@clause("LANG-02-04")
@pytest.mark.parametrize("name", ["matmul", "ops.matmul", "tessera.matmul"])
def test_an_operator_has_the_prefix_op(impl, check, name):
    """Without the prefix, or with another, the name is unknown."""
    check.accepts(impl.language.verify(source=returning("op.matmul(A, B)", MATRICES)))
    check.rejects(
        impl.language.verify(source=returning(f"{name}(A, B)", MATRICES)), category=("types", "syntax"), at_line=3
    )


@clause("LANG-02.3-34")
@pytest.mark.parametrize(
    "illegal",
    [
        pytest.param("minus(a b)", id="nothing-between"),
        pytest.param("minus(a; b)", id="semicolon"),
        pytest.param("minus(a,, b)", id="two-commas"),
        pytest.param("minus(a, b,)", id="comma-after"),
        pytest.param("minus(, a, b)", id="comma-before"),
    ],
)
def test_arguments_have_one_comma_between_them(impl, check, illegal):
    """Arguments are separated by exactly one comma, and bound in their order."""
    check.bits(value_of(impl, check, calling("return minus(a, b);"), a=NINE, b=FOUR), tensor_of("int32", 5))
    check.rejects(impl.language.parse(source=calling(f"return {illegal};")), **SYNTAX)


@clause("LANG-02.3-34", "LANG-02.3-32")
def test_a_keyword_argument_follows_the_positional_ones(impl, check):
    """`axis=0` after the tensor is accepted, before it refused (AMB-LANG-14, AMB-LANG-100)."""
    tensor = "A: tensor<2x3xfp32>"
    answer = impl.language.verify(source=returning("op.softmax(A, axis=0)", tensor))
    refused = isinstance(answer, Rejected) and answer.phase == "parse"
    check.reading("AMB-LANG-14", "attribute block only", refused)
    check.accepts(answer)
    check.rejects(impl.language.verify(source=returning("op.softmax(axis=0, A)", tensor)), category=("syntax", "types"))
    check.rejects(impl.language.verify(source=returning("op.softmax(A, axis=2)", tensor)), category="shapes")


OPERATORS = [
    pytest.param("+", [6, -5, 10, 0], id="plus", marks=clause("LANG-02.3-61")),
    pytest.param("-", [8, -9, 0, 0], id="minus", marks=clause("LANG-02.3-62")),
    pytest.param("*", [-7, -14, 25, 0], id="times", marks=clause("LANG-02.3-63")),
]
COMPARISONS = [
    pytest.param("==", [False, False, True, True], id="eq", marks=clause("LANG-02.3-66")),
    pytest.param("!=", [True, True, False, False], id="ne", marks=clause("LANG-02.3-67")),
    pytest.param("<", [False, True, False, False], id="lt", marks=clause("LANG-02.3-68")),
    pytest.param(">", [True, False, False, False], id="gt", marks=clause("LANG-02.3-69")),
    pytest.param("<=", [False, True, True, True], id="le", marks=clause("LANG-02.3-70")),
    pytest.param(">=", [True, False, True, True], id="ge", marks=clause("LANG-02.3-71")),
]
LEFT, RIGHT = [7, -7, 5, 0], [-1, 2, 5, 0]


@pytest.mark.parametrize(("operator", "expected"), [*OPERATORS, *COMPARISONS])
@pytest.mark.parametrize("dtype", ["int32", "fp32"])
def test_an_elementwise_operator_on_tensors(impl, check, operator, expected, dtype):
    """Operands of equal shapes; comparisons give booleans (AMB-LANG-55)."""
    result = "bool" if isinstance(expected[0], bool) else dtype
    source = returning(f"A {operator} B", parameters_of("AB", f"tensor<4x{dtype}>"), f"tensor<4x{result}>")
    value = value_of(impl, check, source, A=tensor_of(dtype, LEFT), B=tensor_of(dtype, RIGHT))
    check.bits(value, tensor_of(result, expected))


@pytest.mark.parametrize(("operator", "expected"), [*OPERATORS, *COMPARISONS])
def test_an_operator_on_scalars(impl, check, operator, expected):
    """The operators take two scalars of one dtype as well."""
    result = "bool" if isinstance(expected[0], bool) else "int32"
    source = returning(f"a {operator} b", SCALARS, result)
    for left, right, value in zip(LEFT, RIGHT, expected, strict=True):
        output = value_of(impl, check, source, a=tensor_of("int32", left), b=tensor_of("int32", right))
        check.bits(output, tensor_of(result, value), f"{left} {operator} {right}")


@pytest.mark.parametrize(("operator", "expected"), [*OPERATORS, *COMPARISONS])
def test_an_operator_on_a_tensor_and_a_scalar(impl, check, operator, expected):
    """A scalar beside a tensor is combined with each of its elements (AMB-LANG-55)."""
    result = "bool" if isinstance(expected[0], bool) else "int32"
    parameters = "A: tensor<1xint32>, b: int32"
    source = returning(f"A {operator} b", parameters, f"tensor<1x{result}>")
    mirrored = returning(f"b {operator} A", parameters, f"tensor<1x{result}>")
    for left, right, value in zip(LEFT, RIGHT, expected, strict=True):
        output = value_of(impl, check, source, A=tensor_of("int32", [left]), b=tensor_of("int32", right))
        check.bits(output, tensor_of(result, [value]), f"[{left}] {operator} {right}")
        output = value_of(impl, check, mirrored, A=tensor_of("int32", [right]), b=tensor_of("int32", left))
        check.bits(output, tensor_of(result, [value]), f"{left} {operator} [{right}]")


@clause("LANG-02.3-64")
def test_division_of_integers_truncates_toward_zero(impl, check):
    """7 / -1 is -7, -7 / 2 is -3 and 5 / 5 is 1 (AMB-LANG-55)."""
    source = returning("A / B", parameters_of("AB", "tensor<3xint32>"), "tensor<3xint32>")
    value = value_of(impl, check, source, A=tensor_of("int32", [7, -7, 5]), B=tensor_of("int32", [-1, 2, 5]))
    check.bits(value, tensor_of("int32", [-7, -3, 1]))


@clause("LANG-02.3-64")
def test_division_of_floats(impl, check):
    """Quotients of floats need not be whole."""
    source = returning("A / B", parameters_of("AB", "tensor<3xfp32>"), "tensor<3xfp32>")
    value = value_of(impl, check, source, A=tensor_of("fp32", [7, -7, 0.5]), B=tensor_of("fp32", [-1, 2, 4]))
    check.bits(value, tensor_of("fp32", [-7, -3.5, 0.125]))


@clause("LANG-02.3-64")
def test_division_of_an_integer_by_zero_is_refused(impl, check):
    """Dividing by zero ends the execution with an error (AMB-LANG-55); dividing by one does not."""
    source = returning("a / b", SCALARS, "int32")
    check.bits(value_of(impl, check, source, a=NINE, b=tensor_of("int32", 1)), NINE)
    observation = impl.language.execute(source=source, function="f", inputs={"a": NINE, "b": tensor_of("int32", 0)})
    check.rejects(observation, category=("numerics", "types", "shapes"), phase="execute")


@clause("LANG-02.3-65")
@pytest.mark.parametrize("dtype", ["int32", "fp32", "bf16"])
def test_the_at_sign_is_the_matrix_product(impl, check, dtype):
    """`A @ B` is the product of op.matmul, not an elementwise one (AMB-LANG-91)."""
    types = f"A: tensor<2x3x{dtype}>, B: tensor<3x2x{dtype}>"
    left, right = tensor_of(dtype, [[1, 2, 3], [4, 5, 6]]), tensor_of(dtype, [[1, 0], [0, 1], [2, 2]])
    product = tensor_of(dtype, [[7, 8], [16, 17]])
    for expression in ("A @ B", "op.matmul(A, B)"):
        check.bits(value_of(impl, check, returning(expression, types), A=left, B=right), product, expression)


@clause("LANG-02.3-41")
@pytest.mark.parametrize(
    "operator",
    [
        pytest.param("%", id="remainder"),
        pytest.param("**", id="power"),
        pytest.param("^", id="caret"),
        pytest.param("&", id="and"),
        pytest.param("|", id="or"),
        pytest.param("&&", id="logical-and"),
        pytest.param("||", id="logical-or"),
        pytest.param("<<", id="shift-left"),
        pytest.param(">>", id="shift-right"),
        pytest.param("<>", id="diamond"),
        pytest.param("===", id="three-equals-signs"),
        pytest.param("<=>", id="spaceship"),
        pytest.param("=", id="equals-sign"),
        pytest.param("=<", id="reversed"),
        pytest.param("!", id="exclamation-mark"),
        pytest.param("and", id="word-and"),
        pytest.param("in", id="word-in"),
        pytest.param("?", id="question-mark"),
        pytest.param("\\", id="backslash"),
        pytest.param("\u00d7", id="multiplication-sign"),
        pytest.param("\u2264", id="less-or-equal-sign"),
    ],
)
def test_another_operator_is_refused(impl, check, operator):
    """Only the eleven listed operators join two operands."""
    syntax_twins(impl, check, returning("a <= b", SCALARS), returning(f"a {operator} b", SCALARS))


@clause("LANG-02.3-41")
@pytest.mark.parametrize("operator", ["!", "~", "*", "/", "@"], ids=["not", "tilde", "star", "slash", "at-sign"])
def test_another_prefix_operator_is_refused(impl, check, operator):
    """Only plus and minus are prefix operators."""
    syntax_twins(impl, check, returning("-a", SCALARS), returning(f"{operator}a", SCALARS))


@clause("LANG-02.3-76")
def test_a_name_by_itself_is_an_expression(impl, check):
    """A parameter and a local variable are returned as they are."""
    outputs = evaluate(impl, check, program("let c: int32 = 5;", "return c, a;", parameters=SCALARS), a=NINE, b=FOUR)
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], tensor_of("int32", 5))
    check.bits(outputs[1], NINE)


@clause("LANG-02.3-77")
@pytest.mark.parametrize(
    ("expression", "value"),
    [("(a + b) * 2", 26), ("a - (b - 2)", 7), ("2 * (a - (b + 1))", 8), ("-(a + b)", -13), ("((a) - ((b)))", 5)],
    ids=["sum-first", "right-difference", "nested", "negated", "redundant"],
)
def test_parentheses_group(impl, check, expression, value):
    """An expression in parentheses is evaluated as one operand."""
    check.bits(value_of(impl, check, returning(expression, SCALARS), a=NINE, b=FOUR), tensor_of("int32", value))


@clause("LANG-02.3-77")
@pytest.mark.parametrize(
    "illegal",
    ["(a + b", "a + b)", "()", "(a + b))", "a + ()", "(a +) b"],
    ids=["open", "close", "empty", "extra-close", "empty-operand", "cut"],
)
def test_unbalanced_or_empty_parentheses_are_refused(impl, check, illegal):
    """Every parenthesis has its partner, with an expression between them."""
    syntax_twins(impl, check, returning("(a + b)", SCALARS), returning(illegal, SCALARS))
