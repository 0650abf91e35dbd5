"""Random numbers: published known answers of Philox, the canon's formulas by hand, and independence of the sharding."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.oracle.compositions import philox4x32, word
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.oracle.formats import float_format, values_of
from tessera_conformance.tensors import Tensor

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


def test_words_are_spread_evenly_and_do_not_repeat() -> None:
    words = oracle.philox(seed=3, stream=9, shape=(4000,)).words()
    assert len(set(words.tolist())) == 4000
    assert abs(float(words.astype(float).mean()) / 2**32 - 0.5) < 0.03


@pytest.mark.parametrize("shape", [(12,), (3, 4)])
def test_a_part_of_a_tensor_is_the_same_numbers(shape: tuple[int, ...]) -> None:
    for function in (oracle.philox, oracle.uniform, oracle.normal):
        whole = function(seed=5, stream=2, shape=shape)
        tail = function(seed=5, stream=2, shape=(5,), offset=7)
        assert whole.words().tolist()[7:] == tail.words().tolist()


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("fp32", 24), ("tf32", 24), ("fp16", 11), ("bf16", 8), ("fp8_e4m3", 4), ("fp8_e5m2", 3)],
)
def test_uniform_numbers_are_the_upper_bits_of_a_word(dtype: str, bits: int) -> None:
    words = [word(8, 1, index) for index in range(200)]
    expected = [Fraction(value >> (32 - bits), 1 << bits) for value in words]
    found = oracle.uniform(seed=8, stream=1, shape=(200,), dtype=dtype)
    assert values_of(found) == expected
    assert max(expected) < 1


def test_uniform_doubles_take_two_words() -> None:
    found = np.frombuffer(oracle.uniform(seed=8, shape=(20,), dtype="fp64").data)
    for index, value in enumerate(found.tolist()):
        high, low = word(8, 0, 2 * index) >> 5, word(8, 0, 2 * index + 1) >> 6
        assert value == (high * 67108864.0 + low) / 9007199254740992.0


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


def test_a_word_at_the_threshold_is_kept() -> None:
    x = Tensor.from_bits("fp32", (1,), "3f800000")
    rate = word(6, 0, 0) / 2**32
    assert oracle.dropout(x, rate=rate, seed=6) != Tensor.from_bits("fp32", (1,), "00000000")
    assert oracle.dropout(x, rate=math.nextafter(rate, 1), seed=6) == Tensor.from_bits("fp32", (1,), "00000000")


def test_dropout_of_nothing_keeps_everything() -> None:
    x = Tensor.from_bits("fp32", (2,), "800000003f800000")
    assert oracle.dropout(x, rate=0.0, seed=1) == x


@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan"), True, "0.5"])
def test_a_rate_is_at_least_zero_and_below_one(rate: object) -> None:
    with pytest.raises(BadArgument, match="rate"):
        oracle.dropout(Tensor("fp32", (0,), b""), rate=rate, seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.5])
def test_a_seed_has_64_bits(seed: object) -> None:
    with pytest.raises(BadArgument, match="seed"):
        oracle.uniform(seed=seed, shape=(1,))  # type: ignore[arg-type]
