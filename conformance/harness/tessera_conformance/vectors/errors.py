"""What can go wrong with golden vectors; each error says what, where and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class VectorProblem(Exception):
    """Something about a vector, a file or a source that a person has to decide."""

    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}\n  where:  {self.where}\n  remedy: {self.remedy}"


class DamagedFile(VectorProblem):
    """A vector file, a tensor file or the manifest is not what was frozen."""


class OutOfStep(VectorProblem):
    """The sources and the frozen lines contradict each other."""


class Disagreement(VectorProblem):
    """The implementation and the independent check, or the check and a frozen answer, differ."""


class BrokenSource(VectorProblem):
    """A source module cannot be loaded, or does not say what it must."""


class Unanswerable(VectorProblem):
    """The question itself is at fault: no such file, revision, vector or implementation."""
