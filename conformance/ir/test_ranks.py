"""Programs on every rank of a mesh: what collectives give, and ranks that disagree (sections 5, 8.3, 9, 11 and 15)."""

import pytest

from tessera_conformance.dsl import func, module, tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.protocol import Rejected, Returned
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, judge_declared

pytestmark = feature("mesh-execution")

GRID = "  mesh g = mesh<axes=[dp, tp], shape=[2, 3]>;"
"""Ranks 0 to 2 have dp = 0, ranks 3 to 5 have dp = 1."""
SQUARE = "  mesh g = mesh<axes=[dp, tp], shape=[2, 2]>;"
LATE = ("execute", "call")
"""The phases in which ranks may be found to disagree: not before they have their inputs."""


def line(ranks):
    """A mesh of one axis."""
    return f"  mesh g = mesh<axes=[dp], shape=[{ranks}]>;"


def meshed(mesh, *statements, parameters="X: tensor<?xint32>", attributes=""):
    """A module with a mesh and one function."""
    return module(mesh, func(*statements, parameters=parameters, attributes=attributes))


def asked(impl, source, rows, **more):
    """The observation of a run with one X for each rank."""
    given = more if impl.level == "strict" else {"level": impl.level, **more}
    return impl.language.execute_ranks(source=source, function="f", ranks=[{"X": row} for row in rows], **given)


def on_ranks(impl, check, source, rows, **more):
    """The one value that each rank returns."""
    ranks = check.returns(asked(impl, source, rows, **more))["ranks"]
    check.equal([len(rank["outputs"]) for rank in ranks], [1] * len(rows), "the number of values of each rank")
    return [rank["outputs"][0] for rank in ranks]


def expect(impl, check, source, rows, expected, dtype="int32", **more):
    """Every rank returns what is expected of it."""
    results = on_ranks(impl, check, source, [tensor_of(dtype, row) for row in rows], **more)
    for rank, (result, values) in enumerate(zip(results, expected, strict=True)):
        check.bits(result, tensor_of(dtype, values), f"the result of rank {rank}")


# What collectives give

ROWS = [[10 * rank, 10 * rank + 1, 10 * rank + 2] for rank in range(6)]


@clause("LANG-05.2-05", "LANG-09-01")
@pytest.mark.parametrize(
    ("axis", "op", "expected"),
    [
        ("tp", "sum", [[30, 33, 36]] * 3 + [[120, 123, 126]] * 3),
        ("dp", "sum", [[30, 32, 34], [50, 52, 54], [70, 72, 74]] * 2),
        ("tp", "max", [ROWS[2]] * 3 + [ROWS[5]] * 3),
        ("dp", "max", ROWS[3:] * 2),
        ("tp", "min", [ROWS[0]] * 3 + [ROWS[3]] * 3),
        ("dp", "min", ROWS[:3] * 2),
    ],
    ids=["sum-tp", "sum-dp", "max-tp", "max-dp", "min-tp", "min-dp"],
)
def test_an_all_reduce_combines_the_ranks_along_its_axis(impl, check, axis, op, expected):
    """The ranks that differ only in that coordinate are a group; each is given its combination."""
    source = meshed(GRID, f'return dist.all_reduce(X) @{{axis={axis}, op="{op}"}};', parameters="X: tensor<3xint32>")
    expect(impl, check, source, ROWS, expected)


@clause("LANG-05.2-05", "LANG-09-03")
def test_two_operators_along_one_axis_are_two_collectives(impl, check):
    """The largest less the smallest of three ranks: neither is computed as the other."""
    largest, smallest = (f'dist.all_reduce(X, axis=tp, op="{op}")' for op in ("max", "min"))
    source = meshed(GRID, f"return {largest} - {smallest};", parameters="X: tensor<3xint32>")
    expect(impl, check, source, ROWS, [[20] * 3] * 6)


