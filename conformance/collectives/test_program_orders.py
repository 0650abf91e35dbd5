"""The order in which collectives of programs, and of their plans, combine at each level (2.1, 3.2; AMB-COLL-96)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import ALGORITHMS
from tessera_conformance.chapters.collectives.kit.orders import declared_bits, stretch
from tessera_conformance.chapters.collectives.kit.plan_runs import executed, outputs, vector
from tessera_conformance.chapters.collectives.kit.programs import (
    SUM,
    awaits,
    given,
    issue,
    on_ranks,
    program,
    returns,
    spread,
)
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.tensors import Tensor

pytestmark = feature("mesh-execution", "graph-ir-text", "operation-access")

RANKS = (1, 2, 3, 5, 7, 8)
DETERMINISTIC = {"level": "deterministic"}


def reducing(attributes, type_, collective="all_reduce", gives=None, mesh="dp=3"):
    """One reduction of %x."""
    gives = gives or type_
    lines = [issue("%f", "%x", attributes, collective), awaits("%y", "%f"), returns("%y", gives)]
    return program(*lines, takes=f"%x: {type_}", gives=gives, mesh=mesh)


def each_is(check, actual, expected, what):
    """The one result of every rank."""
    for rank, (result,) in enumerate(actual):
        check.bits(result, expected[rank], f"{what}, rank {rank} of {len(actual)}")


@feature("algorithm-control")
@clause("LANG-09-05", "RT-06-04", "COLL-03.2-04")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_under_deterministic_a_program_has_the_order_that_is_declared_for_its_algorithm(impl, check, dtype, algorithm):
    """Replayed element by element; extents that the ranks do not divide, one rank, prime ones."""
    for ranks in RANKS:
        count = 2 * ranks + 3
        rows = spread(ranks, dtype, count, seed=2300 + 10 * ranks)
        text = reducing(f'{SUM}, axis="dp", algo="{algorithm}"', f"tensor<{count}x{dtype}>", mesh=f"dp={ranks}")
        expected = declared_bits(impl, check, rows, algorithm)
        each_is(check, on_ranks(impl, check, text, given(rows), **DETERMINISTIC), [expected] * ranks, algorithm)


@feature("algorithm-control")
@clause("LANG-09-06", "RT-06-03")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_under_strict_a_program_has_the_canonical_order_by_every_algorithm(impl, check, algorithm):
    """The bits of the canonical tree, which are also those where no level is given."""
    for ranks in RANKS:
        count = 2 * ranks + 3
        rows = spread(ranks, count=count, seed=2400 + 10 * ranks)
        text = reducing(f'{SUM}, axis="dp", algo="{algorithm}"', vector(count), mesh=f"dp={ranks}")
        for asked in ({}, {"level": "strict"}):
            each_is(check, on_ranks(impl, check, text, given(rows), **asked), all_reduce(*rows), algorithm)


@feature("algorithm-control")
@clause("LANG-09-05", "COLL-02.1-04")
@pytest.mark.parametrize("op", ["prod", "mean"])
def test_products_and_means_of_programs_have_the_order_of_their_algorithm(impl, check, op):
    """They have the order that a sum by the same algorithm has."""
    for ranks in (3, 5, 7):
        rows = spread(ranks, count=ranks + 2, seed=2450 + 10 * ranks)
        for algorithm in ALGORITHMS:
            text = reducing(f'op="{op}", algo="{algorithm}"', vector(ranks + 2), mesh=f"dp={ranks}")
            expected = declared_bits(impl, check, rows, algorithm, op)
            each_is(check, on_ranks(impl, check, text, given(rows), **DETERMINISTIC), [expected] * ranks, algorithm)


def parts_of(matrix, ranks, dim):
    """The elements of a matrix part by part along a dimension, flat: the buffer that a reduce-scatter shares out."""
    words, (rows, columns) = matrix.words(), matrix.shape
    size = (rows, columns)[dim] // ranks
    places = [
        row * columns + column
        for part in range(ranks)
        for row in (range(part * size, (part + 1) * size) if dim == 0 else range(rows))
        for column in (range(part * size, (part + 1) * size) if dim == 1 else range(columns))
    ]
    return stretch(matrix, places, (words.size,))


@feature("algorithm-control", "plan-execution")
@clause("LANG-09-05", "RT-06-04")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dim", [0, 1])
def test_a_part_of_a_reduce_scatter_has_the_order_of_its_share(impl, check, dim, algorithm):
    """The order is that of an all-reduce of the parts one after another, whole and in chunks (AMB-COLL-29)."""
    for ranks in (2, 3, 5):
        shape = [3, 3]
        shape[dim] = 2 * ranks
        count = shape[0] * shape[1]
        rows = [Tensor("fp32", tuple(shape), tensor.data) for tensor in spread(ranks, count=count, seed=2500 + ranks)]
        type_ = f"tensor<{shape[0]}x{shape[1]}xfp32>"
        shape[dim] = 2
        gives = f"tensor<{shape[0]}x{shape[1]}xfp32>"
        whole = declared_bits(impl, check, [parts_of(row, ranks, dim) for row in rows], algorithm)
        own = count // ranks
        expected = [stretch(whole, slice(rank * own, (rank + 1) * own), shape) for rank in range(ranks)]
        attributes = f'{SUM}, dim={dim}, chunk=28, algo="{algorithm}"'
        text = reducing(attributes, type_, "reduce_scatter", gives, f"dp={ranks}")
        each_is(check, on_ranks(impl, check, text, given(rows), **DETERMINISTIC), expected, algorithm)
        answer = executed(impl, check, text, given(rows), seed=ranks, **DETERMINISTIC)
        each_is(check, outputs(answer), expected, f"{algorithm} in chunks")


@feature("algorithm-control", "plan-execution")
@clause("LANG-09-05", "COLL-02.3-01")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_chunks_of_a_plan_keep_the_order_of_the_whole(impl, check, algorithm):
    """An element has the order of its place in its tensor, wherever chunks end; strict has the canonical one."""
    for ranks in (3, 5, 7):
        count = 2 * ranks + 3
        rows = spread(ranks, count=count, seed=2600 + ranks)
        expected = [declared_bits(impl, check, rows, algorithm)] * ranks
        for chunk in (4, 12, 28, 4 * count, 1024):
            text = reducing(f'{SUM}, chunk={chunk}, algo="{algorithm}"', vector(count), mesh=f"dp={ranks}")
            answer = executed(impl, check, text, given(rows), seed=chunk, **DETERMINISTIC)
            if outputs(answer) != [[tensor] for tensor in expected]:
                recognize_chunks(impl, check, rows, algorithm, chunk // 4, outputs(answer))
            each_is(check, outputs(answer), expected, f"{algorithm}, chunks of {chunk} bytes")
            answer = executed(impl, check, text, given(rows), seed=chunk, level="strict")
            each_is(check, outputs(answer), all_reduce(*rows), f"strict, chunks of {chunk} bytes")


def recognize_chunks(impl, check, rows, algorithm, size, actual):
    """End the case where an element has the order of its place in its chunk (AMB-COLL-29)."""
    starts = range(0, rows[0].size, size)
    chunks = [[stretch(row, slice(start, start + size)) for row in rows] for start in starts]
    parts = [declared_bits(impl, check, chunk, algorithm) for chunk in chunks]
    whole = Tensor("fp32", rows[0].shape, b"".join(part.data for part in parts))
    check.reading("AMB-COLL-29", "the place in the chunk", all(own == [whole] for own in actual))


def recognize_one_buffer(impl, check, tensors, algorithm, actual):
    """End the case where an element has the order of its place in the fused buffer (AMB-COLL-29)."""
    size = sum(rows[0].size for rows in tensors)
    buffers = [Tensor("fp32", (size,), b"".join(row.data for row in rank)) for rank in zip(*tensors, strict=True)]
    whole, parts, first = declared_bits(impl, check, buffers, algorithm), [], 0
    for rows in tensors:
        parts.append(stretch(whole, slice(first, first + rows[0].size)))
        first += rows[0].size
    check.reading("AMB-COLL-29", "the place in the fused buffer", all(own == parts for own in actual))


@feature("algorithm-control", "plan-execution")
@clause("LANG-09-05", "COLL-02.4-01")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tensors_that_travel_together_keep_their_own_orders(impl, check, algorithm):
    """An element has the order of its place in its own tensor (AMB-COLL-29), as in the program."""
    counts, ranks = {"a": 13, "b": 31, "c": 17}, 5
    rows = {name: spread(ranks, count=count, seed=2700 + count) for name, count in counts.items()}
    attributes = f'{SUM}, chunk=400, algo="{algorithm}"'
    lines = [issue(f"%f{name}", f"%{name}", attributes) for name, count in counts.items()]
    lines += [awaits(f"%r{name}", f"%f{name}") for name in counts]
    gives = ", ".join(map(vector, counts.values()))
    takes = ", ".join(f"%{name}: {vector(count)}" for name, count in counts.items())
    text = program(*lines, returns("%ra, %rb, %rc", gives), takes=takes, gives=gives, mesh="dp=5")
    inputs = [{name: rows[name][rank] for name in counts} for rank in range(ranks)]
    wanted = [declared_bits(impl, check, rows[name], algorithm) for name in counts]
    actual = {
        "program": on_ranks(impl, check, text, inputs, **DETERMINISTIC),
        "plan": outputs(executed(impl, check, text, inputs, **DETERMINISTIC)),
    }
    if actual["plan"] != [wanted] * ranks:
        recognize_one_buffer(impl, check, list(rows.values()), algorithm, actual["plan"])
    for what, results in actual.items():
        for rank, own in enumerate(results):
            for place, (result, expected) in enumerate(zip(own, wanted, strict=True)):
                check.bits(result, expected, f"{what}: result {place} of rank {rank}")


@feature("algorithm-control", "plan-execution")
@clause("LANG-09-05", "COLL-02.2-03")
@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling"])
@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ('axis="tp"', [[0, 1, 2], [3, 4, 5]]),
        ("subgroup=!tessera.shard<groups=[[4, 0, 2], [1, 5, 3]]>", [[4, 0, 2], [1, 5, 3]]),
        ("subgroup=!tessera.shard<axes=[dp, tp]>", [[0, 1, 2, 3, 4, 5]]),
    ],
    ids=["axis", "listed", "all"],
)
def test_ranks_of_a_group_count_from_its_first(impl, check, where, groups, algorithm):
    """A share belongs to the place in the group, not to the rank of the mesh."""
    rows = spread(6, count=11, seed=2800)
    text = reducing(f'{SUM}, {where}, chunk=16, algo="{algorithm}"', vector(11), mesh="dp=2 tp=3")
    bits = {rank: declared_bits(impl, check, [rows[r] for r in group], algorithm) for group in groups for rank in group}
    expected = [bits[rank] for rank in range(6)]
    each_is(check, on_ranks(impl, check, text, given(rows), **DETERMINISTIC), expected, "program")
    each_is(check, outputs(executed(impl, check, text, given(rows), **DETERMINISTIC)), expected, "plan")


@feature("auto-algorithm", "operation-access", "plan-execution")
@clause("LANG-09-05", "COLL-03.2-04", "COLL-08-12")
@pytest.mark.parametrize(
    ("attributes", "count"),
    [("", 7), (', algo="auto"', 7), ("", 4096), (', algo="auto"', 4099), ("", 262147)],
    ids=["none-7", "auto-7", "none-4096", "auto-4099", "none-262147"],
)
def test_auto_has_the_order_of_the_algorithm_that_is_selected(impl, check, attributes, count):
    """By the bytes of the tensor of the program, not of its chunks; sizes about those where the table changes.

    An element's place is that in its tensor (AMB-COLL-29).
    """
    ranks = 3
    rows = spread(ranks, count=count, seed=2900)
    selection = impl.collectives.select(collective="all_reduce", bytes=4 * count, ranks=ranks)
    chosen = check.returns(selection)["algorithm"]
    run = impl.collectives.run(operation="all_reduce", inputs=rows, op="sum", algorithm=chosen, **DETERMINISTIC)
    expected = check.returns(run)["outputs"]
    if count < 100:
        check.bits(expected[0], declared_bits(impl, check, rows, chosen), chosen)
    text = reducing(f"{SUM}, chunk={count}{attributes}", vector(count))
    each_is(check, on_ranks(impl, check, text, given(rows), **DETERMINISTIC), expected, chosen)
    each_is(check, outputs(executed(impl, check, text, given(rows), **DETERMINISTIC)), expected, f"{chosen}, plan")


@clause("LANG-09-05")
@level("strict", "deterministic")
def test_a_collective_that_can_name_no_algorithm_has_the_order_that_is_declared_without_one(impl, check):
    """The order is that of `dist.all_reduce` of Graph IR, whichever algorithm carries it."""
    for ranks in RANKS:
        count = 2 * ranks + 3
        rows, type_ = spread(ranks, count=count, seed=2950 + ranks), vector(count)
        lines = ['%y = "tessera.graph.all_reduce"(%x) {op = "sum", axis = "dp"} : (' + f"{type_}) -> {type_}"]
        text = program(*lines, returns("%y", type_), takes=f"%x: {type_}", gives=type_, mesh=f"dp={ranks}")
        expected = declared_bits(impl, check, rows)
        each_is(check, on_ranks(impl, check, text, given(rows), **DETERMINISTIC), [expected] * ranks, "no algorithm")
