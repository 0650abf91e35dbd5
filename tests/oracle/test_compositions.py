"""Compositions of the oracle: softmax, norms, attention, transforms, optimizers, random numbers, buffers."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.chapters.abi.kit.parameter_buffers import SAMPLE, signature
from tessera_conformance.differences import first_difference
from tessera_conformance.dsl import tensor_of
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.oracle.compositions import philox4x32, word
from tessera_conformance.oracle.exact import BadArgument, float_format
from tessera_conformance.oracle.parameter_buffers import arguments_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted


def softmax_row(row: list[float]) -> list[Any]:
    gmpy2 = pytest.importorskip("gmpy2", reason="gmpy2 is missing: pip install gmpy2")
    single = gmpy2.context(precision=24, emax=128, emin=-148, subnormalize=True)
    values = [np.float32(x) for x in row]
    largest = max(values)
    powers = [np.float32(float(single.exp(gmpy2.mpfr(float(x - largest))))) for x in values]
    sums = powers
    while len(sums) > 1:
        sums = [sums[i] + sums[i + 1] for i in range(0, len(sums) - 1, 2)] + sums[len(sums) & ~1 :]
    return [power / sums[0] for power in powers]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 7, 16])
def test_softmax_takes_the_canonical_steps(draw: random.Random, length: int) -> None:
    rows = np.array([[draw.gauss(0, 5) for _ in range(length)] for _ in range(5)], dtype=np.float32)
    expected = np.array([softmax_row(row.tolist()) for row in rows], dtype=np.float32)
    actual = oracle.softmax(Tensor("fp32", rows.shape, rows.tobytes()))
    assert first_difference(actual, Tensor("fp32", rows.shape, expected.tobytes())) is None


def test_a_narrow_softmax_is_computed_in_fp32_and_rounded_once(draw: random.Random) -> None:
    row = np.array([[draw.gauss(0, 3) for _ in range(9)]], dtype=np.float16)
    expected = np.array([softmax_row(row[0].tolist())], dtype=np.float32).astype(np.float16)
    actual = oracle.softmax(Tensor("fp16", row.shape, row.tobytes()))
    assert actual == Tensor("fp16", row.shape, expected.tobytes())


def test_a_literal_is_rounded_once_from_its_digits() -> None:
    """A little above the tie 1 + 2**-8, so little that a double cannot tell."""
    one = Tensor.from_words("bf16", (), [0x3F80])
    assert oracle.scale(one, factor="1.00390625").bits() == "3f80"
    assert oracle.scale(one, factor="1.00390625000000000000000001").bits() == "3f81"


ONE, HALF = np.float32(1), np.float32(0.5)


def rounded(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of mpmath with 100 bits, rounded to fp64 and then to fp32: a double rounding is beyond odds here."""

    def evaluate(x: np.float32) -> np.float32:
        with mpmath.workprec(100):
            return np.float32(float(function(mpmath.mpf(float(x)))))

    return evaluate


exp, erf, tanh = rounded(mpmath.exp), rounded(mpmath.erf), rounded(mpmath.tanh)
ROOT_OF_HALF = np.float32(mpmath.sqrt(0.5))
ROOT_OF_TWO_OVER_PI = np.float32(mpmath.sqrt(2 / mpmath.pi))


def sigmoid(x: Any) -> Any:
    return ONE / (ONE + exp(-x))


def silu(x: Any) -> Any:
    return x * sigmoid(x)


def gelu(x: Any) -> Any:
    return (HALF * x) * (ONE + erf(x * ROOT_OF_HALF))


def gelu_by_tanh(x: Any) -> Any:
    inner = x + np.float32(0.044715) * ((x * x) * x)
    return (HALF * x) * (ONE + tanh(ROOT_OF_TWO_OVER_PI * inner))


