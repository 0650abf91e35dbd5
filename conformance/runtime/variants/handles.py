"""Other handles: whatever number is not NULL may stand for an object (runtime specification, section 4; AMB-RT-38)."""

from __future__ import annotations

from itertools import count

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime.machine import Handles

from .reach import RUNTIME

FIRST = 2**62 + 1
"""So large that no float holds the numbers beside it."""


def large_and_odd(handles: Handles) -> int:
    """Odd numbers that descend from the largest."""
    return FIRST + 2 * (2**20 - len(handles._kinds))


def least_free(handles: Handles) -> int:
    """The least number that no live object has, that of the one destroyed last before all."""
    used = {handle for live in handles._live.values() for handle in live}
    return next(number for number in count(1) if number not in used)


LARGE = altered(
    "AMB-RT-38",
    "has odd handles beyond 2**62, which descend",
    RUNTIME,
    ReferenceAdapter,
    (Handles, "next", property(large_and_odd)),
    name="large_handles",
)

REUSED = altered(
    "AMB-RT-38",
    "gives the handle of what was destroyed to what is made next, of whatever kind",
    RUNTIME,
    ReferenceAdapter,
    (Handles, "next", property(least_free)),
    name="handles_at_once_reused",
)
