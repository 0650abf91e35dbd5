"""The process that computes the answers of a unit of vector files again."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tessera_conformance.cases import vectors_directory
from tessera_conformance.executor.answers import AnswerWriter, do_unit
from tessera_conformance.vectors.check import recompute
from tessera_conformance.vectors.files import digest, parse, reader


def compute(settings: Mapping[str, Any], names: Sequence[str], answers: AnswerWriter) -> None:
    """Compute the answers of these vectors again; without any, only look whether all files are here."""
    folder = Path(settings["folder"] or vectors_directory())
    for path, expected in settings["digests"].items():
        file = folder / path
        if not file.is_file() or digest(file.read_bytes()) != expected:
            answers.refuses(f"has no {file}, or another one than this machine")
            return
    identifiers, read = set(names), reader(folder)
    for path in settings["digests"]:
        if not _may_hold(path, names):
            continue
        for vector in parse(path, read).vectors:
            if vector.id in identifiers:
                answers.begins(vector.id)
                answers.gives(
                    vector.id, [(finding.what, finding.where, finding.remedy) for finding in recompute([vector])]
                )


def _may_hold(path: str, names: Sequence[str]) -> bool:
    """True if a vector of these names may be in a file: they begin with its topic."""
    topic = path.removesuffix(".jsonl")
    return any(name.startswith(f"{topic}/") for name in names)


if __name__ == "__main__":
    sys.exit(do_unit(compute))
