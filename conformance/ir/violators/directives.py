"""Implementations that read, store or apply schedule statements and annotations wrongly (sections 2 to 2.3, 5.3)."""

from unittest import mock

from tessera_reference.graph.reductions import MatMul
from tessera_reference.ir.types import Tensor

from .changes import after, instead, wrapped
from .language_syntax import refuses, rewrites
from .levels_equality import descending


def blocks_apart(usual, findings, call):
    settings = usual(findings, call)
    return settings[::-1] if settings and call.attributes else settings


def reordered_where(condition):
    """Return an execution that adds the terms of products in descending order in some runs."""

    def execute(usual, self, *, source, level="strict", **request):
        product = MatMul.execute

        def turned(node, a, b, env):
            return product(node, *descending(a, b), env=env)

        with mock.patch.object(MatMul, "execute", turned if condition(source, level) else product):
            return usual(self, source=source, level=level, **request)

    return execute


def flattened(usual, value):
    """The items of lists in a list stand in that list."""
    found = usual(value)
    lists = [item if isinstance(item, tuple) else (item,) for item in found] if isinstance(found, tuple) else []
    return tuple(item for items in lists for item in items) if lists else found


def multiples(stated, actual):
    alike = len(stated) == len(actual)
    return alike and all(want > 0 and int(have) % want == 0 for want, have in zip(stated, actual, strict=True))


def without_blocks(usual, values, result):
    """Compare a stated layout by its name alone."""
    if values.get("layout") and isinstance(result, Tensor) and values["layout"].startswith(result.layout.name):
        values = {**values, "layout": result.layout.text}
    usual(values, result)


VIOLATIONS = [
    refuses("LANG-02.3-43", "no_attributes", "has no attribute block in a schedule statement",
        r"schedule\.\w+\([^)]*\) @\{"),
    rewrites("LANG-02.3-43", "no_point", "takes a schedule statement without its point", r"\bschedule (\w+)\(",
        r"schedule.\1("),
    rewrites("LANG-02.3-53", "first_argument", "takes a schedule call for its first argument",
        r"(= |return |\+ |\()schedule\.\w+\((\w)[^)]*\)(?: @\{[^}]*\})?", r"\1\2"),
    wrapped("LANG-02.3-79", "without_settings", "drops the settings of schedule statements",
        "language.statements._emit",
        lambda usual, scope, directive, subjects, settings, span: usual(scope, directive, subjects, (), span)),
    wrapped("LANG-02.3-79", "blocks_apart", "tells settings in an attribute block from keywords",
        "language.statements.read_settings", blocks_apart),
    wrapped("LANG-02.3-79", "of_the_first", "takes every schedule statement for one about the first name",
        "language.statements._emit", lambda usual, scope, directive, subjects, *rest:
            usual(scope, directive, (next(iter(scope.names.values())).value,), *rest)),
    wrapped("LANG-02.3-79", "ReorderedWhenScheduled", "adds the terms of a scheduled product in another order",
        "adapter.ReferenceAdapter.language_execute", reordered_where(lambda source, level: "schedule." in source)),
    wrapped("LANG-02-07", "OutermostWins", "lets a fast function or run win over a numerics statement",
        "adapter.ReferenceAdapter.language_execute",
        reordered_where(lambda source, level: level == "fast" or "numerics_profile=fast" in source)),
    refuses("LANG-02-06", "func_annotations", "has no annotation before a kernel", r"@schedule\([^)]*\) kernel"),
    instead("LANG-02-06", "settings_lost", "drops the settings of schedule annotations",
        "language.modules.read_annotations", after(lambda _: ())),
    wrapped("LANG-02.3-60", "flat_lists", "takes a list of lists for one list", "language.statements.plain_value",
        flattened),
    refuses("LANG-02-06", "no_block_beside", "has no attributes beside an annotation", r"@schedule\([^)]*\) @\{"),
    rewrites("LANG-02-07", "any_profile", "takes any profile in a numerics statement",
        r'numerics\.profile\((?!"(?:fast|deterministic|strict)")[^)]*\)', 'numerics.profile("fast")'),
    refuses("LANG-02-09", "no_precision", "has no precision on functions", r"\bprecision=[^{}]*\} \{", "types"),
    instead("LANG-05.3-01", "divisors", "takes divisors for a shape", "ir.attributes._is_shape", multiples),
    instead("LANG-05.3-02", "no_dtype", "does not look at the attribute dtype",
        ("language.expressions.read_common", "language.modules.read_common"),
        after(lambda given: {key: value for key, value in given.items() if key != "dtype"})),
    wrapped("LANG-05.3-03", "layouts_by_name", "compares layouts without the sizes of their blocks",
        "ir.attributes._check_result", without_blocks),
    refuses("LANG-05.3-05", "no_precision_of_operations", "has no precision on operations",
        r"\) @\{[^{}]*precision=[^{}]*\};"),
]  # fmt: skip
