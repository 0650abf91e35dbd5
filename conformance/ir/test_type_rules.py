"""Every expression has a type, and types are not converted silently (language spec, sections 3.1, 5 and 11)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, graph_of, value_of, verified_twins
from tessera_conformance.dsl import FIRST_STATEMENT, func, module, parameters_of, program, returning, tensor_of
from tessera_conformance.marks import clause, title

NAMES = ("types", "syntax")
HELPER = func("return a + 1;", parameters="a: int32", result="int32", name="helper")
BEHIND_HELPER = FIRST_STATEMENT + HELPER.count("\n") + 1
"""The line of the first statement of a func behind it."""


@clause("LANG-03.1-01")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("return a;", "return b;", id="unknown-name"),
        pytest.param("let b: int32 = a + 1;", "let b: int32 = a + c;", id="unknown-operand"),
        pytest.param("return helper(a);", "return helped(a);", id="unknown-function"),
        pytest.param("return op.softmax(x);", "return op.softmin(x);", id="unknown-operator"),
        pytest.param("let b: int32 = a;", "let b: int32 = b;", id="itself"),
        pytest.param("let b: int32 = a; let c: int32 = b;", "let c: int32 = b; let b: int32 = a;", id="used-before"),
        pytest.param("let f: int32 = a; return f;", "return f;", id="function-as-value"),
        pytest.param("return helper(a);", "return a(a);", id="value-as-function"),
    ],
)
def test_a_name_without_meaning_is_refused(impl, check, legal, illegal):
    """An unknown name, function or operator gives an expression no type; its twin is declared."""
    parameters = "a: int32, x: tensor<4xfp32>"
    check.accepts(impl.language.verify(source=module(HELPER, func(legal, parameters=parameters))))
    check.rejects(
        impl.language.verify(source=module(HELPER, func(illegal, parameters=parameters))),
        category=NAMES,
        at_line=BEHIND_HELPER,
    )


@clause("LANG-03.1-01")
def test_a_name_ends_with_its_function(impl, check):
    """A local variable of one func is unknown in the next (AMB-LANG-92); with a variable of its own that is legal."""
    first = func("let b: int32 = 1;", name="first")
    check.accepts(impl.language.verify(source=module(first, func("let b: int32 = 2;", "return b;"))))
    check.rejects(impl.language.verify(source=module(first, func("let c: int32 = 2;", "return b;"))), category=NAMES)


@clause("LANG-03.1-01")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param(
            func("let a: int32 = 1;", "let b: int32 = 2;"),
            func("let a: int32 = 1;", "let a: int32 = 2;"),
            id="locals",
        ),
        pytest.param(func(parameters="a: int32, b: int32"), func(parameters="a: int32, a: int32"), id="parameters"),
        pytest.param(
            func() + "\n" + func(name="g"), func() + "\n" + func(), id="functions", marks=clause("LANG-05-03")
        ),
    ],
)
def test_a_name_declared_twice_is_refused(impl, check, legal, illegal):
    """Two declarations of a name in one scope are refused (AMB-LANG-86)."""
    verified_twins(impl, check, module(legal), module(illegal), NAMES)


@clause("LANG-05-03")
def test_each_module_has_its_own_functions(impl, check):
    """A call means the function of its own module, also where another module has one of that name."""
    source = module(
        func("return a + 1;", parameters="a: int32", result="int32", name="step"),
        func("return step(a);", parameters="a: int32", result="int32", name="up"),
        name="first",
    ) + module(
        func("return a - 1;", parameters="a: int32", result="int32", name="step"),
        func("return step(a);", parameters="a: int32", result="int32", name="down"),
        name="second",
    )
    check.bits(value_of(impl, check, source, "up", a=tensor_of("int32", 5)), tensor_of("int32", 6))
    check.bits(value_of(impl, check, source, "down", a=tensor_of("int32", 5)), tensor_of("int32", 4))


@clause("LANG-05-03")
def test_a_function_is_found_by_the_name_of_its_module(impl, check):
    """`module.function` tells functions of one name apart (AMB-LANG-131)."""
    signs = {"first": "+", "second": "-", "third": "*"}
    source = "".join(
        module(func(f"return a {sign} 2;", parameters="a: int32", result="int32"), name=name)
        for name, sign in signs.items()
    )
    for name, number in (("first", 7), ("second", 3), ("third", 10)):
        check.bits(value_of(impl, check, source, f"{name}.f", a=tensor_of("int32", 5)), tensor_of("int32", number))


@clause("LANG-05-03")
def test_a_function_of_another_module_is_unknown(impl, check):
    """The same call is legal in the function's own module and refused in the next."""
    caller = func("return helper(a);", parameters="a: int32", result="int32")
    verified_twins(
        impl, check, module(HELPER, caller), module(HELPER, name="first") + module(caller, name="second"), NAMES
    )


