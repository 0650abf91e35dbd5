"""Why an order of summation is no fixed tree, and the inputs that prove it."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

Proof: TypeAlias = Literal["masks", "runs", "replay"]


class NotATree(Exception):
    """Raised where no tree explains what was seen.

    `proof` says how it shows: `masks` whose counts fit no tree, `runs` that differ on the same input, or a `replay`
    that gives other bits under every arithmetic tried. `pair` are the leaves of the mask; `witness` has the inputs and
    the outcomes.
    """

    def __init__(
        self, proof: Proof, pair: tuple[int, int] | None, reason: str, witness: dict[str, Any] | None = None
    ) -> None:
        self.proof, self.pair, self.reason, self.witness = proof, pair, reason, witness or {}
        super().__init__(f"leaves {pair[0]} and {pair[1]}: {reason}" if pair else reason)

    def to_json(self) -> dict[str, Any]:
        """For the machine-readable finding."""
        return {"proof": self.proof, "pair": self.pair and list(self.pair), "reason": self.reason, **self.witness}
