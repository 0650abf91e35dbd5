"""C headers that differ from the specification in one declaration (runtime specification, section 4)."""

import re

from tessera_conformance.chapters.abi.kit.c_names import PROTOTYPES
from tessera_reference.abi.status import header

from ...ir.violators.changes import changed

HEADER = header()


def written(clause, name, description, *changes):
    """Return a violation that replaces texts of the header, each of which it must contain."""
    text = HEADER
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{name}: the header does not have {old!r}")
        text = text.replace(old, new)

    return changed(clause, name, description, ("adapter.ReferenceAdapter.abi_header", lambda self: {"text": text}))


def declaration(function):
    """Return the prototype of a function in the header."""
    match = re.search(rf"tessStatus_t {function}\([^;]*\);", HEADER)
    assert match is not None, function
    return match[0]


def parameters(function):
    text = declaration(function)
    return [" ".join(word.split()) for word in text[text.index("(") + 1 : text.rindex(")")].split(",")]


def exchanged(function):
    *rest, before, last = parameters(function)
    return [*rest, last, before]


def redeclared(clause, function, slug, how, given):
    new = f"tessStatus_t {function}({', '.join(given) or 'void'});"
    return written(clause, f"{function}_{slug}", f"declares {function} {how}", (declaration(function), new))


def instead_of(function, clause, name, description, result, before=""):
    """Return a violation that declares a function with another result."""
    other = before + declaration(function).replace("tessStatus_t", result, 1)
    return written(clause, name, description, (declaration(function), other))


TYPED = [
    written(clause, name, description, (declaration(function), declaration(function).replace(old, new)))
    for clause, name, function, old, new, description in (
        ("RT-04.1-18", "short_version", "tessGetVersion", "int* minor", "short* minor", "takes a pointer to short"),
        ("RT-04.2-02", "ids_not_const", "tessMeshCreate", "const int*", "int*", "may change the device ids"),
        ("RT-04.2-02", "axes_by_pointer", "tessMeshCreate", "Axes axes", "Axes* axes", "points to axes"),
        ("RT-04.3-03", "unsigned_priority", "tessStreamCreate", "int priority", "unsigned priority", "has no negative"),
        ("RT-04.4-03", "int_bytes", "tessMalloc", "size_t bytes", "unsigned bytes", "counts bytes as unsigned"),
        ("RT-04.4-05", "int_kind", "tessHostAlloc", "tessMemKind kind", "int kind", "takes any int as a kind"),
        ("RT-04.4-10", "const_destination", "tessMemcpyAsync", "void* dst", "const void* dst", "may not write dst"),
        ("RT-04.5-03", "long_size", "tessModuleLoad", "size_t size", "long size", "has a signed size"),
        ("RT-04.5-06", "name_not_const", "tessKernelGet", "const char*", "char*", "may change the name"),
        ("RT-04.5-13", "config_by_pointer", "tessLaunch", "Config cfg", "Config* cfg", "points to the configuration"),
        ("RT-04.6-04", "unsigned_dtype", "tessAllReduce", "int dtype", "unsigned dtype", "has unsigned dtypes"),
        ("RT-04.7-07", "policy_not_const", "tessSetNumericsPolicy", "const tess", "tess", "may change the policy"),
        ("RT-04.7-09", "const_policy", "tessGetNumericsPolicy", ", tess", ", const tess", "may not write the policy"),
        ("RT-04.8-02", "profiler_by_value", "tessProfilerStart", "tessProfiler_t*", "tessProfiler_t", "has no out"),
    )
]


END_OF_LINKAGE = "#ifdef __cplusplus\n}\n#endif"


VIOLATORS = [
    written("RT-02-08", "no_broadcast", "does not declare tessBroadcast", (declaration("tessBroadcast"), "")),
    *(redeclared(clause, function, "more", "with one parameter more", [*parameters(function), "int reserved"])
        for function, (clause, _) in PROTOTYPES.items()
        if len(parameters(function)) == 1),
    *(redeclared(clause, function, "exchanged", "with its last two parameters exchanged", exchanged(function))
        for function, (clause, _) in PROTOTYPES.items()
        if len(parameters(function)) > 1 and clause not in {row.clause for row in TYPED}),
    *(instead_of(function, "RT-07-01", f"{function}_returns_{result}", f"has {function} return {result}", result)
        for function, result in {
            "tessInit": "int",
            "tessStreamSynchronize": "unsigned",
            "tessHostFree": "void",
            "tessProfilerStop": "tessCollOp",
        }.items()),
    written("LANG-16-07", "partly_mangled", "ends C linkage before the profiler",
        ("/* 4.8 Profiling */", END_OF_LINKAGE), (END_OF_LINKAGE + "\n\n#endif", "#endif")),
    instead_of("tessLaunch", "LANG-16-07", "other_registers", "passes the arguments of a launch in other registers",
        "__attribute__((ms_abi)) tessStatus_t"),
    instead_of("tessFree", "LANG-16-07", "callee_cleans", "lets tessFree take its arguments from the stack",
        "tessStatus_t TESS_CALL", before="#define TESS_CALL __stdcall\n"),
]  # fmt: skip
