"""Instantiated graphs and their replay, which is deterministic (runtime spec, 12; AMB-RT-11, AMB-RT-162)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of, wrapped
from tessera_conformance.chapters.runtime.kit.graphs import (
    SEEDS,
    digit_stream,
    end_streams,
    instantiated,
    nodes_of,
    replay,
    streams_under,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    CAPTURE,
    COUNT,
    D2D,
    D2H,
    DETERMINISTIC,
    opened,
    refused,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned
from tessera_conformance.vectors.building import counted

PRODUCT = "module products { kernel square(a: tensor<8x8xfp32>, b: tensor<8x8xfp32>) { b = a @ a; } }"
MATRIX_BYTES = 4 * 8 * 8
REDUCED = """module m {
  mesh g = mesh<axes=[dp], shape=[2]>;
  kernel reduced(x: tensor<64xint32>) { x = dist.all_reduce(x) @{axis=dp, op="sum"}; }
}
"""


# Instantiation and replay


@clause("RT-12-07")
def test_a_graph_outlives_its_capture(impl, check):
    """It can be instantiated, replayed and destroyed, and its stream can capture anew (AMB-RT-64)."""
    session = digit_stream(impl, check)
    pointer = session.zeros()
    first = session.captured(pointer, 1, 2)
    second = session.captured(pointer, 3)
    check.true(first != second, "each capture has a graph of its own", [first, second])
    replay(session, second)
    replay(session, first)
    session.require(pointer, 312, "the second graph, then the first")
    check.equal(session.ask("tessxGraphDestroy", graph=first), {}, "no outputs")
    replay(session, second)
    session.require(pointer, 3123, "the second graph without the first")


@clause("RT-12-07")
def test_a_stream_that_captured_nothing_has_no_graph(impl, check):
    """TESS_ERR_INVALID_VALUE, and once more after an instantiation has ended the capture (AMB-RT-162)."""
    session = digit_stream(impl, check)
    pointer = session.zeros()
    nothing_to_instantiate(session)
    session.captured(pointer, 1)
    nothing_to_instantiate(session)


def nothing_to_instantiate(session):
    """Check that the stream has no graph; an empty one is another reading."""
    answer = session.attempt("tessxGraphInstantiate", stream=session.stream)
    empty = isinstance(answer, Returned) and answer.value["graph"] and not nodes_of(session, answer.value["graph"])
    session.check.reading("AMB-RT-162", "an empty graph", bool(empty))
    refused(session.check, answer, "TESS_ERR_INVALID_VALUE")


@feature("mesh-collectives")
@clause("RT-12-08")
def test_ranks_that_meet_in_a_kernel_meet_anew_at_each_replay(impl, check):
    """Each replay doubles a tensor by a sum over two ranks and copies it to the host (AMB-RT-64)."""
    session = opened(impl, check, ranks=2)
    pointer, target = session.upload(elements("int32", *[3] * COUNT)), session.host(bytes(BYTES))
    session.synchronize()
    session.launch(session.kernel("reduced", REDUCED), packed(("ptr", pointer)), flags=CAPTURE)
    session.copy(target, pointer, BYTES, D2H)
    graph = instantiated(session)
    for doubled in (6, 12, 24):
        replay(session, graph)
        session.synchronize()
        check.equal(values_of("int32", session.host_bytes(target, BYTES)), [doubled] * COUNT, "what the host receives")


@clause("RT-12-08")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["its own stream", "another stream"])
def test_a_graph_is_replayed_as_often_as_is_asked_for(impl, check, elsewhere):
    """Four replays append the digits 1 and 2 four times, in their order (AMB-RT-64)."""
    session = digit_stream(impl, check)
    pointer = session.zeros()
    graph = session.captured(pointer, 1, 2)
    on = session.another_stream() if elsewhere else session
    number = 0
    for times in (1, 3):
        for _ in range(times):
            replay(on, graph)
            number = 100 * number + 12
        on.require(pointer, number, f"the tensor after {times} more replays")


@clause("RT-12-08", "RT-12-05", "RT-12-06")
@pytest.mark.parametrize("count", [9, 40])
def test_a_graph_of_many_nodes_is_replayed_whole(impl, check, count):
    """Each launch works on what the nodes before it left; after every fifth, one of two tensors is copied.

    As AMB-RT-64 has it.
    """
    session = digit_stream(impl, check)
    first, second = pointers = session.zeros(), session.zeros()
    numbers = [0, 0]
    for place in range(count):
        session.append(place % 10, pointers[place % 2], CAPTURE)
        if place % 5 == 4:
            session.copy(pointers[1 - place % 2], pointers[place % 2], BYTES, D2D)
    graph = instantiated(session)
    for times in (1, 2):
        for place in range(count):
            numbers[place % 2] = wrapped(10 * numbers[place % 2] + place % 10)
            if place % 5 == 4:
                numbers[1 - place % 2] = numbers[place % 2]
        replay(session, graph)
        session.require(first, numbers[0], f"the first tensor after {times} replays")
        session.require(second, numbers[1], f"the second tensor after {times} replays")


@clause("RT-12-08")
def test_a_replay_has_its_place_in_its_stream(impl, check):
    """It comes after the launches before it and before those behind it, without a synchronization (AMB-RT-64)."""
    session = digit_stream(impl, check)
    pointer = session.zeros()
    graph = session.captured(pointer, 2, 3)
    session.append(1, pointer)
    replay(session, graph)
    session.append(4, pointer)
    replay(session, graph)
    session.require(pointer, 123423, "the digits in order of the stream")


@clause("RT-12-08")
def test_what_fails_in_a_replay_is_reported_by_the_next_synchronize(impl, check):
    """Capture and instantiation report nothing; a replay that fails can be followed by one that succeeds.

    As AMB-RT-64 has it.
    """
    session = digit_stream(impl, check)
    divide = session.kernel("divide")
    pointer = session.zeros()
    session.launch(divide, packed(("int32", 0), ("ptr", pointer)), flags=CAPTURE)
    failing = instantiated(session)
    session.synchronize()
    replay(session, failing)
    session.reports("TESS_ERR_LAUNCH_FAILED")
    replay(session, session.captured(pointer, 5))
    session.require(pointer, 5, "the tensor after a graph that does not fail")


@clause("RT-12-08")
@feature("rank-memory")
def test_a_replay_runs_on_every_rank(impl, check):
    """Four ranks begin with other numbers, and each has two more digits (AMB-RT-64)."""
    session = digit_stream(impl, check, 4)
    pointer = session.zeros()
    for rank in range(4):
        session.poke(rank, pointer, elements("int32", *[rank] * COUNT))
    graph = session.captured(pointer, 8, 9)
    replay(session, graph)
    session.synchronize()
    for rank in range(4):
        check.equal(session.integers_of_rank(rank, pointer), [100 * rank + 89] * COUNT, f"the tensor of rank {rank}")


# Determinism


def product_graph(sessions, kernel, a, b, c, d):
    """The graph of b = a @ a, c = b @ b on one stream, d = b @ b on another, d = c @ c behind both."""
    session, other = sessions
    flags = CAPTURE | DETERMINISTIC
    session.launch(kernel, packed(("ptr", a), ("ptr", b)), flags=flags)
    other.wait_stream(session)
    session.launch(kernel, packed(("ptr", b), ("ptr", c)), flags=flags)
    other.launch(kernel, packed(("ptr", b), ("ptr", d)), flags=flags)
    session.wait_stream(other)
    session.launch(kernel, packed(("ptr", c), ("ptr", d)), flags=flags)
    return instantiated(session)


def matrix() -> bytes:
    """A matrix whose products depend on the order of their additions, and stay finite."""
    return counted("fp32", (8, 8), seed=601, exponents=(-4, 4)).data


def eager_products(session, kernel):
    """Device memory of a, and the bits of deterministic launches of a @ a, its square and the square of that."""
    first = a = session.upload(matrix())
    actual = []
    for _ in range(3):
        b = session.upload(bytes(MATRIX_BYTES))
        session.launch(kernel, packed(("ptr", a), ("ptr", b)), flags=DETERMINISTIC)
        actual.append(session.download(b, MATRIX_BYTES).hex())
        a = b
    return first, actual


def room_for_products(session):
    """Allocate b, c and d, one behind the other."""
    pointer = session.upload(bytes(3 * MATRIX_BYTES))
    session.synchronize()
    return [pointer + place * MATRIX_BYTES for place in range(3)]


def require_products(session, pointers, products, when):
    """Check the results of the replayed graph."""
    actual = session.download(pointers[0], 3 * MATRIX_BYTES).hex()
    session.check.equal(actual, "".join(products), f"the bits of the products {when}")


@clause("RT-12-09")
def test_every_replay_gives_the_bits_of_the_launches(impl, check):
    """Ten replays of products in fp32 across two streams have the bits of the same deterministic launches.

    As AMB-RT-160 has it.
    """
    session = opened(impl, check)
    kernel = session.kernel("square", PRODUCT)
    a, products = eager_products(session, kernel)
    pointers = room_for_products(session)
    graph = product_graph([session, session.another_stream()], kernel, a, *pointers)
    for number in range(10):
        replay(session, graph)
        require_products(session, pointers, products, f"at replay {number}")


@clause("RT-12-09")
@feature("schedule-control")
def test_replays_give_the_same_bits_under_every_schedule(impl, check):
    """200 seeds, each of which resolves concurrency in its own way: one result (AMB-RT-64, AMB-RT-160)."""
    session = opened(impl, check)
    kernel = session.kernel("square", PRODUCT)
    a, products = eager_products(session, kernel)
    pointers = room_for_products(session)
    end_streams([session])
    for seed in range(SEEDS):
        streams = streams_under(session, 3, seed)
        graph = product_graph(streams[:2], kernel, a, *pointers)
        replay(streams[2], graph)
        require_products(streams[2], pointers, products, f"under seed {seed}")
        end_streams(streams)


@clause("RT-12-05", "RT-12-09")
@feature("schedule-control")
def test_edges_hold_under_every_schedule(impl, check):
    """Launches on two streams of a graph, ordered by events alone, append their digits in order under 200 seeds.

    As AMB-RT-64 and AMB-RT-160 have it.
    """
    session = digit_stream(impl, check)
    pointer = session.zeros()
    end_streams([session])
    for seed in range(SEEDS):
        first, second, third = streams = streams_under(session, 3, seed)
        for digit, (on, then) in enumerate([(first, second), (second, first), (first, second)], 1):
            on.append(digit, pointer, CAPTURE)
            then.wait_stream(on)
        second.append(4, pointer, CAPTURE)
        first.wait_stream(second)
        graph = instantiated(first)
        third.write(pointer, bytes(BYTES))
        replay(third, graph)
        third.require(pointer, 1234, f"the digits under seed {seed}")
        end_streams(streams)
