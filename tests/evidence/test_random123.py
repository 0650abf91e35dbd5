"""Philox4x32-10 against the known answers its authors publish.

Random123, tests/kat_vectors (D. E. Shaw Research; in Debian's librandom123-doc 1.14.0), the lines "philox4x32 10":
counter and key all zeros, all ones, and the first hexadecimal digits of pi.
"""

from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.random import philox4x32, words

KNOWN_ANSWERS = """
00000000 00000000 00000000 00000000 00000000 00000000   6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff   408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0   d16cfe09 94fdcceb 5001e420 24126ea1
"""
ROWS = [[int(word, 16) for word in line.split()] for line in KNOWN_ANSWERS.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS)
def test_known_answers(row):
    counter, (key0, key1), expected = row[:4], row[4:6], row[6:]
    assert philox4x32(np.array(counter, np.uint64), (key0, key1)).tolist() == expected


def test_all_known_answers_in_one_call_with_the_key_of_the_first():
    """Vectorised evaluation gives each counter what it gets alone."""
    counters = np.array([row[:4] for row in ROWS], np.uint32)
    alone = [philox4x32(counter, (0, 0)).tolist() for counter in counters]
    assert philox4x32(counters, (0, 0)).tolist() == alone
    assert alone[0] == ROWS[0][6:]


def test_a_known_answer_by_seed_stream_and_word():
    """Seed and stream are the low word first, and so is the number of the block, when it is below 2**62."""
    c0, c1, c2, c3, k0, k1, *expected = ROWS[0]
    assert words(k0 | k1 << 32, c2 | c3 << 32, 4 * (c0 | c1 << 32), 4).tolist() == expected
    c0, c1, c2, c3, k0, k1, *_ = ROWS[2]
    block = (c0 | c1 << 32) % 2**62
    counter = np.array([block & 0xFFFFFFFF, block >> 32, c2, c3], np.uint64)
    found = words(k0 | k1 << 32, c2 | c3 << 32, 4 * block, 4).tolist()
    assert found == philox4x32(counter, (k0, k1)).tolist()
