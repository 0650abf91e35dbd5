"""Status codes, the other enumerations of `tessera.h`, versions and address spaces.

Runtime spec 4, 7, 9, 16, Appendix A.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from importlib.resources import files
from typing import TypeAlias

# Status codes (runtime spec 4.1, 7, Appendix A), and failures of calls.


class Status(IntEnum):
    """tessStatus_t: the codes in the order in which the specification declares them (RT-04.1-03 to -14)."""

    TESS_OK = 0
    TESS_ERR_INVALID_VALUE = 1
    TESS_ERR_OUT_OF_MEMORY = 2
    TESS_ERR_NOT_INITIALIZED = 3
    TESS_ERR_LAUNCH_FAILED = 4
    TESS_ERR_ARCH_MISMATCH = 5
    TESS_ERR_UNSUPPORTED = 6
    TESS_ERR_COLLECTIVE_MISMATCH = 7
    TESS_ERR_DETERMINISM_VIOLATION = 8
    TESS_ERR_TIMEOUT = 9
    TESS_ERR_ABI_VERSION_MISMATCH = 10
    TESS_ERR_CACHE_CORRUPT = 11


class Failure(Exception):
    """A call that reports `status`: the function, what it received, and what it takes."""

    def __init__(self, status: Status, function: str, given: str, allowed: str) -> None:
        super().__init__(status, function, given, allowed)
        self.status = status
        self.function = function
        self.given = given
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.function}: {self.given}; expected {self.allowed}"


def invalid(function: str, actual: str, allowed: str) -> Failure:
    """Return a failure with TESS_ERR_INVALID_VALUE."""
    return Failure(Status.TESS_ERR_INVALID_VALUE, function, actual, allowed)


def unsupported(function: str, actual: str, allowed: str) -> Failure:
    """Return a failure with TESS_ERR_UNSUPPORTED."""
    return Failure(Status.TESS_ERR_UNSUPPORTED, function, actual, allowed)


def mismatch(function: str, actual: str, allowed: str) -> Failure:
    """Return a failure with TESS_ERR_COLLECTIVE_MISMATCH."""
    return Failure(Status.TESS_ERR_COLLECTIVE_MISMATCH, function, actual, allowed)


def violation(function: str, actual: str, allowed: str) -> Failure:
    """Return a failure with TESS_ERR_DETERMINISM_VIOLATION."""
    return Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, function, actual, allowed)


def within(failure: Failure, function: str) -> Failure:
    """Return a failure of an internal part, reported as one of the API function that met it."""
    if failure.function.startswith("tess"):
        return failure
    return Failure(failure.status, function, failure.given, failure.allowed)


# The enumerations and flags of the C header besides the status codes (runtime spec 4.4, 4.6, 6).


class MemKind(IntEnum):
    """tessMemKind (RT-04.4-01, -02)."""

    TESS_MEM_GLOBAL = 0
    TESS_MEM_PINNED_HOST = 1


class CopyKind(IntEnum):
    """tessCopyKind (RT-04.4-07 to -09)."""

    TESS_COPY_H2D = 0
    TESS_COPY_D2H = 1
    TESS_COPY_D2D = 2


class CollOp(IntEnum):
    """tessCollOp (RT-04.6-01 to -03)."""

    TESS_COLL_SUM = 0
    TESS_COLL_MAX = 1
    TESS_COLL_MIN = 2


class LaunchFlag(IntFlag):
    """The bits of tessLaunchConfig.flags (RT-06-07, -08, -10, -12, -14)."""

    TESS_LAUNCH_DEFAULT = 0
    TESS_LAUNCH_DETERMINISTIC = 1 << 0
    TESS_LAUNCH_CAPTURE = 1 << 1
    TESS_LAUNCH_PERSISTENT = 1 << 2
    TESS_LAUNCH_LOW_LATENCY = 1 << 3


def constants() -> dict[str, int]:
    """Return the value of every enumerator and flag of the header, by name."""
    every = (Status, MemKind, CopyKind, CollOp, LaunchFlag)
    return {name: int(value) for enumeration in every for name, value in enumeration.__members__.items()}


# The versions of the runtime and of its binary interface (runtime spec 4.1, 16; AMB-RT-32).


AbiVersion: TypeAlias = tuple[int, int]
"""The pair (major, minor)."""

ABI_VERSION: AbiVersion = (1, 0)
"""The version that modules are written for and the runtime offers (RT-16-01)."""

RUNTIME_VERSION = (*ABI_VERSION, 0)
"""The answer of tessGetVersion: the ABI version and a patch number."""


def is_compatible(module: AbiVersion, runtime: AbiVersion = ABI_VERSION) -> bool:
    """True if a runtime loads a module: of its own major, and of no newer minor than its own (RT-16-02, RT-16-03)."""
    return module[0] == runtime[0] and module[1] <= runtime[1]


# The address spaces (runtime spec 9, RT-09-01 to -05, RT-09-09).


@dataclass(frozen=True)
class AddressSpace:
    """A row of the table: the number of a space, here and in each backend."""

    number: int
    name: str
    purpose: str
    llvm: int
    nvvm: int
    rocdl: int


ADDRESS_SPACES = (
    AddressSpace(0, "generic", "Generic (ptr casts)", llvm=0, nvvm=0, rocdl=0),
    AddressSpace(1, "global", "Global (HBM)", llvm=1, nvvm=1, rocdl=1),
    AddressSpace(3, "shared", "Shared (SMEM/LDS)", llvm=3, nvvm=3, rocdl=3),
    AddressSpace(4, "constant", "Constant", llvm=4, nvvm=4, rocdl=4),
    AddressSpace(5, "local", "Local (stack spills)", llvm=5, nvvm=5, rocdl=5),
)
"""The address spaces, in the order of the specification's table."""

# The C headers `tessera.h` and `tessera_ext.h`, which are beside this file.


def header() -> str:
    """Return the text of the header of the specification (runtime spec 4)."""
    return _text("tessera.h")


def extension_header() -> str:
    """Return the text of the header of the extensions."""
    return _text("tessera_ext.h")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
