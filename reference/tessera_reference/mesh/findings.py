"""Findings: wrong uses of memory that a real machine lets pass (runtime spec 9; AMB-RT-38, AMB-RT-53)."""

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
    """One wrong use: its kind, and in words what was done where."""

    kind: FindingKind
    text: str


class Findings:
    """The findings in the order in which they were made, without repetitions; the first `most` are kept."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most
        self.left_out = 0
        self._found: dict[Finding, None] = {}

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, kind: FindingKind, text: str) -> None:
        """Add a finding, unless the same was added before; beyond the most it is only counted."""
        finding = Finding(kind, text)
        if finding in self._found:
            return
        if len(self._found) < self.most:
            self._found[finding] = None
        else:
            self.left_out += 1

    def clear(self) -> None:
        """Remove all."""
        self._found.clear()
        self.left_out = 0
