"""Buffers that go from one rank to another (collectives specification, 2.1; AMB-COLL-77)."""

from __future__ import annotations

import pytest

from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

pytestmark = [feature("operation-access"), clause("COLL-02.1-03")]

PAIRS = {
    "a_pair": [[0, 3]],
    "an_exchange": [[1, 2], [2, 1]],
    "around": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]],
    "backwards": [[0, 4], [1, 0], [2, 1], [3, 2], [4, 3]],
    "one_to_all": [[2, 0], [2, 1], [2, 3], [2, 4]],
    "a_chain": [[3, 1], [1, 0]],
    "nothing": [],
}


def brought(dtype: str, count: int = 7) -> list[Tensor]:
    """Return the tensor of each of five ranks."""
    return [counted(dtype, (count,), seed=990 + rank) for rank in range(5)]


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp8_e5m2", "int64", "bool"])
@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_a_rank_receives_what_another_brought(impl, check, pairs, dtype):
    """A rank sends its own operand, also where it receives; ranks outside of all pairs wait for nothing."""
    inputs = brought(dtype)
    for chunk in (None, 1, 3, 100):
        given = {} if chunk is None else {"chunk": chunk}
        outputs = check.returns(impl.collectives.send_recv(inputs=inputs, pairs=pairs, **given))["outputs"]
        check.equal(len(outputs), 5, "the number of results")
        senders = {target: source for source, target in pairs}
        for rank, output in enumerate(outputs):
            check.bits(output, inputs[senders.get(rank, rank)], f"rank {rank}, chunks of {chunk}")


@feature("collective-messages")
@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_each_element_is_sent_once(impl, check, pairs):
    """From its sender to its receiver, in chunks; no other rank has a part in it."""
    for chunk in (1, 3, 7, 8):
        observed = impl.collectives.send_recv(inputs=brought("fp32"), pairs=pairs, chunk=chunk, messages=True)
        messages = check.returns(observed)["messages"]
        sent = sorted(
            [message["source"], message["target"], place]
            for message in messages
            for place in range(message["first"], message["first"] + message["count"])
        )
        check.equal(sent, sorted([source, target, p] for source, target in pairs for p in range(7)), "what is sent")
        for message in messages:
            check.true(message["count"] <= chunk, f"at most {chunk} elements together", message)


MISTAKES = {"to_itself": [[1, 1]], "unknown_source": [[5, 0]], "unknown_target": [[0, 5]], "negative": [[-1, 0]]}
MISTAKES |= {"received_twice": [[0, 2], [1, 2]], "the_same_twice": [[0, 1], [0, 1]]}


@feature("argument-checks")
@pytest.mark.parametrize("pairs", MISTAKES.values(), ids=MISTAKES)
def test_pairs_that_cannot_meet_are_refused(impl, check, pairs):
    """Such pairs are TESS_ERR_INVALID_VALUE; without the mistake they exchange their data."""
    check.returns(impl.collectives.send_recv(inputs=brought("fp32"), pairs=[[0, 1]]))
    check.status(impl.collectives.send_recv(inputs=brought("fp32"), pairs=pairs), "TESS_ERR_INVALID_VALUE")


@feature("argument-checks")
@pytest.mark.parametrize(
    "other", [counted("fp32", (8,), seed=1), counted("fp32", (7, 1), seed=1), counted("bf16", (7,), seed=1)]
)
def test_a_receiver_with_another_buffer_is_a_mismatch(impl, check, other):
    """A buffer of another count, shape or dtype is a mismatch; a rank outside of all pairs may have any buffer."""
    inputs = [*brought("fp32")[:4], other]
    check.returns(impl.collectives.send_recv(inputs=inputs, pairs=[[0, 1], [1, 2]]))
    for pair in ([0, 4], [4, 0]):
        check.status(impl.collectives.send_recv(inputs=inputs, pairs=[pair]), "TESS_ERR_COLLECTIVE_MISMATCH")
