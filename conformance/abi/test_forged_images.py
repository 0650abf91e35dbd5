"""Images that are forged field by field, their checksum in order (runtime specification, 7, 8.1, 19.A; AMB-RT-43).

`docs/fatbin.md` says what each field has to be; an implementation with a container of its own is not judged here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tessera_conformance.chapters.abi.kit.fatbins import (
    DIGEST_BYTES,
    HEADER_BYTES,
    NAME_BYTES,
    Fatbin,
    parsed,
    patched,
    table_at,
    written,
)
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    COUNT,
    MeshSession,
    alone,
    compiled,
    opened,
    refused,
)
from tessera_conformance.chapters.runtime.kit.modules import filled, loading
from tessera_conformance.chapters.runtime.kit.policies import KEYS
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected, Returned
from tessera_conformance.transports import Inapplicable

INVALID = "TESS_ERR_INVALID_VALUE"
ARCH_MISMATCH = "TESS_ERR_ARCH_MISMATCH"
ABI_MISMATCH = "TESS_ERR_ABI_VERSION_MISMATCH"


def number(value: int, size: int) -> bytes:
    """A field of the container."""
    return (value % (1 << 8 * size)).to_bytes(size, "little")


def field(image: bytes, offset: int, size: int, change: Callable[[int], int]) -> bytes:
    """An image with another number in a field."""
    return patched(image, offset, number(change(int.from_bytes(image[offset : offset + size], "little")), size))


def in_table(offset: int, size: int, change: Callable[[int], int], section: int = -1) -> Callable[[bytes], bytes]:
    """Another number in the entry of a section, of the last one unless it is named."""

    def forged(image: bytes) -> bytes:
        fatbin = parsed(image)
        place = table_at(fatbin, section % len(fatbin.sections))
        return field(image, place + offset, size, change)

    return forged


# The container

HEADERS: dict[str, tuple[int, int, Callable[[int], int]]] = {
    "magic": (7, 1, lambda value: value ^ 1),
    "next container version": (8, 2, lambda value: 2),
    "no container version": (8, 2, lambda value: 0),
    "not zero": (10, 2, lambda value: 1),
    "eight bytes more": (16, 8, lambda value: value + 8),
    "eight bytes less": (16, 8, lambda value: value - 8),
    "4 GiB more": (16, 8, lambda value: value + (1 << 32)),
    "one more target": (24, 4, lambda value: value + 1),
    "no target": (24, 4, lambda value: 0),
    "targets without end": (24, 4, lambda value: (1 << 32) - 1),
    "targets that overflow": (24, 4, lambda value: value + (1 << 27)),
    "one more section": (28, 4, lambda value: value + 1),
    "one section less": (28, 4, lambda value: value - 1),
    "no section": (28, 4, lambda value: 0),
    "sections without end": (28, 4, lambda value: (1 << 32) - 1),
}

TABLES: dict[str, Callable[[bytes], bytes]] = {
    "a kind that is unknown": in_table(0, 4, lambda value: 99),
    "no kind": in_table(0, 4, lambda value: 0),
    "a target behind the last": in_table(4, 4, lambda value: 77),
    "metadata for a target": in_table(4, 4, lambda value: 0, section=0),
    "no metadata": in_table(0, 4, lambda value: 1, section=0),
    "an offset in the header": in_table(8, 8, lambda value: 0),
    "an offset eight bytes on": in_table(8, 8, lambda value: value + 8),
    "an offset that is odd": in_table(8, 8, lambda value: value + 1),
    "an offset behind the end": in_table(8, 8, lambda value: 1 << 40),
    "an offset that overflows": in_table(8, 8, lambda value: (1 << 64) - 8),
    "a byte less": in_table(16, 8, lambda value: value - 1),
    "a byte more": in_table(16, 8, lambda value: value + 1),
    "a size that overflows": in_table(16, 8, lambda value: (1 << 64) - 8),
    "the digest": in_table(24, 1, lambda value: value ^ 1),
    "the end of the digest": in_table(55, 1, lambda value: value ^ 0x80),
}


def judge_refused(session: MeshSession, image: bytes, forged: bytes) -> None:
    """tessModuleLoad refuses the forged image as an invalid value, and nothing is left of it; the right one loads."""
    refused(session.check, loading(session, forged.hex()), INVALID)
    judge_loaded(session, image)


def judge_loaded(session: MeshSession, image: bytes) -> None:
    """The image that was not forged loads, and its kernel runs."""
    session.synchronize()
    module = session.check.returns(loading(session, image.hex()), "the image itself loads")["module"]
    session.check.equal(filled(session, session.kernel_of(module, "fill"), 3), [3] * COUNT, "what its kernel writes")


def image_of(session: MeshSession) -> bytes:
    """An image for the machine, in the suite's container."""
    image = bytes.fromhex(compiled(session.impl, session.check))
    session.check.given(written(parsed(image)) == image, "the image is written as docs/fatbin.md says")
    return image


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize(("offset", "size", "change"), HEADERS.values(), ids=HEADERS)
def test_a_forged_header_is_refused(impl, check, offset, size, change):
    """Magic, versions, sizes and counts are those of the bytes that follow."""
    session = opened(impl, check)
    image = image_of(session)
    judge_refused(session, image, field(image, offset, size, change))


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize("forge", TABLES.values(), ids=TABLES)
def test_a_forged_section_table_is_refused(impl, check, forge):
    """Kinds, targets, offsets, sizes and digests are those of the sections."""
    session = opened(impl, check)
    image = image_of(session)
    judge_refused(session, image, forge(image))


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize("kept", [1, 8, 40, 48], ids=lambda kept: f"{kept}-bytes-of-the-last-entry-missing")
def test_an_image_that_ends_within_its_section_table_is_refused(impl, check, kept):
    """Size and checksum are those of the shortened image; only the section table is cut."""
    session = opened(impl, check)
    image = image_of(session)
    fatbin = parsed(image)
    content = image[: table_at(fatbin, len(fatbin.sections)) - kept]
    cut = content + bytes(DIGEST_BYTES)
    judge_refused(session, image, field(cut, 16, 8, lambda value: len(cut)))


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize("place", [HEADER_BYTES - 1, -DIGEST_BYTES, -1], ids=["source-hash", "first-byte", "last-byte"])
def test_a_checksum_that_does_not_match_is_refused(impl, check, place):
    """One bit differs, in the hash of the source IR or in the checksum itself, and nothing else in the image tells."""
    session = opened(impl, check)
    image = image_of(session)
    forged = bytearray(image)
    forged[place] ^= 2
    judge_refused(session, image, bytes(forged))


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize("part", ["metadata", "last section", "padding"])
def test_a_forged_section_is_refused(impl, check, part):
    """A byte of a section differs from its digest, or one that fills it up is not zero."""
    session = opened(impl, check)
    image = image_of(session)
    fatbin = parsed(image)
    start = table_at(fatbin, len(fatbin.sections))
    if part == "padding":
        place = padding_of(fatbin, start)
    else:
        place = start if part == "metadata" else len(image) - DIGEST_BYTES - 16
    judge_refused(session, image, field(image, place, 1, lambda value: value ^ 4))


