"""Answers that follow a listed alternative of an interpretation of collectives: other readings, no failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.protocol import Fault, Observation, Rejected, Returned, Unsupported
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor

SUMS_AND_EXTREMES = ("sum", "max", "min")


def refuses_remainders(observation: Observation, operation: str, count: int, ranks: int) -> bool:
    """True if a buffer that its ranks do not divide has no shares, as AMB-RT-04 says of the runtime."""
    has_shares = operation in ("reduce_scatter", "all_gather") and count % ranks > 0
    return has_shares and isinstance(observation, Rejected)


def recognize_operators(check: Check, observation: Observation, op: str) -> None:
    """An implementation without products and means: AMB-COLL-31."""
    lacking = isinstance(observation, Rejected | Unsupported) and op not in SUMS_AND_EXTREMES
    check.reading("AMB-COLL-31", "only sum, max and min", lacking)


def recognize_bare_fp8(check: Check, observation: Observation, wire: str) -> None:
    """An implementation whose fp8 formats have full names alone: AMB-COLL-07."""
    check.reading("AMB-COLL-07", "refuse bare fp8", wire == "fp8" and isinstance(observation, Rejected))


def recognize_chunk_orders(
    impl: Implementation, check: Check, call: Mapping[str, Any], chunk: int, outputs: Sequence[Tensor]
) -> None:
    """An element's order follows from its place in its chunk, which is a collective of its own: AMB-COLL-29."""
    inputs: Sequence[Tensor] = call["inputs"]
    pieces: list[bytes] = [b""] * len(inputs)
    for first in range(0, inputs[0].size, chunk):
        parts = [Tensor.from_words(x.dtype, (len(words),), words) for x in inputs if (words := _slice(x, first, chunk))]
        answer = check.returns(impl.collectives.run(**{**call, "inputs": parts}))["outputs"]
        pieces = [data + part.data for data, part in zip(pieces, answer, strict=True)]
    check.reading("AMB-COLL-29", "the place in the chunk", pieces == [output.data for output in outputs])


def recognize_unquantized(check: Check, observation: Observation, plain: Sequence[Tensor]) -> None:
    """Data that a wire would round travel as they are, where bits are promised: AMB-COLL-05."""
    whole = isinstance(observation, Returned) and [output.data for output in observation.value["outputs"]] == [
        tensor.data for tensor in plain
    ]
    check.reading("AMB-COLL-05", "silently sent unquantized", whole)


def recognize_unnoticed(check: Check, observation: Observation, awaited: bool) -> None:
    """A collective that never completes is noticed by nobody, or waited for without an end: AMB-COLL-50."""
    check.reading("AMB-COLL-50", "dropped unnoticed", isinstance(observation, Returned) and not awaited)
    check.reading("AMB-COLL-50", "a hang", isinstance(observation, Fault) and observation.kind == "hang")


def _slice(x: Tensor, first: int, count: int) -> list[int]:
    words: list[int] = x.words().tolist()
    return words[first : first + count]
