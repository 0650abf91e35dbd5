"""Helpers of the violators of the runtime that replace a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeAlias
from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.compilation.compiler import Compiler
from tessera_reference.mesh.topology import MeshAxes
from tessera_reference.runtime.streams import Mesh

Given: TypeAlias = dict[str, Any]
Call: TypeAlias = Callable[..., dict[str, Any]]
Answer: TypeAlias = Callable[[Any, Call, Given], dict[str, Any]]

INVALID = "TESS_ERR_INVALID_VALUE"
UNSUPPORTED = "TESS_ERR_UNSUPPORTED"
ABI_MISMATCH = "TESS_ERR_ABI_VERSION_MISMATCH"
ARCH_MISMATCH = "TESS_ERR_ARCH_MISMATCH"

_IMAGES: dict[str, dict[str, Any]] = {}
_COMPILER = Compiler()


class BuildsOnce(ReferenceAdapter):
    """The reference with compiled images and kernels that all violators share: their changes act later."""

    @cached_property
    def compiler(self) -> Compiler:
        """Return the one compiler for kernels of all images."""
        return _COMPILER

    def abi_compile(self, **arguments: Any) -> dict[str, Any]:
        """Return the cached image."""
        key = repr(sorted(arguments.items()))
        if key not in _IMAGES:
            _IMAGES[key] = super().abi_compile(**arguments)
        return _IMAGES[key]


def answering(clause: str, name: str, description: str, function: str, answer: Answer) -> Violation:
    """Return a violation that replaces a function by `answer(adapter, call, given)`; `call(**given)` is right."""
    method = f"runtime_{function}"
    right = getattr(ReferenceAdapter, method)

    def answered(self: ReferenceAdapter, **arguments: Any) -> dict[str, Any]:
        return answer(self, partial(right, self), arguments)

    return replaced(clause, description, BuildsOnce, (ReferenceAdapter, method, answered), name=name)


def grouping(clause: str, name: str, description: str, groups: Callable[[MeshAxes, Any], Any]) -> Violation:
    """Return a violation with other groups of ranks along an axis."""

    def group_of(self: MeshAxes, axis: Any, rank: int) -> Any:
        return next(tuple(group) for group in groups(self, axis) if rank in group)

    return replaced(
        clause,
        description,
        BuildsOnce,
        ("mesh.topology.MeshAxes.groups", groups),
        ("mesh.topology.MeshAxes.group_of", group_of),
        name=name,
    )


def refusing(
    clause: str,
    name: str,
    description: str,
    function: str,
    when: Callable[[Given], bool] = lambda given: True,
    status: str = UNSUPPORTED,
) -> Violation:
    """Return a violation whose function refuses all or some legal calls."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        if when(given):
            raise Refusal(status, "call", f"{function}: not this")
        return call(**given)

    return answering(clause, name, description, function, answer)


def accepting(
    clause: str,
    name: str,
    description: str,
    function: str,
    when: Callable[[Given], bool],
    instead: Callable[[Given], Mapping[str, Any]],
) -> Violation:
    """Return a violation whose function replaces wrong arguments by right ones, and so accepts them."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        return call(**(given | dict(instead(given)) if when(given) else given))

    return answering(clause, name, description, function, answer)


def in_every_context(clause: str, name: str, description: str, function: str) -> Violation:
    """Return a violation whose function sets a value in every context instead of one."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        for handle, _ in adapter.runtime.handles.live("context"):
            call(**(given | {"context": handle}))
        return {}

    return answering(clause, name, description, function, answer)


def restating(clause: str, name: str, description: str, function: str, was: str, becomes: str) -> Violation:
    """Return a violation whose function refuses with another status; "" is success, with outputs of 0."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        try:
            return call(**given)
        except Refusal as refusal:
            if refusal.outcome.code != was:
                raise
            if becomes:
                raise Refusal(becomes, "call", str(refusal)) from None
            return dict(OUTPUTS.get(function, {}))

    return answering(clause, name, description, function, answer)


OUTPUTS: Mapping[str, Mapping[str, Any]] = {
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


def null(output: str) -> Answer:
    """The function succeeds and returns NULL as its handle."""
    return lambda adapter, call, given: call(**given) and {output: 0}


def at_once(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Launch, wait for the kernel, and report its failure from the launch."""
    answer = call(**given)
    adapter.runtime_tessStreamSynchronize(stream=given["stream"])
    return answer


def without_waiting(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Make the call without draining queued work first."""
    with mock.patch.object(Mesh, "drain", return_value=None):
        return call(**given)
