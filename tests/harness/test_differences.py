"""The kinds of differences of tensors: three defects in one tensor are told apart."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_conformance.differences import first_difference, value_difference
from tessera_conformance.tensors import Tensor


def fp32(*words: int) -> Tensor:
    return Tensor("fp32", (len(words),), np.array(words, dtype="<u4").tobytes())


NAN, INFINITY, LARGEST, ONE, TINY, ZERO, MINUS_ZERO = (
    *(0x7FC00000, 0x7F800000, 0x7F7FFFFF, 0x3F800000, 0x00000001, 0x00000000, 0x80000000),
)


def test_each_way_of_being_wrong_is_counted_with_its_first_element():
    expected = fp32(ONE, NAN, INFINITY, TINY, ZERO, ONE, ONE, NAN)
    actual = fp32(ONE, MINUS_ZERO, LARGEST, ZERO, MINUS_ZERO, ONE + 1, ONE + 9, ONE)
    difference = first_difference(actual, expected)
    assert difference is not None
    assert (difference.elements, difference.of) == (7, 8)
    assert [(kind.kind, kind.elements, kind.index) for kind in difference.kinds] == [
        ("where NaN is expected", 2, (1,)),
        ("of infinities", 1, (2,)),
        ("where a subnormal or zero is expected", 1, (3,)),
        ("of the sign of zero", 1, (4,)),
        ("off by 1 ULP", 1, (5,)),
        ("off by several ULP", 1, (6,)),
    ]
    assert "7 of 8 elements differ: 2 where NaN is expected, first [1]: 0x80000000 for 0x7fc00000; " in (
        difference.sentence()
    )


def test_one_way_of_being_wrong_needs_no_list():
    difference = first_difference(fp32(ONE + 1, ONE + 1), fp32(ONE, ONE))
    assert difference is not None
    assert difference.kinds == ()
    assert difference.sentence().endswith("(2 of 2 elements differ)")


def test_neighbours_of_other_signs_are_not_one_ulp_apart():
    difference = first_difference(fp32(ONE + 1, 0xBF800001), fp32(ONE, ONE))
    assert difference is not None
    assert [kind.kind for kind in difference.kinds] == ["off by 1 ULP", "off by several ULP"]


def test_a_format_without_infinity_and_complex_elements():
    largest, nan = 0x7E, 0x7F
    expected = Tensor("fp8_e4m3", (3,), bytes([nan, largest, 1]))
    difference = first_difference(Tensor("fp8_e4m3", (3,), bytes([largest, nan, 0])), expected)
    assert difference is not None
    assert [kind.kind for kind in difference.kinds] == [
        "where NaN is expected",
        "NaN where a number is expected",
        "where a subnormal or zero is expected",
    ]
    parts = np.array([ONE, ZERO, ONE, ZERO], dtype="<u4")
    changed = parts.copy()
    changed[[0, 1]] = [ONE + 1, MINUS_ZERO]
    both = (Tensor("complex64", (2,), words.tobytes()) for words in (changed, parts))
    difference = first_difference(*both)
    assert difference is not None
    assert (difference.elements, [kind.index for kind in difference.kinds]) == (1, [(0,), (0,)])


@pytest.mark.parametrize(
    ("actual", "expected", "sentence"),
    [
        (
            bytes([*range(63), 0]).hex(),
            bytes(range(64)).hex(),
            "1 of 64 bytes differ, from byte 63 to byte 63; from byte 47 on: "
            f"expected {bytes(range(47, 64)).hex(' ')}, found {bytes([*range(47, 63), 0]).hex(' ')}",
        ),
        (
            bytes(40).hex(),
            bytes(41).hex(),
            f"40 bytes for 41; 0 of 40 bytes differ, from byte 40 to byte 40; from byte 24 on: "
            f"expected {bytes(17).hex(' ')}, found {bytes(16).hex(' ')}",
        ),
        ([*range(30), 7, 8], [*range(32)], "[30]: expected 30, found 7 (2 places differ)"),
        ([*range(31)], [*range(32)], "[31]: expected 31, found nothing"),
        (
            {"a": [1, {"name": "x" * 50, "size": 2}], "b": 3},
            {"a": [1, {"name": "x" * 50, "size": 4}], "b": 3},
            "a[1].size: expected 4, found 2",
        ),
        ([1.0, "x" * 80], [1, "x" * 80], "[0]: expected 1, found 1.0"),
        (
            "\n".join(["a line of a text"] * 5 + ["and an end"]),
            "\n".join(["a line of a text"] * 5 + ["and the end"]),
            "the texts differ:\n@@ -5,2 +5,2 @@\n a line of a text\n-and the end\n+and an end",
        ),
    ],
)
def test_the_first_place_where_values_differ_is_told(actual, expected, sentence):
    difference = value_difference(actual, expected)
    assert difference is not None
    assert difference.sentence() == sentence


def test_short_values_are_shown_whole():
    assert value_difference([1, 2], [1, 3]) is None
