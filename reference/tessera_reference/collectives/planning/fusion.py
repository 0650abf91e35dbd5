"""Fusion: small tensors travel as one collective where their consumers can split it again (COLL-02.4-01; AMB-COLL-56).

Element-wise collectives alone, all_reduce and broadcast, of one dtype and the same attributes, which together are no
larger than a chunk. One is issued with the last of them, so none of their values may be used before that.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ...graph.collectives import AllReduce, RootBroadcast
from ...graph.futures import FutureCollective, IssueAllReduce, IssueBroadcast
from ...ir.module import Value
from .slicing import chunk_elements, elements
from .steps import Issue, Program, Step

__all__ = ["fuse"]

ELEMENTWISE = (IssueAllReduce, IssueBroadcast, AllReduce, RootBroadcast)


def fuse(program: Program, tile: int | None) -> None:
    """Join issues, in place; `tile` is in bytes."""
    kept: list[Step | None] = []
    open_: dict[Hashable, int] = {}
    futures: dict[Value, Hashable] = {}
    for step in program.steps:
        for value in step.uses:
            open_.pop(futures.pop(value, None), None)
        key = _key(step, tile) if isinstance(step, Issue) else None
        if not isinstance(step, Issue) or key is None:
            kept.append(step)
            continue
        at = open_.get(key)
        before = None if at is None else kept[at]
        if at is not None and isinstance(before, Issue) and _fits(before, step, tile):
            kept[at] = None
            step = _joined(before, step)
        open_[key] = len(kept)
        futures |= dict.fromkeys(step.futures, key)
        kept.append(step)
    program.steps = [step for step in kept if step is not None]


def _key(step: Issue, tile: int | None) -> Hashable:
    """What issues must share to be one; nothing for one that is not small, or not element-wise, or has folds."""
    operation = step.operation
    if not isinstance(operation, ELEMENTWISE) or step.folds or not isinstance(operation, FutureCollective):
        return None
    limit = chunk_elements(operation, tile)
    if limit is None or elements(operation.x) >= limit:
        return None
    return (operation.name, operation.x.dtype.name, operation.grid, str(operation.met), *map(str, _terms(operation)))


def _terms(operation: FutureCollective) -> list[tuple[str, object]]:
    named = {name: value for name, value in operation.attributes.items() if name not in ("axis", "subgroup", "mesh")}
    named.pop("chunk_bytes", None)
    return sorted({**named, "chunk": operation.chunk_size}.items())


def _fits(before: Issue, step: Issue, tile: int | None) -> bool:
    """Whether a chunk holds both."""
    limit = chunk_elements(step.operation, tile)
    return limit is not None and sum(map(elements, (*before.types, *step.types))) <= limit


def _joined(before: Issue, step: Issue) -> Issue:
    return replace(
        step,
        sources=(*before.sources, *step.sources),
        futures=(*before.futures, *step.futures),
        types=(*before.types, *step.types),
    )
