"""Sends and receives in programs, each with a future (collectives specification, 2.1 and 8; AMB-COLL-59)."""

import re

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    BRANCHED,
    MISMATCH,
    T,
    awaits,
    binary,
    branch,
    given,
    issue,
    on_ranks,
    program,
    returns,
)
from tessera_conformance.chapters.collectives.kit.send_recv import from_first_to_last, recv, rows_of, run, send
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

pytestmark = feature("mesh-execution", "graph-ir-text", "point-to-point")


# What arrives


@clause("COLL-02.1-01", "COLL-02.1-05")
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp8_e5m2", "int64", "bool"])
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_values_go_around_the_group(impl, check, ranks, dtype):
    """Every rank sends to one so many places ahead, around the group, and has the bits of one so many places behind.

    The future of a send has what was sent.
    """
    type_, rows = f"tensor<7x{dtype}>", rows_of(ranks, dtype, 7)
    for shift in [*range(1, ranks), *range(1 - ranks, 0)]:
        text = program(
            send("%f", "%x", f"shift={shift}"),
            recv("%g", "%x", f"shift={-shift}"),
            awaits("%s", "%f"),
            awaits("%y", "%g"),
            returns("%y, %s", f"{type_}, {type_}"),
            takes=f"%x: {type_}",
            gives=f"{type_}, {type_}",
            mesh=f"dp={ranks}",
        )
        for rank, (actual, sent) in enumerate(on_ranks(impl, check, text, given(rows))):
            check.bits(actual, rows[(rank - shift) % ranks], f"rank {rank}, {shift} places on: what has come")
            check.bits(sent, rows[rank], f"rank {rank}, {shift} places on: what it has sent")


@clause("COLL-02.1-05")
def test_bits_arrive_as_they_are(impl, check):
    """NaN, zeros of both signs, infinities and subnormals of a matrix arrive unchanged; so does a scalar."""
    values = [[0.0, -0.0, float("inf")], [float("-inf"), float("nan"), 2.0**-149]]
    type_, takes = "tensor<2x3xfp32>", "%x: tensor<2x3xfp32>, %k: fp64"
    text = program(
        send("%f", "%x", "shift=1"),
        send("%h", "%k", "shift=1"),
        recv("%g", "%x", "shift=-1"),
        recv("%i", "%k", "shift=-1"),
        awaits("%y", "%g"),
        awaits("%z", "%i"),
        returns("%y, %z", f"{type_}, fp64"),
        takes=takes,
        gives=f"{type_}, fp64",
        mesh="dp=2",
    )
    inputs = [
        {"x": tensor_of("fp32", values), "k": tensor_of("fp64", -(2.0**-1074))},
        {"x": tensor_of("fp32", [[1, 2, 3], [4, 5, 6]]), "k": tensor_of("fp64", 3)},
    ]
    for rank, outputs in enumerate(on_ranks(impl, check, text, inputs)):
        for actual, expected in zip(outputs, inputs[1 - rank].values(), strict=True):
            check.bits(actual, expected, f"rank {rank}")


@clause("COLL-02.1-01")
@pytest.mark.parametrize(
    ("mesh", "axis", "pairs"),
    [
        ("dp=2", "", {0: 1}),
        ("dp=2 tp=3", 'axis="dp"', {0: 3, 1: 4, 2: 5}),
        ("dp=3 tp=2", 'axis="tp"', {0: 1, 2: 3, 4: 5}),
    ],
)
def test_a_peer_is_a_place_along_the_axis(impl, check, mesh, axis, pairs):
    """Place 0 sends to place 1 of its own group; the buffer that is received into is not read."""
    ranks = 2 * len(pairs)
    rows = rows_of(ranks)
    flags = [rank in pairs for rank in range(ranks)]
    answers = on_ranks(impl, check, from_first_to_last(axis, mesh), given(rows, c=flags))
    for source, target in pairs.items():
        check.bits(answers[source][0], rows[source], f"rank {source}, which sends")
        check.bits(answers[target][0], rows[source], f"rank {target}, which receives")


