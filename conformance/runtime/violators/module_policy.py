"""Contexts that load unsigned modules, and permit what they forbid (runtime spec 15; AMB-RT-88)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.abi.fatbin import read
from tessera_reference.abi.status import Failure, Status
from tessera_reference.adapter import ReferenceAdapter, make, runtime
from tessera_reference.runtime import calls
from tessera_reference.runtime.contexts import Context, ModulePolicy

from .changes import in_every_context

VERIFY, REQUIRE = calls.verify, Context.require_policy


# Signatures


def verifying(clause: str, name: str, description: str, verify: Callable[..., None]) -> Violation:
    """Signatures checked otherwise."""
    return replaced(clause, description, make, (calls, "verify", verify), name=name)


def unsigned_accepted(image: bytes, keys: Any) -> None:
    if read(image, runtime=None).section("signature") is not None:
        VERIFY(image, keys)


def any_key(image: bytes, keys: Any) -> None:
    section = read(image, runtime=None).section("signature")
    VERIFY(image, keys if section is None else [section.data[:32]])


def first_key(image: bytes, keys: Any) -> None:
    VERIFY(image, list(keys)[:1])


def nothing_trusted(image: bytes, keys: Any) -> None:
    VERIFY(image, [])


@violates("RT-15-05", "loads no module that is signed")
class SignedRefused(ReferenceAdapter):
    def runtime_tessModuleLoad(self, *, context: Any, image: Any, **others: Any) -> dict[str, Any]:  # noqa: N802
        try:
            signed = read(bytes.fromhex(image), runtime=None).section("signature") is not None
        except (Failure, ValueError, TypeError):
            signed = False
        if signed:
            raise Refusal("TESS_ERR_INVALID_VALUE", "call", "a section of an unknown kind")
        return super().runtime_tessModuleLoad(context=context, image=image, **others)


KEYS_OF_ALL = in_every_context("RT-15-05", "KeysOfAll", "trusts keys in every context", "tessxSetModulePolicy")


@violates("RT-15-01", "runs a module before it looks at its signature")
class LoadedFirst(ReferenceAdapter):
    def runtime_tessModuleLoad(self, *, context: Any, image: Any, **others: Any) -> dict[str, Any]:  # noqa: N802
        found = self.runtime.context(context, "tessModuleLoad")
        policy, found.module_policy = found.module_policy, ModulePolicy()
        try:
            loaded = super().runtime_tessModuleLoad(context=context, image=image, **others)
            module = self.runtime.module(loaded["module"], "tessModuleLoad")
            for entry in module.fatbin.metadata.kernels:
                extents = {"N": 64} if any(parameter.name == "N" for parameter in entry.parameters) else {}
                if extents:
                    self.runtime.code.executable(module, entry, module.fatbin.targets[0], extents, found.governing())
        finally:
            found.module_policy = policy
        return super().runtime_tessModuleLoad(context=context, image=image, **others)


SIGNED = [
    verifying("RT-15-01", "unsigned_accepted", "loads modules that nobody signed", unsigned_accepted),
    verifying("RT-15-01", "any_key", "loads modules that anybody signed", any_key),
    verifying("RT-15-05", "first_key", "trusts the first of several keys", first_key),
    verifying("RT-15-05", "nothing_trusted", "trusts no key", nothing_trusted),
    verifying("RT-15-05", "never_verified", "does not look at signatures", lambda image, keys: None),
]


# What is forbidden, and enforced


def requiring(clause: str, name: str, description: str, require: Callable[..., None]) -> Violation:
    """The policy that work has to satisfy, changed."""
    return replaced(clause, description, make, (Context, "require_policy", require), name=name)


def policy_set(clause: str, name: str, description: str, change: Callable[[ModulePolicy], ModulePolicy]) -> Violation:
    """A context's restrictions, changed when they are set."""
    return replaced(
        clause, description, make, (runtime, "ModulePolicy", lambda *of: change(ModulePolicy(*of))), name=name
    )


