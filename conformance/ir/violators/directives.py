"""Implementations that read, store or apply schedule statements and annotations wrongly (sections 2 to 2.3, 5.3)."""

from unittest import mock

from tessera_reference.graph.reductions import MatMul
from tessera_reference.ir.types import Tensor

from .changes import after, answers, around, instead
from .language_syntax import refuses, rewrites
from .levels_equality import descending

STATEMENTS = [
    refuses("no_attributes", "LANG-02.3-43", "has no attribute block in a schedule statement",
        r"schedule\.\w+\([^)]*\) @\{"),
    rewrites("no_point", "LANG-02.3-43", "takes a schedule statement without its point", r"\bschedule (\w+)\(",
        r"schedule.\1("),
    rewrites("first_argument", "LANG-02.3-53", "takes a schedule call for its first argument",
        r"(= |return |\+ |\()schedule\.\w+\((\w)[^)]*\)(?: @\{[^}]*\})?", r"\1\2"),
]  # fmt: skip


def blocks_apart(usual, findings, call):
    settings = usual(findings, call)
    return settings[::-1] if settings and call.attributes else settings


METADATA = [
    instead("without_settings", "LANG-02.3-79", "drops the settings of schedule statements",
        "language.statements._emit",
        around(lambda usual, scope, directive, subjects, settings, span: usual(scope, directive, subjects, (), span))),
    instead("blocks_apart", "LANG-02.3-79", "tells settings in an attribute block from keywords",
        "language.statements.read_settings", around(blocks_apart)),
    instead("of_the_first", "LANG-02.3-79", "takes every schedule statement for one about the first name",
        "language.statements._emit", around(lambda usual, scope, directive, subjects, *rest:
            usual(scope, directive, (next(iter(scope.names.values())).value,), *rest))),
]  # fmt: skip


def reordered_where(condition):
    """Return an execution that adds the terms of products in descending order in some runs."""

    def execute(usual, self, *, source, level="strict", **request):
        product = MatMul.execute

        def turned(node, a, b, env):
            return product(node, *descending(a, b), env=env)

        with mock.patch.object(MatMul, "execute", turned if condition(source, level) else product):
            return usual(self, source=source, level=level, **request)

    return execute


REORDERED = [
    answers("ReorderedWhenScheduled", "LANG-02.3-79", "adds the terms of a scheduled product in another order",
        "language_execute", reordered_where(lambda source, level: "schedule." in source)),
    answers("OutermostWins", "LANG-02-07", "lets a fast function or run win over a numerics statement",
        "language_execute",
        reordered_where(lambda source, level: level == "fast" or "numerics_profile=fast" in source)),
]  # fmt: skip


def flattened(usual, value):
    """The items of lists in a list stand in that list."""
    found = usual(value)
    lists = [item if isinstance(item, tuple) else (item,) for item in found] if isinstance(found, tuple) else []
    return tuple(item for items in lists for item in items) if lists else found


ANNOTATIONS = [
    refuses("func_annotations", "LANG-02-06", "has no annotation before a kernel", r"@schedule\([^)]*\) kernel"),
    instead("settings_lost", "LANG-02-06", "drops the settings of schedule annotations",
        "language.modules.read_annotations", after(lambda _: ())),
    instead("flat_lists", "LANG-02.3-60", "takes a list of lists for one list", "language.statements.plain_value",
        around(flattened)),
    refuses("no_block_beside", "LANG-02-06", "has no attributes beside an annotation", r"@schedule\([^)]*\) @\{"),
    rewrites("any_profile", "LANG-02-07", "takes any profile in a numerics statement",
        r'numerics\.profile\((?!"(?:fast|deterministic|strict)")[^)]*\)', 'numerics.profile("fast")'),
    refuses("no_precision", "LANG-02-09", "has no precision on functions", r"\bprecision=[^{}]*\} \{", "types"),
]  # fmt: skip


def multiples(stated, actual):
    alike = len(stated) == len(actual)
    return alike and all(want > 0 and int(have) % want == 0 for want, have in zip(stated, actual, strict=True))


def without_blocks(usual, values, result):
    """Compare a stated layout by its name alone."""
    if values.get("layout") and isinstance(result, Tensor) and values["layout"].startswith(result.layout.name):
        values = {**values, "layout": result.layout.text}
    usual(values, result)


ATTRIBUTES = [
    instead("divisors", "LANG-05.3-01", "takes divisors for a shape", "ir.attributes._is_shape", multiples),
    instead("no_dtype", "LANG-05.3-02", "does not look at the attribute dtype",
        ("language.expressions.read_common", "language.modules.read_common"),
        after(lambda given: {key: value for key, value in given.items() if key != "dtype"})),
    instead("layouts_by_name", "LANG-05.3-03", "compares layouts without the sizes of their blocks",
        "ir.attributes._check_result", around(without_blocks)),
    refuses("no_precision_of_operations", "LANG-05.3-05", "has no precision on operations",
        r"\) @\{[^{}]*precision=[^{}]*\};"),
]  # fmt: skip
