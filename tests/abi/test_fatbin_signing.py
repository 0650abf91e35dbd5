"""Signatures of modules (runtime spec 15)."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.abi.fatbin import Fatbin, Section, public_key, read, verify, write
from tessera_reference.abi.fatbin import image as signing

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
    found = read(image)
    assert found.sections[:-1] == module.sections
    signature = found.section("signature")
    assert signature is not None and signature.data[:32] == public_key(KEY) and len(signature.data) == 96
    assert write(found) == image


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
