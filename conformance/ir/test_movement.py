"""Elements moved, joined and counted out: every bit arrives, and arrives where it belongs.

What these operations refuse for its type or shape is in `rejections/`, but for calls that leave something out.
"""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, expression_twins, value_of
from tessera_conformance.dsl import FIRST_STATEMENT, program, returning, tensor_of, type_text
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.judging import golden, judge


@golden("ir/movement")
def test_golden(impl, check, vector):
    """The frozen bits, confirmed by where each element comes from."""
    judge(impl, check, vector)


OPERANDS = "A: tensor<2x3xfp32>, B: tensor<2x3xfp32>, a: fp32, m: bool, I: tensor<2xint32>, i: int32"

SLICE = "op.slice(A) @{starts=[0, 0], stops=[1, 1], steps=[1, 1]}"
COUNT = "op.iota() @{shape=[2], axis=0, dtype=int32}"

INCOMPLETE = [
    ("op.transpose(A)", "op.transpose()"),
    ("op.transpose(A)", "op.transpose(A, B)"),
    ("op.reshape(A) @{shape=[6]}", "op.reshape(A)"),
    ("op.reshape(A) @{shape=[6]}", "op.reshape() @{shape=[6]}"),
    ("op.broadcast(A) @{shape=[2, 3]}", "op.broadcast(A)"),
    ("op.broadcast(A) @{shape=[2, 3]}", "op.broadcast(A, B) @{shape=[2, 3]}"),
    (SLICE, "op.slice(A) @{starts=[0, 0]}"),
    (SLICE, "op.slice(A) @{stops=[1, 1]}"),
    (SLICE, "op.slice() @{starts=[0, 0], stops=[1, 1], steps=[1, 1]}"),
    ("op.gather(A, I) @{axis=0}", "op.gather(A) @{axis=0}"),
    ("op.gather(A, I) @{axis=0}", "op.gather(A, I, I) @{axis=0}"),
    ("op.concat(A, B) @{axis=0}", "op.concat() @{axis=0}"),
    ("op.pad(A) @{low=[1, 1], high=[0, 0]}", "op.pad() @{low=[1, 1], high=[0, 0]}"),
    ("op.pad(A) @{low=[1, 1], high=[0, 0]}", "op.pad(A, B) @{low=[1, 1], high=[0, 0]}"),
    ("op.scatter_add(A, I, B) @{axis=0}", "op.scatter_add(A, I) @{axis=0}"),
    ("op.scatter_add(A, I, B) @{axis=0}", "op.scatter_add(A, I, B, B) @{axis=0}"),
    (COUNT, "op.iota() @{axis=0, dtype=int32}"),
    (COUNT, "op.iota(A) @{shape=[2], axis=0, dtype=int32}"),
]


@clause("LANG-02-04", "LANG-11-01")
@feature("tensor-ops")
@pytest.mark.parametrize(("legal", "illegal"), INCOMPLETE, ids=[illegal for _, illegal in INCOMPLETE])
def test_an_operand_or_attribute_too_few_or_too_many_is_refused(impl, check, legal, illegal):
    """Every operation has a number of operands, and attributes without which it says nothing."""
    expression_twins(impl, check, legal, illegal, OPERANDS)


MALFORMED = [
    ("op.pad(A) @{low=[1, 0], high=[1, 0]}", "op.pad(A) @{low=[1], high=[1, 0]}"),
    ("op.pad(A) @{low=[1, 0], high=[1, 0]}", "op.pad(A) @{low=[1, 0], high=[1, 0, 0]}"),
    (SLICE, "op.slice(A) @{starts=[0, 0], stops=[1], steps=[1, 1]}"),
    (SLICE, "op.slice(A) @{starts=[0, 0, 0], stops=[1, 1, 1], steps=[1, 1, 1]}"),
    ("op.transpose(A) @{perm=[1, 0]}", "op.transpose(A) @{perm=[0]}"),
    ("op.transpose(A) @{perm=[1, 0]}", "op.transpose(A) @{perm=[1, 0, 2]}"),
]


@clause("LANG-02-04", "LANG-03.2-01")
@feature("tensor-ops")
@pytest.mark.parametrize(("legal", "illegal"), MALFORMED, ids=[illegal for _, illegal in MALFORMED])
def test_a_list_of_another_length_than_there_are_dimensions_is_refused(impl, check, legal, illegal):
    """Widths, starts, stops, steps and permutations say one number for each dimension that they are about."""
    expression_twins(impl, check, legal, illegal, OPERANDS, ("shapes", "types"))


