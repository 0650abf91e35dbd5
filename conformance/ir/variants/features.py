"""Features that are absent, family by family: without the claim, no case asks for one (design, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tessera_conformance.adapter import NotSupported
from tessera_conformance.interface import interface
from tessera_conformance.strength import varies
from tessera_reference.adapter import FEATURES, ReferenceAdapter
from tessera_reference.adapter import OF_PACKAGES as OPTIONAL

EVERY = frozenset({*FEATURES, *(feature for features in OPTIONAL.values() for feature in features)})
NEEDS = {method.full_name.replace(".", "_", 1): method.feature for method in interface().methods.values()}
LEVELS = frozenset(
    {"native", "target-amdgcn", "target-nvptx"}
    | {f"{what}-{level}" for what in ("lower", "execute") for level in ("schedule", "tile", "target")}
    | {f"{level}-ir-text" for level in ("schedule", "tile", "target")}
)
PROGRAMS = frozenset({"execution", "lowering", "module-compiler"})
RANKS = frozenset(
    {"mesh-collectives", "mesh-execution", "mesh-selection", "per-rank-issue", "rank-memory", "subgroups"}
)
PROBES = frozenset(
    {
        "cache-probe",
        "chunk-trace",
        "descriptor-access",
        "device-memory-probe",
        "endpoint-control",
        "env-vars",
        "explain",
    }
    | {"fault-injection", "hop-trace", "last-error", "memory-findings", "operation-access", "persistent-kernels"}
    | {"schedule-control", "stream-memory-limits", "timeout", "trace-export", "runtime-policy", "graph-replay"}
)
COMMUNICATION = frozenset(
    {"algorithm-control", "all-to-all", "auto-algorithm", "auto-transport", "autotune", "collective-messages"}
    | {"compression", "cost-model", "data-parallel-pipeline", "delivery-order", "error-feedback", "fusion"}
    | {"hierarchical", "link-credits", "link-cuts", "online-adaptation", "parameter-prefetch", "pipelining"}
    | {"plan-execution", "point-to-point", "rooflines", "row-col-chunks", "topk-sparsity", "topology", "two-queue"}
)
LIBRARY = frozenset(
    {"activations", "annotations", "broadcasting-ops", "casts", "elementary-functions", "extra-dtypes"}
    | {"fused-attention", "inverse-fft", "layout-casts", "matmul-out", "normalization", "philox", "random-numbers"}
    | {"random-ops", "reductions", "stateful-ops", "tensor-ops", "zero-sizes"}
)


class Without(ReferenceAdapter):
    """The reference without some features: it neither claims them nor has their methods."""

    absent: ClassVar[frozenset[str]] = frozenset()

    def hello(self) -> dict[str, Any]:
        """Identity and claims."""
        answer = super().hello()
        capabilities = {name: state for name, state in answer["capabilities"].items() if name not in self.absent}
        return answer | {"capabilities": capabilities}

    def __getattribute__(self, name: str) -> Any:
        answer = super().__getattribute__(name)
        return without(self.absent, name, answer) if name in NEEDS else answer


def without(absent: frozenset[str], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method, as far as it needs nothing that is absent."""

    def call(**arguments: Any) -> Any:
        at = arguments.get("at", "graph")
        needed = {
            NEEDS[name].format(at=at),
            *([f"execute-{at}", at] if name == "language_execute" else []),
            *([f"lower-{arguments.get('to')}"] if name == "language_lower" else []),
        }
        if missing := sorted(needed & absent):
            raise NotSupported(missing[0])
        return method(**arguments)

    return call


WHOLE = ("abi/*", "collectives/*", "ir/*", "runtime/*")


@varies("LANG-01-01", "runs programs and has no other feature beyond the core", *WHOLE)
class CoreAlone(Without):
    """Programs are compiled and executed; nothing else."""

    absent = EVERY - PROGRAMS


@varies("LANG-02.3-01", "parses and verifies programs, and does not run them", "ir/*")
class ParserAlone(Without):
    """A front end."""

    absent = EVERY


@varies("AMB-RT-101", "has the functions of the document and tells nothing else", "abi/[!h]*", "runtime/[!w]*")
class FunctionsAlone(Without):
    """Images are made elsewhere."""

    absent = EVERY - {"module-compiler"}


@varies("AMB-RT-21", "has no compiler", "abi/[!h]*", "runtime/[!w]*")
class NoCompiler(Without):
    """Nothing makes images for it."""

    absent = frozenset({"module-compiler"})


@varies("LANG-12-04", "has Graph IR alone", "ir/*", "abi/*", "runtime/[!w]*")
class GraphAlone(Without):
    """No lower level."""

    absent = LEVELS


@varies("AMB-RT-79", "has no way to the memory of one rank", "ir/*", "runtime/[!w]*", "collectives/*")
class NoRanks(Without):
    """Meshes, as the C interface has them."""

    absent = RANKS


@varies("AMB-RT-82", "has none of the extensions that are for tests", "runtime/[!w]*", "abi/*", "ir/*")
class NoProbes(Without):
    """The functions of the specification."""

    absent = PROBES


@varies("COLL-02.5-04", "has the collectives without planning, tuning and compression", "collectives/*", "runtime/*")
class PlainCollectives(Without):
    """No planner, no tuning, no compression."""

    absent = COMMUNICATION


@varies("LANG-02.2-13", "has few operations and dtypes", "ir/*", "runtime/[!w]*", "collectives/*")
class SmallLibrary(Without):
    """Few operations."""

    absent = LIBRARY
