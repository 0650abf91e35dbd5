"""Persistent kernels: resident while other work proceeds, and only where the flag asks for it (AMB-RT-65).

A persistent kernel is resident from when it starts until its stream is synchronized or destroyed.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.calls import legal_call
from tessera_conformance.chapters.runtime.kit.graphs import digit_stream
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    DETERMINISTIC,
    LOW_LATENCY,
    PERSISTENT,
    devices,
    meshed,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected, Returned

MISSING = {
    "tessFree": {"devPtr": 0},
    "tessHostFree": {"hostPtr": 0},
    "tessMalloc": {"null": ["devPtr"]},
    "tessMemcpyAsync": {"dst": 0},
}
"""Calls without the pointer that they need."""

MANY = 12
"""Streams with a persistent kernel each, which a device may refuse to hold."""

TRIES = 100
"""The number of times that other work is done to give a kernel time to start."""


def residents(session):
    """The names of the kernels that are resident."""
    return session.ask("tessxResident", mesh=session.mesh)["kernels"]


def proceed(session, pointer, until):
    """Let another stream finish work until so many kernels are resident; gives those that then are."""
    actual = residents(session)
    for _ in range(TRIES):
        session.append(0, pointer)
        session.synchronize()
        actual = residents(session)
        if len(actual) >= until:
            return actual
    return actual


@clause("RT-06-13")
@pytest.mark.parametrize("flags", [PERSISTENT, PERSISTENT | DETERMINISTIC, PERSISTENT | LOW_LATENCY])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_persistent_kernel_is_resident_while_other_work_proceeds(impl, check, flags, ranks):
    """Another stream is synchronized several times meanwhile, with the results that it has without."""
    session = digit_stream(impl, check, ranks)
    other = session.another_stream()
    held, beside = session.zeros(), session.zeros()
    check.equal(residents(session), [], "the resident kernels before any launch")
    session.append(7, held, flags)
    check.equal(proceed(other, beside, 1), ["digit"], "the resident kernels while other work proceeds")
    for number in (4, 45):
        other.append(number % 10, beside)
        other.require(beside, number, "the result of the other stream")
        check.equal(residents(session), ["digit"], "the resident kernels afterwards")


@clause("RT-06-13")
def test_synchronizing_its_stream_ends_a_persistent_kernel(impl, check):
    """The results of the kernel are complete; the next launch of the stream is an ordinary one."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    held, beside = session.zeros(), session.zeros()
    session.append(7, held, PERSISTENT)
    proceed(other, beside, 1)
    session.synchronize()
    check.equal(residents(session), [], "the resident kernels after the synchronization")
    session.append(8, held)
    session.require(held, 78, "the result of the persistent kernel, and of the launch behind it")


@clause("RT-06-13")
def test_destroying_its_stream_ends_a_persistent_kernel(impl, check):
    """It is resident no more, and what it wrote is there."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    held, beside = session.zeros(), session.zeros()
    session.append(7, held, PERSISTENT)
    proceed(other, beside, 1)
    session.ask("tessStreamDestroy", stream=session.stream)
    check.equal(residents(other), [], "the resident kernels without the stream")
    other.require(held, 7, "the result of the persistent kernel")


@clause("RT-06-13")
def test_two_persistent_kernels_are_resident_side_by_side(impl, check):
    """On streams of their own; the end of one leaves the other."""
    session = digit_stream(impl, check)
    fill = session.kernel("nothing")
    second, other = session.another_stream(), session.another_stream()
    held, beside = session.zeros(), session.zeros()
    session.append(7, held, PERSISTENT)
    second.launch(fill, flags=PERSISTENT)
    check.equal(sorted(proceed(other, beside, 2)), ["digit", "nothing"], "the resident kernels")
    session.synchronize()
    check.equal(residents(session), ["nothing"], "the resident kernels without the first")


@clause("RT-06-13")
@pytest.mark.parametrize("function", ["tessFree", "tessHostFree", "tessMalloc", "tessMemcpyAsync"])
def test_a_call_without_its_pointer_ends_no_persistent_kernel(impl, check, function):
    """NULL gets an answer, whichever it is here, and is no synchronization."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    held, beside = session.zeros(), session.zeros()
    session.append(7, held, PERSISTENT)
    proceed(other, beside, 1)
    answer = other.attempt(function, **(legal_call(other, function) | MISSING[function]))
    check.true(isinstance(answer, Returned | Rejected), "there is an answer", type(answer).__name__)
    check.equal(residents(session), ["digit"], "the resident kernels")
    session.require(held, 7, "the result")


@clause("RT-06-13")
def test_persistent_kernels_that_a_device_takes_leave_room_for_other_work(impl, check):
    """One stream after the other, until a launch is refused as unsupported: all that were taken stay (AMB-RT-65).

    Those of one device take no room of another.
    """
    session = digit_stream(impl, check)
    fill, beside = session.kernel("nothing"), session.zeros()
    taken = 0
    for _ in range(MANY):
        answer = session.another_stream().launching(fill, flags=PERSISTENT)
        if isinstance(answer, Rejected):
            check.status(answer, "TESS_ERR_UNSUPPORTED")
            break
        taken += 1
    check.true(taken > 0, "a device holds a persistent kernel", taken)
    actual = proceed(session, beside, taken)
    check.equal(actual, ["nothing"] * taken, "the resident kernels")
    elsewhere = meshed(impl, check, session.context, devices(impl, check, 2)[1:])
    check.returns(elsewhere.launching(fill, flags=PERSISTENT), "another device takes one")
    session.append(1, beside)
    session.synchronize()
    check.equal(residents(session), ["nothing"] * taken, "the resident kernels after other work")


@feature("fault-injection")
@clause("RT-15-04")
def test_a_kernel_without_the_flag_is_not_resident_while_it_runs(impl, check):
    """A slow one, beside which another stream finishes its work."""
    session = digit_stream(impl, check)
    other, nothing, held = session.another_stream(), session.kernel("nothing"), session.zeros()
    slow = {"kind": "kernel_slow", "kernel": "digit", "nanoseconds": 1_000_000}
    session.ask("tessxSetFaults", context=session.context, faults=[slow])
    session.append(7, held)
    for _ in range(3):
        other.launch(nothing)
        other.synchronize()
        check.equal(residents(session), [], "the resident kernels")
    session.require(held, 7, "the result")


@clause("RT-15-04")
@pytest.mark.parametrize("flags", [0, DETERMINISTIC, LOW_LATENCY])
def test_a_kernel_without_the_flag_is_never_resident(impl, check, flags):
    """It is not resident before its stream is synchronized, nor while other work proceeds."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    held, beside = session.zeros(), session.zeros()
    session.append(7, held, flags)
    for _ in range(3):
        other.append(1, beside)
        other.synchronize()
        check.equal(residents(session), [], "the resident kernels")
    session.require(held, 7, "the result")


@clause("RT-15-04")
def test_each_launch_asks_for_itself(impl, check):
    """A kernel that was persistent once is launched without the flag, and is not."""
    session = digit_stream(impl, check)
    other = session.another_stream()
    held, beside = session.zeros(), session.zeros()
    session.append(7, held, PERSISTENT)
    check.equal(proceed(other, beside, 1), ["digit"], "the resident kernels of the launch with the flag")
    session.synchronize()
    session.append(8, held)
    for _ in range(3):
        other.append(1, beside)
        other.synchronize()
        check.equal(residents(session), [], "the resident kernels of the launch without")