@pytest.mark.parametrize("numpy_type", ["<f4", "<f2"])
@pytest.mark.parametrize(
    ("ours", "theirs", "arguments"),
    [
        (oracle.sigmoid, sigmoid, {}),
        (oracle.silu, silu, {}),
        (oracle.gelu, gelu, {}),
        (oracle.gelu, gelu_by_tanh, {"approximate": "tanh"}),
    ],
)
def test_every_step_is_rounded_in_fp32(
    draw: random.Random, ours: Any, theirs: Any, arguments: dict[str, str], numpy_type: str
) -> None:
    x = np.array([draw.gauss(0, 3) for _ in range(100)]).astype(numpy_type)
    expected = np.array([theirs(np.float32(value)) for value in x], np.float32).astype(numpy_type)
    dtype = {"<f4": "fp32", "<f2": "fp16"}[numpy_type]
    found = ours(Tensor(dtype, x.shape, x.tobytes()), **arguments)
    assert first_difference(found, Tensor(dtype, x.shape, expected.tobytes())) is None


def test_logsumexp_takes_the_canonical_steps(draw: random.Random) -> None:
    x = np.array([[draw.gauss(0, 5) for _ in range(6)] for _ in range(20)], np.float32)
    logarithm = rounded(mpmath.log)
    expected = []
    for row in x:
        top = row.max()
        p = [exp(value - top) for value in row]
        expected.append(logarithm(((p[0] + p[1]) + (p[2] + p[3])) + (p[4] + p[5])) + top)
    found = oracle.logsumexp(Tensor("fp32", x.shape, x.tobytes()))
    assert found == Tensor("fp32", (20,), np.array(expected, np.float32).tobytes())


Values = Any


def tensor(values: Values) -> Tensor:
    values = np.ascontiguousarray(values, "<f4")
    return Tensor("fp32", values.shape, values.tobytes())


def test_a_query_takes_no_key_after_it() -> None:
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


def normalization_tensor(values: Values, kind: str = "<f4") -> Tensor:
    values = np.ascontiguousarray(values, kind)
    return Tensor({"<f4": "fp32", "<f2": "fp16"}[kind], values.shape, values.tobytes())


@pytest.mark.parametrize("kind", ["<f4", "<f2"])
@pytest.mark.parametrize("length", [1, 2, 5, 8, 13])
def test_every_step_of_a_norm_is_rounded_in_fp32(rng: np.random.Generator, kind: str, length: int) -> None:
    x = (rng.standard_normal((6, length)) * 3 + 1).astype(kind)
    gamma, beta = (rng.standard_normal(length).astype(kind) for _ in range(2))
    wide = [each.astype("<f4") for each in (gamma, beta)]
    rows = [layer_norm_row(row, *wide, 1e-5) for row in x.astype("<f4")]
    given = [normalization_tensor(each, kind) for each in (x, gamma, beta)]
    assert first_difference(oracle.layer_norm(*given), normalization_tensor(rows, kind)) is None
    rows = [rms_norm_row(row, wide[0], 0.25) for row in x.astype("<f4")]
    assert first_difference(oracle.rms_norm(*given[:2], eps=0.25), normalization_tensor(rows, kind)) is None


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
    assert (
        fast.within(
            "layer_norm", [normalization_tensor(x), normalization_tensor(gamma), normalization_tensor(beta)], rows
        )
        is accepted
    )


def test_rms_norm_in_another_order_is_within_the_bound_and_without_its_eps_not(
    rng: np.random.Generator, fast: Any
) -> None:
    x = (rng.standard_normal((8, 33)) * 0.01).astype("<f4")
    gamma = rng.standard_normal(33).astype("<f4")

    def rows(eps: float) -> Values:
        return (x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + eps) * gamma).astype("<f4")

    given = [normalization_tensor(x), normalization_tensor(gamma)]
    assert fast.within("rms_norm", given, rows(1e-6))
    assert not fast.within("rms_norm", given, rows(0))


def test_nothing_is_promised_of_a_row_that_is_not_finite(fast: Any) -> None:
    x, ones = normalization_tensor([[1.0, np.inf], [1.0, 3.0]]), normalization_tensor([1.0, 1.0])
    assert not fast.within("rms_norm", [x, ones], oracle.rms_norm(x, ones))
    assert fast.within(
        "rms_norm",
        [normalization_tensor([[1.0, 3.0]]), ones],
        oracle.rms_norm(normalization_tensor([[1.0, 3.0]]), ones),
    )


