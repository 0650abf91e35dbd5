"""The bounded resources (section 3.4): a task takes all that it needs when it is issued, or nothing."""

from __future__ import annotations

from collections.abc import Mapping

from .stalls import (
    DEPLIST_POOL_FULL,
    HEAP_ARENA_FULL,
    READY_QUEUE_FULL,
    TASK_RING_FULL,
    TENSORMAP_POOL_FULL,
)
from .states import CallSite, WorkerState

__all__ = ["Resources"]


class Resources:
    """Sizes, use and high-water marks; `ready_queue` is that of the fullest worker."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.used = dict.fromkeys(sizes, 0)
        self.high_water = dict.fromkeys(sizes, 0)

    def shortage(self, site: CallSite, nodes: int, worker: WorkerState) -> str | None:
        """The reason why a task cannot be issued: the first resource that lacks, in the order of the document."""
        used, sizes = self.used, self.sizes
        if used["task_ring"] >= sizes["task_ring"]:
            return TASK_RING_FULL
        if used["tensormap_pool"] + len(site.writes) > sizes["tensormap_pool"]:
            return TENSORMAP_POOL_FULL
        if used["deplist_pool"] + nodes > sizes["deplist_pool"]:
            return DEPLIST_POOL_FULL
        if used["heap_arena"] + site.heap > sizes["heap_arena"]:
            return HEAP_ARENA_FULL
        if worker.places >= sizes["ready_queue"]:
            return READY_QUEUE_FULL
        return None

    def take(self, site: CallSite, nodes: int, worker: WorkerState) -> None:
        """A task is issued."""
        worker.places += 1
        used, high_water = self.used, self.high_water
        used["task_ring"] += 1
        used["tensormap_pool"] += len(site.writes)
        used["deplist_pool"] += nodes
        used["heap_arena"] += site.heap
        for name in ("task_ring", "tensormap_pool", "deplist_pool", "heap_arena"):
            if used[name] > high_water[name]:
                high_water[name] = used[name]
        if worker.places > high_water["ready_queue"]:
            high_water["ready_queue"] = worker.places

    def free_nodes(self, nodes: int) -> None:
        """The DepList nodes of a task that is complete."""
        self.used["deplist_pool"] -= nodes

    def free(self, slots: int, entries: int, heap: int) -> None:
        """Ring slots, TensorMap entries and bytes of tasks that are complete and held by no scope."""
        self.used["task_ring"] -= slots
        self.used["tensormap_pool"] -= entries
        self.used["heap_arena"] -= heap
