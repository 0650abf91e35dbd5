"""The files of golden vectors and the values that they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from tessera_conformance.documents import read_json
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.schemas import first_problem
from tessera_conformance.tensors import MalformedTensor, Tensor

# Problems of golden vectors; each error has the problem, its place and the remedy.


@dataclass(eq=False)
class VectorProblem(Exception):
    """A problem of a vector, a file or a source that a person has to resolve."""

    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}\n  where:  {self.where}\n  remedy: {self.remedy}"


class DamagedFile(VectorProblem):
    """A vector file, a tensor file or the manifest is not the frozen one."""


class OutOfStep(VectorProblem):
    """The sources and the frozen lines contradict each other."""


class Disagreement(VectorProblem):
    """The implementation and the independent check, or the check and a frozen answer, differ."""


class BrokenSource(VectorProblem):
    """A source module cannot be loaded, or its declarations are incomplete."""


class Unanswerable(VectorProblem):
    """The question itself is wrong: no such file, revision, vector or implementation."""


# A golden vector: one question to an implementation, the bits of the only right answer, and its confirmations.


@dataclass(frozen=True, slots=True)
class Check:
    """An independent computation of the answer: a published oracle function, its operands, and other arguments."""

    function: str
    operands: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def answers(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Return the oracle's answer."""
        result = FUNCTIONS[self.function](*(inputs[name] for name in self.operands), **self.arguments)
        return result if isinstance(result, tuple) else (result,)


@dataclass(frozen=True, slots=True)
class Call:
    """One protocol call; tensors among the parameters are `Tensor` objects."""

    method: str
    params: Mapping[str, Any]

    @property
    def inputs(self) -> Mapping[str, Tensor]:
        """The input tensors: by name for a program, by position (from "0") for an operation, else none."""
        if "input" in self.params:
            return {"0": self.params["input"]}
        inputs: Mapping[str, Tensor] | Sequence[Tensor] = self.params.get("inputs", ())
        if isinstance(inputs, Mapping):
            return inputs
        return {str(place): tensor for place, tensor in enumerate(inputs)}


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of the expected bits.

    `reference` is the implementation that ran when they were frozen, and `check` the independent computation that
    agreed with it. `reason` explains why an earlier frozen answer was changed.
    """

    reference: str
    check: Check
    level: str = "strict"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """One case of a topic, as a line of a vector file holds it."""

    topic: str
    name: str
    clauses: tuple[str, ...]
    comment: str
    call: Call
    expected: tuple[Tensor, ...]
    provenance: Provenance
    features: tuple[str, ...] = ()
    """Features that an implementation must claim, beyond the core of the language, to be asked the question."""

    @property
    def id(self) -> str:
        """Topic and name: `ir/matmul/bf16/k-tail`."""
        return f"{self.topic}/{self.name}"


@dataclass(frozen=True, slots=True)
class VectorFile:
    """All vectors of a topic, in the order of their source."""

    topic: str
    documentation: str
    vectors: tuple[Vector, ...]

    @property
    def by_name(self) -> dict[str, Vector]:
        """The vectors by name."""
        return {vector.name: vector for vector in self.vectors}


# The text of a vector file: JSON Lines with sorted keys, a header first, then one vector a line.
#
# In every line but the header, `sha256` is the hash of the line without that field. A tensor of more than
# `INLINE_LIMIT` bytes is a file of little-endian words beside the vector file, named by its SHA-256. Reading is strict:
# it refuses everything that writing would not produce.


FORMAT = 2
SCHEMA = "tessera:vectors/lines"
INLINE_LIMIT = 16 * 1024
"""Larger tensors, in bytes, are files of their own, so that a line of a diff stays readable."""

RESTORE = "restore it from version control; a vector is changed in its source, then `vectors fill --reason ...`"

Read = Callable[[str], bytes]
"""Maps a path relative to the vectors' folder, with `/`, to bytes; raises FileNotFoundError."""


def path_of(topic: str) -> str:
    """Return the vector file of a topic, relative to the vectors' folder."""
    return f"{topic}.jsonl"


