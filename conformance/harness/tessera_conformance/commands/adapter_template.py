"""An adapter for the Tessera conformance suite: fill in the methods that your implementation has, delete the others.

    tessera-conformance smoke py:my_adapter:make        says what the harness sees
    tessera-conformance run --impl=py:my_adapter:make   runs the suite

What each method takes and returns is described in docs/protocol.md of the project. A method that is not here reads
as unsupported, which is never a pass. Raise `Refusal` where your implementation refuses a request, and `NotSupported`
where it lacks a feature. Any other exception reads as a crash of that case, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor


class MyAdapter:
    """Answers for an implementation."""

    def hello(self) -> Mapping[str, Any]:
        """Who answers, and what it claims: only what works."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "my-implementation", "version": "0.1"},
            "documents": ["language_ir"],
            "capabilities": {},
            "arithmetic": {"level": "strict"},
        }

    def language_parse(self, *, source: str) -> dict[str, Any]:
        """The modules and their declarations, in source order."""
        if not source.strip():
            return {"modules": []}
        raise NotSupported("language.parse")

    def language_verify(self, *, source: str) -> dict[str, Any]:
        """The warnings of a legal program; refuse any other."""
        if "?" in source:
            raise Refusal("types", "verify", "say here what is wrong, with diagnostics where you have them")
        raise NotSupported("language.verify")

    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        """The results of a function. A tensor has `dtype`, `shape` and `data`: row-major, little-endian bytes."""
        raise NotSupported("language.execute")


make = MyAdapter
