"""The dialect of futures read wrongly: types, attributes, requirements. Collectives specification, 2, 3.2, 8, 9."""

import re

from tessera_reference.graph import futures
from tessera_reference.graph.futures import Await
from tessera_reference.ir.types import Future, dtype_of

from ...ir.violators.changes import changed, nothing
from .changes import at, result_of, updated

# Printing

printed = result_of("adapter.collectives.print_module")


def printing(name, pattern, clause, replacement=""):
    """Return a violation that prints a replacement for a pattern."""

    def change(text):
        text = re.sub(rf", {pattern}(?=[,}}])", f", {replacement}" if replacement else "", text)
        return re.sub(rf"\{{{pattern}(?:, )?", f"{{{replacement}", text)

    return printed(clause, name, f"prints {replacement or 'nothing'} for {pattern}", change)


ATTRIBUTES = [
    ("08-01", "chunk"), ("08-02", "algo"), ("08-03", "path"), ("08-04", "scope"), ("08-05", "dtype"),
    ("08-06", "priority"), ("08-07", "overlap"), ("08-08", "qos"), ("02.2-03", "subgroup"), ("09.1-01", "algo"),
    ("09.2-02", "chunk"), ("02.3-07", "chunk"), ("03.2-04", "algo"), ("03.2-05", "path"),
]  # fmt: skip


# Values of attributes

ANYTHING = [
    ("02.2-01", "scope"), ("02.5-01", "dtype"), ("03.2-04", "algo"), ("03.2-05", "path"), ("08-02", "algo"),
    ("08-03", "path"), ("08-04", "scope"),
]  # fmt: skip
WITHOUT = [
    ("02.2-05", "scope", "intra_sm"), ("02.2-06", "scope", "intra_gpu"), ("02.2-07", "scope", "node"),
    ("02.2-08", "scope", "rack"), ("02.5-06", "dtype", "bf16"), ("02.5-07", "dtype", "fp16"),
    ("02.5-08", "dtype", "fp8"), ("03.2-04", "algo", "auto"), ("03.2-05", "path", "auto"), ("08-05", "dtype", "bf16"),
]  # fmt: skip
known = at("graph.futures.require_known")


# Types


def is_float_tensor(value):
    found = dtype_of(value.type)
    return found is not None and found.kind == "float"


def takes_tensors(usual, self):
    plain = isinstance(self, Await) and not isinstance(self.future, Future)
    return (self.future,) if plain else usual(self)


VIOLATIONS = [
    printed("COLL-08-06", "broadcast_priority", "prints no priority of a broadcast",
        lambda text: re.sub(r'("tessera\.collective\.broadcast"[^\n]*?), priority = 3', r"\1", text)),
    *(
        printing(f"{name}_dropped_{index}", rf"{name} = (?:\"[^\"]*\"|!tessera[^>]*>|[^,}}]+)", f"COLL-{clause}")
        for index, (clause, name) in enumerate(ATTRIBUTES)
    ),
    printing("chunk_in_kib", r"chunk = 1MiB", "COLL-08-01", "chunk = 1KiB"),
    printing("overlap_always", r"overlap = false", "COLL-08-07", "overlap = true"),
    changed("COLL-03.2-04", "any_all_to_all", "reads any algorithm of all_to_all",
        ("graph.futures.ALL_TO_ALL_ALGORITHMS", futures.ALGORITHMS)),
    *(
        known(f"COLL-{clause}", f"any_{name}_{clause}", f"takes any text as {name}",
              lambda usual, attribute, *given, own=name: None if attribute == own else usual(attribute, *given))
        for clause, name in ANYTHING
    ),
    *(
        known(f"COLL-{clause}", f"no_{value}_{clause}", f"refuses {name} {value}",
              lambda usual, attribute, given, *more, own=(name, value): usual(
                  attribute, "none of them" if (attribute, given) == own else given, *more))
        for clause, name, value in WITHOUT
    ),
    changed("COLL-08-01", "any_chunk", "takes chunks of no bytes, and two chunks",
        ("graph.futures.require_chunk", nothing)),
    *(
        updated("ir.attributes.UNITS", clause, f"kib_of_a_thousand_{clause[5:]}", "KiB is 1000 bytes", **units)
        for clause, units in (
            ("COLL-08-01", {"KiB": 1000, "MiB": 10**6, "GiB": 10**9}),
            ("COLL-02.3-07", {"KiB": 1000}),
        )
    ),
    at("graph.futures.IssueAllReduce.__init__")("COLL-02.3-06", "largest_by_default",
        "takes the largest where no op is given",
        lambda usual, self, *given, **named: usual(self, *given, **{"op": "max", **named})),
    changed("COLL-02.1-01", "no_futures_in_calls", "passes no future to a function",
        ("graph.control.Call.takes_futures", False)),
    result_of("graph.futures.FutureCollective.infer")("COLL-08-15", "no_future", "yields no future",
        lambda found: found.value),
    changed("LANG-05.5-02", "gradients_lost_in_futures", "takes what a future holds for no part of a gradient",
        ("graph.grad.is_float", is_float_tensor)),
    at("ir.operation.Operation.results")("COLL-02.1-05", "awaits_tensors", "awaits what is no future", takes_tensors),
    changed("COLL-02.1-04", "first_axis", "takes the first axis where none is given",
        ("graph.futures._only_axis", lambda meshes, mesh: str(next(iter(meshes.values())).axes[0]))),
]  # fmt: skip
