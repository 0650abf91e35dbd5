"""Counter-based random numbers: the words of Philox and the refusals of ranges and offsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tessera_reference.numerics.errors import InvalidArgument
from tessera_reference.numerics.formats import dtype
from tessera_reference.numerics.random import dropout_mask, normal, philox4x32, uniform, words, words_at


def plain_block(counter: list[int], key: tuple[int, int]) -> list[int]:
    """Philox4x32-10 in Python's integers, one block, as the paper describes it."""
    x, (k0, k1) = list(counter), key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * x[0], 1 << 32)
        high1, low1 = divmod(0xCD9E8D57 * x[2], 1 << 32)
        x = [high1 ^ x[1] ^ k0, low1, high0 ^ x[3] ^ k1, low0]
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return x


def plain_word(seed: int, stream: int, i: int) -> int:
    (t1, t0), (b1, b0), (s1, s0) = (divmod(value, 1 << 32) for value in (stream, i // 4, seed))
    return plain_block([b0, b1, t0, t1], (s0, s1))[i % 4]


def test_blocks_of_random_counters(rng):
    counters = rng.integers(0, 2**32, (5, 40, 4), dtype=np.uint64)
    key = (0x12345678, 0x9ABCDEF0)
    actual = philox4x32(counters, key)
    assert (actual.dtype, actual.shape) == (np.uint32, (5, 40, 4))
    assert actual.reshape(-1, 4).tolist() == [plain_block(c, key) for c in counters.reshape(-1, 4).tolist()]


@pytest.mark.parametrize("seed", [0, 1, 2**32, 2**64 - 1, 0x0123456789ABCDEF])
@pytest.mark.parametrize("stream", [0, 7, 2**40 + 3, 2**64 - 1])
@pytest.mark.parametrize("first", [0, 3, 4 * 2**32 - 6, 2**64 - 13])
def test_words_lie_in_blocks_of_four_and_both_halves_of_every_number_count(seed, stream, first):
    """Around block 2**32 the counter carries; the last word of a stream is 2**64 - 1."""
    expected = [plain_word(seed, stream, first + i) for i in range(13)]
    assert words(seed, stream, first, 13).tolist() == expected
    indices = (np.uint64(first) + np.arange(13, dtype=np.uint64))[::-1]
    assert words_at(seed, stream, indices).tolist() == expected[::-1]


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("count", range(6))
def test_any_range_is_a_slice_of_the_stream(first, count):
    whole = [plain_word(5, 6, i) for i in range(12)]
    assert words(5, 6, first, count).tolist() == whole[first : first + count]


def test_words_are_found_in_any_shape_and_repetition():
    indices = np.array([[[9, 0], [9, 2]]], np.uint64)
    assert words_at(5, 6, indices).tolist() == [[[plain_word(5, 6, i) for i in row] for row in [[9, 0], [9, 2]]]]
    assert words_at(5, 6, np.empty((0, 2), np.uint64)).shape == (0, 2)


@pytest.mark.parametrize(
    ("seed", "stream", "first", "argument"),
    [
        (-1, 0, 0, "seed"),
        (2**64, 0, 0, "seed"),
        (1.0, 0, 0, "seed"),
        (0, -1, 0, "stream"),
        (0, 2**64, 0, "stream"),
        (0, True, 0, "stream"),
        (0, 0, -1, "first"),
        (0, 0, 2**64 - 3, "first"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(seed, stream, first, argument):
    with pytest.raises(InvalidArgument, match=argument) as caught:
        words(seed, stream, first, 4)
    assert caught.value.argument == argument


GENERATORS = [
    pytest.param(lambda shape, offset: uniform(11, 3, shape, dtype("fp32"), offset).values, id="uniform fp32"),
    pytest.param(lambda shape, offset: uniform(11, 3, shape, dtype("fp64"), offset).values, id="uniform fp64"),
    pytest.param(lambda shape, offset: normal(11, 3, shape, dtype("bf16"), offset).values, id="normal bf16"),
    pytest.param(lambda shape, offset: dropout_mask(0.5, 11, 3, shape, offset).values, id="dropout"),
]


@pytest.mark.parametrize("generate", GENERATORS)
def test_numbers_do_not_depend_on_sharding(generate):
    """Every box of a tensor, given by its element indices, in any order, holds the numbers the whole tensor has."""
    whole, indices = generate((4, 6, 5), 0), np.arange(120).reshape(4, 6, 5)
    for rows, columns in itertools.product([(0, 4), (1, 2), (3, 1)], [(0, 6), (4, 2), (5, 0)]):
        (r, m), (c, n) = rows, columns
        shard = generate((m, n, 5), indices[r : r + m, c : c + n])
        assert shard.tolist() == whole[r : r + m, c : c + n].tolist()
    shuffled = np.random.Generator(np.random.Philox(1)).permutation(120)
    assert generate((120,), shuffled).tolist() == whole.reshape(-1)[shuffled].tolist()


@pytest.mark.parametrize("generate", GENERATORS)
@pytest.mark.parametrize("cut", [0, 1, 2, 3, 7, 30, 36])
def test_a_shard_may_be_given_by_its_first_element(generate, cut):
    whole = generate((37,), 0).tolist()
    assert generate((cut,), 0).tolist() + generate((37 - cut,), cut).tolist() == whole


def test_the_last_elements_of_a_stream_are_reached_and_none_beyond():
    at_end = np.array([2**63 - 1], np.int64)
    for name in ("fp32", "fp64"):
        assert uniform(3, 4, (2,), dtype(name), 2**63 - 2).values[1] == uniform(3, 4, (1,), dtype(name), at_end).values
    with pytest.raises(InvalidArgument, match="offset is 9223372036854775807"):
        uniform(3, 4, (2,), dtype("fp32"), 2**63 - 1)


@pytest.mark.parametrize(
    ("offset", "problem"),
    [
        (-1, "offset is -1"),
        (1.5, "offset is 1.5"),
        (True, "offset is True"),
        (np.array([0.0, 1.0]), "offset is 'float64'"),
        (np.array([0, -1]), "offset is -1"),
        (np.array([0, 2**63], np.uint64), "offset is 9223372036854775808"),
    ],
)
def test_offsets_that_are_no_element_indices_are_refused(offset, problem):
    with pytest.raises(InvalidArgument, match=problem) as caught:
        uniform(1, 2, (2,), dtype("fp32"), offset)
    assert caught.value.argument == "offset"
