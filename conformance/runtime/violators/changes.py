"""Helpers of the violators of the runtime that replace a function."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from inspect import iscoroutinefunction
from typing import Any
from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around, Violation, replaced
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.compilation.compiler import Compiler
from tessera_reference.numerics.array import Array
from tessera_reference.runtime.streams import Mesh

INVALID = "TESS_ERR_INVALID_VALUE"
UNSUPPORTED = "TESS_ERR_UNSUPPORTED"
ABI_MISMATCH = "TESS_ERR_ABI_VERSION_MISMATCH"
ARCH_MISMATCH = "TESS_ERR_ARCH_MISMATCH"

Change = Callable[..., Any]

_IMAGES: dict[str, dict[str, Any]] = {}
_COMPILER = Compiler()


class BuildsOnce(ReferenceAdapter):
    """The reference with compiled images and kernels that all violators share: their changes act later."""

    @cached_property
    def compiler(self) -> Compiler:
        return _COMPILER

    def abi_compile(self, **arguments: Any) -> dict[str, Any]:
        key = repr(sorted(arguments.items()))
        if key not in _IMAGES:
            _IMAGES[key] = super().abi_compile(**arguments)  # type: ignore[misc]
        return _IMAGES[key]


def broken(clause: str, name: str, description: str, place: str, value: Any) -> Violation:
    """Return a violation that replaces an attribute of the runtime."""
    return replaced(clause, description, BuildsOnce, (place, value), name=name)


def executing(clause: str, name: str, description: str, executed: Any) -> Violation:
    """Return a violation with other results of launches."""
    return broken(clause, name, description, "runtime.launches.LaunchWork._executed", executed)


def nudged(array: Array) -> Array:
    """Return an array whose first element, if it is a float, has another last bit."""
    data = bytearray(array.to_bits())
    if array.dtype.kind == "float" and data:
        data[0] ^= 1
    return Array.from_bits(array.dtype, array.shape, bytes(data))


def result(change: Change) -> Around:
    """Return a substitute whose result is changed."""
    return Around(lambda usual: lambda *of, **named: change(usual(*of, **named)))


def only_if(when: Callable[..., bool]) -> Around:
    """Return a substitute that does nothing unless its arguments satisfy `when`."""

    def change(usual: Change) -> Change:
        async def awaited(*of: Any) -> None:
            if when(*of):
                await usual(*of)

        return awaited if iscoroutinefunction(usual) else lambda *of: usual(*of) if when(*of) else None

    return Around(change)


def answering(clause: str, name: str, description: str, function: str, answer: Change) -> Violation:
    """Return a violation that replaces a function by `answer(adapter, call, given)`; `call(**given)` is right."""
    method = f"runtime_{function}"
    right = getattr(ReferenceAdapter, method)

    def answered(self: Any, **arguments: Any) -> Any:
        return answer(self, partial(right, self), arguments)

    return replaced(clause, description, BuildsOnce, (ReferenceAdapter, method, answered), name=name)


def grouping(clause: str, name: str, description: str, groups: Change) -> Violation:
    """Return a violation with other groups of ranks along an axis."""

    def group_of(self: Any, axis: str, rank: int) -> tuple[int, ...]:
        return next(tuple(group) for group in groups(self, axis) if rank in group)

    substitutes = {"mesh.topology.MeshAxes.groups": groups, "mesh.topology.MeshAxes.group_of": group_of}
    return replaced(clause, description, BuildsOnce, *substitutes.items(), name=name)


def refusing(
    clause: str,
    name: str,
    description: str,
    function: str,
    when: Change = lambda given: True,
    status: str = UNSUPPORTED,
) -> Violation:
    """Return a violation whose function refuses all or some legal calls."""
    return answering(clause, name, description, function, unless(lambda adapter, given: when(given), status))


def accepting(clause: str, name: str, description: str, function: str, when: Change, instead: Change) -> Violation:
    """Return a violation whose function replaces wrong arguments by right ones, and so accepts them."""

    def answer(adapter: Any, call: Any, given: Any) -> Any:
        return call(**(given | dict(instead(given)) if when(given) else given))

    return answering(clause, name, description, function, answer)


def in_every_context(clause: str, name: str, description: str, function: str) -> Violation:
    """Return a violation whose function sets a value in every context instead of one."""

    def answer(adapter: Any, call: Any, given: Any) -> Any:
        for handle, _ in adapter.runtime.handles.live("context"):
            call(**(given | {"context": handle}))
        return {}

    return answering(clause, name, description, function, answer)


def restating(clause: str, name: str, description: str, function: str, was: str, becomes: str) -> Violation:
    """Return a violation whose function refuses with another status; "" is success, with outputs of 0."""

    def answer(adapter: Any, call: Any, given: Any) -> Any:
        try:
            return call(**given)
        except Refusal as refusal:
            if refusal.outcome.code != was:
                raise
            if becomes:
                raise Refusal(becomes, "call", str(refusal)) from None
            return dict(OUTPUTS.get(function, {}))

    return answering(clause, name, description, function, answer)


OUTPUTS: dict[str, dict[str, Any]] = {
    "tessInit": {"context": 0},
    "tessGetVersion": {"major": 1, "minor": 0, "patch": 0},
    "tessMeshCreate": {"mesh": 0},
    "tessStreamCreate": {"stream": 0},
    "tessEventCreate": {"event": 0},
    "tessMalloc": {"devPtr": 0},
    "tessHostAlloc": {"hostPtr": 0},
    "tessModuleLoad": {"module": 0},
    "tessKernelGet": {"kernel": 1},
    "tessGetNumericsPolicy": {"policy": dict.fromkeys(("stableReductions", "deterministic", "rngStateless"), 0)},
    "tessProfilerStart": {"profiler": 0},
}
"""Outputs of functions that should have refused."""


# Answers


def unless(when: Callable[..., bool], status: str = INVALID) -> Change:
    """Refuse the calls for which `when(adapter, given)` is true."""

    def answer(adapter: Any, call: Any, given: Any) -> Any:
        if when(adapter, given):
            raise Refusal(status, "call", f"{call.func.__name__.removeprefix('runtime_')}: not this")
        return call(**given)

    return answer


def afterwards(act: Change) -> Change:
    """Make the call, and then `act(adapter, call, given)`."""

    def answer(adapter: Any, call: Any, given: Any) -> Any:
        answer = call(**given)
        act(adapter, call, given)
        return answer

    return answer


def each(kind: str, act: Change) -> Change:
    """Return what does `act(call, handle, found)` with each live object of a kind."""
    return lambda adapter, call, given: [act(call, *entry) for entry in adapter.runtime.handles.live(kind)]


def without_waiting(adapter: Any, call: Change, given: Mapping[str, Any]) -> Any:
    """Make the call without draining queued work first."""
    with mock.patch.object(Mesh, "drain", return_value=None):
        return call(**given)
