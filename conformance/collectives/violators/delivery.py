"""Messages combined in order of arrival, sent too early, overwriting or arriving twice (runtime spec 6 and 13)."""

from dataclasses import replace

from tessera_conformance.strength import Around
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed
from .changes import asked, at


def without(clause, name, description, rule):
    """Return a violation in which no message waits for the others of one rule."""
    unordered = ("collectives.delivery._order", Around(lambda usual: usual.__wrapped__))
    return changed(clause, name, description, (f"collectives.delivery.{rule}", lambda move, message: False), unordered)


def doubled(usual, move, *given):
    usual(move, *given)
    if move.combines and (move.step, move.source) == (0, 1):
        usual(move, *given)


def unsent(usual, operation, brought, *given, **named):
    stale = [array.values.copy() for array in usual(operation, brought, *given, **named)]
    for values in stale[:-1] if operation == "all_gather" else ():
        values[-1] = values[0]
    return [Array(brought[0].dtype, values) for values in stale]


finishing, delivered = at("collectives.delivery._finish"), at("collectives.operations.delivered")

VIOLATIONS = [
    without("RT-06-04", "by_arrival", "combines contributions in the order of arrival", "_combines_after"),
    without("LANG-09-05", "as_they_come", "combines contributions in the order of arrival", "_combines_after"),
    without("RT-06-03", "too_early", "sends a buffer before its input is there", "_leaves_after"),
    asked("RT-13-01", "ZerosFrom32", "takes ranks past 32 for zeros", "run", lambda given: given | {"inputs":
        [*given["inputs"][:32], *(replace(x, data=bytes(len(x.data))) for x in given["inputs"][32:])]}),
    finishing("RT-13-01", "delivers_twice", "delivers a message twice", doubled),
    finishing("RT-13-01", "from_10_ranks", "loses what ranks past 10 send",
        lambda usual, move, *given: usual(move, *given) if move.source < 10 else None),
    delivered("COLL-07.2-02", "near_blocks", "exchanges blocks of ranks up to 8 apart",
        lambda usual, operation, brought, sent, **named: usual(operation, brought, [
            move for move in sent if operation != "all_to_all" or abs(move.source - move.target) <= 8], **named)),
    delivered("RT-13-01", "stale_gather", "leaves a place as it was", unsent),
    delivered("RT-06-04", "one_order_of_a_thousand", "combines canonically in one order of a thousand",
        lambda usual, *given, seed, level, **named: usual(
            *given, **named, seed=seed, level="strict" if seed == 613 else level)),
    delivered("LANG-09-06", "delivers_partial_sums", "combines on the way under strict",
        lambda usual, *given, **named: usual(*given, **named | {"level": "deterministic"})),
    delivered("LANG-09-05", "delivers_contributions", "combines canonically under deterministic",
        lambda usual, *given, **named: usual(*given, **named | {"level": "strict"})),
]  # fmt: skip
