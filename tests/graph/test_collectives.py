"""Collectives one by one: what each rank is given, what is refused, and how they are differentiated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.vectors.building import counted
from tessera_reference.graph.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    ReduceScatter,
    RootBroadcast,
    RootSum,
    resolve_axis,
)
from tessera_reference.graph.execution import execute_on_mesh
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import Layout, Mesh, Numeric, Scalar, Tensor, Type
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

GRID = "mesh g = mesh<axes=[dp, tp], shape=[2, 3]>;"
"""Ranks 0 1 2 have dp = 0, ranks 3 4 5 have dp = 1."""
LINE = "mesh g = mesh<axes=[dp], shape=[{}]>;"


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def on_mesh(mesh: str, signature: str, expression: str, *inputs: dict[str, Array]) -> list[Array]:
    source = f"module m {{ {mesh} func f({signature}) {{ return {expression}; }} }}"
    ranks = execute_on_mesh(compile_source(source, "t.tsr").module, "f", inputs)
    return [result for (result,) in ranks]


def numbers(mesh: str, signature: str, expression: str, rows: Sequence[object], name: str = "int32") -> list[Any]:
    results = on_mesh(mesh, signature, expression, *[{"X": array(name, row)} for row in rows])
    return [result.values.tolist() for result in results]


# What each rank is given

RANKS = [[10 * rank, 10 * rank + 1, 10 * rank + 2] for rank in range(6)]
VECTOR = "X: tensor<3xint32>"


def test_an_all_reduce_adds_over_the_group_of_its_axis() -> None:
    along_tp = [[30, 33, 36]] * 3 + [[120, 123, 126]] * 3
    assert numbers(GRID, VECTOR, 'dist.all_reduce(X, axis=tp, op="sum")', RANKS) == along_tp
    along_dp = [[30, 32, 34], [50, 52, 54], [70, 72, 74]] * 2
    assert numbers(GRID, VECTOR, 'dist.all_reduce(X, axis=dp, op="sum")', RANKS) == along_dp


def test_extremes_are_those_of_the_group() -> None:
    assert numbers(GRID, VECTOR, 'dist.all_reduce(X, axis=tp, op="max")', RANKS) == [RANKS[2]] * 3 + [RANKS[5]] * 3
    assert numbers(GRID, VECTOR, 'dist.all_reduce(X, axis=dp, op="min")', RANKS) == RANKS[:3] * 2


def test_a_reduce_scatter_gives_each_rank_its_part_of_the_sum() -> None:
    found = numbers(GRID, VECTOR, 'dist.reduce_scatter(X, axis=tp, op="sum")', RANKS)
    assert found == [[30], [33], [36], [120], [123], [126]]
    rows = [[[1, 2], [3, 4]], [[10, 20], [30, 40]]]
    along_columns = 'dist.reduce_scatter(X, axis=dp, op="max", dim=-1)'
    found = numbers(LINE.format(2), "X: tensor<2x2xint32>", along_columns, rows)
    assert found == [[[10], [30]], [[20], [40]]]


def test_an_all_gather_puts_parts_together_in_order() -> None:
    found = numbers(GRID, "X: tensor<1xint32>", "dist.all_gather(X, axis=tp)", [[rank] for rank in range(6)])
    assert found == [[0, 1, 2]] * 3 + [[3, 4, 5]] * 3
    rows = [[[1, 2]], [[3, 4]]]
    assert numbers(LINE.format(2), "X: tensor<1x2xint32>", "dist.all_gather(X, axis=dp, dim=0)", rows)[0] == [
        [1, 2],
        [3, 4],
    ]
    found = numbers(LINE.format(2), "X: tensor<1x2xint32>", "dist.all_gather(X, axis=dp, dim=1)", rows)
    assert found == [[[1, 2, 3, 4]]] * 2


def test_a_broadcast_gives_what_the_root_brings() -> None:
    assert numbers(GRID, VECTOR, "dist.broadcast(X, axis=tp)", RANKS) == [RANKS[0]] * 3 + [RANKS[3]] * 3
    assert numbers(GRID, VECTOR, "dist.broadcast(X, axis=dp, root=1)", RANKS) == RANKS[3:] * 2


def test_an_all_to_all_exchanges_parts() -> None:
    """Rank r's part s becomes rank s's part r (AMB-COLL-10)."""
    found = numbers(LINE.format(3), VECTOR, "dist.all_to_all(X, axis=dp)", RANKS[:3])
    assert found == [[0, 10, 20], [1, 11, 21], [2, 12, 22]]
    rows = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    matrix = "X: tensor<2x2xint32>"
    found = numbers(LINE.format(2), matrix, "dist.all_to_all(X, axis=dp, split=0, concat=1)", rows)
    assert found == [[[1, 2, 5, 6]], [[3, 4, 7, 8]]]
    found = numbers(LINE.format(2), matrix, "dist.all_to_all(X, axis=dp, split=1, concat=0)", rows)
    assert found == [[[1], [3], [5], [7]], [[2], [4], [6], [8]]]


@pytest.mark.parametrize(
    "collective", ['all_reduce(X, axis=dp, op="sum")', "all_gather(X, axis=dp)", "broadcast(X, axis=dp)"]
)
def test_a_group_of_one_changes_nothing(collective: str) -> None:
    assert numbers(LINE.format(1), VECTOR, f"dist.{collective}", [[7, 8, 9]]) == [[7, 8, 9]]


def test_scalars_are_reduced_and_broadcast() -> None:
    assert numbers(LINE.format(3), "X: int32", 'dist.all_reduce(X, axis=dp, op="sum")', [1, 2, 4]) == [7, 7, 7]
    assert numbers(LINE.format(3), "X: int32", "dist.broadcast(X, axis=dp, root=2)", [1, 2, 4]) == [4, 4, 4]


def test_collectives_of_nothing_give_nothing() -> None:
    for expression in ('dist.all_reduce(X, axis=dp, op="max")', "dist.all_gather(X, axis=dp)"):
        inputs = [{"X": array("int32", np.zeros((0, 3)))}] * 2
        found = on_mesh(LINE.format(2), "X: tensor<0x3xint32>", expression, *inputs)
        assert [each.shape for each in found] == [(0, 3)] * 2


# Arithmetic


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16", "fp16", "fp8_e4m3", "int8", "int64"])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_a_sum_is_the_canonical_tree_rounded_once(name: str, ranks: int) -> None:
    """Against the oracle's exact rational arithmetic (AMB-LANG-109)."""
    frozen = [counted(name, (6,), seed=11 * ranks + rank, exponents=(-6, 6)) for rank in range(ranks)]
    inputs = [Array.from_bits(dtype(name), (6,), each.data) for each in frozen]
    expected = all_reduce(*frozen, op="sum")
    expression = 'dist.all_reduce(X, axis=dp, op="sum")'
    found = on_mesh(LINE.format(ranks), f"X: tensor<6x{name}>", expression, *[{"X": each} for each in inputs])
    assert [each.to_bits() for each in found] == [each.data for each in expected]
    scattered = 'dist.reduce_scatter(X, axis=dp, op="sum")'
    wide = [Array(each.dtype, np.tile(each.values, ranks)) for each in inputs]
    found = on_mesh(LINE.format(ranks), f"X: tensor<{6 * ranks}x{name}>", scattered, *[{"X": each} for each in wide])
    assert [each.to_bits() for each in found] == [each.data for each in expected]


