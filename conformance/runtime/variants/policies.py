"""Policies and descriptors that are taken otherwise (runtime specification, 4.7 and 11)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import altered
from tessera_reference.abi.descriptor import StableMath
from tessera_reference.adapter import ReferenceAdapter

REACH = ("runtime/carried*", "runtime/descriptor/*", "runtime/stable-math/*")
"""The cases of descriptors."""


def taken(toggles: Any) -> None:
    """Each toggle is on or off."""


UNSTABLE = altered(
    "AMB-RT-76",
    "takes stable-math toggles that are off",
    REACH,
    ReferenceAdapter,
    (StableMath, "__post_init__", taken),
    name="toggles_off",
)
