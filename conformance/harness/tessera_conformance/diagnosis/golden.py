"""The golden vectors as far as a diagnosis needs them: which function of the oracle a program stands for.

Only the files of the cases in question are read, and not held against their hashes: what a report says was asked and
answered counts. The package of the vectors runs on the executor, which stands above the reports, and is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from tessera_conformance.cases import slug
from tessera_conformance.locations import vectors_directory


@dataclass(frozen=True)
class Golden:
    """A golden vector; its tensors are messages."""

    comment: str
    operation: str
    operands: Sequence[str]
    arguments: Mapping[str, Any]
    inputs: Mapping[str, Any]
    expected: Any


def golden_vector(case: str, title: str) -> Golden | None:
    """The golden vector of a case, if it is the case of one."""
    if "/golden" not in case:
        return None
    beginning, _, rest = case.rpartition("/golden")
    name = rest.partition("/")[2]
    for path in _files(PurePosixPath(beginning).parent.as_posix(), PurePosixPath(beginning).name):
        found = _vectors(path).get(name)
        if found is not None and found.comment == title:
            return found
    return None


@cache
def _files(chapter: str, name: str) -> Sequence[Path]:
    """The files that may hold the vectors of a file of cases: those of the chapter that have its name in theirs."""
    files = (vectors_directory() / chapter).glob("*.jsonl")
    return sorted((path for path in files if name in slug(path.stem)), key=lambda path: (len(path.stem), path.stem))


@cache
def _vectors(path: Path) -> Mapping[str, Golden]:
    """The vectors of a file by the last part of their case's id."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return {slug(name): vector for name, vector in (_vector(line, path.parent) for line in lines)}


def _vector(line: str, folder: Path) -> tuple[str, Golden]:
    case = json.loads(line, object_hook=lambda entry: _placed(entry, folder))
    origin, params = case["provenance"], case["call"]["params"]
    inputs = params.get("inputs", {})
    named = inputs if isinstance(inputs, dict) else {str(place): each for place, each in enumerate(inputs)}
    operation = origin["independent"].removeprefix("oracle.")
    expected = case["expected"]["outputs"][0]
    return case["name"], Golden(case["comment"], operation, origin["operands"], origin["arguments"], named, expected)


def _placed(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An object of a line; a tensor that is a file names it by its whole path."""
    return entry | {"file": str(folder / entry["file"])} if "file" in entry and "sha256" in entry else entry


def inputs_of(vector: Golden) -> Iterator[Any]:
    """The operands of a vector in the order in which the oracle takes them."""
    return (vector.inputs[name] for name in vector.operands)