def test_bf16_is_rounded_at_the_end_not_at_every_rank() -> None:
    """1 + 2**-8 lies between two bf16 and would be rounded to 1, were it rounded."""
    parts = [Fraction(1), Fraction(1, 256), Fraction(1, 256), Fraction(0)]
    assert sum(parts) == 1 + Fraction(1, 128)
    found = on_mesh(
        LINE.format(4),
        "X: bf16",
        'dist.all_reduce(X, axis=dp, op="sum")',
        *[{"X": array("bf16", float(part))} for part in parts],
    )
    assert [float(each.values) for each in found] == [1 + 2**-7] * 4


def test_extremes_order_zeros_and_let_nan_win() -> None:
    rows = [[0.0, -0.0, 1.0], [-0.0, -0.0, float("nan")]]
    inputs = [{"X": Array(dtype("fp32"), np.array(row, np.float32))} for row in rows]
    largest = on_mesh(LINE.format(2), "X: tensor<3xfp32>", 'dist.all_reduce(X, axis=dp, op="max")', *inputs)[0]
    smallest = on_mesh(LINE.format(2), "X: tensor<3xfp32>", 'dist.all_reduce(X, axis=dp, op="min")', *inputs)[1]
    assert largest.to_bits().hex() == "00000000" + "00000080" + "0000c07f"
    assert smallest.to_bits().hex() == "00000080" + "00000080" + "0000c07f"