def padding_of(fatbin: Fatbin, start: int) -> int:
    """Return the offset of a section's padding; the first begins at `start`. Raises `Inapplicable` without padding."""
    for section in fatbin.sections:
        if len(section.data) % 8:
            return start + len(section.data)
        start += len(section.data)
    raise Inapplicable("forges the padding of a section, and the image has none")


# The metadata


def buffer_grown(entry: dict[str, Any]) -> None:
    """The buffer is eight bytes longer."""
    entry["buffer_size"] += 8


def argument_moved(entry: dict[str, Any]) -> None:
    """The last argument begins eight bytes later."""
    entry["parameters"][-1]["offset"] += 8


def argument_lost(entry: dict[str, Any]) -> None:
    """The last argument is not there."""
    entry["parameters"].pop()


def name_with_a_dot(entry: dict[str, Any]) -> None:
    """The name is no C identifier."""
    entry["name"] = "k.fill"


def type_unknown(entry: dict[str, Any]) -> None:
    """An argument has a type that there is not."""
    entry["parameters"][0]["type"] = "int33"


def shared_below_zero(entry: dict[str, Any]) -> None:
    """Shared memory of less than no bytes."""
    entry["shared_bytes"] = -8


def shared_in_words(entry: dict[str, Any]) -> None:
    """Shared memory that is true."""
    entry["shared_bytes"] = True


def block_of_nothing(entry: dict[str, Any]) -> None:
    """A block without threads."""
    entry["block"] = [128, 0, 1]


def extent_below_zero(entry: dict[str, Any]) -> None:
    """A tensor of fewer than no elements."""
    next(parameter for parameter in entry["parameters"] if parameter["type"] == "ptr")["shape"] = [-COUNT]


