"""Checks of arguments, and the handles of objects (runtime spec 4, 7; AMB-RT-38)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ..abi.status import Failure, Status, within
from ..numerics.formats import shown

# Checks of arguments: what is not as the prototype has it is TESS_ERR_INVALID_VALUE (runtime spec 7).
#
# The failures name no function: the table of functions adds the name of the one that was called.


Given = TypeVar("Given")

INT = (-(1 << 31), (1 << 31) - 1)
UNSIGNED = (0, (1 << 32) - 1)
SIZE = (0, (1 << 64) - 1)


def invalid(subject: str, allowed: str) -> Failure:
    """A failure with TESS_ERR_INVALID_VALUE."""
    return Failure(Status.TESS_ERR_INVALID_VALUE, "", subject, allowed)


@contextmanager
def reported_by(function: str) -> Iterator[None]:
    """Failures that name no function are those of this one."""
    try:
        yield
    except Failure as failure:
        raise within(failure, function) from None


def integer(name: str, value: Any, bounds: tuple[int, int]) -> int:
    """A whole number in these bounds. Raises `Failure`."""
    if type(value) is not int or not bounds[0] <= value <= bounds[1]:
        raise invalid(f"{name} is {shown(value)}", f"a whole number from {bounds[0]} to {bounds[1]}")
    return value


def one_of(name: str, value: Any, allowed: Collection[int], names: str) -> int:
    """One of an enumeration's numbers. Raises `Failure`."""
    if type(value) is not int or value not in allowed:
        raise invalid(f"{name} is {shown(value)}", names)
    return value


def named(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of these names. Raises `Failure`."""
    if value not in allowed:
        raise invalid(f"{name} is {shown(value)}", " or ".join(allowed))
    return str(value)


def of_type(name: str, value: Any, type_: type[Given]) -> Given:
    """A value of one of the API's own types. Raises `Failure`."""
    if not isinstance(value, type_):
        raise invalid(f"{name} is {shown(value)}", f"a {type_.__name__}")
    return value


def required(name: str, value: Any) -> Any:
    """A pointer that is not NULL. Raises `Failure`."""
    if value is None or (type(value) is int and value == 0):
        raise invalid(f"{name} is NULL", "a pointer that is not NULL")
    return value


# Handles: the numbers that stand for contexts, meshes, streams and so on (runtime spec 4; AMB-RT-38).
#
# All kinds are numbered together and no number is given twice, so that a handle that is NULL, unknown, of another
# kind or dead is recognised.


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

    def give(self, kind: str, value: Any) -> int:
        """Give an object a handle."""
        self._last += 1
        self._live[self._last] = (kind, value)
        self._of_kind.setdefault(kind, {})[self._last] = value
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
        entry = self._live.get(handle) if type(handle) is int else None
        if entry is None:
            raise self._refused(kind, handle, function)
        live, value = entry
        if live != kind:
            subject = f"{kind} is {handle}, the handle of a {live}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, function, subject, f"the handle of a {kind}")
        return value  # type: ignore[no-any-return]  # of the kind, hence of the type

    def _refused(self, kind: str, handle: Any, function: str) -> Failure:
        is_dead = type(handle) is int and handle in self._dead
        status = Status.TESS_ERR_NOT_INITIALIZED if kind in WITHOUT else Status.TESS_ERR_INVALID_VALUE
        if is_dead and self._dead[handle] != kind:
            status = Status.TESS_ERR_INVALID_VALUE
        what = "NULL" if handle == 0 or handle is None else shown(handle)
        was = f", the handle of a {self._dead[handle]} that is no more" if is_dead else ""
        return Failure(status, function, f"{kind} is {what}{was}", f"the handle of a live {kind}")

    def live(self, kind: str) -> list[tuple[int, Any]]:
        """The live objects of a kind with their handles, in the order in which they were made."""
        return list(self._of_kind.get(kind, {}).items())
