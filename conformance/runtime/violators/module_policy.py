"""Contexts that load unsigned modules, and permit forbidden work (runtime spec 15; AMB-RT-88)."""

from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around
from tessera_reference.abi.fatbin import read
from tessera_reference.runtime import calls
from tessera_reference.runtime.contexts import ModulePolicy

from .changes import answering, broken, in_every_context, only_if


def verifying(clause, name, description, verify):
    """Return a violation that checks signatures differently."""
    return broken(clause, name, description, "runtime.calls.verify", verify)


def loaded_first(adapter, call, given):
    with restricted(adapter, given, ModulePolicy()) as context:
        module = adapter.runtime.module(call(**given)["module"])
        for entry in module.fatbin.metadata.kernels:
            if any(parameter.name == "N" for parameter in entry.parameters):
                target = module.fatbin.targets[0]
                adapter.runtime.code.executable(module, entry, target, {"N": 64}, context.governing())
    return call(**given)


@contextmanager
def restricted(adapter, given, policy):
    """Yield the context of a call, under other restrictions within the block."""
    context = adapter.runtime.context(given["context"])
    with mock.patch.object(context, "module_policy", policy):
        yield context


def requiring(clause, name, description, policy):
    """Return a violation that requires `policy(context, function, policy of work)` of work."""
    return broken(clause, name, description, "runtime.contexts.Context.require_policy", Around(lambda usual:
        lambda self, function, given: usual(self, function, policy(self, function, given))))  # fmt: skip


def fast_module_loaded(adapter, call, given):
    policy = adapter.runtime.context(given["context"]).module_policy
    with restricted(adapter, given, replace(policy, forbid_fast_math=False)):
        return call(**given)


def refused_and_set(adapter, call, given):
    try:
        return call(**given)
    except Refusal:
        adapter.runtime.context(given["context"]).policy = calls.read_policy("", given["policy"])
        raise


VIOLATORS = [
    verifying("RT-15-01", "unsigned_accepted", "loads modules that nobody signed",
        only_if(lambda image, keys: read(image, runtime=None).section("signature") is not None)),
    verifying("RT-15-05", "first_key", "trusts the first of several keys",
        Around(lambda usual: lambda image, keys: usual(image, list(keys)[:1]))),
    verifying("RT-15-01", "key_alone", "looks at the key of a signature alone", only_if(
        lambda image, keys: (section := read(image, runtime=None).section("signature")) is None
        or section.data[:32] not in keys)),
    answering("RT-15-01", "LoadedFirst", "runs a module before it looks at its signature", "tessModuleLoad",
              loaded_first),
    in_every_context("RT-15-05", "KeysOfAll", "trusts keys in every context", "tessxSetModulePolicy"),
    requiring("RT-15-02", "fast_launches", "lets launches use fast math where that is forbidden",
        lambda context, function, policy: replace(policy, allowFastMath=0)),
    requiring("RT-15-07", "loose_gathering", "enforces determinism of reductions alone",
        lambda context, function, policy:
            replace(policy, deterministic=1) if function in ("tessAllGather", "tessBroadcast") else policy),
    requiring("RT-15-07", "context_alone", "looks at the policy of the context alone",
        lambda context, function, policy: context.governing()),
    answering("RT-15-02", "FastModuleLoaded", "loads modules with fast math where that is forbidden", "tessModuleLoad",
              fast_module_loaded),
    answering("RT-15-02", "RefusedAndSet", "sets a policy that it refuses", "tessSetNumericsPolicy", refused_and_set),
    in_every_context("RT-15-02", "ForbiddenEverywhere", "forbids fast math in every context", "tessxSetModulePolicy"),
    in_every_context("RT-15-07", "EnforcedEverywhere", "enforces determinism in every context", "tessxSetModulePolicy"),
]  # fmt: skip
