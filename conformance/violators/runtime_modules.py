"""Modules that are loaded, searched or unloaded wrong, and versions (runtime specification, 4.5, 16 and 19.A)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi import fatbin
from tessera_reference.abi.fatbin import container, reader
from tessera_reference.abi.version import AbiVersion
from tessera_reference.runtime.calls import modules
from tessera_reference.runtime.modules import LoadedModule

from .runtime_changes import (
    INVALID,
    BuildsOnce,
    Call,
    Given,
    accepting,
    answering,
    refusing,
    restating,
    without_waiting,
)

ABI_MISMATCH = "TESS_ERR_ABI_VERSION_MISMATCH"
ARCH_MISMATCH = "TESS_ERR_ARCH_MISMATCH"


def loaded_once(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Refuse while another module of the context is loaded."""
    if any(module.context.handle == given["context"] for _, module in adapter.runtime.handles.live("module")):
        raise Refusal(INVALID, "call", "tessModuleLoad: there is a module")
    return call(**given)


def one_module(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """The module that there is already."""
    live = adapter.runtime.handles.live("module")
    return {"module": live[-1][0]} if live else call(**given)


def checksum_ignored(data: bytes | memoryview) -> Any:
    """What every checksum is equal to."""
    return AnyEnd()


class AnyEnd(tuple[bytes, ...]):
    """A suffix that every image ends with."""

    def __new__(cls) -> AnyEnd:
        """The empty suffix."""
        return super().__new__(cls, (b"",))


def without_parameters(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Refuse modules of more than one kernel."""
    answer = call(**given)
    module = dict(adapter.runtime.handles.live("module"))[answer["module"]]
    if not any(each.parameters for each in module.fatbin.metadata.kernels):
        raise Refusal(INVALID, "call", "tessModuleLoad: a kernel without parameters")
    return answer


LOADED: list[Violation] = [
    answering("RT-04.5-04", "loaded_once", "loads one module a context", "tessModuleLoad", loaded_once),
    answering("RT-04.5-04", "one_module", "gives the first module for every image", "tessModuleLoad", one_module),
    answering(
        "RT-04.5-04", "without_parameters", "refuses kernels without parameters", "tessModuleLoad", without_parameters
    ),
    answering(
        "RT-04.5-04",
        "null_module",
        "gives a module that is NULL",
        "tessModuleLoad",
        lambda adapter, call, given: call(**given) and {"module": 0},
    ),
    refusing(
        "RT-04.5-04",
        "no_host_memory",
        "loads no image from memory of the host",
        "tessModuleLoad",
        lambda given: isinstance(given["image"], int),
        INVALID,
    ),
    replaced(
        "RT-04.5-04",
        "does not look at the checksum",
        BuildsOnce,
        (reader, "checksum", checksum_ignored),
        name="checksum_ignored",
    ),
    restating("RT-04.5-04", "damaged_unsupported", "calls damage unsupported", "tessModuleLoad", INVALID, "TESS_ERR_UNSUPPORTED"),
]


def refused_packs(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Refuse images without binaries."""
    answer = call(**given)
    module = dict(adapter.runtime.handles.live("module"))[answer["module"]]
    if not any(each.kind in ("ptx", "amdgcn", "target-ir") for each in module.fatbin.sections):
        raise Refusal(ARCH_MISMATCH, "call", "tessModuleLoad: no binary")
    return answer


def small_packs_only(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Refuse to launch kernels of images without binaries."""
    kernel = dict(adapter.runtime.handles.live("kernel")).get(given["kernel"])
    if kernel is not None and not any(each.kind in ("ptx", "amdgcn", "target-ir") for each in kernel.module.fatbin.sections):
        raise Refusal("TESS_ERR_UNSUPPORTED", "call", "tessLaunch: no binary")
    return call(**given)


PACKS = [
    answering("RT-04.5-14", "refused_packs", "loads no image without binaries", "tessModuleLoad", refused_packs),
    answering("RT-04.5-14", "packs_at_rest", "runs no kernel of an IR pack", "tessLaunch", small_packs_only),
]


def unused_only(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Refuse modules whose kernels were asked for."""
    module = dict(adapter.runtime.handles.live("module")).get(given["module"])
    if module is not None and module.kernels:
        raise Refusal(INVALID, "call", "tessModuleUnload: it has kernels")
    return call(**given)


def all_of_the_image(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """End every module of that image."""
    live = dict(adapter.runtime.handles.live("module"))
    ended = live.get(given["module"])
    answer = call(**given)
    for handle, module in live.items():
        if handle != given["module"] and module.fatbin.ir_hash == ended.fatbin.ir_hash:
            call(module=handle)
    return answer


def undone(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Drop what is queued."""
    for _, mesh in adapter.runtime.handles.live("mesh"):
        for stream in mesh.streams.values():
            for work in list(stream.queued):
                work.run = _nothing
    return call(**given)


async def _nothing(rank: int) -> None:
    """Do nothing."""


UNLOADED = [
    answering("RT-04.5-15", "unused_only", "unloads only modules that were not used", "tessModuleUnload", unused_only),
    answering("RT-04.5-15", "all_of_the_image", "unloads other modules of the image", "tessModuleUnload", all_of_the_image),
    answering("RT-04.5-15", "undone", "drops queued work", "tessModuleUnload", undone),
    refusing("RT-04.5-15", "never_unloads", "unloads nothing", "tessModuleUnload"),
]


def found(name: str, description: str, entry: Any) -> Violation:
    """Kernels that are looked for in another way."""
    return replaced("RT-04.5-16", description, BuildsOnce, (LoadedModule, "entry", entry), name=name)


def entries(module: LoadedModule) -> list[Any]:
    """The kernels of a module."""
    return list(module.fatbin.metadata.kernels)


LIVE: list[LoadedModule] = []


def anywhere(module: LoadedModule, name: str) -> Any:
    """A kernel of that name in any module looked at so far."""
    LIVE.append(module)
    return next((each for one in LIVE for each in entries(one) if each.name == name), None)


FOUND = [
    found("first_kernel", "gives the first kernel under every known name", lambda module, name: next(
        (entries(module)[0] for each in entries(module) if each.name == name), None
    )),
    found("prefix", "takes the beginning of a name for the name", lambda module, name: next(
        (each for each in entries(module) if name and each.name.startswith(name)), None
    )),
    found("any_case", "does not tell capitals apart", lambda module, name: next(
        (each for each in entries(module) if each.name.lower() == name.lower()), None
    )),
    found("anywhere", "finds kernels of other modules", anywhere),
    found("not_the_last", "does not find the last kernel", lambda module, name: next(
        (each for each in entries(module)[:-1] if each.name == name), None
    )),
    answering(
        "RT-04.5-16", "null_kernel", "gives a kernel that is NULL", "tessKernelGet",
        lambda adapter, call, given: call(**given) and {"kernel": 0},
    ),
    restating("RT-04.5-16", "unknown_found", "finds kernels under every name", "tessKernelGet", INVALID, ""),
]  # fmt: skip


# Versions and targets


def versions(clause: str, name: str, description: str, compatible: Any, own: AbiVersion = (1, 0)) -> Violation:
    """Modules that load are others; `own` is the runtime's version."""
    patches = [
        (reader, "is_compatible", lambda module, runtime=own: compatible(module, own)),
    ]
    return replaced(clause, description, BuildsOnce, *patches, name=name)


def at_version_1_2(clause: str, name: str, description: str, compatible: Any) -> Violation:
    """The same of a runtime whose version is 1.2, which has older minors."""
    own = (1, 2)

    def make() -> Any:
        return AtVersion12()

    return replaced(
        clause, description, make, (reader, "is_compatible", lambda module, runtime=own: compatible(module, own)), name=name
    )


class AtVersion12(BuildsOnce):
    """The reference, of version 1.2."""

    def runtime_tessGetVersion(self, **given: Any) -> dict[str, Any]:  # noqa: N802
        """1.2."""
        return super().runtime_tessGetVersion(**given) | {"minor": 2}


VERSIONS = [
    versions("RT-16-02", "any_major", "loads every major", lambda module, own: module[1] <= own[1]),
    versions("RT-16-02", "older_majors", "loads older majors", lambda module, own: module[0] <= own[0] and module <= own),
    versions("RT-16-02", "newer_majors", "loads newer majors", lambda module, own: module[0] >= own[0] and module[1] <= own[1]),
    at_version_1_2("RT-16-03", "exact_minor", "loads only its own minor", lambda module, own: module == own),
    at_version_1_2("RT-16-03", "last_minor", "loads its own minor and the one before", lambda module, own: module in (own, (1, 1))),
    at_version_1_2("RT-16-03", "not_the_first", "does not load minor 0", lambda module, own: module[0] == 1 and 0 < module[1] <= 2),
    versions("RT-16-04", "newer_minors", "loads newer minors", lambda module, own: module[0] == own[0]),
    versions("RT-16-04", "next_minor", "loads the next minor", lambda module, own: module[0] == 1 and module[1] <= own[1] + 1),
    restating("RT-16-04", "mismatch_invalid", "calls another version an invalid value", "tessModuleLoad", ABI_MISMATCH, INVALID),
    restating("RT-19.A-10", "mismatch_unsupported", "calls another version unsupported", "tessModuleLoad", ABI_MISMATCH, "TESS_ERR_UNSUPPORTED"),
    restating("RT-19.A-10", "mismatch_arch", "takes another version for another architecture", "tessModuleLoad", ABI_MISMATCH, ARCH_MISMATCH),
    restating("RT-07-05", "mismatch_later", "loads another version, to fail later", "tessModuleLoad", ABI_MISMATCH, ""),
]


def version_first(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Refuse a foreign version in an image that is damaged."""
    try:
        return call(**given)
    except Refusal:
        image = given["image"]
        if isinstance(image, str) and len(image) > 64 and image[:64] != adapter.own_beginning():
            raise Refusal(ABI_MISMATCH, "call", "tessModuleLoad: a version") from None
        raise


class LooksAtVersionsFirst(BuildsOnce):
    """Knows how its own images begin."""

    def own_beginning(self) -> str:
        """The first bytes of an image of its own version."""
        return str(self.abi_compile(source="module m { kernel k() { } }")["image"][:64])


TARGETS = [
    restating("RT-19.A-05", "arch_invalid", "calls another architecture an invalid value", "tessModuleLoad", ARCH_MISMATCH, INVALID),
    restating("RT-19.A-05", "arch_unsupported", "calls another architecture unsupported", "tessModuleLoad", ARCH_MISMATCH, "TESS_ERR_UNSUPPORTED"),
    restating("RT-07-06", "arch_later", "loads for another architecture, to fail later", "tessModuleLoad", ARCH_MISMATCH, ""),
]


def first_target(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    """Look at the first target alone."""
    answer = call(**given)
    module = dict(adapter.runtime.handles.live("module"))[answer["module"]]
    known = {each.target for each in adapter.runtime.machine.topology.devices}
    if module.fatbin.targets[0] not in known:
        raise Refusal(ARCH_MISMATCH, "call", "tessModuleLoad: another architecture")
    return answer


TARGETS.append(answering("RT-19.A-05", "first_target", "looks at the first target alone", "tessModuleLoad", first_target))

__all__ = ["accepting", "container", "fatbin", "modules", "version_first", "without_waiting"]
