"""Pipelines whose collectives start too early or too late, or are awaited without a use; mixed buckets.

Collectives specification, 7.
"""

from collections.abc import Sequence
from dataclasses import replace

from tessera_reference.adapter import collectives
from tessera_reference.collectives import queues
from tessera_reference.collectives.queues import Collective, Compute
from tessera_reference.numerics.formats import dtype

from ...ir.violators.changes import changed

PIPELINES, DISPATCH, CAST = dict(collectives.PIPELINES), queues.dispatch, queues.cast


def pipeline(clause, name, description, change):
    """Return a violation with changed units of pipelines."""

    def changing(kind):
        def units(*arguments):
            usual = {pipeline.id: pipeline for pipeline in PIPELINES[kind](*arguments)}
            units = []
            for unit in usual.values():
                one = change(unit, usual)
                units += one if isinstance(one, Sequence) else [one]
            return units

        return units

    other = {kind: changing(kind) for kind in PIPELINES}
    return changed(clause, name, description, ("adapter.collectives.PIPELINES", other))


def place(unit):
    """Return the name of a unit without its number, and the number."""
    name = unit.id.rstrip("0123456789")
    return name, int(unit.id[len(name) :] or 0)


def after_that_of_the_next_layer(waiting, needed):
    """Return a change that makes a unit of a layer wait for one of the next layer."""

    def change(unit, units):
        name, number = place(unit)
        following = f"{needed}{number + 1}"
        waits = name == waiting and following in units
        return replace(unit, after=(*unit.after, following)) if waits else unit

    return change


def gathered_first(unit, units):
    """Gather all weights at the beginning."""
    return replace(unit, after=()) if place(unit)[0] == "gather" else unit


def a_layer_late(unit, units):
    """Gather the weights of a layer after the end of the layer before."""
    name, number = place(unit)
    return replace(unit, after=(f"layer{number - 1}",)) if name == "gather" and number else unit


def all_dispatched(unit, units):
    every = tuple(subject for subject in units if subject.startswith("dispatch"))
    return replace(unit, after=every) if place(unit)[0] == "expert" else unit


def packed_before(unit, units):
    name, number = place(unit)
    if name != "dispatch":
        return unit
    return [Compute(f"pack{number}", 10**6, unit.ranks, unit.after), replace(unit, after=(f"pack{number}",))]


def dispatching(clause, name, description, dispatch):
    """Return a violation with another dispatch of tokens."""
    return changed(clause, name, description, ("adapter.collectives.dispatch", dispatch))


def not_checked(inputs, experts, count, wire=None):
    return DISPATCH(inputs, [[min(e, count - 1) for e in own] for own in experts], count, wire)


VIOLATIONS = [
    pipeline("COLL-07.1-01", "all_at_the_end", "scatters gradients when all are computed",
        lambda unit, units: replace(unit, after=("backward0",)) if place(unit)[0] == "scatter" else unit),
    changed("COLL-07.1-02", "nine_chunks", "has nine chunks in flight", ("adapter.collectives.INFLIGHT", 9)),
    pipeline("COLL-07.1-03", "weights_all_first", "gathers all weights at the beginning", gathered_first),
    changed("COLL-07.1-04", "small_chunks", "cuts gradients into 256 KiB", ("collectives.queues.LEAST_CHUNK", 1 << 18)),
    changed("COLL-07.1-04", "large_chunks", "cuts gradients into 4 MiB", ("collectives.queues.MOST_CHUNK", 1 << 22)),
    pipeline("COLL-07.3-01", "prefetch_one_layer_late", "gathers weights when the layer before has ended",
        a_layer_late),
    pipeline("COLL-07.3-02", "await_at_issue", "awaits weights where they are asked for",
        after_that_of_the_next_layer("layer", "gather")),
    dispatching("COLL-07.2-01", "a_row_at_least", "has a row for buckets without tokens",
        lambda *arguments: [replace(message, rows=message.rows or 1) for message in DISPATCH(*arguments)]),
    dispatching("COLL-07.2-01", "any_expert", "takes experts that are not there", not_checked),
    pipeline("COLL-07.2-02", "buckets_together", "lets experts wait for all buckets", all_dispatched),
    pipeline("COLL-07.2-03", "packed_before_the_send", "packs in a computation before the send", packed_before),
    pipeline("COLL-07.2-04", "cast_after_the_send", "sends fp32 and casts what arrives",
        lambda unit, units: replace(unit, bytes=2 * unit.bytes) if isinstance(unit, Collective) else unit),
    dispatching("COLL-07.2-04", "always_bf16", "sends bf16 whatever the dtype",
        lambda inputs, experts, count, wire=None: DISPATCH(inputs, experts, count, wire and dtype("bf16"))),
    changed("COLL-07.2-04", "cast_twice", "rounds tokens twice",
        ("collectives.queues.cast", lambda array, wire: CAST(CAST(array, dtype("fp16")), wire))),
]  # fmt: skip