NO_CONSTANTS = {
    "an-operand": "op.const_tensor(A) @{shape=[3], dtype=int32}",
    "no-shape": "op.const_tensor() @{dtype=int32}",
    "no-dtype": "op.const_tensor() @{shape=[3]}",
    "two-numbers": "op.const_tensor() @{shape=[3], dtype=int32, value=[1, 2]}",
    "four-numbers": "op.const_tensor() @{shape=[3], dtype=int32, value=[1, 2, 3, 4]}",
    "uneven-rows": "op.const_tensor() @{shape=[2, 2], dtype=int32, value=[[1, 2], [3]]}",
}


@clause("LANG-05.2-01")
@pytest.mark.parametrize("illegal", NO_CONSTANTS.values(), ids=NO_CONSTANTS)
def test_a_constant_that_is_none_is_refused(impl, check, illegal):
    """It takes no operands, needs a shape and a dtype, and has as many numbers as elements (AMB-LANG-53)."""
    legal = "op.const_tensor() @{shape=[3], dtype=int32, value=[1, 2, 3]}"
    expression_twins(impl, check, legal, illegal, OPERANDS)


ROWS = [[1, 2], [3, 4], [5, 6]]
OUTSIDE = {"extent": 3, "far": 2**31 - 1, "below": -1, "least": -(2**31)}


@clause("LANG-02-04", "LANG-12-01")
@feature("tensor-ops")
@pytest.mark.parametrize("index", OUTSIDE.values(), ids=OUTSIDE)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_gathered_index_out_of_range_is_an_error_at_its_place(impl, check, index, dtype):
    """It is neither clamped nor counted from the end: the program is refused while it runs, with its line."""
    source = program(
        "let Y: tensor<3x2xint32> = A + A;",
        "let R: tensor<2x2xint32> = op.gather(Y, I) @{axis=0};",
        "return R;",
        parameters=f"A: tensor<3x2xint32>, I: tensor<2x{dtype}>",
    )
    rows = tensor_of("int32", ROWS)
    check.bits(
        value_of(impl, check, source, A=rows, I=tensor_of(dtype, [2, 0])), tensor_of("int32", [[10, 12], [2, 4]])
    )
    inputs = {"A": rows, "I": tensor_of(dtype, [2, index])}
    refused = impl.language.execute(source=source, function="f", inputs=inputs)
    check.rejects(refused, category="shapes", phase="execute", at_line=FIRST_STATEMENT + 1)


FAR_OUTSIDE = (1 << 32, (1 << 32) + 1, -(1 << 32), (1 << 32) - 1, (1 << 63) - 1, -(1 << 63))


@clause("LANG-02-04", "LANG-12-01")
@feature("tensor-ops")
@pytest.mark.parametrize("index", FAR_OUTSIDE)
def test_an_index_of_64_bits_is_compared_whole(impl, check, index):
    """A gather and a scatter refuse an index that is out of range, also where its low 32 bits are inside."""
    operands = "A: tensor<3x2xint32>, I: tensor<2xint64>, B: tensor<2x2xint32>"
    inputs = {"A": tensor_of("int32", ROWS), "B": tensor_of("int32", ROWS[:2])}
    for expression in ("op.gather(A, I) @{axis=0}", "op.scatter_add(A, I, B) @{axis=0}"):
        source = returning(expression, operands)
        evaluate(impl, check, source, **inputs, I=tensor_of("int64", [2, 0]))
        refused = impl.language.execute(
            source=source, function="f", inputs={**inputs, "I": tensor_of("int64", [0, index])}
        )
        check.rejects(refused, category="shapes", phase="execute", at_line=FIRST_STATEMENT)


PADDED = {
    "vector": ((3,), (1,), (2,)),
    "matrix": ((2, 3), (0, 2), (1, 0)),
    "rank-3": ((2, 1, 3), (1, 0, 2), (0, 3, 1)),
    "rank-3-behind-alone": ((1, 2, 2), (0, 0, 0), (2, 1, 3)),
    "rank-4": ((1, 2, 1, 2), (1, 0, 2, 0), (0, 1, 0, 3)),
}
"""Shapes, and the numbers of elements before and behind in each dimension."""


@clause("LANG-02-04", "LANG-03.2-01")
@feature("tensor-ops")
@pytest.mark.parametrize(("shape", "low", "high"), PADDED.values(), ids=PADDED)
def test_each_dimension_is_padded_by_its_own_numbers(impl, check, shape, low, high):
    """Each element moves by the numbers before it, dimension by dimension, and the padding lies around them."""
    result = [before + extent + behind for before, extent, behind in zip(low, shape, high, strict=True)]
    expected = []
    for place in product(*map(range, result)):
        inner = [index - before for index, before in zip(place, low, strict=True)]
        inside = all(0 <= index < extent for index, extent in zip(inner, shape, strict=True))
        number = 0
        for index, extent in zip(inner, shape, strict=True):
            number = number * extent + index
        expected.append(number + 1 if inside else -7)
    attributes = f"low={list(low)}, high={list(high)}, value=-7"
    source = returning(f"op.pad(A) @{{{attributes}}}", f"A: {type_text('int32', shape)}")
    actual = value_of(impl, check, source, A=tensor_of("int32", range(1, prod(shape) + 1), shape))
    check.bits(actual, tensor_of("int32", expected, result))


