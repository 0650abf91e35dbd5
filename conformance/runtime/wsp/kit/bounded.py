"""Programs that exhaust one bounded resource each, with the effects of each size of it, computed by hand.

A task needs, from its issue, a slot of the task ring, a TensorMap entry for each tensor it writes, a DepList node for
each task in flight that it depends on, the bytes of the tensors it writes, and until it starts a place in the ready
queue of its worker (section 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .programs import filler, instruction, kernel, process, program, run, schedule, task, tensor, work

RESOURCES = ("task_ring", "tensormap_pool", "deplist_pool", "heap_arena", "ready_queue")
REASON_OF = {
    "task_ring": "TASK_RING_FULL",
    "tensormap_pool": "TENSORMAP_POOL_FULL",
    "deplist_pool": "DEPLIST_POOL_FULL",
    "heap_arena": "HEAP_ARENA_FULL",
    "ready_queue": "READY_QUEUE_FULL",
}
REASONS = (*REASON_OF.values(), "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT")
"""The reasons of section 3.4.2."""


@dataclass(frozen=True)
class Expected:
    """The results with `size` of the resource: stalls, their cycles, high-water mark, process time and total time."""

    size: int
    count: int
    cycles: int
    high_water: int
    issued: int
    total: int


@dataclass(frozen=True)
class Exhaustion:
    """A program that stalls with a small size of one resource."""

    resource: str
    program: Mapping[str, Any]
    expected: Sequence[Expected]

    @property
    def reason(self) -> str:
        """The reason for the stall of its process."""
        return REASON_OF[self.resource]

    def sizes(self, expected: Expected) -> dict[str, int]:
        """Return the argument `resources` of a run with this size."""
        return {"task_window" if self.resource == "task_ring" else self.resource: expected.size}


def with_workers(workers: int, *statements: dict[str, Any], tensors: Sequence[Any] = ()) -> dict[str, Any]:
    """Return one process `issuer` and the kernels that these programs use."""
    return program(
        process("issuer", *statements),
        kernels=[*work(1, 3, 7, 9), filler("four", 4), filler("five", 5), filler("seven", 7), PAIR, READ_1, READ_2],
        tensors=tensors,
        schedule=schedule("round_robin", workers),
    )


FILLS = [instruction("fill", name, 3) for name in ("a", "b")]
PAIR = kernel("pair", {"a": "tensor", "b": "tensor"}, FILLS, cycles=5)
READ_1 = kernel("read_1", {"x": "tensor", "y": "tensor"}, [instruction("add", "y", "x", 1)], cycles=6)
READ_2 = kernel("read_2", {"x": "tensor", "y": "tensor", "z": "tensor"}, [instruction("add", "z", "x", "y")], cycles=6)


def bytes_each(*names: str) -> list[dict[str, Any]]:
    """Return a tensor of one byte for each name."""
    return [tensor(name, "u8", [0]) for name in names]


TASK_RING = Exhaustion(
    "task_ring",
    with_workers(2, *[task("w7"), task("w3")] * 3),
    [
        # Slots are freed in any order: of 3 tasks the second completes first, at 3, the fourth at 6, the first at 7.
        Expected(3, 3, 7, 3, issued=7, total=21),
        # Task 2 comes at 3 and waits for its worker; task 3 at 7, 4 at 10, 5 at 14 when task 2 completes.
        Expected(2, 4, 14, 2, issued=14, total=21),
        Expected(1, 5, 27, 1, issued=27, total=30),
        Expected(5, 1, 3, 5, issued=3, total=21),
        Expected(6, 0, 0, 6, issued=0, total=21),
    ],
)
"""Six tasks, of 7 cycles on worker 0 and of 3 on worker 1."""

TENSORMAP_POOL = Exhaustion(
    "tensormap_pool",
    with_workers(
        2,
        task("pair", "a", "b"),
        task("four", "c", 1),
        task("pair", "d", "e"),
        task("four", "f", 1),
        task("pair", "g", "h"),
        tensors=bytes_each(*"abcdefgh"),
    ),
    [
        # At 4 one entry is freed, and the third task needs two: it comes at 5, the fourth too, the fifth at 10.
        Expected(3, 2, 10, 3, issued=10, total=15),
        # The fourth comes at 4, the fifth at 5.
        Expected(5, 2, 4 + 1, 5, issued=5, total=15),
        Expected(7, 1, 4, 7, issued=4, total=15),
        Expected(8, 0, 0, 8, issued=0, total=15),
    ],
)
"""Tasks that write two tensors in 5 cycles on worker 0, and one in 4 on worker 1."""

DEPLIST_POOL = Exhaustion(
    "deplist_pool",
    with_workers(
        1, task("five", "x", 2), task("read_1", "x", "y"), task("read_2", "x", "y", "z"), tensors=bytes_each(*"xyz")
    ),
    [
        # At 5 the first task completes: the third depends on the second alone, whose own node is freed at 11.
        Expected(1, 1, 11, 1, issued=11, total=17),
        Expected(2, 1, 5, 2, issued=5, total=17),
        Expected(3, 0, 0, 3, issued=0, total=17),
    ],
)
"""The second task depends on the first, the third on both."""

HEAP_ARENA = Exhaustion(
    "heap_arena",
    with_workers(
        2,
        task("seven", "a", 1),
        task("four", "b", 1),
        task("seven", "c", 1),
        tensors=[tensor("a", "i32", [0] * 3), tensor("b", "u8", [0] * 5), tensor("c", "i32", [0] * 3)],
    ),
    [
        # 12 bytes, then 5, then 12.
        Expected(13, 2, 11, 12, issued=11, total=18),
        Expected(17, 1, 7, 17, issued=7, total=14),
        Expected(24, 1, 4, 24, issued=4, total=14),
        Expected(29, 0, 0, 29, issued=0, total=14),
    ],
)
"""Tasks that write 12 bytes in 7 cycles on worker 0, and 5 in 4 on worker 1."""

READY_QUEUE = Exhaustion(
    "ready_queue",
    with_workers(2, task("w9"), task("w3"), run("w1"), *[task("w9"), task("w3")] * 3),
    [
        # The first two have started when the others come, at 1: a place of worker 0 is freed at 9 and 18.
        Expected(1, 2, 8 + 9, 1, issued=18, total=36),
        Expected(2, 1, 8, 2, issued=9, total=36),
        Expected(3, 0, 0, 3, issued=1, total=36),
    ],
)
"""Eight tasks, of 9 cycles on worker 0 and of 3 on worker 1; each worker has a queue of its own."""

EXHAUSTIONS = (TASK_RING, TENSORMAP_POOL, DEPLIST_POOL, HEAP_ARENA, READY_QUEUE)
