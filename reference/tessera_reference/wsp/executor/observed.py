"""The record of a run that an observer asks for: tokens that arrived, kernels that ran."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Observed"]


@dataclass
class Observed:
    """In the order in which it happened: arrivals and kernels of processes, by index; tasks by number."""

    arrivals: list[tuple[int, int, int]] = field(default_factory=list)
    """Process, channel and token."""
    kernels: list[tuple[int, int, int]] = field(default_factory=list)
    """Process, kernel and cycles."""
    tasks: list[tuple[int, int]] = field(default_factory=list)
    """Kernel and cycles of each task, in the order of issue."""
