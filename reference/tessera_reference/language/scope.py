"""Scopes: the names, dimensions and instructions of a function's body, with the findings so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir.diagnostics import Category, Diagnostic, Location, Severity, Span, UnsupportedConstruct
from ..ir.operation import (
    AttributeValue,
    Block,
    Exit,
    Instruction,
    Operation,
    Refusal,
    Unimplemented,
    diagnostic_of,
    fields_of,
    refused_by,
)
from ..ir.types import Dim, Scalar, Tensor, Type, Value, marked
from ..ir.verifier import refuse_narrow_accumulation


@dataclass
class Findings:
    """Diagnostics of one program, collected over all its functions."""

    source: str
    filename: str
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def report(
        self,
        category: Category,
        message: str,
        span: Span,
        requirement: str = "",
        clause: str = "",
        remedy: str = "",
        *,
        operands: tuple[str, ...] = (),
        severity: Severity = "error",
    ) -> None:
        """Keep a finding, and continue the analysis."""
        rest = operands, requirement, clause, remedy, severity
        self.diagnostics.append(Diagnostic(category, "verify", message, span, self.filename, *rest))

    def warn(
        self, category: Category, message: str, span: Span, requirement: str, clause: str, remedy: str = ""
    ) -> None:
        """Keep a warning."""
        self.report(category, message, span, requirement, clause, remedy, severity="warning")

    def refused(self, refusal: Refusal, span: Span, operation: Operation | None = None) -> None:
        """Keep a refusal of an operation or an annotation."""
        location = Location(self.filename, span)
        diagnostic = refused_by(operation, refusal, location) if operation else diagnostic_of(refusal, location)
        self.diagnostics.append(diagnostic)

    @contextmanager
    def refusals(self, span: Span, operation: Operation | None = None) -> Iterator[None]:
        """Keep a refusal that ends the statements within."""
        try:
            yield
        except Refusal as refusal:
            self.refused(refusal, span, operation)

    @property
    def errors(self) -> int:
        """The number of errors so far."""
        return sum(diagnostic.severity == "error" for diagnostic in self.diagnostics)

    def text(self, span: Span) -> str:
        """Return the source text of a span, on one line."""
        lines = self.source.split("\n")[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return " ".join(" ".join(lines).split())


@dataclass(frozen=True)
class Binding:
    """The value of a name, and the type it was declared with.

    Without a value, nothing is assigned yet or, if broken, an error about it was already reported.
    """

    span: Span
    value: Value | None
    declared: Type | None = None
    broken: bool = False
    partly: bool = False
    """True if only some of the paths that lead here assign it."""


@dataclass
class Frame:
    """The state that all scopes of one function share."""

    findings: Findings
    dims: dict[str, Dim] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    temporaries: int = 0

    def fresh(self, hint: str) -> str:
        """Return a unique name of a value in the function: the variable's, else the next number."""
        name = hint
        while not name or name in self.used:
            name = f"{hint}_{self.temporaries}" if hint else str(self.temporaries)
            self.temporaries += 1
        self.used.add(name)
        return name


