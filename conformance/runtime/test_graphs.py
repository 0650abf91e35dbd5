"""Capture of a stream, and the replay of its graph (runtime spec, 6 and 12; AMB-RT-11, -64, -86, -160 to -162)."""

from __future__ import annotations

import pytest

from tessera_conformance.marks import clause, feature
from tessera_conformance.runtime_arguments import elements, packed, values_of
from tessera_conformance.runtime_graphs import (
    SEEDS,
    before,
    captured_digits,
    digits,
    end_streams,
    instantiated,
    join,
    nodes_of,
    replay,
    streams_under,
)
from tessera_conformance.runtime_programs import (
    BYTES,
    CAPTURE,
    COUNT,
    D2D,
    D2H,
    DETERMINISTIC,
    H2D,
    LOW_LATENCY,
    opened,
    refused,
)
from tessera_conformance.vectors.counter import counted

PRODUCT = "module products { kernel square(a: tensor<8x8xfp32>, b: tensor<8x8xfp32>) { b = a @ a; } }"
MATRIX_BYTES = 4 * 8 * 8


# Capture


@clause("RT-06-11")
@pytest.mark.parametrize("flags", [CAPTURE, CAPTURE | DETERMINISTIC, CAPTURE | LOW_LATENCY])
def test_a_captured_launch_does_not_run_until_it_is_replayed(impl, check, flags):
    """Neither when its stream is synchronized nor when the graph is instantiated; then it runs once (AMB-RT-64)."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    pointer = known.zeros()
    known.append(session, 7, pointer, flags)
    session.synchronize()
    known.require(other, pointer, 0, "what a captured launch has written")
    graph = instantiated(session)
    session.synchronize()
    known.require(other, pointer, 0, "what an instantiated graph has written")
    replay(session, graph)
    known.require(session, pointer, 7, "what the replay has written")


@clause("RT-06-11")
def test_the_arguments_of_a_captured_launch_are_those_of_its_capture(impl, check):
    """The parameter buffer has been read when tessLaunch returns, also by a launch that runs later (AMB-RT-72)."""
    session = opened(impl, check)
    known = digits(session)
    first, second = known.zeros(), known.zeros()
    buffer = session.host(packed(("int32", 4), ("ptr", first)))
    answer = session.launching(known.kernel, argBuffer=buffer, argSize=16, flags=CAPTURE)
    check.returns(answer, "tessLaunch succeeds")
    session.ask("tessxHostWrite", hostPtr=buffer, data=packed(("int32", 5), ("ptr", second)).hex())
    replay(session, instantiated(session))
    known.require(session, first, 4, "where the launch was to write")
    known.require(session, second, 0, "where the overwritten buffer points")


@clause("RT-06-11")
def test_a_stream_that_captures_leaves_others_alone(impl, check):
    """Launches on another stream run while a capture goes on, and belong to no graph."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    captured, running = known.zeros(), known.zeros()
    known.append(session, 1, captured, CAPTURE)
    known.append(other, 2, running)
    known.require(other, running, 2, "what runs at once")
    graph = instantiated(session)
    check.equal(len(nodes_of(session, graph)), 1, "the number of captured launches")
    known.append(session, 3, running)
    known.require(session, running, 23, "what is launched after the capture, on its stream")


@clause("RT-06-11")
def test_two_streams_capture_two_graphs(impl, check):
    """Each has the launches of its own stream."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    first, second = known.zeros(), known.zeros()
    known.append(session, 1, first, CAPTURE)
    known.append(other, 2, second, CAPTURE)
    known.append(session, 3, first, CAPTURE)
    graphs = instantiated(session), instantiated(other)
    check.true(graphs[0] != graphs[1], "the graphs are two", graphs)
    check.equal([len(nodes_of(session, graph)) for graph in graphs], [2, 1], "the number of launches of each")
    replay(session, graphs[0])
    known.require(session, first, 13, "the first graph's tensor")
    known.require(session, second, 0, "the second graph's tensor")


# The graph


@clause("RT-12-05")
def test_launches_are_nodes_in_the_order_of_their_stream(impl, check):
    """Three launches on a stream: nodes of the kind launch, named after their kernels, each after the one before."""
    session = opened(impl, check)
    known, fill = digits(session), session.kernel("fill")
    pointer = known.zeros()
    known.append(session, 1, pointer, CAPTURE)
    session.launch(fill, packed(("int32", 5), ("ptr", pointer)), flags=CAPTURE)
    known.append(session, 2, pointer, CAPTURE)
    nodes = nodes_of(session, instantiated(session))
    check.equal([node["kind"] for node in nodes], ["launch"] * 3, "the kinds of the nodes")
    check.equal([node["name"] for node in nodes], ["digit", "fill", "digit"], "the kernels that are launched")
    check.equal([sorted(before(nodes, index)) for index in range(3)], [[], [0], [0, 1]], "the nodes before each")


@clause("RT-12-05")
def test_streams_that_events_join_share_a_graph(impl, check):
    """A fork and a join: launches on a stream that waits for an event of the capture follow it (AMB-RT-160)."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    pointer, beside = known.zeros(), known.zeros()
    known.append(session, 1, pointer, CAPTURE)
    join(session, other)
    known.append(other, 2, beside, CAPTURE)
    known.append(session, 3, pointer, CAPTURE)
    join(other, session)
    known.append(session, 4, pointer, CAPTURE)
    graph = instantiated(session)
    nodes = nodes_of(session, graph)
    check.equal([node["kind"] for node in nodes], ["launch"] * 4, "the kinds of the nodes")
    for index, needed in enumerate([set(), {0}, {0}, {0, 1, 2}]):
        found = before(nodes, index)
        check.true(needed <= found, f"node {index} follows {sorted(needed)}", sorted(found))
    replay(session, graph)
    known.require(session, pointer, 134, "the tensor of the capturing stream")
    known.require(session, beside, 2, "the tensor of the stream that joined")
    known.append(other, 5, beside)
    known.require(other, beside, 25, "what runs on the stream that joined, after the capture")


