"""Links that fail during a collective of the runtime: unnoticed, fatal, or with other bits (AMB-RT-182)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import make
from tessera_reference.collectives.travel import Cut
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import contexts
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.contexts import FaultPlan

CUTS, COMBINED, DURATION = FaultPlan.link_cuts, CollectiveWork._combined, CollectiveWork._duration


def failing(
    name: str, description: str, method: str, instead: Callable[..., Any], on: Any = CollectiveWork
) -> Violation:
    """Return a violation that replaces one method of a runtime whose links fail."""
    return replaced("RT-07-07", description, make, (on, method, instead), name=name)


def unnoticed(self: FaultPlan, now: int) -> tuple[Cut, ...]:
    return ()


def fatal(self: CollectiveWork, group: Any) -> int:
    if self.stream.mesh.context.faults.link_cuts(0):
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, self.function, "a link that failed", "links that are not down")
    return DURATION(self, group)


def launch_failed(self: CollectiveWork, group: Any) -> int:
    context = self.stream.mesh.context
    timeout, context.timeout = context.timeout, None
    try:
        return DURATION(self, group)
    finally:
        context.timeout = timeout


def lost(self: CollectiveWork, group: Any, contributions: Any) -> Mapping[int, Array]:
    found = COMBINED(self, group, contributions)
    if not self.stream.mesh.context.faults.link_cuts(0):
        return found
    return {rank: _cleared(work) for rank, work in found.items()}


def _cleared(array: Array) -> Array:
    size = array.dtype.storage_bytes
    return Array.from_bits(array.dtype, array.shape, array.to_bits()[:-size] + bytes(size))


def silent(self: CollectiveWork, group: Any) -> int:
    try:
        return DURATION(self, group)
    except Failure as failure:
        raise Failure(failure.status, failure.function, "no way", "a way") from None


def anything(function: str, what: str, given: str, known: Any) -> None:
    """Accept any name of a link."""


VIOLATIONS = [
    failing("timeout_forgotten", "fails a launch where a timeout is configured", "_duration", launch_failed),
    failing("link_cut_loses_bits", "has other bits where a link fails", "_combined", lost),
    failing("failed_link_not_named", "does not name the failed link", "_duration", silent),
    failing("any_link", "accepts a link that the machine does not have", "require_known", anything, contexts),
]  # fmt: skip