def test_extremes_of_bool_are_or_and_and() -> None:
    rows = [[True, True, False], [True, False, False]]
    for op, expected in (("max", rows[0]), ("min", rows[1])):
        expression = f'dist.all_reduce(X, axis=dp, op="{op}")'
        assert numbers(LINE.format(2), "X: tensor<3xbool>", expression, rows, "bool") == [expected] * 2


# Types

FP32 = dtype("fp32")


def given(collective: type[Collective], type_: Numeric, group: int, **attributes: Any) -> Type:
    (result,) = collective(type_, "dp", group=group, **attributes).results()
    return result


@pytest.mark.parametrize(
    ("collective", "attributes", "shape", "expected"),
    [
        (AllReduce, {"op": "sum"}, ("N", "?a", 4), ("N", "?a", 4)),
        (RootBroadcast, {"root": 1}, ("N", 4), ("N", 4)),
        (RootSum, {"root": 1}, ("N", 4), ("N", 4)),
        (ReduceScatter, {"op": "sum"}, (6, "N"), (3, "N")),
        (ReduceScatter, {"op": "sum", "dim": 1}, (6, "N"), (6, "?")),
        (AllGather, {"dim": -1}, (6, 5), (6, 10)),
        (AllGather, {}, ("N", 5), ("?", 5)),
        (AllToAll, {"split": 0, "concat": 1}, (6, 5), (3, 10)),
        (AllToAll, {"split": 1, "concat": 0}, (5, "N"), (10, "?")),
        (AllToAll, {"split": 0, "concat": -2}, ("N", 5), ("N", 5)),
    ],
)
def test_result_shapes_follow_from_the_group(
    collective: type[Collective], attributes: dict[str, Any], shape: Any, expected: Any
) -> None:
    layout = Layout("col_major")
    assert given(collective, Tensor(shape, FP32, layout), 2, **attributes) == Tensor(expected, FP32, layout)
    alone = {name: value for name, value in attributes.items() if name != "root"}
    assert given(collective, Tensor(shape, FP32), 1, **alone) == Tensor(shape, FP32)


@pytest.mark.parametrize(
    ("collective", "type_", "attributes", "category", "message"),
    [
        (AllReduce, Tensor((4,), FP32), {"op": "prod"}, "distributed", "op is 'prod'"),
        (AllReduce, Tensor((4,), dtype("bool")), {"op": "sum"}, "types", "sum is not defined on bool"),
        (AllReduce, Tensor((4,), dtype("complex64")), {"op": "max"}, "types", "max is not defined on complex64"),
        (ReduceScatter, Tensor((5,), FP32), {"op": "sum"}, "distributed", "has no 2 equal parts"),
        (ReduceScatter, Tensor((4,), FP32), {"op": "sum", "dim": 1}, "shapes", "axis 1 is out of range"),
        (ReduceScatter, Scalar(FP32), {"op": "sum"}, "types", "not a tensor"),
        (AllGather, Tensor((4,), FP32), {"dim": -2}, "shapes", "axis -2 is out of range"),
        (AllToAll, Tensor((4, 3), FP32), {"split": 1}, "distributed", "has no 2 equal parts"),
        (AllToAll, Tensor((4, 3), FP32), {"concat": 2}, "shapes", "axis 2 is out of range"),
        (RootBroadcast, Tensor((4,), FP32), {"root": 2}, "distributed", "root 2 is not along axis dp"),
        (RootBroadcast, Tensor((4,), FP32), {"root": -1}, "distributed", "root -1 is not along axis dp"),
        (RootSum, Tensor((4,), dtype("bool")), {}, "types", "not defined on bool"),
    ],
)
def test_what_a_collective_does_not_take(
    collective: type[Collective], type_: Numeric, attributes: dict[str, Any], category: str, message: str
) -> None:
    with pytest.raises(Refusal, match=message) as refused:
        given(collective, type_, 2, **attributes)
    assert refused.value.category == category