@clause("LANG-09-01")
@pytest.mark.parametrize(("axis", "stride", "extent"), [("a", 6, 2), ("b", 2, 3), ("c", 1, 2)])
def test_ranks_lie_row_major_on_the_grid(impl, check, axis, stride, extent):
    """On 2 x 3 x 2, the last axis counts fastest: with one bit a rank, a sum says who took part (AMB-RT-52)."""
    mesh = "  mesh g = mesh<axes=[a, b, c], shape=[2, 3, 2]>;"
    source = meshed(mesh, f'return dist.all_reduce(X) @{{axis={axis}, op="sum"}};', parameters="X: int32")
    first = [rank - rank // stride % extent * stride for rank in range(12)]
    expected = [sum(1 << (start + place * stride) for place in range(extent)) for start in first]
    expect(impl, check, source, [1 << rank for rank in range(12)], expected)


@clause("LANG-09-01", "LANG-05.1-02")
def test_meshes_of_one_name_in_two_programs_are_two(impl, check):
    """Of 2 x 3 and of 3 x 2 ranks, with the same axes: whether three or two ranks are along the second."""
    for rows, columns in ((2, 3), (3, 2), (2, 3)):
        mesh = f"  mesh g = mesh<axes=[dp, tp], shape=[{rows}, {columns}]>;"
        source = meshed(mesh, 'return dist.all_reduce(X) @{axis=tp, op="sum"};', parameters="X: int32")
        sums = [sum(1 << (rank // columns * columns + place) for place in range(columns)) for rank in range(6)]
        expect(impl, check, source, [1 << rank for rank in range(6)], sums)


@clause("LANG-08.3-03")
def test_collectives_along_every_axis_cover_the_mesh(impl, check):
    """After one along each axis, every rank knows something of every other."""
    body = 'return dist.all_reduce(dist.all_reduce(X) @{axis=dp, op="sum"}) @{axis=tp, op="sum"};'
    source = meshed(GRID, body, parameters="X: int32")
    expect(impl, check, source, [10**rank for rank in range(6)], [111111] * 6)


@clause("LANG-08.3-03")
def test_what_follows_a_collective_sees_its_result(impl, check):
    """Each rank adds its own to what all have given, again and again; no rank runs ahead (AMB-RT-58, AMB-LANG-29)."""
    body = [
        "let s: int32 = X;",
        'for (i in 0:4) { s = dist.all_reduce(s) @{axis=dp, op="sum"} + X; }',
        "return s;",
    ]
    values = [1, 10, 100]
    state = values
    for _ in range(4):
        state = [sum(state) + own for own in values]
    expect(impl, check, meshed(line(3), *body, parameters="X: int32"), values, state)


@clause("LANG-02.3-54")
def test_a_dist_statement_does_not_change_what_a_rank_holds(impl, check):
    """It yields nothing and communicates nothing (AMB-LANG-13)."""
    source = meshed(line(3), 'dist.all_reduce(X) @{axis=dp, op="sum"};', "return X;", parameters="X: int32")
    expect(impl, check, source, [1, 2, 3], [1, 2, 3])


@clause("LANG-13.2-03")
def test_the_example_reduces_a_product_over_its_axis(impl, check):
    """On the mesh of section 13.2, 4 x 2: the sum of X @ X over dp, for each tp on its own."""
    mesh = "  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;"
    body = 'let Y: tensor<DxDxbf16> = dist.all_reduce(op.matmul(X, X)) @{axis=dp, op="sum"};'
    source = meshed(mesh, body, "return Y;", parameters="X: tensor<DxDxbf16; layout=row_major>")
    rows = [[[rank, 1], [0, 1]] for rank in range(8)]
    squares = [[[rank * rank, rank + 1], [0, 1]] for rank in range(8)]
    sums = [
        [[sum(squares[rank][i][j] for rank in range(tp, 8, 2)) for j in range(2)] for i in range(2)] for tp in range(2)
    ]
    expect(impl, check, source, rows, sums * 4, "bf16")


@feature("mesh-collectives")
@clause("LANG-09-02")
@pytest.mark.parametrize(
    ("call", "rows", "expected"),
    [
        ('reduce_scatter(X) @{axis=tp, op="sum"}', ROWS, [[30], [33], [36], [120], [123], [126]]),
        ('reduce_scatter(X) @{axis=tp, op="max"}', ROWS, [[20], [21], [22], [50], [51], [52]]),
        ("all_gather(X) @{axis=tp}", [[rank] for rank in range(6)], [[0, 1, 2]] * 3 + [[3, 4, 5]] * 3),
        ("all_gather(X) @{axis=dp}", [[rank] for rank in range(6)], [[0, 3], [1, 4], [2, 5]] * 2),
        ("broadcast(X) @{axis=tp}", ROWS, [ROWS[0]] * 3 + [ROWS[3]] * 3),
        ("broadcast(X) @{axis=dp, root=1}", ROWS, ROWS[3:] * 2),
        (
            "all_to_all(X) @{axis=tp}",
            ROWS,
            [[0, 10, 20], [1, 11, 21], [2, 12, 22], [30, 40, 50], [31, 41, 51], [32, 42, 52]],
        ),
    ],
    ids=["scatter", "scatter-max", "gather-tp", "gather-dp", "broadcast", "broadcast-root", "all-to-all"],
)
def test_the_other_collectives_hand_out_parts_in_order_of_the_axis(impl, check, call, rows, expected):
    """Parts, roots and what is put together are counted by the coordinate along the axis (AMB-LANG-141)."""
    expect(impl, check, meshed(GRID, f"return dist.{call};"), rows, expected)


@feature("mesh-collectives")
@clause("LANG-09-02")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("all_gather(X) @{axis=dp}", [[1, 1, 0, 0, 1, 0, 0, 0, 1]] * 3),
        ("broadcast(X) @{axis=dp, root=1}", [[0, 1, 0]] * 3),
        ("all_to_all(X) @{axis=dp}", [[1, 0, 0], [1, 1, 0], [0, 0, 1]]),
    ],
    ids=["gather", "broadcast", "all-to-all"],
)
def test_collectives_that_move_values_take_bools(impl, check, call, expected):
    """bool has no sum, and is moved as int32 is (AMB-LANG-268)."""
    rows = [[1, 1, 0], [0, 1, 0], [0, 0, 1]]

    def observed(dtype):
        source = meshed(line(3), f"return dist.{call};", parameters=f"X: tensor<3x{dtype}>")
        return source, asked(impl, source, [tensor_of(dtype, row) for row in rows])

    (source, answer), (_, of_numbers) = observed("bool"), observed("int32")
    refuses = isinstance(answer, Rejected) and isinstance(of_numbers, Returned)
    check.reading("AMB-LANG-268", "numbers alone", refuses)
    expect(impl, check, source, rows, expected, "bool")


@feature("mesh-collectives")
@clause("LANG-09-02")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('reduce_scatter(X) @{axis=dp, op="sum", dim=1}', [[[11], [33]], [[22], [44]]]),
        ("all_gather(X) @{axis=dp, dim=1}", [[[1, 2, 10, 20], [3, 4, 30, 40]]] * 2),
        ("all_to_all(X) @{axis=dp, split=0, concat=1}", [[[1, 2, 10, 20]], [[3, 4, 30, 40]]]),
        ("all_to_all(X) @{axis=dp, split=1, concat=0}", [[[1], [3], [10], [30]], [[2], [4], [20], [40]]]),
    ],
    ids=["scatter", "gather", "rows-to-columns", "columns-to-rows"],
)
def test_the_dimension_of_a_collective_is_chosen(impl, check, call, expected):
    """dim, split and concat count the dimensions of the operand (AMB-LANG-141)."""
    source = meshed(line(2), f"return dist.{call};", parameters="X: tensor<2x2xint32>")
    expect(impl, check, source, [[[1, 2], [3, 4]], [[10, 20], [30, 40]]], expected)


