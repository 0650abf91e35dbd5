"""Whether the frozen vectors are what was frozen, and whether their sources still say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tessera_conformance.differences import first_difference
from tessera_conformance.vectors import folder as vector_folder
from tessera_conformance.vectors.building import SourceCase
from tessera_conformance.vectors.errors import DamagedFile, Disagreement, OutOfStep, VectorProblem
from tessera_conformance.vectors.folder import MANIFEST
from tessera_conformance.vectors.lines import RESTORE, digest, parse
from tessera_conformance.vectors.model import Vector, VectorFile
from tessera_conformance.vectors.sources import SourceTopic

FILL = "run `vectors fill` and review the diff"


def integrity(folder: Path) -> Iterator[VectorProblem]:
    """Everything that is not as it was frozen: bytes edited, files added, removed or renamed, lines reordered."""
    try:
        recorded = vector_folder.read_manifest(folder)
    except DamagedFile as problem:
        yield problem
        return
    present = vector_folder.files_in(folder)
    for path in sorted(recorded.keys() - set(present)):
        yield DamagedFile(f"the manifest lists {path}, which is missing", str(folder / MANIFEST), RESTORE)
    for path in present:
        if path not in recorded:
            yield DamagedFile("the manifest does not list this file", str(folder / path), "remove or fill it")
        elif digest((folder / path).read_bytes()) != recorded[path]:
            yield DamagedFile("the file is not the one that was frozen", str(folder / path), RESTORE)


def read_all(folder: Path, problems: list[VectorProblem]) -> list[VectorFile]:
    """Every vector file that can be read; what is wrong with the others goes to `problems`."""
    files = []
    for path in vector_folder.vector_paths(folder):
        try:
            files.append(parse(path, vector_folder.reader(folder)))
        except VectorProblem as problem:
            problems.append(problem)
    return files


def in_step(files: Iterable[VectorFile], sources: Iterable[SourceTopic]) -> Iterator[VectorProblem]:
    """Where the lines and the sources differ: a line without a source, a source without a line, another question."""
    by_topic = {file.topic: file for file in files}
    for source in sources:
        file = by_topic.pop(source.name, VectorFile(source.name, source.documentation, ()))
        yield from _topic_in_step(file, source)
    for file in by_topic.values():
        for vector in file.vectors:
            yield _without_source(vector)


def recompute(vectors: Iterable[Vector]) -> Iterator[VectorProblem]:
    """Vectors whose independent check no longer gives the frozen answer."""
    for vector in vectors:
        check = vector.provenance.check
        try:
            answers = check.answers(vector.call.inputs)
        except (KeyError, TypeError, ValueError) as error:
            yield Disagreement(f"{check.function} cannot be applied: {error}", vector.id, "correct the source")
            continue
        if len(answers) != len(vector.expected):
            what = f"{check.function} gives {len(answers)} results, {len(vector.expected)} are frozen"
            yield Disagreement(what, vector.id, "find out by hand which is right")
            continue
        for answer, frozen in zip(answers, vector.expected, strict=True):
            difference = first_difference(answer, frozen)
            if difference is not None:
                what = f"{check.function} and the frozen answer differ: {difference.sentence()}"
                yield Disagreement(what, vector.id, "find out by hand which is right")


def _topic_in_step(file: VectorFile, source: SourceTopic) -> Iterator[VectorProblem]:
    names = [case.name for case in source.cases]
    for vector in file.vectors:
        if vector.name not in names:
            yield _without_source(vector)
    for case in source.cases:
        vector_or_none = file.find(case.name)
        where = f"{source.name}/{case.name}"
        if vector_or_none is None:
            yield OutOfStep("this source case has no frozen line", where, FILL)
        elif changed := _changed(vector_or_none, case):
            yield OutOfStep(f"the line and its source differ in {', '.join(changed)}", where, FILL)
    frozen = [vector.name for vector in file.vectors]
    if sorted(frozen) == sorted(names) and frozen != names:
        yield OutOfStep("the lines stand in another order than their sources", source.name, FILL)
    if file.documentation != source.documentation:
        yield OutOfStep("the header's documentation is not that of the source", source.name, FILL)


def _changed(vector: Vector, case: SourceCase) -> list[str]:
    pairs = {
        "clauses": (vector.clauses, case.clauses),
        "features": (vector.features, case.question.features),
        "comment": (vector.comment, case.comment),
        "call": (vector.call, case.question.call),
        "check": (vector.provenance.check, case.question.check),
    }
    return [name for name, (frozen, declared) in pairs.items() if frozen != declared]


def _without_source(vector: Vector) -> OutOfStep:
    return OutOfStep("this line has no source", vector.id, "restore the source, or drop the line with `vectors fill`")
