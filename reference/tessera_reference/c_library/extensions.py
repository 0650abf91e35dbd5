"""The functions of `tessera_ext.h` as `library.c` calls them: C values read, the adapter asked, its answer written.

Handles and pointers arrive as numbers, bytes as their address and their size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..abi.status import Failure, Status, invalid
from .session import Session

if TYPE_CHECKING:
    from ..adapter.c_extensions import CFunction, Input, Output

__all__ = ["Extensions"]

HELLO = ("implementation", "documents", "capabilities", "arithmetic")
WITHOUT_C = frozenset({"python-binding"})
"""Features that no C function reaches."""


class Extensions:
    """The three functions of the session, and `function` for the others."""

    def __init__(self, session: Session, ffi: Any) -> None:
        self._session = session
        self._ffi = ffi

    @cached_property
    def _declared(self) -> Any:
        from ..adapter.c_extensions import extensions  # with the adapter: see `Session.adapter`

        return extensions()

    def tessxReset(self) -> int:  # noqa: N802, the names of the C API, as all below
        """Forget everything."""
        self._session.reset()
        return Status.TESS_OK

    def tessxHello(self, *buffer: Any) -> int:  # noqa: N802
        """Tell who answers."""
        told = self._session.adapter.hello()
        hello = {name: told[name] for name in HELLO}
        hello["capabilities"] = {name: state for name, state in told["capabilities"].items() if name not in WITHOUT_C}
        return self._told("tessxHello", hello, buffer)

    def tessxOutcome(self, *buffer: Any) -> int:  # noqa: N802
        """Tell how the last call that failed did."""
        return self._told("tessxOutcome", self._session.outcome, buffer)

    def _told(self, name: str, value: Any, buffer: Sequence[Any]) -> int:
        try:
            self._require_buffer(name, buffer)
        except Failure as failure:
            return self._failed(failure)
        self._fill(buffer, json.dumps(value).encode() + b"\0")
        return Status.TESS_OK

    def function(self, name: str) -> Callable[..., int]:
        """The function of a name; what it takes is looked up when it is called."""

        def call(*given: Any) -> int:
            from ..adapter.c_extensions import Failed, Input, answer

            declared: CFunction = self._declared[name]
            left = list(given)
            try:
                taken = [(each, [left.pop(0) for _ in each.parameters]) for each in declared.positions]
                inputs = [self._read(name, each, values) for each, values in taken if isinstance(each, Input)]
                outputs = [(each, values) for each, values in taken if not isinstance(each, Input)]
                for each, values in outputs:
                    self._require(name, each, values)
                answers = answer(self._session.adapter, declared, inputs)
            except Failed as failed:
                status = Status.__members__.get(failed.code, Status.TESS_ERR_INVALID_VALUE)
                return self._session.fail(status, str(failed), failed.outcome)
            except Failure as failure:
                return self._failed(failure)
            for (each, values), value in zip(outputs, answers, strict=True):
                self._write(each, values, value)
            return Status.TESS_OK

        return call

    def _failed(self, failure: Failure) -> int:
        rejected = {"code": failure.status.name, "phase": "call", "message": str(failure)}
        return self._session.fail(failure.status, str(failure), {"rejected": rejected})

    def _read(self, name: str, declared: Input, values: Sequence[Any]) -> Any:
        """A value of Python; None for NULL. Raises `Failure`."""
        if declared.form in ("text", "json"):
            return self._ffi.string(values[0]).decode("utf-8", "surrogateescape") if values[0] else None
        if declared.form not in ("data", "memory"):
            return values[0]
        address, size = values
        if size == 0:
            return b"" if address else None
        if not address or not self._session.process.holds(address, size):
            given = f"{declared.name} is {address:#x}, from where there are less than {size} bytes"
            raise invalid(name, given, "the address of as many")
        return bytes(self._session.process.view(address, size))

    def _require(self, name: str, declared: Output, values: Sequence[Any]) -> None:
        """There is a place for an output. Raises `Failure`."""
        if len(values) == 1 and not values[0]:
            raise invalid(name, f"{declared.name} is NULL", "a pointer to where the result goes")
        if len(values) == 3:
            self._require_buffer(name, values)

    def _require_buffer(self, name: str, buffer: Sequence[Any]) -> None:
        out, capacity, needed = buffer
        if not needed:
            raise invalid(name, "needed is NULL", "a pointer to where the size goes")
        if capacity and not out:
            raise invalid(name, f"out is NULL with a capacity of {capacity}", "a buffer, or a capacity of 0")

    def _write(self, declared: Output, values: Sequence[Any], value: Any) -> None:
        if len(values) == 1:
            values[0][0] = int(value)
        elif isinstance(value, bytes):
            self._fill(values, value)
        else:
            self._fill(values, value.encode("utf-8", "backslashreplace") + b"\0")

    def _fill(self, buffer: Sequence[Any], data: bytes) -> None:
        """Write bytes into a buffer of the caller's that has room for them, and how many they are."""
        out, capacity, needed = buffer
        needed[0] = len(data)
        if len(data) <= capacity and data:
            self._ffi.memmove(out, data, len(data))
