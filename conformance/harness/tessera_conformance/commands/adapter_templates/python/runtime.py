"""A runtime behind the Tessera conformance suite: fill in the functions that yours has.

    tessera-conformance smoke --impl=py:my_adapter:make                  asks a question of each kind
    tessera-conformance run --impl=py:my_adapter:make -k contexts        runs a part of the suite

The methods are the C functions under their names, with the names of their parameters: docs/protocol.md of the project
lists them. A function that is not here reads as unsupported, which is never a pass. A status other than TESS_OK is a
`Refusal` in phase `call`. A runtime that is a C library needs none of this: --impl=cabi:/path/to/lib.so loads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.server import serve


class MyAdapter:
    """Answers for an implementation."""

    def __init__(self) -> None:
        self._contexts: set[int] = set()
        self._created = 0

    def hello(self) -> Mapping[str, Any]:
        """Name the implementation, and claim only what works."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "my-implementation", "version": "0.1"},
            "documents": ["runtime_abi"],
            "capabilities": {},
            "arithmetic": {"level": "strict"},
            "parallel": True,  # several processes may answer at once; take it away where they share a device
        }

    def session_reset(self) -> dict[str, Any]:
        """Forget everything; sent after every case."""
        self._contexts.clear()
        return {}

    def runtime_tessGetVersion(self, *, null: Sequence[str] = ()) -> dict[str, Any]:  # noqa: N802
        """The version of the interface; `null` are the out parameters that are NULL pointers."""
        _require_outputs("tessGetVersion", null)
        return {"major": 1, "minor": 0, "patch": 0}

    def runtime_tessInit(self, *, null: Sequence[str] = ()) -> dict[str, Any]:  # noqa: N802
        """A new context."""
        _require_outputs("tessInit", null)
        self._created += 1
        self._contexts.add(self._created)
        return {"context": self._created}

    def runtime_tessShutdown(self, *, context: int) -> dict[str, Any]:  # noqa: N802
        """The end of a context."""
        if context not in self._contexts:
            raise _invalid(f"tessShutdown: context is {context}, allowed is a live one")
        self._contexts.remove(context)
        return {}


def _require_outputs(function: str, null: Sequence[str]) -> None:
    if null:
        raise _invalid(f"{function}: {null[0]} is NULL")


def _invalid(message: str) -> Refusal:
    return Refusal("TESS_ERR_INVALID_VALUE", "call", message)


make = MyAdapter

if __name__ == "__main__":  # in a process of its own: --impl=rpc:"python my_adapter.py"
    serve(make())
