"""Shared by the violators of the WSP runtime: declaring a change, and the adapters that mistake packages."""

from __future__ import annotations

import json
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter


def changed(clause: str, name: str, description: str, *substitutions: tuple[Any, str, Any]) -> Violation:
    """A violation that replaces attributes of modules or classes."""
    return replaced(clause, description, ReferenceAdapter, *substitutions, name=name)


class RunsLatest(ReferenceAdapter):
    """Runs, in place of a package, what was compiled last under its name."""

    def __init__(self) -> None:
        super().__init__()
        self._latest: dict[str, str] = {}

    def wsp_compile(self, *, program: Any, target: str) -> dict[str, Any]:
        """Remembers the package."""
        answer = super().wsp_compile(program=program, target=target)
        self._latest[program["name"]] = answer["package"]
        return answer

    def wsp_run(self, *, package: str, **given: Any) -> dict[str, Any]:
        """A run of the latest."""
        return super().wsp_run(package=self._latest.get(json.loads(package)["name"], package), **given)


class KeepsFirstData(ReferenceAdapter):
    """A package has the tensors of its first run in all others."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str, Any] = {}

    def wsp_run(self, *, package: str, tensors: Any = None, **given: Any) -> dict[str, Any]:
        """A run with the first tensors."""
        return super().wsp_run(package=package, tensors=self._first.setdefault(package, tensors), **given)
