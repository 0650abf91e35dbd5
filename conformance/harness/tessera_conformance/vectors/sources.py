"""The sources of the vectors: Python modules in the folders `vector_sources` of the chapters, one for each topic."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.vectors.building import SourceCase, Topic
from tessera_conformance.vectors.model import BrokenSource


@dataclass(frozen=True)
class SourceTopic:
    """A topic and the cases its source declares."""

    name: str
    documentation: str
    cases: tuple[SourceCase, ...]


def load_sources(folders: Mapping[str, Path], wanted: tuple[str, ...] = ()) -> Iterator[SourceTopic]:
    """Every topic of the folders in order of its path; only those that `wanted` names, when it names any.

    A topic is called after its chapter, the key of its folder, and its place there: `ir/matmul`.

    Raises:
        BrokenSource: a module fails to load or declares nothing usable.
    """
    for chapter, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            name = (PurePosixPath(chapter) / path.relative_to(folder).with_suffix("").as_posix()).as_posix()
            if concerns(name, wanted):
                yield _load(name, path)


def concerns(topic: str, wanted: tuple[str, ...]) -> bool:
    """Whether a topic, or a case of it, or a chapter with it, is among the names; no names mean all."""
    return not wanted or any(_within(topic, name) or _within(name, topic) for name in wanted)


def matches(case: str, wanted: tuple[str, ...]) -> bool:
    """Whether a case is named, itself or by a beginning of its path."""
    return not wanted or any(_within(case, name) for name in wanted)


def _within(name: str, beginning: str) -> bool:
    return name == beginning or name.startswith(f"{beginning}/")


def _load(name: str, path: Path) -> SourceTopic:
    where = str(path)
    try:
        topic = _topic(path)
        cases = tuple(topic.cases())
    except BrokenSource as problem:
        raise BrokenSource(problem.what, f"{where} ({problem.where})", problem.remedy) from None
    except Exception as error:
        raise BrokenSource(f"{type(error).__name__}: {error}", where, "correct the source") from error
    for case in cases:
        if case.question.check.function not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise BrokenSource(f"{case.name}: no check {case.question.check.function}", where, f"one of {known}")
    return SourceTopic(name, topic.documentation, cases)


def _topic(path: Path) -> Topic:
    spec = importlib.util.spec_from_file_location(f"vector_source_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BrokenSource("not a Python module", path.name, "name it *.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    topic = getattr(module, "topic", None)
    if not isinstance(topic, Topic) or not topic.documentation:
        raise BrokenSource("no documented topic", path.name, "write a docstring and `topic = Topic(__doc__)`")
    return topic
