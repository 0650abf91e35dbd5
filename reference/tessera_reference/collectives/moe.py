"""Tokens to their experts: one bucket of experts at a time, by an all-to-all of its own (COLL-07.2-01 to -04).

Expert e is on rank e // (experts / ranks). Bucket b holds the b-th expert of every rank, so that it is exchanged with
one block for each expert of it: the tokens of that expert, in their order, and rows of zeros up to the length of the
longest block (AMB-COLL-34, -71).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..abi.status import Failure, Status, invalid
from ..numerics.array import Array
from ..numerics.errors import shown
from ..numerics.formats import DType
from ..numerics.rounding import cast
from .operations import run

__all__ = ["Bucket", "dispatch"]


@dataclass(frozen=True)
class Bucket:
    """`experts` of a bucket, by rank; `counts[rank][source]` are the tokens that came; `outputs[rank]` is what came, in
    ranks blocks of `rows` rows (shape ranks x rows, features)."""

    experts: tuple[int, ...]
    rows: int
    counts: tuple[tuple[int, ...], ...]
    outputs: tuple[Array, ...]


def dispatch(
    inputs: Sequence[Array], experts: Sequence[Sequence[int]], count: int, wire: DType | None = None
) -> list[Bucket]:
    """The tokens of every rank (tokens, features), each with its expert, as the ranks of those experts get them.

    A token is cast to the wire's dtype as it is packed. Raises `Failure`: TESS_ERR_INVALID_VALUE for experts that are
    not there or do not divide among ranks, TESS_ERR_COLLECTIVE_MISMATCH where ranks bring other features.
    """
    ranks = len(inputs)
    _require_fit(inputs, experts, count)
    each = count // ranks
    buckets = []
    for bucket in range(each):
        members = tuple(rank * each + bucket for rank in range(ranks))
        chosen = [[[t for t, e in enumerate(own) if e == expert] for expert in members] for own in experts]
        rows = max((len(tokens) for own in chosen for tokens in own), default=0)
        packed = [_packed(tokens, own, rows, wire or tokens.dtype) for tokens, own in zip(inputs, chosen, strict=True)]
        outputs = tuple(run("all_to_all", packed, name="direct").outputs)
        counts = tuple(tuple(len(own[rank]) for own in chosen) for rank in range(ranks))
        buckets.append(Bucket(members, rows, counts, outputs))
    return buckets


def _packed(tokens: Array, blocks: Sequence[Sequence[int]], rows: int, wire: DType) -> Array:
    """The blocks of a rank, each padded with zeros, in the wire's dtype."""
    features = tokens.shape[1]
    packed = np.zeros((len(blocks) * rows, features), tokens.dtype.carrier)
    for place, block in enumerate(blocks):
        packed[place * rows : place * rows + len(block)] = tokens.values[list(block)]
    return cast(Array(tokens.dtype, packed), wire)


def _require_fit(inputs: Sequence[Array], experts: Sequence[Sequence[int]], count: int) -> None:
    ranks = len(inputs)
    if not 1 <= count <= 1 << 12 or count % ranks:
        raise invalid("dispatch", f"{shown(count)} experts for {ranks} ranks", f"a multiple of {ranks}, at most 4096")
    if len(experts) != ranks:
        raise invalid("dispatch", f"experts of {len(experts)} ranks", f"those of {ranks}")
    for problem in _problems(inputs, experts, count):
        raise problem


def _problems(inputs: Sequence[Array], experts: Sequence[Sequence[int]], count: int) -> Iterator[Failure]:
    first = inputs[0]
    for rank, (tokens, own) in enumerate(zip(inputs, experts, strict=True)):
        if len(tokens.shape) != 2:
            yield invalid("dispatch", f"rank {rank} brings {len(tokens.shape)} axes", "tokens and their features")
        elif (tokens.dtype, tokens.shape[1]) != (first.dtype, first.shape[1]):
            given = f"rank {rank} brings {tokens.dtype}{list(tokens.shape)}"
            expected = f"{first.dtype} of {first.shape[1]} features"
            yield Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, "dispatch", given, expected)
        elif len(own) != tokens.shape[0]:
            yield invalid("dispatch", f"{len(own)} experts of rank {rank}", f"one for each of {tokens.shape[0]} tokens")
        else:
            for token, expert in enumerate(own):
                if not 0 <= expert < count:
                    given = f"expert {shown(expert)} of token {token} of rank {rank}"
                    yield invalid("dispatch", given, f"0 to {count - 1}")
