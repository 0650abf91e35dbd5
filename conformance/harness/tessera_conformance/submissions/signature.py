"""The optional Ed25519 signature of a submission, over its manifest; keys are PEM files, as openssl writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tessera_conformance.documents import NoDocument, read_json
from tessera_conformance.submissions.contents import MANIFEST

SIGNATURE = "SIGNATURE.json"
_CONTEXT = b"tessera-conformance submission, version 1\0"
_LARGEST_KEY = 10_000


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


def signer(directory: Path) -> str | None:
    """Return the public key that a submission names as its signer; None of one without a signature."""
    try:
        with (directory / SIGNATURE).open("rb") as file:
            told = read_json(file.read(_LARGEST_KEY))
        return str(told["public_key"]) if isinstance(told, dict) else None
    except (OSError, NoDocument, KeyError):
        return None


def signature_problems(directory: Path, trusted: Path | None) -> Iterator[str]:
    """Yield the faults of a signature; with a trusted key, there must be one by it. Raises `NoKey`."""
    wanted = _key(trusted, "load_pem_public_key").public_bytes_raw().hex() if trusted else None
    public = signer(directory)
    if public is None:
        if wanted or (directory / SIGNATURE).exists():
            yield f"{SIGNATURE}: no signature"
        return
    if wanted not in (None, public):
        yield f"{SIGNATURE}: signed by {public:.64}, not by {wanted}"
    signature = read_json((directory / SIGNATURE).read_bytes()).get("signature")
    ed25519, exceptions = _module("hazmat.primitives.asymmetric.ed25519"), _module("exceptions")
    try:
        key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(str(signature)), _CONTEXT + (directory / MANIFEST).read_bytes())
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
