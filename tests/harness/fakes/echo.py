"""A healthy adapter of a few lines: it knows one module and doubles a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.tensors import Tensor


class Echo:
    """Claims the language document and answers every execution with its inputs."""

    def hello(self) -> Mapping[str, Any]:
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "echo", "version": "1.0"},
            "documents": ["language_ir"],
            "capabilities": {"execution": "enforced", "extra-dtypes": "enforced"},
            "arithmetic": {"level": "strict"},
        }

    def language_execute(
        self, *, source: str, function: str, inputs: Mapping[str, Tensor], level: str = "strict"
    ) -> dict[str, Any]:
        if function == "refused":
            raise Refusal("types", "verify", "no such function")
        if function == "missing":
            raise NotSupported("language.missing")
        return {"outputs": list(inputs.values())}
