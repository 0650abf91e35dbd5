"""Numerics policies and reduction orders that cases set (runtime specification, 4.7 and 11; AMB-RT-23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POLICY_FIELDS = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")


def policy(*values: int) -> dict[str, int]:
    """A policy from the values of its fields, in the order of the C members."""
    return dict(zip(POLICY_FIELDS, values, strict=True))


STRICT = policy(1, 1, 1, 0)
LOOSE = policy(0, 0, 0, 0)
FAST = policy(0, 0, 0, 1)
LEVELS = {"strict": STRICT, "deterministic": policy(0, 1, 1, 0), "fast": policy(0, 0, 1, 1)}
"""The policy that asks for a level."""

REDUCTION_ORDERS: Mapping[str, Any] = {
    "fold": "fold",
    "pairwise": "pairwise",
    "ring": {"ring": 3},
    "backwards": [[[[[[[7, 6], 5], 4], 3], 2], 1], 0],
    "halves": [[[0, 4], [2, 6]], [[1, 5], [3, 7]]],
}
"""Trees over eight elements, as a descriptor states them."""
