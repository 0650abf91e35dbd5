"""Readers of images that ignore a field, and targets that are compared in part (runtime spec, 7, 8.1, 19.A)."""

from unittest import mock

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import replaced
from tessera_reference.abi.fatbin import image, metadata
from tessera_reference.abi.status import Failure
from tessera_reference.runtime import calls

from ...ir.violators.changes import around
from ...runtime.violators.changes import ARCH_MISMATCH, BuildsOnce, answering

READ = calls.read


def lenient(name, description, owner, *passed_over):
    """Return a violation whose reader skips requirements with these names, or with this expectation."""

    def require(usual, holds, what, value, allowed):
        if not any(text in what or text == allowed for text in passed_over):
            usual(holds, what, value, allowed)

    return replaced("RT-04.5-04", description, BuildsOnce, (owner, "require", around(require)), name=name)


def devices(adapter):
    return sorted({device.target for device in adapter.runtime.machine.topology.devices})


def matching(clause, name, description, same):
    """Return a violation that takes a module for a target of the machine if a rule calls the names equal."""

    def answer(adapter, call, given):
        own = devices(adapter)

        def read(data):
            fatbin = READ(data)
            known = [section for section in own if any(same(section, target) for target in fatbin.targets)]
            if known:
                object.__setattr__(fatbin, "targets", tuple(dict.fromkeys((*fatbin.targets, *known))))
            return fatbin

        with mock.patch.object(calls, "read", read):
            return call(**given)

    return answering(clause, name, description, "tessModuleLoad", answer)


def letters(name):
    return "".join(filter(str.isalnum, name))


def vendor_later(adapter, call, given):
    try:
        return call(**given)
    except Refusal as refusal:
        if refusal.outcome.code != ARCH_MISMATCH:
            raise
        try:
            targets = READ(bytes.fromhex(given["image"])).targets if isinstance(given["image"], str) else ()
        except Failure:
            raise refusal from None
        if not any(target[:2] == own[:2] for target in targets for own in devices(adapter)):
            raise
        return {"module": 1 << 40}


VIOLATORS = [
    lenient("digests_of_sections", "believes the digests of sections", image, "the SHA-256 of a section"),
    lenient("any_padding", "takes anything for the padding of a section", image, "the padding after a section"),
    lenient("any_size", "does not compare the size in the header", image, "the size in the header"),
    lenient("any_container", "reads containers of any version", image, "the container version", "the field after"),
    lenient("any_offset", "believes the offsets of sections", image, "the offset of a section", "the end of the sect"),
    lenient("any_layout", "believes the offsets and sizes of arguments", metadata, "the metadata"),
    lenient("any_number", "believes extents and sizes of kernels", metadata, "shape", "block", "shared_bytes"),
    lenient("any_checksum", "does not compare the checksum", image, "the checksum"),
    lenient("names_twice", "takes a kernel table with a name twice", metadata, "the kernel table"),
    lenient("any_explanation", "believes what tessExplain is to return", metadata, "of a fusion group", "a tile shape"),
    lenient("scalar_tensors", "takes a scalar that has a shape", metadata, "its tensor"),
    lenient("signature_inside", "reads on behind a signature", image, "the signature, if any, as the last one"),
    replaced("RT-04.5-04", "takes any switches of a policy", BuildsOnce,
        ("abi.policy.NumericsPolicy.__post_init__", lambda policy: None), name="any_policy"),
    lenient("targets_twice", "takes a target that is named twice", image, "targets"),
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
