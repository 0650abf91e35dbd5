"""Bindings whose listing reports something else, or accepts what it should refuse (runtime spec 5)."""

from dataclasses import replace
from math import prod

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Around
from tessera_reference.adapter import ReferenceAdapter

from .changes import broken, result

LISTING = "adapter.ReferenceAdapter.binding_listing"


def shown(clause, name, description, change):
    return broken(clause, name, description, LISTING, result(change))


def stated(clause, name, description, change):
    return broken(
        clause, name, description, LISTING, Around(lambda usual: lambda self, **of: usual(self, **change(of)))
    )


def all_axes(given):
    if len(given["axes"]) < 3:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", "axes that are not named")
    return given


def fitting(given):
    fits = prod(given["axes"].values()) == given["devices"]
    return given if fits else given | {"axes": {"dp": given["devices"]}}


def without_last_output(answer):
    *outputs, last = answer["outputs"]
    return answer | {"outputs": [*outputs, replace(last, data=bytes(len(last.data)))]}


def any_image(self, right=ReferenceAdapter.binding_listing, **arguments):
    try:
        return right(self, **arguments)
    except Refusal:
        if len(arguments["image"]) > 400:
            raise
        zeros = {"context": True, "mesh_size": arguments["devices"], "kernels": [], "argument_bytes": ""}
        return zeros | {"default_stream": True, "outputs": arguments["tensors"], "reduced": arguments["grads"]}


BROKEN = [
    shown("RT-05-01", "no_context", "gives no context", lambda answer: answer | {"context": False}),
    stated("RT-05-02", "all_axes", "wants every axis to be named", all_axes),
    stated("RT-05-02", "fitting", "makes axes fit", fitting),
    shown("RT-05-04", "unpadded", "does not round the buffer up",
        lambda answer: answer | {"argument_bytes": answer["argument_bytes"][:72]}),
    stated("RT-05-04", "whole_scalars", "passes keyword scalars as whole numbers",
        lambda given: given | {"scalars": {name: float(round(value)) for name, value in given["scalars"].items()}}),
    stated("RT-05-05", "grid_ignored", "launches one block", lambda given: given | {"grid": [1, 1, 1]}),
    stated("RT-05-05", "block_ignored", "lets the compiler choose every block",
        lambda given: given | {"block": [0, 0, 0]}),
    shown("RT-05-05", "not_synchronized", "leaves the output as it was", without_last_output),
    stated("RT-05-06", "min_as_sum", "takes min for sum",
        lambda given: given | {"op": "sum" if given["op"] == "min" else given["op"]}),
    stated("RT-05-06", "axis_ignored", "always reduces along dp", lambda given: given | {"axis": "dp"}),
    stated("RT-05-06", "op_trimmed", "takes names of operators in any spelling",
        lambda given: given | {"op": given["op"].strip().lower()}),
    stated("RT-05-09", "first_kernel", "gives a kernel for any name",
        lambda given: given | {"kernel": "scaled" if given["kernel"] == "missing" else given["kernel"]}),
    shown("RT-05-10", "no_default_stream", "has no default stream", lambda answer: answer | {"default_stream": False}),
    broken("RT-05-03", "BYTES", "loads a module of nothing from any bytes", LISTING, any_image),
]  # fmt: skip
