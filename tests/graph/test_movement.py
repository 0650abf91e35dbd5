"""Movement of elements: slices against Python's lists, bounds of what is made, and checks of the arithmetic itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.graph.movement import Slice, Update
from tessera_reference.ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import Layout, Scalar, Tensor
from tessera_reference.language import compile_source
from tessera_reference.numerics import movement
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import MOST_ELEMENTS, DTypeMismatch, ShapeMismatch, TooLarge
from tessera_reference.numerics.formats import dtype

FP32, INT32 = dtype("fp32"), dtype("int32")
MATRIX = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def run_body(signature: str, body: str, **inputs: Array) -> Array:
    source = f"module m {{ func f({signature}) {{ {body} }} }}"
    (result,) = execute(compile_source(source, "t.tsr").module, "f", inputs)
    return result


def refused_body(signature: str, body: str, **inputs: Array) -> Diagnostic:
    with pytest.raises(Rejection) as caught:
        run_body(signature, body, **inputs)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def text(start: int | None, stop: int | None, step: int | None) -> str:
    spelled = ["" if part is None else str(part) for part in (start, stop, step)]
    return ":".join(spelled[:2] if step is None else spelled)


def stretches(extent: int) -> list[tuple[int | None, int | None, int | None]]:
    bounds = [None, *range(extent + 1)]
    steps = [None, 1, 2, 3, -1, -2]
    return [(a, b, s) for a, b, s in product(bounds, bounds, steps) if (s or 1) > 0 or a != extent]


@pytest.mark.parametrize("extent", range(5))
def test_every_slice_of_a_vector_is_that_of_a_list(extent: int) -> None:
    held = [float(10 + i) for i in range(extent)]
    for start, stop, step in stretches(extent):
        spec = text(start, stop, step)
        operation = Slice(x=Tensor((extent,), FP32), bounds=(), spec=(spec,))
        expected = held[start:stop:step]
        assert operation.infer() == Tensor((len(expected),), FP32), spec
        assert operation.execute(array("fp32", held), env=None).values.tolist() == expected, spec


@pytest.mark.parametrize("extent", [0, 3])
def test_every_slice_with_bounds_known_at_run_time_only(extent: int) -> None:
    held = [float(10 + i) for i in range(extent)]
    for start, stop, step in stretches(extent):
        given = [part for part in (start, stop, step) if part is not None]
        names = iter(f"${position}" for position in range(len(given)))
        spec = ":".join("" if part is None else next(names) for part in (start, stop, step))
        operation = Slice(x=Tensor(("n",), FP32), bounds=(Scalar(INT32),) * len(given), spec=(spec,))
        assert operation.infer() == Tensor(("?",) if given else ("n",), FP32)
        bounds = [array("int32", each) for each in given]
        expected = held[start:stop:step]
        assert operation.execute(array("fp32", held), *bounds, env=None).values.tolist() == expected, spec


@pytest.mark.parametrize("extent", range(4))
def test_every_update_of_a_vector_is_that_of_a_list(extent: int) -> None:
    held = [float(10 + i) for i in range(extent)]
    for start, stop, step in stretches(extent):
        expected = list(held)
        count = len(held[start:stop:step])
        value = [float(-1 - i) for i in range(count)]
        expected[start:stop:step] = value
        spec = (text(start, stop, step),)
        operation = Update(x=Tensor((extent,), FP32), value=Tensor((count,), FP32), bounds=(), spec=spec)
        assert operation.infer() == Tensor((extent,), FP32)
        original = array("fp32", held)
        assert operation.execute(original, array("fp32", value), env=None).values.tolist() == expected, spec
        assert original.values.tolist() == held


REFUSED = [
    ("X[3]", "dimension 0: index 3 is out of range for extent 3"),
    ("X[0, -1]", "dimension 1: index -1 is out of range for extent 4"),
    ("X[0:4]", "dimension 0: a slice's stop 4 is out of range for extent 3"),
    ("X[-1:2]", "dimension 0: a slice's start -1 is out of range for extent 3"),
    ("X[:, 5:]", "dimension 1: a slice's start 5 is out of range for extent 4"),
    ("X[3:0:-1]", "dimension 0: a slice that goes down starts at 3, which is out of range for extent 3"),
    ("X[0:1:0]", "dimension 0: the step of a slice is 0"),
]


@pytest.mark.parametrize(("expression", "problem"), REFUSED)
def test_what_is_out_of_range_is_refused_where_it_is_known(expression: str, problem: str) -> None:
    found = refused_body("X: tensor<3x4xfp32>", f"return {expression};", X=array("fp32", MATRIX))
    assert (found.category, found.phase, found.message) == ("shapes", "verify", f"slice: {problem}")
    assert (found.span.line, found.clause) == (1, "AMB-LANG-96")


@pytest.mark.parametrize(
    ("index", "problem"), [("i", "index 3"), ("0:j", "stop 4"), ("k", "index -1"), ("0:2:z", "step of a slice is 0")]
)
def test_what_is_out_of_range_is_an_error_where_it_is_computed(index: str, problem: str) -> None:
    numbers = {"i": 3, "j": 4, "k": -1, "z": 0}
    signature = "X: tensor<3x4xfp32>, " + ", ".join(f"{name}: int32" for name in numbers)
    inputs = {"X": array("fp32", MATRIX)} | {name: array("int32", number) for name, number in numbers.items()}
    for body in (f"return X[{index}];", f"X[{index}] = 0.0; return X;"):
        found = refused_body(signature, body, **inputs)
        assert (found.category, found.phase) == ("shapes", "execute")
        assert problem in found.message
        assert found.span.column > 60, "at the expression"


def test_a_value_of_unknown_extent_is_compared_when_it_is_assigned() -> None:
    signature, body = "X: tensor<4xfp32>, V: tensor<?xfp32>, n: int32", "X[0:n] = V; return X;"
    x, two = array("fp32", [1, 2, 3, 4]), array("int32", 2)
    assert run_body(signature, body, X=x, V=array("fp32", [8, 9]), n=two).values.tolist() == [8, 9, 3, 4]
    found = refused_body(signature, body, X=x, V=array("fp32", [8]), n=two)
    assert (found.category, found.message) == ("shapes", "update: the value has shape [1], the slice [2]")


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
        with pytest.raises(Refusal, match="not int32"):
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
