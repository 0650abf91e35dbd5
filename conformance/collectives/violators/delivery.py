"""Messages combined in order of arrival, sent too early, overwriting or arriving twice (runtime spec 6 and 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation, violates
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.collectives import delivery
from tessera_reference.collectives.delivery import Combine, Sent, delivered
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed

Values = delivery.Values
FINISH, GATHERED = delivery._finish, delivery._gathered


def without(clause: str, name: str, description: str, rule: str) -> Violation:
    """Return a violation in which no message waits for the others of one rule."""
    return changed(
        clause,
        name,
        description,
        (delivery, rule, lambda move, message: False),
        ("collectives.delivery._order", delivery._order.__wrapped__),
    )


def doubled(move: Sent, value: Values, type_: Values, combine: Combine) -> None:
    FINISH(move, value, type_, combine)
    if move.combines and (move.step, move.source) == (0, 1):
        FINISH(move, value, type_, combine)


def lost(move: Sent, value: Values, type_: Values, combine: Combine) -> None:
    short = move if move.target else move._replace(elements=move.elements - 1)
    FINISH(short, value[..., : short.elements], type_, combine)


def unsent(brought: Sequence[Array], sent: Any, seed: int) -> list[Array]:
    stale = [array.values.copy() for array in GATHERED(brought, sent, seed)]
    for values in stale[:-1]:
        values[-1] = values[0]
    return [Array(brought[0].dtype, values) for values in stale]


def rarely(*arguments: Any, seed: int, level: str, **named: Any) -> Any:
    return delivered(*arguments, **named, seed=seed, level="strict" if seed == 613 else level)


def from_10(move: Sent, value: Values, held: Values, combine: Combine) -> None:
    if move.source < 10:
        FINISH(move, value, held, combine)


@violates("RT-13-01", "takes ranks past 32 for zeros")
class ZerosFrom32(ReferenceAdapter):
    def collectives_run(self, *, inputs: Sequence[Any], **given: Any) -> dict[str, Any]:
        zeros = [replace(x, data=bytes(len(x.data))) for x in inputs[32:]]
        return super().collectives_run(inputs=[*inputs[:32], *zeros], **given)


def near_blocks(first: Array, flat: Values, moves: Sequence[Sent], seed: int) -> list[Array]:
    return EXCHANGED(first, flat, [move for move in moves if abs(move.source - move.target) <= 8], seed)


EXCHANGED = delivery._exchanged


def at_level(clause: str, name: str, description: str, level: str) -> Violation:
    """Return a violation that delivers as at one level, whichever is requested."""

    def change(*arguments: Any, **named: Any) -> Any:
        return delivered(*arguments, **{**named, "level": level})

    return changed(clause, name, description, ("collectives.operations.delivered", change))


VIOLATIONS: list[Violation] = [
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
