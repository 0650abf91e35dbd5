"""Indices and slices, to read and to assign (language spec, sections 2.3 and 14.2).

Indices of another type, and slices whose shape does not fit, are in `rejections/`.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, value_of
from tessera_conformance.dsl import FIRST_STATEMENT, func, integers, module, program, tensor_of
from tessera_conformance.marks import clause

OUTSIDE = ("shapes", "types")
V = [10, 11, 12, 13, 14, 15]
M = [[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33]]
C = [[[100 * i + 10 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
TYPES = {"V": "tensor<6xint32>", "M": "tensor<3x4xint32>", "C": "tensor<2x3x4xint32>", "i": "int32", "j": "int32"}
INPUTS = {"V": V, "M": M, "C": C, "i": 2, "j": 1}
PARAMETERS = ", ".join(f"{name}: {type_}" for name, type_ in TYPES.items())


def part(values, first, *others):
    """The elements of nested lists at lists of positions; an integer drops its dimension."""
    if isinstance(first, int):
        return part(values[first], *others) if others else values[first]
    return [part(values[place], *others) if others else values[place] for place in first]


READINGS = {
    "first": ("V[0]", part(V, 0)),
    "last": ("V[5]", part(V, 5)),
    "corner": ("M[0, 0]", 10),
    "opposite-corner": ("M[2, 3]", 33),
    "element": ("M[1, 2]", 22),
    "cube-element": ("C[1, 2, 3]", 123),
    "row": ("M[1, :]", part(M, 1, range(4))),
    "column": ("M[:, 1]", part(M, range(3), 1)),
    "cube-rows": ("C[:, 1, :]", part(C, range(2), 1, range(4))),
    "cube-columns": ("C[0, :, 3]", part(C, 0, range(3), 3)),
    "cube-block": ("C[1, 1:3, 0:2]", part(C, 1, [1, 2], [0, 1])),
    "all": ("V[:]", V),
    "all-rows": ("M[:, :]", M),
    "middle": ("V[1:4]", [11, 12, 13]),
    "to-start": ("V[:2]", [10, 11]),
    "to-end": ("V[4:]", [14, 15]),
    "from-zero-to-end": ("V[0:6]", V),
    "single": ("V[3:4]", [13]),
    "single-of-both": ("M[1:2, 2:3]", [[22]]),
    "block": ("M[0:2, 1:4]", part(M, range(2), range(1, 4))),
    "step": ("V[0:6:2]", [10, 12, 14]),
    "step-of-three": ("V[1:6:3]", [11, 14]),
    "step-short-of-end": ("V[0:5:2]", [10, 12, 14]),
    "step-only": ("V[::3]", [10, 13]),
    "step-from": ("V[2::2]", [12, 14]),
    "step-to": ("V[:5:4]", [10, 14]),
    "steps": ("M[0:3:2, 1:4:2]", part(M, [0, 2], [1, 3])),
    "down": ("V[4:1:-1]", [14, 13, 12]),
    "down-by-two": ("V[5:0:-2]", [15, 13, 11]),
    "down-all": ("V[::-1]", V[::-1]),
    "down-all-by-two": ("V[::-2]", [15, 13, 11]),
    "down-to": ("V[:2:-1]", [15, 14, 13]),
    "down-from": ("V[2::-1]", [12, 11, 10]),
    "down-both-all": ("M[::-1, ::-2]", [[33, 31], [23, 21], [13, 11]]),
    "down-both": ("M[2:0:-1, 3:0:-2]", part(M, [2, 1], [3, 1])),
    "leading-zeros": ("M[002, 0:00000000000000000000000000003]", part(M, 2, range(3))),
}


@clause("LANG-14.2-07", "LANG-02.3-20")
@pytest.mark.parametrize(("expression", "expected"), READINGS.values(), ids=READINGS)
def test_an_index_drops_its_dimension_and_a_slice_keeps_it(impl, check, expression, expected):
    """Every dimension indexed gives a scalar; a slice counts to its end, excluded (AMB-LANG-96, AMB-LANG-155)."""
    source = program(f"return {expression};", parameters=PARAMETERS)
    check.bits(value_of(impl, check, source, **integers(**INPUTS)), tensor_of("int32", expected))


UNKNOWN = {
    "V[:]": V,
    "V[0:]": V,
    "V[::1]": V,
    "V[::-1]": V[::-1],
    "V[5::-1]": V[::-1],
    "V[3:0:-1]": [13, 12, 11],
    "V[4::-2]": [14, 12, 10],
    "V[2:]": [12, 13, 14, 15],
    "V[1:4]": [11, 12, 13],
}


@clause("LANG-14.2-07", "LANG-02.3-20")
@pytest.mark.parametrize(("expression", "expected"), UNKNOWN.items(), ids=UNKNOWN)
def test_a_slice_of_an_extent_that_is_a_name_is_the_same(impl, check, expression, expected):
    """Up and down, in part and whole, of a dimension whose extent the call decides."""
    source = program(f"return {expression};", parameters="V: tensor<Nxint32>")
    check.bits(value_of(impl, check, source, **integers(V=V)), tensor_of("int32", expected))


WHOLE = ["V[:]", "V[0:]", "V[::1]", "V[::-1]"]


@clause("LANG-14.2-07", "LANG-02.3-20")
@pytest.mark.parametrize("expression", WHOLE)
def test_a_slice_of_all_of_an_extent_keeps_its_name(impl, check, expression):
    """It is a tensor of the named extent, as a result has to be that says so."""
    source = program(f"return {expression};", parameters="V: tensor<Nxint32>", result="tensor<Nxint32>")
    check.bits(value_of(impl, check, source, **integers(V=V)), tensor_of("int32", UNKNOWN[expression]))


COMPUTED = {
    "parameter": ("V[i]", 12),
    "sum": ("V[i + j]", 13),
    "product-and-sum": ("V[2 * i + j]", 15),
    "element": ("V[V[i] - 11]", 11),
    "call": ("V[next(i)]", 13),
    "element-of-a-matrix": ("M[j, i]", 22),
    "row": ("M[i, :]", part(M, 2, range(4))),
    "column": ("M[:, i]", part(M, range(3), 2)),
    "cube": ("C[j, i, i + j]", 123),
    "from-to": ("V[j:i]", [11]),
    "from-sum": ("V[i:i + 3]", [12, 13, 14]),
    "from": ("V[j:]", V[1:]),
    "to": ("V[:i]", V[:2]),
    "step": ("V[0:6:i]", [10, 12, 14]),
    "down": ("V[4:j:-j]", [14, 13, 12]),
    "row-range": ("M[j:3, i]", [22, 32]),
    "cube-ranges": ("C[j, j:3, i:4]", part(C, 1, [1, 2], [2, 3])),
}


@clause("LANG-14.2-07")
@pytest.mark.parametrize(("expression", "expected"), COMPUTED.values(), ids=COMPUTED)
def test_indices_and_bounds_may_be_computed(impl, check, expression, expected):
    """From parameters, elements and calls, at run time."""
    source = module(
        func("return p + 1;", parameters="p: int32", result="int32", name="next"),
        func(f"return {expression};", parameters=PARAMETERS),
    )
    check.bits(value_of(impl, check, source, **integers(**INPUTS)), tensor_of("int32", expected))


@clause("LANG-14.2-07")
@pytest.mark.parametrize("dtype", ["fp64", "bf16", "fp8_e4m3", "int8", "bool"])
def test_an_element_has_the_dtype_of_its_tensor(impl, check, dtype):
    """A scalar of it, and a tensor of it for a slice."""
    source = program(f"let d: {dtype} = X[1];", "return d, X[0:2];", parameters=f"X: tensor<3x{dtype}>")
    outputs = evaluate(impl, check, source, X=tensor_of(dtype, [0, 1, 1]))
    check.equal(len(outputs), 2, "the number of returned values")
    check.bits(outputs[0], tensor_of(dtype, 1))
    check.bits(outputs[1], tensor_of(dtype, [0, 1]))


OPERATORS = {
    "+": [12, 14],
    "-": [-10, -10],
    "*": [11, 24],
    "/": [0, 0],
    "==": [False, False],
    "!=": [True, True],
    "<": [True, True],
    ">": [False, False],
    "<=": [True, True],
    ">=": [False, False],
}
S = [1, 2]


@clause("LANG-14.2-07")
@pytest.mark.parametrize(
    "operator", OPERATORS, ids=["plus", "minus", "times", "over", "eq", "ne", "lt", "gt", "le", "ge"]
)
def test_indexing_binds_tighter_than_a_binary_operator(impl, check, operator):
    """The operand on the right is a slice of two elements; the whole of it has six, which would not fit."""
    source = program(f"return S {operator} V[1:3];", parameters="S: tensor<2xint32>, V: tensor<6xint32>")
    expected = OPERATORS[operator]
    dtype = "bool" if isinstance(expected[0], bool) else "int32"
    check.bits(value_of(impl, check, source, **integers(S=S, V=V)), tensor_of(dtype, expected))


BINDING = {
    "product": ("R @ M[1:3, :]", [[20 + 2 * 30 + 3 * k for k in range(4)]]),
    "minus-sign": ("S - -V[1:3]", [12, 14]),
    "sign": ("-V[1:3] + S", [-10, -10]),
    "sum-and-product": ("S + S * V[1:3]", [12, 26]),
    "product-in-the-middle": ("S + V[1:3] * S", [12, 26]),
    "slice-of-a-slice": ("V[1:3][1]", 12),
    "element-of-a-row": ("M[1, :][2]", 22),
    "three-times": ("C[1, :, :][0:2, 1][1]", 111),
    "group": ("(S + S)[1]", 4),
    "product-group": ("(V[0:2] * S)[1]", 22),
    "call": ("double(V)[5]", 30),
    "argument": ("double(V[4:6])", [28, 30]),
    "call-and-slice": ("double(V)[4:6] - V[4:6]", [14, 15]),
}


@clause("LANG-14.2-07")
@pytest.mark.parametrize(("expression", "expected"), BINDING.values(), ids=BINDING)
def test_indexing_takes_part_in_larger_expressions(impl, check, expression, expected):
    """Beside signs, products and calls; on a group, on a call, and on what was indexed before (AMB-LANG-19)."""
    source = module(
        func("return P + P;", parameters="P: tensor<Nxint32>", name="double"),
        func(f"return {expression};", parameters=f"S: tensor<2xint32>, R: tensor<1x2xint32>, {PARAMETERS}"),
    )
    inputs = integers(S=S, R=[S], **INPUTS)
    check.bits(value_of(impl, check, source, **inputs), tensor_of("int32", expected))


ASSIGNMENTS = {
    "element": ("V[0] = 7;", [7, 11, 12, 13, 14, 15]),
    "from-an-element": ("V[5] = V[0];", [10, 11, 12, 13, 14, 10]),
    "from-itself": ("V[i] = V[i] + 1;", [10, 11, 13, 13, 14, 15]),
    "slice": ("V[1:3] = S;", [10, 1, 2, 13, 14, 15]),
    "scalar": ("V[1:4] = 0;", [10, 0, 0, 0, 14, 15]),
    "all": ("V[:] = 3;", [3] * 6),
    "to-start": ("V[:2] = S;", [1, 2, 12, 13, 14, 15]),
    "to-end": ("V[4:] = S;", [10, 11, 12, 13, 1, 2]),
    "step": ("V[0:6:2] = 0;", [0, 11, 0, 13, 0, 15]),
    "step-of-three": ("V[1:5:3] = S;", [10, 1, 12, 13, 2, 15]),
    "down": ("V[4:2:-1] = S;", [10, 11, 12, 2, 1, 15]),
    "down-all": ("V[::-1] = V;", [15, 14, 13, 12, 11, 10]),
    "scalar-down": ("V[5:0:-2] = i;", [10, 2, 12, 2, 14, 2]),
    "overlapping-left": ("V[0:2] = V[1:3];", [11, 12, 12, 13, 14, 15]),
    "overlapping-right": ("V[1:3] = V[0:2];", [10, 10, 11, 13, 14, 15]),
    "constant": ("V[0:6] = V[5:0:-1][0];", [15] * 6),
    "computed": ("V[i:i + 2] = 0;", [10, 11, 0, 0, 14, 15]),
    "computed-step": ("V[j:6:i] = 0;", [10, 0, 12, 0, 14, 0]),
    "one-after-another": ("V[0] = 1; V[1] = V[0] + 1; V[2] = V[1] + 1;", [1, 2, 3, 13, 14, 15]),
    "loop": ("for (k in 0:6) { V[k] = k * k; }", [0, 1, 4, 9, 16, 25]),
    "running-sum": ("for (k in 1:6) { V[k] = V[k] + V[k - 1]; }", [10, 21, 33, 46, 60, 75]),
    "branch": ("if (V[0] == 10) { V[0:2] = S; } else { V[0] = 0; }", [1, 2, 12, 13, 14, 15]),
    "while": ("while (V[0] > 3) { V[0] = V[0] - V[0] / 3; }", [3, 11, 12, 13, 14, 15]),
}


@clause("LANG-02.3-20", "LANG-02.3-19")
@pytest.mark.parametrize(("statement", "expected"), ASSIGNMENTS.values(), ids=ASSIGNMENTS)
def test_an_assignment_to_a_slice_changes_these_elements(impl, check, statement, expected):
    """By a scalar, which fills it, or by a tensor of its shape, computed before anything is replaced (AMB-LANG-52).

    The end of a range does not count (AMB-LANG-29).
    """
    parameters = "V: tensor<6xint32>, S: tensor<2xint32>, i: int32, j: int32"
    source = program(statement, "return V;", parameters=parameters)
    value = value_of(impl, check, source, **integers(V=V, S=S, i=2, j=1))
    check.bits(value, tensor_of("int32", expected))


MATRICES = {
    "element": ("M[1, 2] = 0;", {(1, 2): 0}),
    "row": ("M[0, :] = R;", {(0, column): column for column in range(4)}),
    "column": ("M[:, 3] = L;", {(row, 3): 7 + row for row in range(3)}),
    "block": ("M[1:3, 1:3] = 0;", {(row, column): 0 for row in (1, 2) for column in (1, 2)}),
    "steps": ("M[0:3:2, 3:0:-2] = B;", {(0, 3): -1, (0, 1): -2, (2, 3): -3, (2, 1): -4}),
    "all": ("M[:, :] = M + M;", {(row, column): 2 * M[row][column] for row in range(3) for column in range(4)}),
    "row-to-row": ("M[i, 0:2] = M[j, 2:4];", {(2, 0): 22, (2, 1): 23}),
    "diagonal": ("for (k in 0:3) { M[k, k] = 0; }", {(0, 0): 0, (1, 1): 0, (2, 2): 0}),
}


@clause("LANG-02.3-20")
@pytest.mark.parametrize(("statement", "changed"), MATRICES.values(), ids=MATRICES)
def test_an_assignment_to_a_slice_of_a_matrix_changes_these_elements(impl, check, statement, changed):
    """A slice for each dimension, with commas between them; every other element stays (AMB-LANG-29)."""
    parameters = (
        "M: tensor<3x4xint32>, R: tensor<4xint32>, L: tensor<3xint32>, B: tensor<2x2xint32>, i: int32, j: int32"
    )
    source = program(statement, "return M;", parameters=parameters)
    inputs = integers(M=M, R=[0, 1, 2, 3], L=[7, 8, 9], B=[[-1, -2], [-3, -4]], i=2, j=1)
    expected = [[changed.get((row, column), M[row][column]) for column in range(4)] for row in range(3)]
    check.bits(value_of(impl, check, source, **inputs), tensor_of("int32", expected))


@clause("LANG-02.3-20")
@pytest.mark.parametrize(
    ("places", "changed"),
    [
        ("1, 0:2, 3", {(1, 0, 3), (1, 1, 3)}),
        ("0, 2, :", {(0, 2, k) for k in range(4)}),
        (":, 1, ::2", {(i, 1, k) for i in range(2) for k in (0, 2)}),
        ("1, :, :", {(1, j, k) for j in range(3) for k in range(4)}),
    ],
)
def test_an_assignment_to_a_slice_of_three_axes_leaves_other_names_alone(impl, check, places, changed):
    """A computed tensor has two names; the assignment changes one of them (AMB-LANG-95)."""
    body = ["let Y: tensor<2x3x4xint32> = X + X;", "let Z: tensor<2x3x4xint32> = Y;", f"Z[{places}] = 0;"]
    source = program(*body, "return Y * 1000 + Z;", parameters="X: tensor<2x3x4xint32>")
    x = [[[1 + 12 * i + 4 * j + k for k in range(4)] for j in range(3)] for i in range(2)]
    expected = [
        [[2 * x[i][j][k] * (1000 if (i, j, k) in changed else 1001) for k in range(4)] for j in range(3)]
        for i in range(2)
    ]
    check.bits(value_of(impl, check, source, **integers(X=x)), tensor_of("int32", expected))


@clause("LANG-02.3-20")
@pytest.mark.parametrize(
    ("dtype", "literal", "value"),
    [("bf16", "-1.5", -1.5), ("fp64", "2", 2), ("int8", "-128", -128), ("bool", "true", 1)],
)
def test_a_literal_assigned_to_a_slice_has_the_dtype_of_the_tensor(impl, check, dtype, literal, value):
    """It is of the dtype that the elements have."""
    source = program(f"X[1] = {literal};", "return X;", parameters=f"X: tensor<3x{dtype}>")
    check.bits(value_of(impl, check, source, X=tensor_of(dtype, [0, 0, 1])), tensor_of(dtype, [0, value, 1]))


@clause("LANG-02.3-20", "LANG-14.2-07")
@pytest.mark.parametrize(
    ("statement", "places", "beyond"),
    [
        ("d = V[i];", [0, 5], [6, 1000000, -1]),
        ("d = M[i, 0];", [0, 2], [3, -1]),
        ("d = M[0, i];", [0, 3], [4, -1]),
        ("d = C[1, i, 3];", [0, 2], [3, -3]),
        ("V[i] = d;", [0, 5], [6, -1, -6]),
        ("d = V[0:i][0];", [1, 6], [7, -1]),
        ("d = V[i:6][0];", [0, 5], [7, -1, -6]),
        ("d = M[0:i, 1][0];", [1, 3], [4, -1]),
        ("d = V[i:0:-1][0];", [1, 5], [6, -1]),
        ("V[0:i] = d;", [1, 6], [7, -1]),
        ("V[i:] = d;", [0, 5], [7, -1]),
        ("M[i, 1] = d;", [0, 2], [3, -1]),
        ("M[1, i] = d;", [0, 3], [4, -4]),
        ("for (k in 0:i) { d = d + V[k]; }", [0, 6], [7]),
        ("if (i > 5) { d = V[i]; }", [0, 5], [6]),
    ],
    ids=[
        "read",
        "read-row",
        "read-column",
        "read-cube",
        "write",
        "read-to",
        "read-from",
        "read-rows-to",
        "read-down",
        "write-to",
        "write-from",
        "write-row",
        "write-column",
        "loop",
        "branch",
    ],
)
def test_an_index_or_a_slice_out_of_range_is_an_error_at_run_time(impl, check, statement, places, beyond):
    """Neither clamped nor counted from the end; the error names the line.

    A loop may run there, and its end does not count (AMB-LANG-29, AMB-LANG-94, AMB-LANG-96, AMB-LANG-155).
    """
    source = program("let d: int32 = 1;", statement, "return d, V, M;", parameters=PARAMETERS)
    for place in places:
        check.equal(len(evaluate(impl, check, source, **integers(**INPUTS | {"i": place}))), 3, f"results at {place}")
    for place in beyond:
        observation = impl.language.execute(source=source, function="f", inputs=integers(**INPUTS | {"i": place}))
        check.rejects(observation, category=OUTSIDE, phase="execute", at_line=FIRST_STATEMENT + 1)