@pytest.mark.parametrize("collective", [AllReduce, ReduceScatter])
@pytest.mark.parametrize("op", ["prod", "mean"])
def test_what_products_and_means_are_computed_by_is_told(collective: type[Collective], op: str) -> None:
    with pytest.raises(Refusal, match=f"op is '{op}'") as refused:
        given(collective, Tensor((4,), FP32), 2, op=op)
    assert refused.value.remedy == f"tessera.collective.{collective.name.rpartition('.')[2]} has it"


def test_an_axis_that_was_never_resolved_is_refused() -> None:
    with pytest.raises(Refusal, match="axis dp is of no mesh"):
        AllReduce(Tensor((4,), FP32), "dp", op="sum").results()


ONE = {"g": Mesh(("dp", "tp"), (4, 2))}
TWO = {**ONE, "h": Mesh(("pp",), (8,))}


def test_the_mesh_in_force_is_the_only_one_or_the_one_that_is_named() -> None:
    assert resolve_axis(ONE, "tp", None) == ("g", 2)
    assert resolve_axis(TWO, "pp", "h") == ("h", 8)


@pytest.mark.parametrize(
    ("meshes", "axis", "mesh", "message", "remedy"),
    [
        ({}, "dp", None, "the module declares none", "mesh g = mesh<axes=\\[dp\\]"),
        (TWO, "dp", None, "which mesh has the axis dp\\? There are g, h", "mesh=g"),
        (ONE, "dp", "gg", "unknown mesh 'gg'", "did you mean g\\?"),
        (ONE, "dpp", None, "mesh g has no axis 'dpp'", "did you mean dp\\?"),
        (TWO, "dp", "h", "mesh h has no axis 'dp'", ""),
    ],
)
def test_an_axis_of_no_mesh_is_refused(meshes: Any, axis: str, mesh: str | None, message: str, remedy: str) -> None:
    with pytest.raises(Refusal, match=message) as refused:
        resolve_axis(meshes, axis, mesh)
    assert refused.value.category == "distributed"
    assert refused.value.clause
    assert re.search(remedy, refused.value.remedy)


def test_equal_parts_are_asked_for_while_running_where_a_dimension_was_unknown() -> None:
    expression, inputs = 'dist.reduce_scatter(X, axis=dp, op="sum")', [{"X": array("fp32", [1, 2, 3])}] * 2
    with pytest.raises(Rejection) as refused:
        on_mesh(LINE.format(2), "X: tensor<?xfp32>", expression, *inputs)
    (told,) = refused.value.diagnostics
    assert (told.category, told.phase) == ("distributed", "execute")
    assert "dimension 0 of tensor<3xfp32> has no 2 equal parts, on every rank" in told.message


# Derivatives: of the sum, over all ranks, of the elements of y


@pytest.mark.parametrize(
    ("collective", "shape", "result"),
    [
        ('all_reduce(X, axis=tp, op="sum")', (2, 3), (2, 3)),
        ('all_reduce(X, axis=dp, op="sum")', (2, 3), (2, 3)),
        ('reduce_scatter(X, axis=tp, op="sum", dim=1)', (2, 3), (2, 1)),
        ('reduce_scatter(X, axis=dp, op="sum")', (2, 3), (1, 3)),
        ("all_gather(X, axis=dp, dim=0)", (2, 3), (4, 3)),
        ("all_gather(X, axis=dp, dim=-1)", (2, 3), (2, 6)),
        ("all_to_all(X, axis=dp, split=0, concat=1)", (2, 3), (1, 6)),
        ("all_to_all(X, axis=tp, split=1, concat=1)", (2, 3), (2, 3)),
        ("broadcast(X, axis=tp, root=2)", (2, 3), (2, 3)),
        ("broadcast(dist.broadcast(X, axis=tp, root=2), axis=dp, root=1)", (2, 3), (2, 3)),
    ],
)
def test_the_adjoint_of_a_linear_collective_is_its_transpose(
    collective: str, shape: tuple[int, ...], result: tuple[int, ...]
) -> None:
    """For G the gradient of the sum of W * C(X), the sum of W * C(V) is that of G * V; both exact in integers."""
    random = np.random.Generator(np.random.PCG64(5))
    xs, vs, ws = ([random.integers(-9, 9, size) for _ in range(6)] for size in (shape, shape, result))
    x, w = (f"tensor<{'x'.join(map(str, size))}xfp64>" for size in (shape, result))
    gradient = f"op.grad(W * dist.{collective}, X)"
    inputs = [{"X": array("fp64", a), "W": array("fp64", b)} for a, b in zip(xs, ws, strict=True)]
    gradients = on_mesh(GRID, f"X: {x}, W: {w}", gradient, *inputs)
    images = on_mesh(GRID, f"X: {x}", f"dist.{collective}", *[{"X": array("fp64", v)} for v in vs])
    assert [each.shape for each in gradients] == [shape] * 6
    forward = sum(float((w * image.values).sum()) for w, image in zip(ws, images, strict=True))
    backward = sum(float((g.values * v).sum()) for g, v in zip(gradients, vs, strict=True))
    assert forward == backward
    assert any(g.values.any() for g in gradients)


