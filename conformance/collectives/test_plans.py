"""The planner: awaits at first uses, chunks on tiles, and buffers (2.1, 2.3, 8 and 9)."""

import pytest

from tessera_conformance.chapters.collectives.kit.plans import (
    awaits_of,
    before,
    chunks,
    in_order,
    making,
    most_at_once,
    planned,
)
from tessera_conformance.chapters.collectives.kit.programs import (
    BRANCHED,
    SUM,
    T,
    awaits,
    binary,
    branch,
    issue,
    program,
    returns,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import ELEMENT_FORMATS

pytestmark = feature("graph-ir-text")


def stretches(units, result):
    """First element and count of each chunk of a collective."""
    return [(unit["chunk"]["first"], unit["chunk"]["count"]) for unit in chunks(units, result)]


def sliced(shape, dtype, chunk, name="chunk", collective="all_reduce"):
    """A collective of a tensor in chunks."""
    type_ = f"tensor<{shape}x{dtype}>"
    attributes = f"{SUM}, {name}={chunk}" if "reduce" in collective else f"{name}={chunk}"
    gives = {
        "all_gather": lambda: f"tensor<{int(shape) * 4}x{dtype}>",
        "reduce_scatter": lambda: f"tensor<{int(shape) // 4}x{dtype}>",
    }.get(collective, lambda: type_)()
    lines = [issue("%f", "%x", attributes, collective), awaits("%y", "%f"), returns("%y", gives)]
    return program(*lines, takes=f"%x: {type_}", gives=gives)


# Chunks

SLICES = [
    # shape, dtype, chunk, tile in bytes, elements of a chunk
    ("1000", "fp32", "1KiB", 128, 256),
    ("1000", "fp32", "1KiB", None, 256),
    ("1024", "fp32", "1KiB", 1024, 256),
    ("1000", "fp32", "1000", 128, 224),
    ("1000", "fp32", "100", 128, 32),
    ("1000", "fp32", "1", 400, 100),
    ("1000", "bf16", "1KiB", 96, 480),
    ("1000", "fp64", "1KiB", 256, 128),
    ("1000", "int8", "1KiB", 100, 1000),
    ("257", "fp32", "1KiB", 64, 256),
    ("255", "fp32", "1KiB", 64, 256),
    ("10x30", "fp32", "512", 16, 128),
    ("1", "fp32", "1MiB", 16, 262144),
]
IDS = [f"{shape}-{dtype}-{chunk}-{tile}" for shape, dtype, chunk, tile, _ in SLICES]


@clause("COLL-08-09", "COLL-02.3-03", "COLL-02.3-01")
@pytest.mark.parametrize(("shape", "dtype", "chunk", "tile", "size"), SLICES, ids=IDS)
@pytest.mark.parametrize("name", ["chunk", "chunk_bytes"])
def test_a_collective_is_sliced_at_tiles_with_a_short_tail(impl, check, shape, dtype, chunk, tile, size, name):
    """Every element in one chunk, in order; boundaries are multiples of the tile (AMB-COLL-21, AMB-COLL-55)."""
    units = planned(impl, check, sliced(shape, dtype, chunk, name), **({} if tile is None else {"tile": tile}))
    total = 1
    for extent in shape.split("x"):
        total *= int(extent)
    expected = [(first, min(size, total - first)) for first in range(0, total, size)]
    number = int(chunk.removesuffix("KiB").removesuffix("MiB"))
    number *= 1024 if chunk.endswith("KiB") else 1 << 20 if chunk.endswith("MiB") else 1
    recognize_rounded_up(check, units, expected, number, tile or ELEMENT_FORMATS[dtype].word_bytes, dtype)
    check.equal(stretches(units, "%f"), expected, "the elements of each chunk")


def recognize_rounded_up(check, units, expected, chunk, tile, dtype):
    """End the case where chunks are rounded up to whole tiles (AMB-COLL-55)."""
    step, total = -(-chunk // tile) * tile // ELEMENT_FORMATS[dtype].word_bytes, sum(expected[-1])
    others = [(first, min(step, total - first)) for first in range(0, total, step)]
    check.reading("AMB-COLL-55", "rounded up", stretches(units, "%f") == others != expected)


@clause("COLL-08-09", "COLL-02.3-01")
@pytest.mark.parametrize("collective", ["all_gather", "broadcast", "all_to_all"])
def test_every_collective_is_sliced(impl, check, collective):
    """The chunks of every collective cover the elements of a rank's operand."""
    units = planned(impl, check, sliced("600", "fp32", "1KiB", collective=collective), tile=64)
    check.equal(stretches(units, "%f"), [(0, 256), (256, 256), (512, 88)], "the elements of each chunk")
    names = {unit["op"] for unit in chunks(units)}
    check.equal(names, {f"tessera.collective.{collective}"}, "the collective of the chunks")


@clause("COLL-02.3-03", "COLL-08-09")
@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather", "broadcast", "all_to_all"])
def test_every_collective_is_sliced_at_tiles(impl, check, collective):
    """A chunk of 250 elements ends on a tile of 32, whatever the collective does (AMB-COLL-21, AMB-COLL-55)."""
    units = planned(impl, check, sliced("600", "fp32", "1000", collective=collective), tile=128)
    expected = [(0, 224), (224, 224), (448, 152)]
    recognize_rounded_up(check, units, expected, 1000, 128, "fp32")
    check.equal(stretches(units, "%f"), expected, "the elements of each chunk")


@clause("COLL-08-09")
def test_without_a_chunk_a_collective_is_one(impl, check):
    """One chunk has all elements; a tensor of no elements has one chunk too, since its ranks still communicate."""
    for extent in (1000, 0):
        type_ = f"tensor<{extent}xfp32>"
        lines = [issue("%f", "%x", SUM), awaits("%y", "%f"), returns("%y", type_)]
        units = planned(impl, check, program(*lines, takes=f"%x: {type_}", gives=type_), tile=64)
        check.equal(stretches(units, "%f"), [(0, extent)], "the elements of the only chunk")


@clause("COLL-02.3-03")
@pytest.mark.parametrize("tile", [2, 6, 7])
def test_a_tile_that_ends_within_an_element_is_refused(impl, check, tile):
    """No boundary of chunks can be at such a tile; its twin of whole elements is accepted."""
    text = sliced("1000", "fp32", "1KiB")
    planned(impl, check, text, tile=8)
    check.status(impl.collectives.plan(text=text, function="f", tile=tile), "TESS_ERR_INVALID_VALUE")


@clause("COLL-08-09", "COLL-02.3-01")
@feature("row-col-chunks")
@pytest.mark.parametrize("tile", [None, 1, 3, 32])
@pytest.mark.parametrize("chunk", [1, 4, 100, 128, 1000, 4096])
def test_a_plan_slices_as_a_tensor_is_sliced(impl, check, chunk, tile):
    """The plan has the chunks of `collectives.chunks`; tiles of so many fp32 numbers in a row (AMB-COLL-55)."""
    units = planned(impl, check, sliced("257", "fp32", str(chunk)), **({} if tile is None else {"tile": 4 * tile}))
    answer = impl.collectives.chunks(shape=[257], dtype="fp32", chunk=chunk, tile=[1, tile or 1])
    told = [(span["first"], span["count"]) for span in check.returns(answer)["chunks"]]
    check.equal(stretches(units, "%f"), told, "the chunks of a plan")


# Awaits

PLAIN = [
    '%s = "tessera.graph.all_reduce"(%x) {op = "sum", axis = "dp"}',
    binary("%a", "add", "%x", "%x"),
    '%t = "tessera.graph.all_reduce"(%a) {op = "max", axis = "dp"}',
    binary("%b", "multiply", "%a", "%a"),
    binary("%c", "subtract", "%b", "%t"),
    binary("%d", "add", "%c", "%s"),
    binary("%e", "add", "%d", "%t"),
    returns("%e"),
]


def waits_right_before(check, units, user, *results):
    """Between these waits and their first use stands nothing of the compute queue."""
    order = [unit["id"] for unit in units if unit["queue"] == "compute"]
    place = order.index(making(units, user)["id"] if user else order[-1])
    here = [units[index] for index in order[place - len(results) : place]]
    check.equal([unit["op"] for unit in here], ["tessera.await"] * len(results), f"what stands before {user}")
    check.equal({name for unit in here for name in unit["results"]}, set(results), f"what {user} waits for")


@clause("COLL-08-10", "COLL-02.1-02")
def test_plain_collectives_are_awaited_right_before_their_first_use(impl, check):
    """Graph IR's own all_reduce becomes a collective whose value is awaited where it is used (AMB-COLL-14)."""
    units = planned(impl, check, program(*PLAIN))
    check.equal(len(awaits_of(units)), 2, "the number of awaits: each once, however often it is used")
    waits_right_before(check, units, "%c", "%t")
    waits_right_before(check, units, "%d", "%s")
    check.equal([unit["op"] for unit in chunks(units)], ["tessera.collective.all_reduce"] * 2, "the collectives")


@clause("COLL-08-10", "COLL-02.1-02")
@pytest.mark.parametrize("early", [True, False], ids=["awaited-at-once", "awaited-twice"])
def test_an_await_stands_at_the_first_use_wherever_the_program_has_it(impl, check, early):
    """One that comes too early is moved to the use; a second one is the same."""
    wait, again = awaits("%s", "%f"), awaits("%t", "%f")
    lines = [issue("%f", "%x", SUM), *([wait] if early else []), binary("%a", "add", "%x", "%x")]
    lines += [*([] if early else [wait]), binary("%b", "multiply", "%a", "%a"), binary("%c", "subtract", "%b", "%s")]
    lines += [*([] if early else [again]), binary("%d", "add", "%c", "%s" if early else "%t"), returns("%d")]
    units = planned(impl, check, program(*lines))
    check.equal(len(awaits_of(units)), 1, "the number of awaits")
    waits_right_before(check, units, "%c", "%s")


GIVES = {
    "all_reduce": (SUM, T),
    "reduce_scatter": (SUM, "tensor<2xfp32>"),
    "all_gather": ("", "tensor<32xfp32>"),
    "broadcast": ("root=1", T),
    "all_to_all": ("", T),
}
"""The attributes of each collective of eight elements of four ranks, and the type of its value."""


@clause("COLL-08-10", "COLL-02.1-02")
@pytest.mark.parametrize("collective", GIVES)
def test_every_collective_is_awaited_right_before_its_first_use(impl, check, collective):
    """The program awaits it at once, and computes something else before it uses the value."""
    attributes, type_ = GIVES[collective]
    lines = [issue("%f", "%x", attributes, collective), awaits("%s", "%f"), binary("%a", "add", "%x", "%x")]
    lines += [binary("%b", "multiply", "%a", "%a"), binary("%c", "add", "%s", "%s", type_)]
    units = planned(impl, check, program(*lines, returns("%b, %c", f"{T}, {type_}"), gives=f"{T}, {type_}"))
    check.equal(len(awaits_of(units)), 1, "the number of awaits")
    waits_right_before(check, units, "%c", "%s")


@clause("COLL-02.1-03", "COLL-08-10")
@pytest.mark.parametrize("collective", GIVES)
def test_no_collective_waits_for_one_that_it_does_not_use(impl, check, collective):
    """One of each kind is issued between two others; none follows another, and each is awaited where it is used."""
    attributes, type_ = GIVES[collective]
    lines = [issue("%f", "%x", 'op="min"'), issue("%g", "%x", attributes, collective), issue("%h", "%x", 'op="max"')]
    lines += [binary("%a", "add", "%x", "%x"), *(awaits(f"%r{name}", f"%{name}") for name in "fgh")]
    gives = f"{T}, {type_}, {T}, {T}"
    units = planned(impl, check, program(*lines, returns("%rf, %rg, %rh, %a", gives), gives=gives))
    sent = chunks(units)
    ordered = [(one["id"], other["id"]) for one in sent for other in sent if in_order(units, one, other)]
    check.equal(ordered, [], "the collectives that follow another")
    waits_right_before(check, units, None, "%rf", "%rg", "%rh")


@clause("COLL-08-10")
def test_what_is_never_used_is_never_awaited(impl, check):
    """It is issued all the same, also where the program awaits it (AMB-COLL-03)."""
    lines = [issue("%f", "%x", SUM), issue("%g", "%x", 'op="max"'), awaits("%y", "%g"), returns("%x")]
    units = planned(impl, check, program(*lines))
    check.equal(len(awaits_of(units)), 0, "the number of awaits")
    check.equal(len(chunks(units)), 2, "the number of collectives")


@clause("COLL-08-10", "COLL-02.1-02")
def test_a_return_and_a_collective_are_uses(impl, check):
    """Each waits for what it takes."""
    lines = [
        issue("%f", "%x", SUM, "reduce_scatter"),
        awaits("%s", "%f"),
        binary("%a", "add", "%x", "%x"),
        issue("%g", "%s", "", "all_gather"),
        awaits("%y", "%g"),
        returns("%y, %a", f"{T}, {T}"),
    ]
    units = planned(impl, check, program(*lines, gives=f"{T}, {T}"))
    (scatter,), (gather,) = chunks(units, "%f"), chunks(units, "%g")
    first, second = awaits_of(units)
    check.true(in_order(units, scatter, first) and in_order(units, first, gather), "the gather waits for the shard")
    check.true(in_order(units, gather, second), "the second await waits for the gather")
    check.equal([unit["op"] for unit in units if unit["queue"] == "compute"][-2:], ["tessera.await", units[-1]["op"]],
                "what the return waits for")  # fmt: skip
    check.true(not in_order(units, scatter, making(units, "%a")), "the sum beside waits for nothing")


@clause("COLL-02.1-02", "COLL-01-02")
def test_only_what_uses_a_value_waits_for_its_chunks(impl, check):
    """Compute beside a collective in chunks starts before any of them has ended; the use waits for them all."""
    type_ = "tensor<1000xfp32>"
    lines = [
        issue("%f", "%x", f"{SUM}, chunk=1KiB"),
        binary("%a", "add", "%x", "%x", type_),
        awaits("%s", "%f"),
        binary("%b", "add", "%a", "%s", type_),
        binary("%c", "multiply", "%a", "%a", type_),
        returns("%b, %c", f"{type_}, {type_}"),
    ]
    units = planned(impl, check, program(*lines, takes=f"%x: {type_}", gives=f"{type_}, {type_}"))
    under_way = {unit["id"] for unit in chunks(units, "%f")}
    earlier = before(units)
    check.equal(len(under_way), 4, "the number of chunks")
    check.equal(earlier[making(units, "%b")["id"]] & under_way, under_way, "the chunks that the use waits for")
    for free in ("%a", "%c"):
        check.equal(earlier[making(units, free)["id"]] & under_way, set(), f"the chunks that {free} waits for")


# Buffers and chunks under way


@feature("pipelining")
@pytest.mark.parametrize(
    "depth", [pytest.param(2, marks=clause("COLL-02.3-04")), pytest.param(3, marks=clause("COLL-02.3-05")), 1, 4]
)
@clause("COLL-02.3-04")
def test_a_buffer_is_used_again_when_its_chunk_has_ended(impl, check, depth):
    """At most as many chunks are under way as there are buffers (AMB-COLL-58)."""
    units = planned(impl, check, sliced("1800", "fp32", "1KiB"), tile=64, depth=depth)
    own = chunks(units, "%f")
    check.equal(len(own), 8, "the number of chunks")
    check.equal(len({unit["buffer"] for unit in own}), depth, "the number of buffers")
    for index, unit in enumerate(own):
        for other in own[:index]:
            if other["buffer"] == unit["buffer"]:
                check.true(in_order(units, other, unit), f"unit {unit['id']} has the buffer of {other['id']}")
    check.equal(most_at_once(units), depth, "the chunks that may be under way together")


@feature("pipelining")
@clause("COLL-02.3-04", "COLL-02.3-05")
@pytest.mark.parametrize(("most", "depth", "expected"), [(1, None, 1), (3, None, 3), (3, 2, 3), (2, 3, 2), (16, 2, 4)])
def test_no_more_chunks_are_under_way_than_allowed(impl, check, most, depth, expected):
    """max_inflight counts the chunks of all collectives, depth those of one."""
    type_ = "tensor<1000xfp32>"
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=1KiB"),
        issue("%g", "%x", 'op="max", chunk=1KiB'),
        awaits("%a", "%f"),
        awaits("%b", "%g"),
        returns("%a, %b", f"{type_}, {type_}"),
        takes=f"%x: {type_}",
        gives=f"{type_}, {type_}",
    )
    options = {"max_inflight": most} | ({} if depth is None else {"depth": depth})
    units = planned(impl, check, text, **options)
    check.equal(len(chunks(units)), 8, "the number of chunks")
    check.equal(most_at_once(units), expected, "the chunks that may be under way together")


@clause("COLL-08-10")
def test_a_branch_takes_values_from_outside_alone(impl, check):
    """A unit with blocks has no operand that its own blocks define, and no unit but its own waits for them."""
    then = [binary("%w", "add", "%x", "%x"), binary("%y", "add", "%w", "%x")]
    text = program(
        issue("%f", "%x", SUM),
        branch(then, [binary("%z", "multiply", "%x", "%x")]),
        awaits("%v", "%f"),
        binary("%q", "add", "%r", "%v"),
        returns("%q"),
        takes=BRANCHED,
    )
    unit = making(planned(impl, check, text), "%r")
    check.equal(sorted(set(unit["operands"]) - {"%c", "%x"}), [], "operands beside the parameters")
    check.equal(unit["after"], [], "what the branch waits for")


@clause("COLL-08-10", "COLL-02.1-02")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_branch_waits_for_what_its_blocks_use(impl, check, place):
    """The value of a collective, which the first, second or third operation of a block takes."""
    used = ["%x", "%x", "%x"]
    used[place] = "%s"
    then = [
        binary(result, "add", a, b) for result, a, b in zip(("%v", "%w", "%y"), ("%x", "%v", "%w"), used, strict=True)
    ]
    lines = [issue("%f", "%x", SUM), awaits("%s", "%f"), branch(then, [binary("%z", "multiply", "%x", "%x")])]
    units = planned(impl, check, program(*lines, returns("%r"), takes=BRANCHED))
    waits = awaits_of(units)
    check.equal(len(waits), 1, "the number of awaits")
    check.true(in_order(units, waits[0], making(units, "%r")), "the branch waits for the value", units)


# The example


@clause("COLL-09.1-03")
def test_the_next_tile_is_computed_between_issue_and_await(impl, check):
    """9.1: it stands behind the issue and before the await, and waits for neither (AMB-COLL-16)."""
    text = program(
        binary("%dw", "multiply", "%x", "%x"),
        "%f = tessera.collective.all_reduce %dw",
        '{op="sum", chunk=1MiB, dtype="bf16", algo="auto", path="auto", scope="node"}',
        "; ... compute next tile ...",
        binary("%next", "add", "%x", "%x"),
        "%dw_red = tessera.await %f",
        binary("%out", "subtract", "%dw_red", "%next"),
        returns("%out"),
    )
    units = planned(impl, check, text)
    (sent,), (wait,), tile = chunks(units, "%f"), awaits_of(units), making(units, "%next")
    check.true(sent["id"] < tile["id"] < wait["id"], "the order of the queues", [sent["id"], tile["id"], wait["id"]])
    check.true(not in_order(units, sent, tile), "the tile does not wait for the chunk", tile["after"])
    check.true(in_order(units, wait, making(units, "%out")), "the epilogue waits for the sum")
    check.equal(sent.get("wire"), "bf16", "what travels")
