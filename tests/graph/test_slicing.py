"""Indices, slices and slice assignment against Python's lists, whose slices agree wherever bounds are in range."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.graph.movement import Slice, Update
from tessera_reference.ir.diagnostics import Diagnostic, Rejection
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import Layout, Scalar, Tensor
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

FP32, INT32 = dtype("fp32"), dtype("int32")
ROWS = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def run(signature: str, body: str, **inputs: Array) -> Array:
    source = f"module m {{ func f({signature}) {{ {body} }} }}"
    (result,) = execute(compile_source(source, "t.tsr").module, "f", inputs)
    return result


def refused(signature: str, body: str, **inputs: Array) -> Diagnostic:
    with pytest.raises(Rejection) as caught:
        run(signature, body, **inputs)
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


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ("1", [5.0, 6.0, 7.0, 8.0]),
        ("1, 2", 7.0),
        (":, 2", [3.0, 7.0, 11.0]),
        ("0:2, 1:3", [[2.0, 3.0], [6.0, 7.0]]),
        ("2, ::-1", [12.0, 11.0, 10.0, 9.0]),
        ("::2", [ROWS[0], ROWS[2]]),
        ("i, 3:i:-1", [8.0, 7.0]),
        ("i + 1, i", 10.0),
        ("1:1", np.zeros((0, 4)).tolist()),
    ],
)
def test_an_index_drops_its_dimension_and_a_slice_keeps_it(indices: str, expected: object) -> None:
    found = run("X: tensor<3x4xfp32>, i: int32", f"return X[{indices}];", X=array("fp32", ROWS), i=array("int32", 1))
    assert found.values.tolist() == expected


def test_an_update_changes_what_it_names_and_nothing_else() -> None:
    body = "let Y: tensor<3x4xfp32> = X; Y[1, 0:2] = V; Y[i] = 0.0; Y[:, 3] = X[i]; Y[0, 0] = X[2, 3]; return Y - X;"
    body = body.replace("X[i];", "W;")
    inputs = {
        "X": array("fp32", ROWS),
        "V": array("fp32", [50, 60]),
        "W": array("fp32", [1, 2, 3]),
        "i": array("int32", 2),
    }
    found = run("X: tensor<3x4xfp32>, V: tensor<2xfp32>, W: tensor<3xfp32>, i: int32", body, **inputs)
    expected = np.array([[12, 2, 3, 1], [50, 60, 7, 2], [0, 0, 0, 3]]) - np.array(ROWS)
    assert found.values.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["bool", "int8", "bf16", "complex64"])
def test_elements_of_any_dtype_are_moved(name: str) -> None:
    found = run(f"X: tensor<3x{name}>", "X[0] = X[2]; return X[::-1];", X=array(name, [0, 0, 1]))
    assert (found.dtype.name, found.values.tolist()) == (name, [1, 0, 1])


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
    found = refused("X: tensor<3x4xfp32>", f"return {expression};", X=array("fp32", ROWS))
    assert (found.category, found.phase, found.message) == ("shapes", "verify", f"slice: {problem}")
    assert (found.span.line, found.clause) == (1, "AMB-LANG-96")


@pytest.mark.parametrize(("expression", "problem"), REFUSED)
def test_what_is_out_of_range_is_an_error_where_extents_come_with_the_call(expression: str, problem: str) -> None:
    found = refused("X: tensor<MxNxfp32>", f"return {expression};", X=array("fp32", ROWS))
    early = "-1 is" in problem or "step" in problem
    assert (found.category, found.phase) == ("shapes", "verify" if early else "execute")
    assert found.message == f"slice: {problem}".partition(" for extent" if early else "\n")[0]


@pytest.mark.parametrize(
    ("index", "problem"), [("i", "index 3"), ("0:j", "stop 4"), ("k", "index -1"), ("0:2:z", "step of a slice is 0")]
)
def test_what_is_out_of_range_is_an_error_where_it_is_computed(index: str, problem: str) -> None:
    numbers = {"i": 3, "j": 4, "k": -1, "z": 0}
    signature = "X: tensor<3x4xfp32>, " + ", ".join(f"{name}: int32" for name in numbers)
    inputs = {"X": array("fp32", ROWS)} | {name: array("int32", number) for name, number in numbers.items()}
    for body in (f"return X[{index}];", f"X[{index}] = 0.0; return X;"):
        found = refused(signature, body, **inputs)
        assert (found.category, found.phase) == ("shapes", "execute")
        assert problem in found.message
        assert found.span.column > 60, "at the expression"


@pytest.mark.parametrize(
    ("body", "category", "problem"),
    [
        ("X[0] = V; return X;", "shapes", "the value is tensor<2xfp32>, the slice tensor<4xfp32>"),
        ("X[0, 1:2] = V; return X;", "shapes", "the value is tensor<2xfp32>, the slice tensor<1xfp32>"),
        ("X[0, 0] = V; return X;", "shapes", "the value is tensor<2xfp32>, the slice fp32"),
        ("X[0] = H; return X;", "types", "the value is bf16, the tensor fp32"),
        ("return X[0, 0, 0];", "shapes", "3 indices for rank 2"),
        ("return X[V];", "types", "tensor<2xfp32>"),
        ("return V[H];", "types", "bf16, not int32"),
    ],
)
def test_other_refusals(body: str, category: str, problem: str) -> None:
    found = refused(
        "X: tensor<3x4xfp32>, V: tensor<2xfp32>, H: bf16",
        body,
        X=array("fp32", ROWS),
        V=array("fp32", [1, 2]),
        H=array("bf16", 1),
    )
    assert (found.category, found.phase) == (category, "verify")
    assert problem in found.message


def test_a_value_of_unknown_extent_is_compared_when_it_is_assigned() -> None:
    signature, body = "X: tensor<4xfp32>, V: tensor<?xfp32>, n: int32", "X[0:n] = V; return X;"
    x, two = array("fp32", [1, 2, 3, 4]), array("int32", 2)
    assert run(signature, body, X=x, V=array("fp32", [8, 9]), n=two).values.tolist() == [8, 9, 3, 4]
    found = refused(signature, body, X=x, V=array("fp32", [8]), n=two)
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


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("starts=[1, 0], stops=[3, 4], steps=[1, 3]", [[5.0, 8.0], [9.0, 12.0]]),
        ("starts=[2], stops=[0], steps=[-1]", [ROWS[2], ROWS[1]]),
        ("starts=[0, 1], stops=[1, 3]", [[2.0, 3.0]]),
    ],
)
def test_the_operation_slices_like_the_brackets(attributes: str, expected: object) -> None:
    assert (
        run("X: tensor<3x4xfp32>", f"return op.slice(X, {attributes});", X=array("fp32", ROWS)).values.tolist()
        == expected
    )


@pytest.mark.parametrize(
    ("attributes", "category"),
    [
        ("starts=[0], stops=[4]", "shapes"),
        ("starts=[-1], stops=[2]", "shapes"),
        ("starts=[0], stops=[1, 2]", "shapes"),
        ("starts=[0], stops=[1], steps=[0]", "shapes"),
        ("starts=[0, 0, 0], stops=[1, 1, 1]", "shapes"),
        ("starts=[a], stops=[1]", "types"),
    ],
)
def test_the_operation_refuses_what_the_brackets_refuse(attributes: str, category: str) -> None:
    found = refused("X: tensor<3x4xfp32>", f"return op.slice(X, {attributes});", X=array("fp32", ROWS))
    assert (found.category, found.phase) == (category, "verify")
