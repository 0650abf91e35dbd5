"""The plainest legal call of each function of the text, and what it needs before it (runtime specification, 4).

Control cases: where one fails, cases that fail on a call of its function are blocked by it, and its clause is the one
that fails (`conformance/clauses/constructs.toml`). Each calls only what stands before its function there.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import elements, packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    CONFIGURATION,
    COUNT,
    D2D,
    D2H,
    DTYPE_IDS,
    H2D,
    PINNED_HOST,
    SUM,
    MeshSession,
    axes_of,
    devices,
    opened,
)
from tessera_conformance.chapters.runtime.kit.policies import STRICT
from tessera_conformance.check import Check
from tessera_conformance.marks import clause, judges
from tessera_conformance.session import Implementation

pytestmark = judges("acceptance")

DATA = elements("int32", *range(COUNT))
FILL = "module m { kernel fill(v: int32, x: tensor<64xint32>) { x[0:64] = v; } }"


def initialized(impl: Implementation, check: Check) -> int:
    """A context."""
    return int(check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"])


def on_one_device(impl: Implementation, check: Check) -> tuple[int, int]:
    """A context, and a mesh of one device."""
    context = initialized(impl, check)
    ids = devices(impl, check, 1)
    created = impl.runtime.tessMeshCreate(context=context, deviceIds=ids, nDevices=1, axes=axes_of())
    return context, int(check.returns(created, "tessMeshCreate succeeds")["mesh"])


# 4.1


@clause("RT-04.1-19")
def test_tessinit(impl, check):
    """A context that is not NULL."""
    context = initialized(impl, check)
    check.true(context != 0, "the context is not NULL", context)


@clause("RT-04.1-20")
def test_tessshutdown(impl, check):
    """A context in which nothing was made is shut down."""
    context = initialized(impl, check)
    check.equal(check.returns(impl.runtime.tessShutdown(context=context), "tessShutdown succeeds"), {}, "no outputs")


@clause("RT-04.1-21")
def test_tessgetversion(impl, check):
    """tessGetVersion succeeds in a context."""
    initialized(impl, check)
    version = check.returns(impl.runtime.tessGetVersion(), "tessGetVersion succeeds")
    check.equal(sorted(version), ["major", "minor", "patch"], "the numbers")


# 4.2


@clause("RT-04.2-04")
def test_tessmeshcreate(impl, check):
    """A mesh of one device has one rank on every axis."""
    _, mesh = on_one_device(impl, check)
    check.true(mesh != 0, "the mesh is not NULL", mesh)


@clause("RT-04.2-05")
def test_tessmeshdestroy(impl, check):
    """A mesh on which nothing was made is destroyed."""
    _, mesh = on_one_device(impl, check)
    check.equal(check.returns(impl.runtime.tessMeshDestroy(mesh=mesh), "tessMeshDestroy succeeds"), {}, "no outputs")


# 4.3


@clause("RT-04.3-11")
def test_tessstreamcreate(impl, check):
    """A stream of priority 0 is created."""
    session = opened(impl, check)
    check.true(session.stream != 0, "the stream is not NULL", session.stream)


@clause("RT-04.3-10")
def test_tessstreamsynchronize(impl, check):
    """A stream without work is synchronized."""
    session = opened(impl, check)
    answer = session.attempt("tessStreamSynchronize", stream=session.stream)
    check.equal(check.returns(answer, "tessStreamSynchronize succeeds"), {}, "no outputs")


@clause("RT-04.3-12")
def test_tessstreamdestroy(impl, check):
    """A stream without work is destroyed."""
    session = opened(impl, check)
    answer = session.attempt("tessStreamDestroy", stream=session.stream)
    check.equal(check.returns(answer, "tessStreamDestroy succeeds"), {}, "no outputs")


@clause("RT-04.3-13")
def test_tesseventcreate(impl, check):
    """tessEventCreate succeeds in a context."""
    initialized(impl, check)
    event = check.returns(impl.runtime.tessEventCreate(), "tessEventCreate succeeds")["event"]
    check.true(event != 0, "the event is not NULL", event)


@clause("RT-04.3-14")
def test_tesseventdestroy(impl, check):
    """An event that was not recorded is destroyed."""
    initialized(impl, check)
    event = check.returns(impl.runtime.tessEventCreate(), "tessEventCreate succeeds")["event"]
    answer = impl.runtime.tessEventDestroy(event=event)
    check.equal(check.returns(answer, "tessEventDestroy succeeds"), {}, "no outputs")


@clause("RT-04.3-13")
def test_tesseventrecord(impl, check):
    """tessEventRecord succeeds on a stream without work."""
    session = opened(impl, check)
    answer = session.attempt("tessEventRecord", event=session.event(), stream=session.stream)
    check.equal(check.returns(answer, "tessEventRecord succeeds"), {}, "no outputs")


@clause("RT-12-03")
def test_tessstreamwaitevent(impl, check):
    """For an event that another stream without work has recorded."""
    session = opened(impl, check)
    other, event = session.another_stream(), session.event()
    session.record(event)
    answer = other.attempt("tessStreamWaitEvent", stream=other.stream, event=event)
    check.equal(check.returns(answer, "tessStreamWaitEvent succeeds"), {}, "no outputs")
    other.synchronize()


# 4.4


@clause("RT-04.4-14")
def test_tessmalloc(impl, check):
    """tessMalloc of some bytes on one device succeeds."""
    _, mesh = on_one_device(impl, check)
    pointer = check.returns(impl.runtime.tessMalloc(mesh=mesh, bytes=BYTES), "tessMalloc succeeds")["devPtr"]
    check.true(pointer != 0, "the pointer is not NULL", pointer)


@clause("RT-04.4-15")
def test_tessfree(impl, check):
    """Memory from tessMalloc is released."""
    _, mesh = on_one_device(impl, check)
    pointer = check.returns(impl.runtime.tessMalloc(mesh=mesh, bytes=BYTES), "tessMalloc succeeds")["devPtr"]
    answer = impl.runtime.tessFree(mesh=mesh, devPtr=pointer)
    check.equal(check.returns(answer, "tessFree succeeds"), {}, "no outputs")


@clause("RT-04.4-16")
def test_tesshostalloc(impl, check):
    """tessHostAlloc of some pinned bytes succeeds."""
    initialized(impl, check)
    answer = impl.runtime.tessHostAlloc(bytes=BYTES, kind=PINNED_HOST)
    pointer = check.returns(answer, "tessHostAlloc succeeds")["hostPtr"]
    check.true(pointer != 0, "the pointer is not NULL", pointer)


@clause("RT-04.4-17")
def test_tesshostfree(impl, check):
    """Memory from tessHostAlloc is released."""
    initialized(impl, check)
    given = impl.runtime.tessHostAlloc(bytes=BYTES, kind=PINNED_HOST)
    pointer = check.returns(given, "tessHostAlloc succeeds")["hostPtr"]
    answer = impl.runtime.tessHostFree(hostPtr=pointer)
    check.equal(check.returns(answer, "tessHostFree succeeds"), {}, "no outputs")


@clause("RT-04.4-18", "RT-04.4-19", "RT-04.4-20")
def test_tessmemcpyasync(impl, check):
    """tessMemcpyAsync copies to the device, on it, and back."""
    session = opened(impl, check)
    source, target = session.host(DATA), session.host(bytes(BYTES))
    first, second = session.allocate(BYTES), session.allocate(BYTES)
    session.copy(first, source, BYTES, H2D)
    session.copy(second, first, BYTES, D2D)
    session.copy(target, second, BYTES, D2H)
    session.synchronize()
    check.equal(session.host_bytes(target, BYTES).hex(), DATA.hex(), "what came back")


# 4.5


@clause("RT-04.5-04")
def test_tessmoduleload(impl, check):
    """A program of one kernel is loaded."""
    module = opened(impl, check).load(FILL)
    check.true(module != 0, "the module is not NULL", module)


@clause("RT-04.5-15")
def test_tessmoduleunload(impl, check):
    """A module that was not used is unloaded."""
    session = opened(impl, check)
    answer = session.attempt("tessModuleUnload", module=session.load(FILL))
    check.equal(check.returns(answer, "tessModuleUnload succeeds"), {}, "no outputs")


@clause("RT-04.5-16")
def test_tesskernelget(impl, check):
    """The one kernel of a module."""
    kernel = opened(impl, check).kernel("fill", FILL)
    check.true(kernel != 0, "the kernel is not NULL", kernel)


@clause("RT-04.5-17")
def test_tesslaunch(impl, check):
    """A kernel that fills memory, over one block."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill", FILL), session.upload(DATA)
    arguments = packed(("int32", 7), ("ptr", pointer))
    session.launch(kernel, arguments, argSize=len(arguments), **CONFIGURATION)
    check.equal(session.integers(pointer), [7] * COUNT, "what the kernel wrote")


