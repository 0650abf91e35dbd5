"""Handles that are none: of another kind, never given out, or no more (runtime specification, 7; AMB-RT-121).

What a C library does with a wild pointer is undefined, so these are cases of the feature `checked-handles`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.calls import HANDLES, legal_call
from tessera_conformance.chapters.runtime.kit.mesh_session import KERNELS, MeshSession, opened, refused
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected, Returned

INVALID = "TESS_ERR_INVALID_VALUE"
REFUSALS = {"context": (INVALID, "TESS_ERR_NOT_INITIALIZED"), "mesh": (INVALID, "TESS_ERR_NOT_INITIALIZED")}
"""The refusals of a handle that is none, where they are not TESS_ERR_INVALID_VALUE alone."""

NEVER_GIVEN = (-1, -(1 << 63), 987654321987, (1 << 63) - 1, (1 << 64) - 1)

PARAMETERS = [
    pytest.param(function, name, id=f"{function}-{name}") for function in HANDLES for name in HANDLES[function]
]


def one_of_each(session: MeshSession) -> dict[str, int]:
    """A live handle of every kind."""
    module = session.load(KERNELS)
    return {
        "context": session.context,
        "mesh": session.mesh,
        "stream": session.stream,
        "event": session.event(),
        "module": module,
        "kernel": session.kernel_of(module, "fill"),
        "profiler": session.ask("tessProfilerStart", context=session.context)["profiler"],
    }


def refuse(session: MeshSession, function: str, name: str, handle: int) -> None:
    """A legal call with this handle instead is refused, and changes no memory."""
    before = len(session.uploads)
    arguments: dict[str, Any] = legal_call(session, function) | {name: handle}
    refused(session.check, session.attempt(function, **arguments), *REFUSALS.get(name, (INVALID,)))
    session.unchanged(session.uploads[before:])


@feature("checked-handles")
@clause("RT-19.A-01", "RT-07-03")
@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_a_handle_of_another_kind_is_refused(impl, check, function, name):
    """An event is no stream, and a mesh no context."""
    session = opened(impl, check)
    for kind, handle in one_of_each(session).items():
        if kind != name:
            refuse(session, function, name, handle)
    session.ask(function, **legal_call(session, function))


@feature("checked-handles")
@clause("RT-19.A-01", "RT-19.A-03", "RT-07-03")
@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_a_handle_that_was_never_given_out_is_refused(impl, check, function, name):
    """Any number that is not a handle is refused."""
    session = opened(impl, check)
    for handle in NEVER_GIVEN:
        refuse(session, function, name, handle)
    session.ask(function, **legal_call(session, function))


@feature("checked-handles")
@clause("RT-19.A-01")
def test_a_pointer_is_no_handle(impl, check):
    """Device memory in place of a stream, and a stream in place of memory."""
    session = opened(impl, check)
    pointer = session.allocate(64)
    refused(check, session.attempt("tessStreamSynchronize", stream=pointer), INVALID)
    refused(check, session.attempt("tessFree", mesh=session.mesh, devPtr=session.stream), INVALID)
    refused(check, session.attempt("tessHostFree", hostPtr=session.stream), INVALID)
    session.ask("tessFree", mesh=session.mesh, devPtr=pointer)


ENDS = {
    "context": "tessShutdown",
    "mesh": "tessMeshDestroy",
    "stream": "tessStreamDestroy",
    "event": "tessEventDestroy",
    "module": "tessModuleUnload",
}
"""Functions that end a handle's life; that of a kernel ends with its module."""


@feature("checked-handles")
@clause("RT-19.A-01")
@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_a_destroyed_handle_gets_an_answer(impl, check, function, name):
    """Any status will do, the runtime lives on, and another session is not touched (AMB-RT-38, AMB-RT-50)."""
    session = opened(impl, check)
    arguments = legal_call(session, function)
    if name == "kernel":
        module = session.load(KERNELS)
        arguments["kernel"] = session.kernel_of(module, "nothing")
        session.ask("tessModuleUnload", module=module)
    else:
        session.ask(ENDS[name], **{name: arguments[name]})
    for _ in range(2):
        answer = session.attempt(function, **arguments)
        check.true(isinstance(answer, Returned | Rejected), "there is an answer", type(answer).__name__)
    fresh = opened(impl, check)
    fresh.ask(function, **legal_call(fresh, function))


@feature("checked-handles")
@clause("RT-19.A-01")
def test_a_profiler_stops_once(impl, check, tmp_path):
    """A second stop gets an answer, whatever it is (AMB-RT-34, AMB-RT-38)."""
    session = opened(impl, check)
    profiler = session.ask("tessProfilerStart", context=session.context)["profiler"]
    session.ask("tessProfilerStop", profiler=profiler, outJsonPath=str(tmp_path / "one.json"))
    answer = session.attempt("tessProfilerStop", profiler=profiler, outJsonPath=str(tmp_path / "two.json"))
    check.true(isinstance(answer, Returned | Rejected), "there is an answer", type(answer).__name__)
