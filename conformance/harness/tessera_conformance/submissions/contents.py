"""A submission: a report with all that is needed to read it, check it and repeat it, in one folder, signed or not.

statement.json     who claims what, in numbers
report.jsonl       the report, as the run left it
plan.txt           the cases of the run, one a line
deviations.toml    the known deviations under which it ran
environment.json   the machine and the versions of what ran
locks/             the clauses and the golden vectors that were judged by, by digest
REPEAT.md          how to run it again
MANIFEST.json      the SHA-256 of every other file
SIGNATURE.json     if it is signed, an Ed25519 signature of the manifest
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tessera_conformance import __version__
from tessera_conformance.cases import clauses_directory, vectors_directory
from tessera_conformance.deviations import Deviations
from tessera_conformance.documents import NoDocument, read_json
from tessera_conformance.reports.journal import FILE_NAME, Report, content
from tessera_conformance.reports.known_failures import as_toml

UTF_8 = ("utf-8", "backslashreplace")
"""The encoding of texts of others, in which half of a surrogate pair may occur."""
MANIFEST = "MANIFEST.json"
CLAUSES_LOCK, VECTORS_LOCK = "locks/clauses.lock", "locks/vectors.json"
FILES = (
    *("statement.json", FILE_NAME, "plan.txt", "deviations.toml", "environment.json"),
    *(CLAUSES_LOCK, VECTORS_LOCK, "REPEAT.md", MANIFEST),
)
"""Every file of a submission."""
PACKAGES = ("tessera-conformance", "numpy", "lark", "mpmath", "gmpy2", "jsonschema", "pytest", "hypothesis")


def contents(report: Report, implementation: str) -> dict[str, bytes]:
    """The files of a submission but its manifest, by path."""
    return {
        FILE_NAME: content(report.path),
        **locks(),
        **made_from(report),
        "environment.json": _json(_environment()).encode(),
        "REPEAT.md": _repeat(report, implementation).encode(*UTF_8),
    }


def locks() -> dict[str, bytes]:
    """Return the files by which a submission says what it was judged by."""
    return {
        CLAUSES_LOCK: (clauses_directory() / "clauses.lock").read_bytes(),
        VECTORS_LOCK: (vectors_directory() / "MANIFEST.json").read_bytes(),
    }


def made_from(report: Report) -> dict[str, bytes]:
    """Return the files that follow from the report alone. Raises `MalformedDeviations`."""
    texts = {
        "statement.json": _json(statement(report)),
        "plan.txt": "".join(f"{case}\n" for case in report.plan["cases"]),
        "deviations.toml": deviations_text(report),
    }
    return {path: text.encode(*UTF_8) for path, text in texts.items()}


def write(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write the files and their manifest. Raises `OSError`."""
    for path, data in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    (directory / MANIFEST).write_text(_json({path: digest(files[path]) for path in sorted(files)}), encoding="utf-8")


def statement(report: Report) -> dict[str, Any]:
    """Return the claim and the claimant: all of it follows from the report."""
    hello = report.header["implementation"]["hello"] or {}
    selection = {name: value for name, value in report.header["selection"].items() if name != "deviations"}
    return {
        "harness": report.header["harness"],
        "implementation": hello.get("implementation"),
        "documents": hello.get("documents", []),
        "features": sorted(name for name, state in hello.get("capabilities", {}).items() if state != "unsupported"),
        "selection": selection,
        "claim": report.claim,
        "cases": len(report.plan["cases"]),
        "verdicts": dict(sorted(Counter(line["verdict"] for line in report.observations).items())),
        "dispositions": dict(sorted(Counter(line["disposition"] for line in report.observations).items())),
        "report": digest(content(report.path)),
    }


def deviations_text(report: Report) -> str:
    """The deviations under which the run was made, as a file that `--deviations` takes."""
    entries = Deviations.of(report.header["selection"]["deviations"], report.path).entries
    return as_toml(entries, "The known deviations of the run.")


def digest(data: bytes) -> str:
    """The SHA-256 in the manifest."""
    return hashlib.sha256(data).hexdigest()


def _environment() -> dict[str, Any]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = __version__ if name == "tessera-conformance" else "unknown"
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": versions,
    }


def _repeat(report: Report, implementation: str) -> str:
    chosen = report.header["selection"]
    words = ["tessera-conformance", "run", f"--impl={implementation}", f"--profile={chosen['profile']}"]
    words += [f"--level={chosen['level']}", "--deviations=deviations.toml"]
    compiler = report.header["implementation"].get("compiler")
    words += [f"--compiler={compiler}"] if compiler else []
    words += [f"--via={chosen['via']}"] if chosen.get("via", "programs") != "programs" else []
    words += [f"--seed={chosen['seed']}"] if chosen.get("seed") else []
    words += ["--evidence=all"] if chosen.get("evidence") == "all" else []
    words += [f"--shard={chosen['shard']}"] if chosen["shard"] else []
    words += [f"--today={chosen['today']}"] if chosen["today"] else []
    part = "" if chosen["complete"] else "\nThe run left cases out: `plan.txt` names those that it had.\n"
    return f"""# How to repeat this run

With {report.header["harness"]}, in this folder:

```sh
{shlex.join(words)}
tessera-conformance compare report.jsonl report/report.jsonl
```
{part}
The report says the same whenever the implementation does; what differs between two runs is in it under `run`.
`tessera-conformance bundle verify .` checks this folder without the implementation.
"""


def _json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"


# The optional Ed25519 signature of a submission, over its manifest; keys are PEM files, as openssl writes them.


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
