"""Schedule and dist statements, `@schedule(...)`: metadata of the IR (sections 2.3, 6; AMB-LANG-13, -16, -110)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.directive import Directive
from ..graph.layouts import LayoutCast
from ..ir.diagnostics import Span
from ..ir.module import Value
from ..ir.operation import AttributeValue, Refusal, require
from ..ir.spelling import did_you_mean
from ..ir.types import Mesh
from . import syntax as s
from .calls import prepare
from .expressions import Expressions
from .scope import Findings, Scope
from .values import attribute_value, plain_value

SETTINGS: dict[str, dict[str, Any]] = {
    "tile": {"m": int, "n": int, "k": int, "pad": int | tuple[int, ...]},
    "fuse": {},
    "pipeline": {"double_buffer": bool, "depth": int, "stages": tuple[str, ...]},
    "prefetch": {"scope": str, "align": int},
    "layout_cast": {"to": str},
}
"""The settings of each schedule directive, and the kinds of their values (section 6.1)."""

Settings = tuple[tuple[str, AttributeValue], ...]


def lower_schedule(expressions: Expressions, call: s.Call) -> None:
    """`schedule.tile(C, m=128);` as a directive; `schedule.layout_cast(A, to=...)` also gives A its new layout."""
    settings = read_settings(expressions.scope.findings, call)
    values = [expressions.lower(argument) for argument in call.arguments]
    subjects = tuple(value for value in values if value is not None)
    if settings is None or len(subjects) != len(values):
        return
    if not subjects:
        message = f"{'.'.join(call.callee)} names nothing to schedule"
        expressions.report("schedule", message, call.span, "the values that it concerns", "LANG-02.3-43")
        return
    _emit(expressions.scope, ".".join(call.callee), subjects, settings, call.span)
    if call.callee[1:] == ("layout_cast",):
        _cast_layout(expressions, call, subjects[0], dict(settings))


def _cast_layout(expressions: Expressions, call: s.Call, subject: Value, settings: dict[str, AttributeValue]) -> None:
    """From here on the name that a layout cast is applied to stands for the cast value (LANG-03.3-02)."""
    name = call.arguments[0]
    if not isinstance(name, s.Name) or "to" not in settings:
        message = "schedule.layout_cast takes a name and the layout that it is to have"
        expressions.report("schedule", message, call.span, 'schedule.layout_cast(X, to="row_major")', "LANG-06.1-05")
        return
    made: Any = LayoutCast
    results = expressions.scope.emit(made(x=subject.type, to=settings["to"]), (subject,), call.span, name.text)
    if expressions.scope.find(name.text) is not None:
        expressions.scope.assign(name.text, results[0] if results else None)


def lower_dist_statement(expressions: Expressions, call: s.Call, meshes: Mapping[str, Mesh]) -> None:
    """A dist call whose value is not used: metadata only, checked like any other call, with a warning."""
    ready = prepare(expressions, call, meshes)
    if ready is None:
        return
    try:
        ready.operation.results()
    except Refusal as refusal:
        expressions.scope.findings.refused(refusal, call.span, ready.operation)
        return
    name = ".".join(call.callee)
    settings = tuple((key, value) for key, value in ready.operation.attributes.items())
    _emit(expressions.scope, name, ready.operands, settings, call.span)
    expressions.scope.findings.report(
        "distributed",
        f"{name} as a statement communicates nothing",
        call.span,
        requirement="a use of its value",
        clause="AMB-LANG-119",
        remedy=f"write X = {name}(...);",
        severity="warning",
    )


def read_settings(findings: Findings, call: s.Call) -> Settings | None:
    """The settings of a schedule directive, each of its kind; None after a reported error."""
    try:
        require(
            len(call.callee) == 2 and call.callee[1] in SETTINGS,
            "schedule",
            f"unknown directive {'.'.join(call.callee)}",
            f"schedule.{', schedule.'.join(SETTINGS)}",
            "LANG-02.3-43",
            did_you_mean(".".join(call.callee[1:]), SETTINGS, "schedule.{}"),
        )
        return _settings(call.named, SETTINGS[call.callee[1]], ".".join(call.callee))
    except Refusal as refusal:
        findings.refused(refusal, call.span)
        return None


def _settings(given: Sequence[s.Keyword | s.Attribute], known: dict[str, Any], name: str) -> Settings:
    values: dict[str, AttributeValue] = {}
    for each in given:
        require(
            each.name in known,
            "schedule",
            f"{name} has no setting {each.name!r}",
            f"one of {', '.join(known)}" if known else "no settings",
            "LANG-02.3-43",
            did_you_mean(each.name, known),
        )
        value = attribute_value(each.value, known[each.name])
        require(
            values.setdefault(each.name, value) == value,
            "types",
            f"{name}: {each.name} is given twice and differs",
            "one value of a setting",
            "LANG-02.3-32",
        )
    return tuple(values.items())


def read_annotations(findings: Findings, annotations: Sequence[s.Annotation]) -> Settings:
    """`@schedule(tile=128, ...)` as attributes of its function; positional arguments mean nothing there."""
    values: dict[str, AttributeValue] = {}
    for annotation in annotations:
        for argument in annotation.arguments:
            findings.report(
                "schedule",
                "an annotation names its settings",
                argument.span,
                requirement="@schedule(name=value)",
                clause="LANG-02-06",
            )
        for keyword in annotation.keywords:
            try:
                value = plain_value(keyword.value)
            except Refusal as refusal:
                findings.refused(refusal, keyword.span)
                continue
            if values.setdefault(keyword.name, value) != value:
                findings.report(
                    "schedule",
                    f"@schedule: {keyword.name} is given twice and differs",
                    keyword.span,
                    requirement="one value of a setting",
                    clause="LANG-02-06",
                )
    return tuple(values.items())


def _emit(scope: Scope, directive: str, subjects: tuple[Value, ...], settings: Settings, span: Span) -> None:
    made: Any = Directive
    types = tuple(value.type for value in subjects)
    scope.emit(made(subjects=types, directive=directive, settings=settings), subjects, span)
