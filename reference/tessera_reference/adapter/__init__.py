"""The reference as an implementation: the one bridge between it and the conformance harness.

Each protocol method is a method here, by area; `docs/protocol.md` describes what they take and return.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from .. import __version__
from ..numerics import elementary
from ..numerics.environment import check_environment
from .collectives import CollectivesMethods
from .language import LanguageMethods
from .numerics import NumericsMethods

__all__ = ["FEATURES", "ReferenceAdapter", "make"]

FEATURES = (
    "activations",
    "annotations",
    "broadcasting-ops",
    "casts",
    "descriptor-access",
    "elementary-functions",
    "execute-schedule",
    "execute-target",
    "execute-tile",
    "extra-dtypes",
    "fused-attention",
    "graph-ir-text",
    "inverse-fft",
    "ir-dumps",
    "layout-casts",
    "lower-schedule",
    "lower-target",
    "lower-tile",
    "matmul-out",
    "mesh-collectives",
    "mesh-execution",
    "mesh-selection",
    "normalization",
    "operation-access",
    "per-rank-issue",
    "philox",
    "random-numbers",
    "random-ops",
    "reductions",
    "schedule-ir-text",
    "stateful-ops",
    "target-ir-text",
    "tensor-ops",
    "tile-ir-text",
    "zero-sizes",
)
"""What the reference has beyond the core of the specifications."""

OF_LLVM = ("native", "target-amdgcn", "target-nvptx")
"""What it has where llvmlite is installed."""


class ReferenceAdapter(LanguageMethods, NumericsMethods, CollectivesMethods):
    """Answers for the specifications as far as the reference goes."""

    def hello(self) -> dict[str, Any]:
        """Identity and claims; checks first that the machine's arithmetic is fit for the canon."""
        check_environment()
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "tessera-reference", "version": __version__},
            "documents": ["language_ir", "runtime_abi"],
            "capabilities": dict.fromkeys((*FEATURES, *(OF_LLVM if find_spec("llvmlite") else ())), "enforced"),
            "arithmetic": {
                "level": "strict",
                "trees": {"matmul": "fold", "sum": "pairwise", "all_reduce": "pairwise"},
                "functions": dict.fromkeys(elementary.FUNCTIONS, 0.5),
                "subnormals": "kept",
            },
        }


def make() -> ReferenceAdapter:
    """The reference, ready to be asked."""
    return ReferenceAdapter()
