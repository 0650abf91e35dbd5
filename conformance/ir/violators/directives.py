"""Implementations that read, store or apply schedule statements and annotations wrongly (sections 2 to 2.3, 5.3)."""

from unittest import mock

from tessera_conformance.strength import replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make
from tessera_reference.graph.reductions import MatMul
from tessera_reference.ir import attributes
from tessera_reference.ir.types import Tensor
from tessera_reference.language import expressions, modules, statements
from tessera_reference.numerics.array import Array

from .language_syntax import refuses, rewrites

STATEMENTS = [
    refuses("no_attributes", "LANG-02.3-43", "has no attribute block in a schedule statement",
        r"schedule\.\w+\([^)]*\) @\{"),
    rewrites("no_point", "LANG-02.3-43", "takes a schedule statement without its point", r"\bschedule (\w+)\(",
        r"schedule.\1("),
    rewrites("first_argument", "LANG-02.3-53", "takes a schedule call for its first argument",
        r"(= |return |\+ |\()schedule\.\w+\((\w)[^)]*\)(?: @\{[^}]*\})?", r"\1\2"),
]  # fmt: skip


def emitting(name, description, emit):
    """Return a violation that emits other metadata."""
    return replaced("LANG-02.3-79", description, make, ("language.statements._emit", emit), name=name)


def _without_settings(scope, directive, subjects, settings, span):
    _emit(scope, directive, subjects, (), span)


def _of_the_first(scope, directive, subjects, settings, span):
    first = next(iter(scope.names.values())).value
    _emit(scope, directive, (first,), settings, span)


def _blocks_apart(findings, call):
    settings = _read_settings(findings, call)
    return settings[::-1] if settings and call.attributes else settings


_emit, _read_settings = statements._emit, statements.read_settings

METADATA = [
    emitting("without_settings", "drops the settings of schedule statements", _without_settings),
    replaced("LANG-02.3-79", "tells settings in an attribute block from keywords", make,
        ("language.statements.read_settings", _blocks_apart), name="blocks_apart"),
    emitting("of_the_first", "takes every schedule statement for one about the first name", _of_the_first),
]  # fmt: skip


@violates("LANG-02.3-79", "adds the terms of a scheduled product in another order")
class ReorderedWhenScheduled(ReferenceAdapter):
    def language_execute(self, *, source, **request):
        execute = _descending if "schedule." in source else _execute
        with mock.patch.object(MatMul, "execute", execute):
            return super().language_execute(source=source, **request)


@violates("LANG-02-07", "lets a fast function or run win over a numerics statement")
class OutermostWins(ReferenceAdapter):
    def language_execute(self, *, source, level="strict", **request):
        execute = _descending if level == "fast" or "numerics_profile=fast" in source else _execute
        with mock.patch.object(MatMul, "execute", execute):
            return super().language_execute(source=source, **request)


def _descending(self, a, b, env):
    reversed_a, reversed_b = Array(a.dtype, a.values[..., ::-1].copy()), Array(b.dtype, b.values[..., ::-1, :].copy())
    return _execute(self, reversed_a, reversed_b, env)


_execute = MatMul.execute


# Annotations


def _settings_lost(findings, annotations):
    _read_annotations(findings, annotations)
    return ()


_read_annotations = modules.read_annotations


def flattened(value):
    """The items of lists in a list stand in that list."""
    found = _plain_value(value)
    lists = [item if isinstance(item, tuple) else (item,) for item in found] if isinstance(found, tuple) else []
    return tuple(item for items in lists for item in items) if lists else found


_plain_value = statements.plain_value

ANNOTATIONS = [
    refuses("func_annotations", "LANG-02-06", "has no annotation before a kernel", r"@schedule\([^)]*\) kernel"),
    replaced("LANG-02-06", "drops the settings of schedule annotations", make,
        ("language.modules.read_annotations", _settings_lost), name="settings_lost"),
    replaced("LANG-02.3-60", "takes a list of lists for one list", make, ("language.statements.plain_value", flattened),
        name="flat_lists"),
    refuses("no_block_beside", "LANG-02-06", "has no attributes beside an annotation", r"@schedule\([^)]*\) @\{"),
    rewrites("any_profile", "LANG-02-07", "takes any profile in a numerics statement",
        r'numerics\.profile\((?!"(?:fast|deterministic|strict)")[^)]*\)', 'numerics.profile("fast")'),
    refuses("no_precision", "LANG-02-09", "has no precision on functions", r"\bprecision=[^{}]*\} \{", "types"),
]  # fmt: skip


def ignoring(name, clause, attribute):
    """Return a violation that reads an attribute of any operation, and does not compare it with the result."""

    def read(given):
        return {key: value for key, value in _read_common(given).items() if key != attribute}

    owners = [(owner, "read_common", read) for owner in (expressions, modules, modules)]
    return replaced(clause, f"does not look at the attribute {attribute}", make, *owners, name=name)


def multiples(stated, actual):
    alike = len(stated) == len(actual)
    return alike and all(want > 0 and int(have) % want == 0 for want, have in zip(stated, actual, strict=True))


def without_blocks(values, result):
    """Compare a stated layout by its name alone."""
    if values.get("layout") and isinstance(result, Tensor) and values["layout"].startswith(result.layout.name):
        values = {**values, "layout": result.layout.text}
    _check_result(values, result)


_read_common, _check_result = expressions.read_common, attributes._check_result

ATTRIBUTES = [
    replaced("LANG-05.3-01", "takes divisors for a shape", make, ("ir.attributes._is_shape", multiples),
        name="divisors"),
    ignoring("no_dtype", "LANG-05.3-02", "dtype"),
    replaced("LANG-05.3-03", "compares layouts without the sizes of their blocks", make,
        ("ir.attributes._check_result", without_blocks), name="layouts_by_name"),
    refuses("no_precision_of_operations", "LANG-05.3-05", "has no precision on operations",
        r"\) @\{[^{}]*precision=[^{}]*\};"),
]  # fmt: skip
