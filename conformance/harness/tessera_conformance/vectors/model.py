"""A golden vector: one question, the bits of the only right answer, and who confirmed them; and what can be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.tensors import Tensor

# What can go wrong with golden vectors; each error says what, where and what to do about it.


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


# A golden vector: one question to an implementation, the bits of the only right answer, and who confirmed them.


@dataclass(frozen=True, slots=True)
class Check:
    """An independent computation of the answer: a published oracle function, the inputs it takes, other arguments."""

    function: str
    operands: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def answers(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Return the oracle's answer."""
        found = FUNCTIONS[self.function](*(inputs[name] for name in self.operands), **self.arguments)
        return found if isinstance(found, tuple) else (found,)


@dataclass(frozen=True, slots=True)
class Call:
    """One protocol call; tensors among the parameters are `Tensor` objects."""

    method: str
    params: Mapping[str, Any]

    @property
    def inputs(self) -> Mapping[str, Tensor]:
        """The tensors asked about: by name for a program, by position (from "0") for an operation, else none."""
        if "input" in self.params:
            return {"0": self.params["input"]}
        inputs: Mapping[str, Tensor] | Sequence[Tensor] = self.params.get("inputs", ())
        if isinstance(inputs, Mapping):
            return inputs
        return {str(place): tensor for place, tensor in enumerate(inputs)}


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of the expected bits.

    `reference` is the implementation that was run when they were frozen and `check` the independent computation that
    agreed with it; `reason` says why an answer that had been frozen before was changed.
    """

    reference: str
    check: Check
    level: str = "strict"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Vector:
    """One case of a topic, as it stands in a line of a vector file."""

    topic: str
    name: str
    clauses: tuple[str, ...]
    comment: str
    call: Call
    expected: tuple[Tensor, ...]
    provenance: Provenance
    features: tuple[str, ...] = ()
    """Features to claim, beyond the core of the language, for the question to be put."""

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

    def find(self, name: str) -> Vector | None:
        """The vector of that name."""
        return next((vector for vector in self.vectors if vector.name == name), None)
