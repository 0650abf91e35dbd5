"""Norms against the same steps taken with numpy's exact operations and mpmath's root; bounds against other ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.differences import first_difference
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor

Values = Any


def rsqrt(x: np.float32) -> np.float32:
    """With 100 bits, rounded to fp64 and then to fp32: a double rounding is beyond odds here."""
    with mpmath.workprec(100):
        return np.float32(float(1 / mpmath.sqrt(mpmath.mpf(float(x)))))


def mean(row: Values) -> np.float32:
    """Neighbours added, an odd one carried, as often as it takes; then a division."""
    sums = list(row)
    while len(sums) > 1:
        sums = [sums[i] + sums[i + 1] for i in range(0, len(sums) - 1, 2)] + sums[len(sums) & ~1 :]
    return sums[0] / np.float32(len(row))


def layer_norm_row(row: Values, gamma: Values, beta: Values, eps: float) -> Values:
    centred = row - mean(row)
    return centred * rsqrt(mean(centred * centred) + np.float32(eps)) * gamma + beta


def rms_norm_row(row: Values, gamma: Values, eps: float) -> Values:
    return row * rsqrt(mean(row * row) + np.float32(eps)) * gamma


def tensor(values: Values, kind: str = "<f4") -> Tensor:
    values = np.ascontiguousarray(values, kind)
    return Tensor({"<f4": "fp32", "<f2": "fp16"}[kind], values.shape, values.tobytes())


@pytest.mark.parametrize("kind", ["<f4", "<f2"])
@pytest.mark.parametrize("length", [1, 2, 5, 8, 13])
def test_every_step_of_a_norm_is_rounded_in_fp32(rng: np.random.Generator, kind: str, length: int) -> None:
    x = (rng.standard_normal((6, length)) * 3 + 1).astype(kind)
    gamma, beta = (rng.standard_normal(length).astype(kind) for _ in range(2))
    wide = [each.astype("<f4") for each in (gamma, beta)]
    rows = [layer_norm_row(row, *wide, 1e-5) for row in x.astype("<f4")]
    given = [tensor(each, kind) for each in (x, gamma, beta)]
    assert first_difference(oracle.layer_norm(*given), tensor(rows, kind)) is None
    rows = [rms_norm_row(row, wide[0], 0.25) for row in x.astype("<f4")]
    assert first_difference(oracle.rms_norm(*given[:2], eps=0.25), tensor(rows, kind)) is None


def test_an_axis_in_the_middle_has_its_own_vectors(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 3, 4)).astype("<f4")
    gamma, beta = rng.standard_normal((2, 3)).astype("<f4")
    last = oracle.layer_norm(tensor(x.transpose(0, 2, 1)), tensor(gamma), tensor(beta))
    turned = np.frombuffer(last.data, "<f4").reshape(2, 4, 3).transpose(0, 2, 1)
    assert oracle.layer_norm(tensor(x), tensor(gamma), tensor(beta), axis=1) == tensor(turned)
    assert oracle.layer_norm(tensor(x), tensor(gamma), tensor(beta), axis=-2) == tensor(turned)


def test_a_row_of_equal_elements_becomes_beta() -> None:
    x, ones, beta = tensor([[3.0, 3, 3], [0, 0, 0]]), tensor([1.0, 1, 1]), tensor([0.5, -2, 7])
    assert oracle.layer_norm(x, ones, beta) == tensor([[0.5, -2, 7]] * 2)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_takes_channels_and_moves_its_statistics(rng: np.random.Generator, training: bool) -> None:
    x = (rng.standard_normal((3, 2, 5)) * 2).astype("<f4")
    gamma, beta, old_mean = rng.standard_normal((3, 2)).astype("<f4")
    old_variance = np.array([0.5, 2.0], "<f4")
    expected, means, variances = np.empty_like(x), old_mean.copy(), old_variance.copy()
    kept, taken = np.float32(1 - mpmath.mpf(0.1)), np.float32(0.1)
    for channel in range(2):
        row = x[:, channel].reshape(-1)
        middle = mean(row) if training else old_mean[channel]
        centred = row - middle
        spread = mean(centred * centred) if training else old_variance[channel]
        y = centred * rsqrt(spread + np.float32(1e-5)) * gamma[channel] + beta[channel]
        expected[:, channel] = y.reshape(3, 5)
        if training:
            means[channel] = old_mean[channel] * kept + middle * taken
            variances[channel] = old_variance[channel] * kept + spread * taken
    given = [tensor(each) for each in (x, gamma, beta, old_mean, old_variance)]
    found = oracle.batch_norm(*given, training=training)
    assert found == (tensor(expected), tensor(means), tensor(variances))


def test_statistics_are_rounded_to_their_own_dtype(rng: np.random.Generator) -> None:
    x, ones = tensor(rng.standard_normal((4, 1)), "<f2"), tensor([1.0], "<f2")
    wide = oracle.batch_norm(x, ones, ones, tensor([0.3]), tensor([0.7]))
    narrow = oracle.batch_norm(x, ones, ones, tensor([0.3], "<f2"), tensor([0.7], "<f2"))
    assert [each.dtype for each in wide] == ["fp16", "fp32", "fp32"]
    assert [each.dtype for each in narrow] == ["fp16"] * 3
    assert narrow[0] == wide[0]


def test_a_negative_eps_and_an_unknown_axis_are_refused() -> None:
    x, one = tensor([[1.0]]), tensor([1.0])
    with pytest.raises(BadArgument, match="eps: -1"):
        oracle.rms_norm(x, one, eps=-1)
    with pytest.raises(BadArgument, match="axis: 2"):
        oracle.batch_norm(x, one, one, one, one, axis=2)


# Bounds


def by_fp64(row: Values, gamma: Values, beta: Values) -> Values:
    row, gamma, beta = (each.astype(np.float64) for each in (row, gamma, beta))
    return ((row - row.mean()) / np.sqrt(row.var() + 1e-5) * gamma + beta).astype("<f4")


def from_left(row: Values, gamma: Values, beta: Values) -> Values:
    def total(terms: Values) -> Any:
        found = np.float32(0)
        for term in terms:
            found = found + term
        return found

    centred = row - total(row) * (np.float32(1) / np.float32(len(row)))
    root = np.sqrt(total(centred * centred) / np.float32(len(row)) + np.float32(1e-5))
    return centred * (gamma * (np.float32(1) / root)) + beta


def with_bessels_correction(row: Values, gamma: Values, beta: Values) -> Values:
    return ((row - row.mean()) / np.sqrt(row.var(ddof=1) + 1e-5) * gamma + beta).astype("<f4")


def uncentred(row: Values, gamma: Values, beta: Values) -> Values:
    variance = (row * row).mean() - row.mean() ** 2
    return ((row - row.mean()) / np.sqrt(variance + np.float32(1e-5)) * gamma + beta).astype("<f4")


@pytest.mark.parametrize(
    ("way", "accepted"), [(by_fp64, True), (from_left, True), (with_bessels_correction, False), (uncentred, False)]
)
def test_another_order_is_within_the_bound_and_another_variance_is_not(
    rng: np.random.Generator, fast: Any, way: Callable[..., Values], accepted: bool
) -> None:
    """Far from zero, the mean of squares less the square of the mean has lost the variance."""
    x = (rng.standard_normal((8, 33)) + 300).astype("<f4")
    gamma, beta = rng.standard_normal((2, 33)).astype("<f4")
    rows = np.array([way(row, gamma, beta) for row in x], "<f4")
    assert fast.within("layer_norm", [tensor(x), tensor(gamma), tensor(beta)], rows) is accepted


def test_rms_norm_in_another_order_is_within_the_bound_and_without_its_eps_not(
    rng: np.random.Generator, fast: Any
) -> None:
    x = (rng.standard_normal((8, 33)) * 0.01).astype("<f4")
    gamma = rng.standard_normal(33).astype("<f4")

    def rows(eps: float) -> Values:
        return (x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + eps) * gamma).astype("<f4")

    given = [tensor(x), tensor(gamma)]
    assert fast.within("rms_norm", given, rows(1e-6))
    assert not fast.within("rms_norm", given, rows(0))


def test_nothing_is_promised_of_a_row_that_is_not_finite(fast: Any) -> None:
    x, ones = tensor([[1.0, np.inf], [1.0, 3.0]]), tensor([1.0, 1.0])
    assert not fast.within("rms_norm", [x, ones], oracle.rms_norm(x, ones))
    assert fast.within("rms_norm", [tensor([[1.0, 3.0]]), ones], oracle.rms_norm(tensor([[1.0, 3.0]]), ones))


def test_nothing_is_promised_of_zeros_without_an_eps(fast: Any) -> None:
    x, ones = tensor([[0.0, 0.0]]), tensor([1.0, 1.0])
    assert not fast.within("rms_norm", [x, ones], tensor([[0.0, 0.0]]), {"eps": 0.0})
    assert fast.within("rms_norm", [x, ones], tensor([[0.0, 0.0]]))