def fast_launches(self: Context, function: str, policy: Any) -> None:
    REQUIRE(self, function, replace(policy, allowFastMath=0))


def loose_launches(self: Context, function: str, policy: Any) -> None:
    REQUIRE(self, function, replace(policy, deterministic=1) if function == "tessLaunch" else policy)


def loose_collectives(self: Context, function: str, policy: Any) -> None:
    REQUIRE(self, function, policy if function == "tessLaunch" else replace(policy, deterministic=1))


def loose_gathering(self: Context, function: str, policy: Any) -> None:
    moves = function in ("tessAllGather", "tessBroadcast")
    REQUIRE(self, function, replace(policy, deterministic=1) if moves else policy)


def context_alone(self: Context, function: str, policy: Any) -> None:
    REQUIRE(self, function, self.governing())


def as_launch_failed(self: Context, function: str, policy: Any) -> None:
    try:
        REQUIRE(self, function, policy)
    except Failure as failure:
        raise Failure(Status.TESS_ERR_LAUNCH_FAILED, function, str(failure), "other work") from None


@violates("RT-15-02", "takes a policy with fast math where that is forbidden")
class FastPolicyTaken(ReferenceAdapter):
    def runtime_tessSetNumericsPolicy(self, *, context: Any, policy: Any, **others: Any) -> dict[str, Any]:  # noqa: N802
        found = self.runtime.context(context, "tessSetNumericsPolicy")
        kept, found.module_policy = found.module_policy, ModulePolicy()
        try:
            return super().runtime_tessSetNumericsPolicy(context=context, policy=policy, **others)
        finally:
            found.module_policy = kept


@violates("RT-15-02", "loads modules with fast math where that is forbidden")
class FastModuleLoaded(ReferenceAdapter):
    def runtime_tessModuleLoad(self, *, context: Any, **others: Any) -> dict[str, Any]:  # noqa: N802
        found = self.runtime.context(context, "tessModuleLoad")
        kept = found.module_policy
        found.module_policy = replace(kept, forbid_fast_math=False)
        try:
            return super().runtime_tessModuleLoad(context=context, **others)
        finally:
            found.module_policy = kept


@violates("RT-15-02", "sets a policy that it refuses")
class RefusedAndSet(ReferenceAdapter):
    def runtime_tessSetNumericsPolicy(self, *, context: Any, policy: Any, **others: Any) -> dict[str, Any]:  # noqa: N802
        try:
            return super().runtime_tessSetNumericsPolicy(context=context, policy=policy, **others)
        except Refusal:
            self.runtime.context(context, "tessSetNumericsPolicy").policy = calls.read_policy("", policy)
            raise


POLICIES = [
    policy_set("RT-15-02", "fast_math_allowed", "forbids no fast math", lambda policy: replace(
        policy, forbid_fast_math=False
    )),
    policy_set("RT-15-02", "forbidden_always", "forbids fast math from now on for ever", lambda policy: replace(
        policy, forbid_fast_math=True
    )),
    policy_set("RT-15-07", "enforced_always", "enforces determinism from now on for ever", lambda policy: replace(
        policy, enforce_determinism=True
    )),
    requiring("RT-15-02", "fast_launches", "lets launches use fast math where that is forbidden", fast_launches),
    requiring("RT-15-07", "loose_launches", "enforces determinism of collectives alone", loose_launches),
    requiring("RT-15-07", "loose_collectives", "enforces determinism of launches alone", loose_collectives),
    requiring("RT-15-07", "loose_gathering", "enforces determinism of reductions alone", loose_gathering),
    requiring("RT-15-07", "context_alone", "looks at the policy of the context alone", context_alone),
    requiring("RT-15-07", "as_launch_failed", "reports a violation as a failed launch", as_launch_failed),
]  # fmt: skip


EVERYWHERE = [
    in_every_context(clause, name, description, "tessxSetModulePolicy")
    for clause, name, description in (
        ("RT-15-07", "EnforcedEverywhere", "enforces determinism in every context"),
        ("RT-15-02", "ForbiddenEverywhere", "forbids fast math in every context"),
    )
]
