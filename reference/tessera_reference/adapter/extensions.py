"""The extensions of the runtime that need more than their line in the interface (docs/protocol.md, "runtime")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..abi.cache_entry import CacheEntry
from ..runtime.calls.numerics import read_policy
from ..runtime.contexts import ModulePolicy
from ..runtime.work import Carried
from .descriptors import read_descriptor
from .requests import checked
from .runtime import RuntimeMethods, make_methods
from .statuses import statuses

__all__ = ["ExtensionMethods"]


class ExtensionMethods(RuntimeMethods):
    """tessx...: the machine, schedules, settings, the cache, what work carries; the others are made."""

    def runtime_tessxDevices(self, **given: Any) -> dict[str, Any]:  # noqa: N802, the names of the protocol
        """The machine."""
        devices = self.runtime.machine.topology.devices
        return {
            "devices": [{"id": each.id, "target": each.target, "memory_bytes": each.memory_bytes} for each in devices]
        }

    @checked
    def runtime_tessxSetSchedule(  # noqa: N802
        self, *, policy: Any, seed: Any = 0, choices: Sequence[int] = (), untimed: Any = False
    ) -> dict[str, Any]:
        """How choices are made."""
        return self.done(self.runtime.tessxSetSchedule(policy, seed, choices, untimed))

    def runtime_tessxGetSchedule(self, **given: Any) -> dict[str, Any]:  # noqa: N802
        """The choices that were made."""
        choices = self.runtime.machine.engine.choices
        return {"choices": list(choices.taken), "widths": list(choices.widths)}

    @checked
    def runtime_tessxIssue(  # noqa: N802
        self,
        *,
        mesh: Any,
        rank: Any,
        collective: Any,
        buffer: Any,
        count: Any,
        dtype: Any,
        stream: Any,
        op: Any = None,
        axis: Any = None,
        root: Any = None,
        algorithm: Any = None,
        descriptor: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """A collective of one rank."""
        with statuses():
            under: dict[str, Any] = {
                "descriptor": None if descriptor is None else read_descriptor(descriptor),
                "policy": None if policy is None else read_policy("tessxIssue", policy),
            }
        where = {"op": op, "axis": axis, "root": root, "algorithm": algorithm}
        return self.done(
            self.runtime.tessxIssue(mesh, rank, collective, buffer, count, dtype, stream, **where, **under)
        )

    @checked
    def runtime_tessxSetDescriptor(self, *, context: Any, descriptor: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N802
        """What later work carries."""
        with statuses():
            brought = read_descriptor(descriptor)
        return self.done(self.runtime.tessxSetDescriptor(context, brought))

    @checked
    def runtime_tessxDescriptors(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """What queued work carries."""
        return {"descriptors": [_carried(each) for each in self.output(self.runtime.tessxDescriptors(stream))]}

    @checked
    def runtime_tessxGraphNodes(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        """What was captured."""
        nodes = self.output(self.runtime.tessxGraphNodes(graph))
        return {
            "nodes": [{"kind": each.work.kind, "name": each.work.name, "after": list(each.after)} for each in nodes]
        }

    def runtime_tessxCacheEntries(self, **given: Any) -> dict[str, Any]:  # noqa: N802
        """What the cache holds."""
        entries = self.output(self.runtime.tessxCacheEntries())
        return {"entries": [_entry(str(path), each) for path, each in entries]}

    def runtime_tessxCacheUse(self, **given: Any) -> dict[str, Any]:  # noqa: N802
        """How often the cache helped."""
        return {"hits": self.runtime.code.hits, "misses": self.runtime.code.misses}

    @checked
    def runtime_tessxSetEnvironment(self, *, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: N802
        """What the next tessInit finds."""
        self.runtime.environment = dict(variables)
        return {}

    @checked
    def runtime_tessxExplain(self, *, module: Any) -> dict[str, Any]:  # noqa: N802
        """What became of a module."""
        found = self.output(self.runtime.tessxExplain(module))
        names = ("fusion_groups", "tile_shapes", "collective_plans")
        return {"text": found.text, "explanation": {name: found.value[name] for name in names}}

    @checked
    def runtime_tessxSetModulePolicy(  # noqa: N802
        self,
        *,
        context: Any,
        forbid_fast_math: Any = False,
        enforce_determinism: Any = False,
        trusted_keys: Sequence[bytes] | None = None,
    ) -> dict[str, Any]:
        """What modules may do."""
        keys = None if trusted_keys is None else tuple(trusted_keys)
        policy = ModulePolicy(bool(forbid_fast_math), bool(enforce_determinism), keys)
        return self.done(self.runtime.tessxSetModulePolicy(context, policy))


make_methods(ExtensionMethods)


def _carried(carried: Carried) -> dict[str, Any]:
    descriptor = carried.descriptor
    return {
        "name": carried.name,
        "reduction_order": "pairwise" if descriptor.reduction_order is None else descriptor.reduction_order.to_json(),
        "seed": descriptor.seed,
        "stream": descriptor.stream,
        "stable": asdict(descriptor.stable),
        "policy": asdict(carried.policy),
    }


def _entry(path: str, entry: CacheEntry) -> dict[str, Any]:
    key = entry.key
    parts = {"kernel": key.kernel, "shape": key.shape, "dtype": key.dtype, "arch": key.arch}
    texts = {name: part if isinstance(part, str) else repr(part) for name, part in parts.items()}
    return {"kind": entry.kind, **texts, "policy": asdict(entry.tags.policy), "path": path}