def test_nothing_is_promised_of_zeros_without_an_eps(fast: Any) -> None:
    x, ones = normalization_tensor([[0.0, 0.0]]), normalization_tensor([1.0, 1.0])
    assert not fast.within("rms_norm", [x, ones], normalization_tensor([[0.0, 0.0]]), {"eps": 0.0})
    assert fast.within("rms_norm", [x, ones], normalization_tensor([[0.0, 0.0]]))


PARTS = {"complex64": np.float32, "complex128": np.float64}


def fourier_tensor(x: Any) -> Tensor:
    return Tensor(x.dtype.name, x.shape, np.ascontiguousarray(x).tobytes())


def unit(m: int, n: int, part: Any) -> tuple[Any, Any]:
    """exp(-2 pi i m / n) by mpmath; what vanishes is +0."""
    with mpmath.workprec(200):
        angle = 2 * mpmath.pi * (m % n) / n
        parts = [mpmath.cos(angle), -mpmath.sin(angle)]
        return tuple(part(0) if abs(value) < 1e-40 else part(str(mpmath.nstr(value, 50))) for value in parts)  # type: ignore[return-value]


def definition(x: Any, *, inverse: bool = False) -> Any:
    part, n = PARTS[x.dtype.name], len(x)
    found = np.zeros(n, x.dtype)
    for k in range(n):
        real, imaginary = [], []
        for j in range(n):
            a, b, (c, d) = x[j].real, x[j].imag, unit(-j * k if inverse else j * k, n, part)
            real.append(a * c - b * d)
            imaginary.append(a * d + b * c)
        for terms in (real, imaginary):
            while len(terms) > 1:
                terms[:] = [p + q for p, q in zip(terms[::2], terms[1::2], strict=False)] + terms[len(terms) & ~1 :]
        found[k] = complex(real[0], imaginary[0])
    return found


def drawn(draw: random.Random, n: int, dtype: str) -> Any:
    return np.array([complex(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(n)], dtype)


@pytest.mark.parametrize("dtype", PARTS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12])
def test_the_transform_is_its_definition(draw: random.Random, n: int, dtype: str) -> None:
    x = drawn(draw, n, dtype)
    assert oracle.fft(fourier_tensor(x), norm="backward") == fourier_tensor(definition(x))
    assert oracle.ifft(fourier_tensor(x), norm="forward") == fourier_tensor(definition(x, inverse=True))


def test_known_transforms() -> None:
    ones = np.ones((2, 4), np.complex64)
    assert oracle.fft(fourier_tensor(ones), norm="backward") == fourier_tensor(
        np.array([[4, 0, 0, 0]] * 2, np.complex64)
    )
    impulse = np.array([0, 1, 0, 0], np.complex64)
    expected = np.array([complex(1, 0), complex(0, -1), complex(-1, 0), complex(0, 1)], np.complex64)
    assert oracle.fft(fourier_tensor(impulse), norm="backward") == fourier_tensor(expected)
    assert oracle.ifft(fourier_tensor(impulse), norm="forward") == fourier_tensor(expected.conj() + 0)
    assert oracle.fft(fourier_tensor(ones)) == fourier_tensor(np.array([[2, 0, 0, 0]] * 2, np.complex64))


COUNT = 40


def single(number: float | Fraction) -> np.float32:
    """A number rounded once to fp32, where no fp64 lies near a midpoint of it."""
    return np.float32(float(number))


def power(base: np.float32, exponent: int) -> np.float32:
    with mpmath.workprec(100):
        return np.float32(float(mpmath.power(mpmath.mpf(float(base)), exponent)))


def optimizers_tensor(values: Values, kind: str = "<f4") -> Tensor:
    values = np.ascontiguousarray(values, kind)
    return Tensor({"<f4": "fp32", "<f2": "fp16", "<i4": "int32"}[kind], values.shape, values.tobytes())


