"""Dimension contracts and the absence of undeclared broadcasting (language spec, sections 3.2, 5.4, 11 and 15)."""

from fractions import Fraction

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of, verified_twins
from tessera_conformance.dsl import (
    FIRST_STATEMENT,
    func,
    module,
    parameters_of,
    program,
    returning,
    tensor_of,
    type_text,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import Tensor


def matrices(left, right, dtype="fp32"):
    """Parameters A and B of two shapes."""
    return f"A: tensor<{left}x{dtype}>, B: tensor<{right}x{dtype}>"


@clause("LANG-05.4-01", "LANG-03.2-01", "LANG-11-03", "LANG-15-01")
@pytest.mark.parametrize(
    ("left", "right", "wrong"),
    [
        ("2x3", "3x4", "4x3"),
        ("4x4", "4x4", "5x4"),
        ("1x128", "128x1", "127x1"),
        ("2x1", "1x2", "3x2"),
        ("2x3", "3x4", "1x4"),
        ("5x2x3", "5x3x4", "5x4x3"),
        ("MxK", "KxN", "NxK"),
    ],
    ids=["transposed", "square", "off-by-one", "one-and-three", "three-and-one", "batched", "named"],
)
@pytest.mark.parametrize("product", ["op.matmul(A, B)", "A @ B"], ids=["matmul", "at-sign"])
def test_a_matmul_of_unequal_inner_dimensions_is_refused(impl, check, left, right, wrong, product):
    """The last dimension of the left operand equals the second-to-last of the right one; ones are not stretched.

    Dimensions are compared where they are declared (AMB-LANG-10).
    """
    check.accepts(impl.language.verify(source=returning(product, matrices(left, right))))
    check.rejects(
        impl.language.verify(source=returning(product, matrices(left, wrong))),
        category="shapes",
        at_line=FIRST_STATEMENT,
    )


@clause("LANG-05.4-01", "LANG-15-01")
def test_unequal_inner_dimensions_that_are_known_late_are_refused(impl, check):
    """Unknown dimensions are compared when the function runs, if they were accepted before."""
    source = returning("op.matmul(A, B)", matrices("2xK", "Kx2", "int32"))
    left, right = tensor_of("int32", [[1, 2], [3, 4]]), tensor_of("int32", [[1, 0], [0, 1]])
    check.bits(value_of(impl, check, source, A=left, B=right), left)
    wrong = tensor_of("int32", [[1, 0], [0, 1], [1, 1]])
    check.rejects(
        impl.language.execute(source=source, function="f", inputs={"A": left, "B": wrong}), category=("shapes", "types")
    )


@clause("LANG-03.2-01", "LANG-11-03")
@pytest.mark.parametrize(
    "operator", ["+", "-", "*", "/", "==", "<"], ids=["plus", "minus", "times", "over", "eq", "lt"]
)
@pytest.mark.parametrize(
    ("right", "wrong"), [("2x3", "2x4"), ("2x3", "3x2"), ("2x3", "2x2")], ids=["2x4", "3x2", "2x2"]
)
def test_an_elementwise_operator_on_shapes_that_do_not_fit_is_refused(impl, check, operator, right, wrong):
    """Shapes that no broadcasting makes equal are refused; equal shapes are accepted."""
    check.accepts(impl.language.verify(source=returning(f"A {operator} B", matrices("2x3", right))))
    check.rejects(
        impl.language.verify(source=returning(f"A {operator} B", matrices("2x3", wrong))),
        category="shapes",
        at_line=FIRST_STATEMENT,
    )


@clause("LANG-03.2-03", "LANG-11-04")
@pytest.mark.parametrize(
    ("left", "right", "wrong"),
    [
        ("3x2x2", "3x2x2", "1x2x2"),
        ("1x2x2", "1x2x2", "3x2x2"),
        ("3x2x2", "3x2x2", "2x2"),
        ("2x2", "2x2", "3x2x2"),
        ("4x3x2x2", "4x3x2x2", "4x1x2x2"),
    ],
    ids=["right-one", "left-one", "right-missing", "left-missing", "inner-one"],
)
def test_matmul_does_not_broadcast_batch_dimensions(impl, check, left, right, wrong):
    """Batch dimensions are equal (AMB-LANG-42): matmul declares no broadcasting."""
    check.accepts(impl.language.verify(source=returning("op.matmul(A, B)", matrices(left, right))))
    check.rejects(
        impl.language.verify(source=returning("op.matmul(A, B)", matrices(left, wrong))),
        category=("shapes", "types"),
        at_line=FIRST_STATEMENT,
    )


@clause("LANG-03.2-03", "LANG-11-04")
@pytest.mark.parametrize("given", ["1x3", "2x1", "3", "1x1"])
def test_declarations_and_calls_do_not_broadcast(impl, check, given):
    """A tensor that NumPy would stretch to 2x3 is refused as a variable, an argument and a result of that type."""
    expected = "tensor<2x3xint32>"
    helper = func("return A;", parameters=f"A: {expected}", result=expected, name="helper")

    def sources(shape):
        parameters = f"A: tensor<{shape}xint32>"
        yield module(func(f"let B: {expected} = A;", parameters=parameters))
        yield module(func("return A;", parameters=parameters, result=expected))
        yield module(helper, func("helper(A);", parameters=parameters))

    lines = (FIRST_STATEMENT, FIRST_STATEMENT, FIRST_STATEMENT + helper.count("\n") + 1)
    for line, legal, illegal in zip(lines, sources("2x3"), sources(given), strict=True):
        verified_twins(impl, check, legal, illegal, ("shapes", "types"), at_line=line)


@clause("LANG-03.2-03")
def test_inputs_are_not_broadcast(impl, check):
    """An argument of shape 1x2 for a parameter of shape 2x2 is refused when the function is executed."""
    source = returning("A", "A: tensor<2x2xint32>", "tensor<2x2xint32>")
    whole, row = tensor_of("int32", [[1, 2], [3, 4]]), tensor_of("int32", [[1, 2]])
    check.bits(value_of(impl, check, source, A=whole), whole)
    check.rejects(impl.language.execute(source=source, function="f", inputs={"A": row}), category=("shapes", "types"))


@clause("LANG-05.4-02", "LANG-05.2-03")
@pytest.mark.parametrize(
    ("shape", "legal", "illegal"),
    [("4", [0, -1], [1, -2, 7]), ("2x3", [0, 1, -1, -2], [2, -3]), ("2x3x4", [0, 2, -3], [3, -4, 100, -100])],
    ids=["vector", "matrix", "rank-3"],
)
@pytest.mark.parametrize("form", ["op.softmax(A, axis={})", "op.softmax(A) @[axis={}]"], ids=["keyword", "attribute"])
def test_a_softmax_axis_out_of_range_is_refused(impl, check, shape, legal, illegal, form):
    """The axis runs from -rank to rank - 1 (AMB-LANG-37), however it is written (AMB-LANG-100)."""

    def verified(axis):
        expression = form.format(axis).replace("[", "{").replace("]", "}")
        return impl.language.verify(source=returning(expression, f"A: tensor<{shape}xfp32>", f"tensor<{shape}xfp32>"))

    for axis in legal:
        check.accepts(verified(axis), f"axis {axis} is legal")
    for axis in illegal:
        check.rejects(verified(axis), category="shapes", at_line=FIRST_STATEMENT)


@clause("LANG-05.2-03")
@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
def test_softmax_has_the_type_of_its_operand(impl, check, dtype):
    """Shape and dtype are those of the operand (AMB-LANG-75); another is refused."""
    operand = f"tensor<2x3x{dtype}>"
    other = "fp32" if dtype != "fp32" else "fp64"
    check.accepts(impl.language.verify(source=returning("op.softmax(A)", f"A: {operand}", operand)))
    for wrong in (f"tensor<2x3x{other}>", f"tensor<2x1x{dtype}>", f"tensor<2x{dtype}>"):
        check.rejects(
            impl.language.verify(source=returning("op.softmax(A)", f"A: {operand}", wrong)),
            category=("types", "shapes"),
        )


@clause("LANG-05.2-03")
def test_softmax_of_equal_elements_divides_one_evenly(impl, check):
    """Four equal elements give quarters, to the last place at most; the default axis is the last (AMB-LANG-37)."""
    source = returning("op.softmax(A)", "A: tensor<2x4xfp32>")
    value = value_of(impl, check, source, A=tensor_of("fp32", [[0, 0, 0, 0], [3, 3, 3, 3]]))
    check.equal((value.dtype, value.shape), ("fp32", (2, 4)), "dtype and shape")
    check.within(value, [Fraction(1, 4)] * 8, [Fraction(1, 1 << 23)] * 8, "the quarters")


@clause("LANG-05.2-02", "LANG-15-15")
@pytest.mark.parametrize(
    "dtype", ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int64", "int32", "int16", "int8"]
)
def test_a_matmul_maps_mxk_and_kxn_to_mxn_of_one_dtype(impl, check, dtype):
    """2x3 by 3x1 gives 2x1 of the operands' dtype; other shapes and dtypes of the result are refused."""
    parameters = matrices("2x3", "3x1", dtype)
    source = returning("op.matmul(A, B)", parameters, f"tensor<2x1x{dtype}>")
    left, right = tensor_of(dtype, [[1, 2, 3], [0, -1, 1]]), tensor_of(dtype, [[1], [1], [-1]])
    check.bits(value_of(impl, check, source, A=left, B=right), tensor_of(dtype, [[0], [-2]]))
    other = "fp64" if dtype != "fp64" else "fp32"
    for wrong in (f"tensor<1x2x{dtype}>", f"tensor<2x3x{dtype}>", f"tensor<2x1x{other}>"):
        check.rejects(
            impl.language.verify(source=returning("op.matmul(A, B)", parameters, wrong)), category=("types", "shapes")
        )


@clause("LANG-03.2-01")
def test_a_matmul_of_vectors_is_refused(impl, check):
    """Operands of a matrix product have two dimensions or more."""
    check.accepts(impl.language.verify(source=returning("op.matmul(A, B)", matrices("1x4", "4x1"))))
    for left, right in (("4", "4"), ("4", "4x1"), ("1x4", "4")):
        check.rejects(
            impl.language.verify(source=returning("op.matmul(A, B)", matrices(left, right))),
            category=("shapes", "types"),
            at_line=FIRST_STATEMENT,
        )


@clause("LANG-03.2-01")
def test_shapes_are_followed_through_a_program(impl, check):
    """A wrong dimension is found where it is used, three statements after it arose."""
    parameters = matrices("2x3", "3x4") + ", " + parameters_of("CD", "tensor<4x2xfp32>")
    statements = [
        "let P: tensor<2x4xfp32> = A @ B;",
        "let Q: tensor<2x2xfp32> = P @ C;",
        "let R: tensor<2x2xfp32> = Q;",
    ]
    check.accepts(impl.language.verify(source=program(*statements, "return R @ Q;", parameters=parameters)))
    check.rejects(
        impl.language.verify(source=program(*statements, "return R @ D;", parameters=parameters)),
        category="shapes",
        at_line=FIRST_STATEMENT + 3,
    )


@clause("LANG-03.2-02")
@pytest.mark.parametrize(
    ("shape", "values", "total"),
    [
        pytest.param("3", [10, 20, 30], [[11, 22, 33], [14, 25, 36]], id="row"),
        pytest.param("1x3", [[10, 20, 30]], [[11, 22, 33], [14, 25, 36]], id="one-row"),
        pytest.param("2x1", [[10], [20]], [[11, 12, 13], [24, 25, 26]], id="one-column"),
        pytest.param("1x1", [[10]], [[11, 12, 13], [14, 15, 16]], id="one-element"),
    ],
)
def test_an_elementwise_operator_may_broadcast(impl, check, shape, values, total):
    """Missing dimensions and ones are stretched, on either side, if broadcasting is claimed (AMB-LANG-55)."""
    left, right = tensor_of("int32", [[1, 2, 3], [4, 5, 6]]), tensor_of("int32", values)
    for expression in ("A + B", "B + A"):
        source = returning(expression, matrices("2x3", shape, "int32"), "tensor<2x3xint32>")
        check.bits(value_of(impl, check, source, A=left, B=right), tensor_of("int32", total), expression)


@clause("LANG-03.2-02", "LANG-03.2-01")
@feature("zero-sizes")
@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int64", "int32", "int8"])
@pytest.mark.parametrize("shape", ["0", "0x3", "2x0", "1x0x4"])
def test_a_tensor_without_elements_stays_without(impl, check, shape, dtype):
    """Operators on it and a scalar, or on it alone, have a result without elements (AMB-LANG-113)."""
    extents = tuple(map(int, shape.split("x")))
    empty = Tensor(dtype, extents, b"")
    for expression, result in (("E + s", dtype), ("s * E", dtype), ("E - E", dtype), ("E < s", "bool")):
        source = returning(expression, f"E: {type_text(dtype, extents)}, s: {dtype}", type_text(result, extents))
        actual = value_of(impl, check, source, E=empty, s=tensor_of(dtype, 2))
        check.bits(actual, Tensor(result, extents, b""), expression)