def test_a_gradient_comes_from_every_rank() -> None:
    """y = (x0**2 + x1**2)**2 on both ranks, so the derivative of their sum is 8 x (x0**2 + x1**2)."""
    body = 'let S: fp64 = dist.all_reduce(X * X, axis=dp, op="sum"); return op.grad(S * S, X);'
    source = f"module m {{ {LINE.format(2)} func f(X: fp64) {{ {body} }} }}"
    results = execute_on_mesh(compile_source(source).module, "f", [{"X": array("fp64", x)} for x in (1.0, 2.0)])
    assert [float(result.values) for (result,) in results] == [40.0, 80.0]


@pytest.mark.parametrize("op", ["max", "min"])
def test_the_gradient_of_an_extreme_is_shared_by_those_who_are_it(op: str) -> None:
    rows = [[1.0, 5.0, 2.0], [1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [1.0, 9.0, 9.0]]
    results = on_mesh(
        LINE.format(4),
        "X: tensor<3xfp64>, W: tensor<3xfp64>",
        f'op.grad(W * dist.all_reduce(X, axis=dp, op="{op}"), X)',
        *[{"X": array("fp64", row), "W": array("fp64", [1.0, 2.0, 3.0 * rank])} for rank, row in enumerate(rows)],
    )
    expected = {
        "max": [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 8.0, 18.0]],
        "min": [[1.0, 0.0, 6.0], [1.0, 4.0, 6.0], [1.0, 4.0, 6.0], [1.0, 0.0, 0.0]],
    }
    assert [each.values.tolist() for each in results] == expected[op]


def test_a_rank_whose_result_does_not_depend_on_a_collective_takes_part_in_its_adjoint() -> None:
    """Rank 0 gives x0 + x1, rank 1 only 10 * x1; the sum's derivatives are 1 and 11."""
    body = """
      let S: fp64 = dist.all_reduce(X, axis=dp, op="sum");
      let y: fp64 = X * 10.0;
      if (first) { y = S; }
      return op.grad(y, X);
    """
    source = f"module m {{ {LINE.format(2)} func f(X: fp64, first: bool) {{ {body} }} }}"
    inputs = [{"X": array("fp64", 2.0), "first": array("bool", first)} for first in (True, False)]
    results = execute_on_mesh(compile_source(source).module, "f", inputs)
    assert [float(result.values) for (result,) in results] == [1.0, 11.0]


def test_gradients_across_ranks_can_be_differentiated_again() -> None:
    """s**3 on both ranks, of s = x0 + x1 = 3: the derivative of their sum is 6 s**2, and that of its own sum 24 s."""
    body = """
      let S: fp64 = dist.all_reduce(X, axis=dp, op="sum");
      let first: fp64 = op.grad(S * S * S, X);
      return first, op.grad(first, X);
    """
    source = f"module m {{ {LINE.format(2)} func f(X: fp64) {{ {body} }} }}"
    results = execute_on_mesh(compile_source(source).module, "f", [{"X": array("fp64", x)} for x in (1.0, 2.0)])
    assert [[float(each.values) for each in rank] for rank in results] == [[54.0, 72.0]] * 2
