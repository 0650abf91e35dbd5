"""The objects that the calls of a case made and none ended, which a library without `tessxReset` ends in a legal order.

First every stream is synchronized, so that no queued work uses what is freed. Then events, streams, memory, modules and
meshes end, and contexts last: so a library that refuses to end what still has parts is never asked to (AMB-RT-50).
Kernels end with their modules, and profilers with their contexts: to stop one would write a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal

__all__ = ["LiveObjects"]

Method = Callable[..., Any]


@dataclass(frozen=True)
class Kind:
    """A kind of object: the functions that make and end one, the parameter that names it, and that of its owner."""

    made_by: str
    ended_by: str
    name: str
    owner: str = ""


KINDS = (
    Kind("tessEventCreate", "tessEventDestroy", "event"),
    Kind("tessStreamCreate", "tessStreamDestroy", "stream", "mesh"),
    Kind("tessMalloc", "tessFree", "devPtr", "mesh"),
    Kind("tessHostAlloc", "tessHostFree", "hostPtr"),
    Kind("tessModuleLoad", "tessModuleUnload", "module", "context"),
    Kind("tessMeshCreate", "tessMeshDestroy", "mesh", "context"),
    Kind("tessInit", "tessShutdown", "context"),
)
"""In the order in which objects are ended."""


class LiveObjects:
    """The objects of a library that live, by kind, each with its owner; what has an owner ends with it."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[int, int]] = {kind.name: {} for kind in KINDS}

    def watched(self, methods: Mapping[str, Method]) -> dict[str, Method]:
        """The methods among these that make or end an object, each of which notes what it did when it succeeded."""
        notes: dict[str, Method] = {}
        for kind in KINDS:
            for function, note in ((kind.made_by, self._made), (kind.ended_by, self._ended)):
                if method := methods.get(f"runtime_{function}"):
                    notes[f"runtime_{function}"] = _noting(method, kind, note)
        return notes

    def _made(self, kind: Kind, given: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        if handle := result[kind.name]:
            self._owners[kind.name][handle] = given.get(kind.owner, 0)

    def _ended(self, kind: Kind, given: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        self._forget(kind, given[kind.name])

    def _forget(self, kind: Kind, handle: int) -> None:
        """An object ended, and with it all that it owns; events and host memory, which name no context, may have."""
        self._owners[kind.name].pop(handle, None)
        for part in KINDS:
            if part.owner == kind.name:
                parts = [each for each, owner in self._owners[part.name].items() if owner == handle]
                for each in parts:
                    self._forget(part, each)
        if kind.name == "context":
            self._owners["event"].clear()
            self._owners["hostPtr"].clear()

    def forget(self) -> None:
        """Nothing lives any more."""
        for owners in self._owners.values():
            owners.clear()

    def end(self, methods: Mapping[str, Method]) -> None:
        """End everything, by these methods of the library.

        Raises:
            Refusal: something could not be ended, so that the process has to be started anew.
        """
        for stream in self._owners["stream"]:
            _ask(methods, "tessStreamSynchronize", stream=stream)  # an error of its work is no matter here
        for kind in KINDS:
            for handle, owner in reversed(list(self._owners[kind.name].items())):
                arguments = {"mesh": owner} if kind.ended_by == "tessFree" else {}
                refusal = _ask(methods, kind.ended_by, **arguments, **{kind.name: handle})
                if refusal is not None:
                    raise Refusal(refusal.outcome.code, "call", f"{kind.ended_by}, to clean up: {refusal}")
        self.forget()


def _noting(method: Method, kind: Kind, note: Callable[[Kind, Mapping[str, Any], Mapping[str, Any]], None]) -> Method:
    def noting(**given: Any) -> Any:
        result = method(**given)
        note(kind, given, result)
        return result

    return noting


def _ask(methods: Mapping[str, Method], function: str, **given: Any) -> Refusal | None:
    """The refusal of a function; a library that lacks what ends an object refuses to."""
    method = methods.get(f"runtime_{function}")
    if method is None:
        return Refusal("TESS_ERR_UNSUPPORTED", "call", "the library does not export it")
    try:
        method(**given)
    except NotSupported as reason:
        return Refusal("TESS_ERR_UNSUPPORTED", "call", str(reason))
    except Refusal as refusal:
        return refusal
    return None
