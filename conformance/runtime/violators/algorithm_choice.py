"""Choices of algorithms that ignore the environment or the table, or are not run (RT-13; COLL 3.1, 3.2 and 8)."""

from dataclasses import replace

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around
from tessera_reference.runtime import collectives, contexts

from .algorithms import planning_so
from .changes import afterwards, answering, broken, result


def choosing(clause, name, description, choose):
    """Return a violation with another choice in the runtime alone."""
    return broken(clause, name, description, "runtime.collectives.choose", choose)


def tuned_first(usual):
    def choose(name, size, machine, groups, hint, overrides, tuned):
        hint = hint or tuned(collectives.followed(name, machine, groups))
        return usual(name, size, machine, groups, hint, overrides, tuned)

    return choose


def counting_elements(usual, mesh, collective, count, dtype, axis, cache, named=None):
    count = count if named else -(-count // dtype.storage_bytes)
    return usual(mesh, collective, count, dtype, axis, cache, named)


def tracing(clause, name, description, algorithm):
    """Return a violation whose traces name another algorithm."""
    return broken(clause, name, description, "mesh.trace._slice", Around(lambda usual: lambda record, row:
        usual(replace(record, algorithm=algorithm(record)), row)))  # fmt: skip


def read_late(adapter, call, given):
    for _, context in adapter.runtime.handles.live("context"):
        overrides = contexts.read_overrides("tessInit", given["variables"])
        context.environment = replace(context.environment, collectives=overrides)


def table_not_named(adapter, call, given):
    try:
        return call(**given)
    except Refusal as refusal:
        message = refusal.outcome.message.replace("TESSERA_COLL_TABLE", "the environment")
        raise Refusal(refusal.outcome.code, "call", message) from None


VIOLATORS = [
    answering("RT-13-08", "PlansOtherwise", "answers the plan of the table where it runs by another",
        "tessxCollectivePlan", lambda adapter, call, given: call(**(given | {"count": 2 * given["count"]}))),
    answering("COLL-03.2-06", "ReadLate", "reads TESSERA_COLL_ALGO when a collective is planned",
        "tessxSetEnvironment", afterwards(read_late)),
    answering("COLL-08-17", "TableNotNamed", "refuses a malformed table without naming the variable", "tessInit",
        table_not_named),
    broken("COLL-08-17", "table_before_algorithm", "lets the table win over the algorithm",
        "runtime.contexts.read_overrides",
        result(lambda found: replace(found, algorithm=None) if found.table else found)),
    choosing("COLL-03.2-06", "autotuner_over_environment", "lets the autotuner win over the environment",
        Around(tuned_first)),
    choosing("COLL-03.2-06", "environment_as_hint", "tells the environment as a hint",
        result(lambda found: replace(found, source="hint") if found.source == "environment" else found)),
    planning_so("COLL-08-12", "elements_counted", "goes by elements", counting_elements),
    planning_so("COLL-03.2-04", "named_passed_over", "passes over the algorithm that a rank names",
        lambda usual, *arguments: usual(*arguments[:6])),
    tracing("RT-13-08", "not_traced", "names no algorithm in traces", lambda record: None),
    tracing("RT-13-06", "ring_traced", "names ring in every trace", lambda record: record.algorithm and "ring"),
]  # fmt: skip
