"""The arguments of captured launches: every replay has those of the capture (runtime specification, 10.1 and 12).

The parameter buffer belongs to the caller again when tessLaunch has returned (AMB-RT-72), for a launch that is replayed
as for any other. What a pointer argument points to is read by each replay anew.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.graphs import DigitStream, digit_stream, instantiated, replay
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, CAPTURE, COUNT
from tessera_conformance.marks import clause


def arguments(value: int, pointer: int) -> bytes:
    """Those of `digit`."""
    return packed(("int32", value), ("ptr", pointer))


def captured_from(session: DigitStream, buffer: int, *launches: tuple[int, int]) -> None:
    """Capture launches of `digit`, whose arguments are written into one buffer of the host, one after the other."""
    for value, pointer in launches:
        session.host_write(buffer, arguments(value, pointer))
        answer = session.launching(session.digit, argBuffer=buffer, argSize=16, flags=CAPTURE)
        session.check.returns(answer, "tessLaunch succeeds")


@clause("RT-12-08", "RT-12-09")
@pytest.mark.parametrize("replays", [1, 2, 5])
def test_replays_have_the_arguments_of_the_capture(impl, check, replays):
    """Three launches from one buffer, which is overwritten after each capture, instantiation and replay (AMB-RT-72).

    As AMB-RT-64 has it.
    """
    session = digit_stream(impl, check)
    first, second, other = (session.zeros() for _ in range(3))
    buffer = session.host(bytes(16))
    captured_from(session, buffer, (1, first), (2, second), (3, first))
    session.host_write(buffer, arguments(8, other))
    graph = instantiated(session)
    expected = 0, 0
    for number in range(replays):
        session.host_write(buffer, arguments(9, (other, first, second)[number % 3]))
        replay(session, graph)
        session.synchronize()
        expected = expected[0] * 100 + 13, expected[1] * 10 + 2
        session.require(first, expected[0], f"the first tensor after replay {number + 1}")
        session.require(second, expected[1], f"the second tensor after replay {number + 1}")
        session.require(other, 0, "where the overwritten buffer points")


@clause("RT-12-08", "RT-12-09")
def test_replays_that_are_queued_together_have_the_arguments_of_the_capture(impl, check):
    """Two replays and no synchronization between them, the buffer overwritten before and between (AMB-RT-72).

    As AMB-RT-64 has it.
    """
    session = digit_stream(impl, check)
    first, other = session.zeros(), session.zeros()
    buffer = session.host(bytes(16))
    captured_from(session, buffer, (4, first), (5, first))
    graph = instantiated(session)
    for _ in range(2):
        session.host_write(buffer, arguments(9, other))
        replay(session, graph)
    session.host_write(buffer, bytes(16))
    session.require(first, 4545, "the tensor after two replays")
    session.require(other, 0, "where the overwritten buffer points")


@clause("RT-12-08", "RT-12-09")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["its own stream", "another stream"])
def test_other_launches_of_the_kernel_do_not_change_a_graph(impl, check, elsewhere):
    """Launches of the same kernel with other arguments, before the first replay and between replays (AMB-RT-64)."""
    session = digit_stream(impl, check)
    on = session.another_stream() if elsewhere else session
    first, other = session.zeros(), session.zeros()
    graph = session.captured(first, 1, 2)
    for number, value in enumerate((7, 8, 9), 1):
        on.append(value, other)
        on.synchronize()
        replay(session, graph)
        session.require(first, int("12" * number), f"the tensor of the graph after replay {number}")
    session.require(other, 789, "the tensor of the launches beside it")


@clause("RT-12-08")
def test_graphs_of_one_kernel_have_arguments_of_their_own(impl, check):
    """Two graphs captured from one buffer, replayed by turns (AMB-RT-72, AMB-RT-64)."""
    session = digit_stream(impl, check)
    first, second = session.zeros(), session.zeros()
    buffer = session.host(bytes(16))
    captured_from(session, buffer, (3, first))
    one = instantiated(session)
    captured_from(session, buffer, (4, second))
    two = instantiated(session)
    for graph in (two, one, one, two, two):
        replay(session, graph)
    session.require(first, 33, "the tensor of the first graph")
    session.require(second, 444, "the tensor of the second graph")


@clause("RT-12-08", "RT-12-09")
def test_a_replay_reads_what_its_pointers_point_to_then(impl, check):
    """The pointer is that of the capture, the numbers behind it are those of the time of replay."""
    session = digit_stream(impl, check)
    copy = session.kernel("copy")
    source, target = session.zeros(), session.zeros()
    session.launch(copy, packed(("ptr", source), ("ptr", target)), flags=CAPTURE)
    graph = instantiated(session)
    for value in (5, 6, 5):
        session.write(source, elements("int32", *[value] * COUNT))
        replay(session, graph)
        session.require(target, value, f"the copy of {value}")


@clause("RT-12-08")
def test_a_buffer_may_be_freed_before_the_replay(impl, check):
    """Pinned memory of the host, freed when the launch is captured and reused for something else (AMB-RT-72).

    As AMB-RT-64 has it.
    """
    session = digit_stream(impl, check)
    first = session.zeros()
    buffer = session.ask("tessHostAlloc", bytes=BYTES, kind=1)["hostPtr"]
    captured_from(session, buffer, (6, first))
    session.ask("tessHostFree", hostPtr=buffer)
    again = session.ask("tessHostAlloc", bytes=BYTES, kind=1)["hostPtr"]
    session.host_write(again, b"\xff" * BYTES)
    graph = instantiated(session)
    for _ in range(2):
        replay(session, graph)
    session.require(first, 66, "the tensor after two replays")
