"""Front ends that spell, declare or lower collectives differently (language specification, 2, 4, 5, 9 and 15)."""

import re
from dataclasses import replace
from functools import partial

from .changes import after, answers, around, instead
from .language_syntax import refuses, rewrites

SPELLING = [
    rewrites("no_prefix", "LANG-02-05", "takes all_reduce without prefix", r"(?<![\w.])all_reduce\(",
        "dist.all_reduce("),
    rewrites("op_prefix", "LANG-02-05", "takes op for dist", r"\bop\.all_reduce\(", "dist.all_reduce("),
    refuses("no_collectives", "LANG-02-05", "knows no all_reduce", r"dist\.all_reduce\(X, axis=dp, op=", "types"),
    rewrites("dist_and_a_blank", "LANG-02.3-44", "takes a blank for the point", r"\bdist all_reduce",
        "dist.all_reduce"),
    rewrites("comma_behind", "LANG-02.3-44", "takes a comma after the last argument", r"(dist\.\w+\(X),\)", r"\1)"),
    refuses("no_dist_attributes", "LANG-02.3-44", "has no attributes of dist statements", r"\n\s*dist\.[^;\n]*@\{"),
    rewrites("default_axis", "LANG-09-02", "reduces over the first axis where none is declared",
        r"(dist\.\w+\(X)(?![^;\n]*\baxis)(?=[,)])", r"\1, axis=dp"),
    rewrites("default_op", "LANG-09-03", "adds where nothing else is declared",
        r"(dist\.(?:all_reduce|reduce_scatter)\(X)(?![^;\n]*\bop=)(?=[,)])", r'\1, op="sum"'),
    rewrites("prod_for_sum", "LANG-05.2-05", "takes prod, and adds", r'op="prod"', 'op="sum"'),
    refuses("no_min", "LANG-05.2-05", "knows sum and max only", r'op="min"', "distributed"),
    rewrites("statement_carried_out", "LANG-02.3-54", "carries a dist statement out and assigns the result",
        r"(?m)^(\s*)(dist\.all_reduce\(X.*;)$", r"\1X = \2"),
    rewrites("statement_of_any_axis", "LANG-02.3-80", "keeps of a dist statement that it was there",
        r"(?m)^(\s*dist\.\w+\(X).*;$", r'\1, axis=dp, op="sum");'),
]  # fmt: skip


def shown(name, clause, description, change):
    """Return a violation that changes each function's operations in the reported IR."""
    shows = after(lambda lowered: lowered | {"operations": change(lowered["operations"])})
    return instead(name, clause, description, "adapter.language.function_message", shows)


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
    shown("pure", "LANG-04-05", "says that a collective has no effect",
        lambda operations: [operation | {"effects": []} for operation in operations]),
    shown("unused", "LANG-15-13", "drops collectives whose result is not used", without_unused),
    shown("merged", "LANG-04-05", "takes one collective for two equal ones", merged),
    *(
        shown(f"{name}_{call}", "LANG-04-05", description.format(call), partial(change, collective=call))
        for call in ("reduce_scatter", "all_gather", "broadcast", "all_to_all")
        for name, description, change in (
            ("unused", "drops an unused {}", without_unused),
            ("merged", "takes one {} for two equal ones", merged),
        )
    ),
    shown("reordered", "LANG-15-13", "exchanges collectives", late),
    shown("no_axis", "LANG-05.2-05", "shows no axis", without_axis),
]  # fmt: skip


def rounded_down(usual, x, dim, **sizes):
    extent, parts = x.shape[dim], sizes.get("parts", 1)
    whole = extent - extent % parts if isinstance(extent, int) else extent
    return usual(replace(x, shape=(*x.shape[:dim], whole, *x.shape[dim:][1:])), dim, **sizes)


TYPES = [
    instead("unequal_parts", "LANG-09-02", "drops what is left over of unequal parts", "graph.collectives._resized",
        around(rounded_down)),
    instead("dimensions_go_round", "LANG-09-02", "counts the dimensions of a collective round",
        "graph.collectives.require_axis", lambda axis, rank: None,
        ("graph.collectives._resized", around(lambda usual, x, dim, **sizes: usual(x, dim % x.rank, **sizes)))),
    answers("DropsUnusedCollectives", "LANG-15-13", "does not carry out a collective whose result is not used",
        "language_execute_ranks", lambda usual, self, *, source, **request:
            usual(self, source=re.sub(r"\{ let \w+: [^;]*= dist\.[^;]*; \}", "{ }", source), **request)),
]  # fmt: skip