# 4.6


def kept(session: MeshSession, function: str, buffer: str, **others: object) -> None:
    """A collective over one rank succeeds, and its data is as it was."""
    pointer = session.upload(DATA)
    whole = {"mesh": session.mesh, buffer: pointer, "count": COUNT, "dtype": DTYPE_IDS["int32"]}
    session.ask(function, **whole, **others, stream=session.stream)
    session.check.equal(session.download(pointer, BYTES).hex(), DATA.hex(), "the data")


@clause("RT-04.6-08")
def test_tessallreduce(impl, check):
    """tessAllReduce sums over one rank."""
    kept(opened(impl, check), "tessAllReduce", "buffer", op=SUM, axis="dp")


@clause("RT-04.6-11")
def test_tessreducescatter(impl, check):
    """tessReduceScatter sums over one rank."""
    kept(opened(impl, check), "tessReduceScatter", "inout", op=SUM, axis="dp")


@clause("RT-04.6-12")
def test_tessallgather(impl, check):
    """One rank gathers from itself."""
    kept(opened(impl, check), "tessAllGather", "inout", axis="dp")


@clause("RT-04.6-13")
def test_tessbroadcast(impl, check):
    """tessBroadcast succeeds from the one rank."""
    kept(opened(impl, check), "tessBroadcast", "buffer", root=0)