@feature("mesh-collectives")
@clause("LANG-09-02")
@pytest.mark.parametrize(("split", "concat"), [(0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("ranks", [3, 5, 8])
def test_an_all_to_all_puts_parts_together_in_order_of_the_axis(impl, check, ranks, split, concat):
    """More than two ranks exchange parts, along the dimension by which they are split and the other (AMB-LANG-141)."""
    extents = (ranks, 2 * ranks)
    type_ = f"tensor<{extents[0]}x{extents[1]}xint32>"
    source = meshed(line(ranks), f"return dist.all_to_all(X) @{{axis=dp, split={split}, concat={concat}}};",
                    parameters=f"X: {type_}")  # fmt: skip
    rows = [
        [[1000 * rank + 100 * i + j for j in range(extents[1])] for i in range(extents[0])] for rank in range(ranks)
    ]

    def part(matrix, rank):
        size = extents[split] // ranks
        cut = slice(rank * size, (rank + 1) * size)
        return matrix[cut] if split == 0 else [row[cut] for row in matrix]

    def joined(parts):
        aside = [[value for row in rows for value in row] for rows in zip(*parts, strict=True)]
        return [row for part in parts for row in part] if concat == 0 else aside

    expect(impl, check, source, rows, [joined([part(row, rank) for row in rows]) for rank in range(ranks)])


@feature("mesh-collectives")
@clause("LANG-05.5-01")
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather"])
def test_a_gradient_goes_back_along_the_dimension_of_the_collective(impl, check, collective, dim):
    """Three axes: twice what ranks have together, or four times what each has (AMB-LANG-143, AMB-LANG-58)."""
    attributes = f"axis=dp, dim={dim}" + (', op="sum"' if collective == "reduce_scatter" else "")
    extents = [2, 2, 2]
    extents[dim] = 1 if collective == "reduce_scatter" else 4
    type_ = f"tensor<{'x'.join(map(str, extents))}xfp64>"
    body = [f"let S: {type_} = dist.{collective}(X) @{{{attributes}}};", "return op.grad(S * S, X);"]
    rows = [
        [[[10 * rank + 4 * i + 2 * j + k for k in range(2)] for j in range(2)] for i in range(2)] for rank in range(2)
    ]

    def gradient(rank, i, j, k):
        together = sum(row[i][j][k] for row in rows)
        return 2 * together if collective == "reduce_scatter" else 4 * rows[rank][i][j][k]

    places = range(2)
    expected = [[[[gradient(rank, i, j, k) for k in places] for j in places] for i in places] for rank in places]
    expect(impl, check, meshed(line(2), *body, parameters="X: tensor<2x2x2xfp64>"), rows, expected, "fp64")


@feature("mesh-collectives")
@clause("LANG-05.5-01")
@pytest.mark.parametrize(("split", "concat"), [(0, 1), (1, 0), (1, 1)])
def test_a_gradient_goes_back_across_the_dimensions_of_an_all_to_all(impl, check, split, concat):
    """Each element goes to one place, and its slope, twice what it is, comes back (AMB-LANG-143, AMB-LANG-58)."""
    call = f"dist.all_to_all(X) @{{axis=dp, split={split}, concat={concat}}}"
    body = [f"let S: tensor<?x?xfp64> = {call};", "return op.grad(S * S, X);"]
    rows = [[[10 * rank + 2 * i + j for j in range(2)] for i in range(2)] for rank in range(2)]
    expected = [[[2 * number for number in row] for row in matrix] for matrix in rows]
    expect(impl, check, meshed(line(2), *body, parameters="X: tensor<2x2xfp64>"), rows, expected, "fp64")


@feature("mesh-collectives")
@clause("LANG-09-02")
@pytest.mark.parametrize(
    "call",
    [
        'reduce_scatter(X) @{axis=tp, op="sum"}',
        "all_gather(X) @{axis=tp}",
        "broadcast(X) @{axis=tp}",
        "all_to_all(X) @{axis=tp}",
    ],
    ids=["scatter", "gather", "broadcast", "all-to-all"],
)
def test_a_rank_alone_on_its_axis_has_the_whole(impl, check, call):
    """Along an axis of one rank a value is handed back, as long as it was: N elements remain N."""
    type_ = "tensor<Nxint32>"
    function = func(f"return dist.{call};", parameters=f"X: {type_}", result=type_)
    rows = [[1, 2, 3], [4, 5, 6]]
    expect(impl, check, module("  mesh g = mesh<axes=[dp, tp], shape=[2, 1]>;", function), rows, rows)


@feature("mesh-selection")
@clause("LANG-05.4-04")
@pytest.mark.parametrize("running", ["g", "h"])
def test_a_collective_meets_along_the_axis_of_the_mesh_that_it_names(impl, check, running):
    """Six ranks as 2 x 3 and as 3 x 2: dp joins 0 and 3 on g, 0 and 1 on h, whichever mesh runs the program."""
    meshes = "  mesh g = mesh<axes=[dp, tp], shape=[2, 3]>;\n  mesh h = mesh<axes=[tp, dp], shape=[3, 2]>;"
    sums = (f'dist.all_reduce(X) @{{axis=dp, op="sum", mesh={name}}}' for name in "gh")
    source = meshed(meshes, f"return {' * 64 + '.join(sums)};", parameters="X: int32")
    expected = [
        64 * sum(1 << index for index in range(6) if index % 3 == rank % 3)
        + sum(1 << index for index in range(6) if index // 2 == rank // 2)
        for rank in range(6)
    ]
    expect(impl, check, source, [1 << rank for rank in range(6)], expected, mesh=running)


@clause("LANG-05.5-01")
def test_a_gradient_comes_back_from_every_rank(impl, check):
    """y = (x0**2 + x1**2)**2 on both ranks: the derivative of their sum is 8 x (x0**2 + x1**2) (AMB-LANG-143)."""
    body = ['let S: fp64 = dist.all_reduce(X * X) @{axis=dp, op="sum"};', "return op.grad(S * S, X);"]
    source, rows = meshed(line(2), *body, parameters="X: fp64"), [1, 2]
    of_one = [tensor_of("fp64", slope) for slope in (20, 40)]
    results = on_ranks(impl, check, source, [tensor_of("fp64", row) for row in rows])
    check.reading("AMB-LANG-143", "each rank differentiates its own y only", list(results) == of_one)
    expect(impl, check, source, rows, [40, 80], "fp64")


@feature("mesh-collectives")
@clause("LANG-05.5-01")
@pytest.mark.parametrize(
    ("call", "rows", "expected"),
    [
        ("broadcast(X) @{axis=dp, root=1}", [2, 3, 5], [0, 18, 0]),
        ("all_gather(X) @{axis=dp}", [[2], [3], [5]], [[12], [18], [30]]),
        ("all_to_all(X) @{axis=dp}", [[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[2, 4, 6], [8, 10, 12], [14, 16, 18]]),
        (
            'reduce_scatter(X) @{axis=dp, op="sum"}',
            [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
            [[24, 30, 36]] * 3,
        ),
    ],
    ids=["broadcast", "gather", "all-to-all", "scatter"],
)
def test_a_gradient_goes_back_the_way_of_the_collective(impl, check, call, rows, expected):
    """The squares of a rank's result are differentiated: on each of three ranks, or on the owner (AMB-LANG-143)."""
    type_ = "tensor<?xfp64>" if isinstance(rows[0], list) else "fp64"
    body = [f"let S: {type_} = dist.{call};", "return op.grad(S * S, X);"]
    expect(impl, check, meshed(line(3), *body, parameters=f"X: {type_}"), rows, expected, "fp64")


@feature("mesh-collectives")
@clause("LANG-05.5-01")
def test_a_second_gradient_goes_forth_and_back(impl, check):
    """The cubes on three ranks together have the second derivative 3 * 6 x for the owner (AMB-LANG-143)."""
    body = ["let S: fp64 = dist.broadcast(X) @{axis=dp, root=1};", "return op.grad(op.grad(S * S * S, X), X);"]
    expect(impl, check, meshed(line(3), *body, parameters="X: fp64"), [2, 3, 5], [0, 54, 0], "fp64")


@feature("mesh-collectives")
@clause("LANG-05.5-01")
def test_a_second_gradient_goes_back_to_the_owner_with_its_own_weight(impl, check):
    """The owner's gradient of the cubes, 9 x^2, times x: 27 x^2, whatever weights others have (AMB-LANG-143)."""
    body = ["let S: fp64 = dist.broadcast(X) @{axis=dp, root=1};", "return op.grad(op.grad(S * S * S, X) * X, X);"]
    expect(impl, check, meshed(line(3), *body, parameters="X: fp64"), [2, 3, 5], [0, 243, 0], "fp64")


@clause("LANG-05.5-01", "LANG-02-08")
def test_ranks_may_differentiate_in_different_branches(impl, check):
    """One by its input, one by what it computed behind the sum: neither needs the other for it, nor waits."""
    body = [
        'let S: fp64 = dist.all_reduce(X * X) @{axis=dp, op="sum"};',
        "if (X > 2.5) { let W: fp64 = S * X; return op.grad(W * W, W); }",
        "return op.grad(X * X, X);",
    ]
    expect(impl, check, meshed(line(2), *body, parameters="X: fp64"), [2, 3], [4, 78], "fp64")


# Arithmetic


WRAPPED = {"int8": (100, 44), "int16": (30000, 24464), "int32": (2**30, -(2**30)), "int64": (2**62, -(2**62))}
"""By dtype a number, and three times as much in two's complement."""


@clause("LANG-05.2-05", "LANG-09-06")
@pytest.mark.parametrize("dtype", WRAPPED)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param('all_reduce(X) @{axis=dp, op="sum"}', id="all-reduce"),
        pytest.param('reduce_scatter(X) @{axis=dp, op="sum"}', id="reduce-scatter", marks=feature("mesh-collectives")),
    ],
)
def test_a_sum_of_integers_over_ranks_wraps(impl, check, call, dtype):
    """Three ranks have one large number each, and small ones beside it (AMB-LANG-40, AMB-LANG-109)."""
    number, wrapped = WRAPPED[dtype]
    source = meshed(line(3), f"return dist.{call};", parameters=f"X: tensor<3x{dtype}>")
    total = [wrapped, 3, -6]
    expected = [total] * 3 if call.startswith("all") else [[part] for part in total]
    expect(impl, check, source, [[number, 1, -2]] * 3, expected, dtype)


def summing(dtype, ranks, profile=""):
    """A sum over all ranks, under a profile or none."""
    attributes = f'{{numerics_profile="{profile}"}}' if profile else ""
    body = 'return dist.all_reduce(X) @{axis=dp, op="sum"};'
    return meshed(line(ranks), body, parameters=f"X: tensor<24x{dtype}>", attributes=attributes)


def contributions(dtype, ranks):
    """Numbers of which any two orders of addition give different sums somewhere."""
    return [counted(dtype, (24,), seed=1931 + rank, exponents=(-7, 7)) for rank in range(ranks)]


@level("strict", "deterministic")
@pytest.mark.parametrize(
    "profile",
    [
        pytest.param("deterministic", marks=clause("LANG-09-05")),
        pytest.param("strict", marks=clause("LANG-09-06")),
    ],
)
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_every_rank_gets_the_same_bits_every_time(impl, check, dtype, ranks, profile):
    """One tree is used for any order in which the ranks arrive (AMB-LANG-109)."""
    source, rows = summing(dtype, ranks, profile), contributions(dtype, ranks)
    first = on_ranks(impl, check, source, rows)[0]
    for run in range(3):
        for rank, result in enumerate(on_ranks(impl, check, source, rows)):
            check.bits(result, first, f"rank {rank} in run {run}, against rank 0 in the first")


@level("strict")
@pytest.mark.parametrize(
    "profile",
    [
        pytest.param("strict", id="strict", marks=clause("LANG-09-06")),
        pytest.param("deterministic", id="deterministic", marks=clause("LANG-09-05")),
        pytest.param("", id="none", marks=clause("LANG-09-06")),
    ],
)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp16", "int8"])
def test_a_sum_over_ranks_follows_the_canonical_tree(impl, check, dtype, ranks, profile):
    """Adjacent pairs in order of the axis coordinate, in the accumulator type, rounded once (AMB-LANG-109)."""
    rows = contributions(dtype, ranks)
    expected = all_reduce(*rows, op="sum")
    for rank, result in enumerate(on_ranks(impl, check, summing(dtype, ranks, profile), rows)):
        check.bits(result, expected[rank], f"the sum at rank {rank}")


@level("deterministic")
@clause("LANG-09-05")
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_sum_over_ranks_follows_the_declared_tree(impl, check, dtype, ranks):
    """The implementation's own order of its all-reduce, replayed (AMB-LANG-44)."""
    rows = contributions(dtype, ranks)
    question = Question("all_reduce", rows, {"op": "sum"})
    judge_declared(impl, check, question, on_ranks(impl, check, summing(dtype, ranks, "deterministic"), rows)[0])


# Ranks that disagree

REDUCING = 'return dist.all_reduce(X) @{{axis={}, op="sum"}};'


def refused(impl, check, source, good, bad):
    """Inputs on which ranks agree give results; others, on which they do not, a distributed error while running."""
    check.returns(asked(impl, source, good))
    check.rejects(asked(impl, source, bad), category="distributed", phase=LATE)


def ints(*rows):
    """One int32 tensor a rank."""
    return [tensor_of("int32", row) for row in rows]


@feature("per-rank-issue")
@clause("LANG-09-04", "LANG-15-11", "LANG-11-12")
@pytest.mark.parametrize(
    "odd",
    [
        [[1, 2], [1], [1]],
        [[1], [1, 2], [1]],
        [[1], [1], [1, 2]],
        [[1, 2], [1, 2, 3], [1]],
        [[1, 2], [1, 2], [1]],
    ],
    ids=["first", "middle", "last", "all", "shorter"],
)
def test_ranks_with_different_shapes_are_refused(impl, check, odd):
    """The dimension is unknown until it runs; all ranks of a group must have the same."""
    good = ints([1, 2], [3, 4], [5, 6])
    refused(impl, check, meshed(line(3), REDUCING.format("dp")), good, ints(*odd))


OTHERS = {
    "reduce-scatter": 'reduce_scatter(X) @{axis=dp, op="sum"}',
    "all-gather": "all_gather(X) @{axis=dp}",
    "broadcast-from-the-first": "broadcast(X) @{axis=dp}",
    "broadcast-from-the-last": "broadcast(X) @{axis=dp, root=2}",
    "all-to-all": "all_to_all(X) @{axis=dp}",
}
"""The collectives beside `all_reduce`."""


@feature("per-rank-issue", "mesh-collectives")
@clause("LANG-09-04", "LANG-11-12")
@pytest.mark.parametrize("odd", [0, 1, 2], ids=["first", "middle", "last"])
@pytest.mark.parametrize("collective", OTHERS.values(), ids=OTHERS)
def test_every_collective_compares_shapes(impl, check, collective, odd):
    """A rank has six elements where the others have three: more could be moved or joined, and is refused."""
    rows = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    uneven = [row + row if rank == odd else row for rank, row in enumerate(rows)]
    refused(impl, check, meshed(line(3), f"return dist.{collective};"), ints(*rows), ints(*uneven))


@feature("per-rank-issue")
@clause("LANG-09-04")
@pytest.mark.parametrize(
    ("one", "other"),
    [([[1, 2, 3]], [[1], [2], [3]]), ([[1, 2], [3, 4]], [[1, 2, 3, 4]]), ([[1, 2]], [[1, 2], [3, 4]])],
    ids=["transposed", "reshaped", "broadcast"],
)
def test_shapes_that_hold_as_much_or_would_broadcast_are_refused(impl, check, one, other):
    """Shapes match dimension by dimension."""
    source = meshed(line(2), REDUCING.format("dp"), parameters="X: tensor<?x?xint32>")
    refused(impl, check, source, ints(one, one), ints(one, other))


@clause("LANG-09-04")
def test_groups_may_differ_from_each_other(impl, check):
    """Only ranks of one group must agree: those of dp = 0 have two numbers, those of dp = 1 three."""
    rows = [[1, 2], [10, 20], [1, 2, 3], [10, 20, 30]]
    source = meshed(SQUARE, REDUCING.format("tp"))
    expect(impl, check, source, rows, [[11, 22]] * 2 + [[11, 22, 33]] * 2)


BRANCHES = {
    "axis": ('Y = dist.all_reduce(X) @{axis=dp, op="sum"};', 'Y = dist.all_reduce(X) @{axis=tp, op="sum"};'),
    "op": ('Y = dist.all_reduce(X) @{axis=dp, op="sum"};', 'Y = dist.all_reduce(X) @{axis=dp, op="max"};'),
    "dtype": (
        'Y = dist.all_reduce(X) @{axis=dp, op="sum"};',
        'let Z: tensor<2xfp32> = dist.all_reduce(tensor<2xfp32>) @{axis=dp, op="sum"};',
    ),
    "absent": ('Y = dist.all_reduce(X) @{axis=dp, op="sum"};', "Y = X;"),
    "root": ("Y = dist.broadcast(X) @{axis=dp, root=0};", "Y = dist.broadcast(X) @{axis=dp, root=1};"),
    "mesh-collective": ("Y = dist.broadcast(X) @{axis=dp};", "Y = dist.all_to_all(X) @{axis=dp};"),
}
"""The statements of a rank whose first number is positive, and those of the others."""


def branching(kind):
    """A function whose ranks choose by their inputs."""
    yes, no = BRANCHES[kind]
    body = ["let Y: tensor<2xint32> = X;", f"if (X[0] > 0) {{ {yes} }} else {{ {no} }}", "return Y;"]
    return meshed(SQUARE, *body, parameters="X: tensor<2xint32>")


def choosing(*choices):
    """Inputs by which ranks choose."""
    return ints(*[[choice, 7] for choice in choices])


@feature("per-rank-issue")
@clause("LANG-11-11")
@pytest.mark.parametrize(
    "kind",
    [
        "axis",
        "op",
        "absent",
        *(pytest.param(kind, marks=feature("mesh-collectives")) for kind in ("root", "mesh-collective")),
    ],
)
@pytest.mark.parametrize(
    "choices", [(1, 0, 0, 0), (0, 1, 1, 1), (1, 1, 1, 0), (1, 0, 0, 1)], ids=["one", "three", "last", "crossed"]
)
def test_ranks_that_reach_different_collectives_are_refused(impl, check, kind, choices):
    """Another axis, another op, or none: no rank waits forever, and none gets a result (AMB-LANG-142)."""
    source = branching(kind)
    check.returns(asked(impl, source, choosing(0, 0, 0, 0)))
    refused(impl, check, source, choosing(1, 1, 1, 1), choosing(*choices))


@clause("LANG-11-11")
def test_groups_may_reach_different_collectives(impl, check):
    """On a square, the ranks of tp = 0 add along dp, those of tp = 1 take the largest."""
    rows, expected = [[1, 7], [0, 7], [2, 7], [-1, 7]], [[3, 14], [0, 7], [3, 14], [0, 7]]
    expect(impl, check, branching("op"), rows, expected)


@feature("per-rank-issue")
@clause("LANG-15-12")
@pytest.mark.parametrize("choices", [(1, 1, 0, 0), (0, 1, 1, 1), (1, 1, 1, 0)], ids=["half", "first", "last"])
def test_ranks_with_different_dtypes_are_refused(impl, check, choices):
    """int32 here and fp32 there, of one shape; the same dtype everywhere is accepted, either of them."""
    source = branching("dtype")
    check.returns(asked(impl, source, choosing(0, 0, 0, 0)))
    refused(impl, check, source, choosing(1, 1, 1, 1), choosing(*choices))


@feature("per-rank-issue")
@clause("LANG-04-05", "LANG-15-13")
@pytest.mark.parametrize("choices", [(1, 0), (0, 1)], ids=["second", "first"])
def test_a_collective_is_executed_even_where_its_result_is_not_used(impl, check, choices):
    """A rank that leaves it out is missed: communication is an effect."""
    body = ['if (X[0] > 0) { let Y: tensor<2xint32> = dist.all_reduce(X) @{axis=dp, op="sum"}; }', "return X;"]
    source = meshed(line(2), *body, parameters="X: tensor<2xint32>")
    refused(impl, check, source, choosing(1, 1), choosing(*choices))


@clause("LANG-02.3-64")
def test_the_error_of_one_rank_is_an_error_of_the_run(impl, check):
    """Integer division by zero on one rank, while others wait for it: no hang, no result (AMB-LANG-129)."""
    source = meshed(line(3), 'return dist.all_reduce(12 / X) @{axis=dp, op="sum"};', parameters="X: int32")
    expect(impl, check, source, [1, 2, 3], [22, 22, 22])
    check.rejects(asked(impl, source, ints(1, 0, 3)), category=("numerics", "types", "shapes"), phase="execute")
