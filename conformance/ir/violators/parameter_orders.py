"""Entries that are right for one scalar and wrong for several, and wrongly hidden metadata (section 16)."""

import re

from .changes import wrapped
from .target_emission import reads, tells
from .verifiers_of_text import overlooks, turns_down


def exchanging(clause, name, description, change):
    """Return a violation that exchanges scalars of kernels at Target IR; `change` takes inputs and names of scalars."""

    def execute(usual, self, *, inputs, at="graph", **request):
        given = dict(inputs)
        declared = re.findall(r"(\w+): (?:int|fp)\d+", request["source"].split("{")[1])
        if at == "target":
            change(given, [name for name in declared if name in given])
        return usual(self, inputs=given, at=at, **request)

    return wrapped(clause, name, description, "adapter.ReferenceAdapter.language_execute", execute)


def by_name(given, scalars):
    for kind in {given[name].dtype for name in scalars}:
        same = [name for name in scalars if given[name].dtype == kind]
        given.update(zip(same, [given[name] for name in sorted(same)], strict=True))


def last_twice(given, scalars):
    if len(scalars) > 2 and given[scalars[-2]].dtype == given[scalars[-1]].dtype:
        given[scalars[-2]] = given[scalars[-1]]


def widest_first(entry):
    arguments = entry["arguments"]
    if {"fp32", "fp64"} <= set(arguments):
        entry["arguments"] = sorted(arguments, key=lambda dtype: dtype == "fp32")
        entry["arguments"].insert(0, entry["arguments"].pop(arguments.index("fp64")))


VIOLATIONS = [
    overlooks("LANG-16-02", "fifth_parameter", "that a buffer is the fifth parameter, behind scalars",
        r"%p4 stands behind"),
    turns_down("LANG-16-03", "wide_last", "a wide scalar behind two narrow ones", r"fp32, fp32, int32, int64"),
    exchanging("LANG-16-03", "packed_by_name", "packs scalars of one type by name", by_name),
    exchanging("LANG-16-03", "last_twice", "passes the last of three scalars twice", last_twice),
    tells("LANG-16-02", "wide_among_buffers", "puts a wide scalar before the buffers where there is a narrow one too",
        widest_first),
    reads("LANG-16-04", "hidden_bytes", "lists hidden numbers of 8 bits for AMD", "amdgcn",
        r"(grid_dim_x\n.*\n *\.size: +)4", r"\g<1>1"),
    reads("LANG-16-03", "scalars_hidden", "lists scalars as hidden for AMD", "amdgcn",
        r"(scalar1\.\d+\n.*\n.*\n *\.value_kind: +)by_value", r"\1hidden_none"),
]  # fmt: skip
