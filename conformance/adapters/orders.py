"""The orders in which engines add over ranks, as `find_orders.py` found them, and their answers to `numerics.declared`.

An order holds for one engine in one version, one number of ranks, one dtype and one number of elements; nothing is
inferred from one to another.
"""

from __future__ import annotations

import json
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from conformance.adapters.collective_requests import kind_of

from tessera_conformance.adapter import NotSupported
from tessera_conformance.arithmetic import canonical
from tessera_conformance.oracle.trees import Tree

FILE = Path(__file__).with_name("orders.json")


@cache
def known() -> tuple[dict[str, Any], ...]:
    """All that were found."""
    return tuple(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.exists() else ()


def are_known(engine: str, version: str) -> bool:
    """True if any order of this engine in this version was found."""
    return any((order["engine"], order["version"]) == (engine, version) for order in known())


def declared(
    engine: str,
    version: str,
    operation: str,
    *,
    dtype: str,
    shapes: list[list[int]],
    attributes: dict[str, Any] | None = None,
    element: int = 0,
) -> dict[str, Any]:
    """The answer to `numerics.declared`; sums of integers have the same bits in every order.

    Raises:
        NotSupported: no order was found for that.
    """
    ranks, elements = len(shapes), prod(shapes[0])
    if operation != "all_reduce" or (attributes or {}).get("op", "sum") != "sum":
        raise NotSupported(f"the order of {operation}")
    if ranks == 1 or kind_of(dtype) == "int":
        tree = Tree.from_text("pairwise").over(ranks)
        return {"tree": tree.to_json(), "arithmetic": canonical(dtype).to_json()}
    settings = {"engine": engine, "version": version, "ranks": ranks, "elements": elements, "dtype": dtype}
    for found in known():
        if settings.items() <= found.items():
            for run in found["orders"]:
                if run["first"] <= element <= run["last"]:
                    return {"tree": Tree.from_text(run["tree"]).to_json(), "arithmetic": found["arithmetic"]}
    raise NotSupported(f"the order of {elements} elements of {dtype} over {ranks} ranks")
