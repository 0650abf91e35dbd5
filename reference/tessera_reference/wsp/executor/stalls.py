"""Stalls by reason, in the document's vocabulary (section 3.4.2): how many episodes, and how long they lasted."""

from __future__ import annotations

__all__ = [
    "CHANNEL_EMPTY_WAIT",
    "CHANNEL_FULL_WAIT",
    "DEPLIST_POOL_FULL",
    "HEAP_ARENA_FULL",
    "READY_QUEUE_FULL",
    "REASONS",
    "RESOURCE_OF",
    "TASK_RING_FULL",
    "TASK_WAIT",
    "TENSORMAP_POOL_FULL",
    "Stalls",
]

TASK_RING_FULL = "TASK_RING_FULL"
TENSORMAP_POOL_FULL = "TENSORMAP_POOL_FULL"
DEPLIST_POOL_FULL = "DEPLIST_POOL_FULL"
HEAP_ARENA_FULL = "HEAP_ARENA_FULL"
READY_QUEUE_FULL = "READY_QUEUE_FULL"
CHANNEL_EMPTY_WAIT = "CHANNEL_EMPTY_WAIT"
CHANNEL_FULL_WAIT = "CHANNEL_FULL_WAIT"
RESOURCE_OF = {
    TASK_RING_FULL: "task_ring",
    TENSORMAP_POOL_FULL: "tensormap_pool",
    DEPLIST_POOL_FULL: "deplist_pool",
    HEAP_ARENA_FULL: "heap_arena",
    READY_QUEUE_FULL: "ready_queue",
}
REASONS = (*RESOURCE_OF, CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT)

TASK_WAIT = "TASK_WAIT"
"""A process waits for tasks, or a task for tasks that it depends on: a reason in reports, and no stall (AMB-WSP-46)."""


class Stalls:
    """Episodes that began, and the cycles of those that ended."""

    def __init__(self) -> None:
        self.count = dict.fromkeys(REASONS, 0)
        self.cycles = dict.fromkeys(REASONS, 0)

    def begin(self, reason: str) -> None:
        """One more episode."""
        if reason != TASK_WAIT:
            self.count[reason] += 1

    def end(self, reason: str, cycles: int) -> None:
        """An episode ends after so many cycles."""
        if reason != TASK_WAIT:
            self.cycles[reason] += cycles
