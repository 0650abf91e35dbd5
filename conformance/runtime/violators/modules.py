"""Modules that are loaded, searched or unloaded wrongly (runtime specification, 4.5)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.runtime.launches import LoadedModule

from .changes import INVALID, UNSUPPORTED, BuildsOnce, Call, Given, answering, refusing

BINARIES = ("ptx", "amdgcn", "target-ir")
"""Sections that an IR pack has none of."""


def just_loaded(adapter: Any, answer: dict[str, Any]) -> LoadedModule:
    """Return the module of the returned handle."""
    module: LoadedModule = dict(adapter.runtime.handles.live("module"))[answer["module"]]
    return module


def one_module(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    live = adapter.runtime.handles.live("module")
    return {"module": live[-1][0]} if live else call(**given)


def with_parameters(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    if not any(kernel.parameters for kernel in just_loaded(adapter, answer).fatbin.metadata.kernels):
        raise Refusal(INVALID, "call", "tessModuleLoad: kernels without parameters")
    return answer


LOADED = [
    answering("RT-04.5-04", "one_module", "gives the first module for every image", "tessModuleLoad", one_module),
    answering("RT-04.5-04", "with_parameters", "wants kernels with parameters", "tessModuleLoad", with_parameters),
    refusing("RT-04.5-04", "no_host_memory", "loads no image from the memory of the host", "tessModuleLoad",
        lambda given: isinstance(given["image"], int), INVALID),
]  # fmt: skip


def has_binaries(module: LoadedModule) -> bool:
    """True if a module is no IR pack."""
    return any(section.kind in BINARIES for section in module.fatbin.sections)


def packs_at_rest(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    kernel = dict(adapter.runtime.handles.live("kernel")).get(given["kernel"])
    if kernel is not None and not has_binaries(kernel.module):
        raise Refusal(UNSUPPORTED, "call", "tessLaunch: no binary")
    return call(**given)


PACKS = [
    answering("RT-04.5-14", "packs_at_rest", "runs no kernel of an IR pack", "tessLaunch", packs_at_rest),
]


def all_of_the_image(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    live = dict(adapter.runtime.handles.live("module"))
    answer = call(**given)
    for handle, module in live.items():
        if handle != given["module"] and module.fatbin.ir_hash == live[given["module"]].fatbin.ir_hash:
            call(module=handle)
    return answer


def undone(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    for _, mesh in adapter.runtime.handles.live("mesh"):
        for stream in mesh.streams.values():
            for work in stream.queued:
                work.run = _nothing
    return call(**given)


async def _nothing(rank: int) -> None:
    """Do nothing."""


UNLOADED = [
    answering("RT-04.5-15", "all_of_the_image", "unloads equal modules too", "tessModuleUnload", all_of_the_image),
    answering("RT-04.5-15", "undone", "drops queued work", "tessModuleUnload", undone),
]


def found(name: str, description: str, matches: Any) -> Violation:
    """Return a violation that takes the first kernel of a module that matches a name."""

    def entry(module: LoadedModule, expected: str) -> Any:
        return next(
            (kernel for kernel in module.fatbin.metadata.kernels if matches(module, kernel.name, expected)), None
        )

    return replaced("RT-04.5-16", description, BuildsOnce, ("runtime.launches.LoadedModule.entry", entry), name=name)


def names(module: LoadedModule) -> list[str]:
    """Return the names of the module's kernels."""
    return [kernel.name for kernel in module.fatbin.metadata.kernels]


def among_sixteen(self: LoadedModule, name: str) -> Any:
    first = names(self)[:16]
    return ENTRY(self, first[-1]) if len(first) == 16 and name not in first else ENTRY(self, name)


ENTRY = LoadedModule.entry
FOUND = [
    replaced("RT-04.5-16", "takes the 16th kernel of a module for those behind it", BuildsOnce,
        ("runtime.launches.LoadedModule.entry", among_sixteen), name="sixteen_kernels"),
    found("any_case", "does not tell capitals apart", lambda module, name, expected: name.lower() == expected.lower()),
]  # fmt: skip
