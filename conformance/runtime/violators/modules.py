"""Modules that are loaded, searched or unloaded wrongly (runtime specification, 4.5)."""

from tessera_conformance.adapter import Refusal
from tessera_reference.runtime.launches import LoadedModule

from .changes import INVALID, UNSUPPORTED, answering, broken, refusing, unless


def one_module(adapter, call, given):
    live = adapter.runtime.handles.live("module")
    return {"module": live[-1][0]} if live else call(**given)


def with_parameters(adapter, call, given):
    answer = call(**given)
    if not any(kernel.parameters for kernel in adapter.runtime.module(answer["module"]).fatbin.metadata.kernels):
        raise Refusal(INVALID, "call", "tessModuleLoad: kernels without parameters")
    return answer


def of_a_pack(adapter, given):
    """True if the kernel's module is an IR pack, which has no binary."""
    kernel = dict(adapter.runtime.handles.live("kernel")).get(given["kernel"])
    sections = kernel.module.fatbin.sections if kernel is not None else ()
    return kernel is not None and not {"ptx", "amdgcn", "target-ir"} & {section.kind for section in sections}


def all_of_the_image(adapter, call, given):
    live = dict(adapter.runtime.handles.live("module"))
    answer = call(**given)
    for handle, module in live.items():
        if handle != given["module"] and module.fatbin.ir_hash == live[given["module"]].fatbin.ir_hash:
            call(module=handle)
    return answer


def undone(adapter, call, given):
    for _, mesh in adapter.runtime.handles.live("mesh"):
        for stream in mesh.streams.values():
            for work in stream.queued:
                work.run = _nothing
    return call(**given)


async def _nothing(rank):
    """Do nothing."""


def any_case(module, expected):
    kernels = module.fatbin.metadata.kernels
    return next((kernel for kernel in kernels if kernel.name.lower() == expected.lower()), None)


def among_64(self, name, right=LoadedModule.entry):
    first = [kernel.name for kernel in self.fatbin.metadata.kernels[:64]]
    return right(self, first[-1] if len(first) == 64 and name not in first else name)


VIOLATORS = [
    answering("RT-04.5-04", "one_module", "gives the first module for every image", "tessModuleLoad", one_module),
    answering("RT-04.5-04", "with_parameters", "wants kernels with parameters", "tessModuleLoad", with_parameters),
    refusing("RT-04.5-04", "no_host_memory", "loads no image from the memory of the host", "tessModuleLoad",
        lambda given: isinstance(given["image"], int), INVALID),
    answering("RT-04.5-14", "packs_at_rest", "runs no kernel of an IR pack", "tessLaunch",
        unless(of_a_pack, UNSUPPORTED)),
    answering("RT-04.5-15", "all_of_the_image", "unloads equal modules too", "tessModuleUnload", all_of_the_image),
    answering("RT-04.5-15", "undone", "drops queued work", "tessModuleUnload", undone),
    broken("RT-04.5-16", "kernels_64", "takes the 64th kernel of a module for those behind it",
        "runtime.launches.LoadedModule.entry", among_64),
    broken("RT-04.5-16", "any_case", "does not tell capitals apart", "runtime.launches.LoadedModule.entry", any_case),
]  # fmt: skip
