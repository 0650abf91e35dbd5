"""The text of the last failure (runtime specification, 7; AMB-RT-82)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.calls import ADDRESSES, HANDLES, OUTPUTS, POINTERS, legal_call
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import BYTES, MeshSession, opened, refused
from tessera_conformance.chapters.runtime.kit.readings import no_kernel, wrong_argument
from tessera_conformance.marks import clause, feature

INVALID = "TESS_ERR_INVALID_VALUE"
NOT_INITIALIZED = "TESS_ERR_NOT_INITIALIZED"

MISTAKES = [
    *(pytest.param(f, {name: 0}, id=f"{f}-{name}") for f, names in HANDLES.items() for name in names),
    *(pytest.param(f, {"null": [name]}, id=f"{f}-out-{name}") for f, names in OUTPUTS.items() for name in names),
    *(
        pytest.param(f, {name: 0 if name in ADDRESSES else None}, id=f"{f}-{name}")
        for f, names in POINTERS.items()
        for name in names
    ),
]
"""A function, and a parameter that is NULL."""


def last_error(session: MeshSession) -> str:
    """The text."""
    return str(session.ask("tessxLastError")["text"])


@feature("last-error")
@clause("RT-07-03", "RT-19.A-01")
@pytest.mark.parametrize(("function", "change"), MISTAKES)
def test_the_text_names_the_function(impl, check, function, change):
    """For every argument that can be NULL."""
    session = opened(impl, check)
    answer = session.attempt(function, **(legal_call(session, function) | change))
    wrong_argument(check, function, change, answer)
    refused(check, answer, INVALID, NOT_INITIALIZED)
    text = last_error(session)
    check.true(function in text, f"the text names {function}", text)


@feature("last-error", "memory-findings")
@clause("RT-07-03")
@pytest.mark.parametrize("function", ["tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast"])
def test_the_text_of_a_buffer_that_is_too_short_names_the_collective(impl, check, function):
    """It names none of the other collectives, which check their buffers alike."""
    session = opened(impl, check)
    answer = session.attempt(function, **(legal_call(session, function) | {"count": BYTES}))
    refused(check, answer, INVALID)
    text = last_error(session)
    check.true(function in text, f"the text names {function}", text)


@feature("last-error")
@clause("RT-07-03")
def test_the_text_is_that_of_the_last_failure(impl, check):
    """The text is that of the second of two failures; a call that succeeds does not change it."""
    session = opened(impl, check)
    module = session.load()
    refused(check, session.attempt("tessStreamSynchronize", stream=0), INVALID)
    first = last_error(session)
    no_kernel(check, session.attempt("tessKernelGet", module=module, name="none"))
    second = last_error(session)
    check.true(first != second, "the second failure has a text of its own", [first, second])
    check.true("tessKernelGet" in second, "the text names tessKernelGet", second)
    session.allocate(BYTES)
    session.synchronize()
    check.equal(last_error(session), second, "the text after calls that succeeded")


@feature("last-error")
@clause("RT-07-03")
def test_an_allocation_without_memory_has_a_text(impl, check):
    """A failed allocation has a text, as every failure has."""
    session = opened(impl, check)
    check.status(session.attempt("tessMalloc", mesh=session.mesh, bytes=1 << 62), "TESS_ERR_OUT_OF_MEMORY")
    text = last_error(session)
    check.true("tessMalloc" in text, "the text names tessMalloc", text)


@feature("last-error", "stream-memory-limits")
@clause("RT-07-03")
def test_a_copy_beyond_the_limit_of_its_stream_has_a_text(impl, check):
    """It names the function that would have queued the copy."""
    session = opened(impl, check)
    call = legal_call(session, "tessMemcpyAsync")
    session.synchronize()
    session.ask("tessxSetStreamLimit", stream=session.stream, bytes=1)
    check.status(session.attempt("tessMemcpyAsync", **call), "TESS_ERR_OUT_OF_MEMORY")
    text = last_error(session)
    check.true("tessMemcpyAsync" in text, "the text names tessMemcpyAsync", text)


@feature("last-error")
@clause("RT-07-03")
def test_a_launch_that_failed_has_a_text(impl, check):
    """It names tessLaunch, or tessStreamSynchronize, which reported the failure."""
    session = opened(impl, check)
    session.launch(session.kernel("divide"), packed(("int32", 0), ("ptr", session.allocate(BYTES))))
    session.reports("TESS_ERR_LAUNCH_FAILED")
    text = last_error(session)
    check.true("tessLaunch" in text or "tessStreamSynchronize" in text, "the text names the function", text)
