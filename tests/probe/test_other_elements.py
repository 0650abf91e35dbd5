"""Elements that do not add in the order of the watched one are noticed."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.probe import Finding, Subject


class Edges:
    """A product whose first column folds from the last term; the others fold from the first."""

    def __init__(self, orders: ModuleType, columns: int) -> None:
        self.orders, self.columns, self.calls = orders, columns, 0

    def __call__(self, left: Any, right: Any) -> Any:
        column = self.calls % self.columns
        self.calls += 1
        step = -1 if column == 0 else 1
        return self.orders.rounded_products(left[::step], right[::step])


def test_one_order_everywhere(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(Subject("matmul", (3, 12, 4), "fp32"), products=orders.fused_products)
    assert found.others is not None
    assert (found.others.alike, found.others.elements, found.others.first_other) == (12, 12, None)


@pytest.mark.parametrize(("element", "alike", "first"), [((0, 0), 3, (0, 1)), ((2, 3), 9, (0, 0))])
def test_another_order_at_an_edge(
    element: tuple[int, int], alike: int, first: tuple[int, int], probed: Callable[..., Finding], orders: ModuleType
) -> None:
    subject = Subject("matmul", (3, 24, 4), "fp32", element=element)
    found = probed(subject, products=Edges(orders, 4))
    assert found.pattern == ("fold from the last term" if element == (0, 0) else "fold")
    assert found.others is not None
    assert (found.others.alike, found.others.elements, found.others.first_other) == (alike, 12, first)


def test_a_single_element_has_no_others(probed: Callable[..., Finding]) -> None:
    assert probed(Subject("sum", (8,), "fp32")).others is None


def test_an_order_that_narrow_results_hide(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """Sums in fp32, results in bf16: only terms that cancel show in which order they were added."""
    edges = Edges(orders, 4)

    def products(left: Any, right: Any) -> Any:
        return edges(left.astype("float32"), right.astype("float32"))

    found = probed(Subject("matmul", (3, 24, 4), "bf16", element=(2, 3)), products=products)
    assert found.others is not None
    assert (found.others.alike, found.others.first_other) == (9, (0, 0))
