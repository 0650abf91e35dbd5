"""Freezing answers: run every source case through an implementation, confirm the result independently, then write.

Nothing is written for a topic unless every one of its cases was answered and confirmed. What is frozen are the
oracle's bits, which differ from the implementation's in NaN codes at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tessera_conformance.differences import first_difference
from tessera_conformance.observations import Observation, Returned, describe
from tessera_conformance.protocol import Hello
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors import files as vector_folder
from tessera_conformance.vectors.building import SourceCase
from tessera_conformance.vectors.files import parse, path_of, render
from tessera_conformance.vectors.judging import outputs_of
from tessera_conformance.vectors.model import (
    Call,
    Disagreement,
    OutOfStep,
    Provenance,
    Unanswerable,
    Vector,
    VectorFile,
    VectorProblem,
)
from tessera_conformance.vectors.sources import SourceTopic, matches


@dataclass(frozen=True)
class Filled:
    """What became of one topic; nothing was written when there are problems."""

    topic: str
    vectors: int = 0
    changed: tuple[str, ...] = ()
    problems: tuple[VectorProblem, ...] = ()


@dataclass(frozen=True)
class Freezer:
    """Freezes topics into `folder` with the answers of the implementation behind `session`."""

    session: Session
    folder: Path
    wanted: tuple[str, ...] = ()
    reason: str | None = None

    def fill(self, topic: SourceTopic) -> Filled:
        """Answer, confirm and write one topic."""
        path = path_of(topic.name)
        try:
            frozen = parse(path, vector_folder.reader(self.folder)) if (self.folder / path).exists() else None
        except VectorProblem as problem:
            return Filled(topic.name, problems=(problem,))
        vectors: list[Vector] = []
        problems: list[VectorProblem] = []
        for case in topic.cases:
            before = frozen.find(case.name) if frozen else None
            try:
                vectors.extend(self._vectors(topic.name, case, before))
            except VectorProblem as problem:
                problems.append(problem)
        if problems:
            return Filled(topic.name, problems=tuple(problems))
        files = render(VectorFile(topic.name, topic.documentation, tuple(vectors)))
        return Filled(topic.name, len(vectors), tuple(vector_folder.write(self.folder, files)))

    def _vectors(self, topic: str, case: SourceCase, before: Vector | None) -> Iterator[Vector]:
        """The vector of a case; the frozen one, or none, where the case was not asked for."""
        if matches(f"{topic}/{case.name}", self.wanted):
            yield self._freeze(topic, case, before)
        elif before is not None:
            yield before

    def _freeze(self, topic: str, case: SourceCase, before: Vector | None) -> Vector:
        expected = self._confirmed(topic, case)
        unchanged = before is not None and (before.call, before.expected) == (case.question.call, expected)
        if before is not None and not unchanged and self.reason is None:
            raise OutOfStep(
                "a frozen question or answer would change",
                before.id,
                "look at it with `vectors diff`, then say why with --reason TEXT",
            )
        provenance = Provenance(self._reference(), case.question.check, reason=self.reason if before else None)
        if before is not None and unchanged and before.provenance.check == case.question.check:
            provenance = before.provenance
        question = case.question
        return Vector(
            topic, case.name, case.clauses, case.comment, question.call, expected, provenance, question.features
        )

    def _confirmed(self, topic: str, case: SourceCase) -> tuple[Tensor, ...]:
        where = f"{topic}/{case.name}"
        call, check = case.question.call, case.question.check
        self.session.reset()
        expected = check.answers(call.inputs)
        answers = _outputs(where, call, self.session.call(call.method, call.params), len(expected))
        for answer, confirmed in zip(answers, expected, strict=True):
            difference = first_difference(answer, confirmed)
            if difference is not None:
                raise Disagreement(
                    f"{self.session.label} and {check.function} disagree: {difference.sentence()}",
                    where,
                    "find out by hand which is right; nothing was frozen",
                )
        return expected

    def _reference(self) -> str:
        hello = open_session(self.session)
        return f"{hello.name} {hello.version}"


def open_session(session: Session) -> Hello:
    """The Hello of a started implementation.

    Raises:
        Unanswerable: it does not start.
    """
    hello = session.open()
    if isinstance(hello, Hello):
        return hello
    raise Unanswerable(describe(hello), session.label, "make the implementation start; see `tessera-conformance smoke`")


def _outputs(where: str, call: Call, observation: Observation, expected: int) -> list[Tensor]:
    remedy = "correct the program or the implementation"
    if not isinstance(observation, Returned):
        raise Disagreement(describe(observation), where, remedy)
    outputs: list[Tensor] = outputs_of(call.method, call.params, observation.value)
    if len(outputs) != expected:
        raise Disagreement(f"{len(outputs)} results, expected {expected}", where, remedy)
    return outputs
