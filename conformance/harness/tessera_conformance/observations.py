"""Outcomes of a request: the implementation returned, rejected, does not support it, or went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

FaultKind = Literal["crash", "hang", "protocol_error"]


@dataclass(frozen=True)
class Returned:
    """The call succeeded; tensors inside `value` are `Tensor` objects."""

    value: Any


@dataclass(frozen=True)
class Diagnostic:
    """One message of a front end or verifier: what is wrong, where, and what to do."""

    category: str
    message: str
    severity: str = "error"
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    operands: tuple[str, ...] = ()
    requirement: str | None = None
    remedy: str | None = None
    clause: str | None = None


@dataclass(frozen=True)
class Rejected:
    """The implementation refused the request, as a specification may demand.

    `code` is a status name such as TESS_ERR_INVALID_VALUE, or the category of the first diagnostic;
    `phase` says when: lex, parse, verify, lower, execute or call.
    """

    code: str
    phase: str
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Unsupported:
    """The implementation says that it does not have this feature."""

    feature: str


@dataclass(frozen=True)
class Fault:
    """The implementation crashed, hung or broke the protocol; `reproducible` is known after a crash was replayed."""

    kind: FaultKind
    detail: str
    stderr: str = ""
    reproducible: bool | None = field(default=None)


Observation = Returned | Rejected | Unsupported | Fault


def describe(observation: Observation) -> str:
    """One line for people."""
    match observation:
        case Returned():
            return "returned a result"
        case Rejected(code, phase, message, _):
            return f"rejected in phase {phase} with {code}: {message}"
        case Unsupported(feature):
            return f"answered that it does not support {feature}"
        case Fault(kind, detail, _, _):
            return f"{kind.replace('_', ' ')}: {detail}"
