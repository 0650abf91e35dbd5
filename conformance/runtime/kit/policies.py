"""Numerics policies and reduction orders that cases set (runtime specification, 4.7 and 11; AMB-RT-23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.protocol import Rejected
from tessera_conformance.session import Implementation

POLICY_FIELDS = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")


def policy(*values: int) -> dict[str, int]:
    """Return a policy from the values of its fields, in the order of the C members."""
    return dict(zip(POLICY_FIELDS, values, strict=True))


STRICT = policy(1, 1, 1, 0)
LOOSE = policy(0, 0, 0, 0)
FAST = policy(0, 0, 0, 1)
LEVELS = {"strict": STRICT, "deterministic": policy(0, 1, 1, 0), "fast": policy(0, 0, 1, 1)}
"""The policy for a level."""


def set_policy(impl: Implementation, check: Check, context: int, policy: Mapping[str, int]) -> None:
    """Set the numerics policy of a context; fast math beside determinism may be refused (AMB-RT-47)."""
    answer = impl.runtime.tessSetNumericsPolicy(context=context, policy=policy)
    refused = isinstance(answer, Rejected) and answer.code == "TESS_ERR_INVALID_VALUE"
    both = refused and bool(policy["deterministic"] and policy["allowFastMath"])
    check.reading("AMB-RT-47", "the combination is INVALID_VALUE", both)
    check.returns(answer, "tessSetNumericsPolicy succeeds")


REDUCTION_ORDERS: Mapping[str, Any] = {
    "fold": "fold",
    "pairwise": "pairwise",
    "ring": {"ring": 3},
    "backwards": [[[[[[[7, 6], 5], 4], 3], 2], 1], 0],
    "halves": [[[0, 4], [2, 6]], [[1, 5], [3, 7]]],
}
"""Trees over eight elements, as a descriptor spells them."""
