"""Injected faults and how they are reported (runtime specification, 7 and 19.A; AMB-RT-81)."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    BYTES,
    COUNT,
    MeshSession,
    meshed,
    opened,
    two_contexts,
)
from tessera_conformance.chapters.runtime.kit.mesh_session import devices as devices_of
from tessera_conformance.marks import clause, feature

ALL_REDUCE = """module communicating {
  mesh g = mesh<axes=[tp, dp], shape=[2, 2]>;
  kernel reduced(x: tensor<4xint32>) { x = dist.all_reduce(x) @{axis=dp, op="sum"}; }
}
"""
LAUNCH_FAILED = "TESS_ERR_LAUNCH_FAILED"
OUT_OF_MEMORY = "TESS_ERR_OUT_OF_MEMORY"


def plan(session: MeshSession, *faults: dict[str, Any]) -> None:
    """Let this happen from now on, and nothing else."""
    session.ask("tessxSetFaults", context=session.context, faults=list(faults))


def fill(session: MeshSession, kernel: int, pointer: int, value: int = 1) -> None:
    """Queue a launch of `fill`."""
    session.launch(kernel, packed(("int32", value), ("ptr", pointer)))


def synchronizations(session: MeshSession, expected: list[str]) -> None:
    """Check that the next synchronizations of the stream have these statuses; "" is success."""
    for status in expected:
        answer = session.attempt("tessStreamSynchronize", stream=session.stream)
        if status:
            session.check.status(answer, status)
        else:
            session.check.returns(answer, "tessStreamSynchronize succeeds")


@feature("fault-injection")
@clause("RT-19.A-04", "RT-07-07")
@pytest.mark.parametrize("nth", [1, 2, 5])
def test_a_kernel_that_traps_is_a_failed_launch(impl, check, nth):
    """The n-th launch and no other; tessLaunch succeeds, and the synchronization reports it once."""
    session = opened(impl, check)
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    plan(session, {"kind": "kernel_trap", "kernel": "fill", "nth": nth})
    for number in range(1, 7):
        fill(session, kernel, pointer)
        synchronizations(session, [LAUNCH_FAILED, ""] if number == nth else [""])


@feature("fault-injection")
@clause("RT-19.A-04", "RT-07-07")
@pytest.mark.parametrize(("ranks", "rank"), [(1, 0), (4, 0), (4, 1), (4, 3)])
def test_a_kernel_that_traps_on_one_rank_is_a_failed_launch(impl, check, ranks, rank):
    """The launch fails if any one of its ranks traps."""
    session = opened(impl, check, ranks)
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    plan(session, {"kind": "kernel_trap", "kernel": "fill", "nth": 1, "rank": rank})
    fill(session, kernel, pointer)
    synchronizations(session, [LAUNCH_FAILED, ""])


@feature("fault-injection")
@clause("RT-07-07")
def test_a_trap_affects_its_kernel_only(impl, check):
    """Other kernels are not counted, and an empty plan lifts the fault."""
    session = opened(impl, check)
    module, pointer = session.load(), session.allocate(BYTES)
    first, second = session.kernel_of(module, "fill"), session.kernel_of(module, "digit")
    plan(session, {"kind": "kernel_trap", "kernel": "fill", "nth": 2})
    fill(session, first, pointer, 4)
    for _ in range(3):
        fill(session, second, pointer, 1)
    check.equal(session.integers(pointer), [4111] * COUNT, "what the kernels wrote")
    plan(session)
    fill(session, first, pointer, 6)
    check.equal(session.integers(pointer), [6] * COUNT, "what the kernel wrote")


@feature("fault-injection")
@clause("RT-07-07")
def test_a_fault_affects_its_context_only(impl, check):
    """The same kernel runs in another one."""
    session, other = two_contexts(impl, check)
    plan(session, {"kind": "kernel_trap", "kernel": "fill"}, {"kind": "out_of_memory"})
    kernel, pointer = other.kernel("fill"), other.allocate(BYTES)
    fill(other, kernel, pointer, 3)
    check.equal(other.integers(pointer), [3] * COUNT, "what the kernel wrote")


@feature("fault-injection")
@clause("RT-07-07")
def test_a_slow_kernel_is_no_failure(impl, check):
    """The kernel has its usual results, and the work behind it waits."""
    session = opened(impl, check)
    module, pointer = session.load(), session.allocate(BYTES)
    plan(session, {"kind": "kernel_slow", "kernel": "fill", "nth": 1, "nanoseconds": 5_000_000})
    fill(session, session.kernel_of(module, "fill"), pointer, 2)
    fill(session, session.kernel_of(module, "digit"), pointer, 3)
    check.equal(session.integers(pointer), [23] * COUNT, "what the kernels wrote")


@feature("fault-injection")
@clause("RT-19.A-02", "RT-07-04")
@pytest.mark.parametrize("nth", [1, 2, 5])
def test_an_allocation_that_finds_no_memory_is_out_of_memory(impl, check, nth):
    """The n-th and no other; the call itself says so and the stream has nothing to report."""
    session = opened(impl, check)
    plan(session, {"kind": "out_of_memory", "nth": nth})
    for number in range(1, 7):
        answer = session.attempt("tessMalloc", mesh=session.mesh, bytes=64)
        if number == nth:
            check.status(answer, OUT_OF_MEMORY)
        else:
            check.returns(answer, "tessMalloc succeeds")
        session.synchronize()


@feature("fault-injection")
@clause("RT-19.A-04", "RT-07-07")
@pytest.mark.parametrize("axis", ["tp", "dp"])
def test_a_collective_over_a_cut_link_is_a_failed_launch(impl, check, axis):
    """Two ranks between which nothing passes; the call succeeds, and the synchronization reports it."""
    session = opened(impl, check, ranks=2, **{axis: 2})
    kernel, pointer = session.kernel("fill"), session.allocate(BYTES)
    fill(session, kernel, pointer)
    plan(session, {"kind": "link_down", "ranks": [0, 1], "mesh": session.mesh})
    session.all_reduce(pointer, axis=axis)
    synchronizations(session, [LAUNCH_FAILED, ""])


@feature("fault-injection", "mesh-collectives")
@clause("RT-19.A-04", "RT-07-07")
@pytest.mark.parametrize("cut", [(0, 1), (1, 3), (0, 3)], ids=["along dp", "along tp", "across"])
def test_a_kernel_that_communicates_over_a_cut_link_is_a_failed_launch(impl, check, cut):
    """The kernel communicates along dp: links between other ranks do not matter (AMB-RT-171)."""
    session = opened(impl, check, ranks=4, tp=2, dp=2)
    kernel, pointer = session.kernel("reduced", ALL_REDUCE), session.upload(bytes(range(16)))
    session.synchronize()
    plan(session, {"kind": "link_down", "ranks": list(cut), "mesh": session.mesh})
    session.launch(kernel, packed(("ptr", pointer)))
    synchronizations(session, [LAUNCH_FAILED, ""] if cut == (0, 1) else [""])


@feature("fault-injection")
@clause("RT-07-07")
def test_a_cut_link_does_not_affect_other_collectives(impl, check):
    """Collectives of groups that do not need it, of another mesh, and after the plan is lifted, succeed."""
    session = opened(impl, check, ranks=4, tp=2, dp=2)
    other = meshed(impl, check, session.context, devices_of(impl, check, 4), tp=4)
    plan(session, {"kind": "link_down", "ranks": [0, 1], "mesh": session.mesh})
    for owner, axis, size in ((session, "tp", 2), (other, "tp", 4)):
        pointer = owner.allocate(BYTES)
        fill(owner, owner.kernel("fill"), pointer)
        owner.all_reduce(pointer, axis=axis)
        check.equal(owner.integers(pointer), [size] * COUNT, f"the sum along {axis}")
    plan(session)
    pointer = session.allocate(BYTES)
    fill(session, session.kernel("fill"), pointer)
    session.all_reduce(pointer, axis="dp")
    check.equal(session.integers(pointer), [2] * COUNT, "the sum along dp")
