"""Front ends that spell, declare or lower collectives differently (language specification, 2, 4, 5, 9 and 15)."""

import re
from dataclasses import replace
from functools import partial

from .changes import after, around, instead, wrapped
from .language_syntax import refuses, rewrites


def shown(clause, name, description, change):
    """Return a violation that changes each function's operations in the reported IR."""
    shows = after(lambda lowered: lowered | {"operations": change(lowered["operations"])})
    return instead(clause, name, description, "adapter.language.function_message", shows)


def without_unused(operations, collective="all_reduce"):
    used = {operand for operation in operations for operand in operation["operands"]}
    return [
        operation for operation in operations if collective not in operation["name"] or used & set(operation["results"])
    ]


def merged(operations, collective="all_reduce"):
    kept = {}
    for place, operation in enumerate(operations):
        act = f"{operation['operands']} {operation['attributes']}" if collective in operation["name"] else str(place)
        kept.setdefault(act, operation)
    return list(kept.values())


def late(operations):
    found = [operation for operation in operations if "all_reduce" in operation["name"]]
    return found[::-1] + [operation for operation in operations if operation not in found]


def without_axis(operations):
    reduces = [operation["attributes"] for operation in operations if "all_reduce" in operation["name"]]
    for attributes in reduces:
        attributes.pop("axis", None)
    return operations


IR = [
    shown("LANG-04-05", "pure", "says that a collective has no effect",
        lambda operations: [operation | {"effects": []} for operation in operations]),
    shown("LANG-15-13", "unused", "drops collectives whose result is not used", without_unused),
    shown("LANG-04-05", "merged", "takes one collective for two equal ones", merged),
    *(
        shown("LANG-04-05", f"{name}_{call}", description.format(call), partial(change, collective=call))
        for call in ("reduce_scatter", "all_gather", "broadcast", "all_to_all")
        for name, description, change in (
            ("unused", "drops an unused {}", without_unused),
            ("merged", "takes one {} for two equal ones", merged),
        )
    ),
    shown("LANG-15-13", "reordered", "exchanges collectives", late),
    shown("LANG-05.2-05", "no_axis", "shows no axis", without_axis),
]  # fmt: skip


def rounded_down(usual, x, dim, **sizes):
    extent, parts = x.shape[dim], sizes.get("parts", 1)
    whole = extent - extent % parts if isinstance(extent, int) else extent
    return usual(replace(x, shape=(*x.shape[:dim], whole, *x.shape[dim:][1:])), dim, **sizes)


VIOLATIONS = [
    rewrites("LANG-02-05", "no_prefix", "takes all_reduce without prefix", r"(?<![\w.])all_reduce\(",
        "dist.all_reduce("),
    rewrites("LANG-02-05", "op_prefix", "takes op for dist", r"\bop\.all_reduce\(", "dist.all_reduce("),
    refuses("LANG-02-05", "no_collectives", "knows no all_reduce", r"dist\.all_reduce\(X, axis=dp, op=", "types"),
    rewrites("LANG-02.3-44", "dist_and_a_blank", "takes a blank for the point", r"\bdist all_reduce",
        "dist.all_reduce"),
    rewrites("LANG-02.3-44", "comma_behind", "takes a comma after the last argument", r"(dist\.\w+\(X),\)", r"\1)"),
    refuses("LANG-02.3-44", "no_dist_attributes", "has no attributes of dist statements", r"\n\s*dist\.[^;\n]*@\{"),
    rewrites("LANG-09-02", "default_axis", "reduces over the first axis where none is declared",
        r"(dist\.\w+\(X)(?![^;\n]*\baxis)(?=[,)])", r"\1, axis=dp"),
    rewrites("LANG-09-03", "default_op", "adds where nothing else is declared",
        r"(dist\.(?:all_reduce|reduce_scatter)\(X)(?![^;\n]*\bop=)(?=[,)])", r'\1, op="sum"'),
    rewrites("LANG-05.2-05", "prod_for_sum", "takes prod, and adds", r'op="prod"', 'op="sum"'),
    refuses("LANG-05.2-05", "no_min", "knows sum and max only", r'op="min"', "distributed"),
    rewrites("LANG-02.3-54", "statement_carried_out", "carries a dist statement out and assigns the result",
        r"(?m)^(\s*)(dist\.all_reduce\(X.*;)$", r"\1X = \2"),
    rewrites("LANG-02.3-80", "statement_of_any_axis", "keeps of a dist statement that it was there",
        r"(?m)^(\s*dist\.\w+\(X).*;$", r'\1, axis=dp, op="sum");'),
    wrapped("LANG-09-02", "unequal_parts", "drops what is left over of unequal parts", "graph.collectives._resized",
        rounded_down),
    instead("LANG-09-02", "dimensions_go_round", "counts the dimensions of a collective round",
        "graph.collectives.require_axis", lambda axis, rank: None,
        ("graph.collectives._resized", around(lambda usual, x, dim, **sizes: usual(x, dim % x.rank, **sizes)))),
    wrapped("LANG-15-13", "DropsUnusedCollectives", "does not carry out a collective whose result is not used",
        "adapter.ReferenceAdapter.language_execute_ranks", lambda usual, self, *, source, **request:
            usual(self, source=re.sub(r"\{ let \w+: [^;]*= dist\.[^;]*; \}", "{ }", source), **request)),
]  # fmt: skip
