"""Plans that run: their units, in any order they allow, leave the program's bits (2.1, 2.3, 2.4, 4.1, 8)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.collectives.kit import machines
from tessera_conformance.chapters.collectives.kit.exchanges import afterwards
from tessera_conformance.chapters.collectives.kit.plan_runs import SEEDS, executed, most_in_flight, outputs
from tessera_conformance.chapters.collectives.kit.plans import chunks
from tessera_conformance.chapters.collectives.kit.programs import awaits, binary, issue, on_ranks, program, returns
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.vectors.counter import counted

pytestmark = feature("plan-execution", "graph-ir-text")

SUM = 'op="sum"'


def numbers(rank, count, start=0):
    """Whole numbers, another at each place and on each rank, whose sums fp32 holds."""
    return [(place * 7 + rank * 1009 + start) % 4001 - 2000 for place in range(count)]


def vector(extent):
    """The type of a vector."""
    return f"tensor<{extent}xfp32>"


def fp32(values, shape=None):
    """A tensor of numbers."""
    found = tensor_of("fp32", values)
    return found if shape is None else type(found)("fp32", tuple(shape), found.data)


def each_has(check, answer, wanted):
    """Every rank returned these tensors."""
    for rank, (found, expected) in enumerate(zip(outputs(answer), wanted, strict=True)):
        check.equal(len(found), len(expected), f"the number of results of rank {rank}")
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            check.bits(one, other, f"result {place} of rank {rank}")


# Chunks

GIVES = {"all_gather": 4, "reduce_scatter": 0.25}


def collective_of(collective, extent, attributes):
    """A collective of a vector on four ranks."""
    held, gives = vector(extent), vector(int(extent * GIVES.get(collective, 1)))
    operator = f"{SUM}, " if "reduce" in collective else "root=2, " if collective == "broadcast" else ""
    lines = [issue("%f", "%x", operator + attributes, collective, held), awaits("%y", "%f"), returns("%y", gives)]
    return program(*lines, takes=f"%x: {held}", gives=gives)


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
    wanted = [[fp32(row, (len(row),))] for row in afterwards(collective, rows, "sum", 2)]
    inputs = [{"x": fp32(row, (extent,))} for row in rows]
    text = collective_of(collective, extent, attributes or "overlap=1")
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, **options, **({} if seed is None else {"seed": seed}))
        each_has(check, answer, wanted)


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
    """What each rank has, by the definition."""
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
    wanted = of_matrices(collective, matrices, dims)
    shape = (len(wanted[0]), len(wanted[0][0]))
    held, gives = "tensor<3x6xfp32>", f"tensor<{shape[0]}x{shape[1]}xfp32>"
    lines = [issue("%f", "%x", f"{attributes}, chunk={chunk}", collective, held), awaits("%y", "%f")]
    text = program(*lines, returns("%y", gives), takes=f"%x: {held}", gives=gives, mesh="dp=3")
    inputs = [{"x": fp32(flat(matrix), (3, 6))} for matrix in matrices]
    for seed in SEEDS[:4]:
        answer = executed(impl, check, text, inputs, depth=2, **({} if seed is None else {"seed": seed}))
        each_has(check, answer, [[fp32(flat(matrix), shape)] for matrix in wanted])


@clause("COLL-08-09")
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp64", "int32"])
def test_chunks_have_the_bits_of_the_canonical_sum(impl, check, dtype):
    """Of data whose sum depends on the order of the ranks, as the program that runs whole has (AMB-COLL-04)."""
    held = f"tensor<101x{dtype}>"
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=64", type=held),
        awaits("%y", "%f"),
        returns("%y", held),
        takes=f"%x: {held}",
        gives=held,
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
    held = vector(83)
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=32", type=held),
        issue("%g", "%x", 'op="max", chunk=32', type=held),
        awaits("%a", "%f"),
        awaits("%b", "%g"),
        returns("%a, %b", f"{held}, {held}"),
        takes=f"%x: {held}",
        gives=f"{held}, {held}",
    )
    rows = [numbers(rank, 83) for rank in range(4)]
    sums, largest = (afterwards("all_reduce", rows, op) for op in ("sum", "max"))
    wanted = [[fp32(each) for each in pair] for pair in zip(sums, largest, strict=True)]
    for seed in SEEDS:
        options = {"depth": depth} | ({} if seed is None else {"seed": seed})
        answer = executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options)
        check.equal(len({unit["buffer"] for unit in chunks(answer["units"], "%f")}), depth, "the number of buffers")
        for rank in range(4):
            check.true(most_in_flight(answer, rank) <= 2 * depth, "the chunks in flight", most_in_flight(answer, rank))
        each_has(check, answer, wanted)


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
        found = max(most_in_flight(answer, rank) for rank in range(4))
        check.true(found <= most, f"at most {most} chunks are in flight", found)


# Waits


@clause("COLL-08-10", "COLL-02.1-02", "COLL-01-02")
@pytest.mark.parametrize("early", [True, False], ids=["awaited-at-once", "awaited-late"])
def test_a_value_is_whole_where_it_is_used(impl, check, early):
    """Wherever the program awaits it; a future that nobody awaits is of no consequence (AMB-COLL-03, AMB-COLL-58)."""
    held = vector(50)
    wait = [awaits("%s", "%f")]
    lines = [issue("%f", "%x", f"{SUM}, chunk=36", type=held), *(wait if early else [])]
    lines += [binary("%a", "add", "%x", "%x", held), issue("%g", "%a", 'op="max", chunk=20', type=held)]
    lines += [issue("%h", "%x", 'op="min", chunk=20', type=held)]
    lines += [binary("%b", "subtract", "%a", "%x", held), *([] if early else wait)]
    lines += [binary("%c", "subtract", "%b", "%s", held), awaits("%t", "%g"), binary("%d", "add", "%c", "%t", held)]
    text = program(*lines, returns("%d", held), takes=f"%x: {held}", gives=held)
    rows = [numbers(rank, 50) for rank in range(4)]
    sums, largest = (afterwards("all_reduce", rows, op)[0] for op in ("sum", "max"))
    wanted = [[fp32([x - total + 2 * most for x, total, most in zip(row, sums, largest, strict=True)])] for row in rows]
    for seed in SEEDS:
        answer = executed(
            impl, check, text, [{"x": fp32(row)} for row in rows], depth=2, **({} if seed is None else {"seed": seed})
        )
        each_has(check, answer, wanted)


@clause("COLL-08-10", "COLL-02.1-02")
def test_a_collective_of_a_collective_takes_its_value(impl, check):
    """A gather of the shard of a reduce-scatter is the whole sum."""
    part, held = vector(15), vector(60)
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=28", "reduce_scatter", held),
        awaits("%s", "%f"),
        issue("%g", "%s", "chunk=16", "all_gather", part),
        awaits("%y", "%g"),
        returns("%y", held),
        takes=f"%x: {held}",
        gives=held,
    )
    rows = [numbers(rank, 60) for rank in range(4)]
    for seed in SEEDS:
        options = {} if seed is None else {"seed": seed}
        answer = executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options)
        each_has(check, answer, [[fp32(row)] for row in afterwards("all_reduce", rows, "sum")])


@clause("COLL-08-10")
@feature("random-ops")
def test_draws_are_those_of_the_program(impl, check):
    """Their streams are numbered as the program draws, whichever unit could run first."""
    held = vector(6)
    text = program(
        issue("%f", "%x", SUM, type=held),
        awaits("%s", "%f"),
        f'%u = "tessera.graph.uniform"() {{shape = [6], seed = 5, dtype = "fp32"}} : () -> {held}',
        binary("%a", "add", "%u", "%s", held),
        f'%v = "tessera.graph.uniform"() {{shape = [6], seed = 5, dtype = "fp32"}} : () -> {held}',
        returns("%a, %v, %u", f"{held}, {held}, {held}"),
        takes=f"%x: {held}",
        gives=f"{held}, {held}, {held}",
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
    """In the order of its ranks."""
    size = len(groups[0])
    held, gives = vector(30), vector(30 * size if collective == "all_gather" else 30)
    operator = f"{SUM}, " if collective == "all_reduce" else "root=1, " if collective == "broadcast" else ""
    lines = [issue("%f", "%x", f"{operator}{where}, chunk=28", collective, held), awaits("%y", "%f")]
    text = program(*lines, returns("%y", gives), takes=f"%x: {held}", gives=gives, mesh="dp=2 tp=3")
    rows = [numbers(rank, 30) for rank in range(6)]
    wanted = [[] for _ in rows]
    for group in groups:
        for rank, row in zip(group, afterwards(collective, [rows[each] for each in group], "sum", 1), strict=True):
            wanted[rank] = [fp32(row)]
    for seed in SEEDS:
        options = {"depth": 2} | ({} if seed is None else {"seed": seed})
        each_has(check, executed(impl, check, text, [{"x": fp32(row)} for row in rows], **options), wanted)


# Fusion and folding


@feature("fusion")
@clause("COLL-02.4-01")
@pytest.mark.parametrize("collective", ["all_reduce", "broadcast"])
def test_tensors_that_travelled_together_are_split_again(impl, check, collective):
    """Each has its own elements, in its own shape (AMB-COLL-24, AMB-COLL-56)."""
    shapes = {"a": (3,), "b": (5, 2), "c": (7,)}
    types = {name: f"tensor<{'x'.join(map(str, shape))}xfp32>" for name, shape in shapes.items()}
    operator = SUM if collective == "all_reduce" else "root=3"
    lines = [issue(f"%f{name}", f"%{name}", f"{operator}, chunk=80", collective, held) for name, held in types.items()]
    lines += [awaits(f"%r{name}", f"%f{name}") for name in types]
    gives = ", ".join(types.values())
    takes = ", ".join(f"%{name}: {held}" for name, held in types.items())
    text = program(*lines, returns("%ra, %rb, %rc", gives), takes=takes, gives=gives)
    counts = {"a": 3, "b": 10, "c": 7}
    rows = {name: [numbers(rank, count, 31 * count) for rank in range(4)] for name, count in counts.items()}
    inputs = [{name: fp32(rows[name][rank], shapes[name]) for name in rows} for rank in range(4)]
    after = {name: afterwards(collective, rows[name], "sum", 3) for name in rows}
    wanted = [[fp32(after[name][rank], shapes[name]) for name in rows] for rank in range(4)]
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, **({} if seed is None else {"seed": seed}))
        check.equal(len(chunks(answer["units"])), 1, "the number of chunks")
        each_has(check, answer, wanted)


def cast(result, operand, to):
    """A conversion."""
    return f'{result} = "tessera.graph.cast"({operand}) {{dtype = "{to}"}}'


def folding(before, after, extent=25):
    """A sum over three ranks with a scaling by %s, or a cast to a dtype, before and behind it."""
    lines, source, dtype = [], "%x", "fp32"
    if before is not None:
        lines.append('%m = "tessera.graph.multiply"(%x, %s)' if before == "scale" else cast("%m", "%x", before))
        source, dtype = "%m", dtype if before == "scale" else before
    lines += [issue("%f", source, f"{SUM}, chunk=32", type=f"tensor<{extent}x{dtype}>"), awaits("%v", "%f")]
    value = "%v"
    if after is not None:
        lines.append('%y = "tessera.graph.multiply"(%v, %s)' if after == "scale" else cast("%y", "%v", after))
        value, dtype = "%y", dtype if after == "scale" else after
    gives = f"tensor<{extent}x{dtype}>"
    text = program(*lines, returns(value, gives), takes=f"%x: {vector(extent)}, %s: fp32", gives=gives, mesh="dp=3")
    return text, dtype


FOLDS = {
    # before, after, what becomes of 257 on one rank, and of the sum of three
    "scale-before": ("scale", None, lambda x: 3 * x, lambda total: total),
    "scale-after": (None, "scale", lambda x: x, lambda total: 3 * total),
    "scales": ("scale", "scale", lambda x: 3 * x, lambda total: 3 * total),
    "cast-before": ("bf16", None, lambda x: x - x % 2, lambda total: total),
    "cast-after": (None, "bf16", lambda x: x, lambda total: 772),
    "casts": ("bf16", "fp32", lambda x: x - x % 2, lambda total: total),
    "cast-and-scale": ("scale", "bf16", lambda x: 3 * x, lambda total: 2320),
}


@feature("fusion")
@clause("COLL-02.4-02", "COLL-02.4-04")
@pytest.mark.parametrize(("before", "after", "on_a_rank", "of_all"), FOLDS.values(), ids=FOLDS)
def test_what_is_folded_is_done_once(impl, check, before, after, on_a_rank, of_all):
    """On the side on which the program has it: 257 is 256 in bf16, 771 is 772, 2313 is 2320 (AMB-COLL-57, -89)."""
    text, dtype = folding(before, after)
    wanted = tensor_of(dtype, [of_all(3 * on_a_rank(257))] * 25)
    inputs = [{"x": fp32([257] * 25), "s": tensor_of("fp32", 3)} for _ in range(3)]
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, depth=2, **({} if seed is None else {"seed": seed}))
        check.true(all(unit["folds"] for unit in chunks(answer["units"])), "every chunk has the folds", text)
        each_has(check, answer, [[wanted]] * 3)


@feature("fusion")
@clause("COLL-02.4-02", "COLL-02.4-04")
@pytest.mark.parametrize(("before", "after"), [each[:2] for each in FOLDS.values()], ids=FOLDS)
def test_folding_changes_no_bit(impl, check, before, after):
    """Of data that round at every step; 0.3 is no fp32 (AMB-COLL-57)."""
    text, _ = folding(before, after)
    scale = counted("fp32", (1,), seed=77)
    inputs = [
        {"x": counted("fp32", (25,), seed=820 + rank, exponents=(-4, 4)), "s": type(scale)("fp32", (), scale.data)}
        for rank in range(3)
    ]
    whole = on_ranks(impl, check, text, inputs)
    for seed in SEEDS[:4]:
        each_has(check, executed(impl, check, text, inputs, **({} if seed is None else {"seed": seed})), whole)


# Times


OVERLAPPED = [
    issue("%f", "%x", f"{SUM}, chunk=16KiB", type=vector(40000)),
    binary("%a", "add", "%x", "%x", vector(40000)),
    binary("%b", "multiply", "%a", "%a", vector(40000)),
    awaits("%s", "%f"),
    binary("%c", "subtract", "%b", "%s", vector(40000)),
    returns("%c", vector(40000)),
]


def timed(impl, check, mesh="dp=4", **options):
    """A program with a collective beside computations, with the times of its units."""
    text = program(*OVERLAPPED, takes=f"%x: {vector(40000)}", gives=vector(40000), mesh=mesh)
    inputs = [{"x": fp32([rank] * 40000)} for rank in range(4)]
    return executed(impl, check, text, inputs, topology=machines.text(), picoseconds=1000000, **options)


@feature("two-queue")
@clause("COLL-04.1-01", "COLL-01-02", "COLL-02.1-02")
@pytest.mark.parametrize("options", [{}, {"depth": 2}, {"max_inflight": 1}], ids=["free", "buffers", "one-in-flight"])
def test_units_run_when_what_they_wait_for_has_ended(impl, check, options):
    """On their device: computations beside chunks, one at a time; waits take no time (AMB-COLL-90)."""
    answer = timed(impl, check, **options)
    ends, starts = {}, {}
    for slot in answer["timeline"]:
        starts[slot["unit"], slot["device"]] = slot["start"]
        ends[slot["unit"], slot["device"]] = slot["end"]
    devices = sorted({device for _, device in ends})
    check.equal(len(devices), 4, "the number of devices")
    check.equal(len(ends), 4 * len(answer["units"]), "the slots")
    for unit in answer["units"]:
        for device in devices:
            ready = max((ends[other, device] for other in unit["after"]), default=0)
            check.true(starts[unit["id"], device] >= ready, f"unit {unit['id']} starts when it can", ready)
            takes = ends[unit["id"], device] - starts[unit["id"], device]
            if unit["queue"] == "compute":
                works = unit["op"] not in ("tessera.await", "tessera.graph.return")
                check.equal(takes, 1000000 if works else 0, f"the picoseconds of {unit['op']}")
            else:
                check.true(takes > 0, "a chunk takes time", takes)
    check.equal(answer["duration"], max(ends.values()), "the duration")
    first = min(start for (unit, _), start in starts.items() if answer["units"][unit]["queue"] == "comm")
    check.equal(first, 0, "when the first chunk is issued")
    computed = [unit["id"] for unit in answer["units"] if unit["results"] == ["%a"]]
    check.equal([starts[computed[0], device] for device in devices], [0] * 4, "when the computation beside it starts")


@feature("two-queue")
@clause("COLL-02.3-04", "COLL-04.1-02")
def test_one_buffer_takes_longer_than_two(impl, check):
    """Ten chunks one at a time leave links idle between them."""
    one, two = (timed(impl, check, depth=depth)["duration"] for depth in (1, 2))
    check.true(one > two, "the durations with one buffer and two", [one, two])


@feature("two-queue")
@clause("COLL-04.1-01")
def test_times_change_no_bit(impl, check):
    """Nor does a seed, nor how long computations take: data and time are separate (AMB-COLL-87)."""
    first = timed(impl, check)
    wanted = [[fp32([4 * rank * rank - 6] * 40000)] for rank in range(4)]
    each_has(check, first, wanted)
    for seed in (1, 2):
        answer = timed(impl, check, seed=seed, depth=3)
        each_has(check, answer, wanted)
    again = timed(impl, check, seed=3)
    check.equal(again["timeline"], first["timeline"], "the times with another seed")


# Refusals


@clause("COLL-02.5-01")
def test_a_wire_that_loses_bits_is_refused_as_it_is_for_the_program(impl, check):
    """Under strict; under fast it is allowed, and its twin of bf16 loses nothing (AMB-COLL-05, AMB-COLL-53)."""
    held = vector(8)
    lossy = program(issue("%f", "%x", f'{SUM}, dtype="bf16"', type=held), awaits("%y", "%f"), returns("%y", held))
    inputs = [{"x": fp32(numbers(rank, 8))} for rank in range(4)]
    refused = impl.collectives.execute_plan(text=lossy, function="f", ranks=inputs)
    check.status(refused, "TESS_ERR_DETERMINISM_VIOLATION")
    executed(impl, check, lossy, inputs, level="fast")
    executed(impl, check, lossy.replace('"bf16"', '"fp16"').replace("xfp32", "xbf16").replace('"fp16"', '"bf16"'),
             [{"x": tensor_of("bf16", [1, 2, 3, 4, 5, 6, 7, 8])} for _ in range(4)])  # fmt: skip
