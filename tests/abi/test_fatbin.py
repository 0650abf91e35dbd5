"""The container: round trips, and every way in which an image can be wrong (runtime spec 8.1, 16)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.abi.fatbin import Fatbin, Section, metadata_to_bytes, read, write

NO_TARGET = 0xFFFFFFFF
GRAPH_IR, TARGET_IR, PTX, AMDGCN, METADATA, SIGNATURE = range(1, 7)


def test_what_is_written_is_read_again(module: Fatbin, small_module: Fatbin) -> None:
    for each in (module, small_module):
        image = write(each)
        assert read(image) == each
        assert read(bytearray(image)) == read(memoryview(image)) == each
        assert write(read(image)) == image


def test_the_layout_of_the_bytes(small_module: Fatbin) -> None:
    """Header, targets, table, sections, checksum, each where the page says it is."""
    image = write(small_module)
    metadata = metadata_to_bytes(small_module.metadata)
    assert image[:8] == b"TESSFBIN"
    assert struct.unpack_from("<HHHH", image, 8) == (1, 0, 1, 0)
    assert struct.unpack_from("<QII", image, 16) == (len(image), 1, 2)
    assert image[32:64] == bytes(32)
    assert image[64:96] == b"sm_90" + bytes(27)
    first, second = (struct.unpack_from("<IIQQ32s", image, 96 + 56 * position) for position in range(2))
    assert first == (METADATA, NO_TARGET, 208, len(metadata), hashlib.sha256(metadata).digest())
    after = 208 + (len(metadata) + 7) // 8 * 8
    assert second == (PTX, 0, after, 3, hashlib.sha256(b"ptx").digest())
    assert image[208:after].rstrip(b"\0") == metadata
    assert image[after : after + 8] == b"ptx" + bytes(5)
    assert len(image) == after + 8 + 32
    assert image[-32:] == hashlib.sha256(image[:-32]).digest()


def test_an_image_put_together_by_hand_is_read(small_module: Fatbin, surgeon: Any) -> None:
    sections = [(METADATA, NO_TARGET, metadata_to_bytes(small_module.metadata)), (PTX, 0, b"ptx")]
    found = read(surgeon.image(sections, (b"sm_90",)))
    assert found == replace(small_module, ir_hash=bytes(range(32)))


def test_sections_are_found_by_kind_and_target(module: Fatbin) -> None:
    found = read(write(module))
    assert found.section("ptx", "sm_90") == Section("ptx", "sm_90", b".version 8.0")
    assert found.section("ptx", "gfx942") is None
    assert found.section("ptx") is None
    kernel = found.metadata.kernel("scale")
    assert kernel is not None and kernel.layout.offsets == (0, 8, 16, 24) and kernel.layout.size == 32
    assert found.metadata.kernel("absent") is None


@pytest.mark.parametrize("version", [(0, 0), (0, 9), (1, 1), (2, 0), (65535, 65535)])
def test_a_module_of_another_abi_is_refused(module: Fatbin, version: tuple[int, int]) -> None:
    image = write(replace(module, abi_version=version))
    with pytest.raises(Failure, match=rf"ABI version {version[0]}\.{version[1]}; expected 1\.0 to 1\.0") as caught:
        read(image)
    assert caught.value.status is Status.TESS_ERR_ABI_VERSION_MISMATCH
    assert read(image, runtime=None) == replace(module, abi_version=version)


def test_an_older_minor_still_loads(module: Fatbin) -> None:
    image = write(replace(module, abi_version=(1, 2)))
    assert read(image, runtime=(1, 2)) == read(image, runtime=(1, 7))
    with pytest.raises(Failure) as caught:
        read(image, runtime=(2, 2))
    assert caught.value.status is Status.TESS_ERR_ABI_VERSION_MISMATCH


def test_an_altered_module_of_another_abi_is_malformed_first(module: Fatbin, refused: Any) -> None:
    image = bytearray(write(replace(module, abi_version=(9, 0))))
    image[-40] ^= 1
    refused(lambda: read(bytes(image)))


def test_what_a_newer_minor_adds_is_no_reason_to_call_a_module_malformed(surgeon: Any) -> None:
    """A kind of section, and metadata, that this version does not know."""
    image = surgeon.image([(METADATA, NO_TARGET, b'{"kernels":[],"news":1}'), (99, 7, b"")], abi=(1, 1))
    with pytest.raises(Failure) as caught:
        read(image)
    assert caught.value.status is Status.TESS_ERR_ABI_VERSION_MISMATCH


@pytest.mark.parametrize("target", [b"a" * 32, b"sm\0_90", b"sm\xff90", bytes(31) + b"a"])
def test_names_of_targets_are_checked_whatever_the_abi(target: bytes, surgeon: Any, refused: Any) -> None:
    assert "a target is" in str(refused(lambda: read(surgeon.image([], (target,), abi=(7, 0)))))


def test_every_truncation_is_refused(small_module: Fatbin, refused: Any) -> None:
    image = write(small_module)
    for size in range(len(image)):
        refused(lambda size=size: read(image[:size]))
    refused(lambda: read(image + b"\0"))


def test_every_flipped_bit_is_refused(small_module: Fatbin, refused: Any) -> None:
    image = write(small_module)
    for position in range(len(image)):
        altered = bytearray(image)
        altered[position] ^= 1 << position % 8
        refused(lambda altered=altered: read(bytes(altered)))


@pytest.mark.parametrize("image", [None, 5, "TESSFBIN", [1, 2]])
def test_what_is_no_bytes_is_refused(image: Any, refused: Any) -> None:
    refused(lambda: read(image))


Patch = Callable[[bytearray], None]


def put(form: str, at: int, value: int | bytes) -> Patch:
    def patch(image: bytearray) -> None:
        struct.pack_into(form, image, at, value)

    return patch


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (put("<8s", 0, b"TESSFBIM"), "the magic number"),
        (put("<H", 8, 2), "the container version is 2; expected 1"),
        (put("<H", 10, 1), "the field after the container version"),
        (put("<Q", 16, 0), "the size in the header is 0"),
        (put("<Q", 16, 2**64 - 1), "the size in the header"),
        (put("<I", 24, 0xFFFFFFFF), "the number of targets"),
        (put("<I", 24, 2), "a target"),
        (put("<I", 28, 0xFFFFFFFF), "the number of sections"),
        (put("<I", 28, 1), "the offset of a section"),
        (put("<I", 28, 0), "the end of the sections"),
        (put("<B", 64 + 31, 65), "a target"),
        (put("<B", 64 + 6, 65), "a target"),
        (put("<B", 64, 0xC3), "a target"),
        (put("<B", 64, ord("S")), "a target"),
        (put("<B", 64, 0), "a target"),
        (put("<I", 96, 0), "the kind of a section"),
        (put("<I", 96, GRAPH_IR), "the first section"),
        (put("<I", 96 + 4, 0), "the target of section metadata"),
        (put("<I", 152 + 4, 1), "the target of a section"),
        (put("<I", 152 + 4, NO_TARGET), "the target of section ptx"),
        (put("<I", 152, METADATA), "the target of section metadata"),
        (put("<Q", 96 + 8, 0), "the offset of a section is 0; expected 208"),
        (put("<Q", 96 + 8, 216), "the offset of a section is 216; expected 208"),
        (put("<Q", 96 + 8, 2**64 - 8), "the offset of a section"),
        (put("<Q", 96 + 16, 2**64 - 1), "the size of a section"),
        (put("<Q", 152 + 16, 41), "the size of a section"),
        (put("<Q", 152 + 16, 2), "the padding after a section"),
        (put("<B", -33, 1), "the padding after a section"),
        (put("<B", 208, ord("[")), "metadata that is no JSON"),
        (put("<B", 209, ord("'")), "metadata that is no JSON"),
    ],
)
def test_each_field_is_checked_even_where_all_digests_are_right(
    small_module: Fatbin, surgeon: Any, refused: Any, patch: Patch, message: str
) -> None:
    image = bytearray(write(small_module))
    size = struct.unpack_from("<Q", image, 16)
    patch(image)
    named = struct.unpack_from("<Q", image, 16)
    altered = bytearray(surgeon.resealed(bytes(image)))
    if named != size:  # the size is what this case is about
        struct.pack_into("<Q", altered, 16, *named)
    failure = refused(lambda: read(surgeon.sealed(bytes(altered))))
    assert message in str(failure)


def test_each_digest_is_checked(small_module: Fatbin, surgeon: Any, refused: Any) -> None:
    image = bytearray(write(small_module))
    image[152 + 24] ^= 1
    assert "the SHA-256 of a section" in str(refused(lambda: read(surgeon.sealed(bytes(image)))))
    image = bytearray(write(small_module))
    image[-1] ^= 1
    assert "the checksum" in str(refused(lambda: read(bytes(image))))


def test_which_sections_go_together(small_module: Fatbin, surgeon: Any, refused: Any) -> None:
    metadata = (METADATA, NO_TARGET, metadata_to_bytes(small_module.metadata))
    graph = (GRAPH_IR, NO_TARGET, b"module")
    targets = (b"sm_90", b"gfx942")
    good = [
        metadata,
        graph,
        (PTX, 0, b""),
        (AMDGCN, 1, b"\xff"),
        (TARGET_IR, 0, b""),
        (SIGNATURE, NO_TARGET, bytes(96)),
    ]
    assert len(read(surgeon.image(good, targets)).sections) == 5
    for sections, message in (
        ([], "the first section is 'none'"),
        ([graph], "the first section"),
        ([graph, metadata], "the first section"),
        ([metadata], "one at least of graph-ir, target-ir, ptx, amdgcn, rocdl"),
        ([metadata, (SIGNATURE, NO_TARGET, b"")], "one at least of"),
        ([metadata, graph, metadata], "the metadata stands apart"),
        ([metadata, graph, graph], "each kind once for each target"),
        ([metadata, (PTX, 0, b"1"), (PTX, 0, b"2")], "each kind once for each target"),
        ([metadata, (SIGNATURE, NO_TARGET, b""), graph], "as the last one"),
        ([metadata, (GRAPH_IR, 0, b"")], "the target of section graph-ir"),
        ([metadata, (GRAPH_IR, NO_TARGET, b"\xff")], "text in UTF-8"),
        ([metadata, (TARGET_IR, 0, b"\xff")], "text in UTF-8"),
    ):
        assert message in str(refused(lambda sections=sections: read(surgeon.image(sections, targets))))
    assert "each once" in str(refused(lambda: read(surgeon.image(good, (b"sm_90", b"sm_90")))))


@pytest.mark.parametrize(
    "change",
    [
        {"abi_version": (1,)},
        {"abi_version": (1, 65536)},
        {"abi_version": (-1, 0)},
        {"abi_version": (True, 0)},
        {"ir_hash": bytes(31)},
        {"ir_hash": "0" * 32},
        {"targets": ("sm_90", "SM_90")},
        {"targets": ("sm_90", "a" * 32)},
        {"targets": ("sm_90", "")},
        {"targets": ("sm_90", "sm_90\n")},
        {"targets": ["sm_90"]},
        {"targets": ()},
        {"sections": ()},
        {"sections": ("ptx",)},
        {"metadata": None},
    ],
)
def test_a_fatbin_that_cannot_be_is_not_made(small_module: Fatbin, change: dict[str, Any], refused: Any) -> None:
    refused(lambda: replace(small_module, **change))


@pytest.mark.parametrize(
    ("kind", "target", "data"),
    [
        ("sass", None, b""),
        ("ptx", None, b""),
        ("graph-ir", "sm_90", b""),
        ("graph-ir", None, "text"),
        (None, None, b""),
    ],
)
def test_a_section_that_cannot_be_is_not_made(kind: Any, target: Any, data: Any, refused: Any) -> None:
    refused(lambda: Section(kind, target, data))


def test_only_a_fatbin_is_written(refused: Any) -> None:
    refused(lambda: write(b"TESSFBIN"))  # type: ignore[arg-type]
