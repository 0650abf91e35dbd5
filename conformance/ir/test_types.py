"""Scalar and tensor types (language spec, sections 2.2, 2.3 and 5.1)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, graph_of, tensor_type, value_of
from tessera_conformance.dsl import DTYPES, program, returning, tensor_of
from tessera_conformance.marks import clause
from tessera_conformance.tensors import Tensor

CORNERS = {
    "fp64": [0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x7FEFFFFFFFFFFFFF, 0xFFF0000000000000],
    "fp32": [0x00000000, 0x80000000, 0x00000001, 0x7F7FFFFF, 0xFF800000],
    "tf32": [0x00000000, 0x80000000, 0x00800000, 0x7F7FE000, 0xFF800000],
    "bf16": [0x0000, 0x8000, 0x0001, 0x7F7F, 0xFF80],
    "fp16": [0x0000, 0x8000, 0x0001, 0x7BFF, 0xFC00],
    "fp8_e4m3": [0x00, 0x80, 0x01, 0x7E, 0xFE],
    "fp8_e5m2": [0x00, 0x80, 0x01, 0x7B, 0xFC],
    "int64": [0, 1, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF],
    "int32": [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF],
    "int16": [0, 1, 0x7FFF, 0x8000, 0xFFFF],
    "int8": [0, 1, 0x7F, 0x80, 0xFF],
    "bool": [0, 1, 1, 0, 0],
}
"""Storage codes at the edges of each format: zeros, the smallest and largest value, an infinity where there is one."""

NAMED = [pytest.param(dtype, marks=clause(f"LANG-02.2-{number:02}")) for number, dtype in enumerate(DTYPES, start=1)]


@pytest.mark.parametrize("dtype", NAMED)
def test_a_dtype_is_accepted_as_element_type(impl, check, dtype):
    """A func that returns its tensor keeps every bit of it, at the edges of the format too."""
    source = returning("A", f"A: tensor<5x{dtype}>", f"tensor<5x{dtype}>")
    tensor = Tensor.from_words(dtype, [5], CORNERS[dtype])
    check.bits(value_of(impl, check, source, A=tensor), tensor)


@clause("LANG-02.3-78")
@pytest.mark.parametrize("dtype", NAMED)
def test_a_dtype_is_accepted_as_scalar_type(impl, check, dtype):
    """A dtype name alone is the type of a scalar: parameter, local variable and result (AMB-LANG-23)."""
    source = program(f"let b: {dtype} = a;", "return b;", parameters=f"a: {dtype}", result=dtype)
    for word in CORNERS[dtype]:
        scalar = Tensor.from_words(dtype, [], [word])
        check.bits(value_of(impl, check, source, a=scalar), scalar)


@clause("LANG-02.3-78", "LANG-02.3-38")
@pytest.mark.parametrize("name", ["fp33", "pf32", "int31", "no_dtype"])
def test_an_unknown_dtype_is_refused(impl, check, name):
    """A name that is no dtype anywhere is refused, as scalar and as element type; further dtypes are free to exist."""
    for form in ("{}", "tensor<4x{}>"):
        check.accepts(impl.language.verify(source=program(parameters=f"a: {form.format('fp32')}")))
        check.rejects(
            impl.language.verify(source=program(parameters=f"a: {form.format(name)}")),
            category=("types", "syntax"),
            at_line=2,
        )


SPELLINGS = [
    pytest.param("tensor<4xfp32>", ["4"], "fp32", id="vector"),
    pytest.param("tensor<2x3xbf16>", ["2", "3"], "bf16", id="matrix"),
    pytest.param("tensor<128x64xbf16>", ["128", "64"], "bf16", id="example-of-the-text"),
    pytest.param("tensor<1x2x3x4x5xint8>", ["1", "2", "3", "4", "5"], "int8", id="five-dimensions"),
    pytest.param("tensor< 2 x 3 x fp16 >", ["2", "3"], "fp16", id="blanks"),
    pytest.param("tensor<2 x3x fp64>", ["2", "3"], "fp64", id="some-blanks"),
    pytest.param("tensor\n<2\nx\n3\nxint32>", ["2", "3"], "int32", id="lines"),
    pytest.param("tensor<2/* rows */x3xint32>", ["2", "3"], "int32", id="comment"),
    pytest.param("tensor<1024x1xfp8_e4m3>", ["1024", "1"], "fp8_e4m3", id="fp8-e4m3"),
    pytest.param("tensor<7xfp8_e5m2>", ["7"], "fp8_e5m2", id="fp8-e5m2"),
]


@clause("LANG-02.3-56", "LANG-02.2-14", "LANG-02-03", "LANG-05.1-01", "LANG-02.3-36", "LANG-02.3-38")
@pytest.mark.parametrize(("spelling", "shape", "dtype"), SPELLINGS)
def test_a_tensor_type_gives_shape_and_dtype(impl, check, spelling, shape, dtype):
    """Dimensions joined by the letter x, the dtype last, with or without white space (AMB-LANG-06, AMB-LANG-07)."""
    graph = graph_of(impl, check, returning("A", f"A: {spelling}", spelling))
    for text in (*graph.arguments, *graph.results):
        actual = tensor_type(text)
        check.true(actual is not None, f"{text} is a tensor type")
        check.equal((list(actual.shape), actual.dtype), (shape, dtype), f"shape and dtype of {text}")


@clause("LANG-02.3-56", "LANG-02.2-14", "LANG-02-03")
@pytest.mark.parametrize(
    "illegal",
    [
        pytest.param("tensor<2,3,fp32>", id="commas"),
        pytest.param("tensor<2x3,fp32>", id="comma-before-dtype"),
        pytest.param("tensor[2x3xfp32]", id="brackets"),
        pytest.param("tensor 2x3xfp32", id="no-brackets"),
        pytest.param("tensor<2x3xfp32", id="open"),
        pytest.param("tensor<>", id="empty"),
        pytest.param("tensor<2x3xfp32, layout=row_major>", id="comma-before-layout"),
        pytest.param("tensor<2x3xfp32 layout=row_major>", id="layout-without-semicolon"),
        pytest.param("tensor<2x3xfp32;>", id="semicolon-without-layout"),
        pytest.param("tensor<2x3xfp32; row_major>", id="layout-without-name"),
    ],
)
def test_a_malformed_tensor_type_is_refused(impl, check, illegal):
    """Angle brackets, the letter x and a semicolon before the layout are the only spelling (AMB-LANG-09)."""
    check.accepts(impl.language.parse(source=program(parameters="A: tensor<2x3xfp32>")))
    check.accepts(impl.language.parse(source=program(parameters="A: tensor<2x3xfp32; layout=row_major>")))
    check.rejects(impl.language.parse(source=program(parameters=f"A: {illegal}")), **SYNTAX)


@clause("LANG-02.3-36")
@pytest.mark.parametrize(
    "illegal",
    [
        pytest.param("tensor<2xx3xfp32>", id="two-separators"),
        pytest.param("tensor<x2x3xfp32>", id="separator-first"),
        pytest.param("tensor<2 3xfp32>", id="blank-for-separator"),
        pytest.param("tensor<2*3xfp32>", id="star"),
        pytest.param("tensor<2X3xfp32>", id="capital"),
    ],
)
def test_dimensions_are_separated_by_one_small_x(impl, check, illegal):
    """Another separator, or one too many, makes no shape of two dimensions."""
    check.accepts(impl.language.verify(source=returning("A", "A: tensor<2x3xfp32>", "tensor<2x3xfp32>")))
    check.rejects(
        impl.language.verify(source=returning("A", f"A: {illegal}", "tensor<2x3xfp32>")),
        category=("syntax", "types", "shapes"),
    )


@clause("LANG-02.3-37")
@pytest.mark.parametrize(
    ("shape", "spelled"),
    [("4x8", ["4", "8"]), ("?x8", ["?", "8"]), ("4x?", ["4", "?"]), ("?x?x?", ["?", "?", "?"]), ("? x 8", ["?", "8"])],
    ids=["known", "unknown-first", "unknown-last", "all-unknown", "blanks"],
)
def test_a_dimension_is_an_integer_or_a_question_mark(impl, check, shape, spelled):
    """Known dimensions keep their number; an unknown one is a question mark."""
    graph = graph_of(impl, check, returning("A", f"A: tensor<{shape}xfp32>"))
    actual = tensor_type(graph.arguments[0])
    check.true(actual is not None, f"{graph.arguments[0]} is a tensor type")
    check.equal(list(actual.shape), spelled, "the dimensions")


@clause("LANG-02.3-37")
@pytest.mark.parametrize(
    "dimension",
    ["-4", "4.5", '"4"', "(4)", "2+2", "*", "??"],
    ids=["negative", "fraction", "string", "group", "sum", "star", "two-question-marks"],
)
def test_nothing_else_is_a_dimension(impl, check, dimension):
    """Signs, points, strings and expressions make no dimension."""
    check.accepts(impl.language.parse(source=program(parameters="A: tensor<4x8xfp32>")))
    check.rejects(impl.language.parse(source=program(parameters=f"A: tensor<{dimension}x8xfp32>")), **SYNTAX)


@clause("LANG-02.3-38")
@pytest.mark.parametrize("dtype", ["32", "?", '"fp32"', "fp32 fp32"], ids=["number", "question-mark", "string", "two"])
def test_the_dtype_of_a_tensor_is_one_identifier(impl, check, dtype):
    """The last component of a tensor type names its dtype; a shape alone is refused (AMB-LANG-07)."""
    check.accepts(impl.language.verify(source=program(parameters="A: tensor<4x8xfp32>")))
    check.rejects(
        impl.language.verify(source=program(parameters=f"A: tensor<4x8x{dtype}>")), category=("syntax", "types")
    )


@clause("LANG-03.1-02", "LANG-11-02")
def test_a_tensor_has_a_known_rank(impl, check):
    """A dtype without any dimension, or a star for all dimensions, is refused (AMB-LANG-27)."""
    check.accepts(impl.language.verify(source=program(parameters="A: tensor<1xfp32>")))
    for illegal in ("tensor<fp32>", "tensor<*xfp32>"):
        check.rejects(
            impl.language.verify(source=program(parameters=f"A: {illegal}")), category=("syntax", "types", "shapes")
        )


@clause("LANG-02-03")
def test_a_tensor_is_a_value(impl, check):
    """Tensors are passed, named, computed and returned."""
    matrix = "tensor<2x2xint32>"
    source = program(f"let B: {matrix} = A + A;", "return B;", parameters=f"A: {matrix}", result=matrix)
    value = value_of(impl, check, source, A=tensor_of("int32", [[1, 2], [3, 4]]))
    check.bits(value, tensor_of("int32", [[2, 4], [6, 8]]))


@clause("LANG-02.2-13")
@pytest.mark.parametrize(("dtype", "digits"), [("complex64", 16), ("complex128", 32)])
def test_a_further_dtype_may_be_accepted(impl, check, dtype, digits):
    """An implementation that claims further dtypes keeps the bits of complex tensors (AMB-LANG-46)."""
    tensor = Tensor.from_bits(dtype, [2], "".join(f"{index:x}" for index in range(16)) * (digits // 8))
    check.bits(value_of(impl, check, returning("A", f"A: tensor<2x{dtype}>", f"tensor<2x{dtype}>"), A=tensor), tensor)