@dataclass
class Scope:
    """A block under construction: its names, its instructions, and its end."""

    frame: Frame
    profile: str | None
    parent: Scope | None = None
    names: dict[str, Binding] = field(default_factory=dict)
    rebound: dict[str, Binding] = field(default_factory=dict)
    """Names of outer blocks with the bindings that this one has assigned them (AMB-LANG-52)."""
    instructions: list[Instruction] = field(default_factory=list)
    exit: Exit | None = None
    """The block's end, set once control cannot reach the end of its statements."""
    results: tuple[Value, ...] = ()
    reached: int | None = None

    @property
    def findings(self) -> Findings:
        """The findings of the program."""
        return self.frame.findings

    def inner(self) -> Scope:
        """Return a block within this one."""
        return Scope(self.frame, self.profile, self)

    def leave(self, exit: Exit, results: tuple[Value, ...] = ()) -> None:
        """End control here; following statements of the block are checked and dropped."""
        if self.exit is None:
            self.exit, self.results, self.reached = exit, results, len(self.instructions)

    def block(self, arguments: tuple[Value, ...], yields: tuple[Value, ...], exit: Exit = "yield") -> Block:
        """Return the finished block; `yields` and `exit` count where its end is reached."""
        if self.exit is not None:
            return Block(arguments, tuple(self.instructions[: self.reached]), self.results, self.exit)
        return Block(arguments, tuple(self.instructions), yields, exit)

    # Names

    def find(self, name: str) -> Binding | None:
        """Return the binding of a name here."""
        scope: Scope | None = self
        while scope is not None:
            binding = scope.names.get(name) or scope.rebound.get(name)
            if binding is not None:
                return binding
            scope = scope.parent
        return None

    def outside(self, name: str) -> Binding | None:
        """Return the binding of an outer name at this block's end, even if the block declares it anew."""
        binding = self.rebound.get(name)
        return binding if binding is not None or self.parent is None else self.parent.find(name)

    def parameter(self, name: str) -> Binding | None:
        """Return the binding of a parameter of the function, even if a block hides its name."""
        if self.parent is None:
            return self.names.get(name)
        return self.rebound.get(name) or self.parent.parameter(name)

    @property
    def outermost(self) -> Scope:
        """The body of the function."""
        return self if self.parent is None else self.parent.outermost

    def give_up(self, name: str, span: Span) -> None:
        """Report an unknown name only once."""
        self.outermost.names.setdefault(name, Binding(span, None, broken=True))

    def visible(self) -> list[str]:
        """Return every name that can be used here."""
        return [*self.names, *(self.parent.visible() if self.parent else [])]

    def declare(
        self, name: str, span: Span, value: Value | None, declared: Type | None = None, *, broken: bool = False
    ) -> None:
        """Bind a name in this block, once; it hides an outer name of the same spelling (AMB-LANG-86)."""
        if name in self.names:
            first = self.names[name].span
            message = f"{name!r} is declared twice; first in line {first.line}"
            requirement = "one declaration of a name in a scope"
            self.findings.report("types", message, span, requirement, "AMB-LANG-86", "choose another name")
            self.names[name] = replace(self.names[name], value=None, declared=None, broken=True)
            return
        self.names[name] = Binding(span, value, declared, broken)

    def assign(self, name: str, value: Value | None, *, partly: bool = False) -> None:
        """Assign a value to a declared name; None after a reported error, or if `partly` only some paths assign one."""
        former = self.find(name)
        assert former is not None, f"{name} is assigned and was never declared"
        binding = replace(former, value=value, broken=value is None and not partly, partly=partly)
        (self.names if name in self.names else self.rebound)[name] = binding

    # Instructions

    def emit(
        self,
        operation: Operation,
        operands: tuple[Value, ...],
        span: Span,
        hint: str = "",
        texts: Mapping[str, Span] | None = None,
        regions: tuple[Block, ...] = (),
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> tuple[Value, ...] | None:
        """Append an operation, and return its results; None if it refuses its operands. A remedy may quote `texts`."""
        location = Location(self.findings.filename, span)
        try:
            refuse_narrow_accumulation(operation, str((attributes or {}).get("numerics_profile", "")) or self.profile)
            types = operation.results()
        except Unimplemented as missing:
            raise UnsupportedConstruct(missing.feature, location) from missing
        except Refusal as refusal:
            for name, place in (texts or {}).items():
                refusal.remedy = refusal.remedy.replace(f"{{{name}}}", self.findings.text(place))
            self.findings.refused(refusal, span, operation)
            return None
        results = tuple(self.value(hint, type_) for type_ in types)
        if self.profile is not None and self.parent is not None and self.profile != self.outermost.profile:
            attributes = {"numerics_profile": self.profile, **(attributes or {})}
        self.instructions.append(Instruction(operation, operands, results, location, regions, attributes or {}))
        return results

    def build(
        self,
        kind: type[Operation],
        operands: tuple[Value, ...],
        span: Span,
        hint: str = "",
        *,
        texts: Mapping[str, Span] | None = None,
        regions: tuple[Block, ...] = (),
        attributes: Mapping[str, AttributeValue] | None = None,
        **own: Any,
    ) -> tuple[Value, ...] | None:
        """Append an operation of a kind, with its own attributes and hidden fields by name, as `emit` does."""
        operation = kind(**fields_of(kind, tuple([operand.type for operand in operands])), **own)
        return self.emit(operation, operands, span, hint, texts, regions, attributes)

    def value(self, hint: str, type_: Type) -> Value:
        """Return a new value; each unknown dimension becomes one of its own (AMB-LANG-122)."""
        name = self.frame.fresh(hint)
        return Value(name, marked(type_, name))

    # Types

    def fits(self, expected: Type, actual: Type, span: Span, subject: str) -> bool:
        """Return True if a value fits the annotation `expected`; report it if not.

        `?` takes any dimension; a new name takes this one, and from then on only equal ones.
        """
        problem = _mismatch(expected, actual, self.frame.dims)
        if problem:
            category, clause = problem
            message, requirement = f"{subject}: expected {expected}, found {actual}", f"a value of type {expected}"
            remedy, operands = _cure(category, expected, actual), (f"this is {actual}",)
            self.findings.report(category, message, span, requirement, clause, remedy, operands=operands)
        return not problem


def _mismatch(expected: Type, actual: Type, dims: dict[str, Dim]) -> tuple[Category, str] | None:
    """Return the category and clause of a mismatch; bind names of dimensions seen for the first time."""
    if not isinstance(expected, Tensor | Scalar) or not isinstance(actual, Tensor | Scalar):
        return None if expected == actual else ("types", "LANG-03.1-05")
    if expected.dtype != actual.dtype or isinstance(expected, Scalar) != isinstance(actual, Scalar):
        return "types", "LANG-03.1-05"
    if len(expected.shape) != len(actual.shape):
        return "shapes", "LANG-03.2-03"
    for want, have in zip(expected.shape, actual.shape, strict=True):
        bound = dims.setdefault(want, have) if isinstance(want, str) else want
        if want != "?" and bound != have:
            return "shapes", "LANG-03.2-03"
    if isinstance(expected, Tensor) and isinstance(actual, Tensor) and expected.layout != actual.layout:
        return "layouts", "LANG-11-05"
    return None


def _cure(category: Category, expected: Type, actual: Type) -> str:
    if category == "types" and isinstance(expected, Tensor) == isinstance(actual, Tensor):
        return f"convert it with op.cast(..., dtype={expected.dtype})" if isinstance(expected, Tensor | Scalar) else ""
    return "cast the layout: op.layout_cast(..., to=...)" if category == "layouts" else ""