@pytest.mark.parametrize("kind", ["<f4", "<f2"])
def test_sgd(rng: np.random.Generator, kind: str) -> None:
    parameter, gradient, velocity = rng.standard_normal((3, COUNT)).astype(kind)
    p, g, v = (each.astype("<f4") for each in (parameter, gradient, velocity))
    moving = v * single(0.9) + g
    stepped = p - moving * single(0.05)
    found = oracle.sgd(*(optimizers_tensor(each, kind) for each in (parameter, gradient, velocity)), rate=0.05)
    assert first_difference(found[0], optimizers_tensor(stepped.astype(kind), kind)) is None
    assert first_difference(found[1], optimizers_tensor(moving.astype(kind), kind)) is None


@pytest.mark.parametrize("step", [1, 2, 1000])
@pytest.mark.parametrize("kind", ["<f4", "<f2"])
def test_adamw(rng: np.random.Generator, kind: str, step: int) -> None:
    parameter, gradient, m = rng.standard_normal((3, COUNT)).astype(kind)
    v = (rng.standard_normal(COUNT) ** 2).astype(kind)
    p, g, first, second = (each.astype("<f4") for each in (parameter, gradient, m, v))
    first = first * single(0.9) + g * single(1 - Fraction(0.9))
    second = second * single(0.999) + (g * g) * single(1 - Fraction(0.999))
    mean = first / (np.float32(1) - power(single(0.9), step))
    square = second / (np.float32(1) - power(single(0.999), step))
    stepped = p - (mean / (np.sqrt(square) + single(1e-8)) + p * single(0.1)) * single(0.01)
    given = [optimizers_tensor(each, kind) for each in (parameter, gradient, m, v)]
    found = oracle.adamw(*given, optimizers_tensor(step, "<i4"), rate=0.01, decay=0.1)
    for answer, expected in zip(found, (stepped, first, second), strict=True):
        assert first_difference(answer, optimizers_tensor(expected.astype(kind), kind)) is None


KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""Of Random123's distribution, philox4x32-10."""


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(
    counter: tuple[int, int, int, int], key: tuple[int, int], answer: tuple[int, int, int, int]
) -> None:
    assert philox4x32(counter, key) == answer


def test_words_are_numbered_by_block_and_stream() -> None:
    """The third known answer is block 0x85a308d3243f6a88 of stream 0x0370734413198a2e."""
    counter, key, answer = KNOWN_ANSWERS[2]
    block, stream = counter[0] | counter[1] << 32, counter[2] | counter[3] << 32
    seed = key[0] | key[1] << 32
    assert tuple(word(seed, stream, 4 * block + place) for place in range(4)) == answer
    assert oracle.philox(seed=0, shape=(5,)).words().tolist()[:4] == list(KNOWN_ANSWERS[0][2])


def test_normal_numbers_take_the_canonical_steps() -> None:
    found = np.frombuffer(oracle.normal(seed=21, shape=(60,), dtype="fp64").data)
    for index, value in enumerate(found.tolist()):
        first = (word(21, 0, 2 * index) + 1) * 2.0**-32
        second = word(21, 0, 2 * index + 1) * 2.0**-32
        with mpmath.workprec(200):
            doubled = -2 * float(mpmath.log(first))
            cosine = float(mpmath.cos(2 * math.pi * second))
        assert value == math.sqrt(doubled) * cosine
    narrow = oracle.normal(seed=21, shape=(60,), dtype="bf16")
    target = float_format("bf16")
    assert narrow.words().tolist() == [target.encode(Fraction(value)) for value in found.tolist()]


def test_dropout_keeps_words_above_the_threshold() -> None:
    x = np.linspace(-3, 3, 400).astype(np.float32)
    found = np.frombuffer(oracle.dropout(Tensor("fp32", (400,), x.tobytes()), rate=0.3, seed=6).data, "<f4")
    threshold = math.ceil(Fraction(0.3) * 2**32)
    kept = np.array([word(6, 0, index) >= threshold for index in range(400)])
    expected = np.where(kept, x / np.float32(1 - Fraction(0.3)), np.float32(0))
    assert found.tobytes() == expected.tobytes()
    assert 250 < kept.sum() < 310


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.5])
def test_a_seed_has_64_bits(seed: object) -> None:
    with pytest.raises(BadArgument, match="seed"):
        oracle.uniform(seed=seed, shape=(1,))  # type: ignore[arg-type]


