"""Modules of other versions, or for other devices, that are loaded, or refused otherwise (runtime spec, 16 and 19)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin.image import HEADER, Header
from tessera_reference.abi.status import ABI_VERSION, AbiVersion

from .changes import ABI_MISMATCH, ARCH_MISMATCH, BuildsOnce, Call, Given, answering, restating

Compatible = Callable[[AbiVersion, AbiVersion], bool]
"""True if a module of the first version is loaded by a runtime of the second."""


def loading(clause: str, name: str, description: str, compatible: Compatible) -> Violation:
    """Return a violation that loads modules of other versions."""
    return replaced(clause, description, BuildsOnce, ("abi.fatbin.image.is_compatible", compatible), name=name)


class AtVersion12(BuildsOnce):
    """The reference as version 1.2, so that older minor versions exist."""

    def runtime_tessGetVersion(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802
        """Return version 1.2."""
        return super().runtime_tessGetVersion(**arguments) | {"minor": 2}


def loading_at_1_2(name: str, description: str, minors: tuple[int, ...]) -> Violation:
    """Return a violation of version 1.2 that loads modules of these minors."""

    def compatible(module: AbiVersion, runtime: AbiVersion) -> bool:
        return module[0] == 1 and module[1] in minors

    return replaced("RT-16-03", description, AtVersion12, ("abi.fatbin.image.is_compatible", compatible), name=name)


VERSIONS = [
    loading("RT-16-02", "older_majors", "loads older majors", lambda module, own: module <= own),
    loading("RT-16-02", "newer_majors", "loads newer majors",
        lambda module, own: module[0] >= own[0] and module[1] == 0),
    loading_at_1_2("last_minor", "loads its own minor and the one before", (1, 2)),
    loading("RT-16-04", "far_minors", "loads minors far away", lambda module, own: module == own or module[1] > 50),
    restating("RT-19.A-10", "arch", "calls a version an architecture", "tessModuleLoad", ABI_MISMATCH, ARCH_MISMATCH),
    restating("RT-07-05", "later", "loads another version, to fail later", "tessModuleLoad", ABI_MISMATCH, ""),
]  # fmt: skip


def version_first(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    image = given["image"]
    if isinstance(image, str) and len(image) >= 2 * HEADER.size:
        header = Header(*HEADER.unpack_from(bytes.fromhex(image)))
        if (header.abi_major, header.abi_minor) != ABI_VERSION:
            raise Refusal(ABI_MISMATCH, "call", "tessModuleLoad: another version")
    return call(**given)


DAMAGED = answering("RT-16-04", "version_first", "looks at versions of damaged images", "tessModuleLoad", version_first)


def first_target(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    module = dict(adapter.runtime.handles.live("module"))[answer["module"]]
    known = {device.target for device in adapter.runtime.machine.topology.devices}
    if module.fatbin.targets[0] not in known:
        raise Refusal(ARCH_MISMATCH, "call", "tessModuleLoad: another architecture")
    return answer


TARGETS = [
    answering("RT-19.A-05", "first_target", "looks at the first target alone", "tessModuleLoad", first_target),
]
