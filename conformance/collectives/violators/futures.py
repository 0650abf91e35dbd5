"""The dialect of futures read wrongly: types, attributes, requirements. Collectives specification, 2, 3.2, 8, 9."""

import re

from tessera_reference.graph import futures
from tessera_reference.graph import futures as hints
from tessera_reference.graph.futures import Await, FutureCollective, IssueAllReduce
from tessera_reference.ir.operation import Operation
from tessera_reference.ir.text import print_module
from tessera_reference.ir.types import Future, dtype_of

from ...ir.violators.changes import changed, nothing

# Printing


def printing(name, pattern, clause, replacement=""):
    """Return a violation that prints a replacement for a pattern."""

    def printed(module):
        text = re.sub(rf", {pattern}(?=[,}}])", f", {replacement}" if replacement else "", print_module(module))
        return re.sub(rf"\{{{pattern}(?:, )?", f"{{{replacement}", text)

    return changed(
        clause, name, f"prints {replacement or 'nothing'} for {pattern}", ("adapter.collectives.print_module", printed)
    )


ATTRIBUTES = {
    "COLL-08-01": "chunk",
    "COLL-08-02": "algo",
    "COLL-08-03": "path",
    "COLL-08-04": "scope",
    "COLL-08-05": "dtype",
    "COLL-08-06": "priority",
    "COLL-08-07": "overlap",
    "COLL-08-08": "qos",
    "COLL-02.2-03": "subgroup",
    "COLL-09.1-01": "algo",
    "COLL-09.2-02": "chunk",
    "COLL-02.3-07": "chunk",
    "COLL-03.2-04": "algo",
    "COLL-03.2-05": "path",
}


def without_priority(module):
    return re.sub(r'("tessera\.collective\.broadcast"[^\n]*?), priority = 3', r"\1", print_module(module))


PRINTED = [
    changed("COLL-08-06", "broadcast_priority", "prints no priority of a broadcast",
        ("adapter.collectives.print_module", without_priority)),
    *(
        printing(f"{name}_dropped_{index}", rf"{name} = (?:\"[^\"]*\"|!tessera[^>]*>|[^,}}]+)", clause)
        for index, (clause, name) in enumerate(ATTRIBUTES.items())
    ),
    printing("chunk_in_kib", r"chunk = 1MiB", "COLL-08-01", "chunk = 1KiB"),
    printing("overlap_always", r"overlap = false", "COLL-08-07", "overlap = true"),
]  # fmt: skip


# Values of attributes

USUAL_KNOWN = futures.require_known


def anything(clause, name):
    """Return a violation that accepts every text as a value of an attribute."""

    def require(attribute, *arguments):
        if attribute != name:
            USUAL_KNOWN(attribute, *arguments)

    of = hints if name == "dtype" else futures
    return changed(clause, f"any_{name}_{clause[5:]}", f"takes any text as {name}", (of, "require_known", require))


def without(clause, name, value):
    """Return a violation that does not know one value of an attribute."""

    def require(attribute, given, *arguments):
        USUAL_KNOWN(attribute, "none of them" if (attribute, given) == (name, value) else given, *arguments)

    of = hints if name == "dtype" else futures
    return changed(clause, f"no_{value}_{clause[5:]}", f"refuses {name} {value}", (of, "require_known", require))


VALUES = [
    changed("COLL-03.2-04", "any_all_to_all", "reads any algorithm of all_to_all",
        ("graph.futures.ALL_TO_ALL_ALGORITHMS", hints.ALGORITHMS)),
    anything("COLL-02.2-01", "scope"),
    anything("COLL-02.5-01", "dtype"),
    anything("COLL-03.2-04", "algo"),
    anything("COLL-03.2-05", "path"),
    anything("COLL-08-02", "algo"),
    anything("COLL-08-03", "path"),
    anything("COLL-08-04", "scope"),
    without("COLL-02.2-05", "scope", "intra_sm"),
    without("COLL-02.2-06", "scope", "intra_gpu"),
    without("COLL-02.2-07", "scope", "node"),
    without("COLL-02.2-08", "scope", "rack"),
    without("COLL-02.5-06", "dtype", "bf16"),
    without("COLL-02.5-07", "dtype", "fp16"),
    without("COLL-02.5-08", "dtype", "fp8"),
    without("COLL-03.2-04", "algo", "auto"),
    without("COLL-03.2-05", "path", "auto"),
    without("COLL-08-05", "dtype", "bf16"),
    changed("COLL-08-01", "any_chunk", "takes chunks of no bytes, and two chunks",
        ("graph.futures.require_chunk", nothing)),
    *(
        changed(clause, f"kib_of_a_thousand_{clause[5:]}", "KiB is 1000 bytes", ("ir.attributes.UNITS", units))
        for clause, units in (
            ("COLL-08-01", {"KiB": 1000, "MiB": 10**6, "GiB": 10**9}),
            ("COLL-02.3-07", {"KiB": 1000, "MiB": 1 << 20, "GiB": 1 << 30}),
        )
    ),
]  # fmt: skip


# The operator


def _as_the_largest(self, *arguments, **named):
    USUAL_ISSUE(self, *arguments, **{"op": "max", **named})


USUAL_ISSUE = IssueAllReduce.__init__

OPERATOR = [
    changed("COLL-02.3-06", "largest_by_default", "takes the largest where no op is given",
        ("graph.futures.IssueAllReduce.__init__", _as_the_largest)),
]  # fmt: skip

# Types


def yielding(clause, name, description, cls, value):
    """Return a violation in which a collective's result has another type."""
    usual = cls.infer
    return changed(clause, name, description, (cls, "infer", lambda self: value(usual(self))))


USUAL_RESULTS = Operation.results


def is_float_tensor(value):
    found = dtype_of(value.type)
    return found is not None and found.kind == "float"


def takes_tensors(self):
    if isinstance(self, Await) and not isinstance(self.future, Future):
        return (self.future,)
    return USUAL_RESULTS(self)


TYPES = [
    changed("COLL-02.1-01", "no_futures_in_calls", "passes no future to a function",
        ("graph.control.Call.takes_futures", False)),
    yielding("COLL-08-15", "no_future", "yields no future", FutureCollective, lambda found: found.value),
    changed("LANG-05.5-02", "gradients_lost_in_futures", "takes what a future holds for no part of a gradient",
        ("graph.grad.is_float", is_float_tensor)),
    changed("COLL-02.1-05", "awaits_tensors", "awaits what is no future",
        ("ir.operation.Operation.results", takes_tensors)),
    changed("COLL-02.1-04", "first_axis", "takes the first axis where none is given",
        ("graph.futures._only_axis", lambda meshes, mesh: str(next(iter(meshes.values())).axes[0]))),
]  # fmt: skip