def scalar_with_a_tensor(entry: dict[str, Any]) -> None:
    """A scalar has the dtype and the shape of a tensor."""
    scalar = next(parameter for parameter in entry["parameters"] if parameter["type"] != "ptr")
    scalar |= {"dtype": scalar["type"], "shape": [COUNT]}


def module_without_name(entry: dict[str, Any]) -> None:
    """The module that the kernel belongs to is a number."""
    entry["module"] = 5


FORGED_ENTRIES = [
    buffer_grown,
    argument_moved,
    argument_lost,
    name_with_a_dot,
    type_unknown,
    shared_below_zero,
    shared_in_words,
    block_of_nothing,
    extent_below_zero,
    scalar_with_a_tensor,
    module_without_name,
]


@clause("RT-04.5-04", "RT-08.1-08")
@pytest.mark.parametrize("forge", FORGED_ENTRIES, ids=lambda forge: forge.__name__)
def test_forged_metadata_is_refused(impl, check, forge):
    """An entry of the kernel table that breaks a rule of the parameter buffer or of its fields; digests are right."""
    session = opened(impl, check)
    image = image_of(session)
    judge_refused(session, image, with_metadata(image, lambda metadata: forge(metadata["kernels"][0])))


def with_metadata(image: bytes, change: Callable[[dict[str, Any]], None], escaped: bool = False) -> bytes:
    """An image whose metadata are changed; `escaped` writes what is not ASCII by its number."""
    fatbin = parsed(image)
    metadata = json.loads(fatbin.sections[0].data)
    change(metadata)
    data = json.dumps(metadata, sort_keys=True, separators=(",", ":"), ensure_ascii=escaped).encode()
    return written(replace(fatbin, sections=[replace(fatbin.sections[0], data=data), *fatbin.sections[1:]]))


@clause("RT-04.5-04", "RT-08.1-07")
def test_a_kernel_table_with_a_name_twice_is_refused(impl, check):
    """The names in a kernel table differ: tessKernelGet finds a kernel by its name alone."""
    session = opened(impl, check)
    image = image_of(session)

    def repeat(metadata: dict[str, Any]) -> None:
        metadata["kernels"] *= 2

    judge_refused(session, image, with_metadata(image, repeat))


def explained(
    group: Any = ("matmul", "add"), operation: Any = "matmul", **extents: Any
) -> Callable[[dict[str, Any]], None]:
    """Give tessExplain a fusion group of these operations and the shape of an operation's tile."""

    def change(metadata: dict[str, Any]) -> None:
        kernel = metadata["kernels"][0]["name"]
        shape = {"kernel": kernel, "operation": operation, "extents": {"m": 64} | extents}
        groups = [{"kernel": kernel, "operations": group}]
        metadata["explanation"] = {"fusion_groups": groups, "tile_shapes": [shape]}

    return change


EXPLANATIONS: dict[str, Callable[[dict[str, Any]], None]] = {
    "operations that are one text": explained(group="add"),
    "a tile of no operation": explained(operation=None),
    "an extent of nothing": explained(n=0),
    "an extent in words": explained(n="64"),
    "an extent without a name": explained(**{"": 8}),
}


@clause("RT-04.5-04")
@pytest.mark.parametrize("forge", EXPLANATIONS.values(), ids=EXPLANATIONS)
def test_a_forged_explanation_is_refused(impl, check, forge):
    """Fusion groups are lists of texts, and a tile has at least one element along each named dimension."""
    session = opened(impl, check)
    image = image_of(session)
    judge_refused(session, with_metadata(image, explained()), with_metadata(image, forge))


@clause("RT-04.5-04")
@pytest.mark.parametrize("value", [2, -1, "1"], ids=["two", "minus-one", "a-text"])
def test_a_forged_policy_is_refused(impl, check, value):
    """A switch of the module's numerics policy is 0 or 1, in an image as in tessSetNumericsPolicy (AMB-RT-47)."""
    session = opened(impl, check)
    image = image_of(session)

    def switched(deterministic: Any) -> bytes:
        policy = {"stableReductions": 1, "deterministic": deterministic, "rngStateless": 1, "allowFastMath": 0}
        return with_metadata(image, lambda metadata: metadata.update(policy=policy))

    judge_refused(session, switched(1), switched(value))


