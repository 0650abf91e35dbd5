"""The reference as an implementation: the one bridge between it and the conformance harness.

Each protocol method is a method here, by area; `docs/protocol.md` describes what they take and return.
"""

from __future__ import annotations

from typing import Any

from .. import __version__
from ..numerics.environment import check_environment
from .language import LanguageMethods

__all__ = ["FEATURES", "ReferenceAdapter", "make"]

FEATURES = ("broadcasting-ops", "extra-dtypes", "matmul-out", "tensor-ops", "zero-sizes")
"""What the reference has beyond the core of the specifications."""


class ReferenceAdapter(LanguageMethods):
    """Answers for the specifications as far as the reference goes."""

    def hello(self) -> dict[str, Any]:
        """Identity and claims; checks first that the machine's arithmetic is fit for the canon."""
        check_environment()
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "tessera-reference", "version": __version__},
            "documents": ["language_ir"],
            "capabilities": dict.fromkeys(FEATURES, "enforced"),
            "arithmetic": {"level": "strict", "trees": {"matmul": "fold", "sum": "pairwise"}},
        }


def make() -> ReferenceAdapter:
    """The reference, ready to be asked."""
    return ReferenceAdapter()
