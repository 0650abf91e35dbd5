"""Contexts that load unsigned modules, and permit forbidden work (runtime spec 15; AMB-RT-88)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin import read
from tessera_reference.adapter import make
from tessera_reference.runtime import calls
from tessera_reference.runtime.contexts import Context, ModulePolicy

from .changes import Call, Given, answering, in_every_context

VERIFY, REQUIRE = calls.verify, Context.require_policy


# Signatures


def verifying(clause: str, name: str, description: str, verify: Callable[..., None]) -> Violation:
    """Return a violation that checks signatures differently."""
    return replaced(clause, description, make, ("runtime.calls.verify", verify), name=name)


def unsigned_accepted(image: bytes, keys: Any) -> None:
    if read(image, runtime=None).section("signature") is not None:
        VERIFY(image, keys)


def loaded_first(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    with restricted(adapter, given, ModulePolicy()) as context:
        module = adapter.runtime.module(call(**given)["module"])
        for entry in module.fatbin.metadata.kernels:
            if any(parameter.name == "N" for parameter in entry.parameters):
                target = module.fatbin.targets[0]
                adapter.runtime.code.executable(module, entry, target, {"N": 64}, context.governing())
    return call(**given)


@contextmanager
def restricted(adapter: Any, given: Given, policy: ModulePolicy) -> Iterator[Context]:
    """Yield the context of a call, under other restrictions within the block."""
    context = adapter.runtime.context(given["context"])
    with mock.patch.object(context, "module_policy", policy):
        yield context


SIGNED = [
    verifying("RT-15-01", "unsigned_accepted", "loads modules that nobody signed", unsigned_accepted),
    verifying("RT-15-05", "first_key", "trusts the first of several keys",
              lambda image, keys: VERIFY(image, list(keys)[:1])),
    answering("RT-15-01", "LoadedFirst", "runs a module before it looks at its signature", "tessModuleLoad",
              loaded_first),
    in_every_context("RT-15-05", "KeysOfAll", "trusts keys in every context", "tessxSetModulePolicy"),
]  # fmt: skip


# Prohibitions and their enforcement


def requiring(clause: str, name: str, description: str, require: Callable[..., None]) -> Violation:
    """Return a violation that changes the policy required of work."""
    return replaced(clause, description, make, ("runtime.contexts.Context.require_policy", require), name=name)


def fast_launches(self: Context, function: str, policy: Any) -> None:
    REQUIRE(self, function, replace(policy, allowFastMath=0))


def loose_gathering(self: Context, function: str, policy: Any) -> None:
    moves = function in ("tessAllGather", "tessBroadcast")
    REQUIRE(self, function, replace(policy, deterministic=1) if moves else policy)


def context_alone(self: Context, function: str, policy: Any) -> None:
    REQUIRE(self, function, self.governing())


def fast_module_loaded(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    policy = adapter.runtime.context(given["context"]).module_policy
    with restricted(adapter, given, replace(policy, forbid_fast_math=False)):
        return call(**given)


def refused_and_set(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    try:
        return call(**given)
    except Refusal:
        context = adapter.runtime.context(given["context"])
        context.policy = calls.read_policy("", given["policy"])
        raise


POLICIES = [
    requiring("RT-15-02", "fast_launches", "lets launches use fast math where that is forbidden", fast_launches),
    requiring("RT-15-07", "loose_gathering", "enforces determinism of reductions alone", loose_gathering),
    requiring("RT-15-07", "context_alone", "looks at the policy of the context alone", context_alone),
    answering("RT-15-02", "FastModuleLoaded", "loads modules with fast math where that is forbidden", "tessModuleLoad",
              fast_module_loaded),
    answering("RT-15-02", "RefusedAndSet", "sets a policy that it refuses", "tessSetNumericsPolicy", refused_and_set),
    in_every_context("RT-15-02", "ForbiddenEverywhere", "forbids fast math in every context", "tessxSetModulePolicy"),
    in_every_context("RT-15-07", "EnforcedEverywhere", "enforces determinism in every context", "tessxSetModulePolicy"),
]  # fmt: skip
