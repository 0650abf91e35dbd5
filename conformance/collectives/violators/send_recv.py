"""Sends to wrong ranks (collectives specification, 2.1)."""

from dataclasses import replace

from tessera_reference.abi.status import Failure
from tessera_reference.adapter import collectives
from tessera_reference.collectives.operations import Result

from ...ir.violators.changes import changed

SEND = collectives.send_recv


def one_by_one(buffers, pairs, chunk=None):
    usual, held = SEND(buffers, pairs, chunk), list(buffers)
    for source, target in pairs:
        held[target] = held[source]
    return replace(usual, outputs=held)


def reversed_pairs(buffers, pairs, chunk=None):
    held = list(buffers)
    for source, target in pairs:
        held[source] = buffers[target]
    return replace(SEND(buffers, pairs, chunk), outputs=held)


def everywhere(buffers, pairs, chunk=None):
    usual = SEND(buffers, pairs, chunk)
    named = {rank for pair in pairs for rank in pair}
    spread = [buffers[pairs[0][0]] if pairs and rank not in named else x for rank, x in enumerate(usual.outputs)]
    return replace(usual, outputs=spread)


def lenient(buffers, pairs, chunk=None):
    try:
        return SEND(buffers, pairs, chunk)
    except Failure:
        return Result(list(buffers), list)


def without_tail(buffers, pairs, chunk=None):
    usual = SEND(buffers, pairs, chunk)
    return replace(usual, travelled=lambda: usual.sent[:-1])


def sending(name, description, send):
    """Return a violation of a send."""
    return changed("COLL-02.1-03", f"send_{name}", description, ("adapter.collectives.send_recv", send))


VIOLATIONS = [
    sending("one_by_one", "sends on what has just come", one_by_one),
    sending("reversed", "sends from receivers to senders", reversed_pairs),
    sending("everywhere", "sends to ranks outside of all pairs", everywhere),
    sending("lenient", "accepts pairs that cannot meet", lenient),
    sending("without_tail", "does not send the last chunk", without_tail),
]
