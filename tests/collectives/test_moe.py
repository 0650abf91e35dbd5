"""Tokens to their experts: each arrives once, where its expert is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.queues import dispatch
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

FP32 = dtype("fp32")


def tokens(counts: list[int], features: int = 2) -> list[Array]:
    """Rows of a number of their own, from 1."""
    found, first = [], 1
    for count in counts:
        rows = np.arange(first, first + count, dtype=np.float32)
        found.append(Array(FP32, np.repeat(rows, features).reshape(count, features)))
        first += count
    return found


@given(data=st.data(), ranks=st.integers(1, 5), each=st.integers(1, 3))
def test_every_token_arrives_once_where_its_expert_is(data: st.DataObject, ranks: int, each: int) -> None:
    chosen = [data.draw(st.lists(st.integers(0, ranks * each - 1), max_size=6)) for _ in range(ranks)]
    inputs = tokens([len(own) for own in chosen])
    wanted = Counter(
        (float(row[0]), e)
        for brought, own in zip(inputs, chosen, strict=True)
        for row, e in zip(brought.values, own, strict=True)
    )
    arrived: Counter[tuple[float, int]] = Counter()
    for bucket in dispatch(inputs, chosen, ranks * each):
        for rank, output in enumerate(bucket.outputs):
            assert output.shape == (ranks * bucket.rows, 2)
            arrived.update((float(row[0]), bucket.experts[rank]) for row in output.values if row[0])
    assert arrived == wanted


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"count": 0}, Status.TESS_ERR_INVALID_VALUE),
        ({"count": 3}, Status.TESS_ERR_INVALID_VALUE),
        ({"count": 1 << 13}, Status.TESS_ERR_INVALID_VALUE),
        ({"experts": [[0]]}, Status.TESS_ERR_INVALID_VALUE),
        ({"experts": [[0], [-1]]}, Status.TESS_ERR_INVALID_VALUE),
        ({"inputs": [*tokens([1]), *tokens([1], 3)]}, Status.TESS_ERR_COLLECTIVE_MISMATCH),
        ({"inputs": [*tokens([1]), Array(FP32, np.zeros(2, np.float32))]}, Status.TESS_ERR_INVALID_VALUE),
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, Any], status: Status) -> None:
    with pytest.raises(Failure) as refused:
        dispatch(**{"inputs": tokens([1, 1]), "experts": [[0], [1]], "count": 2, **wrong})
    assert refused.value.status == status
