"""Collectives and the ranks that meet in them: words of disagreement and orders of progress."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.graph.collectives import AllReduce, resolve_axis
from tessera_reference.graph.execution import Choice, Group, UnknownFunction, execute_on_mesh
from tessera_reference.graph.interpreter import InputMismatch
from tessera_reference.ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct
from tessera_reference.ir.operation import Module, Refusal
from tessera_reference.ir.types import Mesh, Shard, Tensor
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

LINE = "mesh g = mesh<axes=[dp], shape=[{}]>;"


def array(name: str, values: object) -> Array:
    return Array.checked(dtype(name), np.asarray(values, dtype(name).carrier))


def on_mesh(mesh: str, signature: str, expression: str, *inputs: dict[str, Array]) -> list[Array]:
    source = f"module m {{ {mesh} func f({signature}) {{ return {expression}; }} }}"
    ranks = execute_on_mesh(compile_source(source, "t.tsr").module, "f", inputs)
    return [result for (result,) in ranks]


# Types

FP32 = dtype("fp32")


def test_an_axis_that_was_never_resolved_is_refused() -> None:
    with pytest.raises(Refusal, match="axis dp is of no mesh"):
        AllReduce(Tensor((4,), FP32), "dp", op="sum").results()


ONE = {"g": Mesh(("dp", "tp"), (4, 2))}
TWO = {**ONE, "h": Mesh(("pp",), (8,))}


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


SQUARE = "mesh g = mesh<axes=[dp, tp], shape=[2, 2]>;"


def orders() -> dict[str, Choice]:
    """Ways to choose who goes on next."""
    return {"first": min, "last": max, "seed 1": random.Random(1).choice, "seed 2": random.Random(2).choice}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_a_group_has_the_ranks_that_differ_along_its_axes_only(shape: list[int], data: st.DataObject) -> None:
    """Every rank of a group finds one object, so that thousands of ranks do not each list all of them."""
    axes = tuple("abcd"[: len(shape)])
    mesh, along = Mesh(axes, tuple(shape)), data.draw(st.lists(st.sampled_from(axes), min_size=1, unique=True))
    places = {rank: np.unravel_index(rank, shape) for rank in range(mesh.size)}
    fixed = [index for index, axis in enumerate(axes) if axis not in along]
    for rank, place in places.items():
        alike = [other for other, there in places.items() if all(there[at] == place[at] for at in fixed)]
        group = Group.in_shard("g", mesh, Shard(tuple(along)), rank)
        assert group.ranks == tuple(alike)
        assert all(Group.in_shard("g", mesh, Shard(tuple(along)), other) is group for other in alike)


def compiled(mesh: str, *lines: str) -> Module:
    """A module whose line 1 declares meshes; the given lines follow."""
    return compile_source("\n".join([f"module m {{ {mesh}", *lines, "}"]), "t.tsr").module


def rows(name: str, values: Sequence[object]) -> list[dict[str, Array]]:
    return [{"X": array(name, value)} for value in values]


def refused(module: Module, inputs: Sequence[Mapping[str, Array]]) -> Diagnostic:
    """The one diagnostic of f, which is the same in every order of progress."""
    told = []
    for choice in orders().values():
        with pytest.raises(Rejection) as rejection:
            execute_on_mesh(module, "f", inputs, choice=choice)
        told.append(rejection.value.diagnostics)
    assert all(message == told[0] for message in told)
    (only,) = told[0]
    assert only.phase == "execute"
    return only


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_no_order_of_progress_changes_a_bit(data: st.DataObject) -> None:
    """Programs that meet along either axis, some ranks more often than others; now and then they do not meet."""
    collectives = ['all_reduce(s, axis={}, op="sum")', 'all_reduce(s, axis={}, op="max")', "broadcast(s, axis={})"]
    steps = data.draw(st.lists(st.tuples(st.sampled_from(collectives), st.sampled_from(["dp", "tp"])), max_size=5))
    bounds = data.draw(st.lists(st.integers(-1, 4), min_size=len(steps), max_size=len(steps)))
    body = "".join(
        f"if (X > {bound}) {{ s = dist.{collective.format(axis)}; }} "
        for (collective, axis), bound in zip(steps, bounds, strict=True)
    )
    module = compiled(SQUARE, f"func f(X: int32) {{ let s: int32 = X; {body} return s; }}")
    inputs = rows("int32", data.draw(st.permutations([0, 1, 2, 3])))
    outcomes: list[object] = []
    for choice in orders().values():
        try:
            results = execute_on_mesh(module, "f", inputs, choice=choice)
            outcomes.append([[array.to_bits() for array in rank] for rank in results])
        except Rejection as rejection:
            outcomes.append(rejection.diagnostics)
    assert all(outcome == outcomes[0] for outcome in outcomes)


# Ranks that do not come together

MISMATCHES = {
    "shape": (
        'return dist.all_reduce(X, axis=dp, op="sum");',
        [[1], [1], [1, 2]],
        "dist.all_reduce: the shape of ranks 0 and 2 differs: [1] and [2]",
        "LANG-09-04",
    ),
    "op": (
        'if (X[0] > 1) { X = dist.all_reduce(X, axis=dp, op="sum"); }\n'
        'else { X = dist.all_reduce(X, axis=dp, op="max"); } return X;',
        [[1], [2], [2]],
        "dist.all_reduce: the op of ranks 0 and 1 differs: max and sum",
        "AMB-RT-13",
    ),
    "root": (
        "if (X[0] > 1) { X = dist.broadcast(X, axis=dp, root=1); }\nelse { X = dist.broadcast(X, axis=dp); } return X;",
        [[1], [1], [2]],
        "dist.broadcast: the root of ranks 0 and 2 differs: 0 and 1",
        "AMB-RT-13",
    ),
    "operation": (
        'if (X[0] > 1) { X = dist.all_reduce(X, axis=dp, op="sum"); }\n'
        "else { X = dist.broadcast(X, axis=dp); } return X;",
        [[2], [2], [1]],
        "dist.broadcast: the operation of ranks 0 and 2 differs: dist.all_reduce and dist.broadcast",
        "AMB-RT-13",
    ),
}


@pytest.mark.parametrize(("body", "values", "message", "clause"), MISMATCHES.values(), ids=MISMATCHES)
def test_ranks_that_come_to_different_collectives(body: str, values: list[object], message: str, clause: str) -> None:
    module = compiled(LINE.format(3), "func f(X: tensor<?xint32>) {", body, "}")
    told = refused(module, rows("int32", values))
    assert (told.category, told.message, told.clause) == ("distributed", message, clause)
    assert told.remedy
    assert told.requirement


def test_a_mismatch_names_both_places() -> None:
    lines = [
        "func f(X: int32) {",
        "  if (X > 1) {",
        '    X = dist.all_reduce(X, axis=dp, op="sum");',
        "  } else {",
        '    X = dist.all_reduce(X, axis=dp, op="min");',
        "  }",
        "  return X;",
        "}",
    ]
    told = refused(compiled(LINE.format(4), *lines), rows("int32", [2, 2, 1, 2]))
    assert told.span.line == 6
    assert told.operands == (
        "ranks 0, 1 and 3: dist.all_reduce(int32, axis=dp, mesh=g, op=sum) in t.tsr:4:9",
        "rank 2: dist.all_reduce(int32, axis=dp, mesh=g, op=min) in t.tsr:6:9",
    )


AXES = [
    "func f(X: int32) {",
    '  if (X > 0) { X = dist.all_reduce(X, axis=dp, op="sum"); }',
    '  else { X = dist.all_reduce(X, axis=tp, op="sum"); }',
    "  return X;",
    "}",
]


def test_ranks_that_wait_along_different_axes() -> None:
    told = refused(compiled(SQUARE, *AXES), rows("int32", [1, 0, 0, 1]))
    circle = "rank 2, which waits along axis tp for rank 3, which waits along axis dp for rank 1, which waits"
    assert told.message == f"dist.all_reduce: rank 0 waits along axis dp for {circle} along axis tp for rank 0"
    assert (told.category, told.clause, told.span.line) == ("distributed", "LANG-11-11", 3)
    assert told.operands == (
        "ranks 0 and 3: dist.all_reduce(int32, axis=dp, mesh=g, op=sum) in t.tsr:3:20",
        "ranks 1 and 2: dist.all_reduce(int32, axis=tp, mesh=g, op=sum) in t.tsr:4:14",
    )


def test_a_rank_that_waits_for_one_that_has_ended() -> None:
    """Ranks 0 and 1 meet along tp; then rank 2 waits there for rank 3, which goes along dp first and finds nobody."""
    told = refused(compiled(SQUARE, *AXES), rows("int32", [0, 0, 0, 1]))
    assert told.message == "dist.all_reduce: rank 3 waits for rank 1, which has ended"
    assert told.operands[0] == "ranks 0 and 1: ended"
    module = compiled(
        LINE.format(12), 'func f(X: int32) { if (X < 9) { X = dist.all_reduce(X, axis=dp, op="sum"); } return X; }'
    )
    told = refused(module, rows("int32", [*range(6), 9, 6, 7, 9, 8, 8]))
    assert told.message == "dist.all_reduce: rank 0 waits for rank 6, which has ended"
    assert [operand.partition(":")[0] for operand in told.operands] == [
        "ranks 0 to 5, 7, 8, 10 and 11",
        "ranks 6 and 9",
    ]


def test_a_long_circle_is_told_in_few_words() -> None:
    """Six of the corners of a cube, each waiting along another edge for the next."""
    edges = {0: "c", 1: "b", 3: "a", 7: "c", 6: "b", 4: "a", 2: "a", 5: "a"}
    branches = [f"if (X == {rank}) {{ X = dist.broadcast(X, axis={axis}); }}" for rank, axis in edges.items()]
    module = compiled("mesh g = mesh<axes=[a, b, c], shape=[2, 2, 2]>;", "func f(X: int32) {", *branches, "return X; }")
    told = refused(module, rows("int32", range(8)))
    assert told.message.startswith("dist.broadcast: rank 0 waits along axis c for rank 1, which waits along axis b for")
    assert told.message.endswith("for rank 7, which waits along axis c for rank 6, and so on through 6 ranks")


def test_many_places_are_told_in_few_words() -> None:
    branches = [f"if (X == {rank}) {{ X = dist.broadcast(X, axis=dp); }}" for rank in range(11)]
    module = compiled(LINE.format(12), "func f(X: int32) {", *branches, "return X; }")
    told = refused(module, rows("int32", range(12)))
    assert told.operands[7] == "rank 7: dist.broadcast(int32, axis=dp, mesh=g, root=0) in t.tsr:10:19"
    assert told.operands[8:] == ("others at 4 more places",)


# Errors of ranks


def test_the_error_of_one_rank_names_it_and_those_who_wait_for_it_are_not_accused() -> None:
    body = 'let y: int32 = 12 / X; return dist.all_reduce(y, axis=dp, op="sum");'
    told = refused(compiled(LINE.format(4), f"func f(X: int32) {{ {body} }}"), rows("int32", [1, 0, 3, 0]))
    assert told.message.startswith("divide: ")
    assert told.message.endswith(", on ranks 1 and 3")
    assert told.category == "numerics"


def test_what_is_too_much_for_the_machine_is_unsupported() -> None:
    module = compiled(LINE.format(2), "func f(X: tensor<Nxint8>) { return dist.all_gather(X, axis=dp); }")
    wide = Array(dtype("int8"), np.broadcast_to(np.int8(1), (1 << 26,)))
    with pytest.raises(UnsupportedConstruct, match="more_memory"):
        execute_on_mesh(module, "f", [{"X": wide}] * 2)


# What the ranks of a run are


def test_inputs_are_asked_for_every_rank() -> None:
    module = compiled(SQUARE, "func f(X: int32) { return X; }")
    with pytest.raises(
        InputMismatch, match="ranks: expected one set of inputs for each of the 4 ranks of mesh g, given 3"
    ):
        execute_on_mesh(module, "f", rows("int32", [1, 2, 3]))
    with pytest.raises(InputMismatch, match="input X of rank 2: expected int32, given fp32"):
        execute_on_mesh(module, "f", [*rows("int32", [1, 2]), {"X": array("fp32", 1)}, *rows("int32", [4])])
    with pytest.raises(UnknownFunction, match="no function 'g'"):
        execute_on_mesh(module, "g", rows("int32", [1, 2, 3, 4]))


BOTH = "mesh g = mesh<axes=[dp], shape=[2]>; mesh h = mesh<axes=[pp], shape=[3]>;"


@pytest.mark.parametrize(
    ("meshes", "mesh", "message"),
    [
        ("", None, "@f: the module declares no mesh"),
        ("", "g", "@f: the module has no mesh 'g'"),
        (BOTH, "k", "@f: the module has no mesh 'k'"),
        (BOTH, None, "@f: which mesh runs it\\? g has 2 ranks, h has 3 ranks"),
    ],
)
def test_a_run_without_one_mesh_is_refused(meshes: str, mesh: str | None, message: str) -> None:
    with pytest.raises(Rejection, match=message) as rejection:
        execute_on_mesh(compiled(meshes, "func f(X: int32) { return X; }"), "f", rows("int32", [1]), mesh)
    assert rejection.value.diagnostics[0].category == "distributed"


def test_calls_nested_too_deep_are_unsupported() -> None:
    depth = 2000
    first = "func f0(X: int32) -> int32 { return dist.broadcast(X, axis=dp); }"
    others = [f"func f{n}(X: int32) -> int32 {{ return f{n - 1}(X); }}" for n in range(1, depth)]
    module = compiled(LINE.format(1), first, *others)
    with pytest.raises(UnsupportedConstruct, match="deep_calls"):
        execute_on_mesh(module, f"f{depth - 1}", rows("int32", [1]))


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
    assert [result.values.tolist() for result in results] == expected[op]
