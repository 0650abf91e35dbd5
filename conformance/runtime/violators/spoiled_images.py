"""Images with some bytes changed (runtime specification, 4.5 and 8.1; AMB-RT-43)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import violates

from .changes import INVALID, BuildsOnce

SHORT = 64
"""Images of no more bytes are refused as they should be."""


class Trusting(BuildsOnce):
    """A runtime that acts on a refused image."""

    def runtime_tessModuleLoad(self, *, image: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Load the image; act on it if it is refused."""
        try:
            return super().runtime_tessModuleLoad(image=image, **arguments)
        except Refusal as refusal:
            if refusal.outcome.code == INVALID and arguments.get("size", SHORT) > SHORT:
                self.spoiled()
            raise

    def spoiled(self) -> None:
        """Act on a spoiled image before it is refused."""


@violates("RT-07-02", "refuses every image after one with some bytes changed")
class BrokenAfterwards(Trusting):
    broken = False

    def runtime_tessModuleLoad(self, *, image: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        if self.broken:
            raise Refusal(INVALID, "call", "tessModuleLoad: out of order")
        return super().runtime_tessModuleLoad(image=image, **arguments)

    def spoiled(self) -> None:
        self.broken = True

    def session_reset(self) -> dict[str, Any]:
        self.broken = False
        return super().session_reset()
