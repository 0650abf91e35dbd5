"""Golden vectors: questions to an implementation with the bits of the only right answer, frozen and confirmed twice.

`load("ir/matmul")` returns the vectors of a topic. `tessera-conformance vectors fill` writes them from the modules in
`vector_sources` of each chapter; nobody edits them by hand. `vectors check` detects any edited byte.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tessera_conformance import cases
from tessera_conformance.vectors.files import Unanswerable, Vector, parse, path_of, reader

__all__ = ["Vector", "load"]


def load(topic: str, folder: Path | None = None) -> list[Vector]:
    """Return the vectors of a topic, in the order of their source.

    Raises `Unanswerable`: there is no such topic; or `DamagedFile`: the file is not the frozen one.
    """
    try:
        return list(_shipped(topic, cases.vectors_directory()) if folder is None else _vectors(topic, folder))
    except FileNotFoundError:
        raise Unanswerable(
            "no vectors of this topic are frozen", topic, "run `tessera-conformance vectors fill`"
        ) from None


def _vectors(topic: str, folder: Path) -> tuple[Vector, ...]:
    return parse(path_of(topic), reader(folder), thorough=False).vectors


_shipped = cache(_vectors)
"""The vectors of the suite's own folder; several files of cases load the same topics."""
