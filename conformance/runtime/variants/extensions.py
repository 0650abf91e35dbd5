"""Readings of what the runtime document leaves to extensions: graphs, disagreement, choices, policies (6 to 19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import altered, varies
from tessera_reference.abi.fatbin import verify
from tessera_reference.abi.status import Failure, Status, invalid, unsupported
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.collectives.selection import Overrides, Selection
from tessera_reference.runtime import calls, collectives, contexts
from tessera_reference.runtime.collectives import CollectiveWork
from tessera_reference.runtime.streams import Capture, Recording, Stream, Work, begin_capture

GRAPHS = ("runtime/graph*", "runtime/captured*", "runtime/carried-descriptors/*")
"""The cases of graphs."""
CHOICES = ("runtime/algorithm*",)
"""The cases of the algorithms of collectives."""
JOIN, COMPLETE, READ, CHOOSE = (
    calls._require_may_join,
    CollectiveWork._complete,
    contexts.read_overrides,
    collectives.choose,
)

# Graphs


def one_stream(capture: Capture, recording: Recording, stream: Stream, current: Capture | None) -> None:
    """A capture has one stream, which no other joins."""
    if capture is not current:
        raise invalid("tessStreamWaitEvent", "an event of a capture", "an event that was recorded")
    JOIN(capture, recording, stream, current)


ONE_STREAM = altered(
    "AMB-RT-160",
    "captures one stream at a time",
    GRAPHS,
    ReferenceAdapter,
    (calls, "_require_may_join", one_stream),
    name="one_stream_a_capture",
)


@varies("AMB-RT-162", "has an empty graph of a stream that captured nothing", *GRAPHS)
class EmptyGraphs(ReferenceAdapter):
    """Instantiates what there is."""

    def runtime_tessxGraphInstantiate(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Return the graph; of nothing, one without nodes."""
        begin_capture(self.runtime.captures, self.runtime.stream(stream))
        return super().runtime_tessxGraphInstantiate(stream=stream)


# Ranks that disagree, or do not come


def undefined(work: CollectiveWork, contributions: Any) -> Any:
    """Complete, or clear the buffers of ranks that do not agree."""
    try:
        return COMPLETE(work, contributions)
    except Failure:
        for rank, contribution in contributions.items():
            if contribution.region is not None:
                size = work.call.count * work.call.dtype.storage_bytes
                work.stream.mesh.write(contribution.region, rank, bytes(size))
        raise


UNDEFINED = altered(
    "AMB-RT-142",
    "clears the buffers of a collective that fails",
    ("runtime/rank-disagreement/*", "runtime/group-rendezvous/*", "runtime/faults/*"),
    ReferenceAdapter,
    (CollectiveWork, "_complete", undefined),
    name="undefined_content",
)


def mismatch(work: Work, timeout: int) -> Failure:
    """The failure of work that took too long: of a collective, that its ranks do not match."""
    failure = LATE(work, timeout)
    if not isinstance(work, CollectiveWork):
        return failure
    return Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, failure.function, failure.given, failure.allowed)


LATE = Work.timed_out
MISMATCHES = altered(
    "AMB-RT-168",
    "calls a participant that does not come a mismatch",
    ("runtime/timeouts/a-missing*", "runtime/timeouts/a-kernel*", "runtime/rank-disagreement/*"),
    ReferenceAdapter,
    (Work, "timed_out", mismatch),
    name="always_a_mismatch",
)

# The choice of an algorithm


def unset(function: str, variables: Mapping[str, str]) -> Overrides:
    """The overrides of the environment; a variable that means nothing counts as unset."""
    known = dict(variables)
    for name in [name for name in variables if name.startswith("TESSERA_COLL_")]:
        try:
            READ(function, {name: variables[name]})
        except Failure:
            del known[name]
    return READ(function, known)


UNSET = altered(
    "AMB-RT-181",
    "passes over variables that mean nothing",
    CHOICES,
    ReferenceAdapter,
    (contexts, "read_overrides", unset),
    name="unset_overrides",
)


def ring_by_default(*arguments: Any) -> Selection:
    """Ring, where nothing else decides."""
    found = CHOOSE(*arguments)
    return replace(found, algorithm="ring") if found.source == "default" else found


RING = altered(
    "AMB-RT-180",
    "takes ring by default at every size",
    CHOICES,
    ReferenceAdapter,
    (collectives, "choose", ring_by_default),
    name="ring_by_default",
)

# Policies


def unsupported_signature(*arguments: Any) -> None:
    """Verify a signature; a module without one that is trusted is not supported."""
    try:
        verify(*arguments)
    except Failure as failure:
        raise unsupported(failure.function, failure.given, failure.allowed) from None


FORBIDDEN = altered(
    "AMB-RT-88",
    "does not support what a context forbids",
    ("runtime/module-policy/*",),
    ReferenceAdapter,
    (contexts, "violation", unsupported),
    (calls, "verify", unsupported_signature),
    name="forbidden_unsupported",
)
