"""Errors of programs, packages and runs; states of capabilities; cycles of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


class WspFailure(Exception):
    """Anything that a program, a package or a caller got wrong; its text says what, where and what is expected."""


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

    def __str__(self) -> str:
        return f"target {self.target} does not support {self.directive}"


@dataclass(eq=False)
class PackageRefused(WspFailure):
    """A package is not loaded.

    `code` is UNKNOWN_ABI, TRUNCATED, MALFORMED, MISSING_PAYLOAD, ALTERED or INVALID (WSP-07.2-14, AMB-WSP-16).
    """

    code: str
    problem: str

    def __str__(self) -> str:
        return f"package refused: {self.problem}"


@dataclass(eq=False)
class ArgumentRefused(WspFailure):
    """A symbol, tensor or resource that is given to a run does not fit its package."""

    name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}"


@dataclass(eq=False)
class DeviceNeeded(WspFailure):
    """A package is for a target that runs on hardware or an emulator, of which there is none here."""

    target: str

    def __str__(self) -> str:
        return f"a package for {self.target} runs on a device or emulator, and there is none here"


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

    def __str__(self) -> str:
        return f"{self.code}: {self.problem}"


STATES = ("enforced", "recorded", "diagnosed", "unsupported")
"""The states of a capability (section 1.3)."""


def first_cycle(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """The first cycle of a depth-first walk from each node in turn; empty where there is none."""
    finished: set[str] = set()
    for start in graph:
        path: dict[str, Iterator[str]] = {}
        if start not in finished:
            path[start] = iter(graph[start])
        while path:
            node, ways = next(reversed(path.items()))
            for way in ways:
                if way in path:
                    names = list(path)
                    return names[names.index(way) :]
                if way not in finished and way in graph:
                    path[way] = iter(graph[way])
                    break
            else:
                finished.add(node)
                del path[node]
    return []
