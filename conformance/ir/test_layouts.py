"""Layouts of tensors (language spec, sections 2.3, 3.3, 5.3 and 15)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import (
    SYNTAX,
    accepts_if,
    graph_of,
    tensor_type,
    value_of,
    verified_twins,
)
from tessera_conformance.dsl import FIRST_STATEMENT, func, module, program, returning, tensor_of
from tessera_conformance.marks import clause, feature

LAYOUTS = [
    pytest.param("row_major", marks=clause("LANG-02.3-40"), id="row-major"),
    pytest.param("col_major", marks=clause("LANG-02.3-81"), id="col-major"),
    pytest.param("blocked(bm=2, bn=4)", marks=clause("LANG-02.3-82"), id="blocked"),
]


def spelled(layout, shape="4x8", dtype="bf16"):
    """A tensor type with a layout."""
    return f"tensor<{shape}x{dtype}; layout={layout}>"


def layout_of(check, text):
    """The layout in a lowered type, without blanks."""
    actual = tensor_type(text)
    check.true(actual is not None, f"{text} is a tensor type")
    return actual.layout


@clause("LANG-02.3-39", "LANG-02.3-56", "LANG-02.2-14")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_name_is_accepted(impl, check, layout):
    """The three layouts of the text are accepted on parameters, variables and results."""
    matrix = spelled(layout)
    check.accepts(
        impl.language.verify(
            source=program(f"let B: {matrix} = A;", "return B;", parameters=f"A: {matrix}", result=matrix)
        )
    )


@clause("LANG-03.3-01", "LANG-05.1-01", "LANG-05.3-03")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_kept_in_the_type(impl, check, layout):
    """Arguments and results of the lowered function state the layout of the program."""
    graph = graph_of(impl, check, returning("A", f"A: {spelled(layout)}", spelled(layout)))
    for text in (*graph.arguments, *graph.results):
        check.equal(layout_of(check, text), layout.replace(" ", ""), f"the layout of {text}")


@clause("LANG-05.1-01")
def test_the_layout_of_a_tensor_type_is_optional(impl, check):
    """A type without layout is the same type as one in row_major (AMB-LANG-67)."""
    check.accepts(impl.language.verify(source=returning("A", "A: tensor<4x8xbf16>", spelled("row_major"))))
    check.accepts(impl.language.verify(source=returning("A", f"A: {spelled('row_major')}", "tensor<4x8xbf16>")))


@clause("LANG-03.3-01")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_no_transposition(impl, check, layout):
    """A layout says how a tensor is stored; its elements stay where they are."""
    matrix = spelled(layout, "2x4", "int32")
    tensor = tensor_of("int32", [[1, 2, 3, 4], [5, 6, 7, 8]])
    check.bits(value_of(impl, check, returning("A", f"A: {matrix}", matrix), A=tensor), tensor)


LEFT, RIGHT = [[1, 2, 3], [40, 50, 60]], [[1, -1, 7, 0, 2], [2, 5, 0, -3, 1], [-4, 0, 11, 1, 6]]
MATRICES = {"A": tensor_of("int32", LEFT), "B": tensor_of("int32", RIGHT)}
PRODUCT = tensor_of("int32", [[-7, 9, 40, -3, 22], [-100, 210, 940, -90, 490]])


@clause("LANG-15-02", "LANG-15-03", "LANG-03.3-01")
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_a_product_reads_each_operand_in_its_own_layout(impl, check, left, right):
    """Three different extents, and numbers of which no two products are equal (AMB-LANG-67)."""
    parameters = f"A: {spelled(left, '2x3', 'int32')}, B: {spelled(right, '3x5', 'int32')}"
    source = returning("op.matmul(A, B)", parameters, spelled(left, "2x5", "int32"))
    check.bits(value_of(impl, check, source, **MATRICES), PRODUCT)


@feature("layout-casts")
@clause("LANG-03.3-02", "LANG-11-05")
@pytest.mark.parametrize("casts", ["A", "B", "AB"], ids=["left", "right", "both"])
def test_a_product_of_cast_operands_is_that_of_the_operands(impl, check, casts):
    """Cast to col_major and read there, not cast back: every element stays in its row and column (AMB-LANG-157)."""
    a, b = (f"op.layout_cast({name}) @{{to=col_major}}" if name in casts else name for name in "AB")
    parameters = f"A: {spelled('row_major', '2x3', 'int32')}, B: {spelled('row_major', '3x5', 'int32')}"
    result = spelled("col_major" if "A" in casts else "row_major", "2x5", "int32")
    check.bits(value_of(impl, check, returning(f"op.matmul({a}, {b})", parameters, result), **MATRICES), PRODUCT)


@clause("LANG-03.3-01", "LANG-03.3-02", "LANG-11-05")
@pytest.mark.parametrize(
    ("given", "wanted"),
    [("row_major", "col_major"), ("col_major", "row_major"), ("blocked(bm=2, bn=4)", "blocked(bm=4, bn=2)")],
    ids=["row-to-col", "col-to-row", "block-sizes"],
)
def test_a_layout_does_not_change_silently(impl, check, given, wanted):
    """A tensor in one layout is refused where another is declared: variable, argument and result."""
    parameters = f"A: {spelled(given)}"

    def sources(layout):
        matrix = spelled(layout)
        helper = func("return X;", parameters=f"X: {matrix}", result=matrix, name="helper")
        yield FIRST_STATEMENT, program(f"let B: {matrix} = A;", parameters=parameters)
        yield FIRST_STATEMENT + 3, module(helper, func("return helper(A);", parameters=parameters))
        yield FIRST_STATEMENT, returning("A", parameters, matrix)

    for (line, legal), (_, illegal) in zip(sources(given), sources(wanted), strict=True):
        verified_twins(impl, check, legal, illegal, ("layouts", "types"), at_line=line)


@clause("LANG-02.3-39")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        pytest.param("layout=row_major", "layout=", id="name"),
        pytest.param("layout=row_major", "layout row_major", id="equals-sign"),
        pytest.param("layout=row_major", 'layout="row_major"', id="string"),
        pytest.param("layout=row_major", "layout=1", id="number"),
        pytest.param("layout=row_major", "layouts=row_major", id="other-word"),
        pytest.param("layout=blocked(bm=2, bn=4)", "layout=blocked(bm=2, bn=4", id="open-parenthesis"),
        pytest.param("layout=blocked(bm=2, bn=4)", "layout=blocked(bm=2 bn=4)", id="no-comma"),
        pytest.param("layout=blocked(bm=2, bn=4)", "layout=blocked(bm=2, bn=)", id="no-value"),
        pytest.param("layout=blocked(bm=2, bn=4)", "layout=blocked[bm=2, bn=4]", id="brackets"),
    ],
)
def test_a_layout_is_a_name_with_optional_parameters(impl, check, legal, illegal):
    """An identifier, and where wanted parameters `name = integer` in parentheses (AMB-LANG-24)."""
    check.accepts(impl.language.parse(source=program(parameters=f"A: tensor<4x8xbf16; {legal}>")))
    check.rejects(impl.language.parse(source=program(parameters=f"A: tensor<4x8xbf16; {illegal}>")), **SYNTAX)


@clause("LANG-15-03", "LANG-03.3-01")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_product_has_the_layout_of_its_left_operand(impl, check, layout):
    """The product of two tensors in one layout is in that layout, inferred and lowered (AMB-LANG-67)."""
    parameters = f"A: {spelled(layout, '8x8')}, B: {spelled(layout, '8x8')}"
    graph = graph_of(impl, check, returning("op.matmul(A, B)", parameters))
    (product,) = graph.named("tessera.graph.matmul") or [None]
    check.true(product is not None, "the product is one tessera.graph.matmul")
    for text in (*product["result_types"], *graph.results):
        check.equal(layout_of(check, text), layout.replace(" ", ""), f"the layout of {text}")


@clause("LANG-15-03")
@pytest.mark.parametrize(
    ("left", "right"),
    [("row_major", "col_major"), ("col_major", "row_major"), ("blocked(bm=2, bn=4)", "row_major")],
    ids=["row-col", "col-row", "blocked-row"],
)
def test_the_right_operand_does_not_decide_the_layout_of_a_product(impl, check, left, right):
    """With operands in two castable layouts the left one's is the result's; declaring the right one's is refused."""
    parameters = f"A: {spelled(left, '8x8')}, B: {spelled(right, '8x8')}"
    check.accepts(impl.language.verify(source=returning("op.matmul(A, B)", parameters, spelled(left, "8x8"))))
    check.rejects(
        impl.language.verify(source=returning("op.matmul(A, B)", parameters, spelled(right, "8x8"))),
        category=("layouts", "types"),
        at_line=3,
    )


@clause("LANG-15-02")
def test_a_product_over_a_layout_without_cast_is_refused(impl, check):
    """A layout that is not one of the castable three makes the product illegal (AMB-LANG-67)."""
    for layout, legal in (("col_major", True), ("swizzled", False)):
        observation = impl.language.verify(
            source=returning("op.matmul(A, B)", f"A: {spelled('row_major', '8x8')}, B: {spelled(layout, '8x8')}")
        )
        accepts_if(check, legal, observation, category=("layouts", "types"))
