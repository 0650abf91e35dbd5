"""The reference as an implementation: the one bridge between it and the conformance harness.

Each protocol method is a method here, by area. What it takes and returns is declared in the `interface.toml` of its
chapter, by which arguments are read (`requests.py`); most methods of the runtime are made from it (`runtime.py`).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from .. import __version__
from ..numerics import elementary
from ..numerics.environment import check_environment
from .abi import AbiMethods
from .binding import BindingMethods
from .collective_choices import CollectiveChoiceMethods
from .collective_programs import CollectiveProgramMethods
from .collective_queues import CollectiveQueueMethods
from .collective_travel import CollectiveTravelMethods
from .collectives import CollectivesMethods
from .language import LanguageMethods
from .numerics import NumericsMethods
from .payloads import PayloadMethods
from .wsp import WspMethods

__all__ = ["FEATURES", "ReferenceAdapter", "make"]

FEATURES = (
    "activations",
    "algorithm-control",
    "all-to-all",
    "annotations",
    "arch-model",
    "auto-algorithm",
    "auto-transport",
    "autotune",
    "backend-a2a3sim",
    "backend-aie",
    "backend-cpu-sim",
    "broadcasting-ops",
    "c-abi",
    "cache-probe",
    "casts",
    "checked-handles",
    "chunk-trace",
    "collective-messages",
    "compression",
    "cost-model",
    "data-parallel-pipeline",
    "delivery-order",
    "descriptor-access",
    "elementary-functions",
    "env-overrides",
    "env-vars",
    "error-feedback",
    "execute-schedule",
    "execute-target",
    "execute-tile",
    "explain",
    "extra-dtypes",
    "fault-injection",
    "fused-attention",
    "fusion",
    "graph-ir-text",
    "graph-replay",
    "hierarchical",
    "inverse-fft",
    "ir-dumps",
    "ir-pack",
    "last-error",
    "layout-casts",
    "link-credits",
    "low-latency-launch",
    "lower-schedule",
    "lower-target",
    "lower-tile",
    "matmul-out",
    "memory-findings",
    "mesh-collectives",
    "mesh-execution",
    "mesh-selection",
    "normalization",
    "online-adaptation",
    "operation-access",
    "parameter-prefetch",
    "per-rank-issue",
    "persistent-kernels",
    "phase1-host-graph",
    "philox",
    "pipelining",
    "point-to-point",
    "python-binding",
    "random-numbers",
    "random-ops",
    "rank-memory",
    "reductions",
    "rooflines",
    "row-col-chunks",
    "runtime-policy",
    "schedule-control",
    "schedule-ir-text",
    "scopes",
    "stateful-ops",
    "stream-memory-limits",
    "subgroups",
    "target-ir-text",
    "tensor-ops",
    "tile-ir-text",
    "timeout",
    "topk-sparsity",
    "topology",
    "trace-export",
    "two-queue",
    "zero-sizes",
)
"""What the reference has beyond the core of the specifications."""

OF_PACKAGES = {"llvmlite": ("native", "target-amdgcn", "target-nvptx"), "cryptography": ("module-signing",)}
"""The features that need an optional package, by package."""


class ReferenceAdapter(
    LanguageMethods,
    AbiMethods,
    BindingMethods,
    NumericsMethods,
    CollectivesMethods,
    CollectiveChoiceMethods,
    CollectiveTravelMethods,
    CollectiveQueueMethods,
    PayloadMethods,
    CollectiveProgramMethods,
    WspMethods,
):
    """Answers for the specifications as far as the reference goes."""

    def hello(self) -> dict[str, Any]:
        """Identity and claims; checks first that the machine's arithmetic is fit for the canon."""
        check_environment()
        extra = [feature for name, features in OF_PACKAGES.items() if find_spec(name) for feature in features]
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "tessera-reference", "version": __version__},
            "documents": ["language_ir", "runtime_abi", "collectives", "wsp"],
            "capabilities": dict.fromkeys((*FEATURES, *extra), "enforced"),
            "arithmetic": {
                "level": "strict",
                "trees": {"matmul": "fold", "sum": "pairwise", "all_reduce": "pairwise"},
                "functions": dict.fromkeys(elementary.FUNCTIONS, 0.5),
                "subnormals": "kept",
            },
        }


def make() -> ReferenceAdapter:
    """A new adapter of the reference."""
    return ReferenceAdapter()
