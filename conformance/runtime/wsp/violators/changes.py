"""Helpers of the violators of the WSP runtime: a change, and adapters that confuse packages."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp.run import Processes
from tessera_reference.wsp.statements import Consume

BODY = Processes.body


def changed(clause: str, name: str, description: str, *substitutions: tuple[Any, str, Any]) -> Violation:
    """Return a violation that replaces attributes of modules or classes."""
    return replaced(clause, description, ReferenceAdapter, *substitutions, name=name)


def defaulting(kind: Any, **defaults: Any) -> tuple[Any, str, Any]:
    """Return the substitution by which a class of a package has other defaults."""
    make = kind.__init__

    def made(self: Any, **stated: Any) -> None:
        make(self, **{**defaults, **stated})

    return kind, "__init__", made


class Ended(Exception):
    """Raised by a process that ends before its last statement."""


def ends_the_process(self: Any, process: Any, statements: Any, outer: Any) -> Any:
    """End the whole process of a consumer that has no more tokens."""
    for statement in statements:
        yield from BODY(self, process, (statement,), outer)
        if isinstance(statement, Consume):
            raise Ended


def until_it_ends(self: Any, process: Any, body: Any) -> Any:
    """Run a process that may end before its last statement."""
    with suppress(Ended):
        yield from self.body(process, body, (None, "body"))
    self.end(process)
    process.done = True


class RunsLatest(ReferenceAdapter):
    """A runtime that runs the latest compiled package of the same name in place of a package."""

    def __init__(self) -> None:
        super().__init__()
        self._latest: dict[str, str] = {}

    def wsp_compile(self, *, program: Any, target: str) -> dict[str, Any]:
        """Compile and keep the package."""
        answer = super().wsp_compile(program=program, target=target)
        self._latest[program["name"]] = answer["package"]
        return answer

    def wsp_run(self, *, package: str, **arguments: Any) -> dict[str, Any]:
        """Run the latest package."""
        return super().wsp_run(package=self._latest.get(json.loads(package)["name"], package), **arguments)


class KeepsFirstData(ReferenceAdapter):
    """A runtime whose packages have the tensors of their first run in all others."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str, Any] = {}

    def wsp_run(self, *, package: str, tensors: Any = None, **arguments: Any) -> dict[str, Any]:
        """Run with the first tensors."""
        return super().wsp_run(package=package, tensors=self._first.setdefault(package, tensors), **arguments)
