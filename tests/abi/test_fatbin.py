"""Fatbins: signatures, and the page that describes an image (runtime spec 8.1, 15, 16)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_reference.abi.fatbin import (
    Fatbin,
    KernelEntry,
    KernelParameter,
    Metadata,
    Section,
    public_key,
    read,
    verify,
    write,
)
from tessera_reference.abi.fatbin import image as signing
from tessera_reference.abi.fatbin.image import KINDS
from tessera_reference.abi.status import Failure, Status

NO_TARGET = 0xFFFFFFFF
GRAPH_IR, TARGET_IR, PTX, AMDGCN, METADATA, SIGNATURE = range(1, 7)


def test_what_a_newer_minor_adds_is_no_reason_to_call_a_module_malformed(surgeon: Any) -> None:
    """A kind of section, and metadata, that this version does not know."""
    image = surgeon.image([(METADATA, NO_TARGET, b'{"kernels":[],"news":1}'), (99, 7, b"")], abi=(1, 1))
    with pytest.raises(Failure) as caught:
        read(image)
    assert caught.value.status is Status.TESS_ERR_ABI_VERSION_MISMATCH


@pytest.mark.parametrize("image", [None, 5, "TESSFBIN", [1, 2]])
def test_what_is_no_bytes_is_refused(image: Any, refused: Any) -> None:
    refused(lambda: read(image))


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
    ("change", "said"),
    [
        ({"targets": ("sm_90", "sm_90")}, "targets is ['sm_90', 'sm_90']; expected"),
        (
            {"sections": (Section("graph-ir", None, b""), Section("ptx", "sm_90", b"")) * 2},
            "sections is ['graph-ir', 'ptx sm_90', 'graph-ir', 'ptx sm_90']; expected",
        ),
    ],
)
def test_a_message_shows_lists_and_no_values_of_python(
    small_module: Fatbin, change: dict[str, Any], said: str, refused: Any
) -> None:
    assert said in str(refused(lambda: replace(small_module, **change)))


KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


@pytest.fixture(autouse=True)
def _needs_the_extra() -> None:
    pytest.importorskip("cryptography", reason="pip install -e '.[signing]'")


def test_public_keys_are_those_of_rfc_8032() -> None:
    """Section 7.1, test 1."""
    private = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    assert public_key(private).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def test_a_signed_image_is_read_and_verified(module: Fatbin) -> None:
    image = write(module, KEY)
    verify(image, [public_key(OTHER), public_key(KEY)])
    actual = read(image)
    assert actual.sections[:-1] == module.sections
    signature = actual.section("signature")
    assert signature is not None and signature.data[:32] == public_key(KEY) and len(signature.data) == 96
    assert write(actual) == image


def test_signing_is_repeatable_and_a_new_key_replaces_the_old_signature(module: Fatbin) -> None:
    image = write(module, KEY)
    assert write(module, KEY) == write(read(image), KEY) == image
    other = write(read(image), OTHER)
    verify(other, [public_key(OTHER)])
    assert len(other) == len(image)


def test_an_image_that_nobody_trusted_signed_is_refused(module: Fatbin, refused: Any) -> None:
    assert "without a signature" in str(refused(lambda: verify(write(module), [public_key(KEY)])))
    assert "a key that is not trusted" in str(refused(lambda: verify(write(module, KEY), [public_key(OTHER)])))
    assert "a key that is not trusted" in str(refused(lambda: verify(write(module, KEY), [])))


def test_whatever_is_changed_after_signing_is_found(module: Fatbin, refused: Any) -> None:
    """Each part of a module, written again with right checksums around the old signature."""
    signed = read(write(module, KEY))
    changes: list[dict[str, Any]] = [
        {"abi_version": (1, 1)},
        {"ir_hash": bytes(32)},
        {"targets": (*signed.targets, "gfx90a")},
        {"sections": signed.sections[1:]},
        {"sections": (Section("graph-ir", None, b"another"), *signed.sections[1:])},
        {"metadata": replace(signed.metadata, policy=None)},
    ]
    for change in changes:
        image = write(replace(signed, **change))
        assert "is not for" in str(refused(lambda image=image: verify(image, [public_key(KEY)])))


def test_a_signature_section_of_any_bytes_is_refused(module: Fatbin, refused: Any) -> None:
    for data in (b"", bytes(95), bytes(96), bytes(97), public_key(KEY) + bytes(64)):
        image = write(replace(module, sections=(*module.sections, Section("signature", None, data))))
        refused(lambda image=image: verify(image, [public_key(KEY)]))


def test_a_signature_of_plain_bytes_signs_no_module(module: Fatbin, refused: Any) -> None:
    """Without the words that go before an image, a key used elsewhere could be led to sign one."""
    ed25519 = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    plain = ed25519.Ed25519PrivateKey.from_private_bytes(KEY).sign(write(module))
    section = Section("signature", None, public_key(KEY) + plain)
    refused(lambda: verify(write(replace(module, sections=(*module.sections, section))), [public_key(KEY)]))


def test_verifying_a_malformed_image_is_refused(module: Fatbin, refused: Any) -> None:
    refused(lambda: verify(write(module, KEY)[:-1], [public_key(KEY)]))


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "0" * 32, None])
def test_what_is_no_private_key_is_refused(key: Any, refused: Any) -> None:
    assert "an Ed25519 private key" in str(refused(lambda: public_key(key)))


def test_without_the_extra_signing_is_unsupported(module: Fatbin, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = write(module, KEY)
    trusted = [public_key(KEY)]

    def missing(name: str) -> ModuleType:
        raise ImportError(name)

    monkeypatch.setattr(signing, "import_module", missing)
    for action in (lambda: write(module, KEY), lambda: verify(signed, trusted)):
        with pytest.raises(Failure, match=r"pip install 'tessera-conformance\[signing\]'") as caught:
            action()
        assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    assert read(write(module)) == module


DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "fatbin.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def image(page: str) -> bytes:
    """The bytes of the dump, whose offsets must go on where the line before ends."""
    found = b""
    for offset, line in re.findall(r"^0x([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", page, re.MULTILINE):
        assert int(offset, 16) == len(found)
        found += bytes.fromhex(line)
    return found


def test_the_image_is_the_module_that_the_page_names(image: bytes) -> None:
    parameters = (
        KernelParameter("x", "ptr", "fp32", ("n",), written=True),
        KernelParameter("n", "int32"),
        KernelParameter("factor", "fp32"),
    )
    module = Fatbin(
        abi_version=(1, 0),
        ir_hash=hashlib.sha256(b"module sample").digest(),
        targets=("sm_90",),
        sections=(Section("graph-ir", None, b"module sample"), Section("ptx", "sm_90", b".version 8.0")),
        metadata=Metadata((KernelEntry("scale", "sample", parameters, None, (128, 1, 1)),)),
    )
    assert read(image) == module
    assert write(module) == image


def test_the_dump_says_what_the_bytes_are(page: str, image: bytes) -> None:
    assert f"image size {len(image)}\n" in page
    for offset, count in re.findall(r"offset 0x([0-9a-f]{4})\n.*  (\d+) bytes\n", page):
        assert f"\n0x{offset}  " in page
        assert f"\n0x{int(offset, 16) + int(count):04x}  " in page


def test_every_kind_of_section_is_in_the_table(page: str) -> None:
    rows = re.findall(r"^\| (\d) \| `([a-z-]+)` \| (?:yes|no) \|", page, re.MULTILINE)
    assert {name: int(number) for number, name in rows} == KINDS
