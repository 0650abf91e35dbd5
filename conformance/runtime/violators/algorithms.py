"""Collectives that run another algorithm than planned, or whose bits depend on it (runtime spec 8.1, 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.collectives.selection import Selection
from tessera_reference.numerics.array import Array
from tessera_reference.runtime import collectives
from tessera_reference.runtime.collectives import CollectiveWork

from .changes import Call, Given, answering, in_every_context

PLAN, HINT, COMBINED = collectives.plan, collectives._hint, CollectiveWork._combined


def planning_so(clause: str, name: str, description: str, plan: Callable[..., Selection]) -> Violation:
    """Return a violation that plans other algorithms."""
    return replaced(clause, description, make, ("runtime.collectives.plan", plan), name=name)


def lacking(clause: str, algorithm: str, collective: str | None = None) -> Violation:
    """Return a violation without an algorithm, for one collective or for all."""

    def plan(mesh: Any, expected: str, *of: Any) -> Selection:
        found = PLAN(mesh, expected, *of)
        lacks = found.algorithm == algorithm and found.source != "default" and collective in (None, expected)
        return Selection("ring" if algorithm != "ring" else "tree", "default") if lacks else found

    name = f"no_{algorithm}" + (f"_{collective}" if collective else "")
    return planning_so(clause, name, f"has no algorithm {algorithm} for {collective or 'collectives'}", plan)


def rounding(clause: str, algorithm: str) -> Violation:
    """Return a violation in which an algorithm gives other bits."""

    def combined(self: CollectiveWork, group: Any, contributions: Any) -> Mapping[int, Array]:
        results = COMBINED(self, group, contributions)
        if self.call.algorithm != algorithm:
            return results
        return {rank: _other(array) for rank, array in results.items()}

    description = f"has other bits by {algorithm}"
    return replaced(
        clause,
        description,
        make,
        ("runtime.collectives.CollectiveWork._combined", combined),
        name=f"bits_of_{algorithm}",
    )


def _other(array: Array) -> Array:
    data = array.to_bits()
    return Array.from_bits(
        array.dtype, array.shape, bytes(value ^ (place % 4 == 0) for place, value in enumerate(data))
    )


def tuned_first(mesh: Any, collective: str, *of: Any) -> Selection:
    found = mesh.context.tuned.get(collective)
    return Selection(found, "autotuner") if found else PLAN(mesh, collective, *of)


def results_ignored(mesh: Any, collective: str, *of: Any) -> Selection:
    kept = dict(mesh.context.tuned)
    mesh.context.tuned.clear()
    try:
        return PLAN(mesh, collective, *of)
    finally:
        mesh.context.tuned.update(kept)


def sourced(source: str, reported: str) -> Callable[..., Selection]:
    def plan(*of: Any) -> Selection:
        found = PLAN(*of)
        return Selection(found.algorithm, reported) if found.source == source else found

    return plan


def no_default_for_odd(mesh: Any, collective: str, *of: Any) -> Selection:
    found = PLAN(mesh, collective, *of)
    return Selection(found.algorithm, "autotuner") if len(mesh.devices) % 2 and found.source == "default" else found


CHOSEN = [
    in_every_context("RT-13-06", "HintsForAll", "takes hints for every context", "tessxSetAlgorithm"),
    *(lacking(clause, algorithm) for clause, algorithm in (
        ("RT-13-03", "ring"), ("RT-13-04", "tree"), ("RT-13-05", "hierarchical")
    )),
    lacking("RT-13-04", "tree", "broadcast"),
    lacking("RT-13-05", "hierarchical", "reduce_scatter"),
    rounding("RT-13-03", "ring"),
    rounding("RT-13-04", "tree"),
    rounding("RT-13-05", "hierarchical"),
    planning_so("RT-13-06", "tuned_first", "lets the autotuner decide before a hint", tuned_first),
    planning_so("RT-13-07", "results_ignored", "ignores results of the autotuner", results_ignored),
    planning_so("RT-13-08", "no_default_for_odd", "has no default for odd numbers of ranks", no_default_for_odd),
]  # fmt: skip


# The plans of modules


def hinting(name: str, description: str, hint: Callable[..., str | None]) -> Violation:
    """Return a violation that uses modules' plans differently."""
    return replaced("RT-08.1-11", description, make, ("runtime.collectives._hint", hint), name=name)


def _plans(mesh: Any) -> list[Any]:
    return [plan for module in mesh.context.plans.values() for plan in module]


def module_first(mesh: Any, collective: str, axis: Any) -> str | None:
    """Let a module's plan take precedence over a hint of the schedule."""
    found = [plan.algorithm for plan in _plans(mesh) if (plan.collective, plan.axis) == (collective, axis)]
    return found[-1] if found else HINT(mesh, collective, axis)


def any_subgroup(mesh: Any, collective: str, axis: Any) -> str | None:
    hints = [plan for plan in _plans(mesh) if plan.source == "hint" and plan.axis == axis]
    found = [hint.algorithm for hint in hints if hint.collective == collective]
    return mesh.context.hints.get(collective) or (found[-1] if found else None)


def any_axis(mesh: Any, collective: str, axis: Any) -> str | None:
    found = [plan.algorithm for plan in _plans(mesh) if plan.collective == collective]
    return mesh.context.hints.get(collective) or (found[-1] if found else None)


def plans_kept(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    context = adapter.runtime.module(given["module"]).context
    plans = context.plans[given["module"]]
    answer = call(**given)
    context.plans[-given["module"]] = plans
    return answer


PLANNED = [
    answering("RT-08.1-11", "PlansKept", "keeps the plans of modules that are unloaded", "tessModuleUnload",
              plans_kept),
    hinting("any_subgroup", "takes a plan of a subgroup for one of the mesh", any_subgroup),
]  # fmt: skip
