"""Bindings whose listing reports something else, or accepts what it should refuse (runtime spec 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Violation, replaced
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter, make

Shown = dict[str, Any]
LISTING = ReferenceAdapter.binding_listing


def shown(clause: str, name: str, description: str, change: Callable[[Shown], Shown]) -> Violation:
    """Return a violation that changes the listing's result."""

    def listing(self: ReferenceAdapter, **stated: Any) -> Shown:
        return change(LISTING(self, **stated))

    return replaced(clause, description, make, ("adapter.ReferenceAdapter.binding_listing", listing), name=name)


def stated(clause: str, name: str, description: str, change: Callable[[Shown], Shown]) -> Violation:
    """Return a violation that changes the listing's arguments."""

    def listing(self: ReferenceAdapter, **arguments: Any) -> Shown:
        return LISTING(self, **change(arguments))

    return replaced(clause, description, make, ("adapter.ReferenceAdapter.binding_listing", listing), name=name)


def buffer(change: Callable[[bytes], bytes]) -> Callable[[Shown], Shown]:
    return lambda answer: answer | {"argument_bytes": change(bytes.fromhex(answer["argument_bytes"])).hex()}


def other(tensors: Sequence[Tensor], place: int) -> list[Tensor]:
    found = list(tensors)
    place %= len(found)
    found[place] = replace(found[place], data=bytes(len(found[place].data)))
    return found


def renamed(name: str, values: dict[str, str]) -> Callable[[Shown], Shown]:
    return lambda given: given | {name: values.get(given[name], given[name])}


def all_axes(given: Shown) -> Shown:
    if len(given["axes"]) < 3:
        raise Refusal("TESS_ERR_INVALID_VALUE", "call", "axes that are not named")
    return given


def fitting(given: Shown) -> Shown:
    axes, product = given["axes"], 1
    for size in axes.values():
        product *= size
    return given | {"axes": axes if product == given["devices"] else {"dp": given["devices"]}}


BROKEN = [
    shown("RT-05-01", "no_context", "gives no context", lambda answer: answer | {"context": False}),
    stated("RT-05-02", "all_axes", "wants every axis to be named", all_axes),
    stated("RT-05-02", "fitting", "makes axes fit", fitting),
    shown("RT-05-04", "unpadded", "does not round the buffer up", buffer(lambda data: data[:36])),
    stated("RT-05-04", "whole_scalars", "passes keyword scalars as whole numbers",
        lambda given: given | {"scalars": {name: float(round(value)) for name, value in given["scalars"].items()}}),
    stated("RT-05-05", "grid_ignored", "launches one block", lambda given: given | {"grid": [1, 1, 1]}),
    stated("RT-05-05", "block_ignored", "lets the compiler choose every block",
        lambda given: given | {"block": [0, 0, 0]}),
    shown("RT-05-05", "not_synchronized", "leaves the output as it was",
        lambda answer: answer | {"outputs": other(answer["outputs"], -1)}),
    stated("RT-05-06", "min_as_sum", "takes min for sum", renamed("op", {"min": "sum"})),
    stated("RT-05-06", "axis_ignored", "always reduces along dp", lambda given: given | {"axis": "dp"}),
    stated("RT-05-06", "op_trimmed", "takes names of operators in any spelling",
        lambda given: given | {"op": given["op"].strip().lower()}),
    stated("RT-05-09", "first_kernel", "gives a kernel for any name",
        lambda given: given | {"kernel": "scaled" if given["kernel"] == "missing" else given["kernel"]}),
    shown("RT-05-10", "no_default_stream", "has no default stream", lambda answer: answer | {"default_stream": False}),
]  # fmt: skip


def any_image(self: ReferenceAdapter, **arguments: Any) -> Shown:
    try:
        return LISTING(self, **arguments)
    except Refusal:
        if len(arguments["image"]) > 400:
            raise
        zeros = {"context": True, "mesh_size": arguments["devices"], "kernels": [], "argument_bytes": ""}
        return zeros | {"default_stream": True, "outputs": arguments["tensors"], "reduced": arguments["grads"]}


BYTES = replaced(
    "RT-05-03",
    "loads a module of nothing from any bytes",
    make,
    ("adapter.ReferenceAdapter.binding_listing", any_image),
)
