"""Modules for other versions and other devices are refused when they are loaded (runtime specification, 7, 16)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import COUNT, MeshSession, compiled, opened, refused
from tessera_conformance.chapters.runtime.kit.modules import PROGRAMS, filled, foreign_targets, loading
from tessera_conformance.chapters.runtime.kit.readings import judge_foreign_module
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Returned

INVALID = "TESS_ERR_INVALID_VALUE"
ARCH_MISMATCH = "TESS_ERR_ARCH_MISMATCH"
ABI_MISMATCH = "TESS_ERR_ABI_VERSION_MISMATCH"


# Versions


def version(session: MeshSession) -> tuple[int, int]:
    """The ABI pair of the runtime (AMB-RT-32)."""
    version = session.ask("tessGetVersion")
    return version["major"], version["minor"]


OTHER_MAJORS = {
    "next": lambda major, minor: [major + 1, minor],
    "next, first minor": lambda major, minor: [major + 1, 0],
    "far": lambda major, minor: [major + 41, minor],
    "none": lambda major, minor: [major - 1 if major else 2, minor],
    "largest": lambda major, minor: [65535, minor],
}


@clause("RT-16-02", "RT-16-04", "RT-19.A-10", "RT-07-05")
@pytest.mark.parametrize("other", OTHER_MAJORS.values(), ids=OTHER_MAJORS)
def test_a_module_of_another_major_is_not_loaded(impl, check, other):
    """tessModuleLoad itself says so, newer or older, and the same program loads in the runtime's own version."""
    session = opened(impl, check)
    own = version(session)
    image = compiled(impl, check, abi_version=other(*own))
    for _ in range(2):
        check.status(loading(session, image), ABI_MISMATCH)
    session.synchronize()
    session.load(abi_version=list(own))


MORE = (1, 2, 100, 60000)


def loads_every_minor(session: MeshSession) -> bool:
    """True if modules of newer minors load, near and far ones."""
    major, minor = version(session)
    images = [compiled(session.impl, session.check, abi_version=[major, minor + more]) for more in MORE]
    return all(isinstance(loading(session, image), Returned) for image in images)


@clause("RT-16-04", "RT-19.A-10", "RT-07-05")
@pytest.mark.parametrize("more", MORE)
def test_a_module_of_a_newer_minor_is_refused(impl, check, more):
    """It may need what this runtime lacks (AMB-RT-32)."""
    session = opened(impl, check)
    major, minor = version(session)
    answer = loading(session, compiled(impl, check, abi_version=[major, minor + more]))
    check.reading("AMB-RT-32", "same major always loads", loads_every_minor(session))
    check.status(answer, ABI_MISMATCH)
    session.synchronize()


@clause("RT-16-03")
def test_a_module_of_an_older_minor_loads(impl, check):
    """Every minor up to the runtime's own, minor changes being additive, and its kernels run (AMB-RT-32)."""
    session = opened(impl, check)
    major, minor = version(session)
    for older in sorted({*range(min(minor, 4)), minor}):
        module = session.load(abi_version=[major, older])
        check.equal(
            filled(session, session.kernel_of(module, "fill"), older), [older] * COUNT, "what its kernel writes"
        )


@clause("RT-16-04", "RT-04.5-04")
def test_a_damaged_module_of_another_version_is_damaged(impl, check):
    """The image has to be well formed before its version counts (AMB-RT-43)."""
    session = opened(impl, check)
    major, minor = version(session)
    image = compiled(impl, check, abi_version=[major + 1, minor])
    refused(check, loading(session, image[: len(image) // 4 * 2]), INVALID)


# Targets


@clause("RT-19.A-05", "RT-07-06")
@pytest.mark.parametrize("choose", [slice(0, 1), slice(-1, None), slice(None)], ids=["one", "another", "several"])
def test_a_module_without_a_target_for_the_device_is_refused(impl, check, choose):
    """tessModuleLoad itself says so (AMB-RT-60), and the same program loads when it is made for the device."""
    session = opened(impl, check)
    image = compiled(impl, check, targets=foreign_targets(session)[choose])
    for _ in range(2):
        answer = loading(session, image)
        judge_foreign_module(session, answer)
        check.status(answer, ARCH_MISMATCH)
    session.synchronize()
    session.load()


@clause("RT-19.A-05", "RT-07-06")
@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS)
def test_no_program_loads_for_another_architecture(impl, check, source):
    """Any program for another architecture is refused (AMB-RT-60)."""
    session = opened(impl, check)
    check.status(loading(session, compiled(impl, check, source, targets=foreign_targets(session)[:1])), ARCH_MISMATCH)


@clause("RT-19.A-05")
def test_a_target_beside_others_is_enough(impl, check):
    """A module for the machine's devices and for foreign ones loads, and its kernels run."""
    session = opened(impl, check)
    own = list(dict.fromkeys(device["target"] for device in session.ask("tessxDevices")["devices"]))
    module = session.load(targets=foreign_targets(session)[:1] + own)
    check.equal(filled(session, session.kernel_of(module, "fill"), 6), [6] * COUNT, "what its kernel writes")


@clause("RT-19.A-05", "RT-04.5-04")
def test_a_damaged_module_for_another_target_is_damaged(impl, check):
    """The image has to be well formed before its target counts (AMB-RT-43)."""
    session = opened(impl, check)
    image = compiled(impl, check, targets=foreign_targets(session)[:1])
    refused(check, loading(session, image[: len(image) // 4 * 2]), INVALID)
