"""What the parts of a fatbin are held to: short checks that raise `Failure`."""

from __future__ import annotations

from ...numerics.errors import shown
from ..status import Failure, invalid

__all__ = ["is_whole_number", "malformed", "require", "require_all", "require_text"]

_LARGEST = (1 << 63) - 1


def malformed(given: str, allowed: str) -> Failure:
    """The failure of whatever is no module image (AMB-RT-43)."""
    return invalid("fatbin", given, allowed)


def require(holds: bool, what: str, value: object, allowed: str) -> None:
    """Raise `Failure` with TESS_ERR_INVALID_VALUE unless a condition on `value` holds."""
    if not holds:
        raise malformed(f"{what} is {shown(value)}", allowed)


def require_all(what: str, values: object, kind: type) -> None:
    """Raise `Failure` unless `values` is a tuple of values of type `kind`."""
    of_kind = isinstance(values, tuple) and all(isinstance(each, kind) for each in values)
    require(of_kind, what, values, f"a tuple of {kind.__name__} values")


def require_text(what: str, value: object) -> None:
    """Raise `Failure` unless `value` is text that UTF-8 can hold: halves of surrogate pairs are not."""
    require(isinstance(value, str), what, value, "text")
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise malformed(f"{what} is {shown(value)}", "text without halves of surrogate pairs") from None


def is_whole_number(value: object, low: int, high: int = _LARGEST) -> bool:
    """Whether `value` is an int, and no bool, within bounds; by default those of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
