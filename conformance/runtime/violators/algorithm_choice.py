"""Runtimes that ignore the environment or the table in choosing algorithms, or run others than they plan.

Runtime specification, 13, collectives specification, 3.1, 3.2 and 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.collectives.selection import Overrides, Selection
from tessera_reference.mesh import trace
from tessera_reference.runtime import collectives, contexts

from .algorithms import planning_so
from .changes import Call, Given, answering

CHOOSE, PLAN, READ, SLICE = collectives.choose, collectives.plan, contexts.read_overrides, trace._slice


def choosing(clause: str, name: str, description: str, choose: Callable[..., Selection]) -> Violation:
    """Return a violation with another choice in the runtime alone."""
    return replaced(clause, description, make, ("runtime.collectives.choose", choose), name=name)


def overriding(clause: str, name: str, description: str, change: Callable[[Overrides], Overrides]) -> Violation:
    """Return a violation with other overrides than the environment's."""

    def read(function: str, variables: Mapping[str, str]) -> Overrides:
        return change(READ(function, variables))

    return replaced(clause, description, make, ("runtime.contexts.read_overrides", read), name=name)


def with_arguments(change: Callable[..., tuple[Any, ...]]) -> Callable[..., Selection]:
    """Return the usual choice for other arguments."""
    return lambda *arguments: CHOOSE(*change(*arguments))


def tuned_first(name: str, size: int, machine: Any, groups: Any, hint: Any, overrides: Any, tuned: Any) -> Any:
    return name, size, machine, groups, hint or tuned(collectives.followed(name, machine, groups)), overrides, tuned


def sourced(source: str, reported: str) -> Callable[..., Selection]:
    """Return a choice that reports one source as another."""

    def choose(*arguments: Any) -> Selection:
        found = CHOOSE(*arguments)
        return replace(found, source=reported) if found.source == source else found

    return choose


def counting_elements(
    mesh: Any, collective: str, count: int, dtype: Any, axis: Any, cache: Any, named: Any = None
) -> Selection:
    usual = PLAN(mesh, collective, count, dtype, axis, cache, named)
    return PLAN(mesh, collective, -(-count // dtype.storage_bytes), dtype, axis, cache) if not named else usual


def read_late(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    for _, context in adapter.runtime.handles.live("context"):
        context.environment = replace(context.environment, collectives=READ("tessInit", given["variables"]))
    return answer


def table_not_named(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    try:
        return call(**given)
    except Refusal as refusal:
        message = refusal.outcome.message.replace("TESSERA_COLL_TABLE", "the environment")
        raise Refusal(refusal.outcome.code, "call", message) from None


ENVIRONMENT = [
    answering("RT-13-08", "PlansOtherwise", "answers the plan of the table where it runs by another",
              "tessxCollectivePlan", lambda adapter, call, given: call(**(given | {"count": 2 * given["count"]}))),
    answering("COLL-03.2-06", "ReadLate", "reads TESSERA_COLL_ALGO when a collective is planned",
              "tessxSetEnvironment", read_late),
    answering("COLL-08-17", "TableNotNamed", "refuses a malformed table without naming the variable", "tessInit",
              table_not_named),
    overriding("COLL-08-17", "table_before_algorithm", "lets the table win over the algorithm",
               lambda found: replace(found, algorithm=None) if found.table else found),
    choosing("COLL-03.2-06", "autotuner_over_environment", "lets the autotuner win over the environment",
             with_arguments(tuned_first)),
    choosing("COLL-03.2-06", "environment_as_hint", "tells the environment as a hint", sourced("environment", "hint")),
]  # fmt: skip

DEFAULTS = [
    planning_so("COLL-08-12", "elements_counted", "goes by elements", counting_elements),
]

TRACES = [
    planning_so("COLL-03.2-04", "named_passed_over", "passes over the algorithm that a rank names",
        lambda *arguments: PLAN(*arguments[:6])),
    replaced("RT-13-08", "names no algorithm in traces", make,
        ("mesh.trace._slice", lambda record, row: SLICE(replace(record, algorithm=None), row)), name="not_traced"),
    replaced("RT-13-06", "names ring in every trace", make,
        ("mesh.trace._slice", lambda record, row: SLICE(replace(record, algorithm=record.algorithm and "ring"), row)),
        name="ring_traced"),
]  # fmt: skip