def canonical(value: Any) -> str:
    """Return the canonical JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def render(file: VectorFile) -> dict[str, bytes]:
    """Return the files that hold `file`, by path: the vector file itself and its large tensors.

    Raises `DamagedFile`: the content does not follow the schema.
    """
    path = path_of(file.topic)
    folder = PurePosixPath(path).parent
    files: dict[str, bytes] = {}

    def message(tensor: Tensor) -> dict[str, Any]:
        if len(tensor.data) <= INLINE_LIMIT:
            return tensor.to_message()
        name = f"{tensor.sha256}.bin"
        files[str(folder / name)] = tensor.data
        described = {"dtype": tensor.dtype, "shape": list(tensor.shape), "file": name, "sha256": tensor.sha256}
        return {"$tensor": described}

    header = {"format": FORMAT, "topic": file.topic, "documentation": file.documentation}
    lines = [header, *(_sealed(_with_tensors(_case(vector), message)) for vector in file.vectors)]
    for number, line in enumerate(lines, 1):
        _require_schema(path, number, line)
    files[path] = "".join(canonical(line) + "\n" for line in lines).encode()
    return files


def parse(path: str, read: Read, *, strict: bool = True, thorough: bool = True) -> VectorFile:
    """Return the vector file at `path`. Without `strict`, formatting and hashes are not examined.

    `render` has compared a line with its own hash with the schema; unless `thorough`, that is enough.

    Raises `DamagedFile`: it is not what `render` would have written.
    """
    read = cache(read)  # reads a tensor of several vectors once
    try:
        text = read(path).decode()
    except UnicodeDecodeError as error:
        raise DamagedFile(f"byte {error.start} is not UTF-8", path, RESTORE) from None
    documents = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        try:
            documents.append(read_json(line))
        except ValueError as error:
            raise DamagedFile(f"the line is {error}", f"{path}:{number}", RESTORE) from None
    for number, document in enumerate(documents, 1):
        sealed = number > 1 and strict and isinstance(document, dict) and _sealed(document) == document
        if thorough or not sealed:
            _require_schema(path, number, document)
        if strict and number > 1 and not sealed:
            raise DamagedFile("the line does not have the hash it names", f"{path}:{number}", RESTORE)
    if strict and text != "".join(canonical(document) + "\n" for document in documents):
        raise DamagedFile("the file is not in canonical form (sorted keys, no spaces)", path, RESTORE)
    header, *cases = documents
    if path_of(header["topic"]) != path:
        raise DamagedFile(f"the header names topic {header['topic']!r}", path, RESTORE)
    vectors = tuple(_vector(path, number, header["topic"], case, read) for number, case in enumerate(cases, 2))
    return VectorFile(header["topic"], header["documentation"], vectors)


def tensor_files(path: str, read: Read) -> set[str]:
    """Return the files of large tensors that a vector file names."""
    names: list[str | None] = []
    documents = [json.loads(line) for line in read(path).decode().removesuffix("\n").split("\n")]
    _with_tensors(documents, lambda message: names.append(message["$tensor"].get("file")))
    return {str(PurePosixPath(path).parent / name) for name in names if name is not None}


def _with_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a nested value with every tensor, or message of a tensor, changed."""
    if isinstance(value, Tensor) or (isinstance(value, Mapping) and "$tensor" in value):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _with_tensors(item, change) for key, item in value.items()}
    return [_with_tensors(item, change) for item in value] if isinstance(value, list | tuple) else value


def _case(vector: Vector) -> dict[str, Any]:
    provenance = vector.provenance
    origin = {
        "reference": provenance.reference,
        "independent": provenance.check.function,
        "operands": provenance.check.operands,
        "arguments": provenance.check.arguments,
        "level": provenance.level,
    }
    return {
        "name": vector.name,
        "clauses": vector.clauses,
        "features": vector.features,
        "comment": vector.comment,
        "call": {"method": vector.call.method, "params": vector.call.params},
        "expected": {"outputs": vector.expected},
        "provenance": origin if provenance.reason is None else origin | {"reason": provenance.reason},
    }


def _vector(path: str, number: int, topic: str, case: Mapping[str, Any], read: Read) -> Vector:
    folder = PurePosixPath(path).parent
    try:
        case = _with_tensors(case, lambda message: _tensor(message["$tensor"], folder, read))
    except MalformedTensor as error:
        raise DamagedFile(str(error), f"{path}:{number} ({case['name']})", RESTORE) from None
    origin = case["provenance"]
    check = Check(origin["independent"], tuple(origin["operands"]), origin["arguments"])
    return Vector(
        topic=topic,
        name=case["name"],
        clauses=tuple(case["clauses"]),
        features=tuple(case["features"]),
        comment=case["comment"],
        call=Call(case["call"]["method"], case["call"]["params"]),
        expected=tuple(case["expected"]["outputs"]),
        provenance=Provenance(origin["reference"], check, origin["level"], origin.get("reason")),
    )


def _tensor(body: Mapping[str, Any], folder: PurePosixPath, read: Read) -> Tensor:
    if "file" not in body:
        return Tensor.from_message(body)
    try:
        tensor = Tensor(body["dtype"], tuple(body["shape"]), read(str(folder / body["file"])))
    except FileNotFoundError:
        raise MalformedTensor(f"there is no file {body['file']}") from None
    if tensor.sha256 != body["sha256"] or body["file"] != f"{tensor.sha256}.bin":
        raise MalformedTensor(f"{body['file']} holds other bytes than its name and the line say")
    return tensor


def _sealed(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return `case` with the hash of everything else in it."""
    rest = {key: value for key, value in case.items() if key != "sha256"}
    return rest | {"sha256": digest(canonical(rest).encode())}


def _require_schema(path: str, number: int, document: Any) -> None:
    problem = first_problem(SCHEMA, "header" if number == 1 else "case", document)
    if problem is not None:
        raise DamagedFile(problem, f"{path}:{number}", "follow schemas/vectors/lines.schema.json")


# The folder of frozen vectors: its files, its manifest, and writing that never leaves half a file.


MANIFEST = "MANIFEST.json"


def reader(folder: Path) -> Read:
    """Return the function that reads the files of a folder on disk."""
    return lambda path: (folder / path).read_bytes()


def files_in(folder: Path) -> list[str]:
    """Return every file of the folder but the manifest, sorted."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".git", "README"))]
    return sorted(path.relative_to(folder).as_posix() for path in paths if path != folder / MANIFEST)


def vector_paths(folder: Path) -> list[str]:
    """Return the vector files of the folder, sorted."""
    return [path for path in files_in(folder) if path.endswith(".jsonl")]


def read_manifest(folder: Path) -> dict[str, str]:
    """Return the hash of every file, by path. Raises `DamagedFile`: it is missing, or not as `write` leaves it."""
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
    """Write these files, record them, remove unused tensors, and return the changed paths.

    Other files keep their recorded hash, so that writing one topic never hides damage in another.
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
    """Write a file unless it has these bytes; return True if it was written. Readers never see a mixture."""
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return True
