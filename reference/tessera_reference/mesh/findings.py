"""What the simulated machine noticed that a real one lets pass (runtime spec 9; AMB-RT-38, AMB-RT-53)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "FindingKind", "Findings"]

FindingKind = Literal[
    "uninitialised_read", "overrun", "use_after_free", "double_free", "host_device_mixup", "unordered_access"
]


@dataclass(frozen=True)
class Finding:
    """One wrong use: of which kind, and what was done where."""

    kind: FindingKind
    text: str


class Findings:
    """The findings in the order in which they were made, each told once; at most `most` are kept, the first ones."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.left_out = 0
        self._found: dict[Finding, None] = {}

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, kind: FindingKind, text: str) -> None:
        """Note a finding, unless the same was noted before; beyond the most it is only counted."""
        finding = Finding(kind, text)
        if finding in self._found:
            return
        if len(self._found) < self.most:
            self._found[finding] = None
        else:
            self.left_out += 1

    def clear(self) -> None:
        """Begin anew."""
        self._found.clear()
        self.left_out = 0
