"""Modules of other versions, or for other devices, that are loaded, or refused otherwise (runtime spec, 16 and 19)."""

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import replaced
from tessera_reference.abi.fatbin.image import HEADER, Header
from tessera_reference.abi.status import ABI_VERSION

from .changes import ABI_MISMATCH, ARCH_MISMATCH, BuildsOnce, answering, broken, restating


def loading(clause, name, description, compatible):
    """Return a violation that loads modules of other versions."""
    return broken(clause, name, description, "abi.fatbin.image.is_compatible", compatible)


class AtVersion12(BuildsOnce):
    """The reference as version 1.2, so that older minor versions exist."""

    def runtime_tessGetVersion(self, **arguments):  # noqa: N802
        return super().runtime_tessGetVersion(**arguments) | {"minor": 2}


def version_first(adapter, call, given):
    image = given["image"]
    if isinstance(image, str) and len(image) >= 2 * HEADER.size:
        header = Header(*HEADER.unpack_from(bytes.fromhex(image)))
        if (header.abi_major, header.abi_minor) != ABI_VERSION:
            raise Refusal(ABI_MISMATCH, "call", "tessModuleLoad: another version")
    return call(**given)


def first_target(adapter, call, given):
    answer = call(**given)
    known = {device.target for device in adapter.runtime.machine.topology.devices}
    if adapter.runtime.module(answer["module"]).fatbin.targets[0] not in known:
        raise Refusal(ARCH_MISMATCH, "call", "tessModuleLoad: another architecture")
    return answer


VIOLATORS = [
    loading("RT-16-02", "older_majors", "loads older majors", lambda module, own: module <= own),
    loading("RT-16-02", "newer_majors", "loads newer majors",
        lambda module, own: module[0] >= own[0] and module[1] == 0),
    replaced("RT-16-03", "loads its own minor and the one before", AtVersion12, ("abi.fatbin.image.is_compatible",
        lambda module, own: module[0] == 1 and module[1] in (1, 2)), name="last_minor"),
    loading("RT-16-04", "far_minors", "loads minors far away", lambda module, own: module == own or module[1] > 50),
    restating("RT-19.A-10", "arch", "calls a version an architecture", "tessModuleLoad", ABI_MISMATCH, ARCH_MISMATCH),
    restating("RT-07-05", "later", "loads another version, to fail later", "tessModuleLoad", ABI_MISMATCH, ""),
    answering("RT-16-04", "version_first", "looks at versions of damaged images", "tessModuleLoad", version_first),
    answering("RT-19.A-05", "first_target", "looks at the first target alone", "tessModuleLoad", first_target),
]  # fmt: skip
