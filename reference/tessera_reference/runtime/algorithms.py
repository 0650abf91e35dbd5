"""Which algorithm a collective runs by: hint, autotuner's result or safe default (runtime spec 13).

The algorithm changes when a collective ends, never its bits (AMB-RT-26).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..abi.cache_entry import CacheKey
from ..collectives.durations import algorithms, collective_duration
from ..numerics.formats import DType
from .code_cache import CodeCache
from .meshes import Mesh

__all__ = ["DEFAULT", "Plan", "plan"]

DEFAULT = "ring"
"""Works on every topology."""


@dataclass(frozen=True)
class Plan:
    """The algorithm, and why: hint, autotuner or default."""

    algorithm: str
    source: str


def plan(mesh: Mesh, collective: str, count: int, dtype: DType, axis: str | None, cache: CodeCache) -> Plan:
    """The plan for a collective; a hint that not every group along the axis can follow is passed over (RT-08.1-11)."""
    group, *others = (tuple(mesh.devices[rank] for rank in group) for group in mesh.groups(axis))
    possible = algorithms(mesh.machine.topology, group)
    for other in others:
        follows = algorithms(mesh.machine.topology, other)
        possible = tuple(each for each in possible if each in follows)
    hint = _hint(mesh, collective, axis)
    if hint in possible:
        return Plan(hint, "hint")
    tuned = mesh.context.tuned.get(collective)
    if tuned is None and mesh.context.environment.autotune:
        tuned = _autotuned(mesh, collective, count, dtype, group, possible, cache)
    return Plan(tuned, "autotuner") if tuned in possible else Plan(DEFAULT, "default")


def _hint(mesh: Mesh, collective: str, axis: str | None) -> str | None:
    """The algorithm that the context was given, or that the module loaded last hints at (AMB-RT-167, AMB-COLL-85)."""
    if collective in mesh.context.hints:
        return mesh.context.hints[collective]
    plans = [each for module in mesh.context.plans.values() for each in module]
    hints = [each for each in plans if each.source == "hint" and each.subgroup is None]
    found = [each.algorithm for each in hints if (each.collective, each.axis) == (collective, axis)]
    return found[-1] if found else None


def _autotuned(
    mesh: Mesh,
    collective: str,
    count: int,
    dtype: DType,
    group: tuple[int, ...],
    possible: tuple[str, ...],
    cache: CodeCache,
) -> str:
    """The algorithm that is done first; kept in the cache (RT-08.2-02)."""
    store, tags = cache.store(mesh.context), cache.tags(mesh.context.governing())
    key = CacheKey((collective, mesh.machine.topology.name, group), (count,), dtype.name, cache.arch(*mesh.targets))
    known = store.get("autotune", key, tags, same_policy=bool(tags.policy.deterministic)) if store else None
    if known is not None:
        cache.hits += 1
        return known.decode()
    size = count * dtype.storage_bytes
    durations = {each: collective_duration(mesh.machine.topology, group, collective, size, each) for each in possible}
    best = min(possible, key=lambda each: durations[each])
    if store is not None:
        cache.misses += 1
        store.put("autotune", key, tags, best.encode())
    return best
