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

KEYS = {
    "first": (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    ),
    "second": (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    ),
    "third": (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    ),
}
"""Private and public keys: those of tests 1 to 3 of RFC 8032, section 7.1."""


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
