"""A package (section 7.2): kernel registry, schedule and CSP payload, slots, symbols and tensors, with its version.

`Package` is the typed program that the executor runs; `document` and `package_bytes` are its published form
(`schemas/wsp_package.schema.json`). Reading one is `reading.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .canonical import canonical_bytes, content_hash
from .expressions import Expression, expression_json
from .json_form import statements_json
from .kernels import DTYPES, Kernel, kernel_json
from .statements import Body

__all__ = [
    "ABI",
    "FORMAT",
    "RESOURCES",
    "Channel",
    "Directive",
    "Package",
    "Policy",
    "Process",
    "Schedule",
    "Symbol",
    "TaskWindow",
    "Tensor",
    "document",
    "package_bytes",
]

ABI = "v10.0"
FORMAT = 1
RESOURCES: Mapping[str, int] = {
    "tensormap_pool": 256,
    "deplist_pool": 1024,
    "heap_arena": 1 << 20,
    "ready_queue": 64,
}
"""The bounded resources beside the task ring, and their sizes where a program names none (AMB-WSP-51)."""


@dataclass(frozen=True)
class Policy:
    """A dispatch policy with its parameters; an expression of a user's policy is a parameter too."""

    id: str
    parameters: Mapping[str, int | Expression]


@dataclass(frozen=True)
class TaskWindow:
    """The bound of tasks in flight (section 3.2)."""

    size: int = 64
    unit: str = "tasks"
    mode: str = "stall"


@dataclass(frozen=True)
class Directive:
    """A further directive of the schedule, and what its target does with it."""

    name: str
    value: str
    state: str


@dataclass(frozen=True)
class Schedule:
    """How tasks are placed, and the bounds."""

    policy: Policy
    task_window: TaskWindow
    resources: Mapping[str, int]
    directives: tuple[Directive, ...]
    capabilities: Mapping[str, str]


@dataclass(frozen=True)
class Channel:
    """A named edge: at most `capacity` tokens between send and take, each visible `latency` cycles after its send."""

    name: str
    capacity: int = 1
    latency: int = 0


@dataclass(frozen=True)
class Process:
    """A sequential actor; `without_scopes` is a setting of a run (`knobs.py`), and never in a package."""

    name: str
    body: Body
    without_scopes: bool = False


@dataclass(frozen=True)
class Symbol:
    """A number that changes between runs; `width` in bits."""

    name: str
    width: int
    default: int


@dataclass(frozen=True)
class Tensor:
    """Elements of one dtype in memory; `initial` are its bytes, little-endian, zeros where left out."""

    name: str
    dtype: str
    count: int
    initial: bytes | None = None

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return self.count * DTYPES[self.dtype].itemsize


@dataclass(frozen=True)
class Package:
    """All of a program; the id of a kernel, channel, process, slot, symbol or tensor is its place.

    A package for aie has the graph of its streams beside it (`stream_graph.py`).
    """

    name: str
    target: str
    phase: int
    kernels: tuple[Kernel, ...]
    schedule: Schedule
    channels: tuple[Channel, ...]
    processes: tuple[Process, ...]
    slots: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    tensors: tuple[Tensor, ...]
    stream_graph: Mapping[str, Any] | None = None


def package_bytes(package: Package) -> bytes:
    """The canonical bytes of a package, its hash included."""
    whole = document(package)
    return canonical_bytes(whole | {"hash": content_hash(whole)})


def document(package: Package) -> dict[str, Any]:
    """The published form of a package without its hash."""
    streams = {} if package.stream_graph is None else {"stream_graph": package.stream_graph}
    return streams | {
        "wsp_runtime_abi": ABI,
        "format": FORMAT,
        "name": package.name,
        "target": package.target,
        "phase": package.phase,
        "kernels": [{"id": place, **kernel_json(each)} for place, each in enumerate(package.kernels)],
        "schedule": _schedule(package.schedule),
        "csp": {
            "channels": [
                {"id": place, "name": each.name, "capacity": each.capacity, "latency": each.latency}
                for place, each in enumerate(package.channels)
            ],
            "processes": [
                {"id": place, "name": each.name, "body": statements_json(each.body)}
                for place, each in enumerate(package.processes)
            ],
        },
        "slots": [{"id": place, "name": name, "width": 64} for place, name in enumerate(package.slots)],
        "symbols": [
            {"id": place, "name": each.name, "width": each.width, "default": each.default, "update": "between-runs"}
            for place, each in enumerate(package.symbols)
        ],
        "tensors": [_tensor(place, each) for place, each in enumerate(package.tensors)],
    }


def _schedule(schedule: Schedule) -> dict[str, Any]:
    window = schedule.task_window
    return {
        "policy": {
            "id": schedule.policy.id,
            "parameters": {
                name: each if isinstance(each, int) else expression_json(each)
                for name, each in schedule.policy.parameters.items()
            },
        },
        "task_window": {"size": window.size, "unit": window.unit, "mode": window.mode},
        "resources": dict(schedule.resources),
        "directives": [{"name": each.name, "value": each.value, "state": each.state} for each in schedule.directives],
        "capabilities": dict(schedule.capabilities),
    }


def _tensor(place: int, tensor: Tensor) -> dict[str, Any]:
    stated = {"id": place, "name": tensor.name, "dtype": tensor.dtype, "count": tensor.count}
    return stated if tensor.initial is None else stated | {"initial": tensor.initial.hex()}