def quantization_tensor(x: Any) -> Tensor:
    x = np.ascontiguousarray(x, np.float32)
    return Tensor("fp32", x.shape, x.tobytes())


def array(x: Tensor) -> Any:
    return np.frombuffer(x.data, "<f4").reshape(x.shape)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"wire": "fp64", "block": 2}, "wire"),
        ({"wire": "bf16", "block": 0}, "block"),
        ({"wire": "bf16", "block": 2.0}, "block"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(BadArgument, match=name):
        oracle.quantize(quantization_tensor([1, 2]), **arguments)


def test_what_is_not_finite_is_not_sent() -> None:
    for bad in (np.inf, np.nan):
        with pytest.raises(BadArgument, match="infinity or NaN"):
            oracle.quantize(quantization_tensor([1, bad]), wire="bf16", block=2)
    with pytest.raises(BadArgument, match="NaN"):
        oracle.top_k(quantization_tensor([1, np.nan]), k=1)
    with pytest.raises(BadArgument, match="fp32"):
        oracle.quantize(Tensor("fp16", (1,), bytes(2)), wire="bf16", block=2)
    with pytest.raises(BadArgument, match="scales"):
        oracle.dequantize(Tensor("bf16", (4,), bytes(8)), quantization_tensor([1.0]), block=2)


def test_the_sample_is_laid_out_as_the_specification_says() -> None:
    offsets, sizes, ends = oracle.parameter_layout(signature=SAMPLE)
    words = [int.from_bytes(offsets.data[i : i + 4], "little") for i in range(0, 36, 4)]
    assert words == [0, 8, 16, 24, 32, 36, 40, 44, 48]
    assert sizes.data == struct.pack("<9i", 8, 8, 8, 8, 4, 4, 4, 4, 4)
    assert ends.data == struct.pack("<2i", 0x34, 0x38)


def test_scalars_and_bits_are_packed_as_struct_does() -> None:
    text = "k(bool a, fp16 b, double c, int8 d, int64 e, complex64 f)"
    exact = {"bits": struct.pack("<ff", 1.0, -2.0).hex()}
    buffer = oracle.parameter_buffer(signature=text, values=[True, 0.1, 0.1, -1, -2, exact])
    assert buffer.data == struct.pack("<?xe4xdb7xqff", True, 0.1, 0.1, -1, -2, 1.0, -2.0)


@pytest.mark.parametrize("values", [[], [1, 2], [{"bits": "00"}]])
def test_values_that_do_not_fit_are_refused(values: list[object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        oracle.parameter_buffer(signature="k(int n)", values=values)


def test_signatures_are_written_and_read() -> None:
    arguments = [("x", "ptr"), ("n", "int32"), ("s", "bf16")]
    assert signature(*arguments) == "k(x*, int32 n, bf16 s)"
    assert arguments_of(signature(*arguments)) == arguments
    assert arguments_of("k()") == []
    assert arguments_of("k(int a, float b, double c)") == [("a", "int32"), ("b", "fp32"), ("c", "fp64")]


def ints(*values: int) -> Tensor:
    """A vector of int32."""
    return tensor_of("int32", list(values)) if values else Tensor("int32", (0,), b"")


def test_products_wrap_and_means_divide_by_the_number_of_ranks() -> None:
    assert all_reduce(ints(3, 1 << 30), ints(5, 4), ints(-7, 1), op="prod") == (ints(-105, 0),) * 3
    rows = [tensor_of("fp32", [value, 1]) for value in (1, 2, 6)]
    assert all_reduce(*rows, op="mean")[0] == tensor_of("fp32", [3, 1])
    with pytest.raises(BadArgument):
        all_reduce(*rows, op="median")
