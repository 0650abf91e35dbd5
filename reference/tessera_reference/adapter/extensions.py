"""The extensions of the runtime that a suite needs, as the protocol has them (docs/protocol.md, "runtime")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..abi import NumericsPolicy
from ..abi.cache_entry import CacheEntry
from ..numerics.errors import InvalidArgument
from ..runtime.calls.numerics import read_policy
from ..runtime.contexts import ModulePolicy
from ..runtime.work import Carried
from .hex_bytes import data
from .requests import mapping, mappings, read_by
from .runtime import RuntimeMethods, read_descriptor, statuses

__all__ = ["ExtensionMethods"]


def _numbers(operation: str, name: str, value: Any) -> Sequence[int]:
    if not isinstance(value, list | tuple) or not all(type(each) is int for each in value):
        raise InvalidArgument(operation, name, value, "a list of whole numbers")
    return value


def _texts_by_name(operation: str, name: str, value: Any) -> Mapping[str, str]:
    given = mapping(operation, name, value)
    for each, text in given.items():
        if not isinstance(text, str):
            raise InvalidArgument(operation, f"{name}.{each}", text, "a text")
    return given


def _keys(operation: str, name: str, value: Any) -> tuple[bytes, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidArgument(operation, name, value, "a list of keys")
    return tuple(data(operation, f"{name}[{i}]", each) for i, each in enumerate(value))


class ExtensionMethods(RuntimeMethods):
    """tessx...: memory, findings, schedules, faults, captures, the cache, settings, algorithms."""

    @read_by()
    def runtime_tessxDevices(self) -> dict[str, Any]:  # noqa: N802, the names of the protocol, as all below
        """The machine."""
        devices = self.runtime.machine.topology.devices
        told = [{"id": each.id, "target": each.target, "memory_bytes": each.memory_bytes} for each in devices]
        return {"devices": told}

    @read_by()
    def runtime_tessxHostMemory(self, *, bytes: Any) -> dict[str, Any]:  # noqa: N802
        """Ordinary host memory."""
        return {"hostPtr": self.given(self.runtime.tessxHostMemory(bytes))}

    @read_by()
    def runtime_tessxHostRead(self, *, hostPtr: Any, bytes: Any) -> dict[str, Any]:  # noqa: N802, N803
        """What host memory holds."""
        return {"data": self.given(self.runtime.tessxHostRead(hostPtr, bytes)).hex()}

    @read_by(data=data)
    def runtime_tessxHostWrite(self, *, hostPtr: Any, data: bytes) -> dict[str, Any]:  # noqa: N802, N803
        """Fill host memory."""
        return self.done(self.runtime.tessxHostWrite(hostPtr, data))

    @read_by()
    def runtime_tessxPeek(self, *, mesh: Any, rank: Any, devPtr: Any, bytes: Any) -> dict[str, Any]:  # noqa: N802, N803
        """What one rank's memory holds."""
        return {"data": self.given(self.runtime.tessxPeek(mesh, rank, devPtr, bytes)).hex()}

    @read_by(data=data)
    def runtime_tessxPoke(self, *, mesh: Any, rank: Any, devPtr: Any, data: bytes) -> dict[str, Any]:  # noqa: N802, N803
        """Fill one rank's memory."""
        return self.done(self.runtime.tessxPoke(mesh, rank, devPtr, data))

    @read_by()
    def runtime_tessxLastError(self) -> dict[str, Any]:  # noqa: N802
        """Why the last call that failed did."""
        return {"text": self.runtime.tessxLastError()}

    @read_by()
    def runtime_tessxFindings(self) -> dict[str, Any]:  # noqa: N802
        """What programs did wrong with memory."""
        return {"findings": [asdict(each) for each in self.runtime.tessxFindings()]}

    @read_by(choices=_numbers)
    def runtime_tessxSetSchedule(  # noqa: N802
        self, *, policy: Any, seed: Any = 0, choices: Sequence[int] = (), untimed: Any = False
    ) -> dict[str, Any]:
        """How choices are made."""
        return self.done(self.runtime.tessxSetSchedule(policy, seed, choices, untimed))

    @read_by()
    def runtime_tessxGetSchedule(self) -> dict[str, Any]:  # noqa: N802
        """The choices that were made."""
        choices = self.runtime.machine.engine.choices
        return {"choices": list(choices.taken), "widths": list(choices.widths)}

    @read_by(faults=mappings)
    def runtime_tessxSetFaults(self, *, context: Any, faults: Sequence[Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N802
        """What is to fail."""
        return self.done(self.runtime.tessxSetFaults(context, faults))

    @read_by()
    def runtime_tessxSetTimeout(self, *, context: Any, nanoseconds: Any) -> dict[str, Any]:  # noqa: N802
        """How long work may take."""
        return self.done(self.runtime.tessxSetTimeout(context, nanoseconds))

    @read_by(descriptor=mapping, policy=mapping)
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
            brought = None if descriptor is None else read_descriptor(descriptor)
            governed: NumericsPolicy | None = None if policy is None else read_policy("tessxIssue", policy)
        asked = {
            "op": op,
            "axis": axis,
            "root": root,
            "algorithm": algorithm,
            "descriptor": brought,
            "policy": governed,
        }
        return self.done(self.runtime.tessxIssue(mesh, rank, collective, buffer, count, dtype, stream, **asked))

    @read_by(descriptor=mapping)
    def runtime_tessxSetDescriptor(self, *, context: Any, descriptor: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N802
        """What later work carries."""
        with statuses():
            brought = read_descriptor(descriptor)
        return self.done(self.runtime.tessxSetDescriptor(context, brought))

    @read_by()
    def runtime_tessxDescriptors(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """What queued work carries."""
        return {"descriptors": [_carried(each) for each in self.given(self.runtime.tessxDescriptors(stream))]}

    @read_by()
    def runtime_tessxGraphInstantiate(self, *, stream: Any) -> dict[str, Any]:  # noqa: N802
        """End a capture."""
        return {"graph": self.given(self.runtime.tessxGraphInstantiate(stream))}

    @read_by()
    def runtime_tessxGraphNodes(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        """What was captured."""
        nodes = self.given(self.runtime.tessxGraphNodes(graph))
        told = [{"kind": each.work.kind, "name": each.work.name, "after": list(each.after)} for each in nodes]
        return {"nodes": told}

    @read_by()
    def runtime_tessxGraphLaunch(self, *, graph: Any, stream: Any) -> dict[str, Any]:  # noqa: N802
        """Replay a graph."""
        return self.done(self.runtime.tessxGraphLaunch(graph, stream))

    @read_by()
    def runtime_tessxGraphDestroy(self, *, graph: Any) -> dict[str, Any]:  # noqa: N802
        """End a graph."""
        return self.done(self.runtime.tessxGraphDestroy(graph))

    @read_by()
    def runtime_tessxResident(self, *, mesh: Any) -> dict[str, Any]:  # noqa: N802
        """The kernels that are resident."""
        return {"kernels": list(self.given(self.runtime.tessxResident(mesh)))}

    @read_by()
    def runtime_tessxCacheEntries(self) -> dict[str, Any]:  # noqa: N802
        """What the cache holds."""
        entries = self.given(self.runtime.tessxCacheEntries())
        return {"entries": [_entry(str(path), each) for path, each in entries]}

    @read_by()
    def runtime_tessxCacheUse(self) -> dict[str, Any]:  # noqa: N802
        """How often the cache helped."""
        return {"hits": self.runtime.code.hits, "misses": self.runtime.code.misses}

    @read_by()
    def runtime_tessxSetIdentity(  # noqa: N802
        self, *, driver: Any = None, abi_hash: Any = None, arch: Any = None
    ) -> dict[str, Any]:
        """Another driver, ABI hash or architecture."""
        self.runtime.tessxSetIdentity(driver, abi_hash, arch)
        return {}

    @read_by(variables=_texts_by_name)
    def runtime_tessxSetEnvironment(self, *, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: N802
        """What the next tessInit finds."""
        self.runtime.environment = dict(variables)
        return {}

    @read_by()
    def runtime_tessxSettings(self, *, context: Any) -> dict[str, Any]:  # noqa: N802
        """What a context found."""
        return asdict(self.given(self.runtime.tessxSettings(context)))

    @read_by()
    def runtime_tessxLog(self) -> dict[str, Any]:  # noqa: N802
        """What was logged."""
        return {"lines": [asdict(each) for each in self.runtime.tessxLog()]}

    @read_by()
    def runtime_tessxExplain(self, *, module: Any) -> dict[str, Any]:  # noqa: N802
        """What became of a module."""
        told = self.given(self.runtime.tessxExplain(module))
        explanation = {name: told.value[name] for name in ("fusion_groups", "tile_shapes", "collective_plans")}
        return {"text": told.text, "explanation": explanation}

    @read_by()
    def runtime_tessxCollectivePlan(  # noqa: N802
        self, *, mesh: Any, collective: Any, count: Any, dtype: Any, axis: Any
    ) -> dict[str, Any]:
        """By which algorithm a collective would run."""
        return asdict(self.given(self.runtime.tessxCollectivePlan(mesh, collective, count, dtype, axis)))

    @read_by()
    def runtime_tessxSetAlgorithm(  # noqa: N802
        self, *, context: Any, collective: Any, algorithm: Any, source: Any
    ) -> dict[str, Any]:
        """A hint, or an autotuner's result."""
        return self.done(self.runtime.tessxSetAlgorithm(context, collective, algorithm, source))

    @read_by(trusted_keys=_keys)
    def runtime_tessxSetModulePolicy(  # noqa: N802
        self,
        *,
        context: Any,
        forbid_fast_math: Any = False,
        enforce_determinism: Any = False,
        trusted_keys: tuple[bytes, ...] | None = None,
    ) -> dict[str, Any]:
        """What modules may do."""
        policy = ModulePolicy(bool(forbid_fast_math), bool(enforce_determinism), trusted_keys)
        return self.done(self.runtime.tessxSetModulePolicy(context, policy))

    @read_by()
    def runtime_tessxSetStreamLimit(self, *, stream: Any, bytes: Any) -> dict[str, Any]:  # noqa: N802
        """How much memory a stream's work may refer to."""
        return self.done(self.runtime.tessxSetStreamLimit(stream, bytes))


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
    names = {"kernel": key.kernel, "shape": key.shape, "dtype": key.dtype, "arch": key.arch}
    told = {name: part if isinstance(part, str) else repr(part) for name, part in names.items()}
    return {"kind": entry.kind, **told, "policy": asdict(entry.tags.policy), "path": path}
