"""Constants of modules, tensor expressions and const_tensor (language spec, sections 2.3 and 5.2).

Constants and tensor expressions of other types, shapes and forms are in `rejections/`.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import graph_of, returns, tensor_type, value_of, verified_twins
from tessera_conformance.dsl import func, integers, kernel, module, program, tensor_of
from tessera_conformance.marks import clause

MATRIX = "tensor<2x3xint32>"


# Constants of a module


@clause("LANG-02.3-05")
@pytest.mark.parametrize(
    ("type_", "expression", "dtype", "value"),
    [
        ("int32", "7", "int32", 7),
        ("int32", "-7", "int32", -7),
        ("int32", "2 + 3 * 4", "int32", 14),
        ("int32", "(2 + 3) * 4 - 7 / 2", "int32", 17),
        ("int64", "9223372036854775807", "int64", 2**63 - 1),
        ("int8", "-128", "int8", -128),
        ("fp32", "1.5", "fp32", 1.5),
        ("fp64", "1e300", "fp64", 1e300),
        ("bf16", "3", "bf16", 3),
        ("fp8_e4m3", "448", "fp8_e4m3", 448),
        ("fp64", "0.5 + 1", "fp64", 1.5),
        ("bool", "true", "bool", True),
        ("bool", "2 * 3 == 6", "bool", True),
        ("tensor<2xint32>", "tensor<2xint32>", "int32", [0, 0]),
        ("tensor<2xint8>", "op.const_tensor() @{shape=[2], dtype=int8, value=[1, -2]}", "int8", [1, -2]),
        (
            "tensor<3xfp32>",
            "op.const_tensor() @{shape=[3], dtype=fp32, value=[0.0, -0.0, 0.0]}",
            "fp32",
            [0.0, -0.0, 0.0],
        ),
    ],
    ids=[
        "integer",
        "sign",
        "precedence",
        "group",
        "int64",
        "int8",
        "fp32",
        "fp64",
        "integer-for-bf16",
        "fp8",
        "sum-of-floats",
        "bool",
        "comparison",
        "tensor-expression",
        "const-tensor",
        "signs-of-zeros",
    ],
)
def test_a_constant_has_the_value_of_its_expression(impl, check, type_, expression, dtype, value):
    """In its declared type, which its literals take; a func returns it (AMB-LANG-53)."""
    source = module(f"  let c: {type_} = {expression};", func("return c;", result=type_))
    check.bits(value_of(impl, check, source), tensor_of(dtype, value))


@clause("LANG-02.3-05", "LANG-02.3-03")
def test_a_constant_is_known_in_the_whole_module(impl, check):
    """In several funcs, a kernel and a default: in conditions, ranges, indices, slices, arguments (AMB-LANG-158).

    The end of a range does not count (AMB-LANG-29).
    """
    source = module(
        "  let n: int32 = 3;",
        "  let m: int32 = 2 * 3 - 1;",
        func("return n + m;", name="sum"),
        func("return p + n;", parameters="p: int32 = m - n", name="defaulted"),
        func("return a - b;", parameters="a: int32, b: int32", name="helper"),
        func(
            "let d: int32 = 0;",
            "if (n < m) { d = 100; }",
            "for (k in n:m) { d = d + k; }",
            "while (d > m) { d = d - n; }",
            "return d, V[n], V[n:m], helper(n, m);",
            parameters="V: tensor<5xint32>",
        ),
        kernel("A[n] = m;", parameters="A: tensor<5xint32>"),
    )
    returns(impl, check, source, [8], "sum")
    returns(impl, check, source, [5], "defaulted")
    returns(impl, check, source, [5, 13, [13, 14], -2], **integers(V=[10, 11, 12, 13, 14]))
    returns(impl, check, source, [[0, 0, 0, 5, 0]], "k", **integers(A=[0] * 5))


@clause("LANG-02.3-05")
@pytest.mark.parametrize(
    ("declaration", "inputs", "expected"),
    [
        (func("return n;", parameters="n: int32"), {"n": 5}, 5),
        (func("let n: int32 = a;", "return n;", parameters="a: int32 = 5"), {}, 5),
        (func("let d: int32 = 0;", "for (n in 0:6) { d = n; }", "return d;"), {}, 5),
        (func("let d: int32 = n;", "if (d == 9) { let n: int32 = 5; d = n; }", "return d;"), {}, 5),
        (func("if (true) { let n: int32 = 5; }", "return n;"), {}, 9),
        (func("let d: int32 = 0;", "if (n < 9) { d = n; }", "return d;", parameters="n: int32"), {"n": 5}, 5),
        (
            func(
                "let n: int32 = a;",
                "for (k in 0:2) { if (n < 9) { n = n + k; } }",
                "return n;",
                parameters="a: int32",
            ),
            {"a": 4},
            5,
        ),
    ],
    ids=[
        "parameter",
        "variable",
        "iterator",
        "inner-variable",
        "inner-variable-ended",
        "parameter-in-a-block",
        "variable-in-a-block-of-a-block",
    ],
)
def test_a_name_in_a_func_hides_a_constant(impl, check, declaration, inputs, expected):
    """An inner block may declare the name again; where that ends the constant is back.

    AMB-LANG-29, AMB-LANG-86, AMB-LANG-92.
    """
    source = module("  let n: int32 = 9;", declaration)
    returns(impl, check, source, [expected], **integers(**inputs))


@clause("LANG-02.3-05")
def test_modules_have_constants_of_their_own(impl, check):
    """The same name in two modules means two values."""
    source = "".join(
        module(f"  let n: int32 = {value};", func("return n;", name=f"of_{name}"), name=name)
        for name, value in (("left", 1), ("right", 2))
    )
    returns(impl, check, source, [1], "of_left")
    returns(impl, check, source, [2], "of_right")


@clause("LANG-02.3-10", "LANG-02.3-05")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("helper(1, 2, 3)", 123),
        ("helper(1, 2)", 127),
        ("helper(1)", 157),
        ("helper(a)", 457),
        ("helper(helper(0, 1), 1, 1)", 1711),
    ],
    ids=["all-given", "one-left-out", "two-left-out", "parameter", "nested"],
)
def test_arguments_left_out_take_the_defaults(impl, check, call, expected):
    """Those of trailing parameters; what is given overrides them (AMB-LANG-74)."""
    source = module(
        "  let five: int32 = 5;",
        func(
            "return 100 * p + 10 * q + r;",
            parameters="p: int32, q: int32 = five, r: int32 = five + 2",
            result="int32",
            name="helper",
        ),
        func(f"return {call};", parameters="a: int32"),
    )
    returns(impl, check, source, [expected], **integers(a=4))
    returns(impl, check, source, [957], "helper", **integers(p=9))
    returns(impl, check, source, [987], "helper", **integers(p=9, q=8))


@clause("LANG-02.3-10")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        ("a: int32 = 1, b: int32 = 2", "a: int32 = 1, b: int32"),
        ("a: int32, b: int32, c: fp32 = 2", "a: int32, b: int32 = 1, c: fp32"),
        ("a: int32, b: int32 = 1, c: fp32 = 2", "a: int32 = 1, b: int32, c: fp32 = 2"),
    ],
    ids=["before-the-last", "between", "gap"],
)
def test_defaults_are_of_trailing_parameters(impl, check, legal, illegal):
    """A parameter without a default may not follow one with a default (AMB-LANG-74)."""
    verified_twins(impl, check, program(parameters=legal), program(parameters=illegal), ("types", "syntax"))


# Tensor expressions

ZEROS = {
    "vector": ("tensor<3xint32>", "int32", [0, 0, 0]),
    "matrix": ("tensor<2x3xfp32>", "fp32", [[0, 0, 0], [0, 0, 0]]),
    "blanks": ("tensor< 2 x 1 x bf16 >", "bf16", [[0], [0]]),
    "cube": ("tensor<1x2x1xfp64>", "fp64", [[[0], [0]]]),
    "bool": ("tensor<2xbool>", "bool", [False, False]),
    "fp8": ("tensor<2xfp8_e4m3>", "fp8_e4m3", [0, 0]),
    "row-major": ("tensor<1x2xint8; layout=row_major>", "int8", [[0, 0]]),
    "col-major": ("tensor<1x2xint8; layout=col_major>", "int8", [[0, 0]]),
    "blocked": ("tensor<2x2xint8; layout=blocked(bm=1, bn=2)>", "int8", [[0, 0], [0, 0]]),
}


@clause("LANG-02.3-35", "LANG-05.2-01")
@pytest.mark.parametrize(("expression", "dtype", "value"), ZEROS.values(), ids=ZEROS)
def test_a_tensor_expression_is_spelled_like_its_type(impl, check, expression, dtype, value):
    """It is zeros of that type, layout included, and fits where the type is declared (AMB-LANG-53)."""
    source = program(f"let A: {expression} = {expression};", "return A;", result=expression)
    check.bits(value_of(impl, check, source), tensor_of(dtype, value))


@clause("LANG-02.3-35")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{MATRIX} + A", [[1, 2, 3], [4, 5, 6]]),
        (f"A - {MATRIX}", [[1, 2, 3], [4, 5, 6]]),
        ("A @ tensor<3x1xint32>", [[0], [0]]),
        (f"-({MATRIX})", [[0, 0, 0], [0, 0, 0]]),
        (f"double({MATRIX} + A)", [[2, 4, 6], [8, 10, 12]]),
        (f"({MATRIX})[1, 0:2]", [0, 0]),
    ],
    ids=["left", "right", "product", "sign", "argument", "indexed"],
)
def test_a_tensor_expression_is_an_operand_like_any_other(impl, check, expression, expected):
    """In sums, products, arguments, and in brackets (AMB-LANG-53)."""
    source = module(
        func("return P + P;", parameters=f"P: {MATRIX}", name="double"),
        func(f"return {expression};", parameters=f"A: {MATRIX}"),
    )
    returns(impl, check, source, [expected], **integers(A=[[1, 2, 3], [4, 5, 6]]))


@clause("LANG-02.3-35")
def test_each_tensor_expression_is_a_value_of_its_own(impl, check):
    """An assignment to one changes no other of the same spelling, nor that of the next iteration of a loop.

    The end of a range does not count (AMB-LANG-29), and a tensor expression is zeros (AMB-LANG-53).
    """
    body = [
        f"let A: {MATRIX} = {MATRIX};",
        "A[0, 0] = 5;",
        f"let B: {MATRIX} = {MATRIX};",
        f"let S: {MATRIX} = B;",
        f"for (k in 0:3) {{ let T: {MATRIX} = {MATRIX}; T[0, k] = T[0, 0] + 1; S = S + T; }}",
        "return A, B, S;",
    ]
    zeros = [0, 0, 0]
    returns(impl, check, program(*body), [[[5, 0, 0], zeros], [zeros, zeros], [[1, 1, 1], zeros]])


# const_tensor

CONTENTS = {
    "splat": ("shape=[2, 3], dtype=int32, value=7", "int32", [[7, 7, 7], [7, 7, 7]]),
    "negative-splat": ("shape=[2], dtype=int32, value=-7", "int32", [-7, -7]),
    "float-splat": ("shape=[2], dtype=fp32, value=1.5", "fp32", [1.5, 1.5]),
    "integer-for-floats": ("shape=[1, 2], dtype=bf16, value=3", "bf16", [[3, 3]]),
    "bool-splat": ("shape=[2], dtype=bool, value=true", "bool", [True, True]),
    "list": ("shape=[3], dtype=int32, value=[1, -2, 3]", "int32", [1, -2, 3]),
    "float-list": ("shape=[3], dtype=fp16, value=[0.5, -2, 1e3]", "fp16", [0.5, -2, 1000]),
    "list-of-one": ("shape=[1], dtype=int64, value=[9]", "int64", [9]),
    "rank-three": ("shape=[1, 2, 1], dtype=int8, value=-128", "int8", [[[-128], [-128]]]),
}


@clause("LANG-05.2-01", "LANG-05.3-01", "LANG-05.3-02")
@pytest.mark.parametrize(("attributes", "dtype", "value"), CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("form", ["op.const_tensor({})", "op.const_tensor() @{{{}}}"], ids=["keywords", "block"])
def test_const_tensor_yields_a_tensor(impl, check, form, attributes, dtype, value):
    """The tensor has the stated shape and dtype, filled with one number or with a list (AMB-LANG-53)."""
    check.bits(value_of(impl, check, program(f"return {form.format(attributes)};")), tensor_of(dtype, value))


@clause("LANG-05.2-01", "LANG-02.3-35")
@pytest.mark.parametrize(
    "expression",
    ["op.const_tensor() @{shape=[2, 3], dtype=int8, value=0}", "tensor<2x3xint8>"],
    ids=["call", "expression"],
)
def test_a_constant_tensor_is_one_graph_const_tensor(impl, check, expression):
    """Without operands, with one tensor as result; a bare tensor expression becomes one too (AMB-LANG-53)."""
    actual = graph_of(impl, check, program(f"return {expression};")).named("tessera.graph.const_tensor")
    check.equal(len(actual), 1, "the number of tessera.graph.const_tensor")
    check.equal(actual[0]["operands"], [], "the operands")
    types = [tensor_type(text) for text in actual[0]["result_types"]]
    check.equal(len(types), 1, "the number of results")
    check.true(types[0] is not None, "the result is a tensor", actual[0]["result_types"])
    check.equal((types[0].shape, types[0].dtype), (("2", "3"), "int8"), "shape and dtype of the result")


@clause("LANG-05.2-01")
@pytest.mark.parametrize(
    ("legal", "illegal"),
    [
        ("shape=[3], dtype=int32, value=[1, 2, 3]", "shape=[3], dtype=int32, value=[1, 2]"),
        ("shape=[2], dtype=int32, value=[1, 2]", "shape=[2], dtype=int32, value=[1, 2, 3]"),
        ("shape=[1], dtype=int32, value=[1]", "shape=[1], dtype=int32, value=[]"),
        ("shape=[1], dtype=int32, value=1", "shape=[1], dtype=int32, value=1.5"),
        ("shape=[1], dtype=int8, value=127", "shape=[1], dtype=int8, value=128"),
        ("shape=[1], dtype=bool, value=true", 'shape=[1], dtype=bool, value="true"'),
    ],
    ids=["too-few", "too-many", "none", "float-for-integer", "out-of-range", "string"],
)
def test_contents_that_do_not_fit_are_refused(impl, check, legal, illegal):
    """A list has as many numbers as the shape, each a number of the dtype."""
    check.accepts(impl.language.verify(source=program(f"return op.const_tensor() @{{{legal}}};")))
    check.rejects(
        impl.language.verify(source=program(f"return op.const_tensor() @{{{illegal}}};")),
        category=("shapes", "types", "numerics"),
    )
