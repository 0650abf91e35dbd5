"""One frame: a JSON object in UTF-8, read without loss and written in one form (D3; AMB-HIO-19, AMB-HIO-33)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NoReturn

from .errors import InvalidFrame

__all__ = ["read_frame", "write_frame"]

_MOST_DIGITS = 20
"""Digits of 2^64: a larger number is no whole number that a member may have."""


def read_frame(frame: str | bytes) -> dict[str, Any]:
    """The object of a frame; numbers are whole or `Decimal`, as they are written. Raises `InvalidFrame`."""
    try:
        text = frame if isinstance(frame, str) else frame.decode("utf-8")
        value = json.loads(text, parse_float=_number, parse_constant=_refused, object_pairs_hook=_members)
        if isinstance(value, dict):
            str(value).encode("utf-8")  # lone surrogates, which no response could repeat
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidFrame(f"not a JSON text in UTF-8: {error}") from None
    if not isinstance(value, dict):
        raise InvalidFrame(f"a JSON {type(value).__name__}, expected an object")
    return value


def write_frame(value: Mapping[str, Any]) -> str:
    """The text of a message, without a line feed; equal messages have equal text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _number(text: str) -> int | Decimal:
    """What a number with a fraction or an exponent is: whole where it is one, except the negative zero (AMB-HIO-33)."""
    number = Decimal(text)
    whole = number and number.adjusted() < _MOST_DIGITS and number == number.to_integral_value()
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
