"""Names of values in text: unique in a function, and such as MLIR takes (LANG-01-03)."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[0-9]+|[A-Za-z_$.-][A-Za-z0-9_$.-]*")
_STRANGE = re.compile(r"[^A-Za-z0-9_$.-]")


class Names:
    """The names that are taken in one function."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next = 0

    def unique(self, hint: str) -> str:
        """The name wished for, or one like it that is free."""
        name = hint if _PLAIN.fullmatch(hint) else f"_{_STRANGE.sub('_', hint)}"
        if name in self._taken:
            stem = "" if name.isdecimal() else f"{name}_"
            while (name := f"{stem}{self._next}") in self._taken:
                self._next += 1
        self._taken.add(name)
        return name
