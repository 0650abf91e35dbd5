"""The choice of the reported mistake among several, and its consequences (runtime specification, 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics.errors import LeafCount
from tessera_reference.runtime import calls, machine
from tessera_reference.runtime.collectives import CollectiveCall, CollectiveWork
from tessera_reference.runtime.launches import LaunchWork
from tessera_reference.runtime.state import report
from tessera_reference.runtime.streams import Stream

from .reach import RUNTIME

LAUNCHED = LaunchWork.run

NULL_IS_A_VALUE = altered(
    "AMB-RT-38",
    "calls a NULL context or mesh an invalid value",
    RUNTIME,
    ReferenceAdapter,
    (machine, "WITHOUT", frozenset()),
    name="null_is_a_value",
)


async def unless_failed(work: LaunchWork, rank: int) -> None:
    """Launch, where the stream of a single rank has not failed since it was last synchronized."""
    stream: Any = work.stream
    if len(stream.mesh.devices) > 1 or not stream.failures:
        await LAUNCHED(work, rank)


STOPPED = altered(
    "AMB-RT-14",
    "launches nothing on a stream that has failed, until it is synchronized",
    RUNTIME,
    ReferenceAdapter,
    (LaunchWork, "run", unless_failed),
    name="stops_after_a_failure",
)


async def never_after_a_failure(work: LaunchWork, rank: int) -> None:
    """Launch, where no launch of the stream has failed."""
    if not work.stream.failures:  # type: ignore[attr-defined]
        await LAUNCHED(work, rank)


def keeping_the_failure(stream: Stream) -> None:
    """Wait, and report the first failure, which stays."""
    stream.drain()
    if stream.error is not None:
        raise stream.error


ERRORS = tuple(f"runtime/{name}/*" for name in ("errors", "failing-streams", "rank-disagreement", "timeouts"))
"""The cases of errors of running work."""

POISONED = altered(
    "AMB-RT-14",
    "launches nothing on a stream that has failed, and reports the error at each synchronization",
    ERRORS,
    ReferenceAdapter,
    (LaunchWork, "run", never_after_a_failure),
    (Stream, "synchronize", keeping_the_failure),
    name="poisons_the_stream",
)


@varies("AMB-RT-14", "reports an error on every stream until the context ends, once a stream has reported it", *ERRORS)
class Sticky(ReferenceAdapter):
    """Has one error for each context, as CUDA has."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: dict[Any, Refusal] = {}

    def runtime_tessStreamSynchronize(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Wait, and report the first error of the context."""
        streams = {handle: mesh for _, mesh in self.runtime.handles.live("mesh") for handle in mesh.streams}
        context = streams[stream].context.handle if stream in streams else None
        try:
            answer = super().runtime_tessStreamSynchronize(stream=stream)
        except Refusal as refusal:
            if context is None or refusal.outcome.code == "TESS_ERR_INVALID_VALUE":
                raise
            self.errors.setdefault(context, refusal)
        if context in self.errors:
            raise self.errors[context]
        return answer

    def session_reset(self) -> dict[str, Any]:
        """Forget the errors."""
        self.errors.clear()
        return super().session_reset()


@varies("AMB-RT-38", "looks at the other arguments before the handles, from the last to the first", *RUNTIME)
class LastArgumentFirst(ReferenceAdapter):
    """Reports the last of several wrong arguments; no text says which one."""

    def refuse(self, function: str, given: str) -> NoReturn:
        """Refuse a call, and remember why."""
        text = f"{function}: {given}"
        report(self.runtime, Status.TESS_ERR_INVALID_VALUE, text)
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", text)

    def runtime_tessMalloc(self, *, bytes: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The size, then the mesh."""
        if type(bytes) is not int or not 0 <= bytes < 2**64:
            self.refuse("tessMalloc", "bytes")
        return super().runtime_tessMalloc(bytes=bytes, **arguments)

    def runtime_tessFree(self, *, devPtr: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        """The pointer, then the mesh."""
        if not devPtr:
            self.refuse("tessFree", "devPtr")
        return super().runtime_tessFree(devPtr=devPtr, **arguments)

    def runtime_tessHostAlloc(self, *, kind: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The kind, then whether there is a context."""
        if kind != 1:
            self.refuse("tessHostAlloc", "kind")
        return super().runtime_tessHostAlloc(kind=kind, **arguments)

    def runtime_tessMeshCreate(self, *, axes: Any, deviceIds: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        """The axes, the devices, then the context."""
        if any(type(size) is int and size < 0 for size in axes.values()):
            self.refuse("tessMeshCreate", "axes")
        if not deviceIds:
            self.refuse("tessMeshCreate", "deviceIds")
        return super().runtime_tessMeshCreate(axes=axes, deviceIds=deviceIds, **arguments)

    def runtime_tessMemcpyAsync(self, *, kind: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The kind, then the stream."""
        if kind not in (0, 1, 2):
            self.refuse("tessMemcpyAsync", "kind")
        return super().runtime_tessMemcpyAsync(kind=kind, **arguments)

    def runtime_tessKernelGet(self, *, name: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The name, then the module."""
        if not name:
            self.refuse("tessKernelGet", "name")
        return super().runtime_tessKernelGet(name=name, **arguments)

    def runtime_tessAllReduce(self, *, axis: Any, op: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The axis, the operator, then the mesh."""
        if axis not in ("tp", "pp", "dp", "ep"):
            self.refuse("tessAllReduce", "axis")
        if op not in (0, 1, 2):
            self.refuse("tessAllReduce", "op")
        return super().runtime_tessAllReduce(axis=axis, op=op, **arguments)

    def runtime_tessSetNumericsPolicy(self, *, policy: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """The policy, then the context."""
        if policy is None:
            self.refuse("tessSetNumericsPolicy", "policy")
        return super().runtime_tessSetNumericsPolicy(policy=policy, **arguments)

    def runtime_tessProfilerStop(self, *, outJsonPath: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802, N803
        """The path, then the profiler."""
        if outJsonPath is None:
            self.refuse("tessProfilerStop", "outJsonPath")
        return super().runtime_tessProfilerStop(outJsonPath=outJsonPath, **arguments)


def mismatch_of_policies(met: CollectiveWork, contributions: Any) -> None:
    """Ranks under different policies do not agree on their collective, as appendix A has it."""
    try:
        AGREEMENT(met, contributions)
    except Failure as failure:
        if "another policy" in failure.given:
            raise Failure(
                Status.TESS_ERR_COLLECTIVE_MISMATCH, failure.function, failure.given, failure.allowed
            ) from None
        raise


AGREEMENT = CollectiveWork._require_agreement
APPENDIX = altered(
    "AMB-RT-13",
    "calls a difference in policy a mismatch",
    ("runtime/rank-disagreement/*",),
    ReferenceAdapter,
    (CollectiveWork, "_require_agreement", mismatch_of_policies),
    name="policy_mismatch",
)


@varies(
    "AMB-RT-78",
    "passes over a tree of another number of elements",
    "runtime/descriptor/*",
    "runtime/named-operations/*",
)
class PassesOverTrees(ReferenceAdapter):
    """Such a descriptor says nothing of this reduction."""

    def numerics_evaluate(self, *, descriptor: dict[str, Any] | None = None, **question: Any) -> dict[str, Any]:
        """With the order of its own where the tree of the descriptor does not fit."""
        try:
            return super().numerics_evaluate(descriptor=descriptor, **question)
        except Refusal:
            if not descriptor or not isinstance(descriptor.get("reduction_order"), list):
                raise
            others = {name: value for name, value in descriptor.items() if name != "reduction_order"}
            return super().numerics_evaluate(descriptor=others, **question)


def without_trees_that_do_not_fit(
    call: CollectiveCall, buffer: Any, stream: Stream, policy: NumericsPolicy, *others: Any
) -> CollectiveWork:
    """Return a collective in the order of its own where the tree of the descriptor has other leaves than ranks."""
    order = stream.mesh.context.descriptor.reduction_order
    if call.op is None or order is None or others:
        return COLLECTIVE(call, buffer, stream, policy, *others)
    try:
        order.require_leaves(stream.mesh.axes.size_along(call.axis))
    except LeafCount:
        others = (replace(stream.mesh.context.descriptor, reduction_order=None),)
    return COLLECTIVE(call, buffer, stream, policy, *others)


COLLECTIVE = calls.collective_work
OTHER_RANKS = altered(
    "AMB-RT-78",
    "passes over a tree of another number of ranks",
    ("runtime/golden-orders/*",),
    ReferenceAdapter,
    (calls, "collective_work", without_trees_that_do_not_fit),
    name="other_ranks",
)


@varies("AMB-RT-12", "tells at the synchronization what it does not support", "runtime/status-causes/*")
class UnsupportedLater(ReferenceAdapter):
    """Reports unsupported reductions later."""

    def __init__(self) -> None:
        super().__init__()
        self.unsupported: dict[Any, Refusal] = {}

    def later(self, call: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Call, and keep that it is not supported."""
        try:
            found: dict[str, Any] = call(**given)
        except Refusal as refusal:
            if refusal.outcome.code != "TESS_ERR_UNSUPPORTED":
                raise
            self.unsupported[given["stream"]] = refusal
            return {}
        return found

    def runtime_tessAllReduce(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Reduce."""
        return self.later(super().runtime_tessAllReduce, arguments)

    def runtime_tessReduceScatter(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Reduce."""
        return self.later(super().runtime_tessReduceScatter, arguments)

    def runtime_tessStreamSynchronize(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Wait, and tell it."""
        answer: dict[str, Any] = super().runtime_tessStreamSynchronize(stream=stream)
        if stream in self.unsupported:
            raise self.unsupported.pop(stream)
        return answer

    def session_reset(self) -> dict[str, Any]:
        """Forget it."""
        self.unsupported.clear()
        return super().session_reset()
