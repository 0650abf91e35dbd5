"""The least adapter: it gives back its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.tensors import Tensor


class Echo:
    """Claims the language document."""

    def hello(self) -> Mapping[str, Any]:
        """Identity and claims."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "echo", "version": "1.0"},
            "documents": ["language_ir"],
        }

    def language_execute(self, *, source: str, function: str, inputs: Mapping[str, Tensor]) -> dict[str, Any]:
        """The inputs."""
        return {"outputs": list(inputs.values())}
