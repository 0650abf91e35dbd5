"""Reshape, broadcast, concat, gather, scatter_add, pad, iota and layout casts: values by hand, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct
from tessera_reference.ir.types import Tensor
from tessera_reference.language import compile_source
from tessera_reference.numerics import movement
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import MOST_ELEMENTS, DTypeMismatch, ShapeMismatch, TooLarge
from tessera_reference.numerics.formats import dtype

ROWS = [[1, 2, 3], [4, 5, 6]]
SIGNATURE = (
    "X: tensor<2x3xfp32>, Y: tensor<2x1xfp32>, D: tensor<MxNxfp32>, I: tensor<2x2xint32>, s: fp32, H: tensor<2x3xbf16>"
)


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


INPUTS = {
    "X": array("fp32", ROWS),
    "Y": array("fp32", [[7], [8]]),
    "D": array("fp32", ROWS),
    "I": array("int32", [[2, 0], [0, 1]]),
    "s": array("fp32", 9),
    "H": array("bf16", ROWS),
}


def run(expression: str, **inputs: Array) -> Array:
    source = f"module m {{ func f({SIGNATURE}) {{ return {expression}; }} }}"
    (result,) = execute(compile_source(source, "t.tsr").module, "f", INPUTS | inputs)
    return result


def inferred(expression: str) -> str:
    source = f"module m {{ func f({SIGNATURE}) {{ return {expression}; }} }}"
    (type_,) = compile_source(source, "t.tsr").module.functions["f"].results
    return str(type_)


def refused(expression: str, **inputs: Array) -> Diagnostic:
    with pytest.raises(Rejection) as caught:
        run(expression, **inputs)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("expression", "type_", "expected"),
    [
        ("op.reshape(X, shape=[3, 2])", "tensor<3x2xfp32>", [[1, 2], [3, 4], [5, 6]]),
        ("op.reshape(op.transpose(X), shape=[6])", "tensor<6xfp32>", [1, 4, 2, 5, 3, 6]),
        ("op.reshape(X, shape=[-1])", "tensor<6xfp32>", [1, 2, 3, 4, 5, 6]),
        ("op.reshape(X, shape=[1, -1, 2])", "tensor<1x3x2xfp32>", [[[1, 2], [3, 4], [5, 6]]]),
        ("op.reshape(D, shape=[3, 2])", "tensor<3x2xfp32>", [[1, 2], [3, 4], [5, 6]]),
        ("op.reshape(D, shape=[-1])", "tensor<?xfp32>", [1, 2, 3, 4, 5, 6]),
        ("op.reshape(D[0], shape=[-1, 1])", "tensor<Nx1xfp32>", [[1], [2], [3]]),
        ("op.reshape(D[0][0:2], shape=[-1, 2])", "tensor<1x2xfp32>", [[1, 2]]),
        ("op.reshape(D[:, 0], shape=[-1, 2])", "tensor<?x2xfp32>", [[1, 4]]),
        ("op.reshape(s, shape=[1, 1])", "tensor<1x1xfp32>", [[9]]),
        ("op.reshape(X[0:1, 0], shape=[])", "fp32", 1),
        ("op.reshape(X[2:], shape=[4, 0])", "tensor<4x0xfp32>", [[], [], [], []]),
        ("op.broadcast(Y, shape=[2, 2, 3])", "tensor<2x2x3xfp32>", [[[7] * 3, [8] * 3]] * 2),
        ("op.broadcast(s, shape=[2])", "tensor<2xfp32>", [9, 9]),
        ("op.broadcast(s, shape=[])", "fp32", 9),
        ("op.broadcast(D, shape=[1, 2, 3])", "tensor<1x2x3xfp32>", [ROWS]),
        ("op.broadcast(Y[:, 0:1], shape=[2, 0])", "tensor<2x0xfp32>", [[], []]),
        ("op.concat(X, Y, axis=1)", "tensor<2x4xfp32>", [[1, 2, 3, 7], [4, 5, 6, 8]]),
        ("op.concat(Y, X, Y, axis=-1)", "tensor<2x5xfp32>", [[7, 1, 2, 3, 7], [8, 4, 5, 6, 8]]),
        ("op.concat(X, X[1:], axis=0)", "tensor<3x3xfp32>", [*ROWS, ROWS[1]]),
        ("op.concat(X, axis=0)", "tensor<2x3xfp32>", ROWS),
        ("op.concat(D, D, axis=0)", "tensor<?xNxfp32>", [*ROWS, *ROWS]),
        ("op.concat(D[0], X[0], axis=0)", "tensor<?xfp32>", [1, 2, 3, 1, 2, 3]),
        ("op.gather(X, I, axis=1)", "tensor<2x2x2xfp32>", [[[3, 1], [1, 2]], [[6, 4], [4, 5]]]),
        ("op.gather(X, I[1], axis=-2)", "tensor<2x3xfp32>", [ROWS[0], ROWS[1]]),
        ("op.gather(X, I[1, 1], axis=0)", "tensor<3xfp32>", ROWS[1]),
        ("op.gather(X[0], I[0, 0], axis=0)", "fp32", 3),
        ("op.gather(X, op.cast(I[0:1, 1], dtype=int64), axis=1)", "tensor<2x1xfp32>", [[1], [4]]),
        ("op.scatter_add(X, I[1], X, axis=0)", "tensor<2x3xfp32>", [[2, 4, 6], [8, 10, 12]]),
        ("op.scatter_add(X[0], I, op.cast(I, dtype=fp32), axis=0)", "tensor<3xfp32>", [1, 3, 5]),
        ("op.scatter_add(X[0], I[0, 0], s, axis=0)", "tensor<3xfp32>", [1, 2, 12]),
        ("op.pad(X, low=[1, 0], high=[0, 2])", "tensor<3x5xfp32>", [[0] * 5, [1, 2, 3, 0, 0], [4, 5, 6, 0, 0]]),
        ("op.pad(Y, low=[0, 1], high=[0, 0], value=-0.5)", "tensor<2x2xfp32>", [[-0.5, 7], [-0.5, 8]]),
        ("op.pad(D, low=[0, 1], high=[0, 0], value=9)", "tensor<Mx?xfp32>", [[9, 1, 2, 3], [9, 4, 5, 6]]),
        ("op.pad(I, low=[0, 0], high=[1, 0], value=-3)", "tensor<3x2xint32>", [[2, 0], [0, 1], [-3, -3]]),
        ("op.pad(X < 2.0, low=[0, 0], high=[0, 1], value=true)", "tensor<2x4xbool>", [[1, 0, 0, 1], [0, 0, 0, 1]]),
        ("op.iota(shape=[3])", "tensor<3xint32>", [0, 1, 2]),
        ("op.iota(shape=[2, 3], axis=-1, dtype=bf16)", "tensor<2x3xbf16>", [[0, 1, 2]] * 2),
        ("op.iota(shape=[2, 3], axis=0, dtype=int8)", "tensor<2x3xint8>", [[0, 0, 0], [1, 1, 1]]),
        ("op.iota(shape=[0, 3], axis=0)", "tensor<0x3xint32>", []),
        ("op.layout_cast(X, to=col_major)", "tensor<2x3xfp32; layout=col_major>", ROWS),
        ('op.layout_cast(X, to="blocked(bm=1,bn=3)")', "tensor<2x3xfp32; layout=blocked(bm=1,bn=3)>", ROWS),
    ],
)
def test_values_and_types(expression: str, type_: str, expected: object) -> None:
    found = run(expression)
    assert inferred(expression) == type_
    assert found.values.tolist() == expected
    assert found.dtype.name in type_


@pytest.mark.parametrize(
    ("expression", "category", "problem"),
    [
        ("op.reshape(X, shape=[4, 2])", "shapes", "tensor<2x3xfp32> does not become shape [4, 2]"),
        ("op.reshape(X, shape=[-1, 4])", "shapes", "does not become shape [-1, 4]"),
        ("op.reshape(X, shape=[-1, 0])", "shapes", "does not become shape [-1, 0]"),
        ("op.reshape(X, shape=[-1, -1])", "shapes", "leaves several extents open"),
        ("op.reshape(X, shape=[-2, -3])", "shapes", "below -1"),
        ("op.reshape(op.concat(D, D, axis=0)[:, 0:2], shape=[3])", "shapes", "does not become shape [3]"),
        ("op.reshape(X, shape=[N, 2])", "types", "integer"),
        ("op.broadcast(X, shape=[2, 4])", "shapes", "does not broadcast to shape [2, 4]"),
        ("op.broadcast(X, shape=[3])", "shapes", "does not broadcast to shape [3]"),
        ("op.broadcast(X, shape=[2, -1])", "shapes", "below 0"),
        ("op.concat(axis=0)", "types", ""),
        ("op.concat(X, s, axis=0)", "types", "parts[1] is fp32, not a tensor"),
        ("op.concat(X, H, axis=0)", "types", "operands have dtypes fp32 and bf16"),
        ("op.concat(X, X[0], axis=0)", "shapes", "operands have ranks 2 and 1"),
        ("op.concat(X, Y, axis=0)", "shapes", "dimensions differ: 3 and 1"),
        ("op.concat(X, D, axis=0)", "shapes", "dimensions are not known to be equal: 3 and N"),
        ("op.concat(X, X, axis=2)", "shapes", "axis 2 is out of range for rank 2"),
        ("op.gather(X, Y, axis=0)", "types", "the indices are fp32"),
        ("op.gather(X, I, axis=-3)", "shapes", "axis -3 is out of range for rank 2"),
        ("op.scatter_add(X, I[0], X, axis=1)", "shapes", "the updates are tensor<2x3xfp32>, not of shape 2, 2"),
        ("op.scatter_add(X, I[0], H, axis=0)", "types", "operands have dtypes fp32 and bf16"),
        ("op.scatter_add(X < 1.0, I[0], X < 1.0, axis=0)", "types", "is not defined on bool"),
        ("op.pad(X, low=[1], high=[0, 0])", "shapes", "low has 1 numbers for rank 2"),
        ("op.pad(X, low=[0, 0], high=[0, -1])", "shapes", "below 0"),
        ("op.pad(I, low=[0, 0], high=[0, 1], value=0.5)", "types", "0.5 is no int32"),
        ("op.pad(op.cast(I, dtype=int8), low=[0, 0], high=[0, 1], value=128)", "types", "128.0 is no int8"),
        ("op.pad(op.cast(X, dtype=fp8_e4m3), low=[0, 0], high=[0, 1], value=500)", "types", "500.0 is no fp8_e4m3"),
        ("op.pad(X < 1.0, low=[0, 0], high=[0, 1], value=2)", "types", "2.0 is no bool"),
        ("op.iota(shape=[3], axis=1)", "shapes", "axis 1 is out of range for rank 1"),
        ("op.iota(shape=[])", "shapes", "axis 0 is out of range for rank 0"),
        ("op.iota(shape=[129], dtype=int8)", "types", "128 is no int8"),
        ("op.iota(shape=[2], dtype=bool)", "types", "is not defined on bool"),
        ("op.layout_cast(X, to=diagonal)", "layouts", "'diagonal' is no layout"),
        ("op.reshape(op.layout_cast(X, to=col_major), shape=[6])", "layouts", "x has layout col_major"),
    ],
)
def test_refusals(expression: str, category: str, problem: str) -> None:
    found = refused(expression)
    assert (found.category, found.phase) == (category, "verify")
    assert problem in found.message
    assert found.requirement and found.clause


THREE = array("fp32", [[1, 2, 3]])


@pytest.mark.parametrize(
    ("expression", "inputs", "problem"),
    [
        ("op.reshape(D, shape=[3, 2])", {"D": THREE}, "reshape: [1, 3] of 3 elements does not become [3, 2]"),
        ("op.reshape(D, shape=[-1, 2])", {"D": THREE}, "reshape: [1, 3] of 3 elements does not become [-1, 2]"),
        ("op.broadcast(D, shape=[2, 4])", {"D": THREE}, "broadcast: [1, 3] does not broadcast to [2, 4]"),
        ("op.gather(D, I, axis=0)", {}, "gather: index 2 at [0, 0] is out of range for extent 2"),
        (
            "op.gather(X, I, axis=1)",
            {"I": array("int32", [[0, 1], [0, -1]])},
            "gather: index -1 at [1, 1] is out of range for extent 3",
        ),
        (
            "op.gather(X[0], I[0, 0], axis=0)",
            {"I": array("int32", [[3, 0], [0, 0]])},
            "gather: index 3 at [] is out of range for extent 3",
        ),
        ("op.scatter_add(X, I[0], X, axis=0)", {}, "scatter_add: index 2 at [0] is out of range for extent 2"),
    ],
)
def test_errors_of_running(expression: str, inputs: dict[str, Array], problem: str) -> None:
    found = refused(expression, **inputs)
    assert (found.category, found.phase, found.message) == ("shapes", "execute", problem)
    assert (found.filename, found.span.column > len("module m { func f(")) == ("t.tsr", True)


def scattered(signature: str, inputs: dict[str, Array]) -> object:
    source = f"module m {{ func f({signature}) {{ return op.scatter_add(X, I, U, axis=0); }} }}"
    (found,) = execute(compile_source(source).module, "f", inputs)
    return found.values.tolist()


def test_what_falls_on_one_slice_is_added_in_the_accumulator_and_rounded_once() -> None:
    # 256 + 1 + 1: bf16 has no 257, so that rounding at every step would stay at 256.
    inputs = {"X": array("bf16", [256, 0]), "I": array("int32", [0, 0]), "U": array("bf16", [1, 1])}
    found = scattered("X: tensor<2xbf16>, I: tensor<2xint32>, U: tensor<2xbf16>", inputs)
    assert found == [258, 0]


def test_additions_are_made_in_ascending_order_of_position() -> None:
    signature = "X: tensor<1xfp32>, I: tensor<2x2xint64>, U: tensor<2x2xfp32>"
    big = 2.0**24
    inputs = {"X": array("fp32", [big]), "I": array("int64", [[0, 0], [0, 0]])}
    for updates, expected in (([[1, 1], [-big, 1]], 1), ([[-big, 1], [1, 1]], 3), ([[1, -big], [1, 1]], 2)):
        assert scattered(signature, inputs | {"U": array("fp32", updates)}) == [expected]


def test_a_padding_value_is_rounded_once_to_the_dtype() -> None:
    assert run("op.pad(H, low=[0, 1], high=[0, 0], value=0.1)").values[0, 0] == 205 / 2048
    assert run("op.pad(X, low=[0, 1], high=[0, 0], value=0.1)").values[0, 0] == np.float32(0.1)


def test_positions_beyond_what_a_float_counts_to_are_rounded() -> None:
    assert run("op.iota(shape=[300], dtype=bf16)").values[[255, 256, 257, 258, 259]].tolist() == [
        255,
        256,
        256,
        258,
        260,
    ]


def test_a_shape_that_no_machine_holds_is_unsupported_and_refuses_nothing() -> None:
    for expression in (
        "op.broadcast(s, shape=[100000, 100000])",
        "op.iota(shape=[1000000000])",
        "op.pad(X, low=[0, 0], high=[0, 10000000000])",
    ):
        with pytest.raises(UnsupportedConstruct):
            run(expression)


def test_more_elements_than_are_made_here_are_refused_before_any_is_made() -> None:
    one = array("int8", [1])
    for make in (
        lambda: movement.broadcast(one, (MOST_ELEMENTS + 1,)),
        lambda: movement.padded(one, (MOST_ELEMENTS,), (0,), 0),
    ):
        with pytest.raises(TooLarge):
            make()


def test_the_arithmetic_checks_for_itself_what_types_promise() -> None:
    x = INPUTS["X"]
    with pytest.raises(ShapeMismatch, match=r"\[1, 2\] does not broadcast to \[5\]"):
        movement.broadcast(array("fp32", [[1, 2]]), (5,))
    with pytest.raises(ShapeMismatch, match=r"the updates have shape \[3\], not \[2, 2, 3\]"):
        movement.scattered(x, INPUTS["I"], array("fp32", [1, 2, 3]), 0)
    with pytest.raises(ShapeMismatch, match="differ beside axis 0"):
        movement.concatenated((x, INPUTS["Y"]), 0)
    for one, other in (
        (movement.chosen, (array("bool", True), x, INPUTS["H"])),
        (movement.updated, (x, INPUTS["H"], ())),
    ):
        with pytest.raises(DTypeMismatch):
            one(*other)


def test_results_do_not_share_storage_with_operands() -> None:
    for expression in ("op.reshape(X, shape=[6])", "op.broadcast(X, shape=[2, 3])", "X[:]"):
        assert not np.shares_memory(run(expression).values, INPUTS["X"].values)


def test_the_layout_is_part_of_the_type_only() -> None:
    source = "module m { func f(X: tensor<2x3xfp32; layout=col_major>) { return op.layout_cast(X, to=row_major); } }"
    module = compile_source(source).module
    assert module.functions["f"].results == (Tensor((2, 3), dtype("fp32")),)
    assert execute(module, "f", {"X": INPUTS["X"]})[0].values.tolist() == ROWS