@clause("LANG-03.1-03")
@pytest.mark.parametrize(
    "shape", ["?x3", "2x?", "?x?", "Nx3", "NxM"], ids=["rows", "columns", "both", "named", "names"]
)
def test_an_unknown_dimension_is_accepted(impl, check, shape):
    """A program over unknown dimensions is legal, lowers to Graph IR, and runs on any size (AMB-LANG-08)."""
    matrix = f"tensor<{shape}xint32>"
    source = program(f"let B: {matrix} = A + A;", "return B;", parameters=f"A: {matrix}", result=matrix)
    check.accepts(impl.language.verify(source=source))
    graph_of(impl, check, source)
    value = value_of(impl, check, source, A=tensor_of("int32", [[1, 2, 3], [4, 5, 6]]))
    check.bits(value, tensor_of("int32", [[2, 4, 6], [8, 10, 12]]))


@clause("LANG-03.1-03", "LANG-02.3-19")
@pytest.mark.parametrize("shape", ["?x3", "2x?", "?x?"], ids=["rows", "columns", "both"])
def test_a_variable_of_an_unknown_dimension_is_assigned(impl, check, shape):
    """The first value, and another one, of a variable whose type leaves a dimension open."""
    body = [f"let B: tensor<{shape}xint32>;", "B = A;", "B = B + A;", "return B;"]
    value = value_of(
        impl, check, program(*body, parameters="A: tensor<2x3xint32>"), A=tensor_of("int32", [[1, 2, 3], [4, 5, 6]])
    )
    check.bits(value, tensor_of("int32", [[2, 4, 6], [8, 10, 12]]))


@clause("LANG-03.1-03")
def test_a_function_over_an_unknown_dimension_runs_on_every_size(impl, check):
    """One program with an unknown dimension runs on three sizes."""
    source = returning("A + 1", "A: tensor<?xint32>", "tensor<?xint32>")
    for values in ([1], [1, 2], [1, 2, 3, 4, 5]):
        value = value_of(impl, check, source, A=tensor_of("int32", values))
        check.bits(value, tensor_of("int32", [number + 1 for number in values]), f"the result for {len(values)}")


@clause("LANG-03.1-03")
@pytest.mark.parametrize(
    ("types", "fitting", "unfitting"),
    [
        pytest.param(("N", "N"), ([1, 2], [3, 4]), ([1, 2], [3, 4, 5]), id="two-parameters"),
        pytest.param(("NxN", "N"), ([[1, 2], [3, 4]], [5, 6]), ([[1, 2], [3, 4]], [5]), id="three-places"),
        pytest.param(("NxN", "M"), ([[1]], [5, 6]), ([[1, 2]], [5, 6]), id="one-parameter"),
    ],
)
def test_equal_names_of_dimensions_are_equal_sizes(impl, check, types, fitting, unfitting):
    """Arguments that give one name two sizes are refused, whatever is done with them (AMB-LANG-08)."""
    first, second = types
    source = program("return A, B;", parameters=f"A: tensor<{first}xint32>, B: tensor<{second}xint32>")
    left, right = (tensor_of("int32", values) for values in fitting)
    outputs = evaluate(impl, check, source, A=left, B=right)
    check.equal(len(outputs), 2, "the number of returned values")
    left, right = (tensor_of("int32", values) for values in unfitting)
    observation = impl.language.execute(source=source, function="f", inputs={"A": left, "B": right})
    check.rejects(observation, category=("shapes", "types"))