# 4.7, 4.8


@clause("RT-04.7-08")
def test_tesssetnumericspolicy(impl, check):
    """tessSetNumericsPolicy accepts a policy that is strict in everything."""
    context = initialized(impl, check)
    answer = impl.runtime.tessSetNumericsPolicy(context=context, policy=STRICT)
    check.equal(check.returns(answer, "tessSetNumericsPolicy succeeds"), {}, "no outputs")


@clause("RT-04.7-10")
def test_tessgetnumericspolicy(impl, check):
    """The policy of the context was set before."""
    context = initialized(impl, check)
    check.returns(impl.runtime.tessSetNumericsPolicy(context=context, policy=STRICT), "tessSetNumericsPolicy succeeds")
    actual = check.returns(impl.runtime.tessGetNumericsPolicy(context=context), "tessGetNumericsPolicy succeeds")
    check.equal(actual["policy"], STRICT, "the policy")


@clause("RT-04.8-04")
@pytest.mark.parametrize("function", ["tessProfilerStart", "tessProfilerStop"])
def test_a_profiler(impl, check, function, tmp_path):
    """Started, and stopped when nothing was done."""
    context = initialized(impl, check)
    profiler = check.returns(impl.runtime.tessProfilerStart(context=context), "tessProfilerStart succeeds")["profiler"]
    check.true(profiler != 0, "the profiler is not NULL", profiler)
    if function == "tessProfilerStop":
        path = tmp_path / "trace.json"
        answer = impl.runtime.tessProfilerStop(profiler=profiler, outJsonPath=str(path))
        check.returns(answer, "tessProfilerStop succeeds")
        check.true(path.exists(), "there is a file")
