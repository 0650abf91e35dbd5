"""Plans that run: their units, in any order they allow, leave the program's bits (2.1, 2.3, 8)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import afterwards
from tessera_conformance.chapters.collectives.kit.plan_runs import (
    SEEDS,
    each_has,
    executed,
    fp32,
    most_in_flight,
    numbers,
    vector,
)
from tessera_conformance.chapters.collectives.kit.plans import chunks
from tessera_conformance.chapters.collectives.kit.programs import SUM, awaits, binary, issue, on_ranks, program, returns
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.vectors.building import counted

pytestmark = feature("plan-execution", "graph-ir-text")


# Chunks

GIVES = {"all_gather": 4, "reduce_scatter": 0.25}


def collective_of(collective, extent, attributes):
    """A collective of a vector on four ranks."""
    type_, gives = vector(extent), vector(int(extent * GIVES.get(collective, 1)))
    operator = f"{SUM}, " if "reduce" in collective else "root=2, " if collective == "broadcast" else ""
    lines = [issue("%f", "%x", operator + attributes, collective), awaits("%y", "%f"), returns("%y", gives)]
    return program(*lines, takes=f"%x: {type_}", gives=gives)


@clause("COLL-08-09", "COLL-02.3-01")
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"])
@pytest.mark.parametrize(
    ("extent", "attributes", "options"),
    [
        (1000, "chunk=1KiB", {"tile": 96}),
        (1004, "chunk=512", {"depth": 2}),
        (28, "chunk=12", {"max_inflight": 1}),
        (28, "chunk=12", {}),
        (4, "chunk=4", {"depth": 3, "max_inflight": 2}),
        (12, "", {}),
        (0, "chunk=4", {}),
    ],
    ids=["tiles", "two-buffers", "one-in-flight", "many", "elements", "whole", "empty"],
)
def test_a_collective_in_chunks_gives_what_it_gives_whole(impl, check, collective, extent, attributes, options):
    """On every rank, in every order; a short last chunk is there too (AMB-COLL-87)."""
    rows = [numbers(rank, extent) for rank in range(4)]
    expected = [[fp32(row, (len(row),))] for row in afterwards(collective, rows, "sum", 2)]
    inputs = [{"x": fp32(row, (extent,))} for row in rows]
    text = collective_of(collective, extent, attributes or "overlap=1")
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, **options, **({} if seed is None else {"seed": seed}))
        each_has(check, answer, expected)


def cut(matrix, count, dim):
    """Equal parts of a matrix of rows."""
    if dim == 0:
        size = len(matrix) // count
        return [matrix[place * size : (place + 1) * size] for place in range(count)]
    size = len(matrix[0]) // count
    return [[row[place * size : (place + 1) * size] for row in matrix] for place in range(count)]


def joined(parts, dim):
    """Matrices put together."""
    if dim == 0:
        return [row for part in parts for row in part]
    return [[value for part in parts for value in part[row]] for row in range(len(parts[0]))]


def flat(matrix):
    """Its elements, row-major."""
    return [value for row in matrix for value in row]


def of_matrices(collective, matrices, dims):
    """Return the result of each rank by the definition."""
    ranks = len(matrices)
    if collective == "all_gather":
        return [joined(matrices, dims[0])] * ranks
    if collective == "reduce_scatter":
        rows = [[sum(column) for column in zip(*given, strict=True)] for given in zip(*matrices, strict=True)]
        return cut(rows, ranks, dims[0])
    dealt = [cut(matrix, ranks, dims[0]) for matrix in matrices]
    return [joined([parts[rank] for parts in dealt], dims[1]) for rank in range(ranks)]


@clause("COLL-08-09", "COLL-02.3-01")
@pytest.mark.parametrize("chunk", ["4", "20", "44", "100"])
@pytest.mark.parametrize(
    ("collective", "attributes", "dims"),
    [
        ("all_gather", "dim=1", (1,)),
        ("all_gather", "dim=0", (0,)),
        ("reduce_scatter", f"{SUM}, dim=1", (1,)),
        ("reduce_scatter", f"{SUM}, dim=0", (0,)),
        ("all_to_all", "split=0, concat=1", (0, 1)),
        ("all_to_all", "split=1, concat=0", (1, 0)),
        ("all_to_all", "split=1, concat=1", (1, 1)),
    ],
)
def test_chunks_of_a_matrix_land_where_their_elements_belong(impl, check, collective, attributes, dims, chunk):
    """Along either dimension, for chunks that end within a row (AMB-COLL-88)."""
    matrices = [[numbers(rank, 6, 100 * row) for row in range(3)] for rank in range(3)]
    expected = of_matrices(collective, matrices, dims)
    shape = (len(expected[0]), len(expected[0][0]))
    type_, gives = "tensor<3x6xfp32>", f"tensor<{shape[0]}x{shape[1]}xfp32>"
    lines = [issue("%f", "%x", f"{attributes}, chunk={chunk}", collective), awaits("%y", "%f")]
    text = program(*lines, returns("%y", gives), takes=f"%x: {type_}", gives=gives, mesh="dp=3")
    inputs = [{"x": fp32(flat(matrix), (3, 6))} for matrix in matrices]
    for seed in SEEDS[:4]:
        answer = executed(impl, check, text, inputs, depth=2, **({} if seed is None else {"seed": seed}))
        each_has(check, answer, [[fp32(flat(matrix), shape)] for matrix in expected])


@clause("COLL-08-09")
@feature("mesh-execution")
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp64", "int32"])
def test_chunks_have_the_bits_of_the_canonical_sum(impl, check, dtype):
    """The sum depends on the order of the ranks, and has the bits of the whole program (AMB-COLL-04)."""
    type_ = f"tensor<101x{dtype}>"
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=64"),
        awaits("%y", "%f"),
        returns("%y", type_),
        takes=f"%x: {type_}",
        gives=type_,
        mesh="dp=5",
    )
    exponents = {} if dtype == "int32" else {"exponents": (-7, 7)}
    rows = [counted(dtype, (101,), seed=810 + rank, **exponents) for rank in range(5)]
    inputs = [{"x": row} for row in rows]
    whole = on_ranks(impl, check, text, inputs)
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, depth=3, **({} if seed is None else {"seed": seed}))
        each_has(check, answer, whole)
        if dtype != "int32":
            each_has(check, answer, [[wanted] for wanted in all_reduce(*rows)])


# Buffers


@feature("pipelining")
@pytest.mark.parametrize(
    "depth",
    [1, pytest.param(2, marks=clause("COLL-02.3-04")), pytest.param(3, marks=clause("COLL-02.3-05")), 4, 7],
)
@clause("COLL-02.3-04")
def test_a_buffer_holds_one_chunk_at_a_time(impl, check, depth):
    """Eleven chunks of each of two collectives: none has elements of a later one (AMB-COLL-58, AMB-COLL-89)."""
    type_ = vector(83)
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=32"),
        issue("%g", "%x", 'op="max", chunk=32'),
        awaits("%a", "%f"),
        awaits("%b", "%g"),
        returns("%a, %b", f"{type_}, {type_}"),
        takes=f"%x: {type_}",
        gives=f"{type_}, {type_}",
    )
    rows = [numbers(rank, 83) for rank in range(4)]
    sums, largest = (afterwards("all_reduce", rows, op) for op in ("sum", "max"))
    expected = [[fp32(value) for value in pair] for pair in zip(sums, largest, strict=True)]
    for seed in SEEDS:
        options = {"depth": depth} | ({} if seed is None else {"seed": seed})
        answer = executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options)
        check.equal(len({unit["buffer"] for unit in chunks(answer["units"], "%f")}), depth, "the number of buffers")
        for rank in range(4):
            check.true(most_in_flight(answer, rank) <= 2 * depth, "the chunks in flight", most_in_flight(answer, rank))
        each_has(check, answer, expected)


@feature("pipelining")
@clause("COLL-02.3-04", "COLL-02.3-05")
@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_chunks_are_in_flight_than_allowed(impl, check, most):
    """On any rank, in any order (AMB-COLL-58)."""
    text = collective_of("all_reduce", 100, "chunk=32")
    rows = [numbers(rank, 100) for rank in range(4)]
    for seed in SEEDS:
        options = {"max_inflight": most} | ({} if seed is None else {"seed": seed})
        answer = executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options)
        actual = max(most_in_flight(answer, rank) for rank in range(4))
        check.true(actual <= most, f"at most {most} chunks are in flight", actual)


# Waits


@clause("COLL-08-10", "COLL-02.1-02", "COLL-01-02")
@pytest.mark.parametrize("early", [True, False], ids=["awaited-at-once", "awaited-late"])
def test_a_value_is_whole_where_it_is_used(impl, check, early):
    """The program may await it anywhere; a future never awaited has no effect (AMB-COLL-03, AMB-COLL-58)."""
    type_ = vector(50)
    wait = [awaits("%s", "%f")]
    lines = [issue("%f", "%x", f"{SUM}, chunk=36"), *(wait if early else [])]
    lines += [binary("%a", "add", "%x", "%x", type_), issue("%g", "%a", 'op="max", chunk=20')]
    lines += [issue("%h", "%x", 'op="min", chunk=20')]
    lines += [binary("%b", "subtract", "%a", "%x", type_), *([] if early else wait)]
    lines += [binary("%c", "subtract", "%b", "%s", type_), awaits("%t", "%g"), binary("%d", "add", "%c", "%t", type_)]
    text = program(*lines, returns("%d", type_), takes=f"%x: {type_}", gives=type_)
    rows = [numbers(rank, 50) for rank in range(4)]
    sums, largest = (afterwards("all_reduce", rows, op)[0] for op in ("sum", "max"))
    expected = [
        [fp32([x - total + 2 * most for x, total, most in zip(row, sums, largest, strict=True)])] for row in rows
    ]
    for seed in SEEDS:
        answer = executed(
            impl, check, text, [{"x": fp32(row)} for row in rows], depth=2, **({} if seed is None else {"seed": seed})
        )
        each_has(check, answer, expected)


@clause("COLL-08-10", "COLL-02.1-02")
def test_a_collective_of_a_collective_takes_its_value(impl, check):
    """A gather of the shard of a reduce-scatter is the whole sum."""
    type_ = vector(60)
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=28", "reduce_scatter"),
        awaits("%s", "%f"),
        issue("%g", "%s", "chunk=16", "all_gather"),
        awaits("%y", "%g"),
        returns("%y", type_),
        takes=f"%x: {type_}",
        gives=type_,
    )
    rows = [numbers(rank, 60) for rank in range(4)]
    for seed in SEEDS:
        options = {} if seed is None else {"seed": seed}
        answer = executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options)
        each_has(check, answer, [[fp32(row)] for row in afterwards("all_reduce", rows, "sum")])


@clause("COLL-08-10")
@feature("random-ops", "mesh-execution")
def test_draws_are_those_of_the_program(impl, check):
    """Their streams are numbered as the program draws, whichever unit could run first."""
    type_ = vector(6)
    text = program(
        issue("%f", "%x", SUM),
        awaits("%s", "%f"),
        f'%u = "tessera.graph.uniform"() {{shape = [6], seed = 5, dtype = "fp32"}} : () -> {type_}',
        binary("%a", "add", "%u", "%s", type_),
        f'%v = "tessera.graph.uniform"() {{shape = [6], seed = 5, dtype = "fp32"}} : () -> {type_}',
        returns("%a, %v, %u", f"{type_}, {type_}, {type_}"),
        takes=f"%x: {type_}",
        gives=f"{type_}, {type_}, {type_}",
    )
    inputs = [{"x": fp32(numbers(rank, 6))} for rank in range(4)]
    whole = on_ranks(impl, check, text, inputs)
    for seed in SEEDS:
        each_has(check, executed(impl, check, text, inputs, **({} if seed is None else {"seed": seed})), whole)


# Groups


@clause("COLL-02.2-03", "COLL-08-09")
@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ('axis="tp"', [[0, 1, 2], [3, 4, 5]]),
        ('axis="dp"', [[0, 3], [1, 4], [2, 5]]),
        ("subgroup=!tessera.shard<axes=[dp, tp]>", [[0, 1, 2, 3, 4, 5]]),
        ("subgroup=!tessera.shard<groups=[[4, 0, 2], [1, 5, 3]]>", [[4, 0, 2], [1, 5, 3]]),
    ],
    ids=["tp", "dp", "mesh", "groups"],
)
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "broadcast"])
def test_each_group_meets_for_itself(impl, check, collective, where, groups):
    """The ranks of each group communicate among themselves, in the order of the group."""
    size = len(groups[0])
    type_, gives = vector(30), vector(30 * size if collective == "all_gather" else 30)
    operator = f"{SUM}, " if collective == "all_reduce" else "root=1, " if collective == "broadcast" else ""
    lines = [issue("%f", "%x", f"{operator}{where}, chunk=28", collective), awaits("%y", "%f")]
    text = program(*lines, returns("%y", gives), takes=f"%x: {type_}", gives=gives, mesh="dp=2 tp=3")
    rows = [numbers(rank, 30) for rank in range(6)]
    expected = [[] for _ in rows]
    for group in groups:
        for rank, row in zip(group, afterwards(collective, [rows[member] for member in group], "sum", 1), strict=True):
            expected[rank] = [fp32(row)]
    for seed in SEEDS:
        options = {"depth": 2} | ({} if seed is None else {"seed": seed})
        each_has(check, executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options), expected)


@clause("COLL-08-09")
@pytest.mark.parametrize(("axis", "groups"), [("tp", [[0, 1, 2], [3, 4, 5]]), ("dp", [[0, 3], [1, 4], [2, 5]])])
def test_a_collective_that_yields_its_value_at_once_is_a_unit_too(impl, check, axis, groups):
    """An all-reduce of Graph IR, without a future, beside a computation that does not wait for it."""
    type_ = vector(10)
    text = program(
        f'%s = "tessera.graph.all_reduce"(%x) {{axis = "{axis}", op = "sum"}} : ({type_}) -> {type_}',
        binary("%a", "add", "%x", "%x", type_),
        binary("%y", "subtract", "%s", "%a", type_),
        returns("%y", type_),
        takes=f"%x: {type_}",
        gives=type_,
        mesh="dp=2 tp=3",
    )
    rows = [numbers(rank, 10) for rank in range(6)]
    members = {rank: group for group in groups for rank in group}
    expected = [
        [fp32([sum(rows[other][place] for other in members[rank]) - 2 * rows[rank][place] for place in range(10)])]
        for rank in range(6)
    ]
    for seed in SEEDS:
        options = {} if seed is None else {"seed": seed}
        each_has(check, executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options), expected)


# Refusals


@clause("COLL-02.5-01")
def test_a_wire_that_loses_bits_is_refused_as_it_is_for_the_program(impl, check):
    """Under strict; under fast it is allowed, and its twin of bf16 loses nothing (AMB-COLL-05, AMB-COLL-53)."""
    type_ = vector(8)
    lossy = program(issue("%f", "%x", f'{SUM}, dtype="bf16"'), awaits("%y", "%f"), returns("%y", type_))
    inputs = [{"x": fp32(numbers(rank, 8))} for rank in range(4)]
    refused = impl.collectives.execute_plan(text=lossy, function="f", ranks=inputs)
    check.status(refused, "TESS_ERR_DETERMINISM_VIOLATION")
    executed(impl, check, lossy, inputs, level="fast")
    executed(impl, check, lossy.replace('"bf16"', '"fp16"').replace("xfp32", "xbf16").replace('"fp16"', '"bf16"'),
             [{"x": tensor_of("bf16", [1, 2, 3, 4, 5, 6, 7, 8])} for _ in range(4)])  # fmt: skip


@feature("compression")
@clause("COLL-02.5-01")
def test_under_fast_the_data_of_a_plan_are_rounded_to_the_wire_that_the_program_names(impl, check):
    """1 + 2^-8 is 1 as bf16, so that two of them are 2; without a dtype their sum is exact (AMB-COLL-53)."""
    type_ = vector(8)
    text = program(
        issue("%f", "%x", f'{SUM}, dtype="bf16", chunk=16'),
        awaits("%y", "%f"),
        returns("%y", type_),
        mesh="dp=2",
    )
    inputs = [{"x": fp32([1.00390625] * 8)} for _ in range(2)]
    each_has(check, executed(impl, check, text, inputs, level="fast"), [[fp32([2.0] * 8)]] * 2)
    whole = text.replace(', dtype="bf16"', "")
    each_has(check, executed(impl, check, whole, inputs, level="fast"), [[fp32([2.0078125] * 8)]] * 2)