@clause("LANG-02-04", "LANG-03.2-01")
@feature("tensor-ops")
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("parts", [2, 3, 5, 9])
def test_parts_are_joined_in_their_order(impl, check, parts, axis):
    """Two to nine tensors are joined, one of them with another extent along the axis."""
    extents = [2 if place == 1 else 1 for place in range(parts)]
    shapes = [(extent, 2, 1)[::-1] if axis == -1 else ((extent, 2, 1), (2, extent, 1))[axis] for extent in extents]
    tensors = {f"T{place}": tensor_of("int32", [place + 1] * prod(shape), shape) for place, shape in enumerate(shapes)}
    declared = ", ".join(f"{name}: {type_text('int32', tensor.shape)}" for name, tensor in tensors.items())
    source = returning(f"op.concat({', '.join(tensors)}) @{{axis={axis}}}", declared)
    whole = list(shapes[0])
    whole[axis] = sum(extents)
    owners = [place + 1 for place, extent in enumerate(extents) for _ in range(extent)]
    expected = [owners[index[axis]] for index in product(*map(range, whole))]
    check.bits(value_of(impl, check, source, **tensors), tensor_of("int32", expected, whole))


@clause("LANG-02-04", "LANG-12-01")
@feature("tensor-ops")
@pytest.mark.parametrize("index", OUTSIDE.values(), ids=OUTSIDE)
def test_a_scalar_index_out_of_range_is_an_error_too(impl, check, index):
    """A single slice is gathered by a scalar; outside there is none."""
    source = returning("op.gather(A, i) @{axis=0}", "A: tensor<3x2xint32>, i: int32")
    rows = tensor_of("int32", ROWS)
    check.bits(value_of(impl, check, source, A=rows, i=tensor_of("int32", 2)), tensor_of("int32", [5, 6]))
    refused = impl.language.execute(source=source, function="f", inputs={"A": rows, "i": tensor_of("int32", index)})
    check.rejects(refused, category="shapes", phase="execute", at_line=FIRST_STATEMENT)


@clause("LANG-02-04", "LANG-12-01")
@feature("tensor-ops")
@pytest.mark.parametrize("index", OUTSIDE.values(), ids=OUTSIDE)
def test_an_update_out_of_range_is_an_error_at_its_place(impl, check, index):
    """An update that belongs nowhere is not dropped."""
    source = returning(
        "op.scatter_add(A, I, U) @{axis=0}", "A: tensor<3x2xint32>, I: tensor<2xint32>, U: tensor<2x2xint32>"
    )
    given = {"A": tensor_of("int32", ROWS), "U": tensor_of("int32", [[10, 20], [30, 40]])}
    value = value_of(impl, check, source, **given, I=tensor_of("int32", [2, 0]))
    check.bits(value, tensor_of("int32", [[31, 42], [3, 4], [15, 26]]))
    inputs = {**given, "I": tensor_of("int32", [index, 0])}
    refused = impl.language.execute(source=source, function="f", inputs=inputs)
    check.rejects(refused, category="shapes", phase="execute", at_line=FIRST_STATEMENT)


@level("strict")
@clause("LANG-10-01", "LANG-02-04")
@feature("tensor-ops")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16"])
def test_updates_along_any_axis_are_added_in_the_accumulator(impl, check, dtype, axis):
    """Three ones beside a number of which one alone is half a step: the sum is a tie that goes to the next but one."""
    large = {"fp8_e4m3": 16, "fp8_e5m2": 8, "fp16": 2048, "bf16": 256}[dtype]
    shape = [2 if place == axis else 1 for place in range(3)]
    updates = [3 if place == axis else 1 for place in range(3)]
    types = [f"tensor<{'x'.join(map(str, extents))}x{dtype}>" for extents in (shape, updates)]
    source = returning(f"op.scatter_add(A, I, U) @{{axis={axis}}}", f"A: {types[0]}, I: tensor<3xint32>, U: {types[1]}")
    inputs = {
        "A": Tensor(dtype, tuple(shape), tensor_of(dtype, [large, large]).data),
        "U": Tensor(dtype, tuple(updates), tensor_of(dtype, [1, 1, 1]).data),
    }
    value = value_of(impl, check, source, **inputs, I=tensor_of("int32", [1, 1, 1]))
    check.bits(value, Tensor(dtype, tuple(shape), tensor_of(dtype, [large, large + 4]).data))


LATE = {
    "slice": ("op.slice(X) @{starts=[1], stops=[3], steps=[1]}", [1, 2, 3], [2, 3], [1, 2]),
    "slice-down": ("op.slice(X) @{starts=[2], stops=[0], steps=[-1]}", [1, 2, 3], [3, 2], [1, 2]),
}


