"""Errors of programs, packages and runs; cycles of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar


class WspFailure(Exception):
    """Anything that a program, a package or a caller got wrong; its text says what, where and what is expected."""

    text: ClassVar[str] = ""
    """The text, in which members stand by name; that of the exception where it is empty."""

    def __str__(self) -> str:
        return self.text.format(**vars(self)) if self.text else super().__str__()


@dataclass(eq=False)
class ProgramRefused(WspFailure):
    """A program, or the contents of a package, say something that has no meaning; `path` is where."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


@dataclass(eq=False)
class UnsupportedDirective(WspFailure):
    """A target does not support a directive of a program, which is an error when it is compiled (WSP-01.3-05)."""

    target: str
    directive: str
    text = "target {target} does not support {directive}"


@dataclass(eq=False)
class PackageRefused(WspFailure):
    """A package is not loaded.

    `code` is UNKNOWN_ABI, TRUNCATED, MALFORMED, MISSING_PAYLOAD, ALTERED or INVALID (WSP-07.2-14, AMB-WSP-16).
    """

    code: str
    problem: str
    text = "package refused: {problem}"


@dataclass(eq=False)
class ArgumentRefused(WspFailure):
    """A symbol, tensor or resource that is given to a run does not fit its package."""

    name: str
    problem: str
    text = "{name}: {problem}"


@dataclass(eq=False)
class DeviceNeeded(WspFailure):
    """A package is for a target that runs on hardware or an emulator, of which there is none here."""

    target: str
    text = "a package for {target} runs on a device or emulator, and there is none here"


@dataclass(eq=False)
class RunError(WspFailure):
    """An error that ends a run, at a statement of a process; where it is left out, the loop knows it.

    `code` is SEND_AFTER_CLOSE, RECEIVE_AFTER_CLOSE, SLOT_VALUE, DIVISION_BY_ZERO, ELEMENT_OUT_OF_RANGE,
    WORKER_OUT_OF_RANGE, TIME_OVERFLOW or STEP_LIMIT (AMB-WSP-58, AMB-WSP-80).
    """

    code: str
    problem: str
    process: str = ""
    statement: str = ""
    text = "{code}: {problem}"


def first_cycle(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """The first cycle of a depth-first walk from each node in turn; empty where there is none."""
    sorter = TopologicalSorter(dict.fromkeys(graph, ()))
    for node, ways in graph.items():
        for way in ways:
            sorter.add(way, node)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1][:-1])
    return []