@clause("RT-04.5-04", "RT-08.1-07")
def test_metadata_are_utf_8_with_nothing_escaped(impl, check):
    """A module whose name is not ASCII loads; the same text with escapes is another spelling, and is refused."""
    session = opened(impl, check)
    image = image_of(session)

    def rename(metadata: dict[str, Any]) -> None:
        for kernel in metadata["kernels"]:
            kernel["module"] = "spur-\u00e4\u03bb"

    judge_refused(session, with_metadata(image, rename), with_metadata(image, rename, escaped=True))


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize("kind", [1, 2], ids=["Graph IR", "Target IR"])
def test_a_program_that_is_no_text_has_an_answer(impl, check, kind):
    """Graph IR and Target IR are UTF-8; of bytes that are none, with the right digest, no call makes a crash.

    tessModuleLoad refuses the image, or a later call answers; the image itself loads afterwards.
    """
    session = opened(impl, check)
    image = image_of(session)
    fatbin = parsed(image)
    if all(section.kind != kind for section in fatbin.sections):
        raise Inapplicable(f"forges a section of kind {kind}, and the image has none")
    sections = [
        replace(section, data=section.data[:-1] + b"\xff") if section.kind == kind else section
        for section in fatbin.sections
    ]
    answer = loading(session, written(replace(fatbin, sections=sections)).hex())
    if isinstance(answer, Returned):
        answer = session.attempt("tessKernelGet", module=answer.value["module"], name="fill")
        check.true(isinstance(answer, Returned | Rejected), "tessKernelGet has an answer", type(answer).__name__)
        if isinstance(answer, Returned):
            arguments = packed(("int32", 7), ("ptr", session.allocate(4 * COUNT)))
            answer = session.launching(answer.value["kernel"], arguments)
            check.true(isinstance(answer, Returned | Rejected), "the launch has an answer", type(answer).__name__)
            answer = session.attempt("tessStreamSynchronize", stream=session.stream)
            check.true(isinstance(answer, Returned | Rejected), "the stream has an answer", type(answer).__name__)
    else:
        check.status(answer, INVALID)
    judge_loaded(session, image)


# Versions and targets


def targets_of(session: MeshSession) -> set[str]:
    """The targets of the machine's devices."""
    return {device["target"] for device in session.ask("tessxDevices")["devices"]}


def with_targets(fatbin: Fatbin, *targets: str) -> bytes:
    """An image whose targets have other names."""
    return written(replace(fatbin, targets=[name.encode() for name in targets]))


NEARLY: dict[str, Callable[[str], str]] = {
    "cut": lambda name: name[:-1],
    "its beginning": lambda name: name[:2],
    "lengthened": lambda name: name + "0",
    "repeated": lambda name: f"{name}.{name}",
    "another beginning": lambda name: "x" + name,
    "without a beginning": lambda name: name[1:],
    "with a point": lambda name: name + ".",
    "with a hyphen": lambda name: name.replace("_", "-") if "_" in name else f"{name[:2]}-{name[2:]}",
    "turned": lambda name: name[::-1],
    "another last character": lambda name: name[:-1] + ("x" if name[-1] != "x" else "y"),
}
"""Names that resemble that of a target."""


@clause("RT-19.A-05", "RT-07-06")
@pytest.mark.parametrize("resemble", NEARLY.values(), ids=NEARLY)
def test_a_target_that_nearly_matches_is_another(impl, check, resemble):
    """tessModuleLoad answers at once with TESS_ERR_ARCH_MISMATCH, and the same image with the right name loads.

    As AMB-RT-60 has it.
    """
    session = opened(impl, check)
    own = targets_of(session)
    image = image_of(session)
    fatbin = parsed(image)
    names = [resemble(name.decode()) for name in fatbin.targets]
    check.given(not own & set(names), "the machine has no device of such a name", names)
    for _ in range(2):
        check.status(loading(session, with_targets(fatbin, *names).hex()), ARCH_MISMATCH)
    judge_loaded(session, image)


@clause("RT-19.A-05", "RT-07-06")
def test_targets_that_all_nearly_match_are_others(impl, check):
    """An image for several targets, of which none is that of a device (AMB-RT-60)."""
    session = opened(impl, check)
    own = targets_of(session)
    fatbin = parsed(image_of(session))
    first = fatbin.targets[0].decode()
    names = sorted({resemble(first) for resemble in NEARLY.values()} - own)
    many = replace(fatbin, sections=[section for section in fatbin.sections if section.target in (0, 0xFFFFFFFF)])
    check.status(loading(session, with_targets(many, *names).hex()), ARCH_MISMATCH)


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize(
    "name", [b"a" * 32, b"sm\x0090", b"SM_90", b"sm 90", b"", b"sm_\xff0"], ids=lambda name: name.hex()[:12] or "empty"
)
def test_a_target_without_a_legal_name_is_refused(impl, check, name):
    """Up to 31 of the characters that names have, then zeros."""
    session = opened(impl, check)
    image = image_of(session)
    judge_refused(session, image, patched(image, HEADER_BYTES, name.ljust(NAME_BYTES, b"\0")))