@clause("RT-12-06")
def test_copies_are_nodes_and_do_not_run_before_replay(impl, check):
    """To the device, on it, and back, between launches; each follows what was captured before (AMB-RT-86)."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    pointer, second = known.zeros(), known.zeros()
    source, target = session.host(elements("int32", *[6] * COUNT)), session.host(bytes(BYTES))
    known.append(session, 1, second, CAPTURE)
    session.copy(pointer, source, BYTES, H2D)
    known.append(session, 2, pointer, CAPTURE)
    session.copy(second, pointer, BYTES, D2D)
    session.copy(target, second, BYTES, D2H)
    known.require(other, pointer, 0, "what a captured copy has written")
    graph = instantiated(session)
    nodes = nodes_of(session, graph)
    check.equal(
        [node["kind"] for node in nodes], ["launch", "copy", "launch", "copy", "copy"], "the kinds of the nodes"
    )
    check.equal([sorted(before(nodes, index)) for index in range(5)], [[*range(n)] for n in range(5)], "those before")
    check.equal(session.host_bytes(target, BYTES), bytes(BYTES), "the host's memory before replay")
    replay(session, graph)
    session.synchronize()
    check.equal(values_of("int32", session.host_bytes(target, BYTES)), [62] * COUNT, "the host's memory afterwards")


@clause("RT-12-06")
def test_replayed_copies_move_what_memory_holds_then(impl, check):
    """The source is read when the copy runs, at each replay anew (AMB-RT-161)."""
    session = opened(impl, check)
    known = digits(session)
    pointer = known.zeros()
    source = session.host(elements("int32", *[1] * COUNT))
    session.launch(session.kernel("nothing"), flags=CAPTURE)
    session.copy(pointer, source, BYTES, H2D)
    known.append(session, 9, pointer, CAPTURE)
    graph = instantiated(session)
    for value in (1, 2, 3):
        session.ask("tessxHostWrite", hostPtr=source, data=elements("int32", *[value] * COUNT).hex())
        replay(session, graph)
        known.require(session, pointer, 10 * value + 9, f"the tensor after a replay with {value}")


# Instantiation and replay


@clause("RT-12-07")
def test_a_graph_outlives_its_capture(impl, check):
    """It can be instantiated, replayed and destroyed, and its stream can capture anew."""
    session = opened(impl, check)
    known = digits(session)
    pointer = known.zeros()
    first = captured_digits(known, pointer, 1, 2)
    second = captured_digits(known, pointer, 3)
    check.true(first != second, "each capture has a graph of its own", [first, second])
    replay(session, second)
    replay(session, first)
    known.require(session, pointer, 312, "the second graph, then the first")
    check.equal(session.ask("tessxGraphDestroy", graph=first), {}, "no outputs")
    replay(session, second)
    known.require(session, pointer, 3123, "the second graph without the first")


@clause("RT-12-07")
def test_a_stream_that_captured_nothing_has_no_graph(impl, check):
    """TESS_ERR_INVALID_VALUE, and once more after an instantiation has ended the capture (AMB-RT-162)."""
    session = opened(impl, check)
    known = digits(session)
    pointer = known.zeros()
    refused(check, session.attempt("tessxGraphInstantiate", stream=session.stream), "TESS_ERR_INVALID_VALUE")
    captured_digits(known, pointer, 1)
    refused(check, session.attempt("tessxGraphInstantiate", stream=session.stream), "TESS_ERR_INVALID_VALUE")


@clause("RT-12-08")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["its own stream", "another stream"])
def test_a_graph_is_replayed_as_often_as_is_asked_for(impl, check, elsewhere):
    """Four replays append the digits 1 and 2 four times, in their order."""
    session = opened(impl, check)
    known = digits(session)
    pointer = known.zeros()
    graph = captured_digits(known, pointer, 1, 2)
    on = session.another_stream() if elsewhere else session
    number = 0
    for times in (1, 3):
        for _ in range(times):
            replay(on, graph)
            number = 100 * number + 12
        known.require(on, pointer, number, f"the tensor after {times} more replays")


@clause("RT-12-08")
def test_a_replay_has_its_place_in_its_stream(impl, check):
    """It comes after the launches before it and before those behind it, without a synchronization."""
    session = opened(impl, check)
    known = digits(session)
    pointer = known.zeros()
    graph = captured_digits(known, pointer, 2, 3)
    known.append(session, 1, pointer)
    replay(session, graph)
    known.append(session, 4, pointer)
    replay(session, graph)
    known.require(session, pointer, 123423, "the digits in order of the stream")


@clause("RT-12-08")
def test_what_fails_in_a_replay_is_reported_by_the_next_synchronize(impl, check):
    """Not by the capture, nor by instantiation; a replay that fails can be followed by one that does not."""
    session = opened(impl, check)
    known, divide = digits(session), session.kernel("divide")
    pointer = known.zeros()
    session.launch(divide, packed(("int32", 0), ("ptr", pointer)), flags=CAPTURE)
    failing = instantiated(session)
    session.synchronize()
    replay(session, failing)
    refused(check, session.attempt("tessStreamSynchronize", stream=session.stream), "TESS_ERR_LAUNCH_FAILED")
    replay(session, captured_digits(known, pointer, 5))
    known.require(session, pointer, 5, "the tensor after a graph that does not fail")


@clause("RT-12-08")
@feature("rank-memory")
def test_a_replay_runs_on_every_rank(impl, check):
    """Four ranks begin with other numbers, and each has two more digits."""
    session = opened(impl, check, 4)
    known = digits(session)
    pointer = known.zeros()
    for rank in range(4):
        session.poke(rank, pointer, elements("int32", *[rank] * COUNT))
    graph = captured_digits(known, pointer, 8, 9)
    replay(session, graph)
    session.synchronize()
    for rank in range(4):
        found = values_of("int32", session.peek(rank, pointer, BYTES))
        check.equal(found, [100 * rank + 89] * COUNT, f"the tensor of rank {rank}")


# Determinism


def product_graph(sessions, kernel, a, b, c, d):
    """The graph of b = a @ a, c = b @ b on one stream, d = b @ b on another, d = c @ c behind both."""
    session, other = sessions
    flags = CAPTURE | DETERMINISTIC
    session.launch(kernel, packed(("ptr", a), ("ptr", b)), flags=flags)
    join(session, other)
    session.launch(kernel, packed(("ptr", b), ("ptr", c)), flags=flags)
    other.launch(kernel, packed(("ptr", b), ("ptr", d)), flags=flags)
    join(other, session)
    session.launch(kernel, packed(("ptr", c), ("ptr", d)), flags=flags)
    return instantiated(session)


def matrix() -> bytes:
    """A matrix whose products depend on the order of their additions, and stay finite."""
    return counted("fp32", (8, 8), seed=601, exponents=(-4, 4)).data


def eager_products(session, kernel):
    """Device memory of a, and the bits of deterministic launches of a @ a, its square and the square of that."""
    first = a = session.upload(matrix())
    found = []
    for _ in range(3):
        b = session.upload(bytes(MATRIX_BYTES))
        session.launch(kernel, packed(("ptr", a), ("ptr", b)), flags=DETERMINISTIC)
        found.append(session.download(b, MATRIX_BYTES).hex())
        a = b
    return first, found


def room_for_products(session):
    """Where b, c and d lie, one behind the other."""
    pointer = session.upload(bytes(3 * MATRIX_BYTES))
    session.synchronize()
    return [pointer + place * MATRIX_BYTES for place in range(3)]


def require_products(session, pointers, products, when):
    """What the replayed graph has left."""
    found = session.download(pointers[0], 3 * MATRIX_BYTES).hex()
    session.check.equal(found, "".join(products), f"the bits of the products {when}")


@clause("RT-12-09")
def test_every_replay_gives_the_bits_of_the_launches(impl, check):
    """Ten replays of products in fp32 across two streams have the bits of the same deterministic launches."""
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
    """200 seeds, each of which resolves concurrency in its own way: one result."""
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
    """Launches on two streams of a graph, ordered by events alone, append their digits in order under 200 seeds."""
    session = opened(impl, check)
    known = digits(session)
    pointer = known.zeros()
    end_streams([session])
    for seed in range(SEEDS):
        first, second, third = streams = streams_under(session, 3, seed)
        for digit, (on, then) in enumerate([(first, second), (second, first), (first, second)], 1):
            known.append(on, digit, pointer, CAPTURE)
            join(on, then)
        known.append(second, 4, pointer, CAPTURE)
        join(second, first)
        graph = instantiated(first)
        third.write(pointer, bytes(BYTES))
        replay(third, graph)
        known.require(third, pointer, 1234, f"the digits under seed {seed}")
        end_streams(streams)
