"""Handles: the numbers that stand for contexts, meshes, streams and so on (runtime spec 4; AMB-RT-38).

All kinds are numbered together and no number is given twice, so that a handle that is NULL, unknown, of another kind
or dead is recognised.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..abi.status import Failure, Status
from ..numerics.errors import shown

__all__ = ["Handles"]

Held = TypeVar("Held")

WITHOUT = frozenset({"context", "mesh"})
"""Kinds of which a NULL or dead handle is TESS_ERR_NOT_INITIALIZED."""


class Handles:
    """The live objects, by handle, and the kinds of the dead handles."""

    def __init__(self) -> None:
        self._live: dict[int, tuple[str, Any]] = {}
        self._of_kind: dict[str, dict[int, Any]] = {}
        self._dead: dict[int, str] = {}
        self._last = 0

    def give(self, kind: str, held: Any) -> int:
        """Give an object a handle."""
        self._last += 1
        self._live[self._last] = (kind, held)
        self._of_kind.setdefault(kind, {})[self._last] = held
        return self._last

    def end(self, handle: int) -> None:
        """Let a live handle die."""
        kind, _ = self._live.pop(handle)
        del self._of_kind[kind][handle]
        self._dead[handle] = kind

    def find(self, kind: str, of: type[Held], handle: Any, function: str = "") -> Held:
        """The object of a handle.

        Raises `Failure`: TESS_ERR_NOT_INITIALIZED for a context or mesh that is NULL or dead, else
        TESS_ERR_INVALID_VALUE.
        """
        known = self._live.get(handle) if type(handle) is int else None
        if known is None:
            raise self._refused(kind, handle, function)
        live, held = known
        if live != kind:
            given = f"{kind} is {handle}, the handle of a {live}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, function, given, f"the handle of a {kind}")
        return held  # type: ignore[no-any-return]  # of the kind, hence of the type

    def _refused(self, kind: str, handle: Any, function: str) -> Failure:
        known = type(handle) is int and handle in self._dead
        status = Status.TESS_ERR_NOT_INITIALIZED if kind in WITHOUT else Status.TESS_ERR_INVALID_VALUE
        if known and self._dead[handle] != kind:
            status = Status.TESS_ERR_INVALID_VALUE
        what = "NULL" if handle == 0 or handle is None else shown(handle)
        was = f", the handle of a {self._dead[handle]} that is no more" if known else ""
        return Failure(status, function, f"{kind} is {what}{was}", f"the handle of a live {kind}")

    def live(self, kind: str) -> list[tuple[int, Any]]:
        """The live objects of a kind with their handles, in the order in which they were made."""
        return list(self._of_kind.get(kind, {}).items())
