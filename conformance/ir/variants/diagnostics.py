"""Other diagnostics: wording, number and moment (language specification, 11 and 12; AMB-LANG-112)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.language.modules import FunctionLowering

REFUSING = ("ir/*", "collectives/*program*", "abi/module-images/*", "runtime/binding/*")
INDEXING = ("ir/rejections/shape/*", "ir/indexing/*", "ir/shapes/*", "ir/statements/*", "ir/rejections/type/*")
SEVERAL = ("ir/rejections/*", "ir/diagnostics/*", "ir/grammar/*", "ir/statements/*", "ir/lexical/*", "ir/fuzz/*")


class Tells(ReferenceAdapter, ABC):
    """The reference, which tells what it refuses in another way."""

    @abstractmethod
    def told(self, refusal: Refusal) -> Refusal:
        """The refusal in other words."""

    def __getattribute__(self, name: str) -> Any:
        answer = super().__getattribute__(name)
        return retold(self, answer) if name.startswith("language_") else answer


def retold(adapter: Tells, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose refusals are worded in another way."""

    def call(**arguments: Any) -> Any:
        try:
            return method(**arguments)
        except Refusal as refusal:
            raise adapter.told(refusal) from None

    return call


@varies("LANG-12-01", "words diagnostics in another language; operands, lines and categories stay", *REFUSING)
class OtherWords(Tells):
    """Repeats the words of the run's failure, since an assertion has words of the program."""

    def told(self, refusal: Refusal) -> Refusal:
        """The same in other words."""
        kept = refusal.outcome.phase == "execute"
        found = [
            replace(
                diagnostic,
                message=foreign(diagnostic.message, kept),
                requirement=diagnostic.requirement and "autre chose",
                remedy=diagnostic.remedy and "essayez autre chose",
                clause=None,
            )
            for diagnostic in refusal.outcome.diagnostics
        ]
        return Refusal(refusal.outcome.code, refusal.outcome.phase, foreign(refusal.outcome.message, kept), found)


def foreign(message: str, kept: bool) -> str:
    """A message in another language, with its words where they are kept."""
    return f"ceci ne convient pas: «{message}»" if kept else "ceci ne convient pas"


@varies("LANG-12-05", "tells the first mistake of a program alone", *SEVERAL)
class OneMistake(Tells):
    """Stops where it finds one."""

    def told(self, refusal: Refusal) -> Refusal:
        """The first error."""
        first = [diagnostic for diagnostic in refusal.outcome.diagnostics if diagnostic.severity == "error"][:1]
        return Refusal(refusal.outcome.code, refusal.outcome.phase, refusal.outcome.message, first)


@varies("LANG-12-05", "adds warnings to what it refuses, and warns of each legal program", *REFUSING)
class Warns(Tells):
    """Has much to say."""

    def told(self, refusal: Refusal) -> Refusal:
        """The refusal with two warnings, which come first."""
        more = warning(refusal.outcome.code, "in a program")
        found = [more, more, *refusal.outcome.diagnostics] if refusal.outcome.diagnostics else []
        return Refusal(refusal.outcome.code, refusal.outcome.phase, refusal.outcome.message, found)

    def language_verify(self, *, source: str) -> dict[str, Any]:
        """The warnings, and one of its own."""
        answer = super().language_verify(source=source)
        return {"warnings": [warning("schedule", "could be faster"), *answer["warnings"]]}


def warning(category: str, message: str) -> dict[str, Any]:
    """A warning at the beginning of a program."""
    return {"category": category, "severity": "warning", "message": message, "line": 1, "column": 1}


@varies("AMB-LANG-96", "finds a constant index that is out of range when the program runs", *INDEXING)
class LateIndices(ReferenceAdapter):
    """Verifies what it will refuse to run."""

    def language_verify(self, *, source: str) -> dict[str, Any]:
        """The warnings; none of an index."""
        try:
            return super().language_verify(source=source)
        except Refusal as refusal:
            if not out_of_range(refusal):
                raise
            return {"warnings": []}

    def language_execute(self, **arguments: Any) -> dict[str, Any]:
        """The results; here the index is refused."""
        try:
            return super().language_execute(**arguments)
        except Refusal as refusal:
            told = refusal.outcome
            if not out_of_range(refusal):
                raise
            raise Refusal(told.code, "execute", told.message, told.diagnostics) from None


def out_of_range(refusal: Refusal) -> bool:
    """True if an index is all that is wrong with a program."""
    errors = [diagnostic for diagnostic in refusal.outcome.diagnostics if diagnostic.severity == "error"]
    return bool(errors) and all("out of range" in error.message and "index" in error.message for error in errors)


SILENT = altered(
    "AMB-LANG-187",
    "says nothing of what a kernel does not use",
    ("ir/function-values/*", "ir/kernels/*"),
    ReferenceAdapter,
    (FunctionLowering, "_warn_of_unused", lambda *_: None),
    name="silent_about_unused",
)
