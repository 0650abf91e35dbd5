"""Policies and descriptors that are taken otherwise (runtime specification, 4.7 and 11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.abi.policy import NumericsPolicy, StableMath
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.runtime.contexts import Context

REACH = (
    "runtime/busy*",
    "runtime/carried*",
    "runtime/descriptor/*",
    "runtime/environment/*",
    "runtime/launch-flags/*",
    "runtime/policy/*",
    "runtime/stable-math/*",
)
"""The cases of policies and descriptors."""


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


def environment_first(context: Context, module: NumericsPolicy | None = None, flag: bool = False) -> NumericsPolicy:
    """The environment wins over all but the flag."""
    policy = context.policy or module or context.default()
    chosen = context.environment.deterministic
    policy = policy if chosen is None else replace(policy, deterministic=int(chosen))
    return replace(policy, deterministic=1) if flag else policy


ENVIRONMENT = altered(
    "AMB-RT-46",
    "lets the environment win over every policy",
    REACH,
    ReferenceAdapter,
    (Context, "governing", environment_first),
    name="environment_first",
)


@varies("AMB-RT-47", "refuses fast math beside determinism", "runtime/policy/*", "runtime/busy*")
class NoFastDeterminism(ReferenceAdapter):
    """The two exclude each other."""

    def runtime_tessSetNumericsPolicy(self, *, policy: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Set a policy that has one of them at most."""
        if policy and policy["deterministic"] == policy["allowFastMath"] == 1:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "tessSetNumericsPolicy: deterministic, allowFastMath")
        return super().runtime_tessSetNumericsPolicy(policy=policy, **arguments)


@varies("AMB-RT-48", "puts all that a stream has under the policy that is set last", *REACH)
class PolicyAtExecution(ReferenceAdapter):
    """Work has the policy that is in force when it runs, which is at the synchronization."""

    def runtime_tessSetNumericsPolicy(self, *, context: Any, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Set it for what is queued, too."""
        answer: dict[str, Any] = super().runtime_tessSetNumericsPolicy(context=context, **arguments)
        owner = dict(self.runtime.handles.live("context"))[context]
        for _, mesh in self.runtime.handles.live("mesh"):
            for stream in mesh.streams.values() if mesh.context is owner else ():
                stream.carried = [replace(work, policy=owner.policy) for work in stream.carried]
        return answer
