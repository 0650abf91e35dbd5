"""A trampoline: nested regions are visited without nesting Python calls.

A walk is a generator that yields the walk of each part and is sent its result. However deep the nesting, Python's stack
does not grow: a thousand nested loops are read, printed and verified like any others.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Walk: TypeAlias = Generator["Walk[Any]", Any, T]
"""A function that writes `part = yield walk(...)` where it would write `part = walk(...)`."""


def trampoline(walk: Walk[T]) -> T:
    """Run a walk with all the walks that it yields; what it returns."""
    pending: list[Walk[Any]] = [walk]
    sent: Any = None
    while True:
        try:
            inner = pending[-1].send(sent)
        except StopIteration as done:
            pending.pop()
            sent = done.value
            if not pending:
                result: T = sent
                return result
        else:
            pending.append(inner)
            sent = None