@clause("LANG-03.1-05")
@pytest.mark.parametrize(
    ("parameters", "mixed"),
    [
        ("a: fp32, b: fp32", "a: fp32, b: bf16"),
        ("a: fp32, b: fp32", "a: fp32, b: fp64"),
        ("a: bf16, b: bf16", "a: bf16, b: fp16"),
        ("a: int32, b: int32", "a: int32, b: int64"),
        ("a: int32, b: int32", "a: int8, b: int32"),
        ("a: fp32, b: fp32", "a: int32, b: fp32"),
        ("a: int32, b: int32", "a: bool, b: int32"),
    ],
    ids=["bf16", "fp64", "fp16-bf16", "int64", "int8", "int32-fp32", "bool"],
)
@pytest.mark.parametrize("operator", ["+", "*", "==", "<"], ids=["plus", "times", "eq", "lt"])
def test_operands_of_two_dtypes_are_refused(impl, check, parameters, mixed, operator):
    """Both operands of an operator have one dtype (AMB-LANG-89); no wider type is chosen for them."""
    check.accepts(impl.language.verify(source=returning(f"a {operator} b", parameters)))
    check.rejects(
        impl.language.verify(source=returning(f"a {operator} b", mixed)), category="types", at_line=FIRST_STATEMENT
    )


@clause("LANG-03.1-05")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("let c: bf16 = b;", "let c: fp32 = b;", id="wider-variable"),
        pytest.param("let c: fp32 = a;", "let c: bf16 = a;", id="narrower-variable"),
        pytest.param("let c: int32 = i;", "let c: fp32 = i;", id="integer-to-float"),
        pytest.param("let c: int32 = i;", "let c: int64 = i;", id="wider-integer"),
        pytest.param("let c: bool = i == i;", "let c: int32 = i == i;", id="bool-to-integer"),
        pytest.param("let c: int32 = 1;", "let c: int32 = 1.5;", id="float-literal-for-integer"),
        pytest.param(
            "let c: int32 = 1;",
            "let c: int32 = 1.0;",
            id="whole-float-literal-for-integer",
            marks=title("A float literal is no integer, whatever its value is (AMB-LANG-87)."),
        ),
        pytest.param("let c: int32 = i + 1;", "let c: int32 = i + 1.5;", id="float-literal-beside-integer"),
        pytest.param("let c: int32 = 1;", "let c: int32 = true;", id="truth-for-integer"),
        pytest.param("let c: bool = true;", "let c: bool = 1;", id="integer-for-truth"),
        pytest.param("helper(i);", "helper(a);", id="argument"),
        pytest.param("let c: tensor<2xfp32> = x;", "let c: tensor<2xfp32> = y;", id="tensor"),
    ],
)
def test_no_value_is_converted_to_the_declared_type(impl, check, legal, illegal):
    """A value of another dtype than its place declares is refused; a literal alone takes the type of its place."""
    parameters = "a: fp32, b: bf16, i: int32, x: tensor<2xfp32>, y: tensor<2xbf16>"
    check.accepts(impl.language.verify(source=module(HELPER, func(legal, parameters=parameters))))
    check.rejects(
        impl.language.verify(source=module(HELPER, func(illegal, parameters=parameters))),
        category="types",
        at_line=BEHIND_HELPER,
    )


@clause("LANG-03.1-05")
@pytest.mark.parametrize("dtype", ["bf16", "fp64", "fp16", "int32"])
def test_no_value_is_converted_to_the_result_type(impl, check, dtype):
    """A func that promises fp32 and returns another dtype is refused."""
    verified_twins(impl, check, returning("a", "a: fp32", "fp32"), returning("a", f"a: {dtype}", "fp32"), "types")


