"""Determinism descriptors as messages have them (runtime spec 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..abi.descriptor import Descriptor, StableMath
from ..numerics.attributes import tree
from .values import names_within

__all__ = ["read_descriptor"]


def read_descriptor(message: Mapping[str, Any]) -> Descriptor:
    """A determinism descriptor from its message. Raises `Failure` and `InvalidArgument`."""
    given = dict(names_within("tessLaunch", "descriptor", message, [field.name for field in fields(Descriptor)]))
    if "reduction_order" in given:
        given["reduction_order"] = tree("tessLaunch", "descriptor.reduction_order", given["reduction_order"])
    if "stable" in given:
        allowed = [field.name for field in fields(StableMath)]
        given["stable"] = StableMath(**names_within("tessLaunch", "descriptor.stable", given["stable"], allowed))
    return Descriptor(**given)
