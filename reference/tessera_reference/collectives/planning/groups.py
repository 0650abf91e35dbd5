"""Which ranks meet for each collective of a plan (COLL-02.2-03; AMB-COLL-51)."""

from __future__ import annotations

from collections.abc import Mapping

from ...graph.futures import FutureCollective
from ...graph.mesh_axes import resolve_axis
from ...graph.ranks import Group
from ...ir.diagnostics import Rejection
from ...ir.module import Function, Module
from ...ir.operation import Refusal, require
from ...ir.refusals import diagnostic_of
from ...ir.types import Shard
from .planner import Plan
from .steps import Issue

__all__ = ["Groups", "groups_of"]

Groups = Mapping[Issue, tuple[tuple[int, ...], ...]]


def groups_of(plan: Plan, module: Module, function: Function, mesh: str) -> Groups:
    """The groups of each collective, in order of their first ranks. Raises `Rejection` for a rank that is in none."""
    issues = [step for step in plan.program.steps if isinstance(step, Issue)]
    try:
        return {step: _groups(step, module, mesh) for step in issues}
    except Refusal as refusal:
        raise Rejection([diagnostic_of(refusal, function.location, phase="execute")]) from refusal


def _groups(step: Issue, module: Module, running: str) -> tuple[tuple[int, ...], ...]:
    """Raises `Refusal`."""
    operation, ranks = step.operation, module.meshes[running].size
    if isinstance(operation, FutureCollective):
        name, met = operation.grid, operation.met
    else:
        name, _ = resolve_axis(module.meshes, operation.axis, operation.mesh or running)
        met = Shard((operation.axis,))
    mesh = module.meshes[name]
    message = f"{step.name} on mesh {name} of {mesh.size} ranks"
    require(mesh.size == ranks, "distributed", message, f"a mesh of {ranks} ranks", "LANG-05.4-04", "name the mesh")
    return tuple(dict.fromkeys(Group.in_shard(name, mesh, met, rank).ranks for rank in range(ranks)))