@clause("LANG-03.1-03", "LANG-03.2-01")
@feature("tensor-ops")
@pytest.mark.parametrize(("expression", "fits", "expected", "does_not"), LATE.values(), ids=LATE)
def test_an_extent_that_is_known_late_is_compared_late(impl, check, expression, fits, expected, does_not):
    """Over an unknown dimension a slice lies within or does not when the function runs (AMB-LANG-96, -155)."""
    source = returning(expression, "X: tensor<?xint32>")
    check.bits(value_of(impl, check, source, X=tensor_of("int32", fits)), tensor_of("int32", expected))
    refused = impl.language.execute(source=source, function="f", inputs={"X": tensor_of("int32", does_not)})
    check.rejects(refused, category=("shapes", "types"), at_line=FIRST_STATEMENT)


@clause("LANG-03.1-03")
@feature("tensor-ops")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("op.pad(X) @{low=[1], high=[2], value=9}", [9, 1, 2, 9, 9]),
        ("op.concat(X, X) @{axis=0}", [1, 2, 1, 2]),
        ("op.gather(X, I) @{axis=0}", [2, 2, 1]),
        ("op.select(X > 1, X, 0)", [0, 2]),
        ("op.clamp(X, 0, 1)", [1, 1]),
        ("op.scatter_add(X, I, I) @{axis=0}", [1, 4]),
    ],
    ids=["pad", "concat", "gather", "select", "clamp", "scatter_add"],
)
def test_unknown_dimensions_are_moved_like_any_other(impl, check, expression, expected):
    """The dimensions of the result follow when the sizes of the operand are known."""
    source = returning(expression, "X: tensor<?xint32>, I: tensor<?xint32>")
    given = {"X": tensor_of("int32", [1, 2]), "I": tensor_of("int32", [1, 1, 0])}
    check.bits(value_of(impl, check, source, **given), tensor_of("int32", expected))


@clause("LANG-03.1-03")
@feature("tensor-ops")
@pytest.mark.parametrize(
    ("shape", "extents", "expected"),
    [("Nx2", "[4]", [1, 2, 3, 4]), ("N", "[-1, 2]", [[1, 2], [3, 4]]), ("Nx2", "[-1]", [1, 2, 3, 4])],
    ids=["in-all", "open", "open-of-several"],
)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unknown"])
def test_elements_are_counted_when_the_dimensions_are_known(impl, check, shape, extents, expected, named):
    """A reshape is accepted where its operand may have as many elements, and done where it has."""
    whole = [[1, 2], [3, 4]] if shape == "Nx2" else [1, 2, 3, 4]
    type_ = f"tensor<{shape if named else shape.replace('N', '?')}xint32>"
    source = returning(f"op.reshape(X) @{{shape={extents}}}", f"X: {type_}")
    check.bits(value_of(impl, check, source, X=tensor_of("int32", whole)), tensor_of("int32", expected))


@clause("LANG-02.3-42", "LANG-02.3-72")
@feature("tensor-ops")
@pytest.mark.parametrize(
    ("dtype", "value", "bits"),
    [
        ("int64", "9007199254740993", "0020000000000001"),
        ("int64", "9223372036854775807", "7fffffffffffffff"),
        ("int64", "-9223372036854775807", "8000000000000001"),
        ("fp32", "1.00000005960464477539062500001", "3f800001"),
        ("fp32", "16777217.00000000001", "4b800001"),
        ("bf16", "1.00390625000000000001", "3f81"),
        ("fp64", "9007199254740993", "4340000000000000"),
    ],
)
def test_a_number_beside_an_operand_is_rounded_once(impl, check, dtype, value, bits):
    """The frame of op.pad takes its literal in the operand's dtype, not by way of fp64 (AMB-LANG-54, AMB-LANG-87)."""
    source = returning(
        f"op.pad(X) @{{low=[1], high=[0], value={value}}}", f"X: tensor<1x{dtype}>", f"tensor<2x{dtype}>"
    )
    padded = value_of(impl, check, source, X=tensor_of(dtype, [1]))
    width = len(bits)
    check.equal((padded.dtype, padded.shape, padded.bits()[:width]), (dtype, (2,), bits))


@clause("LANG-05.2-01", "LANG-02.3-35")
def test_a_tensor_type_as_an_expression_is_a_tensor_of_zeros(impl, check):
    """`tensor<2x3xint32>` where a value is wanted is a constant without values (AMB-LANG-53)."""
    source = program("let Z: tensor<2x3xint32> = tensor<2x3xint32>;", "return Z;")
    check.bits(value_of(impl, check, source), tensor_of("int32", [[0, 0, 0], [0, 0, 0]]))
