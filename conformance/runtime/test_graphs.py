"""Capture of a stream, and the replay of its graph (runtime spec, 6 and 12; AMB-RT-11, -64, -86, -160 to -162)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed, values_of
from tessera_conformance.chapters.runtime.kit.graphs import before, digit_stream, instantiated, nodes_of, replay
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    CAPTURE,
    COUNT,
    D2D,
    D2H,
    DETERMINISTIC,
    H2D,
    LOW_LATENCY,
    refused,
)
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.marks import clause

# Capture


@clause("RT-06-11")
@pytest.mark.parametrize("flags", [CAPTURE, CAPTURE | DETERMINISTIC, CAPTURE | LOW_LATENCY])
def test_a_captured_launch_does_not_run_until_it_is_replayed(impl, check, flags):
    """Synchronizing its stream or instantiating the graph does not run it; a replay runs it once (AMB-RT-64)."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    pointer = session.zeros()
    session.append(7, pointer, flags)
    session.synchronize()
    if other.integers(pointer) == [7] * COUNT:
        replay(session, instantiated(session))
        check.reading("AMB-RT-64", "capture and execute", session.integers(pointer) == [77] * COUNT)
    other.require(pointer, 0, "what a captured launch has written")
    graph = instantiated(session)
    session.synchronize()
    other.require(pointer, 0, "what an instantiated graph has written")
    replay(session, graph)
    session.require(pointer, 7, "what the replay has written")


@clause("RT-06-11")
def test_the_arguments_of_a_captured_launch_are_those_of_its_capture(impl, check):
    """The parameter buffer has been read when tessLaunch returns, also by a launch that runs later (AMB-RT-72).

    As AMB-RT-64 has it.
    """
    session = digit_stream(impl, check)
    first, second = session.zeros(), session.zeros()
    buffer = session.host(packed(("int32", 4), ("ptr", first)))
    answer = session.launching(session.digit, argBuffer=buffer, argSize=16, flags=CAPTURE)
    check.returns(answer, "tessLaunch succeeds")
    session.host_write(buffer, packed(("int32", 5), ("ptr", second)))
    replay(session, instantiated(session))
    session.require(first, 4, "where the launch was to write")
    session.require(second, 0, "where the overwritten buffer points")


@clause("RT-06-11")
@pytest.mark.parametrize("wrong", [{"grid": [0, 1, 1]}, {"argSize": 8}], ids=["grid", "argSize"])
def test_a_launch_that_is_refused_begins_no_capture(impl, check, wrong):
    """A copy and a launch behind it run at once, beside a stream that captures (AMB-RT-64, AMB-RT-86)."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    pointer, captured = session.zeros(), session.zeros()
    other.append(1, captured, CAPTURE)
    answer = session.launching(session.digit, packed(("int32", 7), ("ptr", pointer)), flags=CAPTURE, **wrong)
    refused(check, answer, "TESS_ERR_INVALID_VALUE")
    session.write(pointer, elements("int32", *[4] * COUNT))
    session.append(2, pointer)
    session.require(pointer, 42, "what the copy and the launch have written")
    replay(other, instantiated(other))
    other.require(captured, 1, "what the replay has written")


@clause("RT-06-11")
def test_a_stream_that_captures_leaves_others_alone(impl, check):
    """Launches on another stream run during a capture, and belong to no graph."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    captured, running = session.zeros(), session.zeros()
    session.append(1, captured, CAPTURE)
    other.append(2, running)
    other.require(running, 2, "what runs at once")
    graph = instantiated(session)
    check.equal(len(nodes_of(session, graph)), 1, "the number of captured launches")
    session.append(3, running)
    session.require(running, 23, "what is launched after the capture, on its stream")


