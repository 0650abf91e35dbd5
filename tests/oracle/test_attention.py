"""Attention as one operation, against steps that are confirmed elsewhere, and its bound against other ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

Values = Any


def tensor(values: Values) -> Tensor:
    values = np.ascontiguousarray(values, "<f4")
    return Tensor("fp32", values.shape, values.tobytes())


def test_in_fp32_it_is_the_program_of_four_statements() -> None:
    q, k, v = counted("fp32", (5, 6), 1), counted("fp32", (7, 6), 2), counted("fp32", (7, 3), 3)
    assert oracle.flash_attention(q, k, v, scale=0.25) == oracle.attention(q, k, v, factor="0.25")
    assert oracle.flash_attention(q, k, v, scale=0.25, block=2) == oracle.flash_attention(q, k, v, scale=0.25)


def test_narrow_scores_and_weights_are_not_rounded() -> None:
    q, k, v = counted("bf16", (5, 6), 1), counted("bf16", (7, 6), 2), counted("bf16", (7, 3), 3)
    wide = [oracle.cast(each, dtype="fp32") for each in (q, k, v)]
    expected = oracle.cast(oracle.flash_attention(*wide, scale=0.25), dtype="bf16")
    assert oracle.flash_attention(q, k, v, scale=0.25) == expected
    assert oracle.attention(q, k, v, factor="0.25") != expected


def test_tf32_rounds_the_factors_of_both_products() -> None:
    q, k, v = counted("tf32", (5, 6), 1), counted("tf32", (7, 6), 2), counted("tf32", (7, 3), 3)
    assert oracle.flash_attention(q, k, v, scale=0.25) == oracle.attention(q, k, v, factor="0.25")


def test_the_scale_is_one_over_the_root_of_the_width() -> None:
    q, k, v = counted("fp32", (3, 4), 1), counted("fp32", (3, 4), 2), counted("fp32", (3, 2), 3)
    assert oracle.flash_attention(q, k, v) == oracle.flash_attention(q, k, v, scale=0.5)


def test_every_matrix_of_a_batch_is_for_itself() -> None:
    shapes = (3, 4), (5, 4), (5, 2)
    heads = [[counted("bf16", shape, seed + head) for seed, shape in enumerate(shapes)] for head in (10, 20)]
    batch = [Tensor("bf16", (2, *shape), a.data + b.data) for shape, a, b in zip(shapes, *heads, strict=True)]
    alone = b"".join(oracle.flash_attention(*head).data for head in heads)
    assert oracle.flash_attention(*batch) == Tensor("bf16", (2, 3, 2), alone)


def test_a_query_takes_no_key_after_it() -> None:
    """What is masked has weight +0, so a row is that of the keys up to it; the sum of the weights keeps its tree."""
    q, k, v = counted("fp32", (4, 4), 1), counted("fp32", (4, 4), 2), counted("fp32", (4, 2), 3)
    found = np.frombuffer(oracle.flash_attention(q, k, v, causal=True).data, "<f4").reshape(4, 2)
    for row in range(4):
        first = [
            Tensor("fp32", (row + 1, each.shape[1]), each.data[: 4 * (row + 1) * each.shape[1]]) for each in (k, v)
        ]
        one = Tensor("fp32", (1, 4), q.data[16 * row : 16 * (row + 1)])
        alone = np.frombuffer(oracle.flash_attention(one, *first).data, "<f4")
        assert found[row].tolist() == alone.tolist()
    with pytest.raises(BadArgument, match="causal"):
        oracle.flash_attention(counted("fp32", (3, 4), 1), k, v, causal=True)


def in_one_pass(q: Values, k: Values, v: Values, scale: float, narrow: Any, causal: bool) -> Values:
    """Two keys at a time: a running maximum and sum, the result so far rescaled, weights rounded; then a division."""
    q, k, v = (each.astype(np.float32) for each in (q, k, v))
    found = np.zeros((len(q), v.shape[1]), np.float32)
    for i, query in enumerate(q):
        top, total, row = np.float32(-np.inf), np.float32(0), np.zeros(v.shape[1], np.float32)
        count = i + 1 if causal else len(k)
        for start in range(0, count, 2):
            keys, values = k[start : min(start + 2, count)], v[start : min(start + 2, count)]
            scores = (keys * query).sum(axis=1, dtype=np.float32) * np.float32(scale)
            higher = max(top, scores.max())
            weights, rescaled = np.exp(scores - higher), np.exp(top - higher)
            total = total * rescaled + weights.sum(dtype=np.float32)
            row = row * rescaled + (narrow(weights)[:, None] * values).sum(axis=0, dtype=np.float32)
            top = higher
        found[i] = row / total
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_one_pass_over_the_keys_is_within_the_bound(rng: np.random.Generator, fast: Any, causal: bool) -> None:
    q, k, v = rng.standard_normal((3, 9, 8)).astype("<f4")
    arguments = {"scale": 0.3, "causal": causal}
    found = in_one_pass(q, k, v, 0.3, lambda x: x, causal)
    assert fast.within("flash_attention", [tensor(each) for each in (q, k, v)], found, arguments)
    q, k, v = (fast.bf16(each) for each in (q, k, v))
    given = [fast.tensor(each, "bf16") for each in (q, k, v)]
    for narrow in (fast.bf16, lambda x: x):
        result = fast.tensor(in_one_pass(q, k, v, 0.3, narrow, causal), "bf16")
        assert fast.within("flash_attention", given, result, arguments)


@pytest.mark.parametrize("wrong", [{"causal": True}, {"scale": 0.31}])
def test_another_mask_or_scale_is_beyond_the_bound(rng: np.random.Generator, fast: Any, wrong: dict[str, Any]) -> None:
    q, k, v = (tensor(each) for each in rng.standard_normal((3, 9, 8)))
    found = oracle.flash_attention(q, k, v, **{"scale": 0.3, **wrong})
    assert not fast.within("flash_attention", [q, k, v], found, {"scale": 0.3})


def test_scores_rounded_to_the_operands_type_are_beyond_the_bound(fast: Any) -> None:
    q, k, v = (counted("bf16", (6, 8), seed, exponents=(-1, 2)) for seed in (6, 7, 8))
    assert fast.within("flash_attention", [q, k, v], oracle.flash_attention(q, k, v, scale=0.25), {"scale": 0.25})
    narrow = oracle.attention(q, k, v, factor="0.25")
    assert not fast.within("flash_attention", [q, k, v], narrow, {"scale": 0.25})


def test_nothing_is_promised_of_a_query_that_is_not_finite(fast: Any) -> None:
    q, k, v = tensor([[1.0, np.nan]]), tensor([[1.0, 2.0]]), tensor([[3.0]])
    assert not fast.within("flash_attention", [q, k, v], oracle.flash_attention(q, k, v))
