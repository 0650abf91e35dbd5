"""Pipelines whose collectives start too early or too late, or are awaited without a use; mixed buckets.

Collectives specification, 7.
"""

from dataclasses import replace

from tessera_conformance.strength import Around
from tessera_reference.collectives.queues import Collective, Compute
from tessera_reference.numerics.formats import dtype

from ...ir.violators.changes import changed
from .changes import at, result_of


def pipeline(clause, name, description, change):
    """Return a violation with other units of pipelines.

    `change` gets a unit, its name without the number, the number, and all units by name; it returns those to run.
    """

    def changing(pipeline):
        def units(*given):
            usual = {unit.id: unit for unit in pipeline(*given)}
            places = [(unit, unit.id.rstrip("0123456789")) for unit in usual.values()]
            return [
                other for unit, kind in places for other in change(unit, kind, int(unit.id[len(kind) :] or 0), usual)
            ]

        return units

    others = Around(lambda usual: {kind: changing(pipeline) for kind, pipeline in usual.items()})
    return changed(clause, name, description, ("adapter.collectives.PIPELINES", others))


def waiting(clause, name, description, after):
    """Return a violation with units that wait for others."""
    return pipeline(clause, name, description, lambda unit, *place: [replace(unit, after=after(unit, *place))])


def packed_before(unit, kind, number, units):
    if kind != "dispatch":
        return [unit]
    return [Compute(f"pack{number}", 10**6, unit.ranks, unit.after), replace(unit, after=(f"pack{number}",))]


dispatching = at("adapter.collectives.dispatch")

VIOLATIONS = [
    waiting("COLL-07.1-01", "all_at_the_end", "scatters gradients when all are computed",
        lambda unit, kind, number, units: ("backward0",) if kind == "scatter" else unit.after),
    changed("COLL-07.1-02", "nine_chunks", "has nine chunks in flight", ("adapter.collectives.INFLIGHT", 9)),
    waiting("COLL-07.1-03", "weights_all_first", "gathers all weights at the beginning",
        lambda unit, kind, number, units: () if kind == "gather" else unit.after),
    changed("COLL-07.1-04", "small_chunks", "cuts gradients into 256 KiB", ("collectives.queues.LEAST_CHUNK", 1 << 18)),
    changed("COLL-07.1-04", "large_chunks", "cuts gradients into 4 MiB", ("collectives.queues.MOST_CHUNK", 1 << 22)),
    waiting("COLL-07.3-01", "prefetch_one_layer_late", "gathers weights when the layer before has ended",
        lambda unit, kind, number, units: (f"layer{number - 1}",) if kind == "gather" and number else unit.after),
    waiting("COLL-07.3-02", "await_at_issue", "awaits weights where they are asked for",
        lambda unit, kind, number, units: (
            *unit.after, *({f"gather{number + 1}"} & units.keys() if kind == "layer" else ()))),
    result_of("adapter.collectives.dispatch")("COLL-07.2-01", "a_row_at_least", "has a row for buckets without tokens",
        lambda found: [replace(message, rows=message.rows or 1) for message in found]),
    dispatching("COLL-07.2-01", "any_expert", "takes experts that are not there",
        lambda usual, inputs, experts, count, wire: usual(
            inputs, [[min(expert, count - 1) for expert in own] for own in experts], count, wire)),
    waiting("COLL-07.2-02", "buckets_together", "lets experts wait for all buckets",
        lambda unit, kind, number, units: (
            tuple(name for name in units if name.startswith("dispatch")) if kind == "expert" else unit.after)),
    pipeline("COLL-07.2-03", "packed_before_the_send", "packs in a computation before the send", packed_before),
    pipeline("COLL-07.2-04", "cast_after_the_send", "sends fp32 and casts what arrives",
        lambda unit, *place: [replace(unit, bytes=2 * unit.bytes) if isinstance(unit, Collective) else unit]),
    dispatching("COLL-07.2-04", "always_bf16", "sends bf16 whatever the dtype",
        lambda usual, *given: usual(*given[:3], given[3] and dtype("bf16"))),
    at("collectives.queues.cast")("COLL-07.2-04", "cast_twice", "rounds tokens twice",
        lambda usual, array, wire: usual(usual(array, dtype("fp16")), wire)),
]  # fmt: skip
