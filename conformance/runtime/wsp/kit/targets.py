"""The targets of the document as parameters of cases, each with its feature, and programs that show the effect of a
directive of the schedule (sections 1.3, 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tessera_conformance.marks import feature

from .programs import channel, consume, filler, op, process, program, repeat, schedule, send, slot, task, tensor, wait

FEATURES = {
    "cpu_sim": "backend-cpu-sim",
    "pto_runtime_a2a3sim": "backend-a2a3sim",
    "pto_runtime_a2a3": "backend-a2a3",
    "aie": "backend-aie",
    "pto_runtime_a2a3sim_host_graph": "phase1-host-graph",
}
STATES = ("enforced", "recorded", "diagnosed", "unsupported")


def targets(*names: str) -> list[Any]:
    """Return parameters for these targets, or for all; cpu_sim needs no feature beyond those of the clauses."""
    return [
        pytest.param(name, id=name, marks=[feature(FEATURES[name])] if name != "cpu_sim" else [])
        for name in names or FEATURES
    ]


def tasks(plan: Mapping[str, Any], key: Any = None) -> dict[str, Any]:
    """Return nine tasks that write 12 bytes each into one of three tensors, under a schedule."""
    body = [task("fill", name, slot("i"), key=op("mul", slot("i"), 5) if key is None else key) for name in "abc"]
    return program(
        process("p", repeat(3, *body, index="i")),
        kernels=[filler("fill", 5)],
        tensors=[tensor(name, "i32", [0] * 3) for name in "abc"],
        schedule=plan,
    )


PROBES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "dispatch.affinity": (schedule("affinity", 3, 64), schedule("round_robin", 3, 64)),
    "dispatch.hash": (schedule("hash", 3, 64), schedule("round_robin", 3, 64)),
    "dispatch.round_robin": (schedule("round_robin", 3, 64), schedule("affinity", 3, 64)),
    "dispatch.expression": (
        schedule("expression", 3, 64, parameters={"worker": 2}),
        schedule("round_robin", 3, 64),
    ),
    "task_window.mode.stall": (schedule("round_robin", 3, 2), schedule("round_robin", 3, 64)),
    "task_window.unit.tasks": (schedule("round_robin", 3, 1), schedule("round_robin", 3, 64)),
    "resources.tensormap_pool": (schedule("round_robin", 3, 64, tensormap_pool=2), schedule("round_robin", 3, 64)),
    "resources.deplist_pool": (schedule("round_robin", 3, 64, deplist_pool=1), schedule("round_robin", 3, 64)),
    "resources.heap_arena": (schedule("round_robin", 3, 64, heap_arena=24), schedule("round_robin", 3, 64)),
    "resources.ready_queue": (schedule("round_robin", 3, 64, ready_queue=1), schedule("round_robin", 3, 64)),
}
"""For each directive a schedule with it, and one whose run must differ from it."""

UNUSUAL: Mapping[str, Mapping[str, Any]] = {
    "task_window.unit.bytes": {"size": 100, "unit": "bytes", "mode": "stall"},
    "task_window.mode.abort": {"size": 2, "unit": "tasks", "mode": "abort"},
    "task_window.mode.benchmark": {"size": 2, "unit": "tasks", "mode": "benchmark"},
}
"""Windows of other units and modes."""


def directive(name: str, *values: str) -> dict[str, Any]:
    """Return a schedule with a further directive, once for each of its values."""
    return schedule("round_robin", 3, 2, directives=[{"name": name, "value": value} for value in values])


def pipeline(*, channels: Sequence[Mapping[str, Any]] = (), sends: int = 6) -> dict[str, Any]:
    """Return a program with tokens through two channels, each of which issues a task on one of three workers."""
    return program(
        process("first", repeat(sends, send("a", op("mul", slot("i"), 7)), index="i")),
        process("second", consume("a", "x", task("fill", "t", slot("x"), key=slot("x"), signals=["b"])), wait()),
        process("third", consume("b", "y", task("fill", "u", slot("z"))), wait()),
        channels=list(channels) or [channel("a"), channel("b", 2, 3)],
        kernels=[filler("fill", 5)],
        tensors=[tensor("t", "i32", [0] * 3), tensor("u", "u8", [1] * 5)],
        schedule=schedule("round_robin", 3, 32),
    )
