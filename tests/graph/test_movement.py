"""Movement of elements: malformed slices, bounds of size, and checks of the arithmetic itself."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.graph.movement import Slice, Update
from tessera_reference.ir.diagnostics import UnsupportedConstruct
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import Layout, Scalar, Tensor
from tessera_reference.language import compile_source
from tessera_reference.numerics import movement
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import MOST_ELEMENTS, DTypeMismatch, ShapeMismatch, TooLarge
from tessera_reference.numerics.formats import dtype

FP32, INT32 = dtype("fp32"), dtype("int32")


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


@pytest.mark.parametrize(
    ("spec", "bounds"),
    [(("x",), 0), (("",), 0), (("0:1:1:1",), 0), (("$0",), 0), (("$1",), 1), ((":",), 1), (("1.0",), 0), ((1,), 0)],
)
def test_a_malformed_specification_is_refused(spec: tuple[str, ...], bounds: int) -> None:
    with pytest.raises(Refusal) as caught:
        Slice(x=Tensor((3,), FP32), bounds=(Scalar(INT32),) * bounds, spec=spec).results()
    assert caught.value.category == "types"


def test_bounds_are_int32_scalars() -> None:
    for wrong in (Scalar(dtype("int64")), Tensor((1,), INT32)):
        with pytest.raises(Refusal, match=r"not int32|not a scalar"):
            Slice(x=Tensor((3,), FP32), bounds=(wrong,), spec=("$0",)).results()


def test_a_slice_keeps_the_layout_of_what_has_one() -> None:
    x = Tensor((3, 4), FP32, Layout("col_major"))
    assert Slice(x=x, bounds=(), spec=("0:2",)).results() == (Tensor((2, 4), FP32, Layout("col_major")),)
    assert Slice(x=x, bounds=(), spec=("0",)).results() == (Tensor((4,), FP32),)
    assert Update(x=x, value=Scalar(FP32), bounds=(), spec=("0",)).results() == (x,)


ROWS = [[1, 2, 3], [4, 5, 6]]
SIGNATURE = (
    "X: tensor<2x3xfp32>, Y: tensor<2x1xfp32>, D: tensor<MxNxfp32>, I: tensor<2x2xint32>, s: fp32, H: tensor<2x3xbf16>"
)
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
    with pytest.raises(ShapeMismatch, match="differ in an axis other than 0"):
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
