"""Readers of images that ignore a field, and targets that are compared in part (runtime spec, 7, 8.1, 19.A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.fatbin import image as model
from tessera_reference.abi.fatbin import image as reader
from tessera_reference.abi.fatbin import metadata
from tessera_reference.abi.status import Failure
from tessera_reference.runtime import calls

from ...runtime.violators.changes import ARCH_MISMATCH, BuildsOnce, Call, Given, answering

READ = calls.read

# Fields


def lenient(name: str, description: str, owner: Any, *passed_over: str) -> Violation:
    """Return a violation whose reader skips requirements with these names, or with this expectation."""
    right = owner.require

    def require(holds: bool, what: str, value: object, allowed: str) -> None:
        if not any(text in what or text == allowed for text in passed_over):
            right(holds, what, value, allowed)

    return replaced("RT-04.5-04", description, BuildsOnce, (owner, "require", require), name=name)


FIELDS = [
    lenient("digests_of_sections", "believes the digests of sections", reader, "the SHA-256 of a section"),
    lenient("any_padding", "takes anything for the padding of a section", reader, "the padding after a section"),
    lenient("any_size", "does not compare the size in the header", reader, "the size in the header"),
    lenient("any_container", "reads containers of any version", reader, "the container version", "the field after"),
    lenient("any_offset", "believes the offsets of sections", reader, "the offset of a section", "the end of the sect"),
    lenient("any_layout", "believes the offsets and sizes of arguments", metadata, "the metadata"),
    lenient("any_number", "believes extents and sizes of kernels", metadata, "shape", "block", "shared_bytes"),
    lenient("any_checksum", "does not compare the checksum", reader, "the checksum"),
    lenient("names_twice", "takes a kernel table with a name twice", metadata, "the kernel table"),
    lenient("any_explanation", "believes what tessExplain is to return", metadata, "of a fusion group", "a tile shape"),
    lenient("scalar_tensors", "takes a scalar that has a shape", metadata, "its tensor"),
    lenient("signature_inside", "reads on behind a signature", model, "the signature, if any, as the last one"),
    replaced("RT-04.5-04", "takes any switches of a policy", BuildsOnce,
        ("abi.policy.NumericsPolicy.__post_init__", lambda policy: None), name="any_policy"),
    lenient("targets_twice", "takes a target that is named twice", model, "targets"),
]  # fmt: skip

# Targets


def devices(adapter: Any) -> list[str]:
    """Return the targets of the machine."""
    return sorted({device.target for device in adapter.runtime.machine.topology.devices})


def matching(clause: str, name: str, description: str, same: Callable[[str, str], bool]) -> Violation:
    """Return a violation that takes a module for a target of the machine if a rule calls the names equal."""

    def answer(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
        own = devices(adapter)

        def read(data: bytes) -> Any:
            fatbin = READ(data)
            known = [section for section in own if any(same(section, target) for target in fatbin.targets)]
            if known:
                object.__setattr__(fatbin, "targets", tuple(dict.fromkeys((*fatbin.targets, *known))))
            return fatbin

        right, calls.read = calls.read, read  # type: ignore[assignment]
        try:
            return call(**given)
        finally:
            calls.read = right

    return answering(clause, name, description, "tessModuleLoad", answer)


def letters(name: str) -> str:
    """Return a name without separators."""
    return "".join(letter for letter in name if letter.isalnum())


def vendor_later(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    try:
        return call(**given)
    except Refusal as refusal:
        if refusal.outcome.code != ARCH_MISMATCH:
            raise
        image = given["image"]
        try:
            targets = READ(bytes.fromhex(image)).targets if isinstance(image, str) else ()
        except Failure:
            raise refusal from None
        if not any(target[:2] == own[:2] for target in targets for own in devices(adapter)):
            raise
        return {"module": 1 << 40}


TARGETS = [
    matching("RT-19.A-05", "begins_alike", "takes a target whose name begins that of the device",
             lambda own, other: own.startswith(other)),
    matching("RT-19.A-05", "goes_on", "takes a target whose name goes on behind that of the device",
             lambda own, other: other.startswith(own)),
    matching("RT-19.A-05", "letters", "does not look at what separates the parts of a target's name",
             lambda own, other: letters(own) == letters(other)),
    matching("RT-19.A-05", "all_but_the_last", "compares all but the last character of targets",
             lambda own, other: own[:-1] == other[:-1]),
    matching("RT-19.A-05", "characters", "compares which characters the names of targets have",
             lambda own, other: sorted(own) == sorted(other)),
    answering("RT-07-06", "vendor_later", "loads modules of the machine's vendor, to fail later", "tessModuleLoad",
              vendor_later),
]  # fmt: skip
