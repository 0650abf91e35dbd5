"""The folder of frozen vectors: its files, its manifest, and writing to it without ever leaving half a file."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tessera_conformance.documents import read_json
from tessera_conformance.schemas import first_problem
from tessera_conformance.vectors.errors import DamagedFile
from tessera_conformance.vectors.lines import FORMAT, RESTORE, SCHEMA, Read, digest, tensor_files

MANIFEST = "MANIFEST.json"


def reader(folder: Path) -> Read:
    """Reads the files of a folder on disk."""
    return lambda path: (folder / path).read_bytes()


def files_in(folder: Path) -> list[str]:
    """Every file of the folder but the manifest, sorted."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if _is_content(path, folder))


def vector_paths(folder: Path) -> list[str]:
    """The vector files of the folder, sorted."""
    return [path for path in files_in(folder) if path.endswith(".jsonl")]


def read_manifest(folder: Path) -> dict[str, str]:
    """The hash of every file, by path.

    Raises:
        DamagedFile: it is missing, or not as `write` leaves it.
    """
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
        document = read_json(data)
    except OSError as error:
        raise DamagedFile(f"there is no manifest: {error.strerror}", str(path), RESTORE) from None
    except ValueError as error:
        raise DamagedFile(f"the manifest is {error}", str(path), RESTORE) from None
    problem = first_problem(SCHEMA, "manifest", document)
    if problem is not None:
        raise DamagedFile(f"the manifest is malformed: {problem}", str(path), RESTORE)
    files: dict[str, str] = document["files"]
    if data != _manifest_text(files):
        raise DamagedFile("the manifest is not in canonical form", str(path), RESTORE)
    return files


def write(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Put these files in place, record them, drop tensors that nothing names any more; returns the paths that changed.

    Other files keep the hash they had, so that writing one topic never blesses damage in another.
    """
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else {}
    changed = [path for path, data in sorted(files.items()) if _replace(folder / path, data)]
    manifest |= {path: digest(data) for path, data in files.items()}
    named = {name for path in vector_paths(folder) for name in tensor_files(path, reader(folder))}
    for path in [path for path in manifest if path.endswith(".bin") and path not in named]:
        (folder / path).unlink(missing_ok=True)
        del manifest[path]
        changed.append(path)
    _replace(folder / MANIFEST, _manifest_text(manifest))
    return changed


def _manifest_text(files: Mapping[str, str]) -> bytes:
    return (json.dumps({"files": dict(files), "format": FORMAT}, indent=1, sort_keys=True) + "\n").encode()


def _replace(path: Path, data: bytes) -> bool:
    """Whether the file had to be written; readers see the old bytes or the new ones, never a mixture."""
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def _is_content(path: Path, folder: Path) -> bool:
    return path.is_file() and path != folder / MANIFEST and not path.name.startswith((".git", "README"))
