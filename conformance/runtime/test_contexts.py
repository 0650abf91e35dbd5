"""Contexts and versions (runtime specification, 4.1)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.calls import HANDLES, legal_call
from tessera_conformance.chapters.runtime.kit.encoding import elements, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    axes_of,
    compiled,
    devices,
    judge_contexts,
    meshed,
    opened,
    refused,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.readings import ended_with_contents, rejected
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Returned

TAKE_A_CONTEXT = [name for name, handles in HANDLES.items() if "context" in handles]
LEFT = (
    "tessMalloc",
    "tessMeshCreate",
    "tessEventRecord",
    "tessMemcpyAsync",
    "tessLaunch",
    "tessProfilerStart",
)
PARTS = ("major", "minor", "patch")
AGAIN = {
    "context": ("RT-04.1-20", "tessInit", "tessShutdown"),
    "mesh": ("RT-04.2-05", "tessMeshCreate", "tessMeshDestroy"),
    "stream": ("RT-04.3-12", "tessStreamCreate", "tessStreamDestroy"),
    "event": ("RT-04.3-14", "tessEventCreate", "tessEventDestroy"),
    "memory": ("RT-04.4-15", "tessMalloc", "tessFree"),
    "module": ("RT-04.5-15", "tessModuleLoad", "tessModuleUnload"),
}
"""By object: the clause of its end, and the functions that make and end it."""


@clause("RT-04.1-19")
@pytest.mark.parametrize("function", TAKE_A_CONTEXT)
def test_a_new_context_is_accepted(impl, check, function):
    """Every call that takes a context accepts a new one, also while other contexts exist."""
    others = [check.returns(impl.runtime.tessInit())["context"] for _ in range(2)]
    judge_contexts(check, *others)
    session = opened(impl, check)
    check.true(0 not in (*others, session.context), "no context is NULL")
    session.ask(function, **legal_call(session, function))
    for context in others:
        session.ask("tessShutdown", context=context)


@clause("RT-04.1-19", "RT-04.1-20")
def test_contexts_are_independent(impl, check):
    """tessInit may be called again, and the end of one context is not that of another (AMB-RT-71)."""
    first, second = two_contexts(impl, check)
    check.true(first.context != second.context, "two contexts have two handles")
    data = elements("int32", *range(COUNT))
    pointer = second.upload(data)
    ended_with_contents(first, "tessShutdown", context=first.context)
    check.equal(second.download(pointer, BYTES).hex(), data.hex(), "the memory of the other context")
    third = opened(impl, check)
    check.equal(third.download(third.upload(data), BYTES).hex(), data.hex(), "the memory of a later context")


KEPT = (
    "tessLaunch",
    "tessKernelGet",
    "tessModuleUnload",
    "tessMemcpyAsync",
    "tessAllReduce",
    "tessFree",
    "tessStreamDestroy",
    "tessMeshDestroy",
    "tessGetNumericsPolicy",
)
"""Functions whose handles belong to a context, or to a mesh of one."""


@clause("RT-04.1-20", "RT-04.1-19")
@pytest.mark.parametrize("function", KEPT)
def test_shutting_down_leaves_what_another_context_has(impl, check, function):
    """Calls succeed with arguments that another context made before this one ended, and with later ones (AMB-RT-71)."""
    ended, kept = two_contexts(impl, check)
    for session in (ended, kept):
        session.ask(function, **legal_call(session, function))
    arguments = legal_call(kept, function)
    kept.synchronize()
    ended_with_contents(ended, "tessShutdown", context=ended.context)
    kept.ask(function, **arguments)
    again = opened(impl, check) if function == "tessMeshDestroy" else kept
    again.ask(function, **legal_call(again, function))
    again.synchronize()


@clause("RT-04.1-20")
def test_shutting_down_leaves_the_profile_of_another_context(impl, check, tmp_path):
    """A profiler that another context has started can be stopped afterwards (AMB-RT-71)."""
    ended, kept = two_contexts(impl, check)
    profilers = [session.ask("tessProfilerStart", context=session.context)["profiler"] for session in (ended, kept)]
    ended.ask("tessProfilerStop", profiler=profilers[0], outJsonPath=str(tmp_path / "ended.json"))
    ended_with_contents(ended, "tessShutdown", context=ended.context)
    kept.ask("tessProfilerStop", profiler=profilers[1], outJsonPath=str(tmp_path / "kept.json"))


@clause("RT-04.1-20")
@pytest.mark.parametrize("times", [1, 5])
def test_a_live_context_can_be_shut_down(impl, check, times):
    """A context in which nothing was made can be shut down, again and again."""
    for _ in range(times):
        context = check.returns(impl.runtime.tessInit())["context"]
        check.equal(
            check.returns(impl.runtime.tessShutdown(context=context), "tessShutdown succeeds"), {}, "no outputs"
        )


@clause("RT-04.1-20")
@pytest.mark.parametrize(
    "function",
    ["tessMalloc", "tessMeshCreate", "tessEventRecord", "tessMemcpyAsync", "tessLaunch", "tessProfilerStart"],
)
def test_shutting_down_ends_what_belongs_to_the_context(impl, check, function):
    """Streams, events, memory, modules, meshes and profilers need not be destroyed before (AMB-RT-50)."""
    session = opened(impl, check)
    session.another_stream(priority=3)
    session.ask(function, **legal_call(session, function))
    session.synchronize()
    ended_with_contents(session, "tessShutdown", context=session.context)


@clause("RT-04.1-20")
def test_a_context_can_be_shut_down_when_all_in_it_is_destroyed(impl, check):
    """Stream, memory, mesh and context go in the order of the sample of section 18; then there can be a new context."""
    for _ in range(2):
        session = opened(impl, check)
        pointer = session.upload(elements("int32", *range(COUNT)))
        session.synchronize()
        session.ask("tessStreamDestroy", stream=session.stream)
        session.ask("tessFree", mesh=session.mesh, devPtr=pointer)
        session.destroy_mesh()
        session.ask("tessShutdown", context=session.context)


@clause("RT-04.1-20")
def test_shutting_down_lets_queued_work_finish(impl, check):
    """Of two meshes, a copy on the device and one back to the host are done when tessShutdown returns (AMB-RT-50)."""
    session = opened(impl, check)
    beside = meshed(impl, check, session.context, devices(impl, check, 1))
    targets = [owner.round_trip(elements("int32", *[41] * COUNT)) for owner in (session, beside)]
    answer = session.attempt("tessShutdown", context=session.context)
    refusal = rejected(answer, "TESS_ERR_INVALID_VALUE")
    check.reading("AMB-RT-50", "TESS_ERR_INVALID_VALUE while busy", refusal)
    check.returns(answer, "tessShutdown succeeds")
    for target in targets:
        check.equal(values_of("int32", session.host_bytes(target, BYTES)), [41] * COUNT, "what was copied to the host")


@clause("RT-04.1-20")
def test_shutting_down_gives_the_memory_back(impl, check):
    """Six contexts, one after the other, take a fifth of the device for each of two meshes (AMB-RT-50)."""
    for _ in range(6):
        session = opened(impl, check)
        for owner in (session, meshed(impl, check, session.context, devices(impl, check, 1))):
            owner.allocate(session.ask("tessxDevices")["devices"][0]["memory_bytes"] // 5)
        ended_with_contents(session, "tessShutdown", context=session.context)


@clause("RT-04.1-21")
def test_the_version_has_three_numbers(impl, check):
    """None is negative, and a context changes nothing (AMB-RT-39)."""
    answer = impl.runtime.tessGetVersion()
    check.reading("AMB-RT-39", "NOT_INITIALIZED before tessInit", rejected(answer, "TESS_ERR_NOT_INITIALIZED"))
    before = check.returns(answer, "tessGetVersion succeeds before tessInit")
    check.equal(sorted(before), sorted(PARTS), "the numbers")
    check.true(all(number >= 0 for number in before.values()), "none is negative", before)
    context = check.returns(impl.runtime.tessInit())["context"]
    check.equal(check.returns(impl.runtime.tessGetVersion()), before, "the version within a context")
    check.returns(impl.runtime.tessShutdown(context=context))
    check.equal(check.returns(impl.runtime.tessGetVersion()), before, "the version after tessShutdown")


@clause("RT-04.1-21")
def test_each_number_of_the_version_is_written(impl, check):
    """They are the same in every call of a context."""
    check.returns(impl.runtime.tessInit(), "tessInit succeeds")
    actual = [check.returns(impl.runtime.tessGetVersion(), "tessGetVersion succeeds") for _ in range(2)]
    check.equal(sorted(actual[0]), sorted(PARTS), "the numbers")
    check.equal(actual[1], actual[0], "the numbers of the second call")


@clause("RT-04.1-21")
@pytest.mark.parametrize("missing", PARTS)
def test_a_version_that_goes_nowhere_is_refused(impl, check, missing):
    """A call without one of the three outputs is refused (AMB-RT-39)."""
    check.returns(impl.runtime.tessInit(), "tessInit succeeds")
    answer = impl.runtime.tessGetVersion(null=[missing])
    check.reading("AMB-RT-39", "a NULL output is passed over", isinstance(answer, Returned))
    refused(check, answer, "TESS_ERR_INVALID_VALUE")


@clause("RT-04.1-21")
def test_the_version_is_that_of_the_binary_interface(impl, check):
    """A module written for this major and minor loads: the two are the ABI pair (AMB-RT-32)."""
    session = opened(impl, check)
    version = session.ask("tessGetVersion")
    image = compiled(impl, check, abi_version=[version["major"], version["minor"]])
    answer = session.attempt("tessModuleLoad", context=session.context, image=image)
    other = rejected(answer, "TESS_ERR_ABI_VERSION_MISMATCH")
    check.reading("AMB-RT-32", "the two versions are unrelated", other)
    check.returns(answer, "a module of this version loads")


@clause("RT-19.A-03")
@pytest.mark.parametrize(
    ("function", "arguments"),
    [("tessEventCreate", {}), ("tessHostAlloc", {"bytes": 64, "kind": 1})],
    ids=["tessEventCreate", "tessHostAlloc"],
)
def test_before_tessinit_nothing_is_initialized(impl, check, function, arguments):
    """Functions that take no context need one all the same (AMB-RT-07)."""
    call = getattr(impl.runtime, function)
    answer = call(**arguments)
    check.reading("AMB-RT-07", "they work at any time", isinstance(answer, Returned))
    check.status(answer, "TESS_ERR_NOT_INITIALIZED")
    check.returns(impl.runtime.tessInit())
    check.returns(call(**arguments), f"{function} succeeds after tessInit")


@clause("RT-19.A-03", "RT-04.1-19")
def test_a_tessinit_that_is_refused_initializes_nothing(impl, check):
    """Without a place for its context tessInit fails, and events still need a successful one (AMB-RT-07)."""
    check.reading("AMB-RT-07", "they work at any time", isinstance(impl.runtime.tessEventCreate(), Returned))
    refused(check, impl.runtime.tessInit(null=["context"]), "TESS_ERR_INVALID_VALUE")
    check.status(impl.runtime.tessEventCreate(), "TESS_ERR_NOT_INITIALIZED")


@pytest.mark.parametrize(
    ("make", "end"), [pytest.param(*row[1:], marks=clause(row[0]), id=name) for name, row in AGAIN.items()]
)
def test_an_object_that_ended_makes_room_for_another(impl, check, make, end):
    """A hundred objects are made one after the other, each ended before the next."""
    session = opened(impl, check)
    mesh, context = {"mesh": session.mesh}, {"context": session.context}
    arguments = {
        "tessMeshCreate": context | {"deviceIds": devices(impl, check, 1), "axes": axes_of(dp=1)},
        "tessStreamCreate": mesh | {"priority": 0},
        "tessMalloc": mesh | {"bytes": 4096},
    }.get(make, {})
    if make == "tessModuleLoad":
        arguments = context | {"image": compiled(impl, check)}
    for _ in range(100):
        made = session.ask(make, **arguments)
        session.ask(end, **made, **(mesh if end == "tessFree" else {}))
