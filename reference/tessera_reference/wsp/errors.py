"""What can be wrong with a program, with a package and with a run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ArgumentRefused",
    "DeviceNeeded",
    "PackageRefused",
    "ProgramRefused",
    "RunError",
    "UnsupportedDirective",
    "WspFailure",
]


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
    WORKER_OUT_OF_RANGE or TIME_OVERFLOW (AMB-WSP-58).
    """

    code: str
    problem: str
    process: str = ""
    statement: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.problem}"
