"""Which channels a process produces: those that its body sends to or closes, or that its tasks signal (AMB-WSP-39)."""

from __future__ import annotations

from collections.abc import Iterator

from .checks import walk
from .statements import Body, Close, Consume, Receive, Send, Task

__all__ = ["consumed_channels", "produced_channels"]


def produced_channels(body: Body) -> tuple[int, ...]:
    """In order of first mention."""
    return tuple(dict.fromkeys(_produced(body)))


def consumed_channels(body: Body) -> tuple[int, ...]:
    """The channels that a process, or a task of it, takes tokens from, in order of first mention."""
    return tuple(dict.fromkeys(_consumed(body)))


def _produced(body: Body) -> Iterator[int]:
    for _, each in walk(body, ""):
        if isinstance(each, Send | Close):
            yield each.channel
        elif isinstance(each, Task):
            yield from each.signals


def _consumed(body: Body) -> Iterator[int]:
    for _, each in walk(body, ""):
        if isinstance(each, Receive | Consume):
            yield each.channel
        elif isinstance(each, Task):
            yield from each.waits
