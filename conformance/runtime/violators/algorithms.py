"""Collectives that run another algorithm than planned, or whose bits depend on it (runtime spec 8.1, 13)."""

from functools import partial
from unittest import mock

from tessera_conformance.strength import Around
from tessera_reference.collectives.selection import Selection
from tessera_reference.numerics.array import Array
from tessera_reference.runtime.collectives import CollectiveWork

from .changes import answering, broken, in_every_context


def planning_so(clause, name, description, plan):
    """Return a violation that plans other algorithms; `plan(usual, mesh, collective, *others)`."""
    return broken(clause, name, description, "runtime.collectives.plan", Around(lambda usual: partial(plan, usual)))


def lacking(clause, algorithm, collective=None):
    """Return a violation without an algorithm, for one collective or for all."""

    def plan(usual, mesh, expected, *of):
        found = usual(mesh, expected, *of)
        lacks = found.algorithm == algorithm and found.source != "default" and collective in (None, expected)
        return Selection("ring" if algorithm != "ring" else "tree", "default") if lacks else found

    name = f"no_{algorithm}" + (f"_{collective}" if collective else "")
    return planning_so(clause, name, f"has no algorithm {algorithm} for {collective or 'collectives'}", plan)


def rounding(clause, algorithm):
    """Return a violation in which an algorithm gives other bits."""

    def combined(self, group, contributions, right=CollectiveWork._combined):
        results = right(self, group, contributions)
        other = self.call.algorithm == algorithm
        return {rank: other_bits(array) for rank, array in results.items()} if other else results

    description = f"has other bits by {algorithm}"
    place = "runtime.collectives.CollectiveWork._combined"
    return broken(clause, f"bits_of_{algorithm}", description, place, combined)


def other_bits(array):
    data = bytes(value ^ (place % 4 == 0) for place, value in enumerate(array.to_bits()))
    return Array.from_bits(array.dtype, array.shape, data)


def tuned_first(usual, mesh, collective, *of):
    found = mesh.context.tuned.get(collective)
    return Selection(found, "autotuner") if found else usual(mesh, collective, *of)


def results_ignored(usual, mesh, *of):
    with mock.patch.dict(mesh.context.tuned, clear=True):
        return usual(mesh, *of)


def no_default_for_odd(usual, mesh, *of):
    found = usual(mesh, *of)
    return Selection(found.algorithm, "autotuner") if len(mesh.devices) % 2 and found.source == "default" else found


def any_subgroup(mesh, collective, axis):
    plans = [plan for module in mesh.context.plans.values() for plan in module]
    found = [
        plan.algorithm for plan in plans if (plan.source, plan.axis, plan.collective) == ("hint", axis, collective)
    ]
    return mesh.context.hints.get(collective) or (found[-1] if found else None)


def plans_kept(adapter, call, given):
    context = adapter.runtime.module(given["module"]).context
    plans = context.plans[given["module"]]
    answer = call(**given)
    context.plans[-given["module"]] = plans
    return answer


VIOLATORS = [
    in_every_context("RT-13-06", "HintsForAll", "takes hints for every context", "tessxSetAlgorithm"),
    *(make(clause, algorithm) for make in (lacking, rounding)
        for clause, algorithm in (("RT-13-03", "ring"), ("RT-13-04", "tree"), ("RT-13-05", "hierarchical"))),
    lacking("RT-13-04", "tree", "broadcast"),
    lacking("RT-13-05", "hierarchical", "reduce_scatter"),
    planning_so("RT-13-06", "tuned_first", "lets the autotuner decide before a hint", tuned_first),
    planning_so("RT-13-07", "results_ignored", "ignores results of the autotuner", results_ignored),
    planning_so("RT-13-08", "no_default_for_odd", "has no default for odd numbers of ranks", no_default_for_odd),
    answering("RT-08.1-11", "PlansKept", "keeps the plans of modules that are unloaded", "tessModuleUnload",
        plans_kept),
    broken("RT-08.1-11", "any_subgroup", "takes a plan of a subgroup for one of the mesh", "runtime.collectives._hint",
        any_subgroup),
]  # fmt: skip
