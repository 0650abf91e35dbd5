"""What a function's body is lowered into: names, dimensions, instructions, and the findings so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ir.diagnostics import Category, Diagnostic, Location, Severity, Span, UnsupportedConstruct
from ..ir.module import Instruction, Value
from ..ir.operation import NotCarriedOut, Operation, Refusal
from ..ir.types import Dim, Scalar, Tensor, Type
from .accumulation import refuse_narrow_accumulation


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
        *,
        operands: tuple[str, ...] = (),
        requirement: str = "",
        clause: str = "",
        remedy: str = "",
        severity: Severity = "error",
    ) -> None:
        """Keep a finding; the analysis goes on."""
        self.diagnostics.append(
            Diagnostic(
                category, "verify", message, span, self.filename, operands, requirement, clause, remedy, severity
            )
        )

    def refused(self, refusal: Refusal, span: Span, operation: Operation | None = None) -> None:
        """Keep what an operation or an annotation refused."""
        subject = f"{operation.short_name}: " if operation else ""
        operands = tuple(f"{name} is {type_}" for name, type_ in operation.operand_types) if operation else ()
        self.report(
            refusal.category,
            subject + refusal.message,
            span,
            operands=operands,
            requirement=refusal.requirement,
            clause=refusal.clause,
            remedy=refusal.remedy,
        )

    def text(self, span: Span) -> str:
        """The source text of a span, on one line."""
        lines = self.source.split("\n")[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return " ".join(" ".join(lines).split())


@dataclass(frozen=True)
class Binding:
    """What a name stands for. No value: nothing assigned yet, or, when broken, something already reported."""

    span: Span
    value: Value | None
    broken: bool = False


@dataclass
class Scope:
    """The body under construction."""

    findings: Findings
    profile: str | None
    names: dict[str, Binding] = field(default_factory=dict)
    dims: dict[str, Dim] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    temporaries: int = 0

    def declare(self, name: str, span: Span, value: Value | None, *, broken: bool = False) -> None:
        """Bind a name of this scope, once (AMB-LANG-86)."""
        if name in self.names:
            first = self.names[name].span
            self.findings.report(
                "types",
                f"{name!r} is declared twice; first in line {first.line}",
                span,
                requirement="one declaration of a name in a scope",
                clause="AMB-LANG-86",
                remedy="choose another name",
            )
            return
        self.names[name] = Binding(span, value, broken)

    def emit(
        self,
        operation: Operation,
        operands: tuple[Value, ...],
        span: Span,
        hint: str = "",
        texts: Mapping[str, Span] | None = None,
    ) -> tuple[Value, ...] | None:
        """Append an operation; nothing when it refuses its operands, whose source texts a remedy may quote."""
        location = Location(self.findings.filename, span)
        try:
            refuse_narrow_accumulation(operation, self.profile)
            types = operation.results()
        except NotCarriedOut as missing:
            raise UnsupportedConstruct(missing.feature, location) from missing
        except Refusal as refusal:
            for name, place in (texts or {}).items():
                refusal.remedy = refusal.remedy.replace(f"{{{name}}}", self.findings.text(place))
            self.findings.refused(refusal, span, operation)
            return None
        results = tuple(Value(self.fresh(hint), type_) for type_ in types)
        self.instructions.append(Instruction(operation, operands, results, location))
        return results

    def fresh(self, hint: str) -> str:
        """The name of a value: the variable's, else the next number."""
        if hint and hint not in self.names:
            return hint
        self.temporaries += 1
        return str(self.temporaries - 1)

    def fits(self, wanted: Type, given: Type, span: Span, subject: str) -> bool:
        """Whether a value may stand where `wanted` is annotated; reports when not.

        `?` takes any dimension; a name seen for the first time takes this one, and from then on equal ones only.
        """
        problem = self._mismatch(wanted, given)
        if problem:
            category, clause = problem
            self.findings.report(
                category,
                f"{subject}: expected {wanted}, found {given}",
                span,
                operands=(f"this is {given}",),
                requirement=f"a value of type {wanted}",
                clause=clause,
                remedy=_cure(category, wanted, given),
            )
        return not problem

    def _mismatch(self, wanted: Type, given: Type) -> tuple[Category, str] | None:
        if wanted.dtype != given.dtype or isinstance(wanted, Scalar) != isinstance(given, Scalar):
            return "types", "LANG-03.1-05"
        if len(wanted.shape) != len(given.shape):
            return "shapes", "LANG-03.2-03"
        for want, have in zip(wanted.shape, given.shape, strict=True):
            known = self.dims.setdefault(want, have) if isinstance(want, str) else want
            if want != "?" and known != have:
                return "shapes", "LANG-03.2-03"
        if isinstance(wanted, Tensor) and isinstance(given, Tensor) and wanted.layout != given.layout:
            return "layouts", "LANG-11-05"
        return None


def _cure(category: Category, wanted: Type, given: Type) -> str:
    if category == "types" and isinstance(wanted, Tensor) == isinstance(given, Tensor):
        return f"convert it with op.cast(..., dtype={wanted.dtype})"
    return "cast the layout at Schedule IR: schedule.layout_cast" if category == "layouts" else ""
