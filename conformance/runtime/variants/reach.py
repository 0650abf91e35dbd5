"""The cases that call the runtime, and so can show how it goes about its work, and features that a variant lacks."""

from __future__ import annotations

from typing import Any

from tessera_reference.adapter import ReferenceAdapter

RUNTIME = ("runtime/[!w]*", "abi/module-images/*")
"""`runtime/wsp` is a chapter of its own."""


class Lacking(ReferenceAdapter):
    """The reference without the claim to some features."""

    absent: tuple[str, ...] = ()

    def hello(self) -> dict[str, Any]:
        """Identity and claims."""
        answer = super().hello()
        others = {name: state for name, state in answer["capabilities"].items() if name not in self.absent}
        return answer | {"capabilities": others}