@clause("RT-04.5-04", "RT-19.A-01")
def test_a_target_named_twice_is_refused(impl, check):
    """The targets of an image have different names."""
    session = opened(impl, check)
    image = image_of(session)
    fatbin = parsed(image)
    twice = replace(fatbin, targets=[*fatbin.targets, fatbin.targets[0]])
    judge_refused(session, image, written(twice))


@clause("RT-16-02", "RT-16-04", "RT-07-05")
@pytest.mark.parametrize("version", [(1, 0), (0, 1), (256, 0), (0xFFFF - 1, 0)], ids=str)
def test_a_forged_version_is_another(impl, check, version):
    """Major or minor raised in the header by so much, the rest untouched: TESS_ERR_ABI_VERSION_MISMATCH."""
    session = opened(impl, check)
    image = image_of(session)
    major, minor = parsed(image).abi_version
    forged = patched(image, 12, struct.pack("<HH", (major + version[0]) % (1 << 16), minor + version[1]))
    check.status(loading(session, forged.hex()), ABI_MISMATCH)
    check.returns(loading(session, image.hex()), "the image itself loads")


@clause("RT-04.5-04", "RT-19.A-01")
@pytest.mark.parametrize("kept", [0, 1, 8, 31, 32, 33, 63, 64, 95, 96])
def test_an_image_cut_within_its_header_is_refused(impl, check, kept):
    """Shorter than the header, or than header and checksum."""
    session = opened(impl, check)
    image = image_of(session)
    judge_refused(session, image, image[:kept])


@clause("RT-04.5-04")
def test_a_section_given_twice_is_refused(impl, check):
    """An image has no two sections of one kind for one target."""
    session = opened(impl, check)
    image = image_of(session)
    fatbin = parsed(image)
    judge_refused(session, image, written(replace(fatbin, sections=[*fatbin.sections, fatbin.sections[-1]])))


@clause("RT-04.5-04")
def test_an_image_without_sections_is_refused(impl, check):
    """Header, targets and checksum are in order; metadata and code are missing."""
    session = opened(impl, check)
    image = image_of(session)
    judge_refused(session, image, written(replace(parsed(image), sections=[])))


SIGNATURE_KIND = 6
SIGNATURE_BYTES = 96


@clause("RT-04.5-04")
def test_a_section_behind_the_signature_is_refused(impl, check):
    """A signature section is the last one, so that it covers all others; in the last place it changes nothing."""
    session = opened(impl, check)
    image = image_of(session)
    fatbin = parsed(image)
    signature = replace(fatbin.sections[0], kind=SIGNATURE_KIND, data=bytes(SIGNATURE_BYTES))
    *first, last = fatbin.sections
    signed = written(replace(fatbin, sections=[*first, last, signature]))
    judge_refused(session, signed, written(replace(fatbin, sections=[*first, signature, last])))


@feature("runtime-policy")
@clause("RT-15-01", "RT-15-05")
@pytest.mark.parametrize("signer", ["first", "second"], ids=["of another image", "of another key"])
def test_a_signature_that_is_not_of_the_image_and_the_key_is_refused(impl, check, signer):
    """A trusted key's signature of another program, and a signature by a key beside which the trusted one stands."""
    session = opened(impl, check)
    private, public = KEYS["first"]
    image = bytes.fromhex(compiled(impl, check, signing_key=private))
    other = parsed(bytes.fromhex(compiled(impl, check, alone("digit"), signing_key=KEYS[signer][0])))
    *sections, own = parsed(image).sections
    foreign = replace(own, data=bytes.fromhex(public) + other.sections[-1].data[len(public) // 2 :])
    session.ask("tessxSetModulePolicy", context=session.context, trusted_keys=[public])
    answer = loading(session, written(replace(parsed(image), sections=[*sections, foreign])).hex())
    check.reading("AMB-RT-88", "UNSUPPORTED", rejected(answer, "TESS_ERR_UNSUPPORTED"))
    refused(check, answer, INVALID)
    judge_loaded(session, image)
