"""Signatures of modules (runtime spec 15, RT-15-01, RT-15-05): Ed25519 over the image without its signature.

The signature section holds the public key, 32 bytes, and the signature, 64 bytes. Which keys are trusted is for the
caller to say: a signature by a key of the image's own choosing proves nothing. Needs the extra `signing`.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from ..status import Failure, Status, invalid

__all__ = ["KEY_BYTES", "public_key", "sign", "verify_signature"]

KEY_BYTES = 32
_SIGNATURE_BYTES = 64
_CONTEXT = b"tessera fatbin signature, container 1\n"


def public_key(signing_key: bytes) -> bytes:
    """The public key, 32 bytes, of a private key of 32 bytes. Raises as `sign` does."""
    return bytes(_private(signing_key).public_key().public_bytes_raw())


def sign(content: bytes, signing_key: bytes) -> bytes:
    """The signature section for an unsigned image.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for what is no key, with TESS_ERR_UNSUPPORTED without the extra.
    """
    return public_key(signing_key) + bytes(_private(signing_key).sign(_CONTEXT + content))


def verify_signature(content: bytes, section: bytes | None, trusted_keys: Collection[bytes]) -> None:
    """Raise `Failure` with TESS_ERR_INVALID_VALUE unless `section` signs `content` with a trusted key."""
    if section is None:
        raise _refused("an image without a signature")
    if len(section) != KEY_BYTES + _SIGNATURE_BYTES:
        raise _refused(f"a signature section of {len(section)} bytes")
    key, signature = section[:KEY_BYTES], section[KEY_BYTES:]
    if key not in trusted_keys:
        raise _refused(f"a signature by {key.hex()}, a key that is not trusted")
    ed25519 = _ed25519()
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, _CONTEXT + content)
    except (ValueError, import_module("cryptography.exceptions").InvalidSignature):
        raise _refused(f"an image that the signature by {key.hex()} is not for") from None


def _private(signing_key: bytes) -> Any:
    if not isinstance(signing_key, bytes) or len(signing_key) != KEY_BYTES:
        raise Failure(
            Status.TESS_ERR_INVALID_VALUE,
            "signing",
            "what is no private key",
            f"{KEY_BYTES} bytes, an Ed25519 private key",
        )
    return _ed25519().Ed25519PrivateKey.from_private_bytes(signing_key)


def _ed25519() -> Any:
    """The arithmetic of the signatures, which is no business of ours."""
    try:
        return import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    except ImportError:
        allowed = "the package cryptography: pip install 'tessera-conformance[signing]'"
        raise Failure(Status.TESS_ERR_UNSUPPORTED, "signing", "no Ed25519 here", allowed) from None


def _refused(given: str) -> Failure:
    return invalid("tessModuleLoad", given, "an image signed by one of the trusted keys")
