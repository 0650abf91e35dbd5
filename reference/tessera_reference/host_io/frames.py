"""One frame: a JSON object in UTF-8, read without loss and written in one form (D3; AMB-HIO-19, AMB-HIO-33)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NoReturn

from .errors import InvalidFrame

__all__ = ["read_frame", "write_frame"]

_MOST_DIGITS = 20
"""Digits of 2^64: a larger number is no whole number that a member may have."""
_EXPONENT_DIGITS = 8
"""Digits of a power of ten that is far beyond every element; what is farther is told as the first of more."""
_FARTHEST = 10**_EXPONENT_DIGITS
_DEEPEST = 64
"""Objects and lists within each other."""


def read_frame(frame: str | bytes) -> dict[str, Any]:
    """The object of a frame; numbers are whole or `Decimal`, as they are written. Raises `InvalidFrame`."""
    try:
        text = frame if isinstance(frame, str) else frame.decode("utf-8")
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            raise InvalidFrame(f"a JSON {type(value).__name__}, expected an object")
        if text.count("{") + text.count("[") > _DEEPEST:
            _require_shallow(value)
        if "\\u" in text or not text.isascii():
            write_frame(value).encode("utf-8")  # lone surrogates, which no response could repeat
    except (ValueError, RecursionError) as error:
        raise InvalidFrame(f"not a JSON text in UTF-8: {error}") from None
    return value


def write_frame(value: Any) -> str:
    """The text of a message, without a line feed; equal messages have equal text. A `Decimal` keeps all its digits.

    Raises `TypeError` or `ValueError` for what JSON has not.
    """
    try:
        return _encode(value)
    except TypeError:  # most messages have no number with a fraction
        return _exact(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _exact(value: Any) -> str:
    """As `_encode`, with numbers as they are written."""
    match value:
        case dict():
            return f"{{{','.join(f'{_encode(name)}:{_exact(member)}' for name, member in value.items())}}}"
        case list() | tuple():
            return f"[{','.join(map(_exact, value))}]"
        case Decimal() if value.is_finite():
            return str(value)
    return _encode(value)


def _whole(text: str) -> int | Decimal:
    """A number without fraction and exponent; the negative zero and what no member may have stay as they are."""
    return int(text) if len(text) <= 2 * _MOST_DIGITS and text != "-0" else Decimal(text)


def _number(text: str) -> int | Decimal:
    """What a number with a fraction or an exponent is: whole where it is one, except the negative zero (AMB-HIO-33)."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(exponent.lstrip("+-0")) > _EXPONENT_DIGITS:
        far = "-" if exponent.startswith("-") else ""
        sign = "-" if mantissa.startswith("-") else ""
        text = f"{sign}1e{far}{_FARTHEST}" if mantissa.strip("-.0") else mantissa
    number = Decimal(text)
    if not number:
        return number if number.is_signed() else 0
    whole = 0 <= number.adjusted() < _MOST_DIGITS and number == number.to_integral_value()
    return int(number) if whole else number


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"a member given twice: {twice!r}")
    return members


def _require_shallow(value: Any) -> None:
    """Nothing lies deeper than any message needs. Raises `ValueError`."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for members in inner for each in members if isinstance(each, dict | list)]
        if not level:
            return
    raise ValueError(f"more than {_DEEPEST} objects and lists within each other")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_number, parse_constant=_refused, object_pairs_hook=_members)
