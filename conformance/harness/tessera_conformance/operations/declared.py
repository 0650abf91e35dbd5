"""The file of orders that an implementation declares, `declared.toml`: written by `probe --write`, read for a table.

    format = 1
    implementation = "numpy 2.4.6"

    [[order]]
    operation = "matmul"
    dtype = "fp32"
    shapes = [[[4, 4], [4, 4]], [[4, 9], [9, 5]]]     of the operands, a list for each product
    tree = "fold"
    arithmetic = { product = "fused", accumulator = "fp32" }

An order may have the `axis` of a sum, the dtype `out` of a product, and `elements`, "0-3,8": the elements of the result
that it holds for. The last two extents of a product of batches are looked up where the whole shapes are not there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.arithmetic import NodeArithmetic, Tree, canonical

FORMAT = 1
Key = tuple[Any, ...]


class BadDeclaration(Exception):
    """A file of orders that cannot be used; says what is wrong."""


@dataclass(frozen=True)
class Order:
    """In which order some elements of one result are reduced, and how a node computes."""

    tree: str
    arithmetic: NodeArithmetic
    elements: str = ""

    def holds(self, element: int) -> bool:
        """True if it is the order of an element."""
        runs = (run.partition("-") for run in self.elements.split(",") if run)
        return not self.elements or any(int(first) <= element <= int(last or first) for first, _, last in runs)

    def answer(self) -> dict[str, Any]:
        """The answer to `numerics.declared`."""
        return {"tree": Tree.from_text(self.tree).to_json(), "arithmetic": self.arithmetic.to_json()}


class Declarations:
    """The orders in a file.

    Raises:
        BadDeclaration: it cannot be read, or an order is malformed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            if table.get("format") != FORMAT:
                raise BadDeclaration(f"{path}: format {table.get('format')}; expected {FORMAT}")
            self._rows = [(row, _order(row)) for row in table.get("order", [])]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadDeclaration(f"{path}: {type(error).__name__}: {error}") from None

    @cached_property
    def _orders(self) -> Mapping[Key, Sequence[Order]]:
        orders: dict[Key, list[Order]] = {}
        for row, order in self._rows:
            for shapes in row["shapes"]:
                orders.setdefault(key_of(row["operation"], row["dtype"], shapes, row), []).append(order)
        return orders

    def answer(
        self,
        *,
        operation: str,
        dtype: str,
        shapes: Sequence[Sequence[int]],
        attributes: Mapping[str, Any] | None = None,
        element: int = 0,
    ) -> dict[str, Any]:
        """The answer to `numerics.declared`.

        Raises:
            NotSupported: no order of this operation, dtype and shape is declared.
        """
        said = attributes or {}
        whole = self._orders.get(key_of(operation, dtype, shapes, said))
        if whole is None and operation == "matmul":
            whole = self._orders.get(key_of(operation, dtype, [each[-2:] for each in shapes], said))
        if whole is None and terms_of(operation, shapes, said) < 2:
            return Order("fold", self._any_arithmetic(operation, dtype)).answer()
        for order in whole or ():
            if order.holds(element):
                return order.answer()
        raise NotSupported(f"a declared order for this shape: `tessera-conformance probe --write {self.path.name}`")

    def _any_arithmetic(self, operation: str, dtype: str) -> NodeArithmetic:
        """The arithmetic of a sum of one term: that of other shapes, else the canonical one."""
        known = (order for row, order in self._rows if (row["operation"], row["dtype"]) == (operation, dtype))
        first = next(known, None)
        return first.arithmetic if first else canonical(dtype)


def key_of(operation: str, dtype: str, shapes: Sequence[Sequence[int]], attributes: Mapping[str, Any]) -> Key:
    """By what an order is looked up."""
    extents = tuple(tuple(each) for each in shapes)
    if operation == "sum":
        return (operation, dtype, extents, int(attributes.get("axis", -1)) % max(len(extents[0]), 1))
    return (operation, dtype, extents, attributes.get("out") or dtype)


def terms_of(operation: str, shapes: Sequence[Sequence[int]], attributes: Mapping[str, Any]) -> int:
    """The number of terms that an element of the result adds."""
    return int(shapes[0][-1] if operation == "matmul" else shapes[0][attributes.get("axis", -1)])


def _order(row: Mapping[str, Any]) -> Order:
    Tree.from_text(row["tree"])
    return Order(row["tree"], NodeArithmetic.from_json(row["arithmetic"]), row.get("elements", ""))
