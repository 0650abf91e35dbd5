"""Reading the numbers and strings of IR text, of which the first token is the current one (AMB-LANG-31)."""

from __future__ import annotations

import math
from fractions import Fraction

from .attributes import float_of_bits, string_of
from .byte_count import UNITS, ByteCount
from .spelling import did_you_mean
from .text_tokens import Tokens

__all__ = ["fraction", "integer", "number", "string"]

MOST_DIGITS = 4000


def number(tokens: Tokens) -> int | float | ByteCount:
    """An integer, the bits of a double such as `0x7FF0000000000000 : f64`, or a number of bytes such as `4KiB`."""
    start, is_hexadecimal = tokens.start, tokens.text.startswith("0x")
    value = integer(tokens)
    if _is_unit(tokens):
        return _bytes_of(tokens, value)
    if _suffix(tokens) != "f64":
        return value
    if not is_hexadecimal:
        return float(value) if abs(value) <= 1 << 53 else value
    if not 0 <= value < 1 << 64:
        span = tokens.span(start, tokens.previous_end)
        tokens.reject("syntax", "parse", "a double has 64 bits", span, "16 digits at most", "AMB-LANG-31", "")
    return float_of_bits(value)


def fraction(tokens: Tokens) -> float | ByteCount:
    """A float, or a number of bytes such as `1.5MiB`; infinity is written by its bits."""
    text = tokens.advance()
    if _is_unit(tokens) and "e" not in text.lower():
        return _bytes_of(tokens, Fraction(text.rstrip(".")))
    span = tokens.span(tokens.previous_end - len(text), tokens.previous_end)
    _suffix(tokens)
    if math.isinf(float(text)):
        requirement = "a magnitude up to 1.7976931348623157e308, or 0x7FF0000000000000 : f64"
        tokens.reject("types", "verify", f"{text[:20]} does not fit a double", span, requirement, "AMB-LANG-54", "")
    return float(text)


def integer(tokens: Tokens) -> int:
    """An integer, decimal or hexadecimal."""
    if len(tokens.text) > MOST_DIGITS:
        tokens.refuse(f"an integer of {len(tokens.text)} digits", f"at most {MOST_DIGITS}", "LANG-02.1-02")
    text = tokens.advance()
    return int(text, 16) if "x" in text else int(text)


def string(tokens: Tokens) -> str:
    """What a string says."""
    try:
        text = string_of(tokens.text)
    except ValueError:
        tokens.refuse("a string has an escape that is none", r"\\, \", \n, \t or two hexadecimal digits")
    tokens.advance()
    return text


def _is_unit(tokens: Tokens) -> bool:
    """Whether a word stands right behind a number."""
    return tokens.kind == "word" and tokens.start == tokens.previous_end


def _bytes_of(tokens: Tokens, count: Fraction | int) -> ByteCount:
    """`B`, `KiB`, `MiB` or `GiB` right behind a number (AMB-COLL-01, AMB-COLL-35)."""
    unit = tokens.text
    if unit not in UNITS:
        remedy = did_you_mean(unit, UNITS)
        tokens.refuse(f"{unit!r} is no unit of bytes", f"one of {', '.join(UNITS)}", "AMB-COLL-01", remedy)
    try:
        found = ByteCount.of(count, unit)
    except ValueError as no_bytes:
        tokens.refuse(str(no_bytes), "a whole number of bytes", "AMB-COLL-35")
    tokens.advance()
    return found


def _suffix(tokens: Tokens) -> str:
    """`: i64` or `: f64` behind a number; the word."""
    if not tokens.accept(":"):
        return ""
    if tokens.kind != "word":
        tokens.refuse(f"expected a type, found {tokens.shown()}", "i64 or f64 behind a number")
    return tokens.advance()
