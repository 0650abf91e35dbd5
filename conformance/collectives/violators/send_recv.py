"""Sends to wrong ranks (collectives specification, 2.1)."""

from dataclasses import replace

from tessera_reference.abi.status import Failure
from tessera_reference.collectives.operations import Result

from .changes import at


def one_by_one(usual, buffers, pairs, chunk):
    result, held = usual(buffers, pairs, chunk), list(buffers)
    for source, target in pairs:
        held[target] = held[source]
    return replace(result, outputs=held)


def reversed_pairs(usual, buffers, pairs, chunk):
    result, held = usual(buffers, pairs, chunk), list(buffers)
    for source, target in pairs:
        held[source] = buffers[target]
    return replace(result, outputs=held)


def everywhere(usual, buffers, pairs, chunk):
    result, named = usual(buffers, pairs, chunk), {rank for pair in pairs for rank in pair}
    spread = [buffers[pairs[0][0]] if pairs and rank not in named else x for rank, x in enumerate(result.outputs)]
    return replace(result, outputs=spread)


def lenient(usual, buffers, pairs, chunk):
    try:
        return usual(buffers, pairs, chunk)
    except Failure:
        return Result(list(buffers), list)


def without_tail(usual, *given):
    result = usual(*given)
    return replace(result, travelled=lambda: result.sent[:-1])


sending = at("adapter.collectives.send_recv")

VIOLATIONS = [
    sending("COLL-02.1-03", "send_one_by_one", "sends on what has just come", one_by_one),
    sending("COLL-02.1-03", "send_reversed", "sends from receivers to senders", reversed_pairs),
    sending("COLL-02.1-03", "send_everywhere", "sends to ranks outside of all pairs", everywhere),
    sending("COLL-02.1-03", "send_lenient", "accepts pairs that cannot meet", lenient),
    sending("COLL-02.1-03", "send_without_tail", "does not send the last chunk", without_tail),
]
