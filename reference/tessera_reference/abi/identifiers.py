"""Names of C (runtime spec 10.3): what a C program can call a kernel or a parameter."""

from __future__ import annotations

import re

__all__ = ["is_c_identifier"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_KEYWORDS = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas
    _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local
    """.split()
)


def is_c_identifier(name: object) -> bool:
    """Whether `name` is an identifier of C17: ASCII letters, digits and underscores, and no keyword (RT-10.3-01)."""
    return isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None and name not in _KEYWORDS
