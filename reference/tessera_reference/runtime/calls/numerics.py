"""The numerics policy of a context (runtime spec 4.7; AMB-RT-47, AMB-RT-48, AMB-RT-88)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ...abi.policy import NumericsPolicy
from ...abi.status import Failure, Status
from ..arguments import invalid, required
from ..state import entry, entry_giving
from .collectives import CollectiveCalls

__all__ = ["NumericsCalls", "read_policy"]

NAMES = tuple(each.name for each in fields(NumericsPolicy))


class NumericsCalls(CollectiveCalls):
    """tessSetNumericsPolicy, tessGetNumericsPolicy."""

    @entry
    def tessSetNumericsPolicy(self, ctx: Any, policy: Mapping[str, int] | None) -> None:  # noqa: N802
        """Govern the work that is submitted from now on (RT-04.7-10, AMB-RT-48)."""
        function = "tessSetNumericsPolicy"
        context = self.context(ctx, function)
        asked = read_policy(function, required(function, "policy", policy))
        if context.module_policy.forbid_fast_math and asked.allowFastMath:
            given = "allowFastMath is 1, which the context forbids"
            raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, function, given, "0")
        context.policy = asked

    @entry_giving("policy")
    def tessGetNumericsPolicy(self, ctx: Any) -> NumericsPolicy:  # noqa: N802
        """The policy last set, or what holds without one (RT-04.7-08, AMB-RT-33)."""
        return self.context(ctx, "tessGetNumericsPolicy").governing()


def read_policy(function: str, told: Mapping[str, Any]) -> NumericsPolicy:
    """A policy of its four switches, all of them. Raises `Failure`."""
    if not isinstance(told, Mapping) or set(told) != set(NAMES):
        raise invalid(function, f"policy is {told!r:.200}", "the switches " + ", ".join(NAMES))
    return NumericsPolicy(**told)
