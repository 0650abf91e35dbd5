"""The methods on the two queues of a device and the pipelines made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tessera_conformance.tensors import Tensor

from ..collectives.argument_checks import require_known
from ..collectives.graph import topology_of
from ..collectives.moe import Bucket, dispatch
from ..collectives.pipelines import INFLIGHT, PIPELINES, require_sizes
from ..collectives.queues import MAX_INFLIGHT, Run, idle, simulate
from ..mesh.topology import Topology
from ..numerics import formats
from .outcomes import array, tensor
from .requests import checked
from .session_state import SessionState
from .statuses import statuses
from .units import unit_of, unit_told

__all__ = ["CollectiveQueueMethods"]


class CollectiveQueueMethods(SessionState):
    """How collectives and computations share the time of devices (collectives spec 4.1 and 7)."""

    @checked
    def collectives_simulate(
        self,
        *,
        units: Sequence[Mapping[str, Any]],
        topology: str,
        devices: Sequence[int] | None = None,
        max_inflight: int = MAX_INFLIGHT,
    ) -> dict[str, Any]:
        """When each unit ran on each device."""
        with statuses():
            machine = topology_of(topology)
            ranks = len(_used(machine, devices))
            run = simulate([unit_of(each, ranks) for each in units], machine, devices, max_inflight)
        return _told(run)

    @checked
    def collectives_pipeline(
        self,
        *,
        kind: str,
        layers: int,
        bytes: int,
        picoseconds: int,
        topology: str,
        devices: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """The units of a pipeline, and when each ran."""
        with statuses():
            require_known("pipeline", "kind", kind, tuple(PIPELINES))
            require_sizes(layers, bytes, picoseconds)
            machine = topology_of(topology)
            units = PIPELINES[kind](layers, bytes, picoseconds, range(len(_used(machine, devices))))
            run = simulate(units, machine, devices, INFLIGHT)
        return {"units": [unit_told(each) for each in units], **_told(run)}

    @checked
    def collectives_dispatch(
        self, *, inputs: Sequence[Tensor], experts: Sequence[Sequence[int]], count: int, dtype: str | None = None
    ) -> dict[str, Any]:
        """What the ranks of experts get, bucket by bucket."""
        with statuses():
            wire = None if dtype is None else formats.dtype(dtype)
            found = dispatch([array(each) for each in inputs], experts, count, wire)
        return {"buckets": [_bucket(each) for each in found]}


def _used(machine: Topology, devices: Sequence[int] | None) -> Sequence[Any]:
    return machine.devices if devices is None else devices


def _told(run: Run) -> dict[str, Any]:
    timeline = []
    for slot in run.slots:
        told = asdict(slot)
        timeline.append({name: value for name, value in told.items() if value is not None})
    queues = {queue: idle(run, queue) for queue in ("compute", "comm")}
    return {"timeline": timeline, "duration": run.duration, "idle": queues}


def _bucket(bucket: Bucket) -> dict[str, Any]:
    return {
        "experts": list(bucket.experts),
        "rows": bucket.rows,
        "counts": [list(each) for each in bucket.counts],
        "outputs": [tensor(each) for each in bucket.outputs],
    }
