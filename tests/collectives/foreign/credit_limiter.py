"""A limiter of credits and nothing else, written from section 4.2 alone: `credit_limiter:Limiter`."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal


class Limiter:
    """Semaphores of links, taken together."""

    def hello(self) -> dict[str, Any]:
        """Identity and claims."""
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "bare-limiter", "version": "1"},
            "documents": ["collectives"],
            "capabilities": {"link-credits": "enforced", "credit-limiter": "enforced"},
            "arithmetic": {"level": "fast"},
        }

    def collectives_limiter(self, *, credits: dict[str, int], **rest: Any) -> dict[str, Any]:
        """A new limiter; the one before is gone."""
        self.free, self.out = dict(credits), dict[str, list[str]]()
        return {"limiter": 7}

    def fits(self, links: list[str]) -> bool:
        """True if every link has a credit."""
        return all(self.free[link] > 0 for link in links)

    def collectives_acquire(self, *, ready: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
        """The last ready chunk that fits."""
        for chunk in reversed(ready):
            if self.fits(chunk["links"]):
                self.out[chunk["id"]] = chunk["links"]
                for link in chunk["links"]:
                    self.free[link] -= 1
                return {"chunk": chunk["id"]}
        return {"chunk": None}

    def collectives_release(self, *, chunk: str, **rest: Any) -> dict[str, Any]:
        """Credits come back."""
        if chunk not in self.out:
            raise Refusal("TESS_ERR_INVALID_HANDLE", "call", f"{chunk} is not in flight")
        for link in self.out.pop(chunk):
            self.free[link] += 1
        return {}
