"""Whether an image is signed by someone trusted (runtime spec 15; AMB-RT-43)."""

from __future__ import annotations

from collections.abc import Collection

from .reader import read
from .signing import verify_signature
from .writer import signed_content

__all__ = ["verify"]


def verify(image: bytes, trusted_keys: Collection[bytes]) -> None:
    """Check the signature of an image against the public keys, 32 bytes each, that are trusted.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for an image that is malformed, unsigned, signed by another key, or
    altered since; with TESS_ERR_UNSUPPORTED without the extra `signing`.
    """
    fatbin = read(image, runtime=None)
    signature = fatbin.section("signature")
    verify_signature(signed_content(fatbin), None if signature is None else signature.data, trusted_keys)
