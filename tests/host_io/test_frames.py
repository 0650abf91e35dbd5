"""Frames: what is read without loss, what is unreadable, and that neither takes long."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.host_io.errors import InvalidFrame
from tessera_reference.host_io.frames import read_frame, write_frame

UNREADABLE = {
    "nothing": "",
    "a list": "[]",
    "a text": '"a"',
    "half an object": '{"a":',
    "a member twice": '{"a": 1, "b": {"c": 1, "c": 1}}',
    "NaN": '{"a": NaN}',
    "Infinity": '{"a": -Infinity}',
    "a lone surrogate": r'{"a": "\ud800"}',
    "a lone surrogate as a name": r'{"\udc00": 1}',
    "a surrogate that is written": '{"a": "\ud800"}',
    "bytes that are not UTF-8": b'{"a": "\xff"}',
    "deep lists": '{"a": ' + "[" * 100 + "]" * 100 + "}",
    "very deep lists": '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep objects": '{"a": ' * 100_000 + "1" + "}" * 100_000,
}


@pytest.mark.parametrize("frame", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_frame_is_refused(frame: str | bytes) -> None:
    with pytest.raises(InvalidFrame):
        read_frame(frame)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("64", 64),
        ("64.0", 64),
        ("6.4e1", 64),
        ("6.4E+0000000000001", 64),
        ("640e-0000000000001", 64),
        ("640e-1", 64),
        ("0.0", 0),
        ("0e99999999999999999999", 0),
        ("-0", Decimal("-0")),
        ("-0e-99999999999999999999", Decimal("-0")),
        ("-0.0", Decimal("-0.0")),
        ("0.1", Decimal("0.1")),
        ("18446744073709551615", 2**64 - 1),
        ("1.8446744073709551615e19", 2**64 - 1),
        ("9007199254740993", 2**53 + 1),
        ("1e-400", Decimal("1e-400")),
    ],
)
def test_a_number_is_what_is_written(text: str, number: int | Decimal) -> None:
    found = read_frame(f'{{"a": {text}}}')["a"]
    assert (type(found), str(found)) == (type(number), str(number)) or (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(
    "text",
    [
        "1e999999999",
        "-1e-999999999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "1" * 5_000,
        "1." + "1" * 900_000,
        "1" * 900_000,
        "1" * 900_000 + "e-900000",
    ],
    ids=lambda text: text[:24],
)
def test_a_number_that_is_far_away_or_long_takes_no_time(text: str) -> None:
    """No power of ten of that size is ever made."""
    found = read_frame(f'{{"a": {text}}}')["a"]
    assert isinstance(found, Decimal)
    assert found.is_finite()


def test_a_text_may_hold_any_character() -> None:
    assert read_frame(r'{"a": "\ud83d\ude00 \u0000 \u2028"}') == {"a": "\U0001f600 \0 \u2028"}


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab\n"', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("xyz", min_size=1), VALUES, max_size=4))
def test_an_object_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    text = write_frame(value)
    assert "\n" not in text
    assert read_frame(text) == value == json.loads(text)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_with_all_its_digits(number: Decimal) -> None:
    text = write_frame({"a": [number, "b"]})
    kept = json.loads(text, parse_float=Decimal, parse_int=Decimal)["a"][0]
    assert (kept, kept.is_signed()) == (number, number.is_signed())


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), float("nan"), object()])
def test_what_json_has_not_is_not_written(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        write_frame({"a": value})
