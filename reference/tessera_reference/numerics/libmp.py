"""mpmath's functions of any precision, `mpmath.libmp`, which is imported when the first of them is looked up.

To import mpmath takes a fifth of the start of a process, and most need it for no element: see `ziv`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """The function of that name, kept as if it stood here. Raises `AttributeError` where mpmath has none."""
    import mpmath.libmp

    found = globals()[name] = getattr(mpmath.libmp, name)
    return found