@feature("subgroups")
@clause("COLL-02.2-03")
def test_a_peer_is_a_place_in_the_order_of_the_subgroup(impl, check):
    """Groups list their ranks in an order of their own (AMB-COLL-51); a rank of no group takes no part."""
    shard = "subgroup=!tessera.shard<groups=[[4, 1], [0, 3]]>"
    rows = rows_of(4 + 1)
    then = [send("%f", "%x", f"peer=1, {shard}"), awaits("%y", "%f")]
    otherwise = [recv("%g", "%x", f"peer=0, {shard}"), awaits("%z", "%g")]
    inner = branch(then, otherwise).replace("%r = ", "%w = ")
    outer = [inner, binary("%v", "add", "%x", "%x")]
    text = program(
        '%r = "tessera.graph.if"(%d) ({',
        outer[0],
        f'"tessera.graph.yield"(%w) : ({T}) -> ()',
        "}, {",
        outer[1],
        f'"tessera.graph.yield"(%v) : ({T}) -> ()',
        f"}}) : (bool) -> {T}",
        returns("%r"),
        takes=f"{BRANCHED}, %d: bool",
        mesh="dp=5",
    )
    rows[2] = tensor_of("fp32", [1] * 8)
    answers = on_ranks(impl, check, text, given(rows, c=[1, 0, 0, 0, 1], d=[1, 1, 0, 1, 1]))
    for rank, expected in enumerate([rows[0], rows[4], tensor_of("fp32", [2] * 8), rows[0], rows[4]]):
        check.bits(answers[rank][0], expected, f"rank {rank}")


@clause("COLL-02.1-01")
def test_messages_of_one_tag_arrive_in_order_and_of_several_by_tag(impl, check):
    """The n-th receive of a tag gets the n-th send of it, whatever was issued or is awaited before."""
    then = [
        binary("%d", "add", "%x", "%x"),
        binary("%e", "add", "%d", "%x"),
        send("%f1", "%x", "peer=1, tag=7"),
        send("%f2", "%d", "peer=1"),
        send("%f3", "%e", "peer=1, tag=7"),
        awaits("%s3", "%f3"),
        awaits("%s1", "%f1"),
        binary("%y", "subtract", "%s3", "%s1"),
    ]
    otherwise = [
        recv("%g2", "%x", "peer=0, tag=0"),
        recv("%g1", "%x", "peer=0, tag=7"),
        recv("%g3", "%x", "peer=0, tag=7"),
        awaits("%w3", "%g3"),
        awaits("%w2", "%g2"),
        awaits("%w1", "%g1"),
        binary("%w", "multiply", "%w1", "%w2"),
        binary("%z", "subtract", "%w3", "%w"),
    ]
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh="dp=2")
    rows = [tensor_of("fp32", [rank + 1 + place for place in range(8)]) for rank in range(2)]
    ((sender,), (receiver,)) = on_ranks(impl, check, text, given(rows, c=[1, 0]))
    check.bits(sender, tensor_of("fp32", [2 * (place + 1) for place in range(8)]), "the third less the first")
    expected = [3 * (place + 1) - 2 * (place + 1) ** 2 for place in range(8)]
    check.bits(receiver, tensor_of("fp32", expected), "the third less the product of first and second")


@clause("COLL-02.1-02", "COLL-02.1-03")
def test_messages_are_counted_apart_from_collectives(impl, check):
    """One rank sends before it reduces, the other receives after it has: nothing waits where it is issued."""
    then = [
        send("%f", "%x", "peer=1"),
        issue("%a", "%x", 'op="sum"'),
        awaits("%b", "%a"),
        awaits("%s", "%f"),
        binary("%y", "subtract", "%b", "%s"),
    ]
    otherwise = [
        issue("%i", "%x", 'op="sum"'),
        awaits("%j", "%i"),
        recv("%g", "%j", "peer=0"),
        awaits("%w", "%g"),
        binary("%z", "subtract", "%j", "%w"),
    ]
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh="dp=2")
    rows = [tensor_of("fp32", [10**rank] * 8) for rank in range(2)]
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows, c=[1, 0]))):
        check.bits(actual, tensor_of("fp32", [10] * 8), f"rank {rank}: the sum less what was sent")


