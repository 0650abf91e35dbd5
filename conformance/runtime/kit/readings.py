"""Other readings of the runtime's silences that several files judge: teardown, access outside of memory, and others.

Each function judges the decision of an interpretation, and ends the case as another reading if the implementation
follows a listed alternative (`docs/verdicts.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic, sleep
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.protocol import Fault, Observation, Rejected, Returned

from .encoding import packed
from .mesh_session import BYTES, MeshSession

INVALID = "TESS_ERR_INVALID_VALUE"
PATIENCE = 2.0
"""Seconds of waiting for work for which no call waits any more."""


def rejected(answer: Observation, *statuses: str) -> bool:
    """True if a call was refused, with one of these statuses if any are given."""
    return isinstance(answer, Rejected) and (not statuses or answer.code in statuses)


def died(*answers: Observation) -> bool:
    """True if one of these calls ended the implementation."""
    return any(isinstance(answer, Fault) and answer.kind == "crash" for answer in answers)


def hung(*answers: Observation) -> bool:
    """True if one of these calls did not return."""
    return any(isinstance(answer, Fault) and answer.kind == "hang" for answer in answers)


# The ends of objects (AMB-RT-50)


def ended_with_contents(session: MeshSession, function: str, **arguments: Any) -> None:
    """Judge the end of a context or mesh that still has streams or memory, without queued work."""
    answer = session.attempt(function, **arguments)
    alive = rejected(answer, INVALID)
    session.check.reading("AMB-RT-50", "TESS_ERR_INVALID_VALUE while anything in it is alive", alive)
    session.check.returns(answer, f"{function} succeeds")


def ended_while_busy(session: MeshSession, function: str, **arguments: Any) -> None:
    """Judge the end of an object with queued work."""
    answer = session.attempt(function, **arguments)
    session.check.reading("AMB-RT-50", "TESS_ERR_INVALID_VALUE while busy", rejected(answer, INVALID))
    session.check.returns(answer, f"{function} succeeds")


def has_arrived(session: MeshSession, pointer: int, expected: bytes) -> None:
    """Check that copied work of an ended stream reaches host memory: at once, or a little later."""
    found = session.host_bytes(pointer, len(expected))
    if found != expected:
        until = monotonic() + PATIENCE
        while found != expected and monotonic() < until:
            sleep(0.01)
            found = session.host_bytes(pointer, len(expected))
        later = "the call returns at once, and what is queued finishes later"
        session.check.reading("AMB-RT-50", later, found == expected)
    session.check.equal(found.hex(), expected.hex(), "what was copied to the host")


# Access outside of memory (AMB-RT-83)


def outside(session: MeshSession, answer: Observation, moved: Callable[[], bool] = lambda: False) -> None:
    """Check that a call with an access outside its memory is refused; `moved` returns True if it moved all bytes."""
    check = session.check
    if not isinstance(answer, Rejected):
        waited = session.attempt("tessStreamSynchronize", stream=session.stream)
        later = isinstance(answer, Returned) and isinstance(waited, Rejected)
        check.reading("AMB-RT-83", "an asynchronous error", later)
        undefined = died(answer, waited) or (isinstance(waited, Returned) and moved())
        check.reading("AMB-RT-83", "undefined, as of memcpy: all is moved as asked, or the program ends", undefined)
    check.status(answer, INVALID)
    session.synchronize()


# Arguments that are refused

ENDING = ("tessStreamDestroy", "tessEventDestroy", "tessMeshDestroy", "tessModuleUnload", "tessShutdown")


def wrong_argument(check: Check, function: str, change: Mapping[str, Any], answer: Observation) -> None:
    """End the case if a wrong argument is accepted, or refused otherwise, as a listed alternative says.

    `change` has the wrong parameters of the function with their values.
    """
    accepted = isinstance(answer, Returned)
    unsupported = rejected(answer, "TESS_ERR_UNSUPPORTED")
    (name, value), *_ = change.items()
    ending = function in ENDING
    check.reading("AMB-RT-38", "destroying NULL succeeds", accepted and ending and value == 0)
    check.reading("AMB-RT-38", "a NULL stream is the default stream", accepted and change == {"stream": 0})
    check.reading("AMB-RT-03", "NULL means the whole mesh", accepted and change == {"axis": None})
    pageable = function == "tessHostAlloc" and change == {"kind": 0}
    check.reading("AMB-RT-06", "GLOBAL means pageable host memory", accepted and pageable)
    check.reading("AMB-RT-39", "a NULL output is passed over", accepted and function == "tessGetVersion")
    check.reading("AMB-RT-51", "unknown ids are UNSUPPORTED", unsupported and "deviceIds" in change)
    check.reading("AMB-RT-59", "UNSUPPORTED for both", unsupported and name in ("dtype", "op"))


def wrong_axes(check: Check, sizes: Collection[int], answer: Observation) -> None:
    """End the case if axes are accepted, or refused, as a listed alternative says."""
    inferred = isinstance(answer, Returned) and not any(sizes)
    check.reading("AMB-RT-01", "infer the absent axis from nDevices", inferred)


def wrong_configuration(session: MeshSession, change: Mapping[str, Any], answer: Observation) -> None:
    """End the case if a launch is accepted, or refused otherwise, as a listed alternative says."""
    check, accepted = session.check, isinstance(answer, Returned)
    check.reading("AMB-RT-10", "ignore unknown bits", accepted and "flags" in change)
    check.reading("AMB-RT-10", "TESS_ERR_UNSUPPORTED", rejected(answer, "TESS_ERR_UNSUPPORTED") and "flags" in change)
    if accepted and ("block" in change or "shmemBytes" in change):
        waited = session.attempt("tessStreamSynchronize", stream=session.stream)
        failed = rejected(waited, "TESS_ERR_LAUNCH_FAILED")
        check.reading("AMB-RT-61", "oversize is LAUNCH_FAILED at the synchronization", failed)
    oversize = rejected(answer, "TESS_ERR_LAUNCH_FAILED") and ("block" in change or "shmemBytes" in change)
    check.reading("AMB-RT-61", "oversize is LAUNCH_FAILED at once", oversize)


def judge_partial_block(
    session: MeshSession, kernel: int, arguments: bytes, block: Sequence[int], answer: Observation
) -> None:
    """End the case if a block with a zero beside other extents is refused, and one of zeros is accepted."""
    if any(block) and not all(block) and rejected(answer, INVALID):
        zeros = session.launching(kernel, arguments, block=[0, 0, 0])
        alone = isinstance(zeros, Returned)
        session.check.reading("AMB-RT-08", "zero is legal only when all three are zero", alone)


def judge_foreign_module(session: MeshSession, answer: Observation) -> None:
    """End the case if a module for other devices loads, and a launch of its kernel `fill` is a mismatch."""
    if not (isinstance(answer, Returned) and answer.value.get("module")):
        return
    kernel = session.attempt("tessKernelGet", module=answer.value["module"], name="fill")
    if isinstance(kernel, Returned):
        arguments = packed(("int32", 1), ("ptr", session.allocate(BYTES)))
        launched = session.launching(kernel.value["kernel"], arguments)
        mismatch = rejected(launched, "TESS_ERR_ARCH_MISMATCH")
        session.check.reading("AMB-RT-60", "ARCH_MISMATCH at launch", mismatch)


def no_kernel(check: Check, answer: Observation) -> None:
    """Check that a name missing in a module is refused, or gives NULL as a listed alternative says."""
    null = isinstance(answer, Returned) and answer.value["kernel"] == 0
    check.reading("AMB-RT-42", "TESS_OK with a NULL kernel", null)
    check.status(answer, INVALID)
