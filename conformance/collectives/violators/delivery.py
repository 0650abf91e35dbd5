"""Messages combined in order of arrival, sent too early, overwriting or arriving twice (runtime spec 6 and 13)."""

from dataclasses import replace

from tessera_conformance.strength import violates
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.collectives import delivery
from tessera_reference.collectives.delivery import delivered
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed

FINISH, GATHERED = delivery._finish, delivery._gathered


def without(clause, name, description, rule):
    """Return a violation in which no message waits for the others of one rule."""
    return changed(
        clause,
        name,
        description,
        (delivery, rule, lambda move, message: False),
        ("collectives.delivery._order", delivery._order.__wrapped__),
    )


def doubled(move, value, type_, combine):
    FINISH(move, value, type_, combine)
    if move.combines and (move.step, move.source) == (0, 1):
        FINISH(move, value, type_, combine)


def unsent(brought, sent, seed):
    stale = [array.values.copy() for array in GATHERED(brought, sent, seed)]
    for values in stale[:-1]:
        values[-1] = values[0]
    return [Array(brought[0].dtype, values) for values in stale]


def rarely(*arguments, seed, level, **named):
    return delivered(*arguments, **named, seed=seed, level="strict" if seed == 613 else level)


def from_10(move, value, held, combine):
    if move.source < 10:
        FINISH(move, value, held, combine)


@violates("RT-13-01", "takes ranks past 32 for zeros")
class ZerosFrom32(ReferenceAdapter):
    def collectives_run(self, *, inputs, **given):
        zeros = [replace(x, data=bytes(len(x.data))) for x in inputs[32:]]
        return super().collectives_run(inputs=[*inputs[:32], *zeros], **given)


def near_blocks(first, flat, moves, seed):
    return EXCHANGED(first, flat, [move for move in moves if abs(move.source - move.target) <= 8], seed)


EXCHANGED = delivery._exchanged


def at_level(clause, name, description, level):
    """Return a violation that delivers as at one level, whichever is requested."""

    def change(*arguments, **named):
        return delivered(*arguments, **{**named, "level": level})

    return changed(clause, name, description, ("collectives.operations.delivered", change))


VIOLATIONS = [
    without("RT-06-04", "by_arrival", "combines contributions in the order of arrival", "_combines_after"),
    without("LANG-09-05", "as_they_come", "combines contributions in the order of arrival", "_combines_after"),
    without("RT-06-03", "too_early", "sends a buffer before its input is there", "_leaves_after"),
    changed("RT-13-01", "delivers_twice", "delivers a message twice", ("collectives.delivery._finish", doubled)),
    changed("RT-13-01", "from_10_ranks", "loses what ranks past 10 send", ("collectives.delivery._finish", from_10)),
    changed("COLL-07.2-02", "near_blocks", "exchanges blocks of ranks up to 8 apart",
        ("collectives.delivery._exchanged", near_blocks)),
    changed("RT-13-01", "stale_gather", "leaves a place as it was", ("collectives.delivery._gathered", unsent)),
    changed("RT-06-04", "one_order_of_a_thousand", "combines canonically in one order of a thousand",
        ("collectives.operations.delivered", rarely)),
    at_level("LANG-09-06", "delivers_partial_sums", "combines on the way under strict", "deterministic"),
    at_level("LANG-09-05", "delivers_contributions", "combines canonically under deterministic", "strict"),
]  # fmt: skip