@clause("COLL-02.1-03")
def test_ranks_outside_of_all_messages_wait_for_nothing(impl, check):
    """One pair of three ranks exchanges; the third ends."""
    then = [send("%f", "%x", "shift=1"), recv("%g", "%x", "shift=1"), awaits("%y", "%g")]
    otherwise = [send("%h", "%x", "shift=-1"), recv("%i", "%x", "shift=-1"), awaits("%z", "%i")]
    text = program(
        '%q = "tessera.graph.if"(%d) ({',
        branch(then, otherwise),
        f'"tessera.graph.yield"(%r) : ({T}) -> ()',
        "}, {",
        f'"tessera.graph.yield"(%x) : ({T}) -> ()',
        f"}}) : (bool) -> {T}",
        returns("%q"),
        takes=f"{BRANCHED}, %d: bool",
        mesh="dp=3",
    )
    rows = rows_of(3)
    answers = on_ranks(impl, check, text, given(rows, c=[0, 1, 0], d=[0, 1, 1]))
    for rank, expected in enumerate([rows[0], rows[2], rows[1]]):
        check.bits(answers[rank][0], expected, f"rank {rank}")


@clause("COLL-02.1-02", "COLL-02.1-05")
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_ring_of_messages_sums_what_all_ranks_bring(impl, check, ranks):
    """In a loop, partial sums go around and each rank adds its own number, n - 1 times."""
    type_ = "tensor<3xint64>"
    text = program(
        '%one = "tessera.graph.constant"() {value = 1, dtype = "int32"} : () -> int32',
        f'%n = "tessera.graph.constant"() {{value = {ranks}, dtype = "int32"}} : () -> int32',
        '%total = "tessera.graph.for"(%one, %n, %one, %x) ({',
        f"^bb0(%i: int32, %sum: {type_}):",
        f"  {send('%f', '%sum', 'shift=1, tag=3')}",
        f"  {recv('%g', '%sum', 'shift=-1, tag=3')}",
        f"  {awaits('%come', '%g')}",
        f"  {binary('%next', 'add', '%come', '%x', type_)}",
        f'  "tessera.graph.yield"(%next) : ({type_}) -> ()',
        f"}}) : (int32, int32, int32, {type_}) -> {type_}",
        returns("%total", type_),
        takes=f"%x: {type_}",
        gives=type_,
        mesh=f"dp={ranks}",
    )
    rows = [[7**rank, -(3**rank), rank << 40] for rank in range(ranks)]
    answers = on_ranks(impl, check, text, given([tensor_of("int64", row) for row in rows]))
    for rank, (actual,) in enumerate(answers):
        check.bits(actual, tensor_of("int64", [sum(column) for column in zip(*rows, strict=True)]), f"rank {rank}")


# Who waits for whom


def named(check, observation, *words):
    """A mismatch whose message names words, and ranks by their numbers."""
    check.status(observation, MISMATCH)
    message = observation.message if isinstance(observation, Rejected) else ""
    for word in words if check.judges_words else ():
        check.true(re.search(rf"\b{word}\b", message) is not None, f"the message names {word}", message)


@clause("COLL-02.1-02")
@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("first", ["send", "recv"])
def test_ranks_that_await_one_end_before_they_issue_the_other_wait_for_each_other(impl, check, first, ranks):
    """A circle, which the message names with its ranks and their calls. The twin issues both first and completes."""
    out, back = send("%f", "%x", "shift=1, tag=5"), recv("%g", "%x", "shift=-1, tag=5")
    wait, last = awaits("%s", "%f"), awaits("%y", "%g")
    if first == "recv":
        out, back, wait, last = back, out, last, wait
    legal = program(out, back, wait, last, returns("%y"), mesh=f"dp={ranks}")
    rows = rows_of(ranks)
    for rank, (actual,) in enumerate(on_ranks(impl, check, legal, given(rows))):
        check.bits(actual, rows[rank - 1], f"rank {rank}")
    crossed = program(out, wait, back, last, returns("%y"), mesh=f"dp={ranks}")
    named(check, run(impl, crossed, given(rows)), first, *range(ranks))


