"""Persistent kernels: resident while other work proceeds, and only where the flag asks for it (AMB-RT-65).

A persistent kernel is resident from when it starts until its stream is synchronized or destroyed.
"""

from __future__ import annotations

import pytest
from tessera_conformance.chapters.runtime.kit.graphs import digits
from tessera_conformance.chapters.runtime.kit.mesh_session import DETERMINISTIC, LOW_LATENCY, PERSISTENT, opened

from tessera_conformance.marks import clause

TRIES = 100
"""How often other work is done to give a kernel time to start."""


def residents(session):
    """The names of the kernels that are resident."""
    return session.ask("tessxResident", mesh=session.mesh)["kernels"]


def proceed(session, known, pointer, until):
    """Let another stream finish work until so many kernels are resident; gives those that then are."""
    found = residents(session)
    for _ in range(TRIES):
        known.append(session, 0, pointer)
        session.synchronize()
        found = residents(session)
        if len(found) >= until:
            return found
    return found


@clause("RT-06-13")
@pytest.mark.parametrize("flags", [PERSISTENT, PERSISTENT | DETERMINISTIC, PERSISTENT | LOW_LATENCY])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_persistent_kernel_is_resident_while_other_work_proceeds(impl, check, flags, ranks):
    """Another stream is synchronized several times meanwhile, with the results that it has without."""
    session = opened(impl, check, ranks)
    known, other = digits(session), session.another_stream()
    held, beside = known.zeros(), known.zeros()
    check.equal(residents(session), [], "the resident kernels before any launch")
    known.append(session, 7, held, flags)
    check.equal(proceed(other, known, beside, 1), ["digit"], "the resident kernels while other work proceeds")
    for number in (4, 45):
        known.append(other, number % 10, beside)
        known.require(other, beside, number, "the result of the other stream")
        check.equal(residents(session), ["digit"], "the resident kernels afterwards")


@clause("RT-06-13")
def test_synchronizing_its_stream_ends_a_persistent_kernel(impl, check):
    """And what it wrote is there; the next launch of the stream is an ordinary one."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    held, beside = known.zeros(), known.zeros()
    known.append(session, 7, held, PERSISTENT)
    proceed(other, known, beside, 1)
    session.synchronize()
    check.equal(residents(session), [], "the resident kernels after the synchronization")
    known.append(session, 8, held)
    known.require(session, held, 78, "the result of the persistent kernel, and of the launch behind it")


@clause("RT-06-13")
def test_destroying_its_stream_ends_a_persistent_kernel(impl, check):
    """It is resident no more, and what it wrote is there."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    held, beside = known.zeros(), known.zeros()
    known.append(session, 7, held, PERSISTENT)
    proceed(other, known, beside, 1)
    session.ask("tessStreamDestroy", stream=session.stream)
    check.equal(residents(other), [], "the resident kernels without the stream")
    known.require(other, held, 7, "the result of the persistent kernel")


@clause("RT-06-13")
def test_two_persistent_kernels_are_resident_side_by_side(impl, check):
    """On streams of their own; the end of one leaves the other."""
    session = opened(impl, check)
    known, fill = digits(session), session.kernel("nothing")
    second, other = session.another_stream(), session.another_stream()
    held, beside = known.zeros(), known.zeros()
    known.append(session, 7, held, PERSISTENT)
    second.launch(fill, flags=PERSISTENT)
    check.equal(sorted(proceed(other, known, beside, 2)), ["digit", "nothing"], "the resident kernels")
    session.synchronize()
    check.equal(residents(session), ["nothing"], "the resident kernels without the first")


@clause("RT-15-04")
@pytest.mark.parametrize("flags", [0, DETERMINISTIC, LOW_LATENCY])
def test_a_kernel_without_the_flag_is_never_resident(impl, check, flags):
    """Neither before its stream is synchronized nor while other work proceeds."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    held, beside = known.zeros(), known.zeros()
    known.append(session, 7, held, flags)
    for _ in range(3):
        known.append(other, 1, beside)
        other.synchronize()
        check.equal(residents(session), [], "the resident kernels")
    known.require(session, held, 7, "the result")


@clause("RT-15-04")
def test_each_launch_asks_for_itself(impl, check):
    """A kernel that was persistent once is launched without the flag, and is not."""
    session = opened(impl, check)
    known, other = digits(session), session.another_stream()
    held, beside = known.zeros(), known.zeros()
    known.append(session, 7, held, PERSISTENT)
    check.equal(proceed(other, known, beside, 1), ["digit"], "the resident kernels of the launch with the flag")
    session.synchronize()
    known.append(session, 8, held)
    for _ in range(3):
        known.append(other, 1, beside)
        other.synchronize()
        check.equal(residents(session), [], "the resident kernels of the launch without")
