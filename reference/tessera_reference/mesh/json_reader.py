"""Reading a JSON document by hand: every complaint names the file, the place in it, and what is expected there.

It knows objects with named members, arrays, whole numbers and names; what they mean is for the reader of a format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NoReturn

from ..abi.status import Failure, Status
from ..ir.spelling import did_you_mean
from ..numerics.errors import shown

__all__ = ["InvalidDocument", "Place", "parse"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class InvalidDocument(Failure):
    """A document that cannot be read: `file`, JSON `path`, what is there and what is expected."""

    def __init__(self, file: str, path: str, found: str, expected: str) -> None:
        super().__init__(Status.TESS_ERR_INVALID_VALUE, file, f"{path} {found}", expected)
        self.file = file
        self.path = path
        self.found = found
        self.expected = expected


@dataclass(frozen=True)
class Place:
    """A value in a document, and where it stands."""

    file: str
    path: str
    value: Any

    def refuse(self, expected: str, found: str = "") -> NoReturn:
        """Raise `InvalidDocument` about this place."""
        raise InvalidDocument(self.file, self.path, found or f"is {shown(self.value)}", expected)

    def members(self, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Place]:
        """The members of an object, which has all that are required and none that is unknown."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        known = (*required, *optional)
        for name in self.value:
            if name not in known:
                hint = did_you_mean(name, known)
                self.refuse(", ".join(known) + (f": {hint}" if hint else ""), f"has an unknown member {shown(name)}")
        for name in required:
            if name not in self.value:
                self.refuse(f"a member {name!r}", "lacks one")
        return {name: Place(self.file, f"{self.path}.{name}", value) for name, value in self.value.items()}

    def items(self, fewest: int, most: int) -> tuple[Place, ...]:
        """The elements of an array."""
        if not isinstance(self.value, list):
            self.refuse("an array")
        if not fewest <= len(self.value) <= most:
            self.refuse(f"{fewest} to {most}", f"has {len(self.value)} elements")
        return tuple(Place(self.file, f"{self.path}[{at}]", value) for at, value in enumerate(self.value))

    def whole(self, least: int, most: int) -> int:
        """A whole number in a range; as in JSON Schema, 2.0 is one."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            self.refuse("a whole number")
        if not least <= value <= most:
            self.refuse(f"{least} to {most}")
        return int(value)

    def name(self) -> str:
        """A name: a letter, then at most 63 letters, digits, `_`, `.` or `-`."""
        if not isinstance(self.value, str) or not _NAME.fullmatch(self.value):
            self.refuse("a name: a letter, then at most 63 letters, digits, '_', '.' or '-'")
        return str(self.value)

    def text(self, longest: int) -> str:
        """Any string of a bounded length."""
        if not isinstance(self.value, str) or len(self.value) > longest:
            self.refuse(f"a string of at most {longest} characters")
        return str(self.value)

    def one_of(self, known: Collection[str]) -> str:
        """A string among those known."""
        if not isinstance(self.value, str) or self.value not in known:
            hint = did_you_mean(self.value, known) if isinstance(self.value, str) else ""
            self.refuse(f"one of {', '.join(known)}" + (f": {hint}" if hint else ""))
        return str(self.value)


def parse(text: str, file: str) -> Place:
    """The root of a JSON document. Raises `InvalidDocument`, also for NaN and for a member given twice."""

    def members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidDocument(file, "$", f"holds an object with two members {shown(twice)}", "one of each name")
        return members

    def no_constant(name: str) -> NoReturn:
        raise InvalidDocument(file, "$", f"holds {name}", "numbers that JSON has")

    try:
        return Place(file, "$", json.loads(text, object_pairs_hook=members_once, parse_constant=no_constant))
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(file, "$", f"is not JSON ({error})", "a JSON document") from None