@clause("COLL-02.1-02")
@pytest.mark.parametrize("awaited", [True, False], ids=["awaited", "never-awaited"])
@pytest.mark.parametrize("alone", ["send", "recv"])
def test_a_message_without_another_end_is_a_mismatch(impl, check, alone, awaited):
    """It is never a hang, and is reported even if no rank awaits it (AMB-COLL-50); both ranks are named."""
    text = from_first_to_last()
    rows = rows_of(2)
    check.returns(run(impl, text, given(rows, c=[1, 0])))
    attributes = "peer=1" if alone == "send" else "peer=0"
    own = [issue("%f", "%x", attributes, alone), awaits("%y", "%f") if awaited else binary("%y", "add", "%x", "%x")]
    text = program(branch(own, [binary("%z", "add", "%x", "%x")]), returns("%r"), takes=BRANCHED, mesh="dp=2")
    flags = [alone == "send", alone == "recv"]
    named(check, run(impl, text, given(rows, c=flags)), alone, 0, 1)


@clause("COLL-02.1-01")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(("send", "peer=1, tag=1"), ("recv", "peer=0, tag=2"), id="tag"),
        pytest.param(("send", "peer=1"), ("send", "peer=0"), id="two-sends"),
        pytest.param(("recv", "peer=1"), ("recv", "peer=0"), id="two-receives"),
        pytest.param(("send", "peer=1, chunk=1KiB"), ("recv", "peer=0, chunk=2KiB"), id="chunk"),
        pytest.param(("send", "peer=1"), ("recv", "peer=2"), id="another-peer"),
    ],
)
def test_ends_that_do_not_fit_are_a_mismatch(impl, check, first, second):
    """Another tag, two of one kind, another chunk (AMB-COLL-52), another rank; the twin agrees."""
    rows = rows_of(3)

    def between(first, second):
        then = [issue("%f", "%x", first[1], first[0]), awaits("%y", "%f")]
        otherwise = [issue("%g", "%x", second[1], second[0]), awaits("%z", "%g")]
        outer = [
            '%q = "tessera.graph.if"(%d) ({',
            branch(then, otherwise),
            f'"tessera.graph.yield"(%r) : ({T}) -> ()',
            "}, {",
            f'"tessera.graph.yield"(%x) : ({T}) -> ()',
            f"}}) : (bool) -> {T}",
        ]
        text = program(*outer, returns("%q"), takes=f"{BRANCHED}, %d: bool", mesh="dp=3")
        return run(impl, text, given(rows, c=[1, 0, 0], d=[1, 1, 0]))

    check.returns(between(("send", "peer=1, tag=1, chunk=1KiB"), ("recv", "peer=0, tag=1, chunk=1KiB")))
    named(check, between(first, second), 0, 1)


@clause("COLL-02.1-01")
@pytest.mark.parametrize(
    "other",
    [tensor_of("fp32", [1] * 9), tensor_of("fp32", [[1] * 4] * 2)],
    ids=["count", "shape"],
)
def test_ends_of_different_shapes_are_a_mismatch(impl, check, other):
    """A dimension that the text leaves open is one at both ends."""
    type_ = f"tensor<{'x'.join('?' * len(other.shape))}xfp32>"
    text = from_first_to_last().replace(T, type_)
    alike = tensor_of("fp32", [2] * 8) if len(other.shape) == 1 else tensor_of("fp32", [[2] * 2] * 4)
    check.returns(run(impl, text, given([alike, alike], c=[1, 0])))
    for rows in ([alike, other], [other, alike]):
        named(check, run(impl, text, given(rows, c=[1, 0])), 0, 1)


@clause("COLL-02.1-01")
def test_ends_of_different_dtypes_are_a_mismatch(impl, check):
    """fp32 is sent, a buffer of bf16, fp64 or int32 is there; one of fp32 fits."""
    for dtype in ("fp32", "bf16", "fp64", "int32"):
        type_ = f"tensor<8x{dtype}>"
        then = [send("%f", "%x", "peer=1"), awaits("%y", "%f")]
        otherwise = [recv("%g", "%b", "peer=0"), awaits("%v", "%g"), binary("%z", "add", "%x", "%x")]
        text = program(branch(then, otherwise), returns("%r"), takes=f"{BRANCHED}, %b: {type_}", mesh="dp=2")
        inputs = [rank | {"b": tensor_of(dtype, [0] * 8)} for rank in given(rows_of(2), c=[1, 0])]
        if dtype == "fp32":
            check.returns(run(impl, text, inputs))
        else:
            named(check, run(impl, text, inputs), 0, 1, "fp32", dtype)
