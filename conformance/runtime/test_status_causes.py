"""One status, several causes (runtime specification, Appendix A).

Each row provokes a status in another way. Collective mismatches, determinism violations, timeouts and corrupt caches
have their own chapters, and so have versions and targets of modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.calls import collective, legal_call
from tessera_conformance.chapters.runtime.kit.collectives import presume_dtype
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    DTYPE_IDS,
    MAX,
    MIN,
    SUM,
    MeshSession,
    opened,
)
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Observation, Returned

Cause = Callable[[MeshSession], Observation]

OUT_OF_MEMORY = "TESS_ERR_OUT_OF_MEMORY"
LAUNCH_FAILED = "TESS_ERR_LAUNCH_FAILED"


def device_bytes(session: MeshSession) -> int:
    """The memory of the first device."""
    return int(session.ask("tessxDevices")["devices"][0]["memory_bytes"])


def allocating(session: MeshSession, size: int) -> Observation:
    """Return the answer of tessMalloc."""
    return session.attempt("tessMalloc", mesh=session.mesh, bytes=size)


def together(session: MeshSession) -> Observation:
    """Two allocations that only one of them has room for."""
    session.allocate(device_bytes(session) // 5 * 3)
    return allocating(session, device_bytes(session) // 5 * 3)


def on_two_meshes(session: MeshSession) -> Observation:
    """The same on two meshes over one device."""
    session.allocate(device_bytes(session) // 5 * 3)
    other = session.ask("tessMeshCreate", **legal_call(session, "tessMeshCreate"))["mesh"]
    return session.attempt("tessMalloc", mesh=other, bytes=device_bytes(session) // 5 * 3)


NO_MEMORY: dict[str, Cause] = {
    "one byte too many": lambda session: allocating(session, device_bytes(session) + 1),
    "twice the device": lambda session: allocating(session, 2 * device_bytes(session)),
    "half of all addresses": lambda session: allocating(session, 1 << 63),
    "all addresses": lambda session: allocating(session, (1 << 64) - 1),
    "all addresses but a page": lambda session: allocating(session, (1 << 64) - 4096),
    "two allocations together": together,
    "two meshes together": on_two_meshes,
    "a quarter of all addresses on the host": lambda session: session.attempt("tessHostAlloc", bytes=1 << 62, kind=1),
    "half of all addresses on the host": lambda session: session.attempt("tessHostAlloc", bytes=1 << 63, kind=1),
    "all addresses on the host": lambda session: session.attempt("tessHostAlloc", bytes=(1 << 64) - 1, kind=1),
}

OF_ANY_SIZE = [cause for name, cause in NO_MEMORY.items() if name.startswith(("all", "half"))]
"""Sizes that no memory can have."""


@clause("RT-19.A-02", "RT-07-04")
@pytest.mark.parametrize("cause", NO_MEMORY.values(), ids=NO_MEMORY)
def test_an_allocation_that_cannot_be_made_is_out_of_memory(impl, check, cause):
    """The call itself says so, the stream has nothing to report, and less memory is still to be had (AMB-RT-126)."""
    session = opened(impl, check)
    answer = cause(session)
    unwritten = cause in (together, on_two_meshes) and isinstance(answer, Returned)
    check.reading("AMB-RT-126", "more may be given out until it is written", unwritten)
    no_size = cause in OF_ANY_SIZE and rejected(answer, "TESS_ERR_INVALID_VALUE")
    check.reading("AMB-RT-126", "a size that no memory can have is TESS_ERR_INVALID_VALUE", no_size)
    check.status(answer, OUT_OF_MEMORY)
    session.synchronize()
    session.allocate(BYTES)
    session.ask("tessHostAlloc", bytes=BYTES, kind=1)


FAILING: dict[str, tuple[str, int]] = {
    "integer division by zero": ("divide", 0),
    "an index behind the end": ("index", COUNT),
    "an index far away": ("index", (1 << 31) - 1),
    "a range with a step of zero": ("steps", 0),
}
"""A kernel of `KERNELS` and the argument that it fails with; 1 is one that it runs with (AMB-RT-61, AMB-RT-127)."""


@clause("RT-19.A-04", "RT-07-07")
@pytest.mark.parametrize(("name", "wrong"), FAILING.values(), ids=FAILING)
def test_a_kernel_that_fails_is_reported_by_the_synchronization(impl, check, name, wrong):
    """tessLaunch itself succeeds; the synchronization says so once, and the stream goes on (AMB-RT-14)."""
    session = opened(impl, check)
    kernel, pointer = session.kernel(name), session.allocate(BYTES)
    session.launch(kernel, packed(("int32", wrong), ("ptr", pointer)))
    session.reports(LAUNCH_FAILED)
    session.synchronize()
    session.launch(kernel, packed(("int32", 1), ("ptr", pointer)))
    session.synchronize()


@clause("RT-19.A-04", "RT-07-07")
@pytest.mark.parametrize(("name", "wrong"), FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("ranks", [1, 4])
def test_a_kernel_that_fails_on_every_rank_is_reported_once(impl, check, ranks, name, wrong):
    """Every rank fails, and one error is reported."""
    session = opened(impl, check, ranks)
    session.launch(session.kernel(name), packed(("int32", wrong), ("ptr", session.allocate(BYTES))))
    session.reports(LAUNCH_FAILED)
    session.synchronize()


def reducing(function: str, dtype: str, op: int) -> Cause:
    """A collective that no arithmetic is defined for."""

    def cause(session: MeshSession) -> Observation:
        buffer = "buffer" if function == "tessAllReduce" else "inout"
        arguments: dict[str, Any] = collective(session, buffer, op=op, axis="dp")
        return session.attempt(function, **(arguments | {"dtype": DTYPE_IDS[dtype], "count": 8}))

    return cause


OPERATORS = {SUM: "sum", MAX: "max", MIN: "min"}
UNSUPPORTED: dict[str, Cause] = {
    f"{function} {OPERATORS[op]} of {dtype}": reducing(function, dtype, op)
    for function in ("tessAllReduce", "tessReduceScatter")
    for dtype, op in (("complex64", MAX), ("complex64", MIN), ("complex128", MAX), ("complex128", MIN), ("bool", SUM))
}

OF_TRUTH_VALUES = [cause for name, cause in UNSUPPORTED.items() if name.endswith("of bool")]


@clause("RT-19.A-06")
@pytest.mark.parametrize("cause", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_an_operation_that_there_is_not_is_unsupported(impl, check, cause):
    """Complex numbers have no order, and truth values no sum; the call says so (AMB-RT-12, AMB-RT-28, AMB-RT-57)."""
    session = opened(impl, check)
    answer = cause(session)
    summed = cause in OF_TRUTH_VALUES and isinstance(answer, Returned)
    check.reading("AMB-RT-57", "bool SUM is or", summed)
    if isinstance(answer, Returned):
        waited = session.attempt("tessStreamSynchronize", stream=session.stream)
        later = rejected(waited, "TESS_ERR_UNSUPPORTED")
        check.reading("AMB-RT-12", "UNSUPPORTED is reported by synchronization", later)
    check.status(answer, "TESS_ERR_UNSUPPORTED")
    session.synchronize()
    session.ask("tessAllReduce", **legal_call(session, "tessAllReduce"))


SUPPORTED = {
    "sum of complex64": ("complex64", SUM),
    "sum of complex128": ("complex128", SUM),
    "max of bool": ("bool", MAX),
    "min of bool": ("bool", MIN),
}


@clause("RT-19.A-06", "RT-19.A-12")
@pytest.mark.parametrize(("dtype", "op"), SUPPORTED.values(), ids=SUPPORTED)
def test_operations_beside_an_unsupported_one_are_supported(impl, check, dtype, op):
    """Complex numbers have a sum, and truth values an order (AMB-RT-28, AMB-RT-57), where the machine has them."""
    session = opened(impl, check)
    answer = reducing("tessAllReduce", dtype, op)(session)
    presume_dtype(session, answer, f"all_reduce of {dtype}")
    check.returns(answer, "the collective succeeds")
    session.synchronize()
