"""Sends to wrong ranks (collectives specification, 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation
from tessera_reference.abi.status import Failure
from tessera_reference.adapter import collectives
from tessera_reference.collectives.operations import Result
from tessera_reference.numerics.array import Array

from ...ir.violators.changes import changed

SEND = collectives.send_recv
Pairs = Sequence[Sequence[int]]


def one_by_one(buffers: Sequence[Array], pairs: Pairs, chunk: int | None = None) -> Result:
    usual, held = SEND(buffers, pairs, chunk), list(buffers)
    for source, target in pairs:
        held[target] = held[source]
    return replace(usual, outputs=held)


def reversed_pairs(buffers: Sequence[Array], pairs: Pairs, chunk: int | None = None) -> Result:
    held = list(buffers)
    for source, target in pairs:
        held[source] = buffers[target]
    return replace(SEND(buffers, pairs, chunk), outputs=held)


def everywhere(buffers: Sequence[Array], pairs: Pairs, chunk: int | None = None) -> Result:
    usual = SEND(buffers, pairs, chunk)
    named = {rank for pair in pairs for rank in pair}
    spread = [buffers[pairs[0][0]] if pairs and rank not in named else x for rank, x in enumerate(usual.outputs)]
    return replace(usual, outputs=spread)


def lenient(buffers: Sequence[Array], pairs: Pairs, chunk: int | None = None) -> Result:
    try:
        return SEND(buffers, pairs, chunk)
    except Failure:
        return Result(list(buffers), list)


def without_tail(buffers: Sequence[Array], pairs: Pairs, chunk: int | None = None) -> Result:
    usual = SEND(buffers, pairs, chunk)
    return replace(usual, travelled=lambda: usual.sent[:-1])


def sending(name: str, description: str, send: Callable[..., Any]) -> Violation:
    """Return a violation of a send."""
    return changed("COLL-02.1-03", f"send_{name}", description, ("adapter.collectives.send_recv", send))


VIOLATIONS = [
    sending("one_by_one", "sends on what has just come", one_by_one),
    sending("reversed", "sends from receivers to senders", reversed_pairs),
    sending("everywhere", "sends to ranks outside of all pairs", everywhere),
    sending("lenient", "accepts pairs that cannot meet", lenient),
    sending("without_tail", "does not send the last chunk", without_tail),
]
