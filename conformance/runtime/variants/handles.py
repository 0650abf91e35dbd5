"""Other handles: whatever number is not NULL may stand for an object (runtime specification, section 4; AMB-RT-38)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime.machine import Handles

from .reach import RUNTIME

FIRST = 2**62 + 1
"""So large that no float holds the numbers beside it."""


def large_and_odd(handles: Handles, kind: str, held: Any) -> int:
    """Odd numbers that descend from the largest."""
    handles._last += 1
    return given(handles, FIRST + 2 * (2**20 - handles._last), kind, held)


def least_free(handles: Handles, kind: str, held: Any) -> int:
    """The least number that no live object has, that of the one destroyed last before all."""
    number = 1
    while number in handles._live:
        number += 1
    return given(handles, number, kind, held)


def given(handles: Handles, number: int, kind: str, held: Any) -> int:
    """Give an object this handle."""
    handles._dead.pop(number, None)
    handles._live[number] = (kind, held)
    handles._of_kind.setdefault(kind, {})[number] = held
    return number


LARGE = altered(
    "AMB-RT-38",
    "has odd handles beyond 2**62, which descend",
    RUNTIME,
    ReferenceAdapter,
    (Handles, "give", large_and_odd),
    name="large_handles",
)

REUSED = altered(
    "AMB-RT-38",
    "gives the handle of what was destroyed to what is made next, of whatever kind",
    RUNTIME,
    ReferenceAdapter,
    (Handles, "give", least_free),
    name="handles_at_once_reused",
)
