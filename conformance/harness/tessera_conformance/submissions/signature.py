"""The optional Ed25519 signature of a submission, over its manifest; keys are PEM files, as openssl writes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tessera_conformance.documents import NoDocument, read_json
from tessera_conformance.submissions.contents import MANIFEST

SIGNATURE = "SIGNATURE.json"
_CONTEXT = b"tessera-conformance submission, version 1\0"
_LARGEST = 10_000


class NoKey(Exception):
    """A file that holds no Ed25519 key, or no package that reads one."""


def sign(directory: Path, key: Path) -> str:
    """Sign the manifest of a submission and return the public key. Raises `NoKey` and `OSError`."""
    private = _key(key, "load_pem_private_key", password=None)
    public = private.public_key().public_bytes_raw().hex()
    signature = private.sign(_CONTEXT + (directory / MANIFEST).read_bytes()).hex()
    text = json.dumps({"algorithm": "Ed25519", "public_key": public, "signature": signature}, indent=1)
    (directory / SIGNATURE).write_text(f"{text}\n", encoding="ascii")
    return str(public)


@dataclass(frozen=True)
class Signature:
    """The public key and the signature in hexadecimal digits, as a submission states them."""

    public: str
    signature: str


def read_signature(directory: Path) -> Signature | None:
    """Return the signature that a submission states; None where there is no file of one, or no plain one."""
    path = directory / SIGNATURE
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        document = read_json(data if len(data) <= _LARGEST else b"")
        return Signature(str(document["public_key"]), str(document["signature"]))
    except (OSError, NoDocument, KeyError, TypeError):
        return None


def signature_problems(directory: Path, stated: Signature | None, trusted: Path | None) -> Iterator[str]:
    """Yield the faults of a stated signature; with a trusted key, there must be one by it. Raises `NoKey`."""
    expected = _key(trusted, "load_pem_public_key").public_bytes_raw().hex() if trusted else None
    if stated is None:
        if expected or os.path.lexists(directory / SIGNATURE):
            yield f"{SIGNATURE}: no signature"
        return
    if expected not in (None, stated.public):
        yield f"{SIGNATURE}: signed by {stated.public:.64}, not by {expected}"
    ed25519, exceptions = _module("hazmat.primitives.asymmetric.ed25519"), _module("exceptions")
    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(stated.public))
        key.verify(bytes.fromhex(stated.signature), _CONTEXT + (directory / MANIFEST).read_bytes())
    except (ValueError, OSError, exceptions.InvalidSignature):
        yield f"{SIGNATURE}: is none of {MANIFEST}"


def _key(path: Path, load: str, **arguments: Any) -> Any:
    ed25519 = _module("hazmat.primitives.asymmetric.ed25519")
    try:
        key = getattr(_module("hazmat.primitives.serialization"), load)(path.read_bytes(), **arguments)
    except (ValueError, TypeError) as error:
        raise NoKey(f"{path}: no Ed25519 key in PEM: {error}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey | ed25519.Ed25519PublicKey):
        raise NoKey(f"{path}: a key of another kind than Ed25519")
    return key


def _module(name: str) -> Any:
    try:
        return import_module(f"cryptography.{name}")
    except ImportError:
        what = "signatures need the package cryptography"
        raise NoKey(f"{what}: pip install 'tessera-conformance[signing]'") from None
