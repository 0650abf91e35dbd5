"""Messages of the protocol, and observations of answers: returned, rejected, unsupported, or wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tessera_conformance.schemas import first_problem, has_definition
from tessera_conformance.tensors import MalformedTensor, from_wire

# Outcomes of a request: the implementation returned, rejected, does not support it, or failed.


FaultKind = Literal["crash", "hang", "protocol_error"]


@dataclass(frozen=True)
class Returned:
    """The call succeeded; tensors inside `value` are `Tensor` objects."""

    value: Any


@dataclass(frozen=True)
class Diagnostic:
    """One message of a front end or verifier: the fault, its place, and the remedy."""

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

    `code` is a status name such as TESS_ERR_INVALID_VALUE, or the category of the first diagnostic; `phase` is the
    phase of the refusal: lex, parse, verify, lower, execute or call.
    """

    code: str
    phase: str
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Unsupported:
    """The implementation declares that it lacks this feature."""

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
    """Return an observation in one line for people."""
    match observation:
        case Returned():
            return "returned a result"
        case Rejected(code, phase, message, _):
            return f"rejected in phase {phase} with {code}: {message}"
        case Unsupported(feature):
            return f"answered that it does not support {feature}"
        case Fault(kind, detail, _, _):
            return f"{kind.replace('_', ' ')}: {detail}"


# The protocol between harness and implementation, version 1: method names, Hello, and reading an outcome.
#
# `docs/protocol.md` describes it for people, `schemas/protocol/` for machines; this module turns a decoded outcome into
# an observation and refuses everything that the schemas refuse.


PROTOCOL = 1
MOST_ULPS = 4.0
"""The most units in the last place of an error of an elementary function; the default where none is declared."""
METHOD_NOT_FOUND = -32601
MALFORMED_ANSWER = -32001
"""The implementation behind an adapter returned something that makes no answer."""


class ProtocolViolation(Exception):
    """The implementation sent something that the protocol does not allow."""


@dataclass(frozen=True)
class Hello:
    """The Hello of an implementation: its name, its claims and its declared arithmetic."""

    name: str
    version: str
    documents: tuple[str, ...] = ()
    capabilities: Mapping[str, str] = field(default_factory=dict)
    level: str = "strict"
    message: Mapping[str, Any] = field(default_factory=dict)

    def has(self, feature: str) -> bool:
        """True if the implementation claims a feature that is not core; one left out is unsupported."""
        return self.capabilities.get(feature, "unsupported") != "unsupported"


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic that a Hello declares: trees by operation, accuracies, subnormals."""

    trees: Mapping[str, str] = field(default_factory=dict)
    accuracies: Mapping[str, float] = field(default_factory=dict)
    flushes: bool = False

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Arithmetic:
        """Read the member `arithmetic` of a Hello."""
        flushes = message.get("subnormals", "kept") == "flushed"
        return cls(message.get("trees", {}), message.get("functions", {}), flushes)

    def accuracy(self, function: str) -> float:
        """Return the largest error of an elementary function in units in the last place (AMB-LANG-136)."""
        return self.accuracies.get(function, MOST_ULPS)

    @property
    def has_loose_functions(self) -> bool:
        """True if an elementary function declares a larger error than the decision of AMB-LANG-136."""
        return any(ulps > MOST_ULPS for ulps in self.accuracies.values())


def read_hello(message: Any) -> Hello:
    """Return the Hello of `session.open`.

    Raises `ProtocolViolation`: a field is missing or wrong, or the protocol ranges do not overlap.
    """
    problem = first_problem("tessera:protocol/session", "open.result", message)
    if problem is not None:
        raise ProtocolViolation(f"Hello is malformed: {problem}")
    lowest, highest = message["protocol"]["minimum"], message["protocol"]["maximum"]
    if not lowest <= PROTOCOL <= highest:
        raise ProtocolViolation(f"the implementation supports protocol {lowest} to {highest}, the harness {PROTOCOL}")
    return Hello(
        name=message["implementation"]["name"],
        version=message["implementation"]["version"],
        documents=tuple(message["documents"]),
        capabilities=dict(message.get("capabilities", {})),
        level=message.get("arithmetic", {}).get("level", "strict"),
        message=message,
    )


def read_outcome(method: str, outcome: Any) -> Observation:
    """Return the observation in a method's outcome; tensor messages become `Tensor` objects.

    Raises `ProtocolViolation`: the outcome or the returned value has the wrong form.
    """
    try:
        outcome = from_wire(outcome)
    except MalformedTensor as error:
        raise ProtocolViolation(f"{method}: malformed tensor: {error}") from None
    if not (isinstance(outcome, dict) and outcome.keys() == {"returned"}):  # the schema then requires no more
        _require_valid(method, "tessera:protocol/messages", "outcome", outcome)
    if "rejected" in outcome:
        rejected = outcome["rejected"]
        diagnostics = map(read_diagnostic, rejected.get("diagnostics", ()))
        return Rejected(rejected["code"], rejected["phase"], rejected["message"], tuple(diagnostics))
    if "unsupported" in outcome:
        return Unsupported(outcome["unsupported"]["feature"])
    area, _, name = method.partition(".")
    if has_definition(f"tessera:protocol/{area}", f"{name}.result"):
        _require_valid(method, f"tessera:protocol/{area}", f"{name}.result", outcome["returned"])
    return Returned(outcome["returned"])


def write_outcome(observation: Returned | Rejected | Unsupported) -> dict[str, Any]:
    """Return the outcome message of an observation, with `Tensor` objects."""
    match observation:
        case Returned(value):
            return {"returned": value}
        case Rejected(code, phase, message, diagnostics):
            body = {"code": code, "phase": phase, "message": message}
            return {"rejected": body | {"diagnostics": [diagnostic_message(entry) for entry in diagnostics]}}
        case Unsupported(feature):
            return {"unsupported": {"feature": feature}}


def read_diagnostic(message: Mapping[str, Any]) -> Diagnostic:
    """Return the diagnostic in a message of the schema's form."""
    return Diagnostic(**{**message, "operands": tuple(message.get("operands", ()))})


def diagnostic_message(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return the message form of a diagnostic, without absent fields."""
    fields = {key: value for key, value in vars(diagnostic).items() if value is not None}
    return fields | {"operands": list(diagnostic.operands)}


def _require_valid(method: str, schema: str, definition: str, value: Any) -> None:
    problem = first_problem(schema, definition, value, decoded=True)
    if problem is not None:
        raise ProtocolViolation(f"{method}: {problem}")