@clause("RT-06-11")
def test_two_streams_capture_two_graphs(impl, check):
    """Each has the launches of its own stream (AMB-RT-64)."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    first, second = session.zeros(), session.zeros()
    session.append(1, first, CAPTURE)
    other.append(2, second, CAPTURE)
    session.append(3, first, CAPTURE)
    graphs = instantiated(session), instantiated(other)
    check.true(graphs[0] != graphs[1], "the graphs are two", graphs)
    check.equal([len(nodes_of(session, graph)) for graph in graphs], [2, 1], "the number of launches of each")
    replay(session, graphs[0])
    session.require(first, 13, "the first graph's tensor")
    session.require(second, 0, "the second graph's tensor")


# The graph


def join(stream, capturing):
    """Let a stream wait for an event of a capture, which a runtime of one stream a capture refuses (AMB-RT-160)."""
    event = stream.event()
    recorded = stream.attempt("tessEventRecord", event=event, stream=capturing.stream)
    waiting = stream.attempt("tessStreamWaitEvent", stream=stream.stream, event=event)
    stream.check.reading("AMB-RT-160", "one stream a capture", rejected(recorded) or rejected(waiting))
    stream.succeeds(recorded, "tessEventRecord")
    stream.succeeds(waiting, "tessStreamWaitEvent")


@clause("RT-12-05")
def test_launches_are_nodes_in_the_order_of_their_stream(impl, check):
    """Three launches on a stream: nodes of the kind launch, named after their kernels, each after the one before."""
    session = digit_stream(impl, check)
    fill = session.kernel("fill")
    pointer = session.zeros()
    session.append(1, pointer, CAPTURE)
    session.launch(fill, packed(("int32", 5), ("ptr", pointer)), flags=CAPTURE)
    session.append(2, pointer, CAPTURE)
    nodes = nodes_of(session, instantiated(session))
    check.equal([node["kind"] for node in nodes], ["launch"] * 3, "the kinds of the nodes")
    check.equal([node["name"] for node in nodes], ["digit", "fill", "digit"], "the kernels that are launched")
    check.equal([sorted(before(nodes, index)) for index in range(3)], [[], [0], [0, 1]], "the nodes before each")


@clause("RT-12-05")
def test_streams_that_events_join_share_a_graph(impl, check):
    """A fork and a join: launches on a stream that waits for an event of the capture follow it (AMB-RT-160).

    As AMB-RT-64 has it.
    """
    session = digit_stream(impl, check)
    other = session.another_stream()
    pointer, beside = session.zeros(), session.zeros()
    session.append(1, pointer, CAPTURE)
    join(other, session)
    other.append(2, beside, CAPTURE)
    session.append(3, pointer, CAPTURE)
    session.wait_stream(other)
    session.append(4, pointer, CAPTURE)
    graph = instantiated(session)
    nodes = nodes_of(session, graph)
    check.equal([node["kind"] for node in nodes], ["launch"] * 4, "the kinds of the nodes")
    for index, needed in enumerate([set(), {0}, {0}, {0, 1, 2}]):
        actual = before(nodes, index)
        check.true(needed <= actual, f"node {index} follows {sorted(needed)}", sorted(actual))
    replay(session, graph)
    session.require(pointer, 134, "the tensor of the capturing stream")
    session.require(beside, 2, "the tensor of the stream that joined")
    other.append(5, beside)
    other.require(beside, 25, "what runs on the stream that joined, after the capture")


@clause("RT-12-06")
def test_copies_are_nodes_and_do_not_run_before_replay(impl, check):
    """To the device, on it, and back, between launches; each follows what was captured before (AMB-RT-86)."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    pointer, second = session.zeros(), session.zeros()
    source, target = session.host(elements("int32", *[6] * COUNT)), session.host(bytes(BYTES))
    session.append(1, second, CAPTURE)
    session.copy(pointer, source, BYTES, H2D)
    session.append(2, pointer, CAPTURE)
    session.copy(second, pointer, BYTES, D2D)
    session.copy(target, second, BYTES, D2H)
    other.require(pointer, 0, "what a captured copy has written")
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
    session = digit_stream(impl, check)
    pointer = session.zeros()
    source = session.host(elements("int32", *[1] * COUNT))
    session.launch(session.kernel("nothing"), flags=CAPTURE)
    session.copy(pointer, source, BYTES, H2D)
    session.append(9, pointer, CAPTURE)
    graph = instantiated(session)
    for value in (2, 3, 4):
        session.host_write(source, elements("int32", *[value] * COUNT))
        replay(session, graph)
        check.reading("AMB-RT-161", "a snapshot at capture", session.integers(pointer) == [19] * COUNT)
        session.require(pointer, 10 * value + 9, f"the tensor after a replay with {value}")
