"""Which algorithm a collective runs by, and why (runtime spec 13; AMB-RT-180, AMB-RT-181).

The choice is that of `collectives.selection`; what a context knows goes into it: hints, plans of modules, the
environment, the autotuner's results. An algorithm changes when a collective ends, never its bits (AMB-RT-26).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..abi.cache_entry import CacheKey
from ..collectives.durations import collective_duration
from ..collectives.selection import choose, followed, require_followed
from ..numerics.formats import DType
from .code_cache import CodeCache
from .meshes import Mesh

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan:
    """The algorithm, and why: hint, environment, autotuner or default."""

    algorithm: str
    source: str


def plan(
    mesh: Mesh,
    collective: str,
    count: int,
    dtype: DType,
    axis: str | None,
    cache: CodeCache,
    algorithm: str | None = None,
) -> Plan:
    """The plan for a collective, `algorithm` if it names one itself.

    Raises `Failure` with TESS_ERR_UNSUPPORTED for an algorithm named so that not every group along the axis can follow;
    other hints like that are passed over (RT-08.1-11).
    """
    topology, environment = mesh.machine.topology, mesh.context.environment
    groups = [tuple(mesh.devices[rank] for rank in group) for group in mesh.groups(axis)]
    if algorithm is not None:
        possible = followed(collective, topology, groups)
        require_followed("", algorithm, possible, f"devices {', '.join(map(str, groups[0]))}")
        return Plan(algorithm, "hint")

    def tuned(possible: tuple[str, ...]) -> str | None:
        found = mesh.context.tuned.get(collective)
        if found is None and environment.autotune:
            return _autotuned(mesh, collective, count, dtype, groups[0], possible, cache)
        return found

    bytes, hint = count * dtype.storage_bytes, _hint(mesh, collective, axis)
    chosen = choose(collective, bytes, topology, groups, hint, environment.collectives, tuned)
    return Plan(chosen.algorithm, chosen.source)


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
    path = mesh.context.environment.collectives.path
    machine = (mesh.machine.topology.name, group, *(() if path == "auto" else (path,)))
    key = CacheKey((collective, *machine), (count,), dtype.name, cache.arch(*mesh.targets))
    known = store.get("autotune", key, tags, same_policy=bool(tags.policy.deterministic)) if store else None
    if known is not None:
        cache.hits += 1
        return known.decode()
    size = count * dtype.storage_bytes
    durations = {
        each: collective_duration(mesh.machine.topology, group, collective, size, each, path=path) for each in possible
    }
    best = min(possible, key=lambda each: durations[each])
    if store is not None:
        cache.misses += 1
        store.put("autotune", key, tags, best.encode())
    return best
