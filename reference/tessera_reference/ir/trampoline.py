"""Walking nested regions without Python's stack: a walk yields the walk of each part and is sent what that gives.

However deep the nesting, only one frame of Python's stack is in use: a thousand nested loops are read, printed and
verified like any others.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Walk: TypeAlias = Generator["Walk[Any]", Any, T]
"""A function that writes `part = yield walk(...)` where it would write `part = walk(...)`."""


def descend(walk: Walk[T]) -> T:
    """Run a walk with all the walks that it yields; what it returns."""
    pending: list[Walk[Any]] = [walk]
    given: Any = None
    while True:
        try:
            inner = pending[-1].send(given)
        except StopIteration as done:
            pending.pop()
            given = done.value
            if not pending:
                result: T = given
                return result
        else:
            pending.append(inner)
            given = None
