"""How a source declares vectors: a topic, a function for each case, tensors written by hand.

    topic = Topic(__doc__)

    @topic.vector("{dtype}/k-tail", "LANG-15-15", dtype=["bf16", "fp32"])
    def k_tail(dtype: str) -> Question:
        \"\"\"Thirteen products an element, one more than a multiple of four.\"\"\"
        return programs.matmul(counted(dtype, (2, 13), seed=1), counted(dtype, (13, 2), seed=2))

The docstring is published as the case's comment.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tessera_conformance.dsl import tensor_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.errors import BrokenSource
from tessera_conformance.vectors.model import Call, Check

tensor = tensor_of
"""A tensor written by hand, from nested lists of numbers."""


@dataclass(frozen=True)
class Question:
    """A protocol call, and the independent check that knows the answer."""

    call: Call
    check: Check
    clauses: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceCase:
    """One declared case, not yet answered."""

    name: str
    clauses: tuple[str, ...]
    comment: str
    question: Question


@dataclass(frozen=True)
class _Declaration:
    name: str
    clauses: tuple[str, ...]
    variants: Mapping[str, Sequence[str]]
    make_question: Callable[..., Question]

    def cases(self) -> Iterator[SourceCase]:
        comment = " ".join((inspect.getdoc(self.make_question) or "").split())
        if not comment:
            raise BrokenSource("a case has no docstring", self.name, "say in one sentence what the case shows")
        for values in product(*self.variants.values()):
            chosen = dict(zip(self.variants, values, strict=True))
            name = self.name.format(**chosen)
            try:
                question = self.make_question(**chosen)
            except Exception as error:
                raise BrokenSource(f"{type(error).__name__}: {error}", name, "correct the source") from error
            clauses = tuple(dict.fromkeys((*self.clauses, *question.clauses)))
            yield SourceCase(name, clauses, comment, question)


class Topic:
    """The cases of one vector file, in the order of their declaration."""

    def __init__(self, documentation: str | None) -> None:
        self.documentation = " ".join((documentation or "").split())
        self._declarations: list[_Declaration] = []

    def vector(
        self, name: str, *clauses: str, **variants: Sequence[str]
    ) -> Callable[[Callable[..., Question]], Callable[..., Question]]:
        """Declare a case, or one for every combination of `variants`, which name it and are passed to it."""

        def declare(make_question: Callable[..., Question]) -> Callable[..., Question]:
            self._declarations.append(_Declaration(name, clauses, variants, make_question))
            return make_question

        return declare

    def cases(self) -> list[SourceCase]:
        """Every case, its question built.

        Raises:
            BrokenSource: two cases have one name, or one has no docstring.
        """
        cases = [case for declaration in self._declarations for case in declaration.cases()]
        names = [case.name for case in cases]
        for name in names:
            if names.count(name) > 1:
                raise BrokenSource(f"two cases are called {name}", name, "give each its own name")
        return cases


def codes(dtype: str, shape: tuple[int, ...], words: Sequence[int]) -> Tensor:
    """A tensor from its storage codes."""
    return Tensor.from_words(dtype, shape, words)


def require_different(results: Sequence[Tensor], why: str) -> None:
    """Make sure that the data of a case distinguish ways of computing: every two results differ.

    Raises:
        ValueError: two of them are equal, so the case would not show what it claims to.
    """
    if len({result.data for result in results}) < len(results):
        raise ValueError(f"the data do not tell apart: {why}")