@clause("LANG-03.1-05", "LANG-11-01")
@pytest.mark.parametrize(
    ("left", "right"),
    [("bf16", "fp32"), ("fp32", "bf16"), ("fp16", "bf16"), ("fp8_e4m3", "fp8_e5m2"), ("int8", "int32")],
)
def test_a_product_of_two_dtypes_is_refused(impl, check, left, right):
    """Operands of a matrix product have one dtype; the fp32 accumulator is no reason to mix them."""
    check.accepts(impl.language.verify(source=returning("op.matmul(A, B)", parameters_of("AB", f"tensor<2x2x{left}>"))))
    check.rejects(
        impl.language.verify(source=returning("op.matmul(A, B)", f"A: tensor<2x2x{left}>, B: tensor<2x2x{right}>")),
        category="types",
        at_line=FIRST_STATEMENT,
    )


@clause("LANG-03.1-05")
def test_inputs_are_not_converted(impl, check):
    """An argument of another dtype than its parameter's is refused when the function is executed."""
    source = returning("A", "A: tensor<2xfp32>", "tensor<2xfp32>")
    tensor = tensor_of("fp32", [1, 2])
    check.bits(value_of(impl, check, source, A=tensor), tensor)
    observation = impl.language.execute(source=source, function="f", inputs={"A": tensor_of("fp64", [1, 2])})
    check.rejects(observation, category="types")


@clause("LANG-03.1-06", "LANG-15-05")
def test_bf16_operands_accumulate_in_fp32_without_a_cast(impl, check):
    """256 and eight ones sum to 264 in bf16 operands: a bf16 accumulator would lose the ones."""
    types = "A: tensor<1x9xbf16>, B: tensor<9x1xbf16>"
    ones = tensor_of("bf16", [[1]] * 9)
    for row in ([256] + [1] * 8, [1] * 4 + [256] + [1] * 4):
        value = value_of(
            impl, check, returning("op.matmul(A, B)", types, "tensor<1x1xbf16>"), A=tensor_of("bf16", [row]), B=ones
        )
        check.bits(value, tensor_of("bf16", [[264]]))


@clause("LANG-11-01")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("op.matmul(A, B)", "op.matmul(A)", id="one-operand-missing"),
        pytest.param("op.matmul(A, B)", "op.matmul()", id="no-operands"),
        pytest.param("op.matmul(A, B)", "op.matmul(A, B, A)", id="one-operand-too-many"),
        pytest.param("op.matmul(A, B)", "op.matmul(A, a)", id="scalar-operand"),
        pytest.param("A @ B", "A @ a", id="scalar-in-product"),
        pytest.param("A @ B", "a @ a", id="product-of-scalars"),
        pytest.param("op.softmax(A)", "op.softmax(A, B)", id="softmax-of-two"),
        pytest.param("op.softmax(A)", "op.softmax()", id="softmax-of-none"),
        pytest.param("op.softmax(A)", "op.softmax(true)", id="softmax-of-truth"),
        pytest.param("helper(1)", "helper()", id="argument-missing"),
        pytest.param("helper(1)", "helper(1, 2)", id="argument-too-many"),
        pytest.param("helper(1)", "helper(A)", id="tensor-for-scalar"),
    ],
)
def test_operands_that_an_operation_does_not_take_are_refused(impl, check, legal, illegal):
    """Too few or too many operands, and operands of the wrong kind, are refused at their place."""
    parameters = "A: tensor<2x2xfp32>, B: tensor<2x2xfp32>, a: fp32"
    check.accepts(impl.language.verify(source=module(HELPER, func(f"return {legal};", parameters=parameters))))
    check.rejects(
        impl.language.verify(source=module(HELPER, func(f"return {illegal};", parameters=parameters))),
        category=("types", "shapes"),
        at_line=BEHIND_HELPER,
    )
