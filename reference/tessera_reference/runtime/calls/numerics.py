"""The numerics policy of a context (runtime spec 4.7; AMB-RT-47, AMB-RT-48, AMB-RT-88)."""

# ruff: noqa: N802, the names are those of the C API

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ...abi.policy import NumericsPolicy
from ..arguments import invalid, reported_by, required
from ..entries import entry
from ..state import State

__all__ = ["read_policy"]

NAMES = tuple(each.name for each in fields(NumericsPolicy))


@entry()
def tessSetNumericsPolicy(state: State, ctx: Any, policy: Mapping[str, int] | None) -> None:
    """Govern the work that is submitted from now on (RT-04.7-10, AMB-RT-48)."""
    context = state.context(ctx)
    requested = read_policy("tessSetNumericsPolicy", required("policy", policy))
    context.require_no_fast_math("allowFastMath is 1, which the context forbids", "0", requested)
    context.policy = requested


@entry("policy")
def tessGetNumericsPolicy(state: State, ctx: Any) -> NumericsPolicy:
    """The policy last set, or what holds without one (RT-04.7-08, AMB-RT-33)."""
    return state.context(ctx).governing()


def read_policy(function: str, switches: Mapping[str, Any]) -> NumericsPolicy:
    """A policy from the values of its four switches. Raises `Failure`."""
    with reported_by(function):
        if not isinstance(switches, Mapping) or set(switches) != set(NAMES):
            raise invalid(f"policy is {switches!r:.200}", "the switches " + ", ".join(NAMES))
        return NumericsPolicy(**switches)
