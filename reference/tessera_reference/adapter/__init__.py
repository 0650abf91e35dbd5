"""The reference as an implementation: the one bridge between it and the conformance harness.

Each protocol method is a method here, by area. The `interface.toml` of its chapter declares its parameters and results.
Arguments are read by that declaration (`messages.py`), and most methods of the runtime are made from it (`runtime.py`).
The module of an area is imported when one of its methods is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules, walk_packages
from typing import Any

from tessera_conformance.interface import interface

from .. import __version__
from ..numerics import elementary
from ..numerics.environment import check_environment
from .session_state import SessionState

__all__ = ["FEATURES", "ReferenceAdapter", "load_areas", "load_whole", "make"]

FEATURES = tuple(
    """
    activations address-spaces algorithm-control all-to-all annotations arch-model argument-checks auto-algorithm
    auto-transport autotune backend-a2a3sim backend-aie backend-cpu-sim bf16-collectives broadcasting-ops c-abi
    cache-probe casts checked-handles chunk-ranges chunk-trace collective-messages collective-policy compression
    compression-probe cost-model credit-limiter data-parallel-pipeline delivery-order descriptor-access device-list
    device-memory-probe dtype-ids elementary-functions endpoint-control env-overrides env-vars error-feedback
    execute-schedule execute-target execute-tile execution expert-buckets explain extra-dtypes fault-injection
    fp8-collectives fused-attention fusion graph-ir-text graph-replay hierarchical hop-trace host-buffer-ref
    host-memory host-runtime-bridge image-inspection inverse-fft ir-dumps ir-pack last-error layout-casts
    link-credits link-cuts low-latency-launch lower-schedule lower-target lower-tile lowering matmul-out
    memory-findings mesh-collectives mesh-execution mesh-selection message-times module-compiler normalization
    online-adaptation operation-access parameter-layout parameter-prefetch per-rank-issue persistent-kernels
    phase1-host-graph philox pipelining plan-execution point-to-point python-binding random-numbers random-ops
    rank-memory reductions rooflines row-col-chunks runtime-policy schedule-control schedule-ir-text scopes
    stateful-ops stream-memory-limits subgroups target-ir-text tensor-ops tile-ir-text timeout topk-sparsity
    topology trace-export two-queue wire-packing wsp-capabilities wsp-channel-latency wsp-expressions wsp-kernels
    wsp-packages wsp-resources wsp-scopes wsp-seeds wsp-slots wsp-statistics wsp-steps wsp-task-channels
    wsp-task-tensors zero-sizes
    """.split()
)
"""The features of the reference beyond the core of the specifications."""

OF_PACKAGES = {"llvmlite": ("native", "target-amdgcn", "target-nvptx"), "cryptography": ("module-signing",)}
"""The features that need an optional package, by package."""

AREAS = {
    "abi": "abi:AbiMethods",
    "binding": "binding:BindingMethods",
    "collectives": "collectives:CollectivesMethods",
    "host_io": "host_io:HostIoMethods",
    "language": "language:LanguageMethods",
    "numerics": "numerics:NumericsMethods",
    "runtime": "runtime:RuntimeMethods",
    "wsp": "wsp:WspMethods",
}
"""The module of each area of the interface, and its class of methods."""


class ReferenceAdapter(SessionState):
    """An implementation that answers for the specifications as far as the reference implements them.

    The first use of a method loads the methods of its area. Load the whole reference before you replace a function of
    it: a module that is imported later would keep the substitute.
    """

    @staticmethod
    def load_whole() -> None:
        """Import every module that the adapter can, and load the methods of all areas."""
        load_whole()

    def hello(self) -> dict[str, Any]:
        """Return identity and claims, after checking that the machine's arithmetic suits the reference arithmetic."""
        check_environment()
        extra = [feature for name, features in OF_PACKAGES.items() if find_spec(name) for feature in features]
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "tessera-reference", "version": __version__},
            "documents": ["language_ir", "runtime_abi", "collectives", "host_io", "wsp"],
            "capabilities": dict.fromkeys((*FEATURES, *extra), "enforced"),
            "arithmetic": {
                "level": "strict",
                "trees": {"matmul": "fold", "sum": "pairwise", "all_reduce": "pairwise"},
                "functions": dict.fromkeys(elementary.FUNCTIONS, 0.5),
                "subnormals": "kept",
            },
        }


class _Deferred:
    """A method of an area that is not loaded yet; looking it up loads the area."""

    def __init__(self, area: str, name: str) -> None:
        self._area = area
        self._name = name

    def __get__(self, instance: ReferenceAdapter | None, owner: type) -> Any:
        load_areas(self._area)
        loaded = _loaded(self._area).get(self._name)
        if loaded is None:
            raise AttributeError(self._name)
        return loaded.__get__(instance, owner)


@cache
def _loaded(area: str) -> Mapping[str, Any]:
    """Import the module of an area and return the members of its class by name."""
    module, _, name = AREAS[area].partition(":")
    members = vars(getattr(import_module(f".{module}", __name__), name))
    return {member: value for member, value in members.items() if not member.startswith("__")}


def load_areas(*areas: str) -> None:
    """Load the methods of these areas into the adapter, or of all areas if none is named."""
    for area in areas or AREAS:
        for name, value in _loaded(area).items():
            if isinstance(vars(ReferenceAdapter).get(name), _Deferred | None):  # no substitute
                setattr(ReferenceAdapter, name, value)


AROUND_THE_ADAPTER = ("__main__", "c_library", "cli", "commands")
"""The packages that import the adapter, which never imports them; the C library needs an extra."""


@cache
def load_whole() -> None:
    """Import every module that the adapter can, all but those of the programs around it, and load all methods."""
    package = sys.modules[__package__.partition(".")[0]]
    parts = [part.name for part in iter_modules(package.__path__) if part.name not in AROUND_THE_ADAPTER]
    for part in parts:
        for module in walk_packages([f"{package.__path__[0]}/{part}"], f"{package.__name__}.{part}."):
            import_module(module.name)
    load_areas()


for _area, _declared in interface().areas.items():
    for _method in _declared.methods if _area in AREAS else ():
        setattr(ReferenceAdapter, f"{_area}_{_method}", _Deferred(_area, f"{_area}_{_method}"))


def make() -> ReferenceAdapter:
    """Return a new adapter of the reference."""
    return ReferenceAdapter()
